"""Calls of foreign code, with isolated failures and cancellations."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any


async def called(function: Callable[[], Any]) -> Any:
    """Calls a function, async or not."""
    given = function()
    return await apart(given) if inspect.isawaitable(given) else given


async def apart(given: Awaitable[Any]) -> Any:
    """Awaits in a separate task. A cancellation that was not requested here counts as a failure and cancels nothing else."""
    import asyncio

    task = asyncio.ensure_future(given)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise
    if task.cancelled():
        raise RuntimeError("cancelled")
    return task.result()
