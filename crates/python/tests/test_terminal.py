"""Approvals and messages in a terminal, and in a log."""

from __future__ import annotations

import asyncio
import getpass
import io
import json
import os
import pty
import select
from typing import Any, Literal

import pytest

import conformance
import simulated
from amplifier_core.approval import ApprovalSystem, ApprovalTimeoutError, ScriptedApprovals, TerminalApprovals
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.display import DisplaySystem, LoggingDisplay, TerminalDisplay
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from parts import ASK, INJECT, Person, hooks, run


def test_the_terminal_asks_until_an_option_is_typed() -> None:
    read, write = os.pipe()
    os.write(write, b"what?\n2\n")
    out = io.StringIO()
    ask = HookResult(action="ask_user", approval_prompt="Go\x1b[2J?", approval_timeout=5.0, reason="risky")
    with os.fdopen(read, "r", buffering=1) as stdin:
        session = SessionCoordinator(hooks(ask), None, TerminalApprovals(stdin, out), None)
        result = asyncio.run(session.execute_with_hooks("tool:pre", {}))
    os.close(write)
    assert result.reason == "User denied: Go\x1b[2J?".replace("\x1b", "")
    assert out.getvalue().count("[1] Allow  [2] Deny") == 2
    assert "\x1b" not in out.getvalue() and "hook-1 at tool:pre (risky)\nGo␛[2J?\n" in out.getvalue()


def test_characters_are_shown_as_the_table_says() -> None:
    table = json.loads((conformance.FOLDER / "text" / "characters.json").read_text(encoding="utf-8"))
    for case in table["cases"]:
        out = io.StringIO()
        TerminalDisplay(out).show_message(case["text"], "info", case["text"])
        # Line breaks apart, messages are shown exactly.
        assert out.getvalue() == f"info [{case['terminal']}] {case['terminal']}\n", case["name"]


def test_what_a_person_allows_is_shown_with_nothing_left_out() -> None:
    read, write = os.pipe()
    os.write(write, b"1\n")
    out = io.StringIO()
    ask = HookResult(action="ask_user", approval_prompt="Run `rm -rf \u202etxt.exe\u00a0/`?\nReally?", approval_timeout=5.0)
    with os.fdopen(read, "r", buffering=1) as stdin:
        session = SessionCoordinator(hooks(ask), None, TerminalApprovals(stdin, out), None)
        asyncio.run(session.execute_with_hooks("tool:pre", {}))
    os.close(write)
    assert "\nRun `rm -rf \\u{202e}txt.exe\\u{a0}/`?\nReally?\n" in out.getvalue()


def test_the_terminal_shows_the_preview_and_the_warning_of_the_kernel_before_the_question() -> None:
    read, write = os.pipe()
    os.write(write, b"1\n")
    out = io.StringIO()
    registry = HookRegistry()
    ask = HookResult(action="ask_user", approval_prompt="Deploy it?", approval_timeout=5.0)
    registry.register("tool:pre", lambda event, data: ask, priority=1, name="guard")
    change = HookResult(action="modify", data={"tool_name": "Deploy", "tool_input": {"to": "\u202eproduction"}})
    registry.register("tool:pre", lambda event, data: change, priority=2, name="elsewhere")
    records: list[dict[str, Any]] = []

    class Records:
        def record(self, record: dict[str, Any]) -> None:
            records.append(record)

    with os.fdopen(read, "r", buffering=1) as stdin:
        session = SessionCoordinator(registry, None, TerminalApprovals(stdin, out), None, audit=Records())
        asyncio.run(session.execute_with_hooks("tool:pre", {"tool_name": "Deploy", "tool_input": {"to": "staging"}}))
    os.close(write)
    expected = (
        "\nDeploy\n! another hook changed the operation after the request was written; an answer that allows it counts once\n"
        '  {\n    "to": "\\u{202e}production"\n  }\nguard at tool:pre\nDeploy it?\n'
    )
    assert expected in out.getvalue()
    decisions = [record["by"] for record in records if record["kind"] == "approval_decision"]
    assert decisions == [{"name": getpass.getuser(), "via": "terminal"}], records


