"""Sessions that a server sees: `amplifier serve` runs, and its API is asked and told as by a program."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from amplifier_core.approval import ApprovalRequest
from amplifier_core.audit import AuditLog, open_log, records
from amplifier_core.bundles import parse
from amplifier_core.session import ScriptedProvider, Session
from sessions import UNRECORDED, calling, contents, run

REPOSITORY = pathlib.Path(__file__).parents[3]
sys.path.append(str(REPOSITORY / "clients" / "python"))

from amplifier_client import Client, ServerError  # noqa: E402

T = TypeVar("T")

#: The command, which `check` builds.
AMPLIFIER = os.environ.get("AMPLIFIER_PROGRAM", str(REPOSITORY / "target" / "debug" / "amplifier"))
ASKS = "hooks: [{ rule: true, name: guard, on: 'tool:pre', ask: 'Run it?', options: [Allow once, Allow always, Deny] }]"
SERVED = f"session: {{ approvals: server }}\n{ASKS}"
ADA = {"name": "ada", "via": "api"}


@contextlib.contextmanager
def serving(home: pathlib.Path) -> Iterator[Client]:
    command = [AMPLIFIER, "serve", "--listen", "127.0.0.1:0", "--json"]
    environment = {**os.environ, "USER": "ada", "AMPLIFIER_HOME": str(home)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=home)
    assert process.stdout is not None
    with process, process.stdout:
        try:
            assert process.stdout.readline()
            yield Client.local(home / "server")
        finally:
            process.terminate()


@pytest.fixture
def server(home: pathlib.Path) -> Iterator[Client]:
    with serving(home) as client:
        yield client


@pytest.fixture
def workspace(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.fixture
def log(home: pathlib.Path) -> Iterator[AuditLog]:
    with open_log(home / "audit") as log:
        yield log


def until(look: Callable[[], T | None]) -> T:
    """Looks until something is there."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come")


async def eventually(look: Callable[[], T | None]) -> T:
    return await asyncio.to_thread(until, look)


async def asked(server: Client) -> Any:
    return await eventually(lambda: next(iter(server.approvals()), None))


def seen(server: Client, session: str) -> Any:
    """What the server knows of a session."""
    return next((one for one in server.sessions() if one["id"] == session), {"connected": False, "state": None})


def touching(*names: str) -> ScriptedProvider:
    return ScriptedProvider([*(calling("Bash", command=f"touch {name}") for name in names), "Done."])


def session(workspace: pathlib.Path, log: AuditLog, bundle: str = SERVED, *, names: tuple[str, ...] = ("made",), **options: Any) -> Session:
    return Session(touching(*names), workspace=workspace, confirm="off", bundle=parse(bundle), audit=log, confine=False, **options)


def bodies(home: pathlib.Path, kind: str) -> list[Any]:
    return [record.get("content") or record["body"] for record in records(home / "audit") if record["kind"] == kind]


