"""What the tests of sessions share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from amplifier_core.session import Session

T = TypeVar("T")

#: The settings of a session with a bundle that keeps no record.
UNRECORDED = {"audit_required": False}


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, 60))


def calling(name: str, **input: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": input}]}


def contents(session: Session, role: str) -> list[str]:
    return [message["content"] for message in session.context.get_messages() if message["role"] == role]
