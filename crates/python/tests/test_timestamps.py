"""Timestamps are texts that every supported version of Python reads."""

from __future__ import annotations

import asyncio
import datetime
import pathlib
from typing import Any

from amplifier_core.approval import ScriptedApprovals
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session
from sessions import run


def check(data: dict[str, Any]) -> None:
    read = datetime.datetime.fromisoformat(data["timestamp"])
    assert read.utcoffset() == datetime.timedelta(0)
    assert abs(datetime.datetime.now(datetime.timezone.utc) - read) < datetime.timedelta(minutes=1)


def test_of_emissions() -> None:
    registry = HookRegistry()
    seen: list[dict[str, Any]] = []
    registry.register("tool:pre", lambda event, data: seen.append(data))
    check(asyncio.run(registry.emit("tool:pre", {})).data or {})
    check(seen[0])


def test_a_hook_may_set_another_time_in_both_forms() -> None:
    for time in ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00.5+00:00"):
        registry = HookRegistry()
        changed = HookResult(action="modify", data={"timestamp": time})
        registry.register("tool:pre", lambda event, data: changed)
        assert (asyncio.run(registry.emit("tool:pre", {})).data or {})["timestamp"] == time


def test_of_sessions_their_injections_and_their_requests(tmp_path: pathlib.Path) -> None:
    hooks = HookRegistry()
    seen: list[dict[str, Any]] = []
    hooks.register("tool:pre", lambda event, data: seen.append(data))
    hooks.register("tool:post", lambda event, data: HookResult(action="inject_context", context_injection="mind it"))
    person = ScriptedApprovals("Allow once")

    async def main() -> None:
        async with Session(ScriptedProvider([]), hooks=hooks, workspace=tmp_path, approval_system=person) as session:
            assert (await session.execute_tool("Bash", {"command": "true"})).success
            (injected,) = [message for message in session.context.get_messages() if message["role"] == "system"]
            check(injected["metadata"])

    run(main())
    check(seen[0])
    check(person.requests[0].data)
