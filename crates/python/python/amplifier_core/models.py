"""What hooks answer."""

from amplifier_core._native import HookResult

__all__ = ["HookResult"]
