"""An emission: in the caller's own task, thread and context, until it ends, fails or is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pytest

import simulated
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

EVENT = "some:event"


def emit(registry: HookRegistry, data: dict[str, Any] | None = None) -> HookResult:
    return asyncio.run(registry.emit(EVENT, data if data is not None else {}))


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def refuses_late(event: str, data: dict[str, Any]) -> HookResult:
    await asyncio.sleep(0)
    return HookResult(action="deny", reason="no")


def test_handlers_run_in_the_task_thread_and_context_of_the_caller() -> None:
    registry = HookRegistry()
    seen: list[Any] = []

    @registry.register(EVENT)
    async def hook(event: str, data: dict[str, Any]) -> None:
        seen.append((asyncio.current_task(), threading.current_thread(), variable.get()))
        await asyncio.sleep(0)
        variable.set("by the hook")

    async def main() -> None:
        variable.set("by the caller")
        await registry.emit(EVENT, {})
        assert seen == [(asyncio.current_task(), threading.current_thread(), "by the caller")]
        assert variable.get() == "by the hook"

    asyncio.run(main())


@pytest.mark.parametrize("method", ["emit", "emit_and_collect", "emit_with_outcome"])
def test_an_emission_that_nobody_awaits_is_warned_about(method: str) -> None:
    registry = HookRegistry()
    with pytest.warns(RuntimeWarning, match=f"^coroutine '{method}' was never awaited: no hook has run$"):
        getattr(registry, method)(EVENT, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(registry, method)(EVENT, {}).close()
        asyncio.run(getattr(registry, method)(EVENT, {}))


def test_an_emission_is_a_coroutine_for_asyncio() -> None:
    registry = HookRegistry()
    registry.register(EVENT, refuses_late)

    async def main() -> None:
        task = asyncio.create_task(registry.emit(EVENT, {}))
        several = await asyncio.gather(*(registry.emit(EVENT, {}) for _ in range(3)))
        limited = await asyncio.wait_for(registry.emit(EVENT, {}), 5)
        assert [result.reason for result in (await task, *several, limited)] == ["no"] * 5
        used = registry.emit(EVENT, {})
        await used
        with pytest.raises(RuntimeError, match="cannot reuse"):
            await used
        registry.emit(EVENT, {}).close()

    asyncio.run(main())


def test_a_task_that_emits_is_shown_with_the_name_of_the_method() -> None:
    registry = HookRegistry()
    registry.register(EVENT, lambda event, data: HookResult(action="deny", reason=repr(asyncio.current_task())))

    async def main() -> None:
        assert "coro=<HookRegistry.emit()>" in ((await asyncio.create_task(registry.emit(EVENT, {}))).reason or "")

    asyncio.run(main())


def test_an_emission_driven_by_hand_ends_with_its_result() -> None:
    registry = HookRegistry()

    async def guard(event: str, data: dict[str, Any]) -> HookResult:
        return HookResult()

    registry.register(EVENT, guard)
    with pytest.raises(StopIteration) as ended:
        registry.emit(EVENT, {"n": 1}).send(None)
    assert isinstance(ended.value.value, HookResult) and ended.value.value.data["n"] == 1

    class Later:
        """Something of a user's that is awaited, and does more than emit."""

        def __await__(self) -> Generator[Any, Any, tuple[HookResult, list[Any]]]:
            result = yield from registry.emit(EVENT, {"n": 3}).__await__()
            return result, (yield from registry.emit_and_collect(EVENT, {}).__await__())

    async def later() -> tuple[HookResult, list[Any]]:
        return await Later()

    result, collected = asyncio.run(later())
    assert (result.data["n"], collected) == (3, [])

    async def while_an_error_is_handled() -> HookResult:
        try:
            raise ValueError("ours")
        except ValueError:
            return await registry.emit(EVENT, {"n": 2})

    assert asyncio.run(while_an_error_is_handled()).data["n"] == 2


