"""Time limits of hooks on trio."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import trio


class TimeLimitError(Exception):
    """A hook gave no answer within its time limit."""


def is_running() -> bool:
    """Returns ``True`` within a task of trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


async def limited(awaiting: Awaitable[Any], seconds: float) -> Any:
    """Awaits a hook, and cancels it after some seconds. Waits that the hook shields last longer."""
    answer = cause = None
    with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
        try:
            answer = await awaiting
        except Exception as error:
            if not scope.cancel_called:
                raise
            cause = error
    if scope.cancel_called:
        raise TimeLimitError from cause
    return answer
