"""A coding agent, as the scenarios see it: its settings, its command line, its tools, and the form of its hooks' answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model import Call, Text


@dataclass(frozen=True)
class Workspace:
    """The folders of one run. The agent knows no other home."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def hooks(self) -> Path:
        return self.root / "hooks"

    def write(self, path: Path, content: str | dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")


class Agent(ABC):
    """One coding agent. Subclasses are siblings of one shape."""

    name: str
    package: str
    # The program below the folder of the installation.
    program: str
    # Our moments, by the names of this agent.
    before_tool: str
    after_tool: str
    prompt_submit: str
    # Names that `amplifier guard install` knows this agent by.
    guard_name: str
    # Folders of the home that all runs share.
    shared_caches: tuple[str, ...] = ()

    @abstractmethod
    def configure(self, place: Workspace, url: str, mcp: list[str] | None) -> None:
        """Writes the settings that have nothing to do with hooks: the model, the MCP server, trust in the folder."""

    @abstractmethod
    def install_hooks(self, place: Workspace, commands: dict[str, str], timeout: int) -> None:
        """Writes one hook per event, with a time limit in seconds."""

    def break_hooks(self, place: Workspace, how: str) -> None:
        """Breaks the installed hooks in a way that only this agent knows."""
        raise NotImplementedError(f"`{self.name}` knows no hooks that are broken by `{how}`")

    @abstractmethod
    def command(self, place: Workspace, program: Path, prompt: str) -> list[str]:
        """The command line of a run without a terminal, in which nothing asks for permission."""

    @abstractmethod
    def environment(self, place: Workspace, url: str) -> dict[str, str]:
        """Variables in addition to those that all agents get."""

    @abstractmethod
    def shell(self, command: str) -> Call:
        """A call of the shell tool."""

    @abstractmethod
    def write_file(self, place: Workspace, name: str, content: str) -> Call:
        """A call of the tool that creates a file."""

    @abstractmethod
    def mcp(self, path: Path) -> Call:
        """A call of the MCP tool `mark`."""

    @abstractmethod
    def child(self, prompt: str) -> list[Text | Call]:
        """The turns that start a sub-agent and wait for it."""

    @abstractmethod
    def deny(self, reason: str) -> dict[str, Any]:
        """The answer that denies a tool call."""

    @abstractmethod
    def rewrite(self, call: Call) -> dict[str, Any]:
        """The answer that replaces the input of a tool call."""

    @abstractmethod
    def add_context(self, text: str) -> dict[str, Any]:
        """The answer after a tool call that adds context."""

    @abstractmethod
    def redact(self, text: str) -> dict[str, Any]:
        """The answer after a shell call that replaces its result."""

    @abstractmethod
    def deny_result(self, reason: str) -> dict[str, Any]:
        """The answer after a tool call that keeps its result from the model."""

    @abstractmethod
    def deny_prompt(self, reason: str) -> dict[str, Any]:
        """The answer that stops a prompt."""

    def events(self) -> list[str]:
        """The events that need a hook."""
        return [self.before_tool, self.after_tool, self.prompt_submit]

    def unknown_value(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The same answer with a decision that no client knows: `DENY`."""
        return json.loads(json.dumps(answer).replace('"deny"', '"DENY"'))


def nested(event: str, **fields: Any) -> dict[str, Any]:
    """The nested form of Claude Code and Codex."""
    return {"hookSpecificOutput": {"hookEventName": event} | fields}


def add_file(name: str, content: str) -> Call:
    """A patch that adds one file, as the models of OpenAI write it."""
    added = "".join(f"+{line}\n" for line in content.splitlines())
    return Call("apply_patch", f"*** Begin Patch\n*** Add File: {name}\n{added}*** End Patch\n")
