"""Tests of the behavior of a module, for its own test suite. They mount it with an empty configuration.

    class TestBehavior(ToolBehaviorTests): ...

The fixture ``module_path`` finds the module beside the folder of the tests.
"""

from __future__ import annotations

import contextlib
import inspect
import pathlib
from collections.abc import AsyncIterator
from typing import Any

from amplifier_core._apart import called
from amplifier_core._interfaces import ModuleType, mounted_at
from amplifier_core.loader import ModuleLoader
from amplifier_core.testing import MockCoordinator
from amplifier_core.validation._data import ordinary

__all__ = [
    "ContextBehaviorTests",
    "HookBehaviorTests",
    "OrchestratorBehaviorTests",
    "ProviderBehaviorTests",
    "ToolBehaviorTests",
]


@contextlib.asynccontextmanager
async def _mounted(module_path: pathlib.Path) -> AsyncIterator[MockCoordinator]:
    loader, coordinator, cleanup = ModuleLoader(), MockCoordinator(), None
    try:
        cleanup = loader.import_path(module_path).mount(coordinator, {})
        cleanup = await cleanup if inspect.isawaitable(cleanup) else cleanup
        yield coordinator
    finally:
        if callable(cleanup):
            await called(cleanup)
        await coordinator.cleanup()
        loader.cleanup()


@contextlib.asynccontextmanager
async def _objects(module_path: pathlib.Path, kind: ModuleType) -> AsyncIterator[list[Any]]:
    async with _mounted(module_path) as coordinator:
        yield list(mounted_at(coordinator, kind).values())


class ContextBehaviorTests:
    """A context keeps its messages."""

    async def test_messages_are_kept_replaced_and_removed(self, module_path: pathlib.Path) -> None:
        """Fails if a message is lost, or stays after it was removed."""
        async with _objects(module_path, "context") as contexts:
            for context in contexts:
                await context.add_message({"role": "user", "content": "one"})
                await context.add_message({"role": "assistant", "content": "two"})
                assert [message["content"] for message in await context.get_messages()] == ["one", "two"]
                assert await context.get_messages_for_request()
                await context.set_messages([{"role": "user", "content": "three"}])
                assert [message["content"] for message in await context.get_messages()] == ["three"]
                await context.clear()
                assert await context.get_messages() == []


class HookBehaviorTests:
    """Hooks answer to usual data of their events."""

    async def test_hooks_answer_to_usual_data(self, module_path: pathlib.Path) -> None:
        """Fails if a hook raises."""
        async with _mounted(module_path) as coordinator:
            for event in coordinator.hooks.list_handlers():
                name = "tool:pre" if "*" in event else event
                outcome = await coordinator.hooks.emit_with_outcome(name, ordinary(name))
                failed = [report for report in outcome.reports if report["answer"] in ("failed", "timed_out", "unreadable")]
                assert failed == []


class OrchestratorBehaviorTests:
    """An orchestrator can be called by a session."""

    async def test_a_session_can_call_it(self, module_path: pathlib.Path) -> None:
        """Fails if ``execute`` does not take the arguments of a session."""
        async with _objects(module_path, "orchestrator") as orchestrators:
            for orchestrator in orchestrators:
                named = dict.fromkeys(("prompt", "context", "providers", "tools", "hooks", "coordinator"))
                inspect.signature(orchestrator.execute).bind(**named)


class ProviderBehaviorTests:
    """A provider describes itself. No test calls its model."""

    async def test_it_describes_itself(self, module_path: pathlib.Path) -> None:
        """Fails if the provider has no name or no description."""
        async with _objects(module_path, "provider") as providers:
            for provider in providers:
                assert provider.name and provider.get_info().id
                inspect.signature(provider.complete).bind(None)


class ToolBehaviorTests:
    """Tools describe themselves, and report failures instead of raising."""

    async def test_tools_describe_themselves(self, module_path: pathlib.Path) -> None:
        """Fails if a tool has no name, no description, or a schema that is not a dict."""
        async with _objects(module_path, "tool") as tools:
            for tool in tools:
                assert tool.name and tool.description
                assert isinstance(getattr(tool, "input_schema", {}), dict)

    async def test_an_empty_input_has_a_result(self, module_path: pathlib.Path) -> None:
        """Fails if a tool raises because of its input."""
        async with _objects(module_path, "tool") as tools:
            for tool in tools:
                assert isinstance((await tool.execute({})).success, bool)
