"""Finds the code of a module without importing it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ModuleSpec, PathFinder
from itertools import takewhile

from amplifier_core._find import _is_path, _offered

#: The suffixes of importable files, in search order.
_SUFFIXES = [*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES, *BYTECODE_SUFFIXES]


def code_of(name: str, folder: str | os.PathLike[str]) -> list[str]:
    """Returns the file, folder or archive of a bundle's module, the targets of links in it, and the folder of its bytecode: changing any
    of these changes the module. Empty if the module is not found, which is an error at mount."""
    if not _is_path(name):
        return [place for spec in _specs(name) for place in _code(spec)]
    place = os.path.join(folder, name)
    if os.path.isdir(place):
        # A package is the real folder of its `__init__.py`.
        inner = os.path.dirname(os.path.realpath(os.path.join(place, "__init__.py")))
        return [*_folder(place), *_folder(inner)]
    # A single file runs from source, without bytecode.
    return [place] if os.path.exists(place) else []


def names_before(name: str) -> Iterator[str]:
    """Returns the paths that would be imported instead of the module, if they existed."""
    for spec in () if _is_path(name) else _specs(name):
        if spec.origin is None:
            for folder in spec.submodule_search_locations or ():
                yield from (f"{folder}{suffix}" for suffix in _SUFFIXES)
        elif spec.submodule_search_locations is None and os.path.isfile(spec.origin):
            stem = os.path.join(os.path.dirname(spec.origin), spec.name.rpartition(".")[2])
            yield from (os.path.join(stem, f"__init__{suffix}") for suffix in _SUFFIXES)
            yield from takewhile(lambda path: path != spec.origin, (f"{stem}{suffix}" for suffix in _SUFFIXES))


def _specs(name: str) -> Iterator[ModuleSpec]:
    """Returns the import spec of the module's package, or of the module itself, after those of its namespaces."""
    points = _offered().get(name)
    first, *rest = (points[0].module if points else name.partition(":")[0]).split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        return
    for part in rest:
        if spec is None or spec.origin is not None:
            break
        yield spec
        first = f"{first}.{part}"
        known = sys.modules.get(first)
        spec = PathFinder.find_spec(first, spec.submodule_search_locations) if known is None else known.__spec__
    if spec is not None:
        yield spec


def _code(spec: ModuleSpec) -> Iterator[str]:
    for path in (spec.origin, *(spec.submodule_search_locations or ())):
        place = None if path is None else _there(path)
        if place is None:
            continue
        yield from _folder(place) if os.path.isdir(place) else [place]
        # The bytecode of a package is in its folder.
        if place == path and spec.submodule_search_locations is None and path.endswith(tuple(SOURCE_SUFFIXES)):
            yield from _bytecode(path)


def _there(path: str) -> str | None:
    """Returns a path, or the archive that contains it; ``None`` for modules that are built into the interpreter."""
    if os.path.exists(path):
        return path
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        if os.path.isfile(path):
            return path
    return None


def _folder(folder: str) -> Iterator[str]:
    """Returns a folder of code, the links in it, and a separate folder of its bytecode."""
    yield folder
    yield from _links_in(folder)
    if sys.pycache_prefix is not None:
        yield from _bytecode(os.path.join(folder, "__init__.py"))


def _links_in(folder: str) -> Iterator[str]:
    """Returns the links in a folder and in linked folders, except dangling ones."""
    ahead, seen = [folder], {os.path.realpath(folder)}
    while ahead:
        with contextlib.suppress(OSError), os.scandir(ahead.pop()) as entries:
            for entry in entries:
                if entry.is_symlink() and os.path.exists(entry.path):
                    yield entry.path
                if entry.is_dir() and os.path.realpath(entry.path) not in seen:
                    seen.add(os.path.realpath(entry.path))
                    ahead.append(entry.path)


def _bytecode(file: str) -> Iterator[str]:
    """Returns the folder with the bytecode of a file."""
    # A missing folder cannot be protected, so it is created. If that fails, no other program can create it either; some interpreters have none.
    with contextlib.suppress(OSError, NotImplementedError):
        folder = os.path.dirname(importlib.util.cache_from_source(file))
        os.makedirs(folder, exist_ok=True)
        yield folder
