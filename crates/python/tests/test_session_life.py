"""The life of a session: how it starts, stops, is stored and ends, and what it refuses."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import pathlib
import re
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import AsyncMock

import pytest

from amplifier_core.bundles import parse
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import RemoteProvider, ScriptedProvider, Session, SessionRefusedError, Tool
from sessions import calling, contents, run


def test_a_session_that_is_denied_does_not_start() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("session:start", lambda event, data: HookResult(action="deny", reason="closed"), name="door")
        session = Session(ScriptedProvider(["ok"]), hooks=hooks)
        with pytest.raises(SessionRefusedError, match="Denied by hook door: closed") as raised:
            await session.prompt("hello")
        assert (raised.value.denied_by, raised.value.reason) == ("door", "closed")
        with pytest.raises(RuntimeError, match="has ended"):
            await session.prompt("hello")

    run(main())


def test_cancelling_a_turn_stops_its_tools_and_leaves_a_whole_record() -> None:
    events: list[str] = []
    ended: list[str] = []

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("*", lambda event, data: events.append(event), role="observer")
        working = asyncio.Event()

        async def work(input: dict[str, Any]) -> str:
            working.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("work")
            return "done"

        async with Session(ScriptedProvider([calling("work"), "never", "again"]), hooks=hooks, tools=[work]) as session:
            turn = asyncio.ensure_future(session.prompt("go"))
            await working.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await asyncio.sleep(0)
            assert ended == ["work"]
            assert contents(session, "tool") == ["Error: Interrupted by the user."]
            assert "cancel:completed" in events
            assert (await session.prompt("and now?")).answered

    run(main())


def test_cancelling_a_turn_that_waits_leaves_the_running_one_alone() -> None:
    async def main() -> None:
        async with Session(ScriptedProvider([{"text": "one", "delay_ms": 50}, "two"])) as session:
            first, second = (asyncio.ensure_future(session.prompt(text)) for text in ("1", "2"))
            await asyncio.sleep(0.01)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert str(await first) == "one"
            assert str(await session.prompt("3")) == "two"

    run(main())


def test_a_session_that_is_first_used_twice_at_once_starts_once() -> None:
    starts: list[str] = []

    async def main() -> None:
        hooks = HookRegistry()

        @hooks.register("session:start")
        async def slow(event: str, data: dict[str, Any]) -> None:
            starts.append(event)
            await asyncio.sleep(0.01)
            with pytest.raises(RuntimeError, match="in a turn already"):
                await session.prompt("from within")

        session = Session(ScriptedProvider(["one", "two"]), hooks=hooks)
        turns = await asyncio.gather(session.prompt("1"), session.prompt("2"))
        assert [str(turn) for turn in turns] == ["one", "two"]
        await session.end()
        await session.end()

    run(main())
    assert starts == ["session:start"]


def test_the_coordinator_cleans_up_when_the_session_ends() -> None:
    cleaned: list[str] = []

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("session:end", lambda event, data: cleaned.append(event))
        async with Session(ScriptedProvider(["one"]), hooks=hooks) as session:
            session.coordinator.register_cleanup(lambda: cleaned.append("cleanup"))
        assert cleaned == ["session:end", "cleanup"]
        unused = Session(ScriptedProvider(["one"]))
        unused.coordinator.register_cleanup(lambda: cleaned.append("never started"))
        await unused.end()
        hooks.register("session:start", lambda event, data: HookResult(action="deny", reason="no"))
        refused = Session(ScriptedProvider(["one"]), hooks=hooks)
        refused.coordinator.register_cleanup(lambda: cleaned.append("refused"))
        with pytest.raises(SessionRefusedError):
            await refused.start()

    run(main())
    assert cleaned[2:] == ["never started", "session:end", "refused"]


def test_what_was_said_can_be_read_after_the_end() -> None:
    async def main() -> None:
        async with Session(ScriptedProvider(["ok"])) as session:
            await session.prompt("go")
        assert contents(session, "assistant") == ["ok"]
        assert session.id
        with pytest.raises(RuntimeError, match="has ended"):
            await session.execute_tool("work")

    run(main())


def test_a_person_stops_a_turn_from_another_thread() -> None:
    async def main() -> None:
        async with Session(ScriptedProvider([calling("Bash", command="sleep 60")]), workspace=".") as session:
            turn = asyncio.ensure_future(session.prompt("go"))
            await asyncio.sleep(0.1)

            def stop() -> None:
                assert (session.cancel(), session.cancel()) == ("graceful", "immediate")

            await asyncio.get_running_loop().run_in_executor(None, stop)
            assert (await turn).end == "interrupted"

    run(main())


def test_a_hook_that_waits_for_another_turn_is_told_so() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        raised: list[str] = []

        @hooks.register("tool:pre")
        async def greedy(event: str, data: dict[str, Any]) -> None:
            try:
                await session.execute_tool("work")
            except RuntimeError as error:
                raised.append(str(error))

        session = Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")])
        async with session:
            assert (await session.execute_tool("work")).success
        assert raised == ["the session is in a turn already: a hook or a tool of it cannot wait for another turn to end"]

    run(main())


def test_turns_that_are_asked_for_at_once_run_one_after_another() -> None:
    async def main() -> None:
        async with Session(ScriptedProvider(["one", "two", "three"])) as session:
            turns = await asyncio.gather(*(session.prompt(str(number)) for number in range(3)))
            assert [str(turn) for turn in turns] == ["one", "two", "three"]
            roles = [message["role"] for message in session.context.get_messages()]
            assert roles == ["user", "assistant"] * 3

    run(main())


def test_no_call_that_wakes_the_turn_is_lost(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_text("a")

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path) as session:
            for _ in range(300):
                assert (await session.execute_tool("Read", {"file_path": "a.txt"})).success

    run(main())


def test_sessions_on_several_loops_and_threads_at_once() -> None:
    def work(number: int, said: list[str]) -> None:
        async def main() -> None:
            script = [calling("Bash", command=f"echo {number}"), f"answer {number}"]
            async with Session(ScriptedProvider(script), workspace=".") as session:
                said.append(str(await session.prompt("go")))
                assert contents(session, "tool") == [str(number)]

        run(main())

    said: list[str] = []
    threads = [threading.Thread(target=work, args=(number, said)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [f"answer {number}" for number in range(4)]


def test_a_stored_session_goes_on(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with Session(ScriptedProvider(["one"]), store=tmp_path) as session:
            await session.prompt("first")
            id = session.id
        async with Session(ScriptedProvider(["two"]), store=tmp_path, resume="last") as session:
            assert session.id == id
            await session.prompt("second")
            assert contents(session, "assistant") == ["one", "two"]
        with pytest.raises(ValueError, match="nothing"):
            await Session(ScriptedProvider([]), store=tmp_path, resume="nothing").start()

    run(main())


def test_a_session_branches_off_a_stored_one(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with Session(ScriptedProvider(["one", "two"]), store=tmp_path) as session:
            await session.prompt("first")
            await session.prompt("second")
            id = session.id
        hooks, forks = HookRegistry(), list[dict[str, Any]]()
        hooks.register("session:fork", lambda event, data: forks.append(data))
        async with Session(ScriptedProvider(["three"]), hooks=hooks, store=tmp_path, fork=id, turn=1) as session:
            assert session.id != id
            await session.prompt("otherwise")
            assert contents(session, "assistant") == ["one", "three"]
        assert [(data["parent_session_id"], data["turn"]) for data in forks] == [(id, 1)]
        async with Session(ScriptedProvider([]), store=tmp_path, fork=id) as session:
            assert contents(session, "assistant") == ["one", "two"]
        with pytest.raises(ValueError, match="turn"):
            await Session(ScriptedProvider([]), store=tmp_path, fork=id, turn=3).start()

    run(main())


def test_what_could_not_be_read_again_is_not_kept(tmp_path: pathlib.Path) -> None:
    def nested(levels: int) -> dict[str, Any]:
        return {"in": nested(levels - 1)} if levels > 1 else {}

    async def main() -> None:
        ran = list[int]()
        tools = [Tool("work", lambda input: ran.append(len(input))), Tool("dig", lambda input: nested(200))]
        async with Session(ScriptedProvider([]), tools=tools, store=tmp_path) as session:
            assert (await session.execute_tool("work", nested(100))).success
            with pytest.raises(ValueError, match="more than 100 levels deep"):
                await session.execute_tool("work", nested(101))
            with pytest.raises(ValueError, match="more than 100 levels deep"):
                session.context.add_message("user", "look", nested(101))
            with pytest.raises(ValueError, match="more than 100 levels deep"):
                await session.prompt("look", nested(101))
            session.context.add_message("user", "look", nested(100))
            assert "more than 100 levels deep" in (await session.execute_tool("dig")).output
            said = session.context.get_messages()
        assert ran == [1]
        async with Session(ScriptedProvider([]), store=tmp_path, resume="last") as session:
            assert session.context.get_messages() == said

    run(main())


def test_a_session_that_has_ended_is_not_entered_again() -> None:
    async def main() -> None:
        session = Session(ScriptedProvider([]))
        async with session:
            pass
        with pytest.raises(RuntimeError, match="the session has ended: make a new one"):
            async with session:
                pass

    run(main())


def test_what_a_session_cannot_use_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="a session needs a model"):
        Session()
    with pytest.raises(TypeError, match=r"an object with `complete\(request\)`; found `int`"):
        Session(3)
    with pytest.raises(TypeError, match=r"a tool is a `Tool`, .*; found `int`"):
        Session(ScriptedProvider([]), tools=[3])
    with pytest.raises(OSError, match="the workspace `/nowhere` cannot be used"):
        Session(ScriptedProvider([]), workspace="/nowhere")
    with pytest.raises(ValueError, match="there is no option `stepz`; there are steps, tokens, "):
        Session(ScriptedProvider([]), options={"stepz": 1})
    for option, value, must_be in (
        ("steps", -1, "a whole number from 0 on; found `-1`"),
        ("tokens", "many", "a whole number from 0 on, or `None` for no limit; found `'many'`"),
        ("retry_delay", "long", "a number of seconds; found `'long'`"),
        ("compact_to", [], "a number, the share of what the model can read; found `[]`"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"the option `{option}` must be {must_be}")):
            Session(ScriptedProvider([]), options={option: value})
    with pytest.raises(TypeError, match=r"a tool needs a `name`; `<lambda>` has none: give a `Tool\(name, function\)`"):
        Session(ScriptedProvider([]), tools=[lambda input: "x"])
    with pytest.raises(ValueError, match="more than one tool is called `Mail`"):
        Session(ScriptedProvider([]), tools=[Tool("Mail", print), Tool("Mail", print)])
    with pytest.raises(TypeError, match="an approval system has .*; `object` has not"):
        Session(ScriptedProvider([]), approval_system=object())
    with pytest.raises(ValueError, match="`resume` needs the `store` in which the session was kept"):
        Session(ScriptedProvider([]), resume="last")
    with pytest.raises(ValueError, match="`fork` needs the `store` in which the session was kept"):
        Session(ScriptedProvider([]), fork="last")
    with pytest.raises(ValueError, match="`resume` goes on with a session, and `fork` begins another: give one of them"):
        Session(ScriptedProvider([]), store="/nowhere", resume="last", fork="last")
    with pytest.raises(ValueError, match="`turn` is one of the session to `fork`, of which there is none"):
        Session(ScriptedProvider([]), turn=1)
    with pytest.raises(ValueError, match="`turn` must be a whole number from 0 on; found -1"):
        Session(ScriptedProvider([]), store="/nowhere", fork="last", turn=-1)
    with pytest.raises(ValueError, match="`Task` is the tool that delegates to another agent: call yours something else"):
        run(Session(ScriptedProvider([]), tools=[Tool("Task", print)]).start())
    with pytest.raises(ValueError, match="the configuration is wrong"):
        Session(ScriptedProvider([]), config={"injection_size_limitt": 1})
    with pytest.raises(ValueError, match="the script is not as expected: .*`tex`"):
        ScriptedProvider([{"tex": "x"}])
    with pytest.raises(ValueError, match="`other` is no provider"):
        RemoteProvider("other", "model")


def test_an_exception_that_ends_the_program_is_not_swallowed() -> None:
    async def main() -> None:
        hooks = HookRegistry()

        @hooks.register("tool:pre")
        def stop(event: str, data: dict[str, Any]) -> None:
            raise KeyboardInterrupt

        session = Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")])
        await session.start()
        await session.execute_tool("work")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_session_that_nobody_holds_is_collected() -> None:
    class Marker:
        name = "marker"

        def execute(self, input: dict[str, Any]) -> str:
            return "here"

    async def main() -> weakref.ref[Session]:
        marker = Marker()
        session = Session(ScriptedProvider([]), tools=[marker], hooks=HookRegistry())
        # A ring: the tool knows its session.
        marker.session = session  # type: ignore[attr-defined]
        session.hooks.register("tool:pre", lambda event, data: session and None)
        await session.execute_tool("marker")
        return weakref.ref(session)

    gone = run(main())
    gc.collect()
    assert gone() is None


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
        session = Session(ScriptedProvider(script), hooks=hooks, bundle=bundle, tools=tools)

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


GUARD = "hooks: [{ rule: no-rm, on: tool:pre, when: tool_name == 'rm', deny: no rm }]"


def test_what_waits_for_its_turn_does_not_run_after_the_end() -> None:
    async def main() -> None:
        ran = list[str]()

        async def slow(input: dict[str, Any]) -> str:
            await asyncio.sleep(0.05)
            return "ok"

        tools = [Tool("slow", slow), Tool("rm", lambda input: ran.append("rm"))]
        provider = ScriptedProvider([calling("slow"), "one", calling("rm"), "two"])
        async with Session(provider, tools=tools, bundle=parse(GUARD)) as session:
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
    session = Session(ScriptedProvider([calling("slow"), calling("rm"), "done"]), tools=tools, bundle=parse(GUARD))
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
                session._unmount = AsyncMock(side_effect=ValueError("stuck"))  # type: ignore[method-assign]
                raise ZeroDivisionError
        await session.end()

    run(main())
    assert "A session did not end as it should: ValueError: stuck" in caplog.text


def test_a_registry_that_emits_in_its_own_way_is_refused() -> None:
    class Other(HookRegistry):
        async def emit(self, event: str, data: dict[str, Any]) -> HookResult:  # type: ignore[override]
            return HookResult(action="deny")

    with pytest.raises(TypeError, match="a session does not emit by the `emit` of `Other`: register hooks instead"):
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
    assert "the conversation cannot be written down: File too large" in ended.stdout
    assert "the conversation cannot be written down" in ended.stderr