class Silent:
    """Somebody who never answers."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self.was_told = False

    async def ask(self, request: ApprovalRequest) -> str:
        self.is_asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.was_told = True
            raise
        return "Deny"


# ---- approval requests ----------------------------------------------------------------------------------------------


def test_a_question_is_shown_and_answered_at_the_server_and_the_record_says_by_whom(
    server: Client, workspace: pathlib.Path, log: AuditLog, home: pathlib.Path
) -> None:
    threads = []

    async def main() -> None:
        async with session(workspace, log) as running:
            running.hooks.register("*", lambda event, data: threads.append(threading.current_thread()))
            turn = asyncio.ensure_future(running.prompt("Make it"))
            question = await asked(server)
            assert (question["session"], question["hook"], question["prompt"]) == (running.id, "guard", "Run it?")
            assert question["workspace"] == str(workspace)
            assert question["preview"]["body"][0]["text"] == "touch made"
            assert question["digest"] and question["nonce"]
            with pytest.raises(ServerError, match="nonce|looked at"):
                await asyncio.to_thread(server.answer, {**question, "nonce": "wrong"}, "Allow once")
            assert (await asyncio.to_thread(server.answer, question, "Allow once"))["granted"]
            assert str(await turn) == "Done."
            with pytest.raises(ServerError) as second:
                await asyncio.to_thread(server.answer, question, "Deny")
            assert (second.value.status, second.value.by) == (409, ADA)

    run(main())
    assert (workspace / "made").exists()
    (decision,) = bodies(home, "approval_decision")
    assert decision["by"] == ADA
    assert bodies(home, "late_answer")[0]["by"] == ADA
    # Those of tokio run no Python.
    assert set(threads) == {threading.main_thread()}


def test_what_is_denied_at_the_server_does_not_run(server: Client, workspace: pathlib.Path, log: AuditLog, home: pathlib.Path) -> None:
    async def main() -> None:
        async with session(workspace, log, ASKS, serve=True) as running:
            turn = asyncio.ensure_future(running.prompt("Make it"))
            assert not (await asyncio.to_thread(server.answer, await asked(server), "Deny"))["granted"]
            assert (await turn).answered
            assert "User denied" in contents(running, "tool")[0]

    run(main())
    assert not (workspace / "made").exists()
    (decision,) = bodies(home, "approval_decision")
    assert decision["by"] == ADA


def test_the_first_answer_counts_of_the_server_and_of_the_session_s_own_approval_system(
    server: Client, workspace: pathlib.Path, log: AuditLog
) -> None:
    class Quick:
        async def ask(self, request: ApprovalRequest) -> str:
            await eventually(server.approvals)
            return "Deny"

    async def main() -> None:
        silent = Silent()
        async with session(workspace, log, approval_system=silent) as running:
            turn = asyncio.ensure_future(running.prompt("Make it"))
            question = await asked(server)
            await silent.is_asked.wait()
            assert (await asyncio.to_thread(server.answer, question, "Allow once"))["granted"]
            await turn
            assert silent.was_told and (workspace / "made").exists()
        async with session(workspace, log, names=("other",), approval_system=Quick()) as running:
            await running.prompt("Make it")
            assert not (workspace / "other").exists()
            await eventually(lambda: not server.approvals())

    run(main())


def test_the_server_is_asked_before_an_approval_system_that_blocks_the_loop(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    class Blocking:
        def ask(self, request: ApprovalRequest) -> str:
            (question,) = until(server.approvals)
            assert question["prompt"] == "Run it?"
            return "Allow once"

    async def main() -> None:
        async with session(workspace, log, approval_system=Blocking()) as running:
            await running.prompt("Make it")

    run(main())
    assert (workspace / "made").exists()


def test_no_question_waits_longer_than_the_bundle_says(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        bundle = f"session: {{ approvals: server, approval_timeout: 0.2 }}\n{ASKS}"
        async with session(workspace, log, bundle) as running:
            await running.prompt("Make it")
            assert "timed out" in contents(running, "tool")[0]

    run(main())


def test_a_question_when_the_session_starts_is_answered_at_the_server(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        running = session(workspace, log, SERVED.replace("tool:pre", "session:start"))
        starting = asyncio.ensure_future(running.start())
        question = await asked(server)
        await asyncio.to_thread(server.answer, question, "Deny")
        with pytest.raises(Exception, match="User denied"):
            await starting
        await eventually(lambda: not seen(server, question["session"])["connected"])

    run(main())


# ---- rules ----------------------------------------------------------------------------------------------------------


def test_allow_always_counts_for_the_session_and_is_taken_back_at_the_server(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        async with session(workspace, log, names=("one", "two", "three")) as running:
            turn = asyncio.ensure_future(running.prompt("Make them"))
            await asyncio.to_thread(server.answer, await asked(server), "Allow always")
            await turn
            assert (workspace / "three").exists()
            (rule,) = await eventually(lambda: server.rules()["rules"])
            assert (rule["scope"], rule["session"]) == ("session", running.id)
            await asyncio.to_thread(server.revoke, rule["id"])
            using = asyncio.ensure_future(running.execute_tool("Bash", {"command": "true"}))
            await asyncio.to_thread(server.answer, await asked(server), "Deny")
            assert not (await using).success

    run(main())


@pytest.mark.parametrize("scope", ["session", "project", "user"])
def test_rules_that_are_given_at_the_server_count_at_once(
    server: Client, workspace: pathlib.Path, log: AuditLog, home: pathlib.Path, scope: str
) -> None:
    async def main() -> None:
        async with session(workspace, log) as running:
            await eventually(lambda: seen(server, running.id)["connected"])
            of = {"session": {"session": running.id}, "project": {"project": str(workspace)}, "user": {}}[scope]
            await asyncio.to_thread(lambda: server.add_rule(scope=scope, hook="guard", pattern="*", decision="allow", **of))
            assert (await running.prompt("Make it")).answered
            assert (workspace / "made").exists()

    run(main())
    (change,) = bodies(home, "policy_change")
    assert "ada" in str(change)


# ---- commands -------------------------------------------------------------------------------------------------------


def test_the_server_sees_a_session_from_its_start_to_its_end(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        async with session(workspace, log, "session: { approvals: server }") as running:
            await eventually(lambda: seen(server, running.id)["connected"])
            known = seen(server, running.id)
            assert (known["workspace"], known["pid"], known["takes_prompts"]) == (str(workspace), os.getpid(), False)
            await running.prompt("Make it")
            await eventually(lambda: seen(server, running.id)["state"] == "idle")
        await eventually(lambda: not seen(server, running.id)["connected"])
        await eventually(lambda: seen(server, running.id)["state"] == "ended")
        assert seen(server, running.id)["ended"] == "complete"

    run(main())


def test_a_turn_is_stopped_at_the_server(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        provider = ScriptedProvider([calling("Bash", command="touch begun; sleep 30"), "Done.", "Again."])
        async with Session(provider, workspace=workspace, confirm="off", audit=log, confine=False, serve=True) as running:
            turn = asyncio.ensure_future(running.prompt("Wait"))
            await eventually((workspace / "begun").exists)
            for _ in range(2):
                await asyncio.to_thread(server.interrupt, running.id)
            assert (await turn).end == "interrupted"
            assert (await running.prompt("Go on")).answered

    run(main())


def test_a_session_is_ended_at_the_server_also_in_the_middle_of_a_turn(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        provider = ScriptedProvider([calling("Bash", command="touch begun; sleep 30"), "Done."])
        running = Session(provider, workspace=workspace, confirm="off", audit=log, confine=False, serve=True)
        turn = asyncio.ensure_future(running.prompt("Wait"))
        await eventually((workspace / "begun").exists)
        await asyncio.to_thread(server.end, running.id)
        assert (await turn).end == "interrupted"
        await eventually(lambda: seen(server, running.id)["state"] == "ended")
        assert seen(server, running.id)["ended"] == "user_exit"
        with pytest.raises(RuntimeError, match="the session has ended"):
            await running.prompt("Go on")
        await running.end()

    run(main())


def test_a_session_that_starts_is_ended_at_the_server(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        running = session(workspace, log, SERVED.replace("tool:pre", "session:start"))
        starting = asyncio.ensure_future(running.start())
        question = await asked(server)
        await asyncio.to_thread(server.end, question["session"])
        with pytest.raises(RuntimeError, match="interrupted|stopped"):
            await starting
        await eventually(lambda: not server.approvals())

    run(main())


def test_a_session_whose_loop_stands_still_has_ended_when_it_is_used_next(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    loop = asyncio.new_event_loop()
    try:
        running = Session(touching(), workspace=workspace, confirm="off", audit=log, confine=False, serve=True)
        loop.run_until_complete(running.start())
        until(lambda: seen(server, running.id)["connected"])
        server.end(running.id)
        until(lambda: running._server is not None and running._server.has_ended)
        with pytest.raises(RuntimeError, match="the session has ended"):
            loop.run_until_complete(running.prompt("Go on"))
        until(lambda: seen(server, running.id)["state"] == "ended")
        assert seen(server, running.id)["ended"] == "user_exit"
    finally:
        loop.close()


def test_a_session_that_nobody_has_any_more_leaves_the_server(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        running = session(workspace, log)
        await running.start()
        id, gone = running.id, weakref.ref(running)
        await eventually(lambda: seen(server, id)["connected"])
        del running
        gc.collect()
        assert gone() is None
        await eventually(lambda: not seen(server, id)["connected"])

    run(main())


def test_a_bundle_is_reloaded_at_the_server(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    bundle = workspace.parent / "bundle.yaml"
    bundle.write_text(SERVED)

    def results() -> list[Any]:
        return server.reload()["results"]

    async def main() -> None:
        async with Session(touching(), workspace=workspace, confirm="off", bundle=bundle, audit=log, confine=False, follow=False) as running:
            await eventually(lambda: seen(server, running.id)["connected"])
            assert [one["result"] for one in await asyncio.to_thread(results)] == ["unchanged"]
            bundle.write_text(SERVED.replace("guard", "other"))
            assert [one["result"] for one in await asyncio.to_thread(results)] == ["changed"]
            assert "other" in str(running.hooks.list_handlers("tool:pre"))
            bundle.write_text("hooks: [")
            (refused,) = await asyncio.to_thread(results)
            assert refused["result"] == "refused" and "bundle.yaml" in refused["message"]
        async with Session(touching(), workspace=workspace, confirm="off", audit=log, confine=False, serve=True) as running:
            await eventually(lambda: seen(server, running.id)["connected"])
            assert [one["result"] for one in await asyncio.to_thread(results)] == ["unchanged"]

    run(main())


# ---- servers that are not there -------------------------------------------------------------------------------------


def test_without_a_server_a_warning_says_so_once_and_the_session_asks_here(
    home: pathlib.Path, workspace: pathlib.Path, log: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    class Agrees:
        async def ask(self, request: ApprovalRequest) -> str:
            return "Allow once"

    async def main() -> None:
        async with session(workspace, log, names=("one", "two"), approval_system=Agrees()) as running:
            await running.prompt("Make them")

    run(main())
    assert (workspace / "two").exists()
    (warning,) = caplog.records
    assert warning.getMessage() == "no server is running, so approval requests appear only here; to start one: amplifier serve"


def test_a_server_that_is_started_later_gets_the_question_that_waits_for_it(
    home: pathlib.Path, workspace: pathlib.Path, log: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with session(workspace, log) as running:
            turn = asyncio.ensure_future(running.prompt("Make it"))
            with serving(home) as server:
                await asyncio.to_thread(server.answer, await asked(server), "Allow once")
                await turn

    run(main())
    assert (workspace / "made").exists()
    (warning,) = caplog.records
    assert "approval requests wait for one within their time limit" in warning.getMessage()


def test_the_home_of_the_session_says_which_server_sees_it(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    other = workspace.parent / "home"
    other.mkdir()

    async def main() -> None:
        async with session(workspace, log, home=other) as running:
            turn = asyncio.ensure_future(running.prompt("Make it"))
            with serving(other) as chosen:
                question = await asked(chosen)
                assert not server.approvals() and not seen(server, running.id)["connected"]
                await asyncio.to_thread(chosen.answer, question, "Allow once")
                await turn

    run(main())


# ---- what a server needs --------------------------------------------------------------------------------------------


def test_a_session_that_no_server_can_see_is_a_mistake(workspace: pathlib.Path, log: AuditLog) -> None:
    with pytest.raises(ValueError, match="^a session with a server needs an `AuditLog` as `audit`, .*; or set `serve=False`$"):
        Session(touching(), workspace=workspace, confirm="off", bundle=parse(SERVED), config=UNRECORDED)
    with pytest.raises(ValueError, match="^a session with a server needs a home, in which the server is: leave out `home=False`"):
        session(workspace, log, home=False)
    with pytest.raises(ValueError, match="^`serve` has no effect in the mode `deny`; leave out one of them$"):
        session(workspace, log, "session: { mode: deny }", serve=True)


def test_a_program_can_do_without_the_server_of_its_bundle(server: Client, workspace: pathlib.Path, log: AuditLog) -> None:
    async def main() -> None:
        async with session(workspace, log, serve=False) as running:
            await running.prompt("Make it")
            assert not seen(server, running.id)["connected"]

    run(main())
    assert not (workspace / "made").exists()
