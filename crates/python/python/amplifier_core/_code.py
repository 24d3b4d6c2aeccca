"""Where the code of a module lies, found without importing it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

from amplifier_core._find import _is_path, _offered


def code_of(name: str, folder: str | os.PathLike[str]) -> list[str]:
    """The file or the folder of a module that a bundle in a folder names, and where its bytecode is kept: whoever can change one of these can
    change what it does. Nothing if it cannot be found, which whoever mounts it is told."""
    if _is_path(name):
        place = os.path.join(folder, name)
        # A lone file is run as it is read, without bytecode. A package is where its `__init__.py` really is.
        inner = os.path.dirname(os.path.realpath(os.path.join(place, "__init__.py"))) if os.path.isdir(place) else place
        return [path for path in (place, inner) if os.path.exists(path)]
    points = _offered().get(name)
    spec = _spec(points[0].module if points else name.partition(":")[0])
    if spec is None:
        return []
    places = [path for path in (spec.origin, *(spec.submodule_search_locations or ())) if path is not None and os.path.exists(path)]
    if places and spec.cached is not None:
        bytecode = os.path.dirname(spec.cached)
        # What is not there cannot be protected. Where it cannot be made, nobody else makes it either.
        with contextlib.suppress(OSError):
            os.makedirs(bytecode, exist_ok=True)
            places.append(bytecode)
    return places


def _spec(path: str) -> ModuleSpec | None:
    """That of the package which a module is in, or of the module if it is in none. Namespaces have no code."""
    first, *rest = path.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        return None
    for part in rest:
        if spec is None or spec.origin is not None:
            break
        first = f"{first}.{part}"
        known = sys.modules.get(first)
        spec = PathFinder.find_spec(first, spec.submodule_search_locations) if known is None else known.__spec__
    return spec
