"""The time that a hook waits for a person is not counted, wherever it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import simulated
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool

QUESTION = HookResult(action="ask_user", approval_prompt="Deploy?")
Ask = Callable[[], Awaitable[HookResult]]


class Person:
    """Needs some seconds, and says no."""

    def __init__(self, seconds: float = 3) -> None:
        self.asked = 0
        self.seconds = seconds

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return "Deny"


async def directly(ask: Ask) -> HookResult:
    return await ask()


async def in_a_task(ask: Ask) -> HookResult:
    return await asyncio.ensure_future(ask())


async def in_a_task_of_a_task(ask: Ask) -> HookResult:
    async def inner() -> HookResult:
        await asyncio.sleep(0)
        return await asyncio.ensure_future(ask())

    return await asyncio.ensure_future(inner())


async def gathered(ask: Ask) -> HookResult:
    _, said = await asyncio.gather(asyncio.sleep(0.1), ask())
    return said


async def within_a_limit(ask: Ask) -> HookResult:
    return await asyncio.wait_for(ask(), 5)


async def in_a_task_later(ask: Ask) -> HookResult:
    await asyncio.sleep(0.5)
    return await asyncio.ensure_future(ask())


async def by_an_event(ask: Ask) -> HookResult:
    done, said = asyncio.Event(), []

    async def inner() -> None:
        said.append(await ask())
        done.set()

    task = asyncio.ensure_future(inner())
    await done.wait()
    await task
    return said[0]


async def by_a_nested_event(ask: Ask) -> HookResult:
    inner = HookRegistry()
    inner.register("inner:event", lambda event, data: in_a_task(ask), timeout=1, on_error="deny", name="inner")
    return await asyncio.ensure_future(inner.emit("inner:event", {}))


WAYS = [
    directly,
    in_a_task,
    in_a_task_of_a_task,
    gathered,
    within_a_limit,
    in_a_task_later,
    by_an_event,
    by_a_nested_event,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_hook_may_ask_in_a_task(way: Callable[[Ask], Awaitable[HookResult]]) -> None:
    registry, person = HookRegistry(), Person()
    session = SessionCoordinator(registry, None, person)

    @registry.register("tool:pre", timeout=1)
    async def guard(event: str, data: dict[str, Any]) -> HookResult:
        return await way(lambda: session.handle_approval_request(QUESTION, "guard"))

    async def main() -> None:
        # A hook that has waited before is called in another way.
        for _ in range(3):
            result = await session.execute_with_hooks("tool:pre", {})
            assert (result.action, result.reason) == ("deny", "User denied: Deploy?")
        assert person.asked == 3

    simulated.run(main())


def test_only_the_time_of_the_question_is_not_counted() -> None:
    registry = HookRegistry()
    session = SessionCoordinator(registry, None, Person())

    @registry.register("tool:pre", timeout=1, on_error="deny")
    async def hangs_afterwards(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0.25)
        await asyncio.ensure_future(session.handle_approval_request(QUESTION))
        await asyncio.sleep(3600)

    async def main() -> None:
        for _ in range(2):
            since = asyncio.get_running_loop().time()
            result = await session.execute_with_hooks("tool:pre", {})
            assert result.reason == "the hook failed: gave no answer within 1s"
            assert asyncio.get_running_loop().time() - since == pytest.approx(4.0)

    simulated.run(main())


def test_questions_of_others_do_not_stop_the_time() -> None:
    registry = HookRegistry()
    session = SessionCoordinator(HookRegistry(), None, Person())

    @registry.register("tool:pre", timeout=1, on_error="deny")
    async def hangs(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(3600)

    async def main() -> None:
        question = asyncio.ensure_future(session.handle_approval_request(QUESTION))
        await asyncio.sleep(0.5)
        result = await registry.emit("tool:pre", {})
        assert (result.action, asyncio.get_running_loop().time()) == ("deny", 1.5)
        assert (await question).action == "deny"

    simulated.run(main())


def test_the_context_is_as_before_when_a_hook_waits() -> None:
    import contextvars

    registry = HookRegistry()

    @registry.register("some:event")
    async def waits(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        before = dict(contextvars.copy_context())
        for _ in range(2):
            await registry.emit("some:event", {})
            assert dict(contextvars.copy_context()) == before

    simulated.run(main())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_hook_of_a_session_may_ask_in_a_task(way: Callable[[Ask], Awaitable[HookResult]]) -> None:
    registry, person = HookRegistry(), Person()
    asking = SessionCoordinator(HookRegistry(), None, person)

    @registry.register("prompt:submit", timeout=1)
    async def guard(event: str, data: dict[str, Any]) -> HookResult:
        return await way(lambda: asking.handle_approval_request(QUESTION, "guard"))

    async def main() -> None:
        async with Session(ScriptedProvider(["done", "done"]), hooks=registry) as session:
            for _ in range(2):
                turn = await session.prompt("go")
                assert (turn.end, turn.reason) == ("refused", "User denied: Deploy?")

    simulated.run(main())


def test_a_question_on_the_loop_of_another_thread_stops_the_time_and_no_longer() -> None:
    session = SessionCoordinator(HookRegistry(), None, Person(0.4))

    def asks() -> HookResult:
        return asyncio.run(session.handle_approval_request(HookResult(action="ask_user", approval_prompt="Go?")))

    async def waits(event: str, data: dict[str, Any]) -> HookResult:
        return await asyncio.to_thread(asks)

    async def hangs(event: str, data: dict[str, Any]) -> None:
        asyncio.ensure_future(asyncio.to_thread(asks))
        await asyncio.sleep(0.05)
        await asyncio.Event().wait()

    async def main() -> None:
        for hook, said in ((waits, "User denied: Go?"), (hangs, "the hook failed: gave no answer within 200ms")):
            registry = HookRegistry()
            registry.register("tool:pre", hook, timeout=0.2, on_error="deny")
            for _ in range(2):
                result = await asyncio.wait_for(registry.emit("tool:pre", {}), 10)
            assert result.reason == said

    asyncio.run(main())


def test_a_hook_of_a_session_may_give_the_task_that_asks() -> None:
    other = SessionCoordinator(HookRegistry(), None, Person(10))
    ran: list[str] = []

    def guard(event: str, data: dict[str, Any]) -> Awaitable[HookResult]:
        return asyncio.ensure_future(other.handle_approval_request(HookResult(action="ask_user", approval_prompt="Go?")))

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:pre", guard, timeout=0.2)
        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: ran.append("work"))]) as session:
            assert "User denied: Go?" in (await session.execute_tool("work")).output
        assert ran == []

    simulated.run(main())


class Blocking:
    """Holds up the loop until the person has answered, as `input()` does."""

    def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
        asyncio.get_running_loop()._simulated.passed += 3  # type: ignore[attr-defined]
        return "Deny"


def test_a_person_who_holds_up_the_loop_is_not_counted_in_a_session_either() -> None:
    async def main() -> None:
        hooks, spent = HookRegistry(), [0.5, 0.5, 3600]
        tools = [Tool("Deploy", lambda input: "deployed")]
        async with Session(ScriptedProvider([]), hooks=hooks, approval_system=Blocking(), tools=tools) as session:

            @hooks.register("tool:pre", timeout=1, on_error="deny")
            async def guard(event: str, data: dict[str, Any]) -> HookResult:
                await asyncio.sleep(0.25)
                said = await session.coordinator.handle_approval_request(QUESTION)
                await asyncio.sleep(spent.pop(0))
                return said

            for reason in ("User denied: Deploy?", "User denied: Deploy?", "gave no answer within 1s"):
                result = await session.execute_tool("Deploy", {})
                assert not result.success
                assert reason in str(result.output)

    simulated.run(main())


def test_hooks_whose_tasks_emit_for_ever_leave_nothing_behind() -> None:
    registry, left = HookRegistry(), [20_000]

    async def main() -> None:
        done = asyncio.Event()

        async def again() -> None:
            await registry.emit("my:tick", {})

        tasks = set[asyncio.Task[None]]()

        @registry.register("my:tick")
        async def tick(event: str, data: dict[str, Any]) -> None:
            left[0] -= 1
            await asyncio.sleep(0)
            if left[0] == 0:
                done.set()
            elif left[0] > 0:
                task = asyncio.ensure_future(again())
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        await again()
        await done.wait()

    # The marks of so many calls, each held by the next, would not fit on the stack when they go.
    simulated.run(main())
    assert left == [0]
