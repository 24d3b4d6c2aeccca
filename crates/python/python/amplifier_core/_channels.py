"""Contribution channels: data that modules provide without knowing who will ask for it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from amplifier_core._apart import apart

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger("amplifier_core.coordinator")

#: How long one contributor may take, in seconds.
TIMEOUT = 30.0


class Contributions(list[Any]):
    """What the contributors of a channel gave, in order of registration.

    Those that answer at once are in the list already. Awaiting it asks the others, and gives a plain list of everything, as often as it
    is awaited.
    """

    def __init__(self, channel: str, contributors: list[tuple[str, Callable[[], Any]]]) -> None:
        self._channel = channel
        #: What is still to be looked at when it is awaited, and what came of the rest.
        self._given: list[tuple[str, Any]] = []
        self._everything: list[Any] = []
        self._turn: asyncio.Lock | None = None
        for name, contributor in contributors:
            try:
                given = contributor()
            except Exception as error:
                self._failed(name, error)
                continue
            self._given.append((name, given))
        super().__init__(given for _, given in self._given if given is not None and not inspect.isawaitable(given))

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        return self._all().__await__()

    async def _all(self) -> list[Any]:
        import asyncio

        if self._turn is None:
            self._turn = asyncio.Lock()
        # What is async can be awaited once: whoever comes later gets what came of it.
        async with self._turn:
            while self._given:
                name, given = self._given.pop(0)
                if inspect.isawaitable(given):
                    try:
                        given = await asyncio.wait_for(apart(given), TIMEOUT)
                    except Exception as error:
                        self._failed(name, error)
                        continue
                if given is not None:
                    self._everything.append(given)
        return list(self._everything)

    def _failed(self, name: str, error: Exception) -> None:
        logger.warning("Contributor '%s' of channel '%s' failed: %s", name, self._channel, error, exc_info=error)