def test_what_is_too_large_to_show_is_said_before_the_question() -> None:
    person = ScriptedApprovals("Deny")
    session = SessionCoordinator(hooks(asks("Write it?", 5.0)), None, person, None)
    asyncio.run(session.execute_with_hooks("tool:pre", {"tool_name": "Write", "tool_input": {"content": "x" * (1 << 21)}}))
    preview = person.requests[0].preview
    assert preview["truncated"] and preview["warnings"][0].startswith("this is too large to be shown in full")
    assert person.requests[0].warning is None


def asks(prompt: str, timeout: float, default: Literal["allow", "deny"] = "allow") -> HookResult:
    return HookResult(action="ask_user", approval_prompt=prompt, approval_timeout=timeout, approval_default=default)


@pytest.mark.parametrize("default", ["allow", "deny"])
def test_a_question_out_of_time_makes_room_for_the_next(default: Any) -> None:
    read, write = os.pipe()
    out = io.StringIO()

    async def main() -> None:
        with os.fdopen(read, "r") as stdin:
            session = SessionCoordinator(HookRegistry(), None, TerminalApprovals(stdin, out), None)
            first = await session.handle_approval_request(asks("First?", 5.0, default))
            assert first.action == {"allow": "continue", "deny": "deny"}[default]
            assert out.getvalue().endswith(f"{'allowed' if default == 'allow' else 'denied'} by default: no answer in time\n")
            second = asyncio.ensure_future(session.handle_approval_request(asks("Second?", 5.0)))
            await asyncio.sleep(1)
            assert out.getvalue().endswith("\nSecond?\n[1] Allow  [2] Deny\n> ")
            os.write(write, b"2\n")
            assert (await second).reason == "User denied: Second?"

    simulated.run(main())
    os.close(write)


def test_a_question_that_nobody_saw_is_not_allowed_by_default() -> None:
    read, write = os.pipe()
    out = io.StringIO()

    async def main() -> None:
        with os.fdopen(read, "r") as stdin:
            session = SessionCoordinator(HookRegistry(), None, TerminalApprovals(stdin, out), None)
            first = asyncio.ensure_future(session.handle_approval_request(asks("First?", 60.0)))
            await asyncio.sleep(1)
            unseen = await session.handle_approval_request(asks("Unseen?", 5.0), "guard")
            assert unseen.reason == "Approval failed (RuntimeError: the request timed out before it was shown): Unseen?"
            assert out.getvalue().endswith("denied: approval request of hook guard timed out before it was shown\n")
            os.write(write, b"1\n")
            assert (await first).action == "continue"

    simulated.run(main())
    os.close(write)
    assert "Unseen?" not in out.getvalue()


def test_what_was_typed_before_a_question_does_not_answer_it() -> None:
    keyboard, terminal = pty.openpty()
    out = io.StringIO()

    async def main() -> None:
        with os.fdopen(terminal, "r") as stdin:
            session = SessionCoordinator(HookRegistry(), None, TerminalApprovals(stdin, out), None)
            os.write(keyboard, b"1\n")
            for prompt in ("First?", "Second?"):
                # The system passes on what is typed a little later.
                assert select.select([terminal], [], [], 10)[0]
                question = asyncio.ensure_future(session.handle_approval_request(asks(prompt, 60.0)))
                while not out.getvalue().endswith(f"{prompt}\n[1] Allow  [2] Deny\n> "):
                    await asyncio.sleep(0)
                # One line too many.
                os.write(keyboard, b"2\n1\n")
                assert (await question).reason == f"User denied: {prompt}"

    asyncio.run(main())
    os.close(keyboard)


def test_lines_that_are_not_typed_are_answers_in_order() -> None:
    read, write = os.pipe()
    os.write(write, b"1\n2\n1\n")

    async def main() -> list[str]:
        with os.fdopen(read, "r") as stdin:
            session = SessionCoordinator(HookRegistry(), None, TerminalApprovals(stdin, io.StringIO()), None)
            return [(await session.handle_approval_request(ASK)).action for _ in range(3)]

    assert simulated.run(main()) == ["continue", "deny", "continue"]
    os.close(write)


