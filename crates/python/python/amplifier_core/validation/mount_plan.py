"""The validator of the configuration of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amplifier_core.validation.base import ValidationCheck, ValidationResult

__all__ = ["MountPlanValidationResult", "MountPlanValidator"]


class MountPlanValidationResult(ValidationResult):
    """The checks of a configuration."""

    def __init__(self, checks: list[ValidationCheck] | None = None) -> None:
        super().__init__("mount_plan", "", list(checks or []))

    def format_errors(self) -> str:
        """Returns the errors as numbered lines."""
        return "\n".join(f"{number}. [{check.name}] {check.message}" for number, check in enumerate(self.errors, 1))


class MountPlanValidator:
    """Checks the form of a configuration, without loading modules."""

    def validate(self, mount_plan: Any) -> MountPlanValidationResult:
        """Checks a configuration."""
        result = MountPlanValidationResult()
        if not _is(result, "mount_plan", mount_plan, Mapping, "a dict"):
            return result
        session = mount_plan.get("session")
        if _is(result, "session", session, Mapping, "a dict"):
            for name in ("orchestrator", "context"):
                _check_module(result, f"session.{name}", session.get(name))
        for section in ("providers", "tools", "hooks"):
            modules = mount_plan.get(section, [])
            if _is(result, section, modules, list, "a list of modules"):
                for number, module in enumerate(modules):
                    _check_module(result, f"{section}[{number}]", module)
        return result


def _check_module(result: MountPlanValidationResult, place: str, module: Any) -> None:
    if not _is(result, place, module, Mapping, "a dict with `module`"):
        return
    _is(result, f"{place}.module", module.get("module"), str, "the id of a module")
    if module.get("config") is not None:
        _is(result, f"{place}.config", module["config"], Mapping, "a dict")
    if module.get("source") is not None:
        _is(result, f"{place}.source", module["source"], (str, Mapping), "a text or a dict")


def _is(result: MountPlanValidationResult, place: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> bool:
    found = "it is missing" if value is None else f"found `{type(value).__name__}`"
    problem = None if isinstance(value, kind) else f"`{place}` must be {wanted}; {found}"
    return result.check(place, problem, f"`{place}` is {wanted}")
