"""Commands from a server for a session: they arrive on another thread and run on the loop of the session."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amplifier_core.session import Session

logger = logging.getLogger("amplifier_core.session")


class ServerCommands:
    """Runs the commands of the server for a session."""

    def __init__(self, session: Session) -> None:
        # Weak: the commands do not keep the session alive.
        self._session = weakref.ref(session)
        self._loop: asyncio.AbstractEventLoop | None = None
        #: References to tasks, because a loop does not keep them alive.
        self._tasks: set[asyncio.Future[None]] = set()
        #: ``True`` if the server has ended the session.
        self.has_ended = False

    def follow(self) -> None:
        """Makes commands run on the running loop."""
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """Ends the session. If its loop is closed, the next use of the session ends it."""
        self.has_ended = True
        self._begin(_end)

    def reload(self, reply: Callable[[str, str | None], None]) -> None:
        """Reloads the bundle, and calls ``reply`` with the result (``"changed"``, ``"unchanged"``, ``"refused"``, ``"no_answer"``) and a message."""
        if not self._begin(lambda session: _reload(session, reply)):
            reply("no_answer", "the event loop of the session is closed")

    def _begin(self, work: Callable[[Session], Coroutine[Any, Any, None]]) -> bool:
        """Starts a task on the loop of the session. Returns ``False`` without a loop."""

        def begin() -> None:
            session = self._session()
            if session is not None:
                task = asyncio.ensure_future(work(session))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        if self._loop is None or self._loop.is_closed():
            return False
        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:
            # The loop was closed meanwhile.
            return False
        return True


async def _end(session: Session) -> None:
    try:
        await session._end_when_started("user_exit")
    except Exception as error:
        logger.error("the server cannot end the session: %s: %s", type(error).__name__, error, exc_info=error)


async def _reload(session: Session, reply: Callable[[str, str | None], None]) -> None:
    if session._mounted is None:
        return reply("unchanged", None)
    try:
        came = await session.reload()
    except Exception as error:
        reply("refused", str(error))
    else:
        reply("refused" if came.error is not None else "changed" if came.changed else "unchanged", came.error)
