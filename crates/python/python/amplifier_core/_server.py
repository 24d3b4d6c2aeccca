"""Commands of a server for a session: they come on another thread, and are carried out on the loop of the session."""

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
    """Carries out what the server wants of a session."""

    def __init__(self, session: Session) -> None:
        # Weak: whoever waits for commands does not keep the session.
        self._session = weakref.ref(session)
        self._loop: asyncio.AbstractEventLoop | None = None
        #: A loop does not keep its tasks alive.
        self._tasks: set[asyncio.Future[None]] = set()
        #: Whether the server has ended the session.
        self.has_ended = False

    def follow(self) -> None:
        """From now on, commands are carried out on the running loop."""
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """Ends the session. If its loop does not run any more, whoever uses the session next ends it."""
        self.has_ended = True
        self._begin(_end)

    def reload(self, reply: Callable[[str, str | None], None]) -> None:
        """Reloads the bundle, and calls ``reply`` with the result (``"changed"``, ``"unchanged"``, ``"refused"``, ``"no_answer"``) and a message."""
        if not self._begin(lambda session: _reload(session, reply)):
            reply("no_answer", "the event loop of the session is closed")

    def _begin(self, work: Callable[[Session], Coroutine[Any, Any, None]]) -> bool:
        """Begins something on the loop of the session; says whether there is one."""

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
            # It was closed meanwhile.
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
