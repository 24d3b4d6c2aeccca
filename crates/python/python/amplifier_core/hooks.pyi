from amplifier_core._native import Emitting as Emitting
from amplifier_core._native import HookRegistry as HookRegistry
from amplifier_core._native import HookResult as HookResult
from amplifier_core._native import Outcome as Outcome
from amplifier_core._native import Unregister as Unregister
from amplifier_core._strict import ChangedInPlaceError as ChangedInPlaceError

__all__ = ["ChangedInPlaceError", "Emitting", "HookRegistry", "HookResult", "Outcome", "Unregister"]
