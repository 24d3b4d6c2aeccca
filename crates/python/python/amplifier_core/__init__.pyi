from amplifier_core.coordinator import SessionCoordinator as SessionCoordinator
from amplifier_core.hooks import HookRegistry as HookRegistry
from amplifier_core.models import HookResult as HookResult

__all__ = ["HookRegistry", "HookResult", "SessionCoordinator"]
