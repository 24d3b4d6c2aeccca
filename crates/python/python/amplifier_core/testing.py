"""Parts for tests of hooks, which record all calls.

Example::

    coordinator = make_coordinator(approval_system=MockApprovalSystem("Allow"))
    recorder = EventRecorder().attach(coordinator.hooks)
    await mount(coordinator, "hooks-path-guard")
    result = await coordinator.execute_with_hooks("tool:pre", {"tool_name": "Write"})
    recorder.assert_emitted("tool:pre", tool_name="Write")

With pytest, fixtures provide the same parts: see ``amplifier_core.pytest_plugin``.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Mapping
from reprlib import repr as _short
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unittest.mock import AsyncMock

from amplifier_core.approval import ApprovalTimeoutError, ScriptedApprovals
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

if TYPE_CHECKING:
    from amplifier_core._module_mocks import (
        MockContextManager,
        MockCoordinator,
        MockTool,
        ScriptedOrchestrator,
        create_test_coordinator,
        wait_for,
    )

#: The parts for tests of modules, which are imported on first use.
_OF_MODULES = ("MockContextManager", "MockCoordinator", "MockTool", "ScriptedOrchestrator", "create_test_coordinator", "wait_for")

__all__ = [
    "ApprovalQuestion",
    "CollectingDisplay",
    "EventRecorder",
    "MockApprovalSystem",
    "MockContext",
    "MockContextManager",
    "MockCoordinator",
    "MockTool",
    "RecordedEvent",
    "ScriptedApprovals",
    "ScriptedOrchestrator",
    "ShownMessage",
    "create_test_coordinator",
    "make_coordinator",
    "wait_for",
]


def __getattr__(name: str) -> Any:
    if name in _OF_MODULES:
        from amplifier_core import _module_mocks

        return getattr(_module_mocks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class RecordedEvent(NamedTuple):
    """An emitted event."""

    event: str
    data: dict[str, Any]


class EventRecorder:
    """Records events. The recorder is a hook, ``registry.register("tool:pre", recorder)``, and :meth:`attach` registers it for several
    events. As a replacement for a registry, its :meth:`emit` records events and returns "continue".

    Records are copies where possible, so that later changes of the data do not affect them.
    """

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    def attach(self, registry: HookRegistry, *events: str) -> EventRecorder:
        """Registers the recorder as an observer for events, or for all if none is given: it sees the data after the gates, also of denied
        events. Returns the recorder."""
        for event in events or ("*",):
            registry.register(event, self, name="event_recorder", role="observer")
        return self

    async def __call__(self, event: str, data: dict[str, Any]) -> HookResult:
        """Records an event and returns "continue"."""
        try:
            kept = copy.deepcopy(data)
        except Exception:  # Some values cannot be copied.
            kept = dict(data)
        self.events.append(RecordedEvent(event, kept))
        return HookResult(action="continue")

    async def emit(self, event: str, data: dict[str, Any]) -> HookResult:
        """Records an event as if emitted, for code that needs a registry."""
        return await self(event, data)

    record = emit

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [recorded.event for recorded in self.events]

    def get_events(self, event: str | None = None) -> list[RecordedEvent]:
        """The events with a name, or all."""
        return [recorded for recorded in self.events if event in (None, recorded.event)]

    def assert_emitted(self, event: str, /, **fields: Any) -> dict[str, Any]:
        """Returns the data of the last event with this name and these fields. Fails without one, and lists the emitted events."""
        candidates = self.get_events(event)
        for recorded in reversed(candidates):
            if all(name in recorded.data and recorded.data[name] == value for name, value in fields.items()):
                data: dict[str, Any] = recorded.data
                return data
        if candidates:
            found = "\n".join(f"  {recorded.data!r}" for recorded in candidates)
            raise AssertionError(f"`{event}` was emitted, but never with {fields!r}:\n{found}")
        raise AssertionError(f"`{event}` was not emitted; there were: {', '.join(self.names) or 'no events'}")

    def clear(self) -> None:
        """Removes all records."""
        self.events.clear()

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[RecordedEvent]:
        return iter(self.events)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<EventRecorder: {_short(self.names)}>"


class ApprovalQuestion(NamedTuple):
    """A recorded approval request."""

    prompt: str
    options: list[str]
    timeout: float
    default: Literal["allow", "deny"]


class MockApprovalSystem:
    """An approval system for tests, which returns the decisions in order, and then the default decision.

    A decision is the label of an option, an exception to raise, or ``None`` for no answer until the request is withdrawn.
    ``request_approval`` is an ``AsyncMock`` (``request_approval.called``, ``request_approval.assert_awaited_once()``), and
    ``questions`` contains the requests. :class:`ScriptedApprovals` gets complete requests instead, and can answer late.
    """

    def __init__(self, *decisions: str | BaseException | None, default_decision: str | BaseException | None = "Deny") -> None:
        self.questions: list[ApprovalQuestion] = []
        self.default_decision = default_decision
        self._decisions = list(decisions)
        self.request_approval = AsyncMock(side_effect=self._decide)

    def decide(self, *decisions: str | BaseException | None) -> None:
        """Adds decisions for the next requests."""
        self._decisions.extend(decisions)

    async def _decide(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        self.questions.append(ApprovalQuestion(prompt, list(options), timeout, default))
        decision = self._decisions.pop(0) if self._decisions else self.default_decision
        if isinstance(decision, BaseException):
            raise decision
        if decision is None:
            await asyncio.get_running_loop().create_future()
            raise ApprovalTimeoutError
        return decision

    def __repr__(self) -> str:
        asked = _short([question.prompt for question in self.questions])
        return f"<MockApprovalSystem: asked {asked}, decides {_short(self._decisions)}, then {_short(self.default_decision)}>"


class MockContext:
    """A conversation for tests. Messages are dicts with ``role``, ``content`` and ``metadata``."""

    def __init__(self, messages: list[dict[str, Any]] | None = None) -> None:
        self.messages: list[dict[str, Any]] = list(messages or [])

    def add_message(
        self, role: str | Mapping[str, Any], content: Any = "", metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Adds a message, given in parts or as one dict."""
        if isinstance(role, str):
            self.messages.append({"role": role, "content": content, "metadata": dict(metadata or {})})
        else:
            self.messages.append({"metadata": {}, **role})

    def get_messages(self) -> list[dict[str, Any]]:
        """The messages, in order."""
        return list(self.messages)

    @property
    def injections(self) -> list[dict[str, Any]]:
        """The messages that hooks injected."""
        return [message for message in self.messages if (message.get("metadata") or {}).get("source") == "hook"]

    def clear(self) -> None:
        """Removes all records."""
        self.messages.clear()

    def __repr__(self) -> str:
        return f"<MockContext: {_short([message.get('content') for message in self.messages])}>"


