"""Events and results as modules of Amplifier use them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from amplifier_core import events
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

EVENT = "tool:pre"

#: Events that only modules of Amplifier emit.
NAMES = {
    "PLAN_START": "plan:start",
    "PLAN_END": "plan:end",
    "LLM_REQUEST": "llm:request",
    "LLM_RESPONSE": "llm:response",
    "PROVIDER_RESOLVE": "provider:resolve",
    "PROVIDER_TOOL_SEQUENCE_REPAIRED": "provider:tool_sequence_repaired",
    "CONTEXT_INCLUDE": "context:include",
    "CONTEXT_COMPACTION": "context:compaction",
    "MODULE_LOAD_FAILED": "module:load_failed",
    "MODULE_ON_SESSION_READY_FAILED": "module:on_session_ready_failed",
}


@pytest.mark.parametrize(("name", "event"), NAMES.items())
def test_an_event_of_amplifier_has_a_constant_and_is_known(name: str, event: str, caplog: pytest.LogCaptureFixture) -> None:
    assert getattr(events, name) == getattr(HookRegistry, name) == event
    assert event in events.ALL_EVENTS
    registry = HookRegistry()
    seen: list[str] = []
    with caplog.at_level(logging.WARNING):
        registry.register(event, lambda event, data: seen.append(event))
    asyncio.run(registry.emit(event, {}))
    assert seen == [event]
    assert caplog.text == ""


def emit(data: Any, registry: HookRegistry | None = None) -> list[dict[str, Any]]:
    registry = registry or HookRegistry()
    seen: list[dict[str, Any]] = []
    registry.register(EVENT, lambda event, data: seen.append(data))
    asyncio.run(registry.emit(EVENT, data))
    return [{key: value for key, value in data.items() if key != "timestamp"} for data in seen]


def test_an_event_without_data_has_an_empty_dict() -> None:
    assert emit(None) == [{}]
    registry = HookRegistry()
    registry.set_default_fields(session_id="s")
    assert emit(None, registry) == [{"session_id": "s"}]


def test_a_model_as_data_is_its_fields() -> None:
    pytest.importorskip("pydantic")
    from amplifier_core.models import ContextInjection

    assert emit(ContextInjection(content="x"))[0]["content"] == "x"


@pytest.mark.parametrize("wrong", ["text", 5, ["a"], object()])
def test_other_data_is_an_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="`data` must be a dict, a model or None"):
        HookRegistry().emit(EVENT, wrong)  # type: ignore[arg-type, unused-coroutine]


class Screen:
    def __init__(self) -> None:
        self.shown: list[tuple[str, str, str]] = []

    def show_message(self, message: str, level: str, source: str) -> None:
        self.shown.append((message, level, source))


class Log:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def record(self, record: dict[str, Any]) -> None:
        self.records.append(record)


TOLD = HookResult(user_message="old name", user_message_level="warning", user_message_source="deprecation")


def test_a_message_is_shown_under_its_source_and_recorded_under_its_hook() -> None:
    registry, screen, log = HookRegistry(), Screen(), Log()
    registry.register(EVENT, lambda event, data: TOLD, name="teller")
    coordinator = SessionCoordinator(registry, display_system=screen, audit=log)
    asyncio.run(coordinator.execute_with_hooks(EVENT, {}))
    asyncio.run(coordinator.process_hook_result(TOLD, EVENT, "teller"))
    asyncio.run(coordinator.handle_user_message(TOLD, "teller"))
    assert screen.shown == [("old name", "warning", "hook:deprecation")] * 3
    recorded = [record for record in log.records if record["kind"] == "message"]
    assert [record["source"] for record in recorded] == ["hook:teller"] * 3


def test_a_result_keeps_the_source_of_its_only_message() -> None:
    registry = HookRegistry()
    registry.register(EVENT, lambda event, data: TOLD, name="teller")
    result = asyncio.run(registry.emit(EVENT, {}))
    assert (result.user_message, result.user_message_source) == ("old name", "deprecation")
    assert result.model_dump()["user_message_source"] == "deprecation"
    registry.register(EVENT, lambda event, data: HookResult(user_message="other"), name="other")
    result = asyncio.run(registry.emit(EVENT, {}))
    assert (result.user_message, result.user_message_source) == ("old name\nother", None)
    assert "user_message_source" not in HookResult().model_dump()
    with pytest.raises(ValueError, match="user_message_source"):
        HookResult(user_message_source=5)  # type: ignore[arg-type]
