"""The registry as Python sees it: handlers of every kind, their names, and those of events."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import inspect
import math
import types
from collections.abc import Generator
from typing import Any
from unittest.mock import AsyncMock, MagicMock, patch

import pytest

from amplifier_core import events, hooks
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.models import HookResult
from parts import ASK, run

EVENT = "some:event"


def emit(registry: HookRegistry, data: dict[str, Any] | None = None) -> HookResult:
    return asyncio.run(registry.emit(EVENT, data if data is not None else {}))


class Guard:
    def method(self, event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="deny", reason="method")

    async def async_method(self, event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="deny", reason="async_method")

    async def __call__(self, event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="deny", reason="Guard")

    @staticmethod
    def static(event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="deny", reason="static")


async def bound_late(reason: str, event: str, data: dict[str, Any]) -> HookResult:
    await asyncio.sleep(0)
    return HookResult(action="deny", reason=reason)


class Awaits:
    """Something else that can be awaited."""

    def __await__(self) -> Generator[Any, Any, HookResult]:
        yield from asyncio.sleep(0).__await__()
        return HookResult(action="deny", reason="awaits")


def gives_awaitable(event: str, data: dict[str, Any]) -> Awaits:
    return Awaits()


@pytest.mark.parametrize(
    ("handler", "name", "reason"),
    [
        (Guard().method, "method", "method"),
        (Guard().async_method, "async_method", "async_method"),
        (Guard(), "Guard", "Guard"),
        (Guard.static, "static", "static"),
        (functools.partial(bound_late, "partial"), "bound_late", "partial"),
        (gives_awaitable, "gives_awaitable", "awaits"),
        (lambda event, data: {"action": "deny", "reason": "lambda"}, "<lambda>", "lambda"),
    ],
)
def test_every_callable_is_a_handler(handler: Any, name: str, reason: str) -> None:
    registry = HookRegistry()
    registry.register(EVENT, handler)
    assert registry.list_handlers() == {EVENT: [name]}
    assert emit(registry).reason == reason


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="a handler must be callable; found `int`"):
        HookRegistry().register(EVENT, 5)  # type: ignore[call-overload]


@pytest.mark.parametrize("event", ["", "tool", "tool:", ":pre", "a:b:c", "to ol:pre", "x" * 200 + ":y"])
def test_names_that_no_event_can_have_are_refused(event: str) -> None:
    registry = HookRegistry()
    with pytest.raises(ValueError, match="invalid event name"):
        registry.register(event, lambda event, data: None)
    with pytest.raises(ValueError, match="invalid event name"):
        asyncio.run(registry.emit(event, {}))


def test_settings_are_checked() -> None:
    registry = HookRegistry()
    for wrong in ({"role": "boss"}, {"on_error": "explode"}, {"timeout": -1.0}, {"timeout": math.nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            registry.register(EVENT, lambda event, data: None, **wrong)  # type: ignore[call-overload]


def test_what_is_wrong_is_named() -> None:
    registry = HookRegistry()
    for call, message in (
        (lambda: registry.emit(EVENT, 5), "`data` must be a dict, a model or None; found `int`"),
        (lambda: registry.emit(5, {}), "`event` must be a str; found `int`"),
        (lambda: registry.emit_and_collect(EVENT, {}, None), "`timeout` must be a number of seconds; found None"),
        (lambda: registry.register(EVENT, print, timeout="5"), "`timeout` must be a number of seconds; found `str`"),
        (lambda: registry.register(EVENT)(), "the decorator takes only a handler"),
        (lambda: SessionCoordinator(registry, config="abc"), "`config` must be a dict; found `str`"),
        (lambda: SessionCoordinator(registry, approval_rules=["a"]), "`approval_rules` must be a dict; found `list`"),
    ):
        with pytest.raises(TypeError) as raised:
            call()  # type: ignore[no-untyped-call]
        assert str(raised.value) == message


def test_handlers_are_told_the_plain_name_of_an_event() -> None:
    class Event(str, enum.Enum):
        MINE = EVENT

    registry = HookRegistry()
    told: list[str] = []
    registry.register(EVENT, lambda event, data: told.append(event))
    asyncio.run(registry.emit(Event.MINE, {}))
    asyncio.run(SessionCoordinator(registry).execute_with_hooks(Event.MINE, {}))
    assert [(type(event), event) for event in told] == [(str, EVENT)] * 2


def test_what_a_registry_gives_says_what_it_is() -> None:
    registry = HookRegistry()
    shown: list[str] = []

    @registry.register(EVENT)
    async def guard(event: str, data: dict[str, Any]) -> None:
        shown.append(repr(emitting))
        await asyncio.sleep(0)

    emitting = registry.emit(EVENT, {})
    assert repr(emitting) == "<Emitting of 'some:event'>"

    async def main() -> None:
        task = asyncio.ensure_future(emitting)
        await asyncio.sleep(0)
        shown.append(repr(emitting))
        await task

    asyncio.run(main())
    assert shown == ["<Emitting, running>", "<Emitting of 'some:event', waiting>"]
    assert repr(emitting) == "<Emitting, finished>"
    assert repr(registry.register(EVENT, guard)) == "<Unregister of 'guard'>"


def test_the_package_says_its_version() -> None:
    import importlib.metadata

    import amplifier_core

    assert amplifier_core.__version__ == importlib.metadata.version("amplifier-hooks")
    assert hooks.HookResult is HookResult


def test_decorators_give_the_function_back() -> None:
    registry = HookRegistry()

    @registry.on(EVENT, priority=5, name="second")
    async def two(event: str, data: dict[str, Any]) -> None: ...

    @registry.register(event=EVENT)
    async def one(event: str, data: dict[str, Any]) -> None: ...

    assert inspect.iscoroutinefunction(two)
    assert registry.list_handlers() == {EVENT: ["one", "second"]}


def test_unregistering_twice_is_harmless() -> None:
    registry = HookRegistry()
    unregister = registry.register(EVENT, lambda event, data: None)
    other = registry.register(EVENT, lambda event, data: None, name="other")
    unregister()
    unregister()
    assert registry.list_handlers() == {EVENT: ["other"]}
    del registry
    other()


def test_functions_that_nobody_named_do_not_share_a_name() -> None:
    registry = HookRegistry()
    guard = Guard()
    registry.register(EVENT, lambda event, data: None)
    registry.register(EVENT, lambda event, data: None)
    for event in ("a:b", "c:d"):
        registry.register(event, guard.method)
    assert registry.list_handlers() == {EVENT: ["<lambda>", "<lambda>#2"], "a:b": ["method"], "c:d": ["method"]}


def test_a_name_is_free_again_when_no_hook_has_it() -> None:
    def guard(event: str, data: dict[str, Any]) -> HookResult:
        return ASK

    def another() -> Any:
        def guard(event: str, data: dict[str, Any]) -> None: ...

        return guard

    registry = HookRegistry()
    session = SessionCoordinator(registry, approval_rules={"guard:*": "deny"})
    for _ in range(3):
        unregister = registry.register("tool:pre", guard)
        assert run(session).reason == "Denied by rule: Go?"
        unregister()
        unregister()
        assert run(session).action == "continue"
    first, second, third = (registry.register(EVENT, one) for one in (guard, another(), another()))
    assert [first.name, second.name, third.name] == ["guard", "guard#2", "guard#3"]
    second()
    fourth = registry.register(EVENT, another())
    again = registry.register("a:b", guard)
    first()
    assert [fourth.name, again.name] == ["guard#2", "guard"]
    assert registry.register(EVENT, another()).name == "guard#4"


def test_a_registry_is_subclassed_with_arguments_of_its_own() -> None:
    class Named(HookRegistry):
        def __init__(self, name: str, watch: bool = False) -> None:
            super().__init__(strict=watch)
            self.name = name

    for registry, strict in ((Named("a"), False), (Named(name="a", watch=True), True)):
        registry.register(EVENT, lambda event, data: data["nested"].append(1), name="meddler")
        assert registry.name == "a"
        with pytest.raises(ChangedInPlaceError) if strict else contextlib.nullcontext():
            emit(registry, {"nested": []})
    wrong: list[tuple[list[Any], dict[str, Any]]] = [([True], {}), ([], {"name": "a"}), ([], {"strict": "no"})]
    for arguments, named in wrong:
        with pytest.raises(TypeError):
            HookRegistry(*arguments, **named)


class Anything:
    """Claims to have every attribute."""

    def __getattr__(self, name: str) -> Anything:
        return Anything()

    def __call__(self, event: str, data: dict[str, Any]) -> None: ...


def test_hooks_that_claim_to_have_every_attribute_are_named_after_their_type() -> None:
    registry = HookRegistry()
    for handler in (MagicMock(return_value=None), Anything(), AsyncMock(return_value=None)):
        registry.register(EVENT, handler)
    assert registry.list_handlers(EVENT)[EVENT] == ["MagicMock", "Anything", "AsyncMock"]
    assert asyncio.run(registry.emit(EVENT, {})).action == "continue"


def test_generators_that_may_be_awaited_are_awaited() -> None:
    @types.coroutine
    def guard(event: str, data: dict[str, Any]) -> Generator[Any, Any, HookResult]:
        yield from asyncio.sleep(0).__await__()
        return HookResult(action="deny", reason="no")

    for role in ("gate", "observer"):
        registry = HookRegistry(parallel_observers=True)
        registry.register(EVENT, guard, role=role)
        outcome = asyncio.run(registry.emit_with_outcome(EVENT, {}))
        assert outcome.reports[0]["answer"] == "deny"


def test_a_test_can_put_another_method_in_the_place_of_one() -> None:
    registry = HookRegistry()
    with patch.object(registry, "emit", AsyncMock(return_value=HookResult(action="deny"))):
        assert asyncio.run(registry.emit(EVENT, {})).action == "deny"
    assert asyncio.run(registry.emit(EVENT, {})).action == "continue"


def test_events_have_their_constants() -> None:
    assert events.TOOL_PRE == HookRegistry.TOOL_PRE == "tool:pre"
    assert events.CONTEXT_PRE_COMPACT == "context:pre_compact"
    assert HookRegistry.CONTEXT_PRE_COMPACT == "context:pre-compact"
    aliases = {"execution:end", "tool:error", "provider:error"}
    assert len(events.ALL_EVENTS) == len(set(events.ALL_EVENTS)) == len(events.__all__) - 1 - len(aliases)
    assert {getattr(events, name) for name in events.__all__ if name != "ALL_EVENTS"} == {*events.ALL_EVENTS, *aliases}
    assert (events.TOOL_ERROR, HookRegistry.EXECUTION_END) == ("tool:error", "execution:end")


def test_both_names_of_an_event_are_heard() -> None:
    registry = HookRegistry()
    told: list[str] = []
    registry.register(HookRegistry.CONTEXT_PRE_COMPACT, lambda event, data: told.append(event))
    asyncio.run(registry.emit(events.CONTEXT_PRE_COMPACT, {}))
    assert told == ["context:pre-compact"]
