"""Modules for tests, and a coordinator without a session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

from amplifier_core.module_coordinator import ModuleCoordinator


class MockCoordinator(ModuleCoordinator):
    """A coordinator for modules under test."""

    def __init__(self, approval_system: Any = None, display_system: Any = None) -> None:
        session = SimpleNamespace(session_id="test-session", parent_id=None, config={"session": {}})
        super().__init__(session, approval_system, display_system)


class MockContextManager:
    """A context for modules under test. Its methods are ``AsyncMock``."""

    def __init__(self, messages: list[dict[str, Any]] | None = None) -> None:
        self.messages: list[dict[str, Any]] = list(messages or [])
        self.add_message = AsyncMock(side_effect=self.messages.append)
        self.get_messages = AsyncMock(side_effect=lambda: list(self.messages))
        self.get_messages_for_request = AsyncMock(side_effect=lambda token_budget=None, provider=None: list(self.messages))
        self.set_messages = AsyncMock(side_effect=self._set)
        self.clear = AsyncMock(side_effect=self.messages.clear)

    def _set(self, messages: list[dict[str, Any]]) -> None:
        self.messages[:] = messages


class MockTool:
    """A tool for modules under test, which succeeds with ``output``. ``execute`` is an ``AsyncMock``."""

    def __init__(self, name: str = "mock_tool", output: Any = "Success") -> None:
        self.name = name
        self.description = f"the tool `{name}` of a test"
        self.input_schema: dict[str, Any] = {"type": "object", "properties": {}}
        self.output = output
        self.execute = AsyncMock(side_effect=self._execute)

    @property
    def call_count(self) -> int:
        """The number of calls."""
        return self.execute.call_count

    def _execute(self, input: dict[str, Any]) -> Any:
        from amplifier_core.models import ToolResult

        return ToolResult(success=True, output=self.output)


class ScriptedOrchestrator:
    """An orchestrator that gives the responses in order, and then the last one."""

    def __init__(self, responses: list[str]) -> None:
        self.responses = list(responses)
        self.call_count = 0

    async def execute(self, prompt: str, context: Any, providers: Any, tools: Any, hooks: Any, **kwargs: Any) -> str:
        """Gives the next response."""
        if not self.responses:
            raise RuntimeError("the script is empty")
        self.call_count += 1
        return self.responses[min(self.call_count, len(self.responses)) - 1]


def create_test_coordinator() -> MockCoordinator:
    """Creates a coordinator with a context."""
    coordinator = MockCoordinator()
    coordinator.mount_points["context"] = MockContextManager()
    return coordinator


async def wait_for(condition: Callable[[], bool], timeout: float = 1.0) -> bool:
    """Waits until a condition is true. Returns ``False`` after the time limit."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True
