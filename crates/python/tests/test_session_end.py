"""The end of a session, and what several threads and loops do with one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import AsyncMock

import pytest

from amplifier_core.bundles import parse
from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, SessionRefusedError, Tool
from sessions import UNRECORDED, calling, contents, run

GUARD = "hooks: [{ rule: no-rm, on: tool:pre, when: tool_name == 'rm', deny: no rm }]"


def test_what_waits_for_its_turn_does_not_run_after_the_end() -> None:
    async def main() -> None:
        ran = list[str]()

        async def slow(input: dict[str, Any]) -> str:
            await asyncio.sleep(0.05)
            return "ok"

        tools = [Tool("slow", slow), Tool("rm", lambda input: ran.append("rm"))]
        provider = ScriptedProvider([calling("slow"), "one", calling("rm"), "two"])
        async with Session(provider, tools=tools, bundle=parse(GUARD), config=UNRECORDED) as session:
            running = asyncio.ensure_future(session.prompt("a"))
            await asyncio.sleep(0.01)
            waiting = [asyncio.ensure_future(session.prompt("b")), asyncio.ensure_future(session.execute_tool("rm"))]
            await asyncio.sleep(0.01)
        assert (await running).text == "one"
        for late in waiting:
            with pytest.raises(RuntimeError, match="the session has ended"):
                await late
        assert ran == []
        assert session.context.get_messages()[-1]["content"] == "one"

    run(main())


def test_a_turn_keeps_its_guards_when_the_loop_of_the_end_is_closed() -> None:
    ran, goes_on = list[str](), threading.Event()

    async def slow(input: dict[str, Any]) -> str:
        while not goes_on.is_set():
            await asyncio.sleep(0.005)
        return "ok"

    tools = [Tool("slow", slow), Tool("rm", lambda input: ran.append("rm"))]
    session = Session(ScriptedProvider([calling("slow"), calling("rm"), "done"]), tools=tools, bundle=parse(GUARD), config=UNRECORDED)
    run(session.start())
    turn = threading.Thread(target=lambda: run(session.prompt("go")))
    turn.start()
    while not session.context.get_messages():
        time.sleep(0.005)
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(session.end(), 0.05))
    goes_on.set()
    turn.join()
    assert ran == []
    assert "no rm" in contents(session, "tool")[-1]
    # It has not ended, and can be.
    assert repr(session) == "<Session: running>"
    run(session.end())
    assert repr(session) == "<Session: ended>"


def test_several_threads_use_a_session_for_the_first_time_and_end_it() -> None:
    async def slow(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0.05)

    hooks = HookRegistry()
    hooks.register("session:start", slow)
    hooks.register("session:end", slow)
    session = Session(ScriptedProvider(["x"] * 3), hooks=hooks)

    def in_threads(work: Callable[[], Coroutine[Any, Any, object]]) -> list[object]:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            return [done.result() for done in [pool.submit(lambda: run(work())) for _ in range(3)]]

    assert [str(turn) for turn in in_threads(lambda: session.prompt("hi"))] == ["x", "x", "x"]
    assert in_threads(session.end) == [None, None, None]


def test_whoever_waits_for_a_start_is_told_why_there_is_none() -> None:
    async def refuse(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(0.01)
        return HookResult(action="deny", reason="closed")

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("session:start", refuse)
        session = Session(ScriptedProvider(["x", "x"]), hooks=hooks)
        told = await asyncio.gather(session.prompt("a"), session.prompt("b"), return_exceptions=True)
        assert [type(error) for error in told] == [SessionRefusedError, SessionRefusedError]

    run(main())


def test_stopping_before_anything_runs_stops_nothing() -> None:
    async def main() -> None:
        session = Session(ScriptedProvider(["a"]))
        session.cancel()
        assert (await session.prompt("x")).answered

    run(main())


def test_what_fails_at_the_end_does_not_hide_what_came_before(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        session = Session(ScriptedProvider([]))
        with pytest.raises(ZeroDivisionError):
            async with session:
                session._unmount = AsyncMock(side_effect=[ValueError("stuck"), None])  # type: ignore[method-assign]
                raise ZeroDivisionError
        await session.end()

    run(main())
    assert "A session did not end as it should: ValueError: stuck" in caplog.text


def test_a_registry_that_emits_in_its_own_way_is_refused() -> None:
    class Other(HookRegistry):
        async def emit(self, event: str, data: dict[str, Any]) -> HookResult:  # type: ignore[override]
            return HookResult(action="deny")

    with pytest.raises(TypeError, match="a session does not call the `emit` of `Other`; register hooks instead"):
        Session(ScriptedProvider([]), hooks=Other())


FULL = """
import asyncio, resource, signal
from amplifier_core.session import ScriptedProvider, Session
from amplifier_core.testing import CollectingDisplay

async def main():
    shown = CollectingDisplay()
    async with Session(ScriptedProvider(["a", "b"]), store="store", display_system=shown) as session:
        await session.prompt("x")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        print(await session.prompt("y"))
    print(shown.texts("error"))

