"""Observed sessions in the console: their approval requests are answered there, and it can stop them."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from module_sessions import begun, note, notes, plan, told
from sessions import run
from test_server import ADA, asked, bodies, eventually, seen, serving

from amplifier_client import Client
from amplifier_core import AmplifierSession, observe

ASKS = "hooks: [{ rule: guard, on: 'tool:pre', ask: 'Keep it?', options: [Allow once, Deny] }]"


@pytest.fixture
def server(home: pathlib.Path) -> Iterator[Client]:
    (home / "bundle.yaml").write_text(ASKS)
    with serving(home) as client:
        yield client


async def observed(*script: Any) -> AmplifierSession:
    session = await begun(plan(*script), session_id="observed")
    await observe(session, serve=True)
    return session


def test_a_request_is_answered_in_the_console(server: Client, home: pathlib.Path) -> None:
    async def main() -> None:
        session = await observed(note("one"), note("two"), "Done.")
        turn = asyncio.ensure_future(session.execute("Keep it"))
        for answer in ("Allow once", "Deny"):
            question = await asked(server)
            assert (question["session"], question["prompt"]) == ("observed", "Keep it?")
            client = await eventually(lambda: seen(server, "observed").get("client"))
            assert client["name"] == "microsoft-amplifier"
            await asyncio.to_thread(server.answer, question, answer)
            await eventually(lambda: not server.approvals() or server.approvals()[0]["id"] != question["id"])
        assert await turn == "Done."
        assert notes(session) == ["one"]
        await session.cleanup()
        await eventually(lambda: not seen(server, "observed")["connected"])

    run(main())
    assert [(body["granted"], body["by"]) for body in bodies(home, "approval_decision")] == [(True, ADA), (False, ADA)]


def test_the_console_stops_a_turn_and_ends_a_session(server: Client, home: pathlib.Path) -> None:
    async def main() -> None:
        session = await observed("Hello.", note("one"), "Done.")
        assert await session.execute("Hello") == "Hello."
        await eventually(lambda: seen(server, "observed")["connected"])
        await asyncio.to_thread(server.interrupt, "observed")
        await eventually(lambda: session.coordinator.cancellation.is_cancelled)
        session.coordinator.cancellation.reset()
        await asyncio.to_thread(server.end, "observed")
        await eventually(lambda: session.coordinator.cancellation.is_immediate)
        session.coordinator.cancellation.reset()
        assert await session.execute("Keep it") == "denied: the session was ended in the console"
        assert (told(session), notes(session)) == ([], [])
        await session.cleanup()

    run(main())
