"""Time limits of hooks on trio."""

from __future__ import annotations

import types
from collections.abc import Generator
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


@types.coroutine
def limited(awaiting: Any, yielded: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Continues a hook that has started to wait, and cancels it after some seconds. Waits that the hook shields last longer."""
    answer = cause = None
    with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
        try:
            while True:
                try:
                    sent = yield yielded
                except GeneratorExit:
                    awaiting.close()
                    raise
                except BaseException as error:
                    yielded = awaiting.throw(error)
                else:
                    yielded = next(awaiting) if sent is None else awaiting.send(sent)
        except StopIteration as stop:
            answer = stop.value
        except Exception as error:
            if not scope.cancel_called:
                raise
            cause = error
    if scope.cancel_called:
        raise TimeLimitError from cause
    return answer