def test_what_holds_its_own_outcome_or_emission_is_collected() -> None:
    class Agent:
        last: Any = None

    def left(make: Callable[[Agent], Any]) -> weakref.ref[Agent]:
        agent = Agent()
        agent.last = make(agent)
        return weakref.ref(agent)

    registry = HookRegistry()
    registry.register(EVENT, lambda event, data: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = [
            left(lambda agent: asyncio.run(registry.emit_with_outcome(EVENT, {"agent": agent}))),
            left(lambda agent: registry.emit(EVENT, {"agent": agent})),
        ]
        gc.collect()
    assert [agent() for agent in kept] == [None, None]


def test_observers_that_do_not_wait_need_no_loop() -> None:
    registry = HookRegistry(parallel_observers=True)
    seen: list[str] = []
    registry.register(EVENT, lambda event, data: seen.append("one"), role="observer")
    registry.register(EVENT, lambda event, data: seen.append("two"), role="observer")
    with pytest.raises(StopIteration):
        registry.emit(EVENT, {}).send(None)
    assert seen == ["one", "two"]


def test_a_coroutine_that_cannot_run_is_a_failure_of_its_hook() -> None:
    registry = HookRegistry()

    async def said() -> HookResult:
        return HookResult()

    used = said()
    with pytest.raises(StopIteration):
        used.send(None)
    registry.register(EVENT, lambda event, data: used, name="used up")

    async def nested(event: str, data: dict[str, Any]) -> HookResult:
        return await inner.emit(EVENT, {})

    outer: list[Any] = []
    inner = HookRegistry()
    inner.register(EVENT, lambda event, data: outer[0], name="runs already", on_error="deny")

    def begin(event: str, data: dict[str, Any]) -> Any:
        outer.append(nested(event, data))
        return outer[0]

    registry.register(EVENT, begin, name="begin")
    outcome = asyncio.run(registry.emit_with_outcome(EVENT, {}))
    assert [report.get("error") for report in outcome.reports] == ["RuntimeError: cannot reuse already awaited coroutine", None]
    assert (outcome.denied_by, outcome.reason) == ("begin", "the hook failed: ValueError: coroutine already executing")


def test_what_handlers_give_is_released() -> None:
    registry = HookRegistry()
    answer, error, data = HookResult(), ValueError("no"), {"n": object()}
    kept: list[weakref.ref[Any]] = []

    async def answers(event: str, data: dict[str, Any]) -> HookResult:
        return answer

    async def waits(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(0)
        return answer

    async def fails(event: str, data: dict[str, Any]) -> None:
        raise error

    def notes(handler: Any) -> Any:
        def note(event: str, data: dict[str, Any]) -> Any:
            coroutine = handler(event, data)
            kept.append(weakref.ref(coroutine))
            return coroutine

        return note

    for handler in (answers, waits, fails):
        registry.register(EVENT, notes(handler), name=handler.__name__)

    async def main() -> None:
        before = None
        for _ in range(20):
            await registry.emit(EVENT, data)
            error.__traceback__ = None
            counts = [sys.getrefcount(value) for value in (answer, error, data, data["n"])]
            before = before or counts
            assert counts == before

    logging.disable()
    try:
        asyncio.run(main())
    finally:
        logging.disable(logging.NOTSET)
    assert len(kept) == 60 and not [one for one in kept if one() is not None]


def test_several_loops_and_threads_emit_at_once() -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def hook(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(0)
        return HookResult(action="modify", data={**data, "thread": threading.get_ident()})

    failed: list[Any] = []

    async def main() -> None:
        for number in range(200):
            unregister = registry.register("other:event", lambda event, data: None)
            results = await asyncio.gather(*(registry.emit(EVENT, {"n": number}) for _ in range(3)))
            unregister()
            for result in results:
                if not (result.data and result.data["n"] == number and result.data["thread"] == threading.get_ident()):
                    failed.append(result)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert registry.list_handlers() == {EVENT: ["hook"]}


def test_uvloop_works() -> None:
    uvloop = pytest.importorskip("uvloop")
    registry = HookRegistry()
    registry.register(EVENT, refuses_late)

    @registry.register("slow:event", timeout=0.01)
    async def slow(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        assert (await registry.emit(EVENT, {})).reason == "no"
        outcome = await registry.emit_with_outcome("slow:event", {})
        assert outcome.reports[0]["answer"] == "timed_out"

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def test_hooks_may_emit_and_register() -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def hook(event: str, data: dict[str, Any]) -> HookResult:
        registry.register(EVENT, lambda event, data: HookResult(action="deny", reason="later"))
        inner = await registry.emit("other:event", {"n": 2})
        return HookResult(action="modify", data={"inner": inner.data})

    result = emit(registry)
    assert result.action == "continue"
    assert result.data and result.data["inner"] == {"n": 2}
    assert emit(registry).reason == "later"


def test_endless_nesting_is_a_failure_of_the_innermost_hook() -> None:
    registry = HookRegistry()
    depth = 0

    @registry.register(EVENT)
    async def again(event: str, data: dict[str, Any]) -> None:
        nonlocal depth
        depth += 1
        await registry.emit(EVENT, {})

    assert emit(registry).action == "continue"
    assert depth == 16


def test_a_registry_and_hooks_that_hold_each_other_are_collected() -> None:
    class Module:
        def __init__(self) -> None:
            self.registry = HookRegistry()
            self.unregister = self.registry.register(EVENT, self.hook)

        async def hook(self, event: str, data: dict[str, Any]) -> None: ...

    module = Module()
    emit(module.registry)
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_what_is_running_is_not_collected() -> None:
    async def main() -> None:
        ran: list[str] = []

        class Module:
            def __init__(self) -> None:
                self.registry = HookRegistry()
                self.registry.register(EVENT, self.waits)
                self.registry.register(EVENT, lambda event, data: self.ends())

            async def waits(self, event: str, data: dict[str, Any]) -> None:
                await asyncio.sleep(0)
                ran.append("waited")

            def ends(self) -> None:
                ran.append("ended")

        # Nobody holds the registry but the emission.
        running = asyncio.ensure_future(Module().registry.emit(EVENT, {}))
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)
        await running
        assert ran == ["waited", "ended"]

    asyncio.run(main())


def test_failures_are_logged_with_traceback_name_and_event(caplog: pytest.LogCaptureFixture) -> None:
    registry = HookRegistry()

    @registry.register(EVENT, name="broken")
    async def hook(event: str, data: dict[str, Any]) -> None:
        raise KeyError("secret value")

    @registry.register(EVENT)
    def odd(event: str, data: dict[str, Any]) -> int:
        return 5

    with caplog.at_level(logging.ERROR, logger="amplifier_core.hooks"):
        assert emit(registry).action == "continue"
    first, second = caplog.records
    assert first.getMessage() == "Hook 'broken' failed on event 'some:event': KeyError: 'secret value'"
    assert first.exc_info and first.exc_info[2] and first.exc_info[2].tb_frame.f_code.co_name == "hook"
    assert (first.hook, first.event) == ("broken", EVENT)  # type: ignore[attr-defined]
    assert "expected a HookResult, a dict or None, found `int`" in second.getMessage()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupts_are_not_swallowed(interrupt: type[BaseException]) -> None:
    for wait in (False, True):
        registry = HookRegistry()
        after: list[str] = []

        @registry.register(EVENT)
        async def hook(event: str, data: dict[str, Any]) -> None:
            if wait:
                await asyncio.sleep(0)
            raise interrupt

        registry.register(EVENT, lambda event, data: after.append("ran"))
        emitting = registry.emit(EVENT, {})
        with pytest.raises(interrupt):
            for _ in range(3):
                emitting.send(None)
        assert after == []


def test_cancelling_cancels_the_running_hook() -> None:
    registry = HookRegistry()
    seen: list[str] = []

    @registry.register(EVENT)
    async def hook(event: str, data: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            seen.append("cleaned up")
            raise

    registry.register(EVENT, lambda event, data: seen.append("next"))

    async def main() -> None:
        task = asyncio.create_task(registry.emit(EVENT, {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    simulated.run(main())
    assert seen == ["cancelled", "cleaned up"]


@pytest.mark.skipif(not hasattr(asyncio.Task, "cancelling"), reason="before Python 3.11 the two cannot be told apart")
def test_a_hook_that_awaits_something_cancelled_has_failed() -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def hook(event: str, data: dict[str, Any]) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    async def main() -> str:
        return (await registry.emit_with_outcome(EVENT, {})).reports[0]["answer"]

    assert asyncio.run(main()) == "failed"


def test_a_report_has_the_form_of_hooks_try() -> None:
    registry = HookRegistry()
    registry.register(EVENT, lambda *_: HookResult(action="inject_context", context_injection="Mind it.", ephemeral=True), name="hint")
    registry.register(EVENT, lambda *_: HookResult(action="ask_user", approval_prompt="Sure?", approval_options=["Yes", "No"]), name="ask")
    registry.register(EVENT, lambda *_: HookResult(user_message="Seen.", user_message_level="warning"), name="tell")
    report = asyncio.run(registry.emit_with_outcome(EVENT, {"n": 1})).report()
    assert report["data"].pop("timestamp")
    assert all(hook.pop("duration_ns") >= 0 for hook in report["hooks"])
    assert report == {
        "event": EVENT,
        "data_status": "whole",
        "data": {"n": 1},
        "decision": "ask_user",
        "hooks": [
            {"hook": "hint", "answer": "inject_context", "suppressed_output": False},
            {"hook": "ask", "answer": "ask_user", "suppressed_output": False},
            {"hook": "tell", "answer": "continue", "suppressed_output": False},
        ],
        "approvals": [
            {
                "hook": "ask",
                "prompt": "Sure?",
                "options": [{"label": "Yes", "effect": "allow_once"}, {"label": "No", "effect": "deny"}],
                "timeout_s": 300.0,
                "default": "deny",
            }
        ],
        "injections": [{"hook": "hint", "role": "system", "placement": "next_call", "bytes": 8, "text": "Mind it."}],
        "messages": [{"source": "hook:tell", "level": "warning", "text": "Seen."}],
        "outputs": [],
        "failures": [],
        "unreadable": 0,
    }


def test_data_that_is_too_deep_for_json_is_withheld_from_a_report() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"n": deep}
    report = asyncio.run(HookRegistry().emit_with_outcome(EVENT, deep)).report()
    assert (report["data_status"], report.get("data")) == ("withheld", None)
