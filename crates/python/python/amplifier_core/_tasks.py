"""What tasks do not say themselves: who made them, and, before 3.11, whether they were cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
from collections.abc import Generator
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


class Followed:
    """A hook that waits, before 3.11, where nobody can tell whether its task was cancelled or what it waits for. Here the task waits for
    something that nobody else knows of, and so cannot cancel."""

    def __init__(self, coroutine: Any, yielded: Any) -> None:
        self._coroutine = coroutine
        self._yielded = yielded
        self._count = 0

    def cancelling(self) -> int:
        """How often the task was cancelled."""
        return self._count

    def uncancel(self) -> int:
        """Takes one back."""
        self._count = max(self._count - 1, 0)
        return self._count

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            while True:
                error = yield from self._wait(self._yielded)
                self._yielded = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration as stop:
            return stop.value
        finally:
            self._coroutine.close()

    def _wait(self, yielded: Any) -> Generator[Any, Any, BaseException | None]:
        """What is thrown into the hook, if anything is."""
        try:
            if not asyncio.isfuture(yielded):
                yield from self._once(yielded)
                return None
            # It is not what the task waits for.
            yielded._asyncio_future_blocking = False
            while not yielded.done():
                yield from self._until_done(yielded)
            yielded.result()
        except GeneratorExit:
            raise
        except BaseException as error:
            return error
        return None

    def _once(self, yielded: Any) -> Generator[Any, Any, None]:
        try:
            yield yielded
        except asyncio.CancelledError:
            self._count += 1
            raise

    def _until_done(self, future: asyncio.Future[Any]) -> Generator[Any, Any, None]:
        waiter: asyncio.Future[None] = future.get_loop().create_future()

        def wake(_: object) -> None:
            if not waiter.done():
                waiter.set_result(None)

        future.add_done_callback(wake)
        try:
            yield from waiter
        except asyncio.CancelledError as error:
            self._count += 1
            # As a task does that is cancelled: what it waits for may clean up first, or go on all the same.
            if not future.cancel(*error.args):
                raise
        finally:
            future.remove_done_callback(wake)
