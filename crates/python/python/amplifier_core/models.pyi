from amplifier_core._models import ConfigField as ConfigField
from amplifier_core._models import ContextInjection as ContextInjection
from amplifier_core._models import ModelInfo as ModelInfo
from amplifier_core._models import ModuleInfo as ModuleInfo
from amplifier_core._models import Pricing as Pricing
from amplifier_core._models import ProviderInfo as ProviderInfo
from amplifier_core._models import SessionStatus as SessionStatus
from amplifier_core._models import ToolResult as ToolResult
from amplifier_core._native import HookResult as HookResult

__all__ = ["HookResult"]
