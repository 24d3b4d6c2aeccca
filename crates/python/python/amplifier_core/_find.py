"""Finds modules: by entry point, import path or file."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The entry-point group of modules.
GROUP = "amplifier.modules"


class ModuleError(Exception):
    """A module cannot be found, imported, mounted or unmounted."""


def available() -> dict[str, EntryPoint]:
    """Returns the modules of installed packages, by name."""
    return {name: points[0] for name, points in sorted(_offered().items())}


def find(name: str | os.PathLike[str] | ModuleType) -> tuple[str, Callable[..., Any], str]:
    """Returns the name of a module, its ``mount``, and a description of its source."""
    if isinstance(name, ModuleType):
        return name.__name__, _mount_of(name, name.__name__), getattr(name, "__file__", None) or name.__name__
    if not isinstance(name, str) or _is_path(name):
        path = pathlib.Path(name)
        return path.resolve().stem, _mount_of(_from_file(path), str(path)), str(path)
    offered = _offered()
    if name in offered:
        return _from_entry_point(name, offered[name])
    return _from_import_path(name, sorted(offered))


def _is_path(name: str) -> bool:
    return name.endswith(".py") or "/" in name or os.sep in name or name in (".", "..")


def _offered() -> dict[str, list[EntryPoint]]:
    # Slow to import, and needed only here.
    from importlib.metadata import entry_points

    offered: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points = offered.setdefault(point.name, [])
        # A package that is on the path twice has the same entry point twice.
        if all(point.value != other.value for other in points):
            points.append(point)
    return offered


def _from_entry_point(name: str, points: list[EntryPoint]) -> tuple[str, Callable[..., Any], str]:
    if len(points) > 1:
        values = ", ".join(f"`{point.value}`" for point in points)
        raise ModuleError(f"ambiguous module `{name}`: {values}; give an import path")
    (point,) = points
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        raise _unimportable(name, error) from error
    package = point.dist.name if point.dist is not None else point.module
    return name, _mount_of(found, name), f"{point.value} of package {package}"


def _from_import_path(name: str, offered: list[str]) -> tuple[str, Callable[..., Any], str]:
    path, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in path.split(".")):
        raise _missing(name, offered)
    try:
        found: Any = importlib.import_module(path)
    except ModuleNotFoundError as error:
        # The missing module may be an import of the module itself.
        if error.name is not None and (path == error.name or path.startswith(f"{error.name}.")):
            raise _missing(name, offered) from None
        raise _unimportable(name, error) from error
    except (Exception, SystemExit) as error:
        raise _unimportable(name, error) from error
    for part in attribute.split(".") if attribute else ():
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ModuleError(f"module `{path}` has no `{attribute}`; check the spelling") from None
    return name, _mount_of(found, name), name


def _from_file(path: pathlib.Path) -> ModuleType:
    """Imports a file or the folder of a package, once; a changed single file is imported again."""
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        wanted = "the folder has no `__init__.py`: give the package's own folder" if path.is_dir() else "there is no such file"
        raise ModuleError(f"module `{path}` cannot be loaded: {wanted}")
    file = file.resolve()
    try:
        text = file.read_bytes()
    except OSError as error:
        raise _unimportable(str(path), error) from error
    # A package may import itself by its name. A single file cannot, and gets a unique name per content.
    name = file.parent.name if path.is_dir() else f"_amplifier_module_{_digest(file, text)}_{file.stem}"
    known = sys.modules.get(name)
    if known is not None:
        if pathlib.Path(known.__file__ or "").resolve() == file:
            return known
        where = f"is imported already, from `{known.__file__}`"
        raise ModuleError(f"module `{path}` cannot be loaded: another `{name}` {where}; rename the folder")
    other = _other(name, file) if path.is_dir() else None
    if other is not None:
        raise ModuleError(f"module `{path}` cannot be loaded: it would replace {other}")
    folders = [str(file.parent)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ModuleError(f"module `{path}` cannot be loaded: not a Python file; the name must end in `.py`")
    if folders is None and isinstance(spec.loader, SourceFileLoader):
        spec.loader = _Exact(name, str(file), text)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, (Exception, SystemExit)):
            raise _unimportable(str(path), error) from error
        raise
    return module


def _other(name: str, file: pathlib.Path) -> str | None:
    """Returns another module with the name of a folder, and a hint."""
    if name in sys.stdlib_module_names:
        return f"`{name}` of the standard library; rename the folder"
    # Invalid names cannot be imported. A folder without `__init__.py` can be imported, but may be any folder on the path.
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or spec.origin is None or pathlib.Path(spec.origin).resolve() == file:
        return None
    return f"another `{name}`, from `{spec.origin}`; rename the folder, or uninstall the other"


class _Exact(SourceFileLoader):
    """Runs the text as read: bytecode on disk may belong to an earlier text from the same second."""

    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._text, self.path)


def _digest(file: pathlib.Path, text: bytes) -> str:
    from hashlib import sha256

    return sha256(os.fsencode(file) + b"\0" + text).hexdigest()[:16]


def _mount_of(found: Any, name: str) -> Callable[..., Any]:
    mount = getattr(found, "mount", None) if isinstance(found, ModuleType) else found
    if mount is None:
        raise ModuleError(f"module `{name}` has no `mount`; define `async def mount(coordinator, config)` in it")
    if not callable(mount):
        raise ModuleError(f"`mount` of module `{name}` must be a function; found `{type(mount).__name__}`")
    function: Callable[..., Any] = mount
    return function


def _unimportable(name: str, error: BaseException) -> ModuleError:
    return ModuleError(f"module `{name}` cannot be imported: {type(error).__name__}: {error}")


def _missing(name: str, offered: list[str]) -> ModuleError:
    from difflib import get_close_matches

    close = get_close_matches(name, offered, 1)
    hint = f"did you mean `{close[0]}`?" if close else f"install the package that offers it as an entry point of `{GROUP}`, "
    rest = "" if close else "or give an import path or a file"
    listed = f" (installed: {', '.join(f'`{other}`' for other in offered)})" if offered else ""
    return ModuleError(f"there is no module `{name}`: {hint}{rest}{listed}")
