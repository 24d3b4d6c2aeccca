"""Bundles: rules, built-in modules, programs, servers and modules of Python, from a YAML file, beside hooks that you register yourself."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from amplifier_core._find import ModuleError
from amplifier_core._native import Bundle, BundleHook, HookRegistry, builtin_modules, no_module

if TYPE_CHECKING:
    from typing_extensions import Self

    from amplifier_core.modules import Mounted

__all__ = ["Bundle", "BundleHook", "MountedBundle", "builtin_modules", "load", "mount", "parse"]


def load(file: str | os.PathLike[str]) -> Bundle:
    """Loads a bundle from a file, with what it includes.

    Raises ``ValueError`` if there is a mistake in it: with the file, the line, the column, and a caret below.
    """
    return Bundle.load(file)


def parse(text: str, file: str | os.PathLike[str] | None = None) -> Bundle:
    """Reads a bundle from a text. ``file`` is what it is called in errors; what it includes and runs is looked for from its folder."""
    return Bundle.parse(text, file)


class MountedBundle:
    """A bundle whose hooks are registered. As an async context manager, it is unmounted at the end of the block."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self._withdrawals: list[Callable[[], None]] = []
        #: The modules of Python that it brought.
        self.modules: list[Mounted] = []

    async def unmount(self) -> None:
        """Takes all hooks of the bundle away. Doing it twice is harmless."""
        while self._withdrawals:
            self._withdrawals.pop()()
        while self.modules:
            await self.modules.pop().unmount()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.unmount()

    def __repr__(self) -> str:
        return f"<MountedBundle of {self.bundle!r}>"


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
) -> MountedBundle:
    """Registers the hooks of a bundle, in its order, with a registry or a coordinator: from then on they stand around what is emitted.

    A ``module`` that does not come with the package is one of Python's: the name of an entry point of ``amplifier.modules``, an import
    path, or a file, from the folder of the bundle. Its ``mount`` is called with the coordinator and the entry's ``config``.

    ``workspace`` is the folder that rules and modules speak of. ``name_session`` is called with the id of a session and the name that
    ``hooks-session-naming`` gives to it, on another thread.

    Raises ``ValueError`` if something is wrong with the bundle; then none of its hooks stays.
    """
    bundle = bundle if isinstance(bundle, Bundle) else load(bundle)
    coordinator = _Bare(target) if isinstance(target, HookRegistry) else target
    hooks: HookRegistry = coordinator.hooks
    mounted = MountedBundle(bundle)
    try:
        for hook in bundle.make(workspace, name_session):
            if hook.foreign is None:
                mounted._withdrawals.append(hook.register(hooks))
            else:
                mounted.modules.append(await _mount_module(coordinator, hook, hook.foreign))
    except BaseException:
        await mounted.unmount()
        raise
    return mounted


async def _mount_module(coordinator: Any, hook: BundleHook, name: str) -> Mounted:
    from amplifier_core.modules import load as load_module

    is_file = name.endswith(".py") or "/" in name
    try:
        module = load_module(pathlib.Path(hook.folder, name) if is_file else name)
        return await module.mount(coordinator, hook.config(), hook.settings())
    except ModuleError as error:
        known = "" if is_file else _meant(name)
        raise ValueError(hook.problem(f"{error}{known}")) from error


def _meant(name: str) -> str:
    """The module of the package that was meant, if one is called nearly so."""
    _, found, hint = no_module(name).partition("did you mean")
    return f"; or {found}{hint}" if found else ""
