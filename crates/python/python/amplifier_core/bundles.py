"""Bundles: rules, built-in modules, programs, servers and Python modules from a YAML file, next to hooks that you register yourself."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

from amplifier_core._find import _is_path
from amplifier_core._mounted import Unmountable
from amplifier_core._native import (
    Bundle,
    BundleHook,
    BundleWatcher,
    HookRegistry,
    HookResult,
    PreparedVersion,
    Protection,
    Reload,
    Unregister,
    builtin_modules,
    no_module,
)
from amplifier_core.modules import ModuleError, Mounted
from amplifier_core.modules import load as _load_module

__all__ = ["Bundle", "BundleHook", "MountedBundle", "Reload", "builtin_modules", "load", "mount", "parse"]

logger = logging.getLogger("amplifier_core.bundles")


def load(file: str | os.PathLike[str]) -> Bundle:
    """Loads a bundle and its includes from a file.

    Raises ``ValueError`` for an invalid bundle, with the file, the line, the column and a caret. Conditions and modules are checked by
    :func:`mount`.
    """
    return Bundle.load(file)


def parse(text: str, file: str | os.PathLike[str] | None = None) -> Bundle:
    """Parses a bundle from text. ``file`` is its name in errors; relative includes and commands are resolved in its folder."""
    return Bundle.parse(text, file)


class MountedBundle(Unmountable):
    """A bundle with registered hooks. As an async context manager, the bundle is unmounted at the end of the block."""

    def __init__(self, bundle: Bundle, coordinator: Any, watcher: BundleWatcher, check: Callable[[Bundle], None] | None) -> None:
        #: The active version.
        self.bundle = bundle
        self._coordinator = coordinator
        self._watcher = watcher
        #: Raises for a new version that cannot be used here.
        self._check = check
        #: The Python modules by identity, and those that have not cleaned up yet.
        self._modules: dict[str, Mounted] = {}
        self._leaving: list[Mounted] = []
        self._followers: list[Unregister] = []
        self._follows = False

    @property
    def modules(self) -> list[Mounted]:
        """The mounted Python modules of the bundle."""
        return list(self._modules.values())

    async def reload(self) -> Reload:
        """Reloads the bundle from its file and replaces the active hooks. Returns the result.

        A hook with the same settings and files in both versions continues unchanged. A version with an error changes nothing.
        """
        came = await self._renew(always=True)
        logger.log(logging.INFO if came.error is None else logging.WARNING, "%s", came)
        return came

    def follow(self) -> None:
        """Reloads changed files at the start of a turn and before each model call (``execution:start`` and ``provider:request``).
        A bundle from text without includes has no files."""
        if not self._follows and self.bundle.has_files:
            self._follows = True
            self._followers += self._watcher.follow(self._coordinator.hooks, self._look)

    def _watch_tools(self) -> None:
        """Warns at the start of a session about hooks for tools that it does not have: a guard would have no effect, silently."""
        get = getattr(self._coordinator, "get", None)
        if not callable(get) or not isinstance(get("tools"), dict):
            return

        def check(event: str, data: dict[str, Any]) -> None:
            for warning in self.bundle.unmatched_hooks(list(get("tools"))):
                logger.warning("%s", warning)

        self._followers.append(self._coordinator.hooks.register("session:start", check, name="bundle-tools", role="observer"))

    async def unmount(self) -> None:
        """Unregisters all hooks of the bundle, cleans up its modules, and waits up to five seconds for background work of hooks, such as
        notifications. Calling it again has no effect.

        All hooks are removed even if modules fail to clean up; the first :class:`ModuleError` is then raised at the end.
        """
        while self._followers:
            self._followers.pop()()
        self._follows = False
        self._watcher.unregister()
        modules, self._modules = self._modules, {}
        failed = await self._leave(reversed(modules.values()))
        await self._watcher.settle()
        if failed:
            _tell(failed[1:])
            raise failed[0]

    async def _look(self, event: str, data: dict[str, Any]) -> HookResult | None:
        news = (await self._renew(always=False)).news
        if news is None:
            return None
        level, text = news
        logger.log(logging.INFO if level == "info" else logging.WARNING, "%s", text)
        return HookResult(user_message=text, user_message_level=level)

    async def _renew(self, always: bool) -> Reload:
        found = await self._watcher.read(always)
        if isinstance(found, Reload):
            return found
        try:
            if self._check is not None:
                self._check(found.bundle)
            return await self._take(found)
        except ValueError as error:
            return self._watcher.refuse(str(error))
        finally:
            found.drop()

    async def _take(self, version: PreparedVersion) -> Reload:
        """Mounts the new modules of a version and activates the version. On failure or cancellation, nothing changes."""
        modules: dict[str, Mounted] = {}
        try:
            for hook in version.foreign:
                kept = self._modules.get(hook.who) if hook.is_kept else None
                modules[hook.who] = kept or await _mount_module(self._coordinator, hook)
            # Modules registered their hooks when they were mounted. This restores the order of the bundle.
            while (placed := version.register()) is not None:
                mounted, earlier = modules[placed.who], self._modules.get(placed.who)
                mounted.renew(None if mounted is earlier else earlier)
            came = version.commit()
        except BaseException:
            _tell(await self._leave(mounted for who, mounted in modules.items() if mounted is not self._modules.get(who)))
            raise
        # No await before this: an emission sees either the old or the new version.
        for who, mounted in self._modules.items():
            if mounted is not modules.get(who):
                mounted.withdraw()
                self._leaving.append(mounted)
        self.bundle, self._modules = version.bundle, modules
        _tell(await self._leave())
        return came

    async def _leave(self, modules: Iterable[Mounted] = ()) -> list[ModuleError]:
        """Unregisters the hooks of modules without awaiting, then cleans up these modules and all earlier ones. Returns the failures.
        After a cancellation, the next call continues."""
        leaving = list(modules)
        for mounted in leaving:
            mounted.withdraw()
        self._leaving[:0] = leaving
        failed = []
        while self._leaving:
            mounted = self._leaving.pop(0)
            try:
                await mounted.unmount()
            except ModuleError as error:
                failed.append(error)
            except BaseException:
                self._leaving.insert(0, mounted)
                raise
        return failed

    def __repr__(self) -> str:
        return f"<MountedBundle of {self.bundle!r}>"


def _tell(failed: Iterable[ModuleError]) -> None:
    """Logs the failures of modules to clean up, if another error is raised."""
    for error in failed:
        logger.warning("%s", error)


class _Bare:
    """A coordinator for a plain registry."""

    def __init__(self, hooks: HookRegistry) -> None:
        self.hooks = hooks
        self.config: dict[str, Any] = {}


async def mount(
    target: Any,
    bundle: Bundle | str | os.PathLike[str],
    *,
    workspace: str | os.PathLike[str] = ".",
    name_session: Callable[[str, str], object] | None = None,
    follow: bool = False,
) -> MountedBundle:
    """Registers the hooks of a bundle, in order, with a registry or a coordinator.

    A ``module`` that is not part of the package is a Python module: the name of an entry point of ``amplifier.modules``, an import path,
    or a file relative to the bundle's folder. Its ``mount`` is called with the coordinator and the entry's ``config``.

    ``workspace`` is the folder for rules and modules. ``name_session`` is called on another thread, with the id of a session and the name
    from ``hooks-session-naming``. With ``follow``, changed files are reloaded while a session runs: see :meth:`MountedBundle.follow`.

    Raises ``ValueError`` for an invalid bundle; then no hook stays registered.
    """
    return await _mount(target, bundle, workspace, name_session, follow)


async def _mount(
    target: Any,
    bundle: Bundle | str | os.PathLike[str],
    workspace: str | os.PathLike[str],
    name_session: Callable[[str, str], object] | None,
    follow: bool,
    protection: Protection | None = None,
) -> MountedBundle:
    bundle = bundle if isinstance(bundle, Bundle) else load(bundle)
    coordinator = _Bare(target) if isinstance(target, HookRegistry) else target
    if not hasattr(coordinator, "hooks"):
        raise TypeError(f"a bundle is mounted around a `HookRegistry` or a coordinator; found `{type(target).__name__}`")
    if not isinstance(coordinator.hooks, HookRegistry):
        kind = type(coordinator.hooks).__name__
        raise TypeError(
            f"a bundle is mounted around a coordinator whose `hooks` are a `HookRegistry`; found `{kind}`. "
            "A module cannot mount one: name it under `includes` of the bundle that has the module, or let whoever mounts the module mount it"
        )
    check, audit = None if protection is None else protection.check, getattr(coordinator, "audit", None)
    if protection is None:
        protection = Protection(os.path.realpath(workspace), bundle=bundle, audit=audit)
    watcher = BundleWatcher(coordinator.hooks, bundle, workspace, protection, audit, name_session)
    mounted = MountedBundle(bundle, coordinator, watcher, check)
    await mounted._take(watcher.prepare(bundle))
    mounted._watch_tools()
    if follow:
        mounted.follow()
    return mounted


async def _mount_module(coordinator: Any, hook: BundleHook) -> Mounted:
    name = hook.foreign
    is_file = _is_path(name)
    place = pathlib.Path(hook.folder, name) if is_file else name
    try:
        module = _load_module(place)
        # As for all hooks of a bundle, a failure denies at gating events.
        return await module.mount(coordinator, hook.config(), hook.settings(), {"on_error": "deny_gating"})
    except ModuleError as error:
        known = "" if is_file else _meant(name)
        # With the name used in the bundle.
        raise ValueError(hook.problem(f"{error}{known}".replace(f"`{place}`", f"`{name}`"))) from error


def _meant(name: str) -> str:
    """Returns a hint with a similarly named module of the package, if any."""
    _, found, hint = no_module(name).partition("did you mean")
    return f"; or {found}{hint}" if found else ""
