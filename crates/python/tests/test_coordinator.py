"""The coordinator with parts that are written in Python, async or not."""

from __future__ import annotations

import asyncio
import gc
import json
import types
import weakref
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

import simulated
from amplifier_core.approval import ApprovalRequest, ApprovalTimeout, ScriptedApprovals, TerminalApprovals
from amplifier_core.coordinator import INJECTION_BUDGET_PER_TURN, MAX_INJECTION_SIZE, SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session
from parts import ASK, INJECT, AsyncContext, AsyncPerson, AsyncScreen, Context, Person, Screen, hooks, run


@pytest.mark.parametrize("context", [Context, AsyncContext])
@pytest.mark.parametrize("screen", [Screen, AsyncScreen])
def test_injections_and_messages_reach_parts_of_both_kinds(context: Any, screen: Any) -> None:
    session = SessionCoordinator(hooks(INJECT), context(), None, screen())
    result = run(session)
    assert (result.action, result.data and result.data["n"]) == ("inject_context", (1,))
    ((role, content, metadata),) = session.context.messages
    assert (role, content) == ("system", "mind it")
    assert metadata.pop("timestamp").endswith("+00:00")
    assert metadata == {"source": "hook", "hook_name": "hook-1", "event": "tool:pre"}
    assert session.display_system.shown == [("hello", "info", "hook:hook-1")]


@pytest.mark.parametrize("kind", [Person, AsyncPerson])
def test_a_person_is_asked_and_the_kernel_decides(kind: Any) -> None:
    for answer, action, reason in (
        ("Allow", "continue", None),
        ("Deny", "deny", "User denied: Go?"),
        ("Maybe", "deny", "Answer `Maybe` was not offered: Go?"),
    ):
        person = kind(answer)
        result = run(SessionCoordinator(hooks(ASK), None, person, None))
        assert (result.action, result.reason) == (action, reason)
        assert person.asked == [("Go?", ["Allow", "Deny"], 5.0, "deny")]


def test_allow_always_lasts_for_the_session() -> None:
    person = ScriptedApprovals("Allow always", "Deny")
    ask = HookResult(action="ask_user", approval_prompt="Go?", approval_options=["Allow always", "Deny"])
    session = SessionCoordinator(hooks(ask), None, person, None)
    assert [run(session).action, run(session).action] == ["continue", "continue"]
    session.forget_answers()
    assert run(session).action == "deny"
    assert [request.prompt for request in person.requests] == ["Go?", "Go?"]


def test_without_an_answer_the_operation_is_denied() -> None:
    class Fails:
        async def request_approval(self, **_: Any) -> str:
            raise ConnectionError("line cut")

    class TimesOut:
        async def request_approval(self, **_: Any) -> str:
            raise ApprovalTimeout

    class Odd:
        async def request_approval(self, **_: Any) -> int:
            return 1

    for system, reason in (
        (None, "No approval system: Go?"),
        (Fails(), "Approval failed (ConnectionError: line cut): Go?"),
        (TimesOut(), "Approval timed out, denied by default: Go?"),
        (ScriptedApprovals(None), "Approval timed out, denied by default: Go?"),
        (Odd(), "Approval failed (the answer must be the label of an option; found `int`): Go?"),
        (ScriptedApprovals(), "Approval failed (RuntimeError: the script is empty): Go?"),
    ):
        result = run(SessionCoordinator(hooks(ASK), None, system, None))
        assert (result.action, result.reason, result.data) == ("deny", reason, None)


def test_the_request_shows_what_will_run() -> None:
    person = ScriptedApprovals("Allow")
    change = HookResult(action="modify", data={"command": "ls", "when": (1, 2)})
    run(SessionCoordinator(hooks(change, ASK), None, person, None))
    (request,) = person.requests
    assert isinstance(request, ApprovalRequest)
    assert (request.hook, request.event, request.timeout, request.default) == ("hook-2", "tool:pre", 5.0, "deny")
    assert (request.options, request.effects) == (["Allow", "Deny"], ["allow_once", "deny"])
    assert (request.data["command"], request.data["when"], len(request.digest)) == ("ls", [1, 2], 64)
    assert [request.option(typed) for typed in ("1", "deny", "Deny", "3", "x")] == ["Allow", "Deny", "Deny", None, None]


