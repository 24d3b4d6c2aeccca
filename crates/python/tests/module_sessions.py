"""What the tests of sessions of modules share: the modules in ``modules``, and a configuration that names them."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

pytest.importorskip("pydantic")

from amplifier_core import AmplifierSession, HookResult
from amplifier_core.module_sources import ModuleNotFoundError

MODULES = pathlib.Path(__file__).parent / "modules"

#: The modules by their ids.
POINTS = {
    "loop-plain": "amplifier_module_loop_plain:mount",
    "context-plain": "amplifier_module_context_plain:mount",
    "provider-scripted": "amplifier_module_provider_scripted:mount",
    "tool-notes": "amplifier_module_tool_notes:mount",
    "hooks-marks": "amplifier_module_hooks_marks:mount",
}


class Source:
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def resolve(self) -> pathlib.Path:
        return self.path


class Resolver:
    """Knows the modules of the tests, and no others."""

    def __init__(self) -> None:
        self.hints: dict[str, Any] = {}

    def resolve(self, module_id: str, source_hint: Any = None) -> Source:
        self.hints[module_id] = source_hint
        package = MODULES / f"amplifier_module_{module_id.replace('-', '_')}"
        if not package.is_dir():
            raise ModuleNotFoundError(f"no source for `{module_id}`")
        return Source(package)


def plan(*script: Any, hooks: dict[str, Any] | None = None, texts: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """The configuration of a session whose provider plays a script."""
    return {
        "session": {"orchestrator": {"module": "loop-plain", "source": "here"}, "context": {"module": "context-plain"}},
        "providers": [{"module": "provider-scripted", "config": {"script": list(script)}}],
        "tools": [{"module": "tool-notes", "config": {"texts": texts or []}}],
        "hooks": [{"module": "hooks-marks", "config": hooks or {}}],
        **more,
    }


async def begun(config: dict[str, Any], **options: Any) -> AmplifierSession:
    """A session that is initialized with the modules of the tests."""
    session = AmplifierSession(config, **options)
    await session.coordinator.mount("module-source-resolver", Resolver())
    await session.initialize()
    return session


def note(text: str) -> list[tuple[str, dict[str, Any]]]:
    """A step of a script: the call of the tool that keeps a text."""
    return [("write_note", {"text": text})]


def told(session: AmplifierSession) -> list[str]:
    """What the model was told by tools."""
    return [message["content"] for message in session.coordinator.get("context").messages if message["role"] == "tool"]


def notes(session: AmplifierSession) -> list[str]:
    texts: list[str] = session.coordinator.get_capability("notes").texts
    return texts


def listen(session: AmplifierSession, *events: str) -> list[tuple[str, dict[str, Any]]]:
    """Collects events with their data."""
    seen: list[tuple[str, dict[str, Any]]] = []

    async def hook(event: str, data: dict[str, Any]) -> HookResult:
        seen.append((event, dict(data)))
        return HookResult(action="continue")

    for event in events:
        session.coordinator.hooks.register(event, hook, priority=-50, name="listen")
    return seen


class Approver:
    """An approval system as applications write it."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
        self.asked.append(prompt)
        return self.answer
