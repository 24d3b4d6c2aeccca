"""Bundles: rules, built-in modules, programs, servers and modules of Python, from a YAML file, beside hooks that you register yourself."""

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
    """Loads a bundle from a file, with what it includes.

    Raises ``ValueError`` if it is no bundle: with the file, the line, the column, and a caret below. Whether hooks can be made of it, such as
    whether conditions are right and modules are there, :func:`mount` finds out.
    """
    return Bundle.load(file)


def parse(text: str, file: str | os.PathLike[str] | None = None) -> Bundle:
    """Reads a bundle from a text. ``file`` is what it is called in errors; what it includes and runs is looked for from its folder."""
    return Bundle.parse(text, file)


class MountedBundle(Unmountable):
    """A bundle whose hooks are registered. As an async context manager, it is unmounted at the end of the block."""

    def __init__(self, bundle: Bundle, coordinator: Any, watcher: BundleWatcher, check: Callable[[Bundle], None] | None) -> None:
        #: The version that is in force.
        self.bundle = bundle
        self._coordinator = coordinator
        self._watcher = watcher
        #: Refuses a new version that cannot be used here.
        self._check = check
        #: The modules of Python, by who they are; and those that have not cleaned up yet.
        self._modules: dict[str, Mounted] = {}
        self._leaving: list[Mounted] = []
        self._followers: list[Unregister] = []

    @property
    def modules(self) -> list[Mounted]:
        """The modules of Python that it brought."""
        return list(self._modules.values())

    async def reload(self) -> Reload:
        """Reads the bundle anew from its file, and puts its hooks in the place of those in force; says what came of it.

        A hook that is in both versions, with the same settings and the same files, goes on as it is. A version with a mistake in it
        changes nothing.
        """
        came = await self._renew(always=True)
        logger.log(logging.INFO if came.error is None else logging.WARNING, "%s", came)
        return came

    def follow(self) -> None:
        """Looks at the files when a turn begins and before each call to the model, as ``execution:start`` and ``provider:request``
        tell, and takes over what has changed. A text that includes nothing has no files."""
        if not self._followers and self.bundle.has_files:
            self._followers = self._watcher.follow(self._coordinator.hooks, self._look)

    async def unmount(self) -> None:
        """Takes all hooks of the bundle away, has its modules clean up, and waits for what hooks do beside the agent, such as notifications, for
        five seconds at most. Doing it twice is harmless.

        No hook stays, whatever modules do. If some fail to clean up, the first :class:`ModuleError` is raised when all is done.
        """
        while self._followers:
            self._followers.pop()()
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
        """Mounts the modules of a version that are new, and puts it in force. If that fails or is cancelled, everything stays as it was."""
        modules: dict[str, Mounted] = {}
        try:
            for hook in version.foreign:
                kept = self._modules.get(hook.who) if hook.is_kept else None
                modules[hook.who] = kept or await _mount_module(self._coordinator, hook)
            # Modules registered their hooks when they were mounted. Now all stand in the order of the bundle.
            while (placed := version.register()) is not None:
                mounted, earlier = modules[placed.who], self._modules.get(placed.who)
                mounted.renew(None if mounted is earlier else earlier)
            came = version.commit()
        except BaseException:
            _tell(await self._leave(mounted for who, mounted in modules.items() if mounted is not self._modules.get(who)))
            raise
        # Nothing waits before this: whoever emits sees one version or the other.
        for who, mounted in self._modules.items():
            if mounted is not modules.get(who):
                mounted.withdraw()
                self._leaving.append(mounted)
        self.bundle, self._modules = version.bundle, modules
        _tell(await self._leave())
        return came

    async def _leave(self, modules: Iterable[Mounted] = ()) -> list[ModuleError]:
        """Takes the hooks of modules away, all before anything waits, then lets them clean up, with those whose hooks are gone already. Gives
        what failed. If it is cancelled, the rest is left to the next call."""
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
    """Tells of modules that failed to clean up, where something else is to be said or done."""
    for error in failed:
        logger.warning("%s", error)


class _Bare:
    """Stands for a coordinator where there is only a registry."""

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
    """Registers the hooks of a bundle, in its order, with a registry or a coordinator: from then on they stand around what is emitted.

    A ``module`` that does not come with the package is one of Python's: the name of an entry point of ``amplifier.modules``, an import
    path, or a file, from the folder of the bundle. Its ``mount`` is called with the coordinator and the entry's ``config``.

    ``workspace`` is the folder that rules and modules speak of. ``name_session`` is called with the id of a session and the name that
    ``hooks-session-naming`` gives to it, on another thread. With ``follow``, changes of the bundle's files are taken over while a
    session runs: see :meth:`MountedBundle.follow`.

    Raises ``ValueError`` if something is wrong with the bundle; then none of its hooks stays.
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
    if follow:
        mounted.follow()
    return mounted


async def _mount_module(coordinator: Any, hook: BundleHook) -> Mounted:
    name = hook.foreign
    is_file = _is_path(name)
    place = pathlib.Path(hook.folder, name) if is_file else name
    try:
        module = _load_module(place)
        # As for all hooks of a bundle, a failure denies where an operation waits for the hook.
        return await module.mount(coordinator, hook.config(), hook.settings(), {"on_error": "deny_gating"})
    except ModuleError as error:
        known = "" if is_file else _meant(name)
        # As the bundle calls it.
        raise ValueError(hook.problem(f"{error}{known}".replace(f"`{place}`", f"`{name}`"))) from error


def _meant(name: str) -> str:
    """The module of the package that was meant, if one is called nearly so."""
    _, found, hint = no_module(name).partition("did you mean")
    return f"; or {found}{hint}" if found else ""