class Helpful(Person):
    def ask(self, text: str) -> str:
        raise NotImplementedError(f"it has its own use: {text}")


class Both(Person):
    async def ask(self, request: ApprovalRequest) -> str:
        return request.options[0]


class Unfit:
    def request_approval(self, question: str) -> str:
        raise NotImplementedError(question)

    def ask(self, asked: ApprovalRequest) -> str:
        return asked.options[0]


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({1: "rm -rf /", "1": "ls"}, {"1 (int)": "rm -rf /", "1": "ls"}),
        ({"1": "ls", 1: "rm -rf /"}, {"1 (int)": "rm -rf /", "1": "ls"}),
        ({None: 1, "None": 2, "None (NoneType)": 3}, {"None (NoneType 2)": 1, "None": 2, "None (NoneType)": 3}),
        ({1: "a", "b": 2}, {"1": "a", "b": 2}),
        ({"\ud800": 1, "\ud801": 2}, {"\ufffd\ufffd\ufffd": 1, "\ufffd\ufffd\ufffd (str)": 2}),
    ],
)
def test_no_key_hides_another_from_the_person(args: dict[Any, Any], shown: dict[str, Any]) -> None:
    person = ScriptedApprovals("Allow")
    assert run(SessionCoordinator(hooks(ASK), None, person), data={"args": args}).action == "continue"
    assert person.requests[0].data["args"] == shown
    assert HookResult(data={"args": args}).model_dump(mode="json")["data"]["args"] == shown


@pytest.mark.parametrize(
    "system",
    [
        Helpful("Allow"),
        Both("Deny"),
        Unfit(),
        types.SimpleNamespace(ask=AsyncMock(return_value="Allow")),
        Mock(request_approval=AsyncMock(return_value="Allow")),
        AsyncMock(spec=TerminalApprovals, ask=AsyncMock(return_value="Allow")),
    ],
    ids=lambda system: type(system).__name__,
)
def test_approval_systems_are_called_by_the_method_that_fits(system: Any) -> None:
    assert run(SessionCoordinator(hooks(ASK), None, system, None)).action == "continue"


def test_cancelling_withdraws_the_question_and_is_recorded() -> None:
    seen: list[str] = []

    class Patient:
        async def request_approval(self, **_: Any) -> str:
            try:
                await asyncio.sleep(3600)
            finally:
                seen.append("withdrawn")
            return "Allow"

    records: list[dict[str, Any]] = []

    class Log:
        record = staticmethod(records.append)

    async def main() -> None:
        session = SessionCoordinator(hooks(ASK), None, Patient(), None, audit=Log())
        task = asyncio.create_task(session.execute_with_hooks("tool:pre", {}))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    simulated.run(main())
    assert seen == ["withdrawn"]
    assert [record["basis"] for record in records if record["kind"] == "approval_decision"] == ["cancelled"]


