"""The differences to `amplifier-core` in the documentation: each is held by a test, and none is missing."""

from __future__ import annotations

import asyncio
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from amplifier_core import events
from amplifier_core.approval import ScriptedApprovals
from amplifier_core.cancellation import CancellationState, CancellationToken
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.utils.retry import RetryConfig

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "amplifier-compatibility.md"

EVENT = "tool:pre"


def emit(registry: HookRegistry, event: str = EVENT, data: Any = None) -> HookResult:
    return asyncio.run(registry.emit(event, data))


def with_hook(answer: HookResult | None, event: str = EVENT, seen: list[Any] | None = None) -> HookRegistry:
    def hook(event: str, data: dict[str, Any]) -> HookResult | None:
        if seen is not None:
            seen.append(data)
        return answer

    registry = HookRegistry()
    registry.register(event, hook)
    return registry


def unknown_field() -> None:
    with pytest.raises(TypeError, match="acton"):
        HookResult(acton="deny")  # type: ignore[call-arg]


def injections() -> None:
    with pytest.raises(TypeError, match="context_injections"):
        HookResult(context_injections=[])  # type: ignore[call-arg]
    registry = with_hook(HookResult(action="inject_context", context_injection="mind it"))
    outcome = asyncio.run(registry.emit_with_outcome(EVENT, {}))
    assert [(one["hook"], one["text"]) for one in outcome.injections] == [("hook", "mind it")]


def arity() -> None:
    with pytest.raises(TypeError, match="is called with"):
        HookRegistry().register(EVENT, lambda event: None)  # type: ignore[arg-type, misc]


def unregistration() -> None:
    assert not hasattr(HookRegistry, "unregister")
    registry = HookRegistry()
    unregister = registry.register(EVENT, lambda event, data: None, name="guard")
    registry.register(EVENT, lambda event, data: None, name="guard")
    unregister()
    assert registry.list_handlers(EVENT) == {EVENT: ["guard"]}


def colon() -> None:
    with pytest.raises(ValueError, match="no colon"):
        emit(HookRegistry(), "custom")


def other_names() -> None:
    for heard, emitted in (("tool:*", "tool:pre"), ("*", "tool:pre"), ("error:tool", "tool:error")):
        seen: list[Any] = []
        emit(with_hook(None, heard, seen), emitted)
        assert len(seen) == 1


def data_of_events() -> None:
    for wrong in ("text", 5, [1]):
        with pytest.raises(TypeError, match="must be a dict, a model or None"):
            emit(HookRegistry(), EVENT, wrong)
    seen: list[Any] = []
    emit(with_hook(None, seen=seen), EVENT, None)
    assert isinstance(seen[0], dict)


def types_of_values() -> None:
    value = ({1},)
    assert (emit(with_hook(None), EVENT, {"n": value}).data or {})["n"] is value


def collected_timestamp() -> None:
    seen: list[Any] = []
    registry = with_hook(None, seen=seen)
    asyncio.run(registry.emit_and_collect(EVENT, {}))
    assert "timestamp" in seen[0]


def joined_messages() -> None:
    registry = with_hook(HookResult(user_message="one"))
    registry.register(EVENT, lambda event, data: HookResult(action="modify", data={"n": 1}, user_message="two"))
    assert emit(registry, EVENT, {}).user_message == "one\ntwo"


def unoffered_answer() -> None:
    asked = HookResult(action="ask_user", approval_prompt="Go?", approval_options=["Allow", "Deny"])
    coordinator = SessionCoordinator(HookRegistry(), approval_system=ScriptedApprovals("Allow once"))
    assert asyncio.run(coordinator.process_hook_result(asked, EVENT, "guard")).action == "deny"


def one_name_for_each_event() -> None:
    seen: list[str] = []
    registry = HookRegistry()
    for event in events.ALL_EVENTS:
        registry.register(event, lambda event, data: seen.append(event))
    for event in (*events.ALL_EVENTS, "tool:error", "provider:error", "execution:end", "context:pre-compact"):
        seen.clear()
        emit(registry, event)
        assert len(seen) == 1


def states() -> None:
    token = CancellationToken()
    token.request_graceful()
    assert token.state == "graceful"
    assert token.state is CancellationState.GRACEFUL


def retries() -> None:
    with pytest.raises(ValueError, match="`max_retries` must be 0 or more"):
        RetryConfig(max_retries=-1)


DIFFERENCES: dict[str, Callable[[], None]] = {
    "an unknown field of `HookResult` is an error": unknown_field,
    "`HookResult` has no `context_injections`": injections,
    "a handler that does not take `(event, data)` is refused": arity,
    "`HookRegistry` has no `unregister(name)`": unregistration,
    "an event name needs a colon": colon,
    "a hook for a pattern or another name of an event is called": other_names,
    "data must be a dict, a model or `None`, and handlers receive a dict": data_of_events,
    "values keep their types": types_of_values,
    "`emit_and_collect` adds a `timestamp`": collected_timestamp,
    "messages of several hooks are joined": joined_messages,
    "an approval answer that was not offered denies": unoffered_answer,
    "`ALL_EVENTS` has one name for each event": one_name_for_each_event,
    "a state of a `CancellationToken` is an enumeration, equal to its text": states,
    "`RetryConfig` refuses negative numbers of retries with `ValueError`": retries,
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_difference_is_as_documented(difference: str) -> None:
    DIFFERENCES[difference]()


def test_the_page_lists_these_differences() -> None:
    section = PAGE.read_text().partition("## Differences")[2]
    rows = [row for row in re.findall(r"^\| (.*?) \| .* \|$", section, re.MULTILINE) if row != "difference"]
    assert rows == list(DIFFERENCES)
