"""Hooks on trio: their time limits hold there, and work that needs asyncio says so."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import pytest

from amplifier_core.bundles import mount, parse
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

trio = pytest.importorskip("trio")
trio_testing = pytest.importorskip("trio.testing")

EVENT = "my-app:event"


def run(main: Any) -> Any:
    """Runs a function on trio, whose clock jumps ahead when everything waits."""
    return trio.run(main, clock=trio_testing.MockClock(autojump_threshold=0))


def test_a_hook_that_takes_too_long_is_cancelled() -> None:
    registry = HookRegistry()
    seen: list[str] = []

    @registry.register(EVENT, timeout=5, on_error="deny")
    async def slow(event: str, data: dict[str, Any]) -> None:
        try:
            await trio.sleep(3600)
        finally:
            seen.append("cleaned up")

    async def main() -> None:
        since = trio.current_time()
        result = await registry.emit(EVENT, {})
        assert (result.action, result.reason) == ("deny", "the hook failed: gave no answer within 5s")
        assert (trio.current_time() - since, seen) == (5, ["cleaned up"])
        # The task itself is not cancelled.
        await trio.sleep(1)

    run(main)


def test_a_hook_that_answers_in_time_counts() -> None:
    registry = HookRegistry()

    @registry.register(EVENT, timeout=5)
    async def quick(event: str, data: dict[str, Any]) -> HookResult:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 3)
        return HookResult(action="deny", reason="no")

    async def main() -> None:
        assert (await registry.emit(EVENT, {})).reason == "no"

    run(main)


def test_a_hook_that_fails_while_it_waits_has_failed() -> None:
    registry = HookRegistry()

    @registry.register(EVENT, on_error="deny")
    async def broken(event: str, data: dict[str, Any]) -> None:
        await trio.sleep(1)
        raise OSError("disk full")

    async def main() -> None:
        assert (await registry.emit(EVENT, {})).reason == "the hook failed: OSError: disk full"

    run(main)


def test_a_hook_that_hides_its_cancellation_has_still_timed_out() -> None:
    registry = HookRegistry()

    @registry.register(EVENT, timeout=5, on_error="deny")
    async def stubborn(event: str, data: dict[str, Any]) -> HookResult:
        try:
            await trio.sleep(3600)
        except trio.Cancelled:
            raise OSError("interrupted") from None
        return HookResult()

    async def main() -> None:
        outcome = await registry.emit_with_outcome(EVENT, {})
        assert outcome.reports[0]["answer"] == "timed_out"

    run(main)


def test_a_cancellation_of_the_caller_is_not_a_failure_of_the_hook() -> None:
    registry = HookRegistry()
    later: list[str] = []

    @registry.register(EVENT, timeout=60)
    async def slow(event: str, data: dict[str, Any]) -> None:
        await trio.sleep(30)

    registry.register(EVENT, lambda event, data: later.append(event))

    async def main() -> None:
        with trio.move_on_after(2) as scope:
            await registry.emit(EVENT, {})
        assert scope.cancelled_caught and trio.current_time() < 30

    run(main)
    assert later == []


def test_each_answer_is_collected_within_its_time_limit() -> None:
    registry = HookRegistry()

    async def after(seconds: float) -> HookResult:
        await trio.sleep(seconds)
        return HookResult(data={"after": seconds})

    registry.register(EVENT, lambda event, data: after(9), name="slow")
    registry.register(EVENT, lambda event, data: after(1), name="quick")

    async def main() -> None:
        assert await registry.emit_and_collect(EVENT, {}, timeout=2) == [{"after": 1}]

    run(main)


def test_observers_run_one_after_another() -> None:
    registry = HookRegistry(parallel_observers=True)
    seen: list[str] = []

    async def observe(name: str) -> None:
        await trio.sleep(1)
        seen.append(name)

    for name in ("one", "two"):
        registry.register(EVENT, lambda event, data, name=name: observe(name), name=name, role="observer")  # type: ignore[misc]

    async def main() -> None:
        await registry.emit(EVENT, {})

    run(main)
    assert seen == ["one", "two"]


def test_work_that_needs_asyncio_says_so() -> None:
    needs = "no running event loop of asyncio: only handlers in Python can wait on trio; coordinators, sessions and bundles need asyncio"

    class Person:
        async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
            return "Allow"

    registry = HookRegistry()
    registry.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Go?"), on_error="deny")

    async def main() -> None:
        denied = await SessionCoordinator(registry, None, Person(), None).execute_with_hooks("tool:pre", {})
        assert denied.action == "deny" and needs in (denied.reason or ""), denied
        bundled = HookRegistry()
        await mount(bundled, parse("hooks: [{command: 'sleep 1', on: tool:pre, on_error: deny}]"))
        denied = await bundled.emit("tool:pre", {})
        assert denied.action == "deny" and needs in (denied.reason or ""), denied

    run(main)


def test_a_wait_outside_asyncio_and_trio_is_reported_to_have_no_time_limit() -> None:
    program = """
        import types
        from amplifier_core.hooks import HookRegistry

        @types.coroutine
        def pause():
            yield

        registry = HookRegistry()

        @registry.register("tool:pre")
        async def slow(event, data):
            await pause()

        for _ in range(2):
            emitting = registry.emit("tool:pre", {})
            emitting.send(None)
            try:
                emitting.send(None)
            except StopIteration:
                pass
        """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    text = "no time limit for hook `slow`: it waits outside asyncio and trio, where limits cannot be enforced\n"
    assert (ended.returncode, ended.stderr) == (0, text)
