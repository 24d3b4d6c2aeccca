"""Functions of asyncio for the native part."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def wake(future: asyncio.Future[None]) -> None:
    """Wakes the task that waits for the future."""
    if not future.done():
        future.set_result(None)
