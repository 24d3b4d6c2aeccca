"""Sessions ask before they act, as the command does."""

from __future__ import annotations

import asyncio
import os
import pathlib
import pty
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from amplifier_core.approval import ScriptedApprovals
from amplifier_core.bundles import parse
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool
from sessions import UNRECORDED, run

WRITE = ("Write", {"file_path": "a.txt", "content": "one\n"})
NOBODY = (
    "Denied by hook confirm: Approval failed (no approval system and no terminal to ask on; give the `Session` an `approval_system`, "
    'or `confirm="off"` to run everything without approval): '
)


async def asked_for(session: Session, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """The prompts of approval requests for some calls, all of which are allowed."""
    async with session:
        for name, input in calls:
            used = await session.execute_tool(name, input)
            assert used.success, used.error
    return [request.prompt for request in session.approval_system.requests]


def test_a_session_with_a_workspace_asks_and_shows_what_would_happen(tmp_path: pathlib.Path) -> None:
    person = ScriptedApprovals("Deny", "Allow once")

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path, approval_system=person) as session:
            denied = await session.execute_tool(*WRITE)
            assert (denied.success, denied.error) == (False, "Denied by hook confirm: User denied: Write to `a.txt`?")
            assert not (tmp_path / "a.txt").exists()
            assert (await session.execute_tool(*WRITE)).success

    run(main())
    assert (tmp_path / "a.txt").read_text() == "one\n"
    request = person.requests[0]
    assert (request.hook, request.event, request.prompt) == ("confirm", "tool:pre", "Write to `a.txt`?")
    assert [row["text"] for row in request.preview["body"] if row["kind"] == "added"] == ["one"]


def test_without_a_terminal_and_an_approval_system_changes_are_denied(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path) as session:
            assert (await session.execute_tool(*WRITE)).error == NOBODY + "Write to `a.txt`?"
            assert (await session.execute_tool("Bash", {"command": "touch b"})).error == NOBODY + "Run `touch b`?"
            assert (await session.execute_tool("Glob", {"pattern": "*"})).success

    run(main())
    assert list(tmp_path.iterdir()) == []


def test_a_request_of_another_hook_does_not_advise_to_switch_confirm_off() -> None:
    hooks = HookRegistry()
    hooks.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_prompt="Go?"), name="guard")

    async def main() -> None:
        async with Session(ScriptedProvider([]), hooks=hooks, tools=[Tool("Mail", print)]) as session:
            error = (await session.execute_tool("Mail")).error or ""
            assert error.startswith("Denied by hook guard: Approval failed (no approval system") and "confirm" not in error

    run(main())


@pytest.mark.parametrize(
    ("confirm", "prompts"),
    [
        (None, ["Run `ls`?", "Run `touch b`?", "Write to `a.txt`?", "Use the tool `Mail`?"]),
        ("all", ["Run `ls`?", "Run `touch b`?", "Write to `a.txt`?", "Use the tool `Mail`?"]),
        ("writes", ["Run `touch b`?", "Write to `a.txt`?", "Use the tool `Mail`?"]),
        ("commands", ["Run `touch b`?", "Use the tool `Mail`?"]),
        ("off", []),
    ],
)
def test_the_setting_names_the_operations(tmp_path: pathlib.Path, confirm: Any, prompts: list[str]) -> None:
    calls = (("Bash", {"command": "ls"}), ("Bash", {"command": "touch b"}), WRITE, ("Mail", {}))
    tools = [Tool("Mail", lambda input: "sent")]
    person = ScriptedApprovals("Allow once")
    session = Session(ScriptedProvider([]), workspace=tmp_path, tools=tools, confirm=confirm, approval_system=person)
    assert run(asked_for(session, *calls)) == prompts


def test_a_session_with_tools_of_the_program_alone_asks_only_if_told_to() -> None:
    tools = [Tool("Mail", lambda input: "sent")]
    for settings, prompts in (({}, []), ({"confirm": "all"}, ["Use the tool `Mail`?"])):
        session = Session(ScriptedProvider([]), tools=tools, approval_system=ScriptedApprovals("Allow once"), **settings)  # type: ignore[arg-type]
        assert run(asked_for(session, ("Mail", {}))) == prompts


