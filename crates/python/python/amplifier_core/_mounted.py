"""What modules and bundles have in common once they are mounted."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TypeVar

from amplifier_core._find import ModuleError

logger = logging.getLogger("amplifier_core.modules")

_Self = TypeVar("_Self", bound="Unmountable")


class Unmountable:
    """Something that is mounted. As an async context manager, it is unmounted at the end of the block."""

    async def unmount(self) -> None:
        """Takes everything away. Doing it twice is harmless."""
        raise NotImplementedError

    async def __aenter__(self: _Self) -> _Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.unmount()
        except ModuleError as failed:
            if error is None:
                raise
            # What ends the block says more.
            logger.warning("%s", failed)