def test_an_emission_that_is_given_up_is_recorded() -> None:
    records: list[dict[str, Any]] = []

    class Log:
        record = staticmethod(records.append)

    registry = hooks(None)

    @registry.register("tool:pre")
    async def slow(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(3600)

    async def main() -> None:
        task = asyncio.create_task(SessionCoordinator(registry, audit=Log()).emit("tool:pre", {}))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    simulated.run(main())
    assert [record["kind"] for record in records] == ["event", "hook_report"]
    assert (records[0]["decision"], records[1]["hook"]) == ("cancelled", "hook-1")


def test_waiting_for_a_person_is_not_counted() -> None:
    registry = HookRegistry()
    session = SessionCoordinator(registry, None, ScriptedApprovals(60.0, "Allow"), None)
    patient = HookResult(action="ask_user", approval_prompt="Go?", approval_timeout=300.0)
    registry.register("inner:event", lambda event, data: patient)

    @registry.register("outer:event", timeout=5, on_error="deny")
    async def asks(event: str, data: dict[str, Any]) -> HookResult:
        await asyncio.sleep(2)
        inner = await session.execute_with_hooks("inner:event", {})
        await asyncio.sleep(float(data["after"]))
        return HookResult(action="modify", data={"inner": inner.action})

    result = simulated.run(registry.emit("outer:event", {"after": 2}))
    assert result.data and result.data["inner"] == "continue"
    result = simulated.run(registry.emit("outer:event", {"after": 4}))
    assert result.reason == "the hook failed: gave no answer within 5s"


def test_large_injections_are_refused() -> None:
    large = HookResult(action="inject_context", context_injection="x" * (MAX_INJECTION_SIZE + 1))
    context, screen = Context(), Screen()
    session = SessionCoordinator(hooks(large), context, None, screen)
    run(session)
    assert context.messages == []
    assert [level for _, level, _ in screen.shown] == ["warning"]
    with pytest.raises(ValueError, match="exceeds"):
        simulated.run(session.process_hook_result(large, "tool:post", "linter"))
    with pytest.raises(ValueError, match="exceeds"):
        session.handle_context_injection(large)
    unlimited = SessionCoordinator(HookRegistry(), context, config={"session": {"injection_size_limit": None}})
    simulated.run(unlimited.process_hook_result(large, "tool:post", "linter"))
    assert len(context.messages) == 1


def test_the_budget_starts_afresh_each_turn() -> None:
    context = Context()
    config = {"injection_budget_per_turn": 3, "over_budget": "drop"}
    session = SessionCoordinator(hooks(HookResult(action="inject_context", context_injection="x" * 8)), context, config=config)
    run(session)
    assert session.injection_budget == 2
    run(session)
    assert (len(context.messages), session.injection_budget) == (1, 2)
    session.reset_turn()
    assert session.injection_budget == 0
    run(session)
    assert len(context.messages) == 2
    assert INJECTION_BUDGET_PER_TURN == 10_000


def test_single_results_are_processed() -> None:
    context, screen, person = Context(), Screen(), ScriptedApprovals("Allow", "Deny")
    session = SessionCoordinator(HookRegistry(), context, person, screen)

    async def main() -> None:
        assert await session.process_hook_result(INJECT, "tool:post", "linter") is INJECT
        assert await session.process_hook_result(ASK, "tool:pre", "guard") == HookResult(action="continue")
        denied = HookResult(action="deny", reason="User denied: Go?")
        assert await session.handle_approval_request(ASK, "guard") == denied
        assert (await session.process_hook_result(HookResult(action="deny", reason="no"), "tool:pre", "g")).reason == "no"
        await session.handle_context_injection(INJECT, "other", "tool:post")
        await session.handle_user_message(INJECT, "other")

    simulated.run(main())
    assert [metadata["hook_name"] for _, _, metadata in context.messages] == ["linter", "other"]
    assert screen.shown == [("hello", "info", "hook:linter"), ("hello", "info", "hook:other")]


def test_parts_that_fail_do_not_take_the_agent_down() -> None:
    class Broken:
        def add_message(self, role: str, content: str, metadata: Any) -> None:
            raise RuntimeError("broken")

        async def show_message(self, **_: Any) -> None:
            raise RuntimeError("broken")

    assert run(SessionCoordinator(hooks(INJECT), Broken(), None, Broken())).action == "inject_context"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_interrupts_in_parts_are_not_swallowed(interrupt: type[BaseException]) -> None:
    class Interrupted(Screen):
        def add_message(self, role: str, content: str, metadata: Any) -> None:
            raise interrupt

        def request_approval(self, **_: Any) -> str:
            raise interrupt

        def record(self, record: dict[str, Any]) -> None:
            raise interrupt

    part = Interrupted()
    for session in (
        SessionCoordinator(hooks(INJECT), part),
        SessionCoordinator(hooks(ASK), None, part),
        SessionCoordinator(hooks(None), audit=part),
    ):
        running = session.execute_with_hooks("tool:pre", {})
        with pytest.raises(interrupt):
            running.send(None)


def test_hooks_hear_what_the_kernel_asks() -> None:
    registry = hooks(ASK)
    heard: list[tuple[str, Any]] = []

    @registry.register("approval:*")
    async def listener(event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        heard.append((event, data["prompt"]))

    registry.register("approval:granted", lambda event, data: 1 / 0)
    assert run(SessionCoordinator(registry, None, Person("Allow"), None)).action == "continue"
    assert heard == [("approval:required", "Go?"), ("approval:granted", "Go?")]


def test_what_fails_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def add_message(self, role: str, content: str, metadata: dict[str, Any]) -> None:
            raise OSError("disk full")

        async def show_message(self, message: str, level: str, source: str) -> None:
            raise OSError("screen gone")

        async def request_approval(self, **_: Any) -> str:
            raise OSError("line cut")

    run(SessionCoordinator(hooks(INJECT, ASK), Broken(), Broken(), Broken()))
    # The question fails, then the injection, then three messages: that it was lost, and the hook's own.
    assert [(record.name, record.getMessage()) for record in caplog.records[:2]] == [
        ("amplifier_core.coordinator", "A part of the session failed, its approvals: OSError: line cut"),
        ("amplifier_core.coordinator", "A part of the session failed, its context: OSError: disk full"),
    ]
    rest = {record.getMessage() for record in caplog.records[2:]}
    assert rest == {"A part of the session failed, its display: OSError: screen gone"}
    assert all(record.exc_info and record.exc_info[2] for record in caplog.records)


@pytest.mark.parametrize(
    ("config", "warning"),
    [
        ({"injection_budget_per_turn": 0, "over_budget": "drop"}, "the injection was dropped: the budget of this turn is used up"),
        ({"injection_budget_per_turn": 0}, "the injection exceeds the budget of this turn"),
        ({"injection_size_limit": 3}, "the injection of hook `hook-1` exceeds the limit: 7 characters, 3 are allowed"),
    ],
)
def test_limits_are_told_in_the_log_where_there_is_no_screen(
    config: dict[str, Any], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    run(SessionCoordinator(hooks(INJECT), Context(), None, Screen(), config))
    assert caplog.messages == []
    run(SessionCoordinator(hooks(INJECT), Context(), config=config))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"{warning}; hook.name: hook-1")
    ]


class Useless:
    def add_message(self, role: str, content: str) -> None: ...


class Misnamed:
    def request_approval(self, question: str, options: list[str], timeout: float, default: str) -> str:
        return options[0]

    def show_message(self, text: str, level: str, source: str) -> None: ...

    def record(self) -> None: ...


class AsksNothing:
    def ask(self) -> str:
        return "Allow"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"context": 3}, r"a context has `add_message\(role, content, metadata\)` or `add_message\(message\)`; `int` has not"),
        ({"context": Useless()}, r"`add_message` of `Useless` takes `\(role: .*; it is called as `add_message\(role, content, metadata\)`"),
        ({"approval_system": Useless()}, r"an approval system has `request_approval\(prompt, .*; `Useless` has not"),
        ({"display_system": Useless()}, r"a display system has `show_message\(message, level, source\)`; `Useless` has not"),
        ({"audit": Useless()}, r"an audit log has `record\(record\)`; `Useless` has not"),
        ({"approval_system": Misnamed()}, r"`request_approval` of `Misnamed` takes `\(question: .*; it is called as `request_approval\(prompt, "),
        ({"approval_system": AsksNothing()}, r"`ask` of `AsksNothing` takes `\(\) -> .*; it is called as .* `ask\(request\)`"),
        ({"display_system": Misnamed()}, r"`show_message` of `Misnamed` takes `\(text: .*; it is called as `show_message\(message, level, source\)`"),
        ({"audit": Misnamed()}, r"`record` of `Misnamed` takes `\(\) -> .*; it is called as `record\(record\)`"),
        ({"audit": AsyncMock()}, "`record` of `AsyncMock` must not be async"),
    ],
)
def test_parts_that_cannot_be_called_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        SessionCoordinator(HookRegistry(), **parts)


