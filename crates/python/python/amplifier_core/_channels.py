"""Contribution channels: data that modules provide without knowing who will ask for it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Generator
from typing import Any

logger = logging.getLogger("amplifier_core.coordinator")

#: How long one contributor may take, in seconds.
TIMEOUT = 30.0


class Contributions(list[Any]):
    """What the contributors of a channel gave, in order of registration.

    Those that answer at once are in the list already. Awaiting it asks the others, and gives a plain list of everything.
    """

    def __init__(self, channel: str, contributors: list[tuple[str, Callable[[], Any]]]) -> None:
        self._channel = channel
        self._given: list[tuple[str, Any]] = []
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
        everything = []
        for name, given in self._given:
            if inspect.isawaitable(given):
                import asyncio

                try:
                    given = await asyncio.wait_for(given, TIMEOUT)
                except Exception as error:
                    self._failed(name, error)
                    continue
            if given is not None:
                everything.append(given)
        return everything

    def _failed(self, name: str, error: Exception) -> None:
        logger.warning("Contributor '%s' of channel '%s' failed: %s", name, self._channel, error, exc_info=error)
