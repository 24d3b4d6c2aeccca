"""Sessions: tools, hooks around them, approvals, and where everything runs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import types
from typing import Any

import pytest

from amplifier_core.approval import ScriptedApprovals
from amplifier_core.bundles import parse
from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool
from sessions import UNRECORDED, calling, contents, run


def test_a_session_answers() -> None:
    async def main() -> None:
        provider = ScriptedProvider(["Good morning."], record=True)
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
        session = Session(ScriptedProvider([calling("Bash", command="sleep 0.05; echo done"), "ok"]), hooks=hooks, workspace=".", confirm="off")
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
        provider = ScriptedProvider(script, record=True)
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
            assert "unknown tool `Add2`" in (unknown.error or "")
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
        with pytest.raises(AttributeError, match=f"`{part}` of a `Session` cannot be set; pass it to the constructor"):
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


def test_a_denied_prompt_ends_the_turn() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("prompt:submit", lambda event, data: HookResult(action="deny", reason="too rude"), name="manners")
        async with Session(ScriptedProvider(["never"]), hooks=hooks) as session:
            turn = await session.prompt("hey")
            assert (turn.end, turn.denied_by, turn.reason) == ("refused", "manners", "too rude")
            assert (turn.answered, str(turn)) == (False, "Denied by hook manners: too rude")

    run(main())


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


def test_a_session_runs_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        script: list[Any] = [calling("Bash", command="echo hi"), {"text": "ok", "delay_ms": 1}]
        async with Session(ScriptedProvider(script), workspace=".", confirm="off") as session:
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

        bundle = parse("hooks: [{command: 'exit 3', on: 'tool:pre', name: sick, on_error: continue}]")
        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")], bundle=bundle, config=UNRECORDED) as session:
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


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["prompt:submit", "provider:request", "provider:response", "tool:pre", "tool:post", "deploy", "approve"])
def test_nothing_runs_after_an_interrupt(where: str, interrupt: type[BaseException]) -> None:
    hooks, ran = HookRegistry(), list[str]()

    def stop(*arguments: Any, **named: Any) -> str:
        raise interrupt

    def deploy(input: dict[str, Any]) -> str:
        ran.append("deploy")
        return stop() if where == "deploy" else "ok"

    if ":" in where:
        hooks.register(where, stop)
    if where == "approve":
        hooks.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Deploy?"))
    hooks.register("*", lambda event, data: ran.append(event), name="witness", priority=1000)
    provider = ScriptedProvider([calling("deploy"), calling("deploy"), "done"], record=True)
    person = types.SimpleNamespace(request_approval=stop)
    with pytest.raises(interrupt):
        asyncio.run(Session(provider, hooks=hooks, tools=[deploy], approval_system=person).prompt("go"))
    # The witness would hear it after the hook that was interrupted.
    assert where == "deploy" or where not in ran
    assert ran.count("deploy") == (1 if where in ("deploy", "tool:post") else 0)
    assert len(provider.asked) == (0 if where in ("prompt:submit", "provider:request") else 1)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"config_override": {"tools": "Look"}}, "`config_override`: invalid type: string"),
        ({"config_override": {"tools": None}}, "`config_override`: invalid type: null"),
        ({"config_override": {"only": ["Look"]}}, "`config_override`: unknown field `only`, expected `tools` or `system`"),
        ({"config_override": 5}, "`config_override` is not an object"),
        ({"config_override": []}, "`config_override` is not an object"),
        ({"config_override": [["Look"], "Look."]}, "`config_override` is not an object"),
        ({"agent_name": 5}, "`agent_name` is not text"),
        ({"task": None}, "`task` is not text"),
    ],
)
def test_a_limit_of_a_sub_agent_that_cannot_be_read_is_not_left_out(changed: dict[str, Any], problem: str) -> None:
    async def main() -> None:
        hooks, heard = HookRegistry(), list[str]()
        hooks.register("agent:spawn", lambda event, data: HookResult(action="modify", data={**data, **changed}))
        hooks.register("agent:complete", lambda event, data: heard.append(data["status"]))
        provider = ScriptedProvider([calling("Task", task="x", agent_name="h"), "done"], agents={"h": [calling("danger"), "child"]})
        async with Session(provider, hooks=hooks, tools=[Tool("danger", lambda input: heard.append("danger"))]) as session:
            assert (await session.prompt("go")).answered
            assert f"unusable data from a hook: {problem}" in contents(session, "tool")[0]
        assert heard == ["error"]

    run(main())


def test_what_is_said_while_a_sub_agent_is_decided_on_reaches_the_parent() -> None:
    async def main() -> None:
        hooks, decides = HookRegistry(), asyncio.Event()

        async def slow(event: str, data: dict[str, Any]) -> HookResult:
            await decides.wait()
            return HookResult(action="inject_context", context_injection="be careful")

        hooks.register("agent:spawn", slow)
        hooks.register("build:failed", lambda event, data: HookResult(action="inject_context", context_injection="build failed"))
        provider = ScriptedProvider([calling("Task", task="x", agent_name="h"), "done"], agents={"h": ["child"]}, record=True)
        async with Session(provider, hooks=hooks) as session:
            turn = asyncio.ensure_future(session.prompt("go"))
            while len(provider.asked) < 1:
                await asyncio.sleep(0)
            await session.coordinator.execute_with_hooks("build:failed", {})
            decides.set()
            await turn
            child, parent = ([message["content"] for message in call["messages"]] for call in provider.asked[1:])
            assert "be careful" in child and "build failed" not in child
            assert "build failed" in parent and "be careful" not in parent

    run(main())


def test_each_use_of_a_tool_outside_of_a_turn_has_its_own_budget() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:post", lambda event, data: HookResult(action="inject_context", context_injection="mind the gap"))
        config = {"injection_budget_per_turn": 6, "over_budget": "drop"}
        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("work", lambda input: "done")], config=config) as session:
            for _ in range(4):
                await session.execute_tool("work")
            assert contents(session, "system") == ["mind the gap"] * 4

    run(main())


def test_a_prompt_that_is_no_proper_text_is_read_as_far_as_it_is() -> None:
    async def main() -> None:
        provider = ScriptedProvider(["ok"], record=True)
        async with Session(provider) as session:
            session.context.add_message("user", "se\udcffen")
            await session.prompt("caf\udce9")
        assert [message["content"] for message in provider.asked[0]["messages"]] == ["se\ufffd\ufffd\ufffden", "caf\ufffd\ufffd\ufffd"]

    run(main())