@pytest.mark.parametrize("part", ["hooks", "context", "approval_system", "display_system", "audit", "config"])
def test_parts_cannot_be_set_later(part: str) -> None:
    session = SessionCoordinator(HookRegistry(), Context(), Person("Deny"), Screen(), {"session": {}})
    before = getattr(session, part)
    text = f"`{part}` of a `SessionCoordinator` cannot be set; pass it to the constructor"
    with pytest.raises(AttributeError, match=text):
        setattr(session, part, Person("Allow"))
    assert getattr(session, part) is before


def test_a_record_that_nobody_waits_for_is_a_failure() -> None:
    class Later:
        def record(self, record: dict[str, Any]) -> Any:
            return asyncio.sleep(0)

    with pytest.warns(RuntimeWarning, match="never awaited"):
        result = run(SessionCoordinator(HookRegistry(), audit=Later(), config={"audit_required": True}))
    assert (result.action, result.reason) == ("deny", "the audit log failed: TypeError: `record` must not be async")


def test_what_hooks_emit_belongs_to_the_session_if_there_is_one_alone() -> None:
    registry = HookRegistry()
    heard: list[Any] = []

    @registry.register("tool:pre")
    async def emits(event: str, data: dict[str, Any]) -> None:
        for named in ({}, {"session_id": "named"}):
            await registry.emit("some:event", named)

    registry.register("some:event", lambda event, data: heard.append(data.get("session_id")))

    def hears(session: SessionCoordinator) -> Any:
        heard.clear()
        result = run(session)
        return result.data and result.data.get("session_id"), *heard

    first = SessionCoordinator(registry, session_id="first")
    assert hears(first) == ("first", "first", "first")
    second = SessionCoordinator(registry, session_id="second")
    assert hears(first) == ("first", None, "named")
    assert hears(second) == ("second", None, "named")
    del first
    assert hears(second) == ("second", "second", "second")
    nameless = SessionCoordinator(registry)
    assert hears(nameless) == (None, None, "named")
    del nameless
    registry.set_reserved_fields(session_id="reserved")
    assert hears(second) == ("second", "reserved", "reserved")
    del second
    assert hears(SessionCoordinator(registry, session_id="third")) == ("third", "reserved", "reserved")


