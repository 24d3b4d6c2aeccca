"""Information that tasks do not provide: their creators and, before 3.11, their cancellations."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import weakref
from collections.abc import Generator
from typing import Any


def mark(variable: contextvars.ContextVar[Any], value: Any) -> None:
    """Sets a variable in the contexts of all tasks that have not started. Tasks of other creators cannot be distinguished and are marked
    too."""
    for task in asyncio.all_tasks():
        if _has_not_begun(task):
            # Tasks provide their context from 3.12 on.
            for context in gc.get_referents(task):
                if isinstance(context, contextvars.Context):
                    # The running context is shared with the hook.
                    with contextlib.suppress(RuntimeError):
                        context.run(variable.set, value)


def _has_not_begun(task: asyncio.Task[Any]) -> bool:
    waits_for = getattr(task, "_fut_waiter", None) or getattr(task.get_coro(), "cr_await", None)
    return waits_for is None


#: The nested waiting hooks of a task. Weak, because they refer back to the task.
_WAITING: weakref.WeakKeyDictionary[asyncio.Task[Any], weakref.WeakSet[Followed]] = weakref.WeakKeyDictionary()


def _waiting_together() -> weakref.WeakSet[Followed]:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return weakref.WeakSet() if task is None else _WAITING.setdefault(task, weakref.WeakSet())


class Followed:
    """A waiting hook before Python 3.11, where a cancellation of the task cannot be distinguished from one of the awaited future. The task
    waits for a private future that no other code can cancel."""

    def __init__(self, coroutine: Any, yielded: Any) -> None:
        self._coroutine = coroutine
        self._yielded = yielded
        self._count = 0
        self._together: weakref.WeakSet[Followed] = weakref.WeakSet()

    def cancelling(self) -> int:
        """The number of cancellations of the task."""
        return self._count

    def uncancel(self) -> int:
        """Removes a cancellation, also for the hooks around this one, which have counted it too."""
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
        """Returns the next yielded value. A custom iterator may have only the required methods."""
        if error is None:
            send = getattr(self._coroutine, "send", None)
            return next(self._coroutine) if send is None else send(None)
        throw = getattr(self._coroutine, "throw", None)
        if throw is None:
            raise error
        return throw(error)

    def _wait(self, yielded: Any) -> Generator[Any, Any, BaseException | None]:
        """Returns the exception to throw into the hook, if any."""
        try:
            if not asyncio.isfuture(yielded):
                yield from self._once(yielded)
                return None
            # The task does not wait for it.
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
            # Like a cancelled task: the awaited object may clean up first, or ignore the cancellation.
            if not future.cancel(*error.args):
                raise
        finally:
            future.remove_done_callback(wake)
