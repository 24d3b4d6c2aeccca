"""Flat results that a coordinator routes: of a single hook, of `emit`, and of an `emit` that is not the registry's own."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest

import simulated
from amplifier_core.approval import ScriptedApprovals
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from parts import ASK, INJECT, Context, Person, Screen, hooks, run

DENY = HookResult(action="deny", reason="no")


class Strict(HookRegistry):
    """Denies what its hooks let pass."""

    async def emit(self, event: str, data: dict[str, Any]) -> HookResult:  # type: ignore[override]
        result = await super().emit(event, data)
        return DENY if result.action == "continue" else result


def test_the_emit_of_a_subclass_counts() -> None:
    session = SessionCoordinator(Strict())
    result = run(session)
    assert (result.action, result.reason, result.data) == ("deny", "no", None)
    verdict = simulated.run(session.emit("tool:pre", {}))
    assert (verdict.proceeds, verdict.denied_by, verdict.reason, verdict.outcome) == (False, "composite", "no", None)


def test_an_emit_that_a_test_patches_counts() -> None:
    registry = HookRegistry()
    session = SessionCoordinator(registry)
    with patch.object(registry, "emit", AsyncMock(return_value=DENY)) as emit:
        assert run(session, data={"n": 1}).action == "deny"
    emit.assert_awaited_once_with("tool:pre", {"n": 1})
    assert run(session).action == "continue"
    with patch.object(HookRegistry, "emit", AsyncMock(return_value=DENY)):
        assert run(session).action == "deny"
    assert run(session).action == "continue"


@pytest.mark.parametrize(
    ("given", "action", "data"),
    [
        (None, "continue", {"n": 1}),
        ({"action": "deny", "reason": "no"}, "deny", None),
        (HookResult(data={"n": 2}), "continue", {"n": 2}),
        (HookResult(action="modify", data={"n": 2}), "modify", {"n": 2}),
        (ASK.model_copy(update={"data": {"n": 2}}), "continue", {"n": 2}),
        (INJECT, "inject_context", {"n": 1}),
    ],
)
def test_what_another_emit_gives_is_routed(given: Any, action: str, data: dict[str, Any] | None) -> None:
    registry = HookRegistry()
    session = SessionCoordinator(registry, Context(), Person("Allow"), Screen())
    with patch.object(registry, "emit", AsyncMock(return_value=given)):
        result = run(session, data={"n": 1})
    assert (result.action, result.data) == (action, data)
    injected = [content for _, content, _ in session.context.messages]
    assert injected == (["mind it"] if given is INJECT else [])


def test_what_another_emit_gives_must_be_a_result() -> None:
    registry = HookRegistry()
    with patch.object(registry, "emit", AsyncMock(return_value="yes")), pytest.raises(ValueError, match="found `str`"):
        run(SessionCoordinator(registry))


@pytest.mark.parametrize(
    ("answer", "action", "data"), [("Allow", "continue", {"n": 2}), ("Deny", "deny", None)]
)
def test_an_injection_beside_a_question_is_not_lost(answer: str, action: str, data: Any) -> None:
    change = HookResult(action="modify", data={"n": 2})
    session = SessionCoordinator(hooks(INJECT, change, ASK, event="tool:post"), Context(), Person(answer), Screen())

    async def flow() -> HookResult:
        return await session.process_hook_result(await session.hooks.emit("tool:post", {"n": 1}), "tool:post", "composite")

    result = simulated.run(flow())
    assert (result.action, result.data and {"n": result.data["n"]}) == (action, data)
    assert [content for _, content, _ in session.context.messages] == ["mind it"]
    assert [text for text, _, _ in session.display_system.shown] == ["hello"]


def test_an_injection_beside_a_denial_is_not_lost() -> None:
    session = SessionCoordinator(hooks(INJECT, DENY), Context())

    async def flow() -> HookResult:
        return await session.process_hook_result(await session.hooks.emit("tool:pre", {}), "tool:pre")

    assert simulated.run(flow()) == DENY
    assert [content for _, content, _ in session.context.messages] == ["mind it"]


def test_a_question_with_too_large_an_injection_is_not_asked() -> None:
    person = Person("Allow")
    session = SessionCoordinator(HookRegistry(), Context(), person, config={"injection_size_limit": 3})
    with pytest.raises(ValueError, match="mind|injection"):
        simulated.run(session.process_hook_result(ASK.model_copy(update={"context_injection": "much"}), "tool:pre"))
    assert person.asked == []


class Traced(HookRegistry):
    """Looks at everything, and changes nothing."""

    async def emit(self, event: str, data: dict[str, Any]) -> HookResult:  # type: ignore[override]
        return await super().emit(event, data)


@pytest.mark.parametrize("kind", [HookRegistry, Traced])
def test_an_emit_that_only_delegates_loses_nothing_of_what_hooks_say(kind: type[HookRegistry]) -> None:
    registry, seen = kind(), list[Any]()
    long = HookResult(action="inject_context", context_injection="x" * 6000)
    registry.register("tool:pre", lambda event, data: seen.append(data["session_id"]))
    for name in ("one", "two"):
        registry.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Go?"), name=name)
        registry.register("tool:pre", lambda event, data: long)
    other = SessionCoordinator(registry, session_id="B")
    context, person = Context(), ScriptedApprovals("Allow", "Deny")
    session = SessionCoordinator(registry, context, person, session_id="A")
    assert run(session, data={"session_id": "forged"}).action == "deny"
    assert [request.hook for request in person.requests] == ["one", "two"]
    assert sum(content.count("x" * 6000) for _, content, _ in context.messages) == 2
    assert run(SessionCoordinator(registry, None, ScriptedApprovals("Allow"), approval_rules={"two:*": "deny"}, session_id="C")).reason == "Denied by rule: Go?"
    assert seen == ["A", "C"]
    del other


class Changing(HookRegistry):
    """Changes what its hooks' answers came to, as a subclass may."""

    def __init__(self, change: Callable[[HookResult], Any]) -> None:
        super().__init__()
        self.change = change

    def __new__(cls, change: Callable[[HookResult], Any]) -> Changing:
        return super().__new__(cls)

    async def emit(self, event: str, data: dict[str, Any]) -> Any:
        return self.change(await super().emit(event, data))


