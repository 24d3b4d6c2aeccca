"""`amplifier guard` as the hooks of an agent: a bundle with the test hook decides, and the parts of the guard can be broken."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from agents import Agent, Workspace
from approver import Approver
from behavior import Behavior
from model import Call
from outcomes import SECRET
from scenarios import HOOK_LIMIT, Scenario
from test_hooks import HOOK

# The folder of the daemon, below the home.
FOLDER = ".local/share/amplifier/guard"
CONFIG = ".config/amplifier"
# Agents that `amplifier guard install` knows.
GUARDED = ("claude", "codex", "gemini", "copilot", "opencode")
INSTALL_LIMIT = 60
EVENTS = {"before_tool": "tool:pre", "after_tool": "tool:post", "prompt_submit": "prompt:submit"}


class FlatForm:
    """The answers of a hook in a bundle."""

    def deny(self, reason: str) -> dict[str, Any]:
        return {"action": "deny", "reason": reason}

    def rewrite(self, call: Call) -> Behavior:
        assert isinstance(call.arguments, dict)
        command = call.arguments.get("command", call.arguments.get("cmd"))
        return Behavior(merge={"tool_input": {"command": command}})

    def add_context(self, text: str) -> dict[str, Any]:
        return {"action": "inject_context", "context_injection": text}

    def redact(self, text: str) -> Behavior:
        return Behavior(replace={SECRET: text})

    def deny_result(self, reason: str) -> dict[str, Any]:
        return self.deny(reason)

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return self.deny(reason)


class GuardHooks:
    """The guard with its daemon, in the home of the run."""

    def __init__(self, amplifier: Path) -> None:
        self.amplifier = amplifier
        # By the folder of their run.
        self.approvers: dict[Path, Approver] = {}

    def expected(self, agent: Agent, scenario: Scenario) -> str | None:
        if agent.name not in GUARDED or scenario.broken_hooks or (scenario.approval and not scenario.approval.is_possible()):
            return None
        # No failure lets a tool run, in any agent.
        if scenario.is_failure:
            return "denied"
        return scenario.with_guard or scenario.expected.get(agent.name, scenario.expected.get("*"))

    def install(self, agent: Agent, scenario: Scenario, place: Workspace, environment: dict[str, str]) -> None:
        # Programs that break are copies. Debug builds are large, so the others are shared.
        programs = self.copy_programs(place) if scenario.program or scenario.guard_fault else self.amplifier.parent
        self.write_bundle(agent, scenario, place)
        command = [str(programs / "amplifier"), "guard", "install", agent.guard_name]
        done = subprocess.run(command, check=False, cwd=place.repo, env=environment, capture_output=True, text=True, timeout=INSTALL_LIMIT)
        (place.root / "install").write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise RuntimeError(f"the guard cannot be installed: {done.stdout[-500:]}{done.stderr[-500:]}")
        if scenario.approval:
            self.approvers[place.root] = Approver(self.amplifier, scenario.approval, place, environment).start()

    def copy_programs(self, place: Workspace) -> Path:
        programs = place.root / "bin"
        programs.mkdir()
        for name in ("amplifier", "amplifier-hook"):
            (programs / name).write_bytes((self.amplifier.parent / name).read_bytes())
            (programs / name).chmod(0o755)
        return programs

    def write_bundle(self, agent: Agent, scenario: Scenario, place: Workspace) -> None:
        behaviors = {moment: behavior.to_json() for moment, behavior in scenario.behaviors(agent, FlatForm()).items()}
        (place.hooks / "behaviors.json").write_text(json.dumps(behaviors))
        hooks = [
            {
                "command": [sys.executable, "-I", "-S", str(HOOK), str(place.hooks), moment],
                "name": f"test-{moment}",
                "on": event,
                "timeout": HOOK_LIMIT,
                "confine": False,
            }
            for moment, event in EVENTS.items()
        ]
        if scenario.approval:
            hooks.append(scenario.approval.rule())
        # YAML reads JSON. The agents ask by themselves, and only the hooks decide.
        place.write(place.home / CONFIG / "bundle.yaml", {"session": {"confirm": "off"}, "hooks": hooks})
        # The time limits of the hooks follow from that of an approval.
        limit, approvals = (scenario.approval.limit, "server") if scenario.approval else (1, "client")
        place.write(place.home / CONFIG / "config.toml", f'approval_timeout = {limit}\napprovals = "{approvals}"\n')

    def break_down(self, scenario: Scenario, place: Workspace) -> None:
        folder, programs = place.home / FOLDER, place.root / "bin"
        fault = scenario.program or scenario.guard_fault
        if fault == "daemon-hangs":
            signal_daemon(folder, signal.SIGSTOP)
        elif fault.startswith(("daemon", "start")) or fault in ("bundle-broken", "audit-broken"):
            signal_daemon(folder, signal.SIGKILL)
            (folder / "socket").unlink(missing_ok=True)
        hook, daemon, start = programs / "amplifier-hook", programs / "amplifier", folder / "start"
        match fault:
            case "missing":
                hook.unlink()
            case "not executable":
                hook.chmod(0o644)
            case "guard-exit-1":
                replace_program(hook, "exit 1")
            case "guard-killed":
                replace_program(hook, "kill -9 $$")
            case "guard-hangs":
                # Only before the tool, so that a run stays below its limit. Gemini waits for the end of the sleep.
                replace_program(hook, 'case "$*" in *PreToolUse*|*preToolUse*|*BeforeTool*|*tool.execute.before*) exec sleep 45;; esac')
            case "daemon-missing":
                start.write_text(start.read_text().replace("/bin/amplifier\n", "/bin/missing\n"))
            case "daemon-exits":
                replace_program(daemon, "exit 1")
            case "daemon-closes":
                FalseDaemon(folder, b"").start()
            case "daemon-garbage":
                FalseDaemon(folder, b"amplifier-guard 1 garbage\n").start()
            case "daemon-forged":
                FalseDaemon(folder, b"amplifier-guard 1 " + b"0" * 32 + b" 0 0 0\n").start()
            case "start-missing":
                start.unlink()
            case "audit-broken":
                audit = folder.parent / "audit"
                shutil.rmtree(audit)
                audit.write_text("")
            case "folder-open":
                folder.chmod(0o755)
            case "bundle-broken" | "bundle-edited":
                place.write(place.home / CONFIG / "bundle.yaml", "hooks: [\n")

    def clean_up(self, place: Workspace, environment: dict[str, str]) -> None:
        if approver := self.approvers.pop(place.root, None):
            approver.stop()
        signal_daemon(place.home / FOLDER, signal.SIGKILL)


def replace_program(program: Path, script: str) -> None:
    # A running program cannot be written, but replaced.
    program.unlink()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def signal_daemon(folder: Path, number: signal.Signals) -> None:
    """Sends a signal to the daemon, which has a session of its own."""
    with socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect(str(folder / "socket"))
            credentials = daemon.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return
    pid = struct.unpack("3i", credentials)[0]
    if pid != os.getpid():
        os.kill(pid, number)


class FalseDaemon(threading.Thread):
    """A listener on the socket of the daemon that gives each caller the same answer."""

    def __init__(self, folder: Path, answer: bytes) -> None:
        super().__init__(daemon=True)
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "socket"))
        self.listener.listen()

    def run(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(self.answer)
