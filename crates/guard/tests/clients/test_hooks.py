"""The hooks of the tests, in the form of each agent: they measure the agent itself."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from agents import Agent, Workspace
from scenarios import HOOK_LIMIT, Scenario

HOOK = Path(__file__).resolve().with_name("hook.py")
MOMENTS = ("before_tool", "after_tool", "prompt_submit")


class TestHooks:
    """One test hook per event."""

    def expected(self, agent: Agent, scenario: Scenario) -> str | None:
        return scenario.expected_of(agent)

    def install(self, agent: Agent, scenario: Scenario, place: Workspace, environment: dict[str, str]) -> None:
        events = {moment: getattr(agent, moment) for moment in MOMENTS}
        behaviors = {events[moment]: behavior.to_json() for moment, behavior in scenario.behaviors(agent, agent).items()}
        (place.hooks / "behaviors.json").write_text(json.dumps(behaviors))
        commands = {event: self.command(place, event) for event in events.values()}
        if scenario.program:
            commands[agent.before_tool] = self.broken_program(scenario, place)
        agent.install_hooks(place, commands, HOOK_LIMIT)
        if scenario.broken_hooks:
            agent.break_hooks(place, scenario.broken_hooks)

    def break_down(self, scenario: Scenario, place: Workspace) -> None:
        pass

    def clean_up(self, place: Workspace, environment: dict[str, str]) -> None:
        pass

    def broken_program(self, scenario: Scenario, place: Workspace) -> str:
        program = place.hooks / "program"
        if scenario.program == "not executable":
            # It denies if it runs: Copilot makes a hook's program executable first.
            program.write_text("#!/bin/sh\nexit 2\n")
            program.chmod(0o644)
        return shlex.quote(str(program))

    def command(self, place: Workspace, event: str) -> str:
        # Isolated and without site packages: a start takes 15 ms instead of 40.
        return shlex.join([sys.executable, "-I", "-S", str(HOOK), str(place.hooks), event])
