"""Observers side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

#: How long one may clean up after its time is up, in seconds.
GRACE = 1.0


async def observe(calls: list[tuple[Awaitable[Any], float]]) -> list[tuple[str, Any]]:
    """Awaits all calls at once, each with its own time limit, and says for each how it ended and with what."""
    tasks = [asyncio.ensure_future(_observed(call, limit)) for call, limit in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await _end(tasks)


async def _observed(call: Awaitable[Any], limit: float) -> tuple[str, Any]:
    running = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait({running}, timeout=limit)
    finally:
        await _end([running])
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


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancels those that still run, and lets them clean up."""
    late = [task for task in tasks if not task.done()]
    for task in late:
        task.cancel()
    if late:
        done, _ = await asyncio.wait(late, timeout=GRACE)
        for task in done:
            # What it raised is of no use to anybody, and counts as seen.
            if not task.cancelled():
                task.exception()
