"""Runs one agent through one scenario, in folders of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agents import Agent, Workspace
from model import ModelServer
from model.turns import MAIN_PROMPT
from observation import Observation
from packages import folder_of
from scenarios import Scenario

HERE = Path(__file__).resolve().parent


class Hooks(Protocol):
    """The hooks of a run: those of the tests, or those of `amplifier guard`."""

    def expected(self, agent: Agent, scenario: Scenario) -> str | None:
        """The outcome that counts as right; `None` to skip the scenario."""

    def install(self, agent: Agent, scenario: Scenario, place: Workspace, environment: dict[str, str]) -> None: ...

    def break_down(self, scenario: Scenario, place: Workspace) -> None:
        """Breaks a part in the middle of the run: the prompt has passed, the tool has not."""

    def clean_up(self, place: Workspace, environment: dict[str, str]) -> None: ...


@dataclass(frozen=True)
class Runner:
    """The settings that all runs share."""

    cache: Path
    hooks: Hooks
    # Seconds for one run of an agent.
    limit: float
    keep: bool = False

    def run(self, agent: Agent, scenario: Scenario) -> Observation:
        # Below /var/tmp, because Codex refuses a home below the folder for temporary files. Short, because paths of sockets are.
        place = Workspace(Path(tempfile.mkdtemp(prefix="guard-", dir="/var/tmp")))
        try:
            return self._run(agent, scenario, place)
        finally:
            if not self.keep:
                shutil.rmtree(place.root, ignore_errors=True)

    def _run(self, agent: Agent, scenario: Scenario, place: Workspace) -> Observation:
        for folder in (place.home, place.repo, place.hooks, place.root / "tmp"):
            folder.mkdir()
        share_cache(agent, self.cache, place)
        subprocess.run(["git", "init", "--quiet", str(place.repo)], check=True)
        mcp = [sys.executable, str(HERE / "mcp_server.py")] if scenario.needs_mcp else None
        with ModelServer(scenario.script(agent, place), lambda: self.hooks.break_down(scenario, place)) as server:
            environment = base_environment(place) | agent.environment(place, server.url)
            agent.configure(place, server.url, mcp)
            self.hooks.install(agent, scenario, place, environment)
            program = folder_of(agent, self.cache) / agent.program
            command = agent.command(place, program, f"{MAIN_PROMPT}: please do what the script says")
            started = time.monotonic()
            try:
                exit_code = run_with_limit(command, place, environment, self.limit)
            finally:
                self.hooks.clean_up(place, environment)
            seconds = time.monotonic() - started
        calls = place.hooks / "calls.jsonl"
        seen = Observation(
            files=frozenset(str(path.relative_to(place.repo)) for path in place.repo.rglob("*")),
            exchanges=server.exchanges,
            exit=exit_code,
            seconds=seconds,
            stdout=(place.root / "stdout").read_text(errors="replace"),
            stderr=(place.root / "stderr").read_text(errors="replace"),
            hook_calls=[json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else [],
            unknown_paths=server.unknown,
        )
        if self.keep:
            place.write(place.root / "requests.json", {"requests": [exchange.raw for exchange in seen.exchanges]})
        return seen


def base_environment(place: Workspace) -> dict[str, str]:
    """The variables of every agent: nothing of the person who runs the tests gets through."""
    node = shutil.which("node")
    folders = [str(Path(sys.executable).parent), *([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": ":".join(dict.fromkeys(folders)),
        "HOME": str(place.home),
        "TMPDIR": str(place.root / "tmp"),
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }


def share_cache(agent: Agent, cache: Path, place: Workspace) -> None:
    """Shares folders into which an agent unpacks itself: 235 MB for Copilot."""
    for name in agent.shared_caches:
        shared = cache / f"{folder_of(agent, cache).name}-shared" / name
        shared.mkdir(parents=True, exist_ok=True)
        link = place.home / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(shared)


def run_with_limit(command: list[str], place: Workspace, environment: dict[str, str], limit: float) -> int | None:
    """Runs the agent in a session of its own. Returns its exit code, or `None` if it had to be ended."""
    with open(place.root / "stdout", "wb") as stdout, open(place.root / "stderr", "wb") as stderr:
        process = subprocess.Popen(command, cwd=place.repo, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Children may outlive the agent: hooks that hang, a server of its own.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
