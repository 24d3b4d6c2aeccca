"""Modules: packages or files with ``mount(coordinator, config)``, found by name, import path or file, mounted and unmounted.

A package offers a module with an entry point of the group ``amplifier.modules``::

    [project.entry-points."amplifier.modules"]
    hooks-path-guard = "amplifier_module_path_guard:mount"

``mount`` may be async or not. It registers hooks and returns a function that cleans up (async or not), or ``None``.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from amplifier_core._apart import called
from amplifier_core._find import GROUP, ModuleError, available, find
from amplifier_core._mounted import Unmountable
from amplifier_core._scope import Registration, Scope

__all__ = ["GROUP", "Module", "ModuleError", "Mounted", "Registration", "available", "load", "mount"]

logger = logging.getLogger("amplifier_core.modules")


class Module:
    """A loaded module, which can be mounted any number of times."""

    __slots__ = ("function", "name", "origin")

    def __init__(self, name: str, function: Callable[..., Any], origin: str) -> None:
        self.name = name
        #: The ``mount`` function.
        self.function = function
        #: A description of its source.
        self.origin = origin

    async def mount(
        self,
        coordinator: Any,
        config: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> Mounted:
        """Mounts the module. On failure or cancellation, everything it registered is removed.

        The module gets a view of the coordinator that records its registrations, and its own copy of the configuration. ``settings``
        (``priority``, ``name``, ``role``, ``on_error``, ``timeout``) override those of its hooks; ``defaults`` apply where the module
        sets none.
        """
        if not hasattr(coordinator, "hooks"):
            raise ModuleError(f"module `{self.name}` needs a coordinator with `hooks`; found `{type(coordinator).__name__}`")
        self._check_signature()
        mounted = Mounted(self.name, Scope(coordinator, dict(settings or {}), dict(defaults or {})))
        try:
            given = self.function(mounted._scope, dict(config or {}))
            if inspect.isawaitable(given):
                given = await given
        except BaseException as error:
            try:
                await mounted.unmount()
            except ModuleError as second:  # The first error says more.
                logger.warning("%s", second)
            # A module does not end the program that mounts it.
            if isinstance(error, (Exception, SystemExit)):
                raise ModuleError(f"module `{self.name}` cannot be mounted: {type(error).__name__}: {error}") from error
            raise
        mounted.returned = given
        if callable(given):
            mounted._cleanup = given
        elif given is not None:
            kind = type(given).__name__
            logger.warning("`mount` of module `%s` returned a `%s`; return a clean-up function or None", self.name, kind)
        return mounted

    def _check_signature(self) -> None:
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # Some builtins have none.
            return
        try:
            signature.bind(None, {})
        except TypeError:
            raise ModuleError(
                f"`mount` of module `{self.name}` takes `{signature}`; it is called as `mount(coordinator, config)`"
            ) from None

    def __repr__(self) -> str:
        return f"<Module {self.name} from {self.origin}>"


class Mounted(Unmountable):
    """A mounted module. As an async context manager, the module is unmounted at the end of the block."""

    def __init__(self, name: str, scope: Scope) -> None:
        self.name = name
        #: The return value of ``mount``.
        self.returned: Any = None
        self._scope = scope
        self._cleanup: Callable[[], Any] | None = None

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The hooks registered by the module so far."""
        return tuple(self._scope.hooks.registrations)

    def renew(self, after: Mounted | None = None) -> None:
        """Registers the hooks again, after all hooks registered since. Hooks with default names keep the names of the previous version,
        because remembered answers are stored by name."""
        names: dict[str | None, list[str]] = {}
        for earlier in () if after is None else after.registrations:
            names.setdefault(earlier.default, []).append(earlier.name)
        for registration in self._scope.hooks.registrations:
            known = names.get(registration.default) if registration.default is not None else None
            registration.renew(known.pop(0) if known else None)

    def withdraw(self) -> None:
        """Unregisters the hooks permanently; the module stays mounted otherwise."""
        self._scope.hooks.is_closed = True
        for registration in self._scope.hooks.registrations:
            registration()

    async def cleanup(self) -> None:
        """Calls the function returned by ``mount``, once. :meth:`unmount` also does this."""
        cleanup, self._cleanup = self._cleanup, None
        if cleanup is not None:
            await called(cleanup)

    async def unmount(self) -> None:
        """Cleans up the module, then removes its remaining registrations. Calling it again has no effect.

        If the module fails to clean up, its registrations are removed anyway, and a :class:`ModuleError` is raised.
        """
        self._scope.hooks.is_closed = True
        failed: Exception | None = None
        try:
            await self.cleanup()
        except Exception as error:
            failed = error
        finally:
            # Also after a cancellation; the next call continues.
            while (cleanup := self._scope.next_cleanup()) is not None:
                try:
                    await called(cleanup)
                except Exception as error:
                    failed = failed or error
        if failed is not None:
            text = f"module `{self.name}` failed to clean up: {type(failed).__name__}: {failed}"
            raise ModuleError(text) from failed

    def __repr__(self) -> str:
        return f"<Mounted {self.name} with {len(self.registrations)} hooks>"


def load(name: str | os.PathLike[str] | ModuleType) -> Module:
    """Finds a module: by the name of an entry point, by import path (``package.module`` or ``package.module:function``), by file
    or folder (a path object, or text with a slash or ``.py``), or an imported one itself."""
    return Module(*find(name))


async def mount(
    coordinator: Any, name: str | os.PathLike[str] | ModuleType | Module, config: Mapping[str, Any] | None = None
) -> Mounted:
    """Finds a module as :func:`load` does, and mounts it."""
    module = name if isinstance(name, Module) else load(name)
    return await module.mount(coordinator, config)
