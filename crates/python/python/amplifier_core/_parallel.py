"""Observers side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def observe(calls: list[tuple[Awaitable[Any], float]]) -> list[tuple[str, Any]]:
    """Awaits all calls at once, each with its own time limit, and says for each how it ended and with what."""
    tasks = [asyncio.ensure_future(_observed(call, limit)) for call, limit in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _observed(call: Awaitable[Any], limit: float) -> tuple[str, Any]:
    running = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait({running}, timeout=limit)
    finally:
        # A task that is done does not mind.
        running.cancel()
    if not done:
        return ("timed_out", None)
    if running.cancelled():
        return ("failed", asyncio.CancelledError())
    error = running.exception()
    if error is None:
        return ("answered", running.result())
    if isinstance(error, Exception):
        return ("failed", error)
    raise error
