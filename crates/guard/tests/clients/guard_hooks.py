"""`amplifier guard` as the hooks of an agent: a bundle with the test hook decides, and the parts of the guard can be broken."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any

from agents import Agent, Workspace
from behavior import Behavior
from model import Call
from scenarios import HOOK_LIMIT, Scenario
from test_hooks import HOOK

# Seconds until the hook program of the guard denies, and until the agent ends it.
GUARD_DEADLINE = 20
AGENT_LIMIT = 30
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
        return Behavior(merge={"tool_result": text})

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return self.deny(reason)


class GuardHooks:
    """The guard with its daemon, in the home of the run."""

    def __init__(self, amplifier: Path) -> None:
        self.amplifier = amplifier

    def expected(self, agent: Agent, scenario: Scenario) -> str | None:
        if agent.name != agent.guard_name or scenario.broken_hooks:
            return None
        # No failure lets a tool run, in any agent.
        return "denied" if scenario.is_failure else scenario.expected_of(agent)

    def install(self, agent: Agent, scenario: Scenario, place: Workspace, environment: dict[str, str]) -> None:
        programs = self.copy_programs(place)
        self.write_bundle(agent, scenario, place)
        folder = place.home / ".local/share/amplifier/guard"
        folder.mkdir(parents=True, mode=0o700)
        variables = {"HOME": str(place.home), "PATH": environment["PATH"]}
        start = {"program": str(programs / "amplifier")} | variables
        place.write(folder / "start", "".join(f"{name}={value}\n" for name, value in start.items()))
        commands = {event: self.command(agent, event, programs, folder) for event in agent.events()}
        agent.install_hooks(place, commands, AGENT_LIMIT)
        self.break_guard(scenario, programs, folder, place)

    def copy_programs(self, place: Workspace) -> Path:
        """Gives the run programs of its own, which it can break."""
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
        # YAML reads JSON. Nobody is there to approve anything, so only the hooks decide.
        place.write(place.home / ".config/amplifier/bundle.yaml", {"session": {"confirm": "off"}, "hooks": hooks})

    def command(self, agent: Agent, event: str, programs: Path, folder: Path) -> str:
        words = [str(programs / "amplifier-hook"), "--client", agent.guard_name, "--event", event]
        words += ["--deadline", str(GUARD_DEADLINE * 1000), "--folder", str(folder)]
        failed = '{ echo "amplifier guard failed" >&2; exit 2; }'
        return "/bin/sh -c " + shlex.quote(f"{shlex.join(words)}; r=$?; [ $r = 0 ] || [ $r = 2 ] || {failed}; exit $r")

    def break_guard(self, scenario: Scenario, programs: Path, folder: Path, place: Workspace) -> None:
        hook = programs / "amplifier-hook"
        start = folder / "start"
        match scenario.program or scenario.guard_fault:
            case "missing":
                hook.unlink()
            case "not executable":
                hook.chmod(0o644)
            case "guard-exit-1":
                hook.write_text("#!/bin/sh\nexit 1\n")
            case "guard-killed":
                hook.write_text("#!/bin/sh\nkill -9 $$\n")
            case "daemon-missing":
                start.write_text(start.read_text().replace("/bin/amplifier\n", "/bin/missing\n"))
            case "daemon-exits":
                (programs / "amplifier").write_text("#!/bin/sh\nexit 1\n")
            case "daemon-closes":
                FalseDaemon(folder, b"").start()
            case "daemon-garbage":
                FalseDaemon(folder, b"amplifier-guard 1 garbage\n").start()
            case "daemon-forged":
                FalseDaemon(folder, b"amplifier-guard 1 " + b"0" * 32 + b" 0 0 0\n").start()
            case "daemon-hangs":
                FalseDaemon(folder, None).start()
            case "folder-open":
                folder.chmod(0o755)
            case "bundle-broken":
                place.write(place.home / ".config/amplifier/bundle.yaml", "hooks: [\n")

    def clean_up(self, place: Workspace, environment: dict[str, str]) -> None:
        """Ends the daemon, which has a session of its own."""
        path = place.home / ".local/share/amplifier/guard/socket"
        with socket.socket(socket.AF_UNIX) as daemon:
            try:
                daemon.connect(str(path))
                credentials = daemon.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            except OSError:
                return
        pid = struct.unpack("3i", credentials)[0]
        if pid != os.getpid():
            os.kill(pid, signal.SIGKILL)


class FalseDaemon(threading.Thread):
    """A listener on the socket of the daemon that gives each caller the same answer, or none at all."""

    def __init__(self, folder: Path, answer: bytes | None) -> None:
        super().__init__(daemon=True)
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "socket"))
        self.listener.listen()
        # Connections that stay open without an answer.
        self.held: list[socket.socket] = []

    def run(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            if self.answer is None:
                self.held.append(connection)
                continue
            with connection:
                connection.recv(1 << 16)
                connection.sendall(self.answer)
