"""What the tools of a session may not change: what governs it, and what records it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from amplifier_core._native import AuditLog, Bundle, Sandbox, find_sandbox

logger = logging.getLogger("amplifier_core.session")


class Protection:
    """The bundle with the programs and modules that it names, the audit log, the stored conversations, and what confines commands; and the key of the log,
    which tools may not even read. There is nothing to protect where there is no bundle, log or store."""

    def __init__(self, bundle: Bundle | None, audit: Any, store: Any, workspace: str) -> None:
        self._workspace = workspace
        self.hidden: list[str] = hidden(audit)
        places = [] if bundle is None else _made_of(bundle, self._workspace)
        keys: list[str | os.PathLike[str]] = []
        if isinstance(audit, AuditLog):
            # Whoever could change what says which log the key belongs to could keep the log from being opened.
            places += [audit.folder, audit.binding_file]
            keys.append(audit.key_file)
        if store is not None:
            # What is not there cannot be protected.
            os.makedirs(store, mode=0o700, exist_ok=True)
            places.append(store)
        self.places = _real(places)
        #: Where something could be put to be found before a module. File tools refuse that; commands cannot be kept from what is not there.
        self.names = [] if bundle is None else _before(bundle)
        #: All of it as it was given, with the links on the way.
        self._given = [*places, *keys]

    def check_workspace(self) -> None:
        """Raises ``ValueError`` if tools could change nothing in the workspace, because all around it is protected."""
        for folder in self.places:
            if os.path.isdir(folder) and _is_within(self._workspace, folder):
                raise ValueError(
                    f"the workspace `{self._workspace}` is in `{folder}`, which tools cannot change; choose another workspace"
                )

    def sandbox(self, confine: bool | None) -> Sandbox | None:
        """The sandbox of commands, in which they cannot change it either; none if they are not to be confined.

        With ``True``, it raises ``RuntimeError`` if this system cannot do that. With ``None``, it warns.
        """
        if confine is False or not (confine or self.places or self.hidden):
            return None
        sandbox: Sandbox | None = None
        try:
            confining = _confining()
            sandbox, level, reason = find_sandbox(_real([*self.places, *confining]), self.hidden)
        except (OSError, RuntimeError) as error:
            level, reason = "none", str(error)
        if confine and level != "namespaces":
            raise RuntimeError(f"commands cannot be confined here: {reason}")
        if level == "none":
            logger.warning(
                "commands are not confined here (%s): they can change what governs this session, and what records it", reason
            )
            return sandbox
        if level == "landlock":
            logger.warning(
                "commands are confined by Landlock alone here (%s): what governs and records this session is protected, "
                "but they can limit other processes and make nothing new in folders above what is protected",
                reason,
            )
        # File tools could reach it, too, if the environment is in the workspace.
        self.places = _real([*self.places, *confining])
        self._look_for_links(confine)
        return sandbox

    def read_only(self) -> list[str]:
        """What programs of hooks cannot change, whatever their bundle allows them: all of this, and what confines them."""
        try:
            return _real([*self.places, *_confining()])
        except (OSError, RuntimeError):
            # Nothing can be confined then, which the hooks that want to be say.
            return self.places

    def _look_for_links(self, confine: bool | None) -> None:
        """What a link leads to can be protected, the link itself cannot: a command could make it lead elsewhere."""
        for path in self._given:
            for link in _links(os.path.abspath(path)):
                folder = os.path.realpath(os.path.dirname(link))
                if os.access(folder, os.W_OK) and not any(_is_within(folder, place) for place in self.places):
                    text = f"`{link}` is a link, and commands can make it lead elsewhere; name what it leads to: `{os.path.realpath(link)}`"
                    if confine:
                        raise RuntimeError(text)
                    logger.warning("%s", text)

    def check(self, bundle: Bundle) -> None:
        """Raises ``ValueError`` if a new version of the bundle names a file that is not protected: what is, is settled when a session begins."""
        for file in _made_of(bundle, self._workspace):
            if not any(_is_within(os.path.realpath(file), place) for place in self.places):
                raise ValueError(f"`{file}` is not protected from the tools of this session; start a new one")


def _confining() -> list[str]:
    from amplifier_core._confine import parts

    return _real(parts())


def hidden(audit: Any) -> list[str]:
    """The key of an audit log, which no program of a session needs; not a link to it, without which it would be seen."""
    return [os.path.realpath(audit.key_file)] if isinstance(audit, AuditLog) else []


def _made_of(bundle: Bundle, workspace: str) -> list[str | os.PathLike[str]]:
    """The files of a bundle, those that its hooks name, and its modules of Python, packages with all that is in them."""
    places: list[str | os.PathLike[str]] = [*bundle.named_files(workspace)]
    modules = bundle.foreign_modules()
    if modules:
        from amplifier_core._code import code_of

        for name, folder in modules:
            places += code_of(name, folder)
    return places


def _before(bundle: Bundle) -> list[str]:
    """The names under which another module would be found before one of a bundle."""
    modules = bundle.foreign_modules()
    if not modules:
        return []
    from amplifier_core._code import names_before

    return [before for name, _ in modules for before in names_before(name)]


def _links(path: str, depth: int = 40) -> Iterator[str]:
    """The links on the way to a file."""
    parts = path.split(os.sep)
    for at in range(2, len(parts) + 1):
        place = os.sep.join(parts[:at])
        if os.path.islink(place) and depth > 0:
            yield place
            led = os.path.join(os.path.realpath(os.path.dirname(place)), os.readlink(place), *parts[at:])
            yield from _links(os.path.normpath(led), depth - 1)
            return


def _real(paths: Iterable[Any]) -> list[str]:
    """The paths without links; what is within another of them needs no place of its own."""
    kept: list[str] = []
    for path in sorted({os.path.realpath(path) for path in paths}):
        if not any(_is_within(path, place) for place in kept):
            kept.append(path)
    return kept


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)
