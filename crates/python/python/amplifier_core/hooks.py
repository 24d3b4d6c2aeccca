"""Who listens to which event: register handlers, emit events."""

from amplifier_core._native import Emitting, HookRegistry, HookResult, Outcome, Unregister

__all__ = ["ChangedInPlaceError", "Emitting", "HookRegistry", "HookResult", "Outcome", "Unregister"]


def __getattr__(name):
    # Only tests need it.
    if name == "ChangedInPlaceError":
        from amplifier_core._strict import ChangedInPlaceError

        return ChangedInPlaceError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
