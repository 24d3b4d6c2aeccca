"""Sources of modules: an application decides where the files of a module come from."""

from __future__ import annotations

import pathlib
from typing import Any, Protocol, runtime_checkable

__all__ = ["ModuleLoadError", "ModuleNotFoundError", "ModuleSource", "ModuleSourceResolver"]


class ModuleNotFoundError(Exception):  # noqa: A001
    """A resolver does not know a module. The loader then looks for an installed one."""


class ModuleLoadError(Exception):
    """A module was found, but cannot be loaded."""


@runtime_checkable
class ModuleSource(Protocol):
    """The source of one module."""

    def resolve(self) -> pathlib.Path:
        """Returns the folder with the module's package, or the package itself."""
        ...


@runtime_checkable
class ModuleSourceResolver(Protocol):
    """Finds the source of a module by its id and the hint in the configuration (``source``).

    An application mounts one at ``module-source-resolver``. A method ``async_resolve`` with the same arguments is preferred.
    """

    def resolve(self, module_id: str, source_hint: Any = None) -> ModuleSource:
        """Returns the source. Raises :class:`ModuleNotFoundError` for an unknown module."""
        ...
