"""Checks a hook module: its signatures, mounting and clean-up, its results with usual and unusual data, and its speed.

From a program, ``report = await validate("hooks-path-guard")``, then ``report.ok`` and ``print(report)``; from a shell,
``python -m amplifier_core.validation hooks-path-guard``.

The hooks are actually called, many times, with generated data: their side effects happen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from amplifier_core.modules import Module, ModuleError, load
from amplifier_core.validation._mounting import examine
from amplifier_core.validation._report import Finding, HookSummary, Report
from amplifier_core.validation._trial import Limits

if TYPE_CHECKING:
    from amplifier_core.validation.base import ValidationCheck, ValidationResult
    from amplifier_core.validation.modules import (
        ContextValidator,
        HookValidator,
        OrchestratorValidator,
        ProviderValidator,
        ToolValidator,
    )
    from amplifier_core.validation.mount_plan import MountPlanValidationResult, MountPlanValidator

#: The validators of other kinds of modules, which are imported on first use.
_VALIDATORS = {
    "ContextValidator": "modules",
    "HookValidator": "modules",
    "MountPlanValidationResult": "mount_plan",
    "MountPlanValidator": "mount_plan",
    "OrchestratorValidator": "modules",
    "ProviderValidator": "modules",
    "ToolValidator": "modules",
    "ValidationCheck": "base",
    "ValidationResult": "base",
}

__all__ = [
    "ContextValidator",
    "Finding",
    "HookSummary",
    "HookValidator",
    "Limits",
    "MountPlanValidationResult",
    "MountPlanValidator",
    "OrchestratorValidator",
    "ProviderValidator",
    "Report",
    "ToolValidator",
    "ValidationCheck",
    "ValidationResult",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name in _VALIDATORS:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_VALIDATORS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


async def validate(
    target: str | os.PathLike[str] | ModuleType | Module, config: Mapping[str, Any] | None = None, limits: Limits | None = None
) -> Report:
    """Checks a module, mounted with a configuration. ``target`` is resolved as by :func:`amplifier_core.modules.load`."""
    if isinstance(target, Module):
        module = target
    else:
        try:
            module = load(target)
        except ModuleError as error:
            report = Report(str(target), "nowhere")
            report.add("load", str(error))
            return report
    report = Report(module.name, module.origin)
    await examine(module, dict(config or {}), limits or Limits(), report)
    return report
