"""What modules and bundles have in common once they are mounted."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

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
        await self.unmount()
