"""Hooks for AI agents: observe, block, modify, inject, ask, and control output.

Names are imported on first use: ``from amplifier_core import HookRegistry`` and
``from amplifier_core.hooks import HookRegistry`` are the same class.
"""

_PLACES = {
    "HookRegistry": "hooks",
    "HookResult": "models",
    "Session": "session",
    "SessionCoordinator": "coordinator",
    "__version__": "_native",
}

__all__ = ["HookRegistry", "HookResult", "Session", "SessionCoordinator", "__version__"]


def __getattr__(name):
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    # Not a class: probably a module, which is imported after this error.
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from amplifier_core._names import missing

    raise missing(name, __all__)
