"""Every sample of the documentation that can run, with what its text promises; the others with the reason why they cannot."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import logging
import pathlib
import re
import time
import types
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from amplifier_core.approval import ApprovalSystem
from amplifier_core.coordinator import MAX_INJECTION_SIZE, SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session
from amplifier_core.testing import MockApprovalSystem
from samples import Programs, StructuredLogger, answer, blocks, execute

BLOCKS = blocks()

SIGNATURE = "a signature without a body; compared with ours at the end of this file"
SCHEMA = "the schema of an event's data, no code"
INSIDE = "a piece from inside the system, which the kernel does in its own way"

CANNOT_RUN = {
    "000/1": SIGNATURE,
    "001/0": INSIDE,
    "001/1": "comments only",
    "001/3": SIGNATURE,
    "001/4": INSIDE,
    "001/5": INSIDE,
    "001/6": INSIDE,
    "001/7": INSIDE,
    "001/8": INSIDE,
    "001/9": INSIDE,
    "001/11": "the outline of a class, with comments for bodies",
    "001/12": "the outline of a class; a method has a comment for a body, which is no Python",
    "001/13": INSIDE,
    "001/14": INSIDE,
    "001/15": SCHEMA,
    "001/18": INSIDE,
    "001/19": INSIDE,
    "001/20": INSIDE,
    "001/24": "the old way, shown as what to avoid: it changes `messages` that nobody has",
    "001/26": "JSON with a comment: the person's standing rules",
    **dict.fromkeys(("002/2", "002/4", "002/6", "002/8", "002/10", "002/12", "002/15"), SIGNATURE),
    "002/18": "the inside of a function: it returns at the top level",
    **dict.fromkeys((f"004/{n}" for n in (0, 2, 4, 6, 8, 10, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 24)), SCHEMA),
}

Check = Callable[[str], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def sample(*places: str) -> Callable[[Check], Check]:
    def keep(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(places, check))
        return check

    return keep


def test_every_sample_is_accounted_for() -> None:
    assert set(CHECKS) | set(CANNOT_RUN) == set(BLOCKS)
    assert not set(CHECKS) & set(CANNOT_RUN)


# ---- registering and emitting --------------------------------------------------------------------------------------


@sample("000/0", "000/3")
async def _a_hook_is_registered_and_removed(code: str) -> None:
    printed: list[str] = []
    registering, removing = code.split("# Later")
    space = await execute(registering, print=printed.append)
    registry, name = space["registry"], "tool_logger" if "tool_logger" in code else "my_hook"
    assert registry.list_handlers() == {"tool:pre": [name]}
    assert (await registry.emit("tool:pre", {"tool_name": "ls"})).action == "continue"
    assert printed == (["About to execute tool: ls"] if "print" in code else [])
    await execute(f"# Later{removing}", **space)
    assert registry.list_handlers() == {}


@sample("000/11")
async def _a_handler_that_says_nothing_continues(code: str) -> None:
    assert (await answer(code, "hook_handler", "tool:pre", {})).action == "continue"


@sample("002/0")
async def _a_hook_stays_registered(code: str) -> None:
    space = await execute(code)
    assert space["registry"].list_handlers() == {"tool:post": ["my_hook"]}


@sample("000/2", "004/25")
async def _default_fields_reach_every_event(code: str) -> None:
    space = await execute(code)
    written = dict(re.findall(r'(\w+)="(.*?)"', code))
    assert len(written) == 2
    for event in ("tool:pre", "session:end"):
        assert (await space["registry"].emit(event, {})).data == written


@sample("000/4")
async def _lower_numbers_run_first(code: str) -> None:
    ran: list[str] = []
    names = ("first_handler", "second_handler", "third_handler")
    handlers = {name: lambda event, data, name=name: ran.append(name) for name in names}
    # In whatever order they are registered.
    for lines in (code.split("\n\n"), reversed(code.split("\n\n"))):
        registry = HookRegistry()
        await execute("\n\n".join(lines), registry=registry, **handlers)
        await registry.emit("tool:pre", {})
    assert ran == [*names, *names]


@sample("000/5")
async def _removing_is_logged(code: str) -> None:
    async def my_handler(event: str, data: dict[str, Any]) -> None: ...

    records: list[str] = []
    logger = logging.getLogger("amplifier_core.hooks")
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        await execute(code, my_handler=my_handler)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert "Unregistered hook 'my_handler' from event 'tool:post'" in records


@sample("000/6")
async def _an_event_is_validated_and_enriched(code: str) -> None:
    result = (await execute(code))["result"]
    assert result.action == "continue"
    assert result.data["timestamp"] == "2024-01-01T10:00:00Z"
    assert result.data["args"] == {"expression": "2 + 2"}


@sample("000/7")
async def _defaults_are_merged_with_nobody_listening(code: str) -> None:
    result = (await execute(code))["result"]
    assert result.data == {"session_id": "abc123", "user_id": "user456", "tool_name": "calculator"}


@sample("000/8")
async def _an_event_that_nobody_hears_continues(code: str) -> None:
    assert (await execute(code))["result"] == HookResult(action="continue", data={"data": "value"})


@sample("002/1")
async def _a_hook_sees_the_tool(code: str) -> None:
    printed: list[str] = []
    assert (await execute(code, print=printed.append))["result"].action == "continue"
    assert printed == ["Tool executed: calculator"]


@sample("002/3")
async def _a_dangerous_tool_is_denied(code: str) -> None:
    result = await answer(code, "security_check", "tool:pre", {"tool_name": "dangerous_tool"})
    assert (result.action, result.reason) == ("deny", "Tool blocked by security policy")


@sample("002/5")
async def _on_is_register(code: str) -> None:
    async def session_logger(event: str, data: dict[str, Any]) -> None: ...

    space = await execute(code, session_logger=session_logger)
    assert space["registry"].list_handlers() == {"session:start": ["session_logger"]}
    space["unregister"]()
    assert space["registry"].list_handlers() == {}


@sample("002/7")
async def _defaults_reach_the_hooks(code: str) -> None:
    seen: dict[str, Any] = {}
    registry = HookRegistry()
    registry.register("tool:pre", lambda event, data: seen.update(data))
    await execute(code, registry=registry)
    seen.pop("timestamp")
    expected = {"session_id": "sess_123", "user_id": "user_456", "environment": "production", "tool_name": "calculator"}
    assert seen == expected


@sample("002/9")
async def _a_caller_looks_at_the_action(code: str) -> None:
    for said, printed in (
        (HookResult(action="deny", reason="no"), ["Operation blocked: no"]),
        (HookResult(action="inject_context", context_injection="mind it"), ["Context to inject: mind it"]),
        (None, []),
    ):
        registry = HookRegistry()
        registry.register("tool:post", lambda event, data, said=said: said)  # type: ignore[misc]
        lines: list[str] = []
        await execute(code, registry=registry, print=lines.append)
        assert lines == printed


@sample("002/11")
async def _recommendations_are_collected(code: str) -> None:
    registry = HookRegistry()

    @registry.register("decision:tool_resolution")
    async def weather(event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="continue", data={"tool": "weather_api", "confidence": 0.9})

    @registry.register("decision:tool_resolution")
    async def search(event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="continue", data={"tool": "web_search", "confidence": 0.3})

    space = await execute(code, registry=registry)
    assert space["tool_scores"] == {"weather_api": 0.9, "web_search": 0.3}


@sample("002/13")
async def _handlers_are_listed_by_event(code: str) -> None:
    registry = HookRegistry()
    for event, name in (("tool:pre", "security"), ("tool:pre", "validator"), ("tool:post", "audit"), ("tool:post", "metrics")):
        registry.register(event, lambda event, data: None, name=name)
    space = await execute(code, registry=registry)
    assert space["all_handlers"] == {"tool:pre": ["security", "validator"], "tool:post": ["audit", "metrics"]}
    assert space["tool_handlers"] == {"tool:pre": ["security", "validator"]}


@sample("002/14")
async def _register_is_a_decorator(code: str) -> None:
    space = await execute(code)
    result = await space["registry"].emit("tool:pre", {"tool_name": "dangerous_tool"})
    assert (result.action, result.reason) == ("deny", "Tool not allowed")
    assert inspect.iscoroutinefunction(space["validate_tool"])
    answers = await space["registry"].emit_and_collect("decision:tool_resolution", {})
    assert answers == [{"recommended_tool": "calculator"}]


@sample("004/26")
async def _hooks_are_registered_by_constant(code: str) -> None:
    names = set(re.findall(r"my_\w+", code))
    handlers = {name: _named(name) for name in names}
    space = await execute(code, **handlers)
    assert space["registry"].list_handlers()["orchestrator:complete"] == ["my_completion_hook"]
    assert len(space["registry"].list_handlers()) == 6


def _named(name: str) -> Callable[..., None]:
    def handler(event: str, data: dict[str, Any]) -> None: ...

    handler.__name__ = name
    return handler


@sample("004/23")
async def _the_constants_have_these_values(code: str) -> None:
    written = re.findall(r'HookRegistry\.(\w+) = "(.*?)"', code)
    assert len(written) == 16
    assert {name: getattr(HookRegistry, name) for name, _ in written} == dict(written)
    await execute(code, HookRegistry=types.SimpleNamespace())


# ---- results --------------------------------------------------------------------------------------------------------


@sample("000/9", "000/10")
async def _results_have_these_fields_and_defaults(code: str) -> None:
    shown = (await execute(code, BaseModel=object, dataclass=lambda kind: kind))["HookResult"]
    result = HookResult(action="continue")
    for field in shown.__annotations__:
        assert getattr(result, field) == getattr(shown, field, "continue"), field


@sample("002/17")
async def _results_are_made_by_keyword(code: str) -> None:
    made: list[HookResult] = []
    space: dict[str, Any] = {"original_data": {"n": 1}}
    for statement in code.split("\n\n"):
        space = await execute(statement, **space)
        made += [space.pop("result")] if "result" in space else []
    assert made == [
        HookResult(action="continue"),
        HookResult(action="deny", reason="Operation not permitted in production"),
        HookResult(action="modify", data={"n": 1, "validated": True}),
        HookResult(action="inject_context", context_injection="Security scan completed successfully", context_injection_role="system"),
    ]


@sample("001/2")
async def _modifications_chain(code: str) -> None:
    space = await execute(code)
    registry = HookRegistry()
    for number in (1, 2, 3):
        registry.register("some:event", lambda event, data, n=number: space[f"result_{n}"])  # type: ignore[misc]
    result = await registry.emit("some:event", {"value": 10})
    assert (result.action, result.data["value"]) == ("continue", 25)


@sample("001/10")
async def _old_and_new_hooks_live_together(code: str) -> None:
    space = await execute(code)
    registry = HookRegistry()
    registry.register("some:event", space["simple_hook"])
    registry.register("some:event", space["enhanced_hook"])
    result = await registry.emit("some:event", {})
    assert (result.action, result.context_injection) == ("inject_context", "feedback")


# ---- hooks ----------------------------------------------------------------------------------------------------------


@sample("000/12", "002/19")
async def _an_audit_hook_watches(code: str) -> None:
    logger = StructuredLogger()
    data = {"tool_name": "Write", "session": {"user_id": "ada"}, "tool_result": {"success": True}}
    result = await answer(code, "audit_hook", "tool:post", data, logger=logger)
    assert (result.action, len(logger.records)) == ("continue", 1)
    assert "Write" in logger.records[0][0]


@sample("000/13")
async def _secrets_are_protected(code: str) -> None:
    denied = await answer(code, "security_hook", "tool:pre", {"tool_input": {"file_path": "a/.env"}})
    assert (denied.action, denied.reason) == ("deny", "Access denied: a/.env contains sensitive data")
    assert (await answer(code, "security_hook", "tool:pre", {"tool_input": {"file_path": "a.py"}})).action == "continue"


@sample("002/20")
async def _directories_are_protected(code: str) -> None:
    data = {"tool_name": "Write", "tool_input": {"file_path": "/etc/passwd"}}
    assert (await answer(code, "security_hook", "tool:pre", data)).action == "deny"
    assert (await answer(code, "security_hook", "tool:pre", {"tool_name": "Read"})).action == "continue"


@sample("000/14")
async def _validation_is_fed_back(code: str) -> None:
    names = {"validate_output": lambda result: ["too long"], "format_issues": "\n".join}
    result = await answer(code, "validation_hook", "tool:post", {"tool_result": {}}, **names)
    assert (result.action, result.context_injection) == ("inject_context", "Validation errors found:\ntoo long")
    assert result.user_message == "Found validation issues"


@sample("000/15", "002/24")
async def _production_needs_a_person(code: str) -> None:
    hook = "production_protection_hook" if "production_protection" in code else "production_guard_hook"
    data = {"tool_name": "Write", "tool_input": {"file_path": "/production/config.py"}}
    result = await answer(code, hook, "tool:pre", data)
    assert (result.action, result.approval_options) == ("ask_user", ["Allow once", "Allow always", "Deny"])
    assert result.approval_prompt == "Allow write to production file: /production/config.py?"


@sample("002/16")
async def _a_validator_adds_what_it_did(code: str) -> None:
    result = await answer(code, "security_validator", "tool:pre", {"tool_name": "ls"})
    assert (result.action, result.data and result.data["security_validated"]) == ("continue", True)
    assert (await answer(code, "security_validator", "tool:pre", {"tool_name": "rm"})).action == "deny"


@sample("002/21")
async def _numbers_are_redacted(code: str) -> None:
    data = {"tool_name": "SendEmail", "tool_input": {"body": "pay 1234-5678-9012-3456 now"}}
    result = await answer(code, "sanitize_hook", "tool:pre", data)
    assert result.data and result.data["tool_input"] == {"body": "pay [REDACTED] now"}
    assert data["tool_input"] == {"body": "pay 1234-5678-9012-3456 now"}


@sample("002/22", "004/9")
async def _the_linter_is_fed_back(code: str) -> None:
    hook = "linter_hook" if "linter_hook" in code else "linter_feedback"
    programs = Programs(returncode=1, stderr=b"line too long")
    data = {"tool_name": "Write", "tool_input": {"file_path": "a.py"}}
    result = await answer(code, hook, "tool:post", data, subprocess=programs)
    assert programs.started == [["ruff", "check", "a.py"]]
    assert (result.action, result.user_message_level) == ("inject_context", "warning")
    assert "a.py:\nline too long" in (result.context_injection or "")


@sample("002/23")
async def _todos_are_shown_once(code: str) -> None:
    result = await answer(code, "todo_hook", "tool:pre", {}, get_active_todos=lambda: ["test", "ship"])
    assert (result.context_injection, result.ephemeral) == ("Current todos:\n- test\n- ship", True)


@sample("002/25")
async def _progress_is_a_message(code: str) -> None:
    result = await answer(code, "progress_hook", "tool:post", {"files_processed": 3})
    assert (result.action, result.user_message) == ("continue", "Processed 3 files successfully")
    assert result.suppress_output


@sample("004/1")
async def _a_session_starts_with_its_issues(code: str) -> None:
    names = {"load_recent_issues": lambda limit: ["#1", "#2"][:limit], "format_issues": "\n".join}
    result = await answer(code, "session_context_loader", "session:start", {}, **names)
    assert result.context_injection == "Recent open issues:\n#1\n#2"


@sample("004/3")
async def _a_session_is_logged(code: str) -> None:
    logger = StructuredLogger()
    stats = {"total_messages": 3, "tool_invocations": 2, "total_tokens": 100}
    data = {"session_id": "s", "duration_ms": 12, "stats": stats}
    await answer(code, "session_logger", "session:end", data, logger=logger)
    assert logger.records == [("session_complete", {"session_id": "s", "duration_ms": 12, "messages": 3, "tools": 2})]


@sample("004/5")
async def _the_time_is_injected(code: str) -> None:
    result = await answer(code, "datetime_injector", "prompt:submit", {"prompt": "hi"})
    said = (result.context_injection or "").removeprefix("Current date/time: ")
    assert datetime.datetime.now() - datetime.datetime.fromisoformat(said) < datetime.timedelta(minutes=1)


@sample("004/7")
async def _bash_is_validated(code: str) -> None:
    dangerous = {"tool_name": "Bash", "tool_input": {"command": "sudo rm -rf / --no-preserve-root"}}
    assert (await answer(code, "bash_validator", "tool:pre", dangerous)).reason == "Dangerous command blocked: rm -rf /"
    harmless = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert (await answer(code, "bash_validator", "tool:pre", harmless)).action == "continue"


@sample("004/11")
async def _completion_is_notified(code: str) -> None:
    programs = Programs()
    data = {"turn_count": 2, "duration_ms": 1500}
    result = await answer(code, "session_completion", "orchestrator:complete", data, subprocess=programs)
    assert result.user_message == "Session complete: 2 turns in 1.5s"
    assert programs.started == [["notify-send", "Amplifier Session Complete", "Completed 2 turns in 1.5s"]]


@sample("004/16")
async def _attention_is_called_for(code: str) -> None:
    programs = Programs()
    data = {"notification_type": "error", "message": "look"}
    result = await answer(code, "desktop_notifier", "user:notification", data, subprocess=programs)
    assert result.suppress_output
    assert programs.started == [["notify-send", "Amplifier: error", "look"]]


@sample("001/25")
async def _the_git_status_is_a_hook(code: str) -> None:
    # The sample registers the hook above its definition, as two files would.
    registering, implementation = code.split("# Hook implementation")
    programs = Programs(stdout=b" M a.py\n")
    space = await execute(implementation, subprocess=programs)
    registry = HookRegistry()
    await execute(registering, registry=registry, git_status_injector=space["git_status_injector"])
    result = await registry.emit("session:start", {})
    assert (result.context_injection, result.suppress_output) == ("Git status:\n M a.py\n", True)


# ---- around the hooks -----------------------------------------------------------------------------------------------


@sample("001/16")
async def _an_orchestrator_says_that_it_is_done(code: str) -> None:
    space = await execute(code, time=time, start_time=time.time())
    registry = HookRegistry()
    seen: dict[str, Any] = {}
    registry.register("orchestrator:complete", lambda event, data: seen.update(data))
    await space["execute"](types.SimpleNamespace(hooks=registry, session_id="s", turn_count=4), "p", None, [], [])
    assert (seen["turn_count"], seen["status"]) == (4, "success")


@sample("001/17")
async def _a_context_manager_of_ones_own(code: str) -> None:
    logger = StructuredLogger()
    space = await execute(code, logger=logger, datetime=datetime.datetime)
    manager = type("Context", (), {"add_message": space["add_message"]})()
    manager.messages = []
    registry = HookRegistry()
    registry.register("tool:post", lambda event, data: {"action": "inject_context", "context_injection": "mind it"}, name="lint")
    await SessionCoordinator(registry, manager).execute_with_hooks("tool:post", {})
    (message,) = manager.messages
    assert (message["role"], message["content"]) == ("system", "mind it")
    assert (message["metadata"]["source"], message["metadata"]["hook_name"]) == ("hook", "lint")
    assert logger.records == [("message_from_hook", {"hook": "lint", "role": "system", "size": 7})]


@sample("001/21")
async def _the_documented_tests_pass(code: str) -> None:
    coordinator = SessionCoordinator(HookRegistry(), None, None, None)
    names = {"pytest": pytest, "coordinator": coordinator, "MAX_INJECTION_SIZE": MAX_INJECTION_SIZE}
    space = await execute(code, **names)
    space["test_hook_result_fields"]()
    space["test_injection_size_limit"]()


# ---- sessions -------------------------------------------------------------------------------------------------------


@sample("001/22")
async def _the_linter_feedback_loop(code: str) -> None:
    feedback = await execute(BLOCKS["004/9"], subprocess=Programs(returncode=1, stderr=b"E501 Line too long"))
    registry = HookRegistry()
    names = {"pytest": pytest, "registry": registry, "linter_feedback_hook": feedback["linter_feedback"]}
    file = pathlib.Path("/tmp/test.py")
    before = file.read_bytes() if file.exists() else None
    try:
        async with Session(ScriptedProvider(["Fixed."]), hooks=registry, workspace="/tmp", confirm="off", only=["Write"]) as session:
            space = await execute(code, session=session, **names)
            await space["test_linter_feedback_loop"]()
            assert file.read_text() == "x" * 200
            # What the hook says is there when the model is asked next.
            assert str(await session.prompt("go on")) == "Fixed."
    finally:
        file.unlink(missing_ok=True)
        if before is not None:
            file.write_bytes(before)


@sample("001/23")
async def _production_is_protected(code: str) -> None:
    guard = await execute(BLOCKS["000/15"])
    registry = HookRegistry()
    registry.register("tool:pre", guard["production_protection_hook"], on_error="deny")
    person = MockApprovalSystem(default_decision="Deny")

    def mock(default_decision: str) -> MockApprovalSystem:
        assert default_decision == "Deny"
        return person

    async with Session(ScriptedProvider([]), hooks=registry, workspace=".", confirm="off", approval_system=person) as session:
        # `Mock ApprovalSystem(…)` is no Python: the slip that is corrected here.
        code = code.replace("Mock ApprovalSystem(", "MockApprovalSystem(")
        space = await execute(code, session=session, MockApprovalSystem=mock)
        await space["test_production_protection_real_world"]()
    (asked,) = person.request_approval.await_args_list
    assert asked.kwargs["prompt"] == "Allow write to production file: /production/config.py?"


# ---- signatures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["002/2", "002/4", "002/6", "002/8", "002/10", "002/12"])
def test_signatures_are_as_documented(place: str) -> None:
    from collections.abc import Awaitable as Awaits

    names = {"Callable": Callable, "Awaitable": Awaits, "HookResult": HookResult, "Any": Any}
    exec(BLOCKS[place].rstrip() + ": ...", names)
    documented = next(value for key, value in names.items() if inspect.isfunction(value))
    ours = inspect.signature(getattr(HookRegistry, documented.__name__)).parameters
    for name, parameter in inspect.signature(documented).parameters.items():
        assert name in ours
        if parameter.default is not parameter.empty:
            assert ours[name].default == parameter.default
    assert list(ours)[: len(inspect.signature(documented).parameters)] == list(inspect.signature(documented).parameters)


@pytest.mark.parametrize("place", ["000/1", "002/15"])
def test_handlers_have_the_documented_signature(place: str) -> None:
    body = ": return HookResult(action='deny', reason=f'{event} {data}')"
    result = asyncio.run(answer(BLOCKS[place].rstrip() + body, "handler", "tool:pre", {"timestamp": "2024-01-01T10:00:00Z"}))
    assert (result.reason or "").startswith("tool:pre {'timestamp': ")


def test_approval_systems_have_the_documented_signature() -> None:
    names: dict[str, Any] = {"Protocol": object, "Literal": Literal}
    exec(BLOCKS["001/3"].rstrip() + ": ...", names)
    documented = inspect.signature(names["ApprovalSystem"].request_approval).parameters
    # The sample leaves out `self`.
    assert ["self", *documented] == list(inspect.signature(ApprovalSystem.request_approval).parameters)


# Below all of them, because the checks are known only now.
@pytest.mark.parametrize("place", sorted(CHECKS))
def test_sample_does_what_its_text_promises(place: str) -> None:
    asyncio.run(CHECKS[place](BLOCKS[place]))
