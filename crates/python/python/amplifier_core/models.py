"""The results of hooks and tools, and the descriptions of models, providers and sessions.

``HookResult`` needs nothing else; the others need pydantic, from ``amplifier-hooks[compat]``.
"""

from amplifier_core._native import HookResult

__all__ = ["HookResult"]


def __getattr__(name):
    if name[:1].isupper():
        from amplifier_core import _models

        if name in _models.__all__:
            return getattr(_models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
