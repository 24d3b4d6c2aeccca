from amplifier_core._native import __version__ as __version__
from amplifier_core.coordinator import SessionCoordinator as SessionCoordinator
from amplifier_core.hooks import HookRegistry as HookRegistry
from amplifier_core.models import HookResult as HookResult
from amplifier_core.session import Session as Session

__all__ = ["HookRegistry", "HookResult", "Session", "SessionCoordinator", "__version__"]