class ShownMessage(NamedTuple):
    """A shown message."""

    message: str
    level: str
    source: str


class CollectingDisplay:
    """A display for tests."""

    def __init__(self) -> None:
        self.messages: list[ShownMessage] = []

    def show_message(self, message: str, level: str, source: str) -> None:
        """Records a message."""
        self.messages.append(ShownMessage(message, level, source))

    def texts(self, level: str | None = None) -> list[str]:
        """Returns the texts of the shown messages, of one level or of all."""
        return [shown.message for shown in self.messages if level in (None, shown.level)]

    def clear(self) -> None:
        """Removes all records."""
        self.messages.clear()

    def __repr__(self) -> str:
        return f"<CollectingDisplay: {_short(self.texts())}>"


def make_coordinator(
    hooks: HookRegistry | None = None,
    *,
    context: Any = None,
    approval_system: Any = None,
    display_system: Any = None,
    config: Mapping[str, Any] | None = None,
    strict: bool = True,
) -> SessionCoordinator:
    """Creates a coordinator for a test. Missing parts are taken from this module, such as an approval system that denies everything.

    With ``strict``, the registry detects hooks that change nested values in place; ignored if ``hooks`` are given.
    """
    return SessionCoordinator(
        HookRegistry(strict=strict) if hooks is None else hooks,
        MockContext() if context is None else context,
        MockApprovalSystem() if approval_system is None else approval_system,
        CollectingDisplay() if display_system is None else display_system,
        config,
        session_id="test",
    )