def test_the_session_cannot_be_forged() -> None:
    registry = HookRegistry()
    seen: list[str] = []
    registry.register("tool:pre", lambda event, data: seen.append(data["session_id"]))
    registry.register("tool:pre", lambda event, data: {"action": "modify", "data": {"session_id": "forged"}})
    session = SessionCoordinator(registry, session_id="real")
    result = run(session, data={"session_id": "forged"})
    assert (seen, result.data and result.data["session_id"]) == (["real"], "real")


def test_a_denial_has_no_effect_where_events_are_only_observed() -> None:
    session = SessionCoordinator(hooks(HookResult(action="deny", reason="no"), event="session:end"))
    result = run(session, "session:end", {"n": (1,)})
    assert result.action == "continue"
    assert result.data and result.data["n"] == (1,)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"injection_sise_limit": 5}, "unknown field `injection_sise_limit`, expected one of .*`injection_size_limit`"),
        ({"over_budget": "explode"}, "`over_budget` must be 'warn', 'drop', 'truncate'; found `'explode'`"),
        ({"over_budget": None}, "`over_budget` must be 'warn', 'drop', 'truncate'; found `None`"),
        ({"injection_size_limit": -1}, "`injection_size_limit` must be a whole number from 0 on, or `None` for no limit; found `-1`"),
        ({"session": {"injection_budget_per_turn": 1.5}}, "`injection_budget_per_turn` must be a whole number .*; found `1.5`"),
        ({"injection_size_limit": True}, "`injection_size_limit` must be a whole number .*; found `True`"),
        ({"injection_size_limit": 10**30}, "`injection_size_limit` must be a whole number .*; found `1000"),
        ({"audit_required": "yes"}, "`audit_required` must be `True` or `False`; found `'yes'`"),
        ({"session": {"forbid_default_allow": None}}, "`forbid_default_allow` must be `True` or `False`; found `None`"),
        ({"session": {}, "injection_size_limit": 5}, "`injection_size_limit` is next to `session` and has no effect; move it under `session`"),
        ({"session": [1]}, r"`session` must be a dict of settings; found `\[1\]`"),
    ],
)
def test_wrong_configurations_are_refused(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"invalid configuration: {problem}"):
        SessionCoordinator(HookRegistry(), config=config)
    with pytest.raises(ValueError, match=f"invalid configuration: {problem}"):
        Session(ScriptedProvider([]), config=config)