asyncio.run(main())
"""


def test_a_conversation_that_cannot_be_stored_is_logged_and_shown(tmp_path: pathlib.Path) -> None:
    ended = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True)
    assert ended.stdout.startswith("b\n"), ended.stderr
    assert "the conversation cannot be stored: File too large" in ended.stdout
    assert "the conversation cannot be stored" in ended.stderr


def test_a_turn_keeps_its_guards_when_whoever_ends_the_session_stops_waiting() -> None:
    ran: list[str] = []

    async def slow(input: dict[str, Any]) -> str:
        await asyncio.sleep(0.2)
        return "done"

    async def main() -> None:
        bundle = parse("hooks: [{rule: guard, on: tool:pre, when: tool_name == 'danger', deny: never}]")
        script = [{"tools": [{"name": "slow"}]}, {"tools": [{"name": "danger"}]}, "Done."]
        tools = [Tool("slow", slow), Tool("danger", lambda input: ran.append("danger"))]
        hooks = HookRegistry()
        ended: list[str] = []
        session = Session(ScriptedProvider(script), hooks=hooks, bundle=bundle, tools=tools, config=UNRECORDED)

        @hooks.register("session:end")
        async def ends(event: str, data: dict[str, Any]) -> None:
            # Waiting for the end inside of it would take forever.
            await session.end()
            ended.append(event)

        await session.start()
        turn = asyncio.create_task(session.prompt("go"))
        await asyncio.sleep(0.05)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.end(), 0.05)
        assert (await turn).text == "Done."
        await session.end()
        assert (ran, ended, list(hooks.list_handlers())) == ([], ["session:end"], ["session:end"])

    asyncio.run(main())


def test_a_session_is_stopped_from_within_another_one() -> None:
    async def forever(input: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    helper = Session(ScriptedProvider([calling("forever"), "x"]), tools=[Tool("forever", forever)])
    run(helper.start())
    thread = threading.Thread(target=lambda: run(helper.prompt("go")))
    thread.start()
    while not helper.context.get_messages():
        time.sleep(0.005)

    def stop(input: dict[str, Any]) -> bool:
        helper.cancel()
        helper.cancel()
        thread.join(10)
        return thread.is_alive()

    async def main() -> None:
        async with Session(ScriptedProvider([]), tools=[stop]) as session:
            assert (await session.execute_tool("stop")).result == {"output": False}

    run(main())


def test_an_end_that_is_given_up_before_it_began_can_be_made_up_for() -> None:
    ended = list[str]()
    hooks = HookRegistry()
    hooks.register("session:end", lambda event, data: ended.append(event))
    session = Session(ScriptedProvider(["a"]), hooks=hooks)

    async def main() -> None:
        await session.prompt("x")
        asyncio.ensure_future(session.end())
        await asyncio.sleep(0)
        sys.exit(3)

    # All tasks are cancelled then.
    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert (ended, repr(session)) == ([], "<Session: running>")
    run(session.end())
    assert (ended, repr(session)) == (["session:end"], "<Session: ended>")


def test_a_session_whose_end_fails_a_strict_test_keeps_its_guards() -> None:
    async def main() -> None:
        hooks, ran = HookRegistry(strict=True), list[str]()
        unregister = hooks.register("session:end", lambda event, data: data["stats"].update(x=1))
        session = Session(
            ScriptedProvider([calling("rm"), "b"]), hooks=hooks, tools=[Tool("rm", lambda input: ran.append("rm"))], bundle=parse(GUARD), config=UNRECORDED
        )
        await session.start()
        with pytest.raises(ChangedInPlaceError):
            await session.end()
        assert (await session.prompt("y")).text == "b"
        assert ran == []
        unregister()
        await session.end()

    run(main())


def test_a_cleanup_that_ends_by_its_own_cancellation_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[str]:
        done = list[str]()
        async with Session(ScriptedProvider([])) as session:
            poll = asyncio.ensure_future(asyncio.sleep(100))

            async def stop() -> None:
                poll.cancel()
                await poll

            session.coordinator.register_cleanup(lambda: done.append("closed"))
            session.coordinator.register_cleanup(stop)
            session.coordinator.register_contributor("tools", stop)
            session.coordinator.register_contributor("tools", lambda: "hammer")
            assert await session.coordinator.collect_contributions("tools") == ["hammer"]
        return done

    assert run(main()) == ["closed"]
    assert "A cleanup failed: RuntimeError: cancelled" in caplog.text
    assert "Contributor 'stop' of channel 'tools' failed: cancelled" in caplog.text


def test_a_session_that_is_over_leaves_no_id_on_its_registry() -> None:
    async def main() -> None:
        hooks, seen = HookRegistry(), list[Any]()
        hooks.register("deploy:done", lambda event, data: seen.append(data.get("session_id")))
        async with Session(ScriptedProvider([]), hooks=hooks) as first:
            await hooks.emit("deploy:done", {"session_id": "forged"})
        async with Session(ScriptedProvider([]), hooks=hooks) as second:
            await hooks.emit("deploy:done", {})
            async with Session(ScriptedProvider([]), hooks=hooks):
                # Whose it is cannot be told.
                await hooks.emit("deploy:done", {"session_id": second.id})
        left = Session(ScriptedProvider([]), hooks=hooks)
        await left.start()
        del left
        gc.collect()
        await hooks.emit("deploy:done", {})
        assert seen == [first.id, second.id, second.id, None]

    run(main())


DAEMONS = """
import asyncio, random, threading, time
from amplifier_core.bundles import parse
from amplifier_core.session import ScriptedProvider, Session

async def work():
    while True:
        async with Session(ScriptedProvider(["done"] * 3), bundle=parse('hooks: [{command: "sleep 0.01", on: "prompt:submit"}]'), config=UNRECORDED) as session:
            for _ in range(3):
                await session.prompt("a")

for _ in range(3):
    threading.Thread(target=lambda: asyncio.run(work()), daemon=True).start()
time.sleep(0.2 + random.random() * 0.3)
"""


def test_a_program_ends_well_while_threads_that_nobody_waits_for_are_at_work() -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        command = [sys.executable, "-c", DAEMONS]
        ended = list(pool.map(lambda _: subprocess.run(command, capture_output=True, text=True), range(10)))
    assert {(one.returncode, "panicked" in one.stderr) for one in ended} == {(0, False)}, [one.stderr for one in ended]
