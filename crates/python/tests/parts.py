"""What the tests of the coordinator share: parts of a session that are written in Python, and hooks that give an answer."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import simulated
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

INJECT = HookResult(action="inject_context", context_injection="mind it", user_message="hello")
ASK = HookResult(action="ask_user", approval_prompt="Go?", approval_timeout=5.0)


def hooks(*answers: Any, event: str = "tool:pre") -> HookRegistry:
    registry = HookRegistry()
    for number, answer in enumerate(answers, 1):
        registry.register(event, lambda event, data, answer=answer: answer, name=f"hook-{number}")  # type: ignore[misc]
    return registry


class Context:
    def __init__(self) -> None:
        self.messages: list[tuple[str, str, dict[str, Any]]] = []

    def add_message(self, role: str, content: str, metadata: dict[str, Any] | None = None) -> None:
        self.messages.append((role, content, metadata or {}))


class AsyncContext(Context):
    async def add_message(self, message: dict[str, Any]) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.messages.append((message["role"], message["content"], message["metadata"]))


class Screen:
    def __init__(self) -> None:
        self.shown: list[tuple[str, str, str]] = []

    def show_message(self, message: str, level: str, source: str) -> None:
        self.shown.append((message, level, source))


class AsyncScreen(Screen):
    async def show_message(self, message: str, level: str, source: str) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.shown.append((message, level, source))


class Person:
    """An approval system by the documented method."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[str], float, str]] = []

    def request_approval(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        self.asked.append((prompt, options, timeout, default))
        return self.answer


class AsyncPerson(Person):
    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:  # type: ignore[override]
        await asyncio.sleep(1)
        return super().request_approval(prompt, options, timeout, default)  # type: ignore[arg-type]


def run(session: SessionCoordinator, event: str = "tool:pre", data: dict[str, Any] | None = None) -> HookResult:
    return simulated.run(session.execute_with_hooks(event, data if data is not None else {"n": (1,)}))