def test_wrong_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="missing hook name"):
        SessionCoordinator(HookRegistry(), approval_rules={"*:x": "allow"})


def test_a_configuration_may_say_nothing_of_the_session() -> None:
    configs: list[dict[str, Any]] = [{"session": None}, {"session": {}, "providers": []}, {}]
    for config in configs:
        session = SessionCoordinator(hooks(INJECT), Context(), config=config)
        run(session)
        assert len(session.context.messages) == 1
        Session(ScriptedProvider([]), config=config)


def test_contributions_are_collected() -> None:
    session = SessionCoordinator(HookRegistry())

    async def later() -> list[str]:
        await asyncio.sleep(0)
        return ["later"]

    def broken() -> None:
        raise RuntimeError("broken")

    session.register_contributor("tools", lambda: ["now"])
    session.register_contributor("tools", broken)
    session.register_contributor("tools", "nothing", lambda: None)
    unregister = session.register_contributor("tools", "later", later)

    async def main() -> list[Any]:
        return await session.collect_contributions("tools")

    assert simulated.run(main()) == [["now"], ["later"]]
    unregister()
    unregister()
    assert session.collect_contributions("tools") == [["now"]]
    assert session.collect_contributions("other") == []
    with pytest.raises(TypeError, match="must be callable"):
        session.register_contributor("tools", "name")


def test_contributions_can_be_awaited_more_than_once(caplog: pytest.LogCaptureFixture) -> None:
    session = SessionCoordinator(HookRegistry())

    async def later() -> str:
        await asyncio.sleep(1)
        return "later"

    session.register_contributor("tools", later)
    session.register_contributor("tools", lambda: "now")

    async def main() -> None:
        async def all_of(contributions: Any) -> Any:
            return await contributions

        contributions = session.collect_contributions("tools")
        at_once = await asyncio.gather(all_of(contributions), all_of(contributions))
        assert [*at_once, await contributions] == [["later", "now"]] * 3

    simulated.run(main())
    assert caplog.messages == []


def test_a_contributor_that_hangs_gives_nothing_and_one_that_stops_the_program_does(caplog: pytest.LogCaptureFixture) -> None:
    session = SessionCoordinator(HookRegistry())

    async def hangs() -> None:
        await asyncio.sleep(1000)

    def broken() -> None:
        raise RuntimeError("broken")

    def stops() -> None:
        raise KeyboardInterrupt

    for contributor in (hangs, broken, lambda: "now"):
        session.register_contributor("tools", contributor)

    async def main() -> list[Any]:
        return await session.collect_contributions("tools")

    assert simulated.run(main()) == ["now"]
    assert caplog.messages == [
        "Contributor 'broken' of channel 'tools' failed: RuntimeError: broken",
        "contributor failed; channel: tools; contributor: hangs; error: gave nothing within 30s",
    ]
    session.register_contributor("other", stops)
    with pytest.raises(KeyboardInterrupt):
        session.collect_contributions("other")


def test_a_contributor_that_holds_its_session_is_collected() -> None:
    session = SessionCoordinator(HookRegistry())
    session.register_contributor("tools", lambda held=session: held.hooks)
    held = weakref.ref(session)
    del session
    gc.collect()
    assert held() is None


def test_a_session_and_parts_that_hold_each_other_are_collected() -> None:
    class Owner(Context):
        def __init__(self) -> None:
            super().__init__()
            self.hooks = hooks(INJECT)
            self.hooks.register("tool:post", lambda event, data: self and None)
            self.session = SessionCoordinator(self.hooks, self, None, None)

    owner = Owner()
    run(owner.session)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_keys_that_are_the_same_as_text_take_no_longer_the_deeper_they_are() -> None:
    text = "0"
    for _ in range(60):
        text = f'{{"\\ud800": {text}, "\\ud801": 1}}'
    asked = ScriptedApprovals("Allow")
    assert run(SessionCoordinator(hooks(ASK), None, asked), data={"tool_input": json.loads(text)}).action == "continue"
    assert len(asked.requests[0].data["tool_input"]) == 2
