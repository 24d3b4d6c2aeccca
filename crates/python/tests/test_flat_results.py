"""Flat results that a coordinator routes: of a single hook, and of `emit`."""

from __future__ import annotations

from typing import Any

import pytest

import simulated
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from parts import ASK, INJECT, Context, Person, Screen, hooks

DENY = HookResult(action="deny", reason="no")


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
