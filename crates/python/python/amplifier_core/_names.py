"""Errors for names that the package does not have."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module

_MODULES = ("approval", "audit", "bundles", "coordinator", "display", "events", "hooks", "loader", "models", "module_sources", "modules", "observation", "session", "testing")

#: Names of the package ``amplifier-core``, and what takes their place here.
_REPLACEMENTS = {
    "RustSession": "use `Session`, of `amplifier_core.session`",
}


def missing(name: str, own: list[str], places: Iterable[str]) -> Exception:
    """Returns the error for a missing name of the package. For ``from amplifier_core import NAME`` it is an ``ImportError``, because
    Python would replace the text of an ``AttributeError``."""
    text = f"cannot find `{name}` in `amplifier_core`: {_hint(name, own, places)}"
    # The frames: this function, the module's `__getattr__`, and the code that looks the name up.
    caller = sys._getframe(2).f_code
    if caller.co_name == "_handle_fromlist":
        return ImportError(text, name="amplifier_core")
    return AttributeError(text)


def _hint(name: str, own: list[str], places: Iterable[str]) -> str:
    if name in _REPLACEMENTS:
        return _REPLACEMENTS[name]
    offered = dict.fromkeys(places, "amplifier_core")
    for module in _MODULES:
        path = f"amplifier_core.{module}"
        offered.update({one: path for one in import_module(path).__all__ if one not in offered})
    if name in offered:
        return f"import it from `{offered[name]}`"
    close = get_close_matches(name, offered, 1, 0.75)
    if close:
        return f"did you mean `{close[0]}`, of `{offered[close[0]]}`?"
    return f"it has {', '.join(f'`{one}`' for one in own)} and the modules {', '.join(f'`{one}`' for one in _MODULES)}"
