"""The time limits of hooks that wait, on the event loop of the caller."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from typing import Any

import pytest

import simulated
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

EVENT = "some:event"


def test_a_hook_that_takes_too_long_is_cancelled() -> None:
    registry = HookRegistry()
    seen: list[str] = []

    @registry.register(EVENT, timeout=5, on_error="deny")
    async def slow(event: str, data: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)
            seen.append("cleaned up")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        result = await registry.emit(EVENT, {})
        assert (result.action, result.reason) == ("deny", "the hook failed: gave no answer within 5s")
        assert (loop.time(), seen) == (5.5, ["cleaned up"])
        task = asyncio.current_task()
        assert task is not None and getattr(task, "cancelling", lambda: 0)() == 0
        await asyncio.sleep(1)

    simulated.run(main())


def test_a_hook_that_ignores_its_cancellation_is_given_up() -> None:
    registry = HookRegistry()

    @registry.register(EVENT, timeout=5)
    async def stubborn(event: str, data: dict[str, Any]) -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        outcome = await registry.emit_with_outcome(EVENT, {})
        assert outcome.reports[0]["answer"] == "timed_out"
        assert asyncio.get_running_loop().time() == 6.0

    simulated.run(main())


def test_the_time_limit_and_the_caller_can_cancel_at_once() -> None:
    registry = HookRegistry()

    @registry.register(EVENT, timeout=5)
    async def slow(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(3600)

    async def main() -> None:
        task = asyncio.create_task(registry.emit(EVENT, {}))
        asyncio.get_running_loop().call_later(5, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    if hasattr(asyncio.Task, "cancelling"):  # Before 3.11, two at the same moment are one.
        simulated.run(main())


def test_hooks_of_a_task_that_was_cancelled_before_fail_alone() -> None:
    registry = HookRegistry()
    seen: list[str] = []

    @registry.register(EVENT, timeout=1)
    async def slow(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(3600)

    @registry.register(EVENT)
    async def waits_for_another(event: str, data: dict[str, Any]) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    registry.register(EVENT, lambda event, data: seen.append("saved"))

    async def agent() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await registry.emit(EVENT, {})
            seen.append("cleaned up")

    async def main() -> None:
        task = asyncio.create_task(agent())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["saved", "cleaned up"]

    simulated.run(main())


@pytest.mark.parametrize("at_once", [True, False])
def test_a_hook_fails_if_what_it_awaits_is_cancelled(at_once: bool) -> None:
    registry = HookRegistry()

    @registry.register(EVENT, on_error="deny")
    async def waits(event: str, data: dict[str, Any]) -> None:
        task = asyncio.ensure_future(asyncio.sleep(9))
        task.cancel()
        if at_once:
            while not task.done():
                await asyncio.sleep(0)
        await task

    @registry.register("other:event", on_error="deny")
    async def raises_at_once(event: str, data: dict[str, Any]) -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        for event, name in ((EVENT, "waits"), ("other:event", "raises_at_once")):
            for _ in range(2):
                result = await registry.emit(event, {})
                assert (result.action, result.reason) == ("deny", "the hook failed: CancelledError")
        # The emission itself can still be cancelled, also after such a failure.
        task = asyncio.ensure_future(registry.emit("slow:event", {}))
        registry.register("slow:event", waits_for_ever)
        await asyncio.sleep(0)
        assert task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def waits_for_ever(event: str, data: dict[str, Any]) -> None:
        await asyncio.ensure_future(asyncio.sleep(3600))

    simulated.run(main())


def test_a_task_can_be_cancelled_while_a_hook_cleans_up() -> None:
    registry = HookRegistry()

    @registry.register(EVENT, timeout=1)
    async def slow(event: str, data: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)

    async def main() -> None:
        task = asyncio.create_task(registry.emit(EVENT, {}))
        await asyncio.sleep(1.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() == 1.2

    simulated.run(main())


def test_no_timer_is_armed_for_hooks_that_do_not_wait() -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def hook(event: str, data: dict[str, Any]) -> None: ...

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later = loop.call_at = None  # type: ignore[method-assign,assignment]
        await registry.emit(EVENT, {})

    asyncio.run(main())


def test_hooks_that_wait_share_a_call_of_the_loop() -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def waits(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        asked: list[float] = []
        call_at = loop.call_at

        def counted(when: float, *args: Any, context: contextvars.Context) -> asyncio.TimerHandle:
            # It outlasts whoever was the first to wait, and keeps nothing of theirs.
            assert len(context) == 0
            asked.append(when)
            return call_at(when, *args, context=context)

        loop.call_at = counted  # type: ignore[method-assign,assignment]
        for _ in range(100):
            await registry.emit(EVENT, {})
        await asyncio.gather(*[registry.emit(EVENT, {}) for _ in range(100)])
        assert len(asked) == 1
        await registry.emit_and_collect(EVENT, {}, timeout=1)
        assert len(asked) == 2 and asked[1] < asked[0]

    asyncio.run(main())


def test_each_hook_that_waits_has_its_own_time() -> None:
    registry = HookRegistry()
    ended: list[tuple[float, float]] = []

    async def hangs(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(3600)

    async def emit_with(limit: float, after: float) -> None:
        registry.register(f"limit:{limit}", hangs, timeout=limit)
        await asyncio.sleep(after)
        outcome = await registry.emit_with_outcome(f"limit:{limit}", {})
        assert outcome.reports[0]["answer"] == "timed_out"
        ended.append((limit, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(*[emit_with(limit, after) for limit, after in [(9, 0), (3, 0), (6, 0), (1, 1), (2, 5)]])
        assert ended == [(1, 2.0), (3, 3.0), (6, 6.0), (2, 7.0), (9, 9.0)]
        # What was set before is over: the next hook has all of its time again.
        await emit_with(4, 0)
        assert ended[-1] == (4, 13.0)

    simulated.run(main())


@pytest.mark.parametrize("how_long", [0.0, 3600.0])
def test_a_loop_is_not_kept_by_the_hooks_that_wait_on_it(how_long: float, caplog: pytest.LogCaptureFixture) -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def waits(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(how_long)

    def run() -> weakref.ref[asyncio.AbstractEventLoop]:
        loop = asyncio.new_event_loop()
        task = loop.create_task(registry.emit(EVENT, {}))
        loop.run_until_complete(asyncio.sleep(0.01))
        assert task.done() == (how_long == 0)
        loop.close()
        return weakref.ref(loop)

    gone = run()
    gc.collect()
    assert gone() is None
    assert ("Task was destroyed but it is pending!" in caplog.text) == (how_long > 0)


@pytest.mark.parametrize("begins", [-1.7e9, 1.7e9])
def test_the_clock_of_a_loop_may_begin_anywhere(begins: float) -> None:
    registry = HookRegistry()

    @registry.register(EVENT, timeout=5)
    async def slow(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(data["seconds"])
        return HookResult(action="deny")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert (await registry.emit(EVENT, {"seconds": 4})).action == "deny"
        assert (await registry.emit(EVENT, {"seconds": 3600})).action == "continue"
        assert loop.time() - began == pytest.approx(9)

    simulated.run(main(), begins)


def test_loops_that_a_thread_runs_by_turns_are_asked_for_one_call_each() -> None:
    registry = HookRegistry()

    @registry.register(EVENT)
    async def waits(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    loops = [asyncio.new_event_loop() for _ in range(3)]
    for _ in range(100):
        for loop in loops:
            loop.run_until_complete(registry.emit(EVENT, {}))
    asked = [len(loop._scheduled) for loop in loops]  # type: ignore[attr-defined]
    assert asked == [1, 1, 1]
    for loop in loops:
        loop.close()


def test_collecting_gives_each_hook_its_time() -> None:
    registry = HookRegistry()
    registry.register(EVENT, lambda event, data: {"data": {"n": 1}})

    @registry.register(EVENT)
    async def slow(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(2)
        return HookResult(data={"n": 2})

    @registry.register(EVENT)
    async def late(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(0.5)
        return HookResult(data={"n": 3})

    async def main() -> None:
        assert await registry.emit_and_collect(EVENT, {}) == [{"n": 1}, {"n": 3}]
        assert await registry.emit_and_collect(EVENT, {}, timeout=5) == [{"n": 1}, {"n": 2}, {"n": 3}]

    simulated.run(main())


def test_observers_that_run_side_by_side_clean_up() -> None:
    registry = HookRegistry(parallel_observers=True)
    seen: list[str] = []

    @registry.register(EVENT, role="observer", timeout=1)
    async def slow(event: str, data: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)
            seen.append("cleaned up")
            raise ValueError("not seen by anybody")

    async def main() -> None:
        outcome = await registry.emit_with_outcome(EVENT, {})
        assert (outcome.reports[0]["answer"], seen) == ("timed_out", ["cleaned up"])
        task = asyncio.create_task(registry.emit(EVENT, {}))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["cleaned up"] * 2

    simulated.run(main())


def test_a_hook_that_ran_out_of_time_inside_another_one_ends_nothing_else() -> None:
    async def hangs(event: str, data: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        inner, outer = HookRegistry(), HookRegistry()
        inner.register("a:b", hangs, timeout=0.1)

        async def waits(event: str, data: dict[str, Any]) -> None:
            await inner.emit("a:b", {})
            await asyncio.Event().wait()

        outer.register("c:d", waits, timeout=0.4, on_error="deny")
        result = await outer.emit("c:d", {})
        assert (result.action, result.reason) == ("deny", "the hook failed: gave no answer within 400ms")

    simulated.run(main())


def test_an_awaitable_that_has_no_more_than_it_must_is_heard() -> None:
    class Steps:
        def __init__(self) -> None:
            self.left = 2

        def __await__(self) -> Any:
            return self

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise StopIteration(HookResult(action="deny", reason="no"))

    registry = HookRegistry()
    registry.register("a:b", lambda event, data: Steps())
    assert simulated.run(registry.emit("a:b", {})).action == "deny"
