"""The parts for tests do what tests need."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import simulated
from amplifier_core.approval import ApprovalSystem
from amplifier_core.display import DisplaySystem
from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.testing import (
    ApprovalQuestion,
    CollectingDisplay,
    EventRecorder,
    MockApprovalSystem,
    MockContext,
    ShownMessage,
    make_coordinator,
)

ASK = HookResult(action="ask_user", approval_prompt="Go?", approval_options=["Allow", "Deny"], approval_timeout=5.0)


def test_the_recorder_sees_every_event_as_the_gates_left_it() -> None:
    async def run() -> None:
        registry = HookRegistry()
        recorder = EventRecorder().attach(registry)
        registry.register("tool:pre", lambda event, data: HookResult(action="modify", data={**data, "n": 2}))
        registry.register("tool:post", lambda event, data: HookResult(action="deny", reason="no"))
        nested = {"path": "a"}
        await registry.emit("tool:pre", {"n": 1, "input": nested})
        await registry.emit("tool:post", {"n": 3})
        nested["path"] = "b"
        assert recorder.names == ["tool:pre", "tool:post"]
        assert recorder.assert_emitted("tool:pre", n=2)["input"] == {"path": "a"}
        assert [recorded.data["n"] for recorded in recorder.get_events("tool:post")] == [3]
        assert (len(recorder), [event for event, _ in recorder]) == (2, recorder.names)
        recorder.clear()
        assert recorder.events == []

    asyncio.run(run())


def test_the_recorder_hears_only_what_it_is_attached_to_and_stands_in_for_a_registry() -> None:
    async def run() -> None:
        registry = HookRegistry()
        recorder = EventRecorder().attach(registry, "tool:pre", "session:*")
        for event in ("tool:pre", "tool:post", "session:end"):
            await registry.emit(event, {})
        assert recorder.names == ["tool:pre", "session:end"]
        alone = EventRecorder()
        lock = threading.Lock()
        assert (await alone.emit("tool:pre", {"lock": lock})).action == "continue"
        assert alone.events == [("tool:pre", {"lock": lock})]

    asyncio.run(run())


def test_a_missing_event_is_told_with_what_there_was() -> None:
    recorder = EventRecorder()
    with pytest.raises(AssertionError, match="`tool:pre` was not emitted; there were: no events"):
        recorder.assert_emitted("tool:pre")
    asyncio.run(recorder.emit("tool:pre", {"n": 1}))
    with pytest.raises(AssertionError, match="never with {'n': 2}:\n  {'n': 1}"):
        recorder.assert_emitted("tool:pre", n=2)


def test_a_field_may_be_called_as_anything() -> None:
    recorder = EventRecorder()
    asked = {"event": "tool:pre", "self": "me", "hook": "guard"}
    asyncio.run(recorder.emit("approval:required", asked))
    assert recorder.assert_emitted("approval:required", **asked) == asked
    with pytest.raises(AssertionError, match="never with {'event': 'tool:post'}"):
        recorder.assert_emitted("approval:required", event="tool:post")


@pytest.mark.parametrize(
    ("system", "reasons"),
    [
        (MockApprovalSystem(), ["User denied: Go?", "User denied: Go?"]),
        (MockApprovalSystem("Allow"), [None, "User denied: Go?"]),
        (MockApprovalSystem(default_decision="Allow"), [None, None]),
        (MockApprovalSystem(None, "Allow"), ["Approval timed out, denied by default: Go?", None]),
    ],
)
def test_the_person_decides_as_scripted(system: MockApprovalSystem, reasons: list[str | None]) -> None:
    async def run() -> list[str | None]:
        coordinator = make_coordinator(approval_system=system)
        coordinator.hooks.register("tool:pre", lambda event, data: ASK)
        return [(await coordinator.execute_with_hooks("tool:pre", {})).reason for _ in reasons]

    assert simulated.run(run()) == reasons
    assert system.request_approval.called
    assert system.request_approval.await_count == len(reasons)
    assert system.questions == [ApprovalQuestion("Go?", ["Allow", "Deny"], 5.0, "deny")] * len(reasons)


def test_a_person_who_fails_denies() -> None:
    system = MockApprovalSystem(RuntimeError("gone"))
    coordinator = make_coordinator(approval_system=system)
    coordinator.hooks.register("tool:pre", lambda event, data: ASK)
    assert asyncio.run(coordinator.execute_with_hooks("tool:pre", {})).action == "deny"
    system.decide("Allow")
    assert asyncio.run(coordinator.execute_with_hooks("tool:pre", {})).action == "continue"


def test_injections_and_messages_are_kept() -> None:
    coordinator = make_coordinator()
    answer = HookResult(action="inject_context", context_injection="line too long", user_message="1 issue")
    coordinator.hooks.register("tool:post", lambda event, data: answer, name="linter")
    coordinator.context.add_message({"role": "user", "content": "hi"})
    asyncio.run(coordinator.execute_with_hooks("tool:post", {}))
    (injection,) = [m for m in coordinator.context.get_messages() if m.get("metadata", {}).get("source") == "hook"]
    assert (injection["role"], injection["content"]) == ("system", "line too long")
    assert coordinator.context.injections == [injection]
    assert coordinator.display_system.messages == [ShownMessage("1 issue", "info", "hook:linter")]
    assert (coordinator.display_system.texts("error"), coordinator.display_system.texts()) == ([], ["1 issue"])
    coordinator.context.clear()
    coordinator.display_system.clear()
    assert (coordinator.context.messages, coordinator.display_system.messages) == ([], [])


def test_the_parts_are_what_the_protocols_say() -> None:
    assert isinstance(MockApprovalSystem(), ApprovalSystem)
    assert isinstance(CollectingDisplay(), DisplaySystem)
    assert MockContext([{"role": "user"}]).get_messages() == [{"role": "user"}]


def test_the_parts_say_in_short_what_they_have() -> None:
    recorder, context, display = EventRecorder(), MockContext(), CollectingDisplay()
    system = MockApprovalSystem("Allow", "Allow")
    coordinator = make_coordinator(context=context, approval_system=system, display_system=display)
    recorder.attach(coordinator.hooks, "tool:*")
    coordinator.hooks.register("tool:pre", lambda event, data: ASK)
    injection = HookResult(action="inject_context", context_injection="mind it", user_message="hello")
    coordinator.hooks.register("tool:post", lambda event, data: injection)
    for event in ("tool:pre", "tool:post"):
        asyncio.run(coordinator.execute_with_hooks(event, {}))
    assert [repr(part) for part in (recorder, context, system, display)] == [
        "<EventRecorder: ['tool:pre', 'tool:post']>",
        "<MockContext: ['mind it']>",
        "<MockApprovalSystem: asked ['Go?'], decides ['Allow'], then 'Deny'>",
        "<CollectingDisplay: ['hello']>",
    ]
    for _ in range(100):
        asyncio.run(recorder.emit("tool:pre", {}))
        context.add_message("user", "x" * 1000)
    assert len(repr(recorder)) < 200 and len(repr(context)) < 300


def test_the_coordinator_is_strict_unless_told_otherwise() -> None:
    def careless(event: str, data: dict[str, Any]) -> None:
        data["input"]["path"] = "b"

    for strict in (True, False):
        coordinator = make_coordinator(strict=strict)
        coordinator.hooks.register("tool:pre", careless)
        emission = coordinator.hooks.emit("tool:pre", {"input": {"path": "a"}})
        if strict:
            with pytest.raises(ChangedInPlaceError, match="careless"):
                asyncio.run(emission)
        else:
            assert asyncio.run(emission).action == "continue"
