"""Sessions: the model, tools, hooks around them, approvals, the end of a turn, and where everything runs."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import http.server
import json
import pathlib
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from amplifier_core.approval import ScriptedApprovals
from amplifier_core.bundles import parse
from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import RemoteProvider, ScriptedProvider, Session, SessionRefusedError, Tool

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, 30))


def calling(name: str, **input: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": input}]}


def contents(session: Session, role: str) -> list[str]:
    return [message["content"] for message in session.context.get_messages() if message["role"] == role]


def test_a_session_answers() -> None:
    async def main() -> None:
        provider = ScriptedProvider(["Good morning."])
        async with Session(provider, system="Be polite.") as session:
            turn = await session.prompt("Hello")
            assert (turn.end, turn.text, str(turn), turn.answered) == ("answered", "Good morning.", "Good morning.", True)
            assert [message["role"] for message in session.context.get_messages()] == ["system", "user", "assistant"]
            assert session.tokens > 0
        (asked,) = provider.asked
        assert [message["content"] for message in asked["messages"]] == ["Be polite.", "Hello"]

    run(main())


def test_hooks_run_on_the_callers_loop_and_thread_with_its_context() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    heard: list[str] = []

    async def main() -> None:
        here = (threading.get_ident(), asyncio.get_running_loop())
        hooks = HookRegistry()

        @hooks.register("*")
        async def everything(event: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0.001)
            assert (threading.get_ident(), asyncio.get_running_loop(), who.get()) == (*here, "me")
            assert event == "session:start" or data["session_id"] == session.id
            heard.append(event)

        who.set("me")
        # A tool that takes its time on another thread of the kernel's: what wakes the turn comes from there.
        session = Session(ScriptedProvider([calling("Bash", command="sleep 0.05; echo done"), "ok"]), hooks=hooks, workspace=".")
        async with session:
            await session.prompt("go")

    run(main())
    expected = ["session:start", "prompt:submit", "execution:start", "provider:request", "provider:response", "tool:pre", "tool:post"]
    assert [event for event in heard if event in expected][:7] == expected
    assert heard[-1] == "session:end"


def test_tools_of_python_get_dicts_and_give_texts_dicts_and_failures() -> None:
    got: list[Any] = []

    class Adder:
        name = "Add"
        description = "Adds numbers."
        input_schema = {"type": "object", "properties": {"numbers": {"type": "array"}}}

        async def execute(self, input: dict[str, Any]) -> str:
            await asyncio.sleep(0)
            got.append(input)
            return str(sum(input["numbers"]))

    def look(input: dict[str, Any]) -> dict[str, Any]:
        """Looks around."""
        return {"output": "a tree", "height": 3}

    def fail(input: dict[str, Any]) -> str:
        raise LookupError("there is nothing")

    async def main() -> None:
        tools = [Adder(), look, Tool("Fail", fail, "Fails.")]
        script: list[Any] = [
            {"tools": [{"name": "Add", "input": {"numbers": [1, 2]}}, {"name": "look"}, {"name": "Fail"}]},
            "Three.",
        ]
        provider = ScriptedProvider(script)
        async with Session(provider, tools=tools) as session:
            assert str(await session.prompt("how many?")) == "Three."
            assert contents(session, "tool") == ["3", "a tree", "Error: LookupError: there is nothing"]
            assert session.tools == ["Add", "Fail", "Task", "look"]
            used = await session.execute_tool("look")
            assert (used.success, used.output, used.error, used.result) == (True, "a tree", None, {"output": "a tree", "height": 3})
            failed = await session.execute_tool("Fail", {})
            assert (failed.success, failed.error) == (False, "Error: LookupError: there is nothing")
            unknown = await session.execute_tool("Add2", {})
            assert not unknown.success
            assert "there is no tool `Add2`" in (unknown.error or "")
        assert got == [{"numbers": [1, 2]}]
        specs = {tool["name"]: tool for tool in provider.asked[0]["tools"]}
        assert specs["Add"]["input_schema"] == Adder.input_schema
        assert specs["look"]["description"] == "Looks around."

    run(main())


def test_tools_of_one_answer_run_side_by_side() -> None:
    async def main() -> None:
        both = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None
        met = asyncio.Event()
        first: list[str] = []

        async def meet(input: dict[str, Any]) -> str:
            if both is not None:
                await both.wait()
                return "met"
            first.append("here")
            met.set() if len(first) == 2 else await met.wait()
            return "met"

        provider = ScriptedProvider([{"tools": [{"name": "meet"}, {"name": "meet"}]}, "ok"])
        async with Session(provider, tools=[meet]) as session:
            await session.prompt("go")
            assert contents(session, "tool") == ["met", "met"]

    run(main())


def test_a_denied_tool_does_not_run_and_the_model_reads_why() -> None:
    ran: list[Any] = []

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:pre", lambda event, data: HookResult(action="deny", reason="not on Sundays"), name="sunday")
        session = Session(ScriptedProvider([calling("work"), "Then I rest."]), hooks=hooks, tools=[Tool("work", ran.append)])
        async with session:
            assert str(await session.prompt("work")) == "Then I rest."
            assert contents(session, "tool") == ["Denied by hook sunday: not on Sundays"]
            used = await session.execute_tool("work")
            assert (used.success, used.error, used.result) == (False, "Denied by hook sunday: not on Sundays", None)

    run(main())
    assert ran == []


def test_hooks_change_what_runs_and_what_the_model_reads() -> None:
    async def main() -> None:
        hooks = HookRegistry()

        @hooks.register("tool:pre")
        def louder(event: str, data: dict[str, Any]) -> dict[str, Any]:
            return {"action": "modify", "data": {**data, "tool_input": {"text": data["tool_input"]["text"].upper()}}}

        @hooks.register("tool:post")
        async def redact(event: str, data: dict[str, Any]) -> HookResult:
            assert (data["tool_input"], data["success"]) == ({"text": "SECRET"}, True)
            return HookResult(action="modify", data={**data, "tool_result": {"output": "[redacted]"}})

        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("say", lambda input: input["text"])]) as session:
            used = await session.execute_tool("say", {"text": "secret"})
            assert (used.output, contents(session, "tool")) == ("[redacted]", ["[redacted]"])

    run(main())


def test_approvals_are_asked_of_the_persons_system() -> None:
    person = ScriptedApprovals("Allow", "Deny")

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Really?"), name="careful")
        session = Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")], approval_system=person)
        async with session:
            assert (await session.execute_tool("work")).success
            refused = await session.execute_tool("work")
            assert not refused.success
            assert refused.error == "Denied by hook careful: User denied: Really?"

    run(main())
    assert [request.data["tool_name"] for request in person.requests] == ["work", "work"]


def test_parts_of_a_session_cannot_be_set_later() -> None:
    session = Session(ScriptedProvider(["one"]))
    for part in ("hooks", "approval_system", "display_system", "audit"):
        with pytest.raises(AttributeError, match=f"`{part}` of a `Session` cannot be set: give it when the `Session` is made"):
            setattr(session, part, ScriptedApprovals("Allow"))
    with pytest.raises(AttributeError, match="`approval_system` of a `SessionCoordinator` cannot be set"):
        session.coordinator.approval_system = ScriptedApprovals("Allow")  # type: ignore[assignment]


def test_without_an_approval_system_the_answer_is_no() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Really?"))
        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")]) as session:
            assert not (await session.execute_tool("work")).success

    run(main())


def test_messages_of_hooks_are_shown() -> None:
    shown: list[tuple[str, str, str]] = []

    class Screen:
        async def show_message(self, message: str, level: str, source: str) -> None:
            shown.append((message, level, source))

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("prompt:submit", lambda event, data: HookResult(user_message="hear", user_message_level="warning"), name="crier")
        async with Session(ScriptedProvider(["ok"]), hooks=hooks, display_system=Screen()) as session:
            await session.prompt("hello")

    run(main())
    assert shown == [("hear", "warning", "hook:crier")]


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


def test_a_denied_prompt_ends_the_turn() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("prompt:submit", lambda event, data: HookResult(action="deny", reason="too rude"), name="manners")
        async with Session(ScriptedProvider(["never"]), hooks=hooks) as session:
            turn = await session.prompt("hey")
            assert (turn.end, turn.denied_by, turn.reason) == ("refused", "manners", "too rude")
            assert (turn.answered, str(turn)) == (False, "Denied by hook manners: too rude")

    run(main())


def test_a_failing_provider_ends_the_turn() -> None:
    async def main() -> None:
        async with Session(ScriptedProvider([{"error": "rejected"}])) as session:
            turn = await session.prompt("hey")
            assert turn.end == "failed"
            assert "does not take the request" in (turn.reason or "")

    run(main())


class Parrot:
    """A model that is written in Python."""

    name = "parrot"
    model = "grey"

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def complete(self, request: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        self.requests.append(request)
        last = request["messages"][-1]
        if last["role"] == "tool":
            return f"It says {last['content']}."
        if len(self.requests) == 1:
            raise ConnectionError("the line is dead")
        return {"text": "Let me see.", "tools": [{"name": "look", "input": {"where": last["content"]}}]}


def test_a_provider_of_python_is_asked_and_asked_again_when_the_line_is_dead() -> None:
    parrot = Parrot()

    async def main() -> None:
        look = Tool("look", lambda input: f"{input['where']}!")
        async with Session(parrot, tools=[look], options={"retry_delay": 0.001}) as session:
            assert str(await session.prompt("there")) == "It says there!."

    run(main())
    assert len(parrot.requests) == 3
    assert {tool["name"] for tool in parrot.requests[0]["tools"]} == {"look", "Task"}


def test_a_model_behind_a_network_is_asked() -> None:
    asked: list[dict[str, Any]] = []

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for piece in ("Good ", "morning."):
                self.wfile.write(chunk({"content": piece}))
                self.wfile.flush()
            self.wfile.write(chunk({}, "stop") + b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    async def main() -> None:
        provider = RemoteProvider("openai", "local", base_url=f"http://127.0.0.1:{server.server_port}/v1/")
        async with Session(provider, options={"retries": 0}) as session:
            turn = await session.prompt("Hello")
            assert (turn.end, turn.text) == ("answered", "Good morning."), turn.reason

    try:
        run(main())
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [message["content"] for message in asked[0]["messages"]] == ["Hello"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (3, "gives a str or a dict"),
        ({"txt": "x"}, "an answer has no `txt`"),
        ({"tools": [{}]}, "a tool call has a `name`"),
        ({"tools": {"name": "ls"}}, "the `tools` of an answer are a list of calls"),
        ({"text": [{"type": "text", "text": "hi"}]}, "the `text` of an answer is a str"),
        ({"text": "hi", "stop": 1}, "the `stop` of an answer is a str"),
    ],
)
def test_an_answer_that_cannot_be_read_fails_the_turn(answer: Any, problem: str) -> None:
    class Broken:
        def complete(self, request: dict[str, Any]) -> Any:
            return answer

    async def main() -> None:
        async with Session(Broken(), options={"retries": 0}) as session:
            turn = await session.prompt("hey")
            assert turn.end == "failed"
            assert problem in (turn.reason or "")

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


def test_the_coordinator_of_a_session_emits_and_routes_into_its_conversation() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("my:event", lambda event, data: HookResult(action="inject_context", context_injection=str(data["point"])))
        async with Session(ScriptedProvider([]), hooks=hooks) as session:
            result = await session.coordinator.execute_with_hooks("my:event", {"point": (1, 2), "session_id": "forged"})
            # Native values, and nobody forges whose event it is.
            assert result.data and (result.data["point"], result.data["session_id"]) == ((1, 2), session.id)
            session.context.add_message("user", "hello", {"from": "me"})
            first, second = session.context.get_messages()
            assert (first["content"], first["metadata"]["source"]) == ("(1, 2)", "hook")
            assert second == {"role": "user", "content": "hello", "metadata": {"from": "me"}}

    run(main())


def test_a_sub_agent_is_gated_by_the_same_hooks() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        heard: list[str] = []

        @hooks.register("tool:pre")
        def note(event: str, data: dict[str, Any]) -> None:
            heard.append(data["tool_name"])

        provider = ScriptedProvider(
            [calling("Task", task="look", agent_name="scout"), "All is well."], agents={"scout": [calling("look"), "A tree."]}
        )
        async with Session(provider, hooks=hooks, tools=[Tool("look", lambda input: "tree")]) as session:
            assert str(await session.prompt("scout")) == "All is well."
            assert contents(session, "tool") == ["A tree."]
        assert heard == ["Task", "look"]

    run(main())


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
    with pytest.raises(TypeError, match=r"a tool needs a `name`; `<lambda>` has none: give a `Tool\(name, function\)`"):
        Session(ScriptedProvider([]), tools=[lambda input: "x"])
    with pytest.raises(ValueError, match="more than one tool is called `Mail`"):
        Session(ScriptedProvider([]), tools=[Tool("Mail", print), Tool("Mail", print)])
    with pytest.raises(TypeError, match="an approval system has .*; `object` has not"):
        Session(ScriptedProvider([]), approval_system=object())
    with pytest.raises(ValueError, match="`resume` needs the `store` in which the session was kept"):
        Session(ScriptedProvider([]), resume="last")
    with pytest.raises(ValueError, match="the configuration is wrong"):
        Session(ScriptedProvider([]), config={"injection_size_limitt": 1})
    with pytest.raises(ValueError, match="the script is not as expected: .*`tex`"):
        ScriptedProvider([{"tex": "x"}])
    with pytest.raises(ValueError, match="`other` is no provider"):
        RemoteProvider("other", "model")


def test_a_session_runs_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        script: list[Any] = [calling("Bash", command="echo hi"), {"text": "ok", "delay_ms": 1}]
        async with Session(ScriptedProvider(script), workspace=".") as session:
            assert str(await session.prompt("go")) == "ok"
            assert contents(session, "tool") == ["hi"]

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(main(), 30))
    finally:
        loop.close()


def test_failures_are_logged_once_whoever_wrote_the_hook(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        hooks = HookRegistry()

        @hooks.register("tool:pre")
        async def broken(event: str, data: dict[str, Any]) -> None:
            raise LookupError("lost")

        bundle = parse("hooks: [{command: 'exit 3', on: 'tool:pre', name: sick}]")
        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")], bundle=bundle) as session:
            assert (await session.execute_tool("work")).success

    run(main())
    own, other = (record for record in caplog.records if record.levelname in ("WARNING", "ERROR"))
    assert (own.name, own.exc_info is not None) == ("amplifier_core.hooks", True)
    assert "Hook 'broken' failed on event 'tool:pre': LookupError: lost" in own.getMessage()
    assert (other.name, "hook.name: sick" in other.getMessage()) == ("amplifier_core", True)


def test_strict_mode_holds_in_a_session() -> None:
    async def main() -> None:
        hooks = HookRegistry(strict=True)

        @hooks.register("tool:pre")
        async def meddler(event: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0)
            data["tool_input"]["to"] = "eve"

        session = Session(ScriptedProvider([calling("mail", to="ada"), "ok"]), hooks=hooks, tools=[Tool("mail", str)])
        with pytest.raises(ChangedInPlaceError, match="hook `meddler` changed `tool_input` in place"):
            await session.prompt("go")

    run(main())


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
