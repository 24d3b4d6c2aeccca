"""Bundles: rules, built-in modules, programs, servers and modules of Python, from a YAML file, beside hooks that you register yourself."""

from __future__ import annotations

import logging
import os
import pathlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from amplifier_core._find import _is_path
from amplifier_core._mounted import Unmountable
from amplifier_core._native import (
    AuditLog,
    Bundle,
    BundleHook,
    BundleHost,
    HookRegistry,
    HookResult,
    Protection,
    Withdraw,
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


class Reload:
    """What came of reading a bundle anew. As text, it says so."""

    __slots__ = ("began", "changed", "ended", "error", "kept")

    def __init__(
        self,
        kept: Iterable[str],
        began: Iterable[str] = (),
        ended: Iterable[str] = (),
        *,
        changed: bool = False,
        error: str | None = None,
    ) -> None:
        #: Whether other hooks are in force now, or the same in another order.
        self.changed = changed
        #: The hooks that go on as they were.
        self.kept = list(kept)
        #: The hooks that are new, or not what they were.
        self.began = list(began)
        #: The hooks that are gone, or not what they were.
        self.ended = list(ended)
        #: What is wrong with the new version, if something is: the old one stays in force then.
        self.error = error

    def __str__(self) -> str:
        if self.error is not None:
            return f"a bundle has changed and cannot be used, so the old version stays in force:\n{self.error}"
        return "a bundle has changed: its hooks are in force from now on" if self.changed else "the hooks of the bundle are as they were"

    def __repr__(self) -> str:
        return f"<Reload: kept {self.kept}, began {self.began}, ended {self.ended}, error {self.error!r}>"


class MountedBundle(Unmountable):
    """A bundle whose hooks are registered. As an async context manager, it is unmounted at the end of the block."""

    def __init__(self, bundle: Bundle, coordinator: Any, host: BundleHost, check: Callable[[Bundle], None] | None) -> None:
        #: The version that is in force.
        self.bundle = bundle
        self._coordinator = coordinator
        self._host = host
        #: Refuses a new version that cannot be used here.
        self._check = check
        self._hooks: list[BundleHook] = []
        #: What takes them away that are not of Python, by who they are.
        self._withdrawals: dict[str, Withdraw] = {}
        #: Those that are of Python, by who they are; and those that have not cleaned up yet.
        self._modules: dict[str, Mounted] = {}
        self._leaving: list[Mounted] = []
        self._followers: list[Callable[[], None]] = []
        #: Takes away what waits, at the end of a session, for what hooks began that are gone.
        self._waiter: Withdraw | None = None
        #: What is wrong with a newer version.
        self._broken: str | None = None
        self._is_mounted = True
        # One at a time, on whatever loop.
        self._renewing = threading.Lock()

    @property
    def modules(self) -> list[Mounted]:
        """The modules of Python that it brought."""
        return list(self._modules.values())

    async def reload(self) -> Reload:
        """Reads the bundle anew from its file, and puts its hooks in the place of those in force; says what came of it.

        A hook that is in both versions, with the same settings and the same files, goes on as it is. A version with a mistake in it
        changes nothing.
        """
        if not self._is_mounted:
            raise RuntimeError("the bundle is not mounted any more")
        if not self._renewing.acquire(blocking=False):
            raise RuntimeError("the bundle is being read anew already")
        try:
            came = await self._renew()
        finally:
            self._renewing.release()
        logger.log(logging.INFO if came.error is None else logging.WARNING, "%s", came)
        return came

    def follow(self) -> None:
        """Looks at the files when a turn begins and before each call to the model, as ``execution:start`` and ``provider:request``
        tell, and takes over what has changed. A text that includes nothing has no files."""
        if self._followers or not self.bundle.has_files:
            return
        for event in ("execution:start", "provider:request"):
            self._followers.append(self._coordinator.hooks.register(event, self._look, name="session-bundles", role="observer"))

    async def unmount(self) -> None:
        """Takes all hooks of the bundle away, has its modules clean up, and waits for what hooks do beside the agent, such as notifications, for
        five seconds at most. Doing it twice is harmless.

        No hook stays, whatever modules do. If some fail to clean up, the first :class:`ModuleError` is raised when all is done.
        """
        self._is_mounted = False
        while self._followers:
            self._followers.pop()()
        while self._withdrawals:
            self._withdrawals.popitem()[1]()
        self._hooks = []
        if self._waiter is not None:
            self._waiter()
        modules, self._modules = self._modules, {}
        failed = await self._leave(reversed(modules.values()))
        await self._host.settle()
        if failed:
            _tell(failed[1:])
            raise failed[0]

    async def _look(self, event: str, data: dict[str, Any]) -> HookResult | None:
        # The mistake may be in a file that the version in force does not have.
        if self._broken is None and self.bundle.is_current():
            return None
        if not self._renewing.acquire(blocking=False):
            return None
        try:
            told = self._broken
            came = await self._renew()
        finally:
            self._renewing.release()
        # A mistake is told once, and that it is mended, too.
        if came.error == told and not came.changed:
            return None
        level: Literal["info", "warning"] = "info" if came.error is None else "warning"
        logger.log(logging.INFO if came.error is None else logging.WARNING, "%s", came)
        return HookResult(user_message=str(came), user_message_level=level)

    async def _renew(self) -> Reload:
        try:
            bundle = self.bundle.renew()
            if self._check is not None:
                self._check(bundle)
            came = await self._take(bundle)
        except ValueError as error:
            self._broken = str(error)
            return Reload((hook.name for hook in self._hooks), error=str(error))
        self._broken = None
        if came.changed:
            self._record()
        _tell(await self._leave())
        return came

    async def _take(self, bundle: Bundle) -> Reload:
        """Puts a version in the place of the one in force. If that fails or is cancelled, everything stays as it was."""
        hooks: HookRegistry = self._coordinator.hooks
        made = self._host.make(bundle, self._hooks)
        modules: dict[str, Mounted] = {}
        withdrawals: dict[str, Withdraw] = {}
        try:
            for hook in made:
                if hook.foreign is not None:
                    is_kept = hook.is_kept and hook.who in self._modules
                    mounted = self._modules[hook.who] if is_kept else await _mount_module(self._coordinator, hook, hook.foreign)
                    modules[hook.who] = mounted
            if not self._is_mounted:
                raise RuntimeError("the bundle was unmounted meanwhile")
            for hook in made:
                if hook.foreign is None:
                    withdrawals[hook.who] = hook.register(hooks)
        except BaseException:
            for withdraw in withdrawals.values():
                withdraw()
            _tell(await self._leave(mounted for who, mounted in modules.items() if mounted is not self._modules.get(who)))
            raise
        # From here on nothing fails, and nothing waits: whoever emits sees one version or the other.
        for hook in made if modules else ():
            # Modules registered their hooks when they were mounted. Now all stand in the order of the bundle.
            if hook.foreign is None:
                before, withdrawals[hook.who] = withdrawals[hook.who], hook.register(hooks)
                before()
            else:
                mounted, earlier = modules[hook.who], self._modules.get(hook.who)
                mounted.renew(None if mounted is earlier else earlier)
        for withdraw in self._withdrawals.values():
            withdraw()
        for who, mounted in self._modules.items():
            if mounted is not modules.get(who):
                mounted.withdraw()
                self._leaving.append(mounted)
        self._waiter = self._host.outlast(hooks) or self._waiter
        kept = {hook.who for hook in made if hook.is_kept}
        came = Reload(
            (hook.name for hook in made if hook.is_kept),
            (hook.name for hook in made if not hook.is_kept),
            (hook.name for hook in self._hooks if hook.who not in kept),
            changed=[hook.who for hook in self._hooks] != [hook.who for hook in made] or len(kept) < len(made),
        )
        self.bundle, self._hooks, self._withdrawals, self._modules = bundle, made, withdrawals, modules
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

    def _record(self) -> None:
        """Has the audit log of the session say that other rules are in force."""
        audit = getattr(self._coordinator, "audit", None)
        if isinstance(audit, AuditLog):
            try:
                audit.policy_change({"bundles": [os.fspath(file) for file in self.bundle.files]})
            except (OSError, RuntimeError) as error:
                logger.warning("the audit log does not have that a bundle has changed: %s", error)

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
    check = None if protection is None else protection.check
    if protection is None:
        protection = Protection(os.path.realpath(workspace), bundle=bundle, audit=getattr(coordinator, "audit", None))
    host = BundleHost(workspace, protection, name_session)
    mounted = MountedBundle(bundle, coordinator, host, check)
    await mounted._take(bundle)
    if follow:
        mounted.follow()
    return mounted


async def _mount_module(coordinator: Any, hook: BundleHook, name: str) -> Mounted:
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
