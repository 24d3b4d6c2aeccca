"""The tamper-evident audit log: what is recorded, by whom, and that changing it is found out."""

from __future__ import annotations

import asyncio
import json
import pathlib
import time
from typing import Any

import pytest

from amplifier_core.audit import AuditLog, open_log, records, verify
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool


def guard(event: str, data: dict[str, Any]) -> HookResult | None:
    return HookResult(action="deny", reason="no rm") if data.get("tool_name") == "rm" else None


def kinds(folder: pathlib.Path, event: str | None = None) -> list[str]:
    return [record["kind"] for record in records(folder) if event is None or record["event"] == event]


def test_a_coordinator_records_and_the_log_is_sound(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "audit"

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:pre", guard)
        with open_log(folder) as log:
            session = SessionCoordinator(hooks, audit=log, session_id="mine", config={"audit_required": True})
            assert (await session.execute_with_hooks("tool:pre", {"tool_name": "ls"})).action == "continue"
            assert (await session.execute_with_hooks("tool:pre", {"tool_name": "rm"})).reason == "no rm"
            log.seal("mine")
            assert log.status()["failure"] is None
        assert log.closed

    asyncio.run(main())
    report = verify(folder)
    assert (report.is_sound, report.verdict, report.findings) == (True, "sound", [])
    assert report.records == len(records(folder))
    assert report.to_dict()["sealed"] == 1
    assert {record["session"] for record in records(folder) if record["event"] == "tool:pre"} == {"mine"}
    assert str(report).startswith("sound: ")


@pytest.mark.parametrize("durability", ["async", "group", "record"])
def test_a_session_is_recorded_from_its_start_to_its_seal(tmp_path: pathlib.Path, durability: str) -> None:
    folder = tmp_path / "audit"

    async def main() -> str:
        log = open_log(folder, tmp_path / "own.key", durability=durability)
        hooks = HookRegistry()
        hooks.register("tool:pre", guard)
        provider = ScriptedProvider([{"tools": [{"name": "ls"}, {"name": "rm"}]}, "Done."])
        async with Session(provider, hooks=hooks, tools=[Tool("ls", lambda input: "a.py")], audit=log) as session:
            await session.prompt("go")
            id = session.id
        log.close()
        log.close()
        return id

    session = asyncio.run(main())
    key = open_key(folder, tmp_path)
    report = verify(folder, key=key)
    assert report.is_sound
    assert (tmp_path / "own.key").exists()
    assert {record["session"] for record in records(folder) if record["event"] == "tool:post"} == {session}
    assert "seal" in kinds(folder)


def test_an_answer_that_blocked_the_loop_for_too_long_is_late(tmp_path: pathlib.Path) -> None:
    class Person:
        def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
            time.sleep(0.4)
            return "Allow"

    async def main() -> None:
        hooks = HookRegistry()
        hooks.register("tool:pre", lambda event, data: HookResult(action="ask_user", approval_timeout=0.1))
        with open_log(tmp_path / "audit") as log:
            session = SessionCoordinator(hooks, None, Person(), audit=log)
            result = await session.execute_with_hooks("tool:pre", {"tool_name": "rm"})
            assert (result.action, "timed out" in (result.reason or "")) == ("deny", True)
            await asyncio.sleep(0)

    asyncio.run(main())
    assert kinds(tmp_path / "audit").count("late_answer") == 1


def open_key(folder: pathlib.Path, place: pathlib.Path) -> str:
    with open_log(folder, place / "own.key") as log:
        return str(log.status()["public_key"])


def test_a_changed_record_is_found_out(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "audit"

    async def main() -> None:
        with open_log(folder) as log:
            session = SessionCoordinator(HookRegistry(), audit=log, session_id="mine")
            for _ in range(3):
                await session.execute_with_hooks("tool:pre", {"tool_name": "ls"})

    asyncio.run(main())
    (segment,) = folder.glob("seg-*.jsonl")
    segment.write_text(segment.read_text().replace("mine", "them", 1))
    report = verify(folder)
    assert (report.is_sound, report.verdict) == (False, "unsound")
    assert report.findings
    assert str(report).startswith("UNSOUND")


def test_a_log_that_cannot_be_used_is_an_error_in_words(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="audit log not found"):
        verify(tmp_path)
    with pytest.raises(ValueError, match="`key`"):
        verify(tmp_path, key="nonsense")
    with pytest.raises(ValueError, match="`durability`: unknown durability"):
        open_log(tmp_path / "audit", durability="never")
    log = open_log(tmp_path / "audit")
    log.close()
    with pytest.raises(RuntimeError, match="the audit log is closed"):
        SessionCoordinator(HookRegistry(), audit=log)
    # The log is there, and its key is not: a new one would not be its key.
    with pytest.raises(OSError, match="key"):
        open_log(tmp_path / "audit", tmp_path / "other.key")


def test_a_log_that_fails_denies_where_it_is_required(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path / "audit")
        session = SessionCoordinator(HookRegistry(), audit=log, config={"audit_required": True})
        assert (await session.execute_with_hooks("tool:pre", {})).action == "continue"
        log.close()
        assert (await session.execute_with_hooks("tool:pre", {})).action == "deny"

    asyncio.run(main())


def test_an_audit_of_python_records_a_session(tmp_path: pathlib.Path) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.events: list[str] = []

        def record(self, record: dict[str, Any]) -> None:
            self.events.append(record["event"])

    recorder = Recorder()

    async def main() -> None:
        async with Session(ScriptedProvider(["ok"]), audit=recorder) as session:
            await session.prompt("go")

    asyncio.run(main())
    assert {"session:start", "prompt:submit", "session:end"} <= set(recorder.events)


def test_a_change_of_the_rules_is_recorded(tmp_path: pathlib.Path) -> None:
    with AuditLog(tmp_path / "audit", tmp_path / "audit.key") as log:
        log.policy_change({"bundles": ["a.yaml"]})
        log.checkpoint()
    assert "policy_change" in kinds(tmp_path / "audit")


def test_records_are_read_however_deep_they_are(tmp_path: pathlib.Path) -> None:
    deep: Any = "here"
    for _ in range(125):
        deep = [deep]
    with open_log(tmp_path / "audit") as log:
        log.policy_change({"deep": deep})
    last = next(record for record in records(tmp_path / "audit") if record["kind"] == "policy_change")
    assert "here" in json.dumps(last)
    with pytest.raises(OSError, match="audit log not found"):
        records(tmp_path / "nowhere")
