"""What tasks do not say themselves: who made them, and, before 3.11, whether they were cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import weakref
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


#: The hooks that wait in a task, one inside another. They lead back to the task, so that they are not kept here.
_WAITING: weakref.WeakKeyDictionary[asyncio.Task[Any], weakref.WeakSet[Followed]] = weakref.WeakKeyDictionary()


def _waiting_together() -> weakref.WeakSet[Followed]:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return weakref.WeakSet() if task is None else _WAITING.setdefault(task, weakref.WeakSet())


class Followed:
    """A hook that waits, before 3.11, where nobody can tell whether its task was cancelled or what it waits for. Here the task waits for
    something that nobody else knows of, and so cannot cancel."""

    def __init__(self, coroutine: Any, yielded: Any) -> None:
        self._coroutine = coroutine
        self._yielded = yielded
        self._count = 0
        self._together: weakref.WeakSet[Followed] = weakref.WeakSet()

    def cancelling(self) -> int:
        """How often the task was cancelled."""
        return self._count

    def uncancel(self) -> int:
        """Takes one back, also for the hooks inside of which this one waits: they have seen it, too."""
        for one in {self, *self._together}:
            one._count = max(one._count - 1, 0)
        return self._count

    def __await__(self) -> Generator[Any, Any, Any]:
        self._together = _waiting_together()
        self._together.add(self)
        try:
            while True:
                error = yield from self._wait(self._yielded)
                self._yielded = self._resume(error)
        except StopIteration as stop:
            return stop.value
        finally:
            self._together.discard(self)
            close = getattr(self._coroutine, "close", None)
            if close is not None:
                close()

    def _resume(self, error: BaseException | None) -> Any:
        """What it yields next. An iterator that somebody wrote may have no more than it must."""
        if error is None:
            send = getattr(self._coroutine, "send", None)
            return next(self._coroutine) if send is None else send(None)
        throw = getattr(self._coroutine, "throw", None)
        if throw is None:
            raise error
        return throw(error)

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
