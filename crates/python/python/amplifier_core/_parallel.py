"""Concurrent observers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

#: The time for clean-up after the time limit, in seconds.
GRACE = 1.0


async def observe(calls: list[tuple[Awaitable[Any], float]]) -> list[tuple[str, Any]]:
    """Awaits all calls concurrently, each with its own time limit. Returns the status and the value of each."""
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
    """Cancels the running tasks and waits for their clean-up."""
    late = [task for task in tasks if not task.done()]
    for task in late:
        task.cancel()
    if late:
        done, _ = await asyncio.wait(late, timeout=GRACE)
        for task in done:
            # The exception is retrieved and ignored.
            if not task.cancelled():
                task.exception()