def test_a_bundle_can_relax_it_and_an_argument_takes_precedence(tmp_path: pathlib.Path) -> None:
    bundle = parse("session: { confirm: 'off' }")
    for settings, prompts in (({}, []), ({"confirm": "writes"}, ["Write to `a.txt`?"])):
        session = Session(
            ScriptedProvider([]),
            workspace=tmp_path,
            bundle=bundle,
            config=UNRECORDED,
            approval_system=ScriptedApprovals("Allow once"),
            **settings,  # type: ignore[arg-type]
        )
        assert run(asked_for(session, WRITE)) == prompts


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confirm": "of"}, "`confirm`: unknown value of `confirm` `of`"),
        ({"confirm": ""}, "`confirm`: unknown value"),
        ({"mode": "yolo"}, "`mode`: unknown approval mode `yolo`"),
        ({"mode": "accept-edits", "bundle": parse("session: { forbid_modes: [accept-edits] }")}, "mode `accept-edits` is forbidden"),
    ],
)
def test_an_invalid_setting_is_an_error(tmp_path: pathlib.Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        Session(ScriptedProvider([]), workspace=tmp_path, config=UNRECORDED, **settings)
    assert str(raised.value).startswith(message)


def test_plan_denies_changes_without_asking(tmp_path: pathlib.Path) -> None:
    person = ScriptedApprovals("Allow once")

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path, mode="plan", approval_system=person) as session:
            error = (await session.execute_tool(*WRITE)).error or ""
            assert error.startswith("Denied by hook plan: plan mode: `Write` may change something")
            assert (await session.execute_tool("Glob", {"pattern": "*"})).success

    run(main())
    assert person.requests == []


def test_accept_edits_accepts_writes_that_git_can_undo(tmp_path: pathlib.Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    session = Session(ScriptedProvider([]), workspace=tmp_path, mode="accept-edits", approval_system=ScriptedApprovals("Allow once"))
    assert run(asked_for(session, WRITE, ("Bash", {"command": "cp a.txt b"}))) == ["Run `cp a.txt b`?"]


def test_deny_asks_nobody(tmp_path: pathlib.Path) -> None:
    person = ScriptedApprovals("Allow once")

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path, mode="deny", approval_system=person) as session:
            assert "because the mode is `deny`" in ((await session.execute_tool(*WRITE)).error or "")

    run(main())
    assert person.requests == []


def test_the_start_of_a_session_says_how_it_asks(tmp_path: pathlib.Path) -> None:
    hooks = HookRegistry()
    plans: list[dict[str, Any]] = []
    hooks.register("session:start", lambda event, data: plans.append(data["mount_plan"]))

    async def main() -> None:
        async with Session(ScriptedProvider([]), hooks=hooks, workspace=tmp_path, confirm="writes", mode="accept-edits"):
            pass

    run(main())
    assert (plans[0]["confirm"], plans[0]["mode"]) == ("writes", "accept-edits")


def test_sessions_that_share_a_registry_ask_for_themselves_alone(tmp_path: pathlib.Path) -> None:
    hooks = HookRegistry()
    people = ScriptedApprovals("Allow once"), ScriptedApprovals("Allow once")
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()

    async def main() -> None:
        sessions = [
            Session(ScriptedProvider([]), hooks=hooks, workspace=folder, approval_system=person)
            for folder, person in zip(folders, people)
        ]
        free = Session(ScriptedProvider([]), hooks=hooks, workspace=tmp_path, confirm="off")
        planning = Session(ScriptedProvider([]), hooks=hooks, workspace=tmp_path, mode="plan", approval_system=ScriptedApprovals("Deny"))
        async with sessions[0], sessions[1], free, planning:
            assert (await sessions[0].execute_tool(*WRITE)).success
            assert (await sessions[1].execute_tool("Write", {"file_path": str(folders[1] / "b"), "content": ""})).success
            assert (await free.execute_tool(*WRITE)).success
            assert not (await planning.execute_tool(*WRITE)).success
        assert hooks.list_handlers() == {}

    run(main())
    assert [[request.prompt for request in person.requests] for person in people] == [["Write to `a.txt`?"], ["Write to `b`?"]]


def test_a_session_in_a_terminal_asks_there(tmp_path: pathlib.Path) -> None:
    program = f"""
        import asyncio
        from amplifier_core.session import ScriptedProvider, Session

        async def main():
            async with Session(ScriptedProvider([]), workspace={str(tmp_path)!r}) as session:
                print("success:", (await session.execute_tool("Write", {{"file_path": "a.txt", "content": "one"}})).success)

        asyncio.run(main())
        """
    own, other = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdin=other, stdout=other, stderr=other) as started:
        os.close(other)
        shown = b""
        while b"> " not in shown:
            shown += os.read(own, 4096)
        os.write(own, b"1\n")
        # The end of a terminal is an error on Linux.
        while piece := _read(own):
            shown += piece
    os.close(own)
    assert b"Write to `a.txt`?" in shown and b"success: True" in shown, shown
    assert (tmp_path / "a.txt").read_text() == "one"


def _read(file: int) -> bytes:
    try:
        return os.read(file, 4096)
    except OSError:
        return b""


def test_a_session_that_cannot_start_leaves_no_hooks(tmp_path: pathlib.Path) -> None:
    hooks = HookRegistry()
    door = hooks.register("session:start", lambda event, data: HookResult(action="deny", reason="closed"))

    async def main() -> None:
        with pytest.raises(Exception, match="closed"):
            await Session(ScriptedProvider([]), hooks=hooks, workspace=tmp_path).start()

    asyncio.run(main())
    door()
    assert hooks.list_handlers() == {}