def tightened(result: HookResult) -> HookResult:
    result.action, result.reason = "deny", "never"
    return result


def with_other_data(result: HookResult) -> HookResult:
    result.data = {"n": 2}
    return result


def test_an_emit_may_change_the_result_in_place() -> None:
    assert run(SessionCoordinator(Changing(tightened))).reason == "never"
    assert run(SessionCoordinator(Changing(with_other_data)), data={"n": 1}).data == {"n": 2}


@pytest.mark.parametrize(
    "change", [lambda result: None, HookResult.model_copy, lambda result: result.model_copy(deep=True), HookResult.model_dump]
)
def test_an_emit_that_gives_nothing_or_a_copy_loses_nothing_of_what_hooks_say(change: Callable[[HookResult], Any]) -> None:
    registry = Changing(change)
    for name in ("one", "two"):
        registry.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Go?"), name=name)
    person = ScriptedApprovals("Allow", "Deny")
    assert run(SessionCoordinator(registry, None, person)).action == "deny"
    assert [request.hook for request in person.requests] == ["one", "two"]
    registry.register("tool:pre", lambda event, data: DENY)
    assert run(SessionCoordinator(registry, None, ScriptedApprovals("Allow", "Allow"))).reason == "no"


def test_a_spy_around_emit_gives_what_that_gives() -> None:
    registry = hooks(DENY)
    with patch.object(registry, "emit", AsyncMock(wraps=registry.emit)) as emit:
        assert run(SessionCoordinator(registry)).reason == "no"
    emit.assert_awaited_once()


def test_what_a_hook_began_is_not_kept_by_an_emit_of_a_subclass() -> None:
    class Payload: ...

    kept = list[weakref.ref[Payload]]()

    async def main() -> None:
        registry, may_go_on = Traced(), asyncio.Event()

        async def goes_on() -> None:
            await may_go_on.wait()
            for _ in range(3):
                payload = Payload()
                kept.append(weakref.ref(payload))
                await registry.emit("my:event", {"payload": payload})

        tasks = list[asyncio.Task[None]]()
        registry.register("tool:pre", lambda event, data: tasks.append(asyncio.ensure_future(goes_on())))
        await SessionCoordinator(registry).execute_with_hooks("tool:pre", {})
        may_go_on.set()
        await tasks[0]
        gc.collect()
        assert [one() for one in kept] == [None] * 3

    simulated.run(main())
