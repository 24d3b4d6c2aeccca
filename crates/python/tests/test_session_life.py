"""The life of a session: how it starts, stops, is stored and ends, and what it refuses."""

from __future__ import annotations

import asyncio
import gc
import pathlib
import re
import threading
import weakref
from typing import Any

import pytest

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
        async with Session(ScriptedProvider([calling("Bash", command="sleep 60")]), workspace=".", confirm="off") as session:
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
        assert raised == ["the session is already in a turn; its hooks and tools cannot wait for another turn"]

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
        async with Session(ScriptedProvider([]), workspace=tmp_path, confirm="off") as session:
            for _ in range(300):
                assert (await session.execute_tool("Read", {"file_path": "a.txt"})).success

    run(main())


def test_sessions_on_several_loops_and_threads_at_once() -> None:
    def work(number: int, said: list[str]) -> None:
        async def main() -> None:
            script = [calling("Bash", command=f"echo {number}"), f"answer {number}"]
            async with Session(ScriptedProvider(script), workspace=".", confirm="off") as session:
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
        with pytest.raises(RuntimeError, match="the session has ended; create a new one"):
            async with session:
                pass

    run(main())


def test_what_a_session_cannot_use_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="missing model"):
        Session()
    with pytest.raises(TypeError, match=r"an object with `complete\(request\)`; found `int`"):
        Session(3)
    with pytest.raises(TypeError, match=r"a tool is a `Tool`, .*; found `int`"):
        Session(ScriptedProvider([]), tools=[3])
    with pytest.raises(OSError, match="the workspace `/nowhere` cannot be used"):
        Session(ScriptedProvider([]), workspace="/nowhere", confirm="off")
    with pytest.raises(ValueError, match="unknown option `stepz`; expected one of steps, tokens, "):
        Session(ScriptedProvider([]), options={"stepz": 1})
    for option, value, must_be in (
        ("steps", -1, "a whole number from 0 on; found `-1`"),
        ("tokens", "many", "a whole number from 0 on, or `None` for no limit; found `'many'`"),
        ("retry_delay", "long", "a number of seconds; found `'long'`"),
        ("compact_to", [], "a number, the share of what the model can read; found `[]`"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"the option `{option}` must be {must_be}")):
            Session(ScriptedProvider([]), options={option: value})
    with pytest.raises(TypeError, match=r"missing `name` of tool `<lambda>`; give a `Tool\(name, function\)`"):
        Session(ScriptedProvider([]), tools=[lambda input: "x"])
    with pytest.raises(ValueError, match="duplicate tool name `Mail`"):
        Session(ScriptedProvider([]), tools=[Tool("Mail", print), Tool("Mail", print)])
    with pytest.raises(TypeError, match="an approval system has .*; `object` has not"):
        Session(ScriptedProvider([]), approval_system=object())
    with pytest.raises(ValueError, match="`resume` requires the `store` of the session"):
        Session(ScriptedProvider([]), resume="last")
    with pytest.raises(ValueError, match="`fork` requires the `store` of the session"):
        Session(ScriptedProvider([]), fork="last")
    with pytest.raises(ValueError, match="`resume` and `fork` cannot be combined; give one of them"):
        Session(ScriptedProvider([]), store="/nowhere", resume="last", fork="last")
    with pytest.raises(ValueError, match="`turn` requires `fork`"):
        Session(ScriptedProvider([]), turn=1)
    with pytest.raises(ValueError, match="`turn` must be a whole number from 0 on; found `-1`"):
        Session(ScriptedProvider([]), store="/nowhere", fork="last", turn=-1)
    with pytest.raises(ValueError, match="`turn` must be a whole number from 0 on; found `'1'`"):
        Session(ScriptedProvider([]), store="/nowhere", fork="last", turn="1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the tool name `Task` is reserved; choose another name"):
        run(Session(ScriptedProvider([]), tools=[Tool("Task", print)]).start())
    with pytest.raises(ValueError, match="invalid configuration"):
        Session(ScriptedProvider([]), config={"injection_size_limitt": 1})
    with pytest.raises(ValueError, match="invalid script: .*`tex`"):
        ScriptedProvider([{"tex": "x"}])
    with pytest.raises(ValueError, match="unknown provider `other`; expected one of: anthropic, openai, gemini"):
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