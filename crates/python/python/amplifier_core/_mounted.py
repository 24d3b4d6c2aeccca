"""The common base of mounted modules and bundles."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TypeVar

from amplifier_core._find import ModuleError

logger = logging.getLogger("amplifier_core.modules")

_Self = TypeVar("_Self", bound="Unmountable")


class Unmountable:
    """A mounted object. As an async context manager, the object is unmounted at the end of the block."""

    async def unmount(self) -> None:
        """Removes all registrations. Calling it again has no effect."""
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
            # The exception that ends the block is more important.
            logger.warning("%s", failed)