def test_the_terminal_outlasts_its_event_loop() -> None:
    read, write = os.pipe()
    out = io.StringIO()

    async def two() -> list[str | None]:
        first, second = session.handle_approval_request(asks("1?", 5.0)), session.handle_approval_request(asks("2?", 5.0))
        return [result.reason for result in await asyncio.gather(first, second)]

    with os.fdopen(read, "r") as stdin:
        session = SessionCoordinator(HookRegistry(), None, TerminalApprovals(stdin, out), None)
        for _ in range(3):
            os.write(write, b"2\n2\n")
            assert asyncio.run(two()) == ["User denied: 1?", "User denied: 2?"]
    os.close(write)


def test_two_loops_do_not_ask_at_once() -> None:
    read, write = os.pipe()
    denied: list[str | None] = []

    async def main() -> None:
        first = asyncio.ensure_future(session.handle_approval_request(asks("First?", 5.0)))
        await asyncio.sleep(0.01)
        other = lambda: denied.append(asyncio.run(session.handle_approval_request(asks("Second?", 5.0))).reason)  # noqa: E731
        await asyncio.get_running_loop().run_in_executor(None, other)
        os.write(write, b"1\n")
        assert (await first).action == "continue"

    with os.fdopen(read, "r") as stdin:
        session = SessionCoordinator(HookRegistry(), None, TerminalApprovals(stdin, io.StringIO()), None)
        asyncio.run(main())
    os.close(write)
    assert len(denied) == 1 and "another event loop" in str(denied[0])


def test_a_closed_terminal_denies() -> None:
    session = SessionCoordinator(hooks(ASK), None, TerminalApprovals(io.StringIO(""), io.StringIO()), None)
    result = asyncio.run(session.execute_with_hooks("tool:pre", {}))
    assert result.reason == "Approval failed (RuntimeError: the terminal was closed): Go?"


def test_displays_write_and_log(caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    run(SessionCoordinator(hooks(INJECT), None, None, TerminalDisplay(stream)))
    assert stream.getvalue() == "info [hook:hook-1] hello\n"
    quiet = io.StringIO()
    run(SessionCoordinator(hooks(INJECT), None, None, TerminalDisplay(quiet, "warning")))
    assert quiet.getvalue() == ""
    with pytest.raises(ValueError, match="`level` must be one of info, warning, error; found `loud`"):
        TerminalDisplay(level="loud")  # type: ignore[arg-type]
    with caplog.at_level("INFO"):
        run(SessionCoordinator(hooks(INJECT), None, None, LoggingDisplay()))
    assert caplog.messages == ["[hook:hook-1] hello"]


@pytest.mark.parametrize("display", [TerminalDisplay, LoggingDisplay])
def test_messages_may_be_shown_without_a_source(display: Any, caplog: Any, capsys: Any) -> None:
    caplog.set_level("INFO")
    display().show_message("went wrong", level="error")
    display().show_message("hello")
    if display is TerminalDisplay:
        assert capsys.readouterr().err == "error [hook] went wrong\ninfo [hook] hello\n"
    else:
        assert [(record.levelname, record.message) for record in caplog.records] == [
            ("ERROR", "[hook] went wrong"),
            ("INFO", "[hook] hello"),
        ]
    with pytest.raises(ValueError, match="`level` must be one of info, warning, error; found `debug`"):
        display().show_message("hello", level="debug")


def test_protocols_are_met() -> None:
    for system in (Person("Allow"), TerminalApprovals(), ScriptedApprovals("Allow")):
        assert isinstance(system, ApprovalSystem)
    assert isinstance(TerminalDisplay(), DisplaySystem)


def test_approvals_are_asked_for_by_the_documented_method() -> None:
    read, write = os.pipe()
    os.write(write, b"what?\ndeny\n")
    out = io.StringIO()
    with os.fdopen(read, "r") as stdin:
        system: ApprovalSystem = TerminalApprovals(stdin, out)
        assert ask(system) == "Deny"
        with pytest.raises(ApprovalTimeoutError):
            ask(system)
    os.close(write)
    assert out.getvalue().startswith("\nGo␇?\n[1] Allow  [2] Deny\n> [1] Allow")
    script = ScriptedApprovals("Allow", "Deny")
    assert [ask(script), ask(script), ask(script)] == ["Allow", "Deny", "Deny"]


def ask(system: ApprovalSystem) -> str:
    async def main() -> str:
        answer = system.request_approval("Go\x07?", ["Allow", "Deny"], 0.05, "deny")
        return answer if isinstance(answer, str) else await answer

    return asyncio.run(main())
