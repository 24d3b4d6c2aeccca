"""The tasks that a hook made before it began to wait."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
from typing import Any


def mark(variable: contextvars.ContextVar[Any], value: Any) -> None:
    """Sets a variable in the contexts of all tasks that have not begun. Others may have made some of them just now: they cannot be told
    apart, and are marked, too."""
    for task in asyncio.all_tasks():
        if _has_not_begun(task):
            # A task says what its context is from 3.12 on.
            for context in gc.get_referents(task):
                if isinstance(context, contextvars.Context):
                    # One that runs now is shared with the hook.
                    with contextlib.suppress(RuntimeError):
                        context.run(variable.set, value)


def _has_not_begun(task: asyncio.Task[Any]) -> bool:
    waits_for = getattr(task, "_fut_waiter", None) or getattr(task.get_coro(), "cr_await", None)
    return waits_for is None
