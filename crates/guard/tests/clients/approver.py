"""Approval requests of a guarded agent: a rule asks, and somebody answers in one of the ways that users have, or nobody does."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import subprocess
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import Workspace
from behavior import MARKER

HERE = Path(__file__).resolve().parent
PAGE = HERE / "approve_on_page.mjs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The row below a request that waits for a key.
WAITS = b"press 1"
START_LIMIT = 60


@dataclass(frozen=True)
class Approval:
    """A request about the first tool call, and its answer."""

    # `api`, `page` or `watch`; `nobody` gives no answer.
    via: str
    option: str = ""
    # The reason for a denial.
    reason: str = ""
    # Seconds until the request is denied.
    limit: int = 60

    def rule(self) -> dict[str, Any]:
        """The hook that asks."""
        return {
            "rule": "ask-first",
            "on": "tool:pre",
            "when": f'tool_name == "Bash" && tool_input.command.contains("{MARKER}")',
            "ask": "Go on?",
            "options": ["Allow once", "Allow always", "Deny"],
            "ask_timeout": self.limit,
        }

    def is_possible(self) -> bool:
        """`true` if this way exists here: a page needs a browser and its driver."""
        return self.via != "page" or (find_browser() is not None and console_tests().joinpath("node_modules").is_dir())


def find_browser() -> str | None:
    return os.environ.get("CHROMIUM") or next((path for path in map(shutil.which, BROWSERS) if path), None)


def console_tests() -> Path:
    return HERE.parents[2] / "server/tests/console"


class Approver:
    """Waits for the first approval request of a run, and answers it."""

    def __init__(self, amplifier: Path, approval: Approval, place: Workspace, environment: dict[str, str]) -> None:
        self.amplifier, self.approval, self.place = amplifier, approval, place
        self.environment = environment | {"TERM": "xterm", "NO_COLOR": "1", "USER": "ann"}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.problem = ""

    def start(self) -> Approver:
        if self.approval.via == "watch":
            terminal, process_end = pty.openpty()
            # No server is running: the command runs one.
            self.spawn([str(self.amplifier), "approvals", "watch"], process_end)
            os.close(process_end)
            self.wait_until(lambda: (self.place.home / ".local/share/amplifier/server/address").exists())
            answer = lambda: self.answer_in_terminal(terminal)  # noqa: E731
        else:
            server = self.spawn([str(self.amplifier), "serve", "--listen", "127.0.0.1:0", "--json"], subprocess.DEVNULL, subprocess.PIPE)
            assert server.stdout is not None
            self.server = json.loads(server.stdout.readline())
            answer = {"api": self.answer_by_api, "page": self.answer_on_page, "nobody": lambda: None}[self.approval.via]
        threading.Thread(target=self.run, args=[answer], daemon=True).start()
        return self

    def run(self, answer: Any) -> None:
        try:
            answer()
        except Exception as error:  # The outcome of the run shows that there was no answer; this says why.
            self.problem = repr(error)

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def spawn(self, command: list[str], terminal: int, stdout: int | None = None) -> subprocess.Popen[bytes]:
        output = terminal if stdout is None else stdout
        process = subprocess.Popen(
            command, cwd=self.place.repo, env=self.environment, stdin=terminal, stdout=output, stderr=terminal, start_new_session=True
        )
        self.processes.append(process)
        return process

    def wait_until(self, is_there: Any) -> Any:
        end = time.monotonic() + START_LIMIT
        while not (found := is_there()):
            if time.monotonic() > end:
                raise TimeoutError("it never happens")
            time.sleep(0.02)
        return found

    def request(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        token = (self.place.home / ".local/share/amplifier/server/token").read_text().strip()
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.server["url"] + path, data, headers), timeout=START_LIMIT) as response:
            return json.load(response)

    def answer_by_api(self) -> None:
        asked = self.wait_until(lambda: self.request("/api/approvals")["approvals"])[0]
        body = {"option": self.approval.option, "reason": self.approval.reason or None, "nonce": asked["nonce"]}
        if self.approval.option == "Allow always":
            body["rule"] = {key: asked["offers"][0][key] for key in ("operations", "scope")}
        self.request(f"/api/approvals/{asked['id']}/answer", body)

    def answer_on_page(self) -> None:
        command = ["node", str(PAGE), str(console_tests()), self.server["link"], self.approval.option, self.approval.reason]
        environment = self.environment | {"CHROMIUM": find_browser() or ""}
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-500:])

    def answer_in_terminal(self, terminal: int) -> None:
        keys = {"Allow once": [b"1"], "Allow always": [b"2", b"1"], "Deny": [b"/"]}[self.approval.option]
        for key in keys:
            self.read_until(terminal, WAITS)
            os.write(terminal, key)
        if self.approval.option == "Deny":
            self.read_until(terminal, b"reason: ")
            os.write(terminal, self.approval.reason.encode() + b"\r")
        # The terminal must not fill up.
        self.read_until(terminal, b"\0")

    def read_until(self, terminal: int, text: bytes) -> None:
        seen = b""
        while text not in seen:
            if select.select([terminal], [], [], START_LIMIT)[0]:
                seen += os.read(terminal, 4096)
