"""The loader of modules: from the sources of an application, from entry points, and from folders."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import os
import pathlib
import sys
from collections.abc import Awaitable, Callable, Iterable
from types import ModuleType as PythonModule
from typing import Any

from amplifier_core._find import ModuleError, available, find
from amplifier_core._interfaces import MOUNT_POINTS, ModuleType, missing_members, mounted_at, newly_mounted, type_of
from amplifier_core.module_sources import ModuleNotFoundError
from amplifier_core.modules import Module

__all__ = ["TYPE_TO_MOUNT_POINT", "ModuleLoader", "ModuleValidationError"]

logger = logging.getLogger(__name__)

#: The mount point of each kind of module.
TYPE_TO_MOUNT_POINT = MOUNT_POINTS

#: Mounts a loaded module, and returns the function that cleans it up, if any.
Mount = Callable[[Any], Awaitable[Callable[[], Any] | None]]


class ModuleValidationError(ModuleError):
    """A module cannot be imported, or does not mount the objects of its kind."""

    def __init__(self, message: str, *, reason_code: str = "validation_failed") -> None:
        super().__init__(message)
        #: The cause in one word, as in ``module:load_failed``.
        self.reason_code = reason_code


class ModuleLoader:
    """Loads modules with ``mount(coordinator, config)``.

    A resolver at the mount point ``module-source-resolver`` of the coordinator decides where a module comes from. Without one, and for a
    module that it does not know, an installed module is used: an entry point of ``amplifier.modules``, or a package
    ``amplifier_module_<id>``, also in one of the ``search_paths``.
    """

    def __init__(self, coordinator: Any = None, search_paths: Iterable[str | os.PathLike[str]] | None = None) -> None:
        self._coordinator = coordinator
        self._search_paths = [pathlib.Path(path) for path in search_paths or ()]
        #: The folders that were added to ``sys.path``. Applications share them with sub-sessions.
        self._added_paths: list[str] = []
        self._ready: list[tuple[str, Callable[[Any], Any]]] = []

    async def load(
        self,
        module_id: str,
        config: dict[str, Any] | None = None,
        source_hint: str | dict[str, Any] | None = None,
        coordinator: Any = None,
    ) -> Mount:
        """Imports a module. Returns a function that mounts it with the configuration on a coordinator.

        Raises ``module_sources.ModuleNotFoundError`` for an unknown module, and :class:`ModuleValidationError` for one that cannot be used.
        The mounting function raises the latter for a module that does not mount a complete object of its kind; nothing stays mounted then.
        """
        module = await self._find(module_id, source_hint, self._coordinator if coordinator is None else coordinator)
        try:
            module._check_signature()
        except ModuleError as error:
            raise ModuleValidationError(str(error)) from error
        python_module = sys.modules.get(getattr(module.function, "__module__", ""))
        kind = type_of(module_id, python_module)

        async def mount(coordinator: Any) -> Callable[[], Any] | None:
            cleanup = await _mount(module, kind, config, coordinator)
            ready = getattr(python_module, "on_session_ready", None)
            if callable(ready):
                self.enqueue_on_session_ready(module_id, ready)
            return cleanup

        return mount

    async def _find(self, module_id: str, hint: Any, coordinator: Any) -> Module:
        resolver = None if coordinator is None else coordinator.get("module-source-resolver")
        unknown: ModuleNotFoundError | None = None
        if resolver is not None:
            try:
                source = await _resolve(resolver, module_id, hint)
            except ModuleNotFoundError as error:
                unknown = error
            else:
                return self._import(module_id, _package(module_id, pathlib.Path(source.resolve())))
        installed = self._installed(module_id)
        if installed is None:
            raise unknown or ModuleNotFoundError(
                f"there is no module `{module_id}`; install its package, or mount a `module-source-resolver` that knows it"
            )
        return installed

    def _installed(self, module_id: str) -> Module | None:
        if module_id in available():
            try:
                return Module(*find(module_id))
            except ModuleError as error:
                raise ModuleValidationError(str(error), reason_code="invalid_entry_point") from error
        name = _package_name(module_id)
        for folder in self._search_paths:
            if (folder / name / "__init__.py").is_file():
                return self._import(module_id, folder / name)
        if name.isidentifier() and importlib.util.find_spec(name) is not None:
            return self._import(module_id, None)
        return None

    def _import(self, module_id: str, package: pathlib.Path | None) -> Module:
        found = self.import_name(_package_name(module_id)) if package is None else self.import_path(package)
        mount, file = getattr(found, "mount", None), found.__file__ or ""
        if not callable(mount):
            raise ModuleValidationError(f"module `{module_id}` has no `mount`; define `async def mount(coordinator, config)` in `{file}`")
        return Module(module_id, mount, file)

    def import_path(self, package: pathlib.Path) -> PythonModule:
        """Imports the package in a folder, which modules of the same session can then import by its name."""
        self._add_path(str(package.parent))
        found = self.import_name(package.name)
        file = found.__file__ or ""
        if pathlib.Path(file).resolve().parent != package.resolve():
            logger.warning("The package '%s' is imported already, from '%s'; '%s' is not used", package.name, file, package)
        return found

    def import_name(self, name: str) -> PythonModule:
        """Imports a package by its name."""
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit) as error:
            text = f"`{name}` cannot be imported: {type(error).__name__}: {error}"
            raise ModuleValidationError(text, reason_code="invalid_module_metadata") from error

    def _add_path(self, folder: str) -> None:
        if folder not in sys.path:
            sys.path.insert(0, folder)
            self._added_paths.append(folder)
            importlib.invalidate_caches()

    async def discover(self) -> list[Any]:
        """Returns the installed modules, each as a ``ModuleInfo`` of ``amplifier_core.models``."""
        # It needs `pydantic`.
        from amplifier_core.models import ModuleInfo

        found = []
        for name, point in available().items():
            kind = type_of(name)
            if kind is not None:
                version = point.dist.version if point.dist is not None else "unknown"
                found.append(
                    ModuleInfo(id=name, name=name, version=version, type=kind, mount_point=MOUNT_POINTS[kind], description=point.value)
                )
        return found

    async def initialize(self, module: Mount, coordinator: Any) -> Callable[[], Any] | None:
        """Mounts a loaded module. Returns the function that cleans it up, if any."""
        return await module(coordinator)

    def enqueue_on_session_ready(self, module_id: str, fn: Callable[[Any], Any]) -> None:
        """Adds a function that is called with the coordinator once all modules are mounted."""
        self._ready.append((module_id, fn))

    def get_on_session_ready_queue(self) -> list[tuple[str, Callable[[Any], Any]]]:
        """Returns these functions with the ids of their modules, in order."""
        return list(self._ready)

    def clear_on_session_ready_queue(self) -> None:
        """Removes these functions."""
        self._ready.clear()

    def cleanup(self) -> None:
        """Removes the folders of modules from ``sys.path``."""
        while self._added_paths:
            folder = self._added_paths.pop()
            if folder in sys.path:
                sys.path.remove(folder)


async def _resolve(resolver: Any, module_id: str, hint: Any) -> Any:
    resolve = getattr(resolver, "async_resolve", None)
    resolve = resolve if callable(resolve) else resolver.resolve
    source = resolve(module_id, source_hint=hint)
    return await source if inspect.isawaitable(source) else source


def _package_name(module_id: str) -> str:
    return f"amplifier_module_{module_id.replace('-', '_')}"


def _package(module_id: str, path: pathlib.Path) -> pathlib.Path:
    """Returns the package of a module in the folder of its source."""
    for package in (path, path / _package_name(module_id)):
        if (package / "__init__.py").is_file():
            return package
    packages = [file.parent for file in sorted(path.glob("amplifier_module_*/__init__.py"))]
    if len(packages) != 1:
        found = ", ".join(f"`{package.name}`" for package in packages) or "no package"
        text = f"module `{module_id}` has no package `{_package_name(module_id)}` in `{path}`; found {found}"
        raise ModuleValidationError(text, reason_code="invalid_package_layout")
    return packages[0]


async def _mount(module: Module, kind: ModuleType | None, config: dict[str, Any] | None, coordinator: Any) -> Callable[[], Any] | None:
    before = {} if kind is None else mounted_at(coordinator, kind)
    cleanup: Any = None
    try:
        cleanup = module.function(coordinator, dict(config or {}))
        if inspect.isawaitable(cleanup):
            cleanup = await cleanup
        if kind is not None:
            _check(module, kind, newly_mounted(coordinator, kind, before))
    except BaseException:
        if kind is not None:
            await _unmount(coordinator, kind, before)
        if callable(cleanup):
            undone = cleanup()
            if inspect.isawaitable(undone):
                await undone
        raise
    return cleanup if callable(cleanup) else None


def _check(module: Module, kind: ModuleType, mounted: dict[str, Any]) -> None:
    if not mounted and kind not in ("hook", "resolver"):
        raise ModuleValidationError(f"module `{module.name}` has mounted no {kind}; call `coordinator.mount` in its `mount`")
    for name, one in mounted.items():
        missing = missing_members(kind, one)
        if missing:
            members = ", ".join(f"`{member}`" for member in missing)
            raise ModuleValidationError(f"the {kind} `{name}` of module `{module.name}` lacks {members}")


async def _unmount(coordinator: Any, kind: ModuleType, before: dict[str, Any]) -> None:
    """Restores the objects that were mounted before."""
    for name in newly_mounted(coordinator, kind, before):
        await coordinator.unmount(MOUNT_POINTS[kind], name)
        if name in before:
            await coordinator.mount(MOUNT_POINTS[kind], before[name], name)
