"""Results of validators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ValidationCheck", "ValidationResult"]


@dataclass
class ValidationCheck:
    """One check."""

    name: str
    passed: bool
    message: str
    severity: Literal["error", "warning", "info"]


@dataclass
class ValidationResult:
    """The checks of a module, up to the first that makes the others impossible."""

    module_type: str
    module_path: str
    checks: list[ValidationCheck] = field(default_factory=list)

    def add(self, check: ValidationCheck) -> None:
        """Adds a check."""
        self.checks.append(check)

    def check(self, name: str, problem: str | None, message: str) -> bool:
        """Adds a check that failed with a problem, or passed. Returns ``True`` if it passed."""
        self.add(ValidationCheck(name, problem is None, problem or message, "info" if problem is None else "error"))
        return problem is None

    @property
    def passed(self) -> bool:
        """``True`` without errors."""
        return not self.errors

    @property
    def errors(self) -> list[ValidationCheck]:
        """The failed checks."""
        return [check for check in self.checks if not check.passed and check.severity == "error"]

    @property
    def warnings(self) -> list[ValidationCheck]:
        """The warnings."""
        return [check for check in self.checks if not check.passed and check.severity == "warning"]

    def summary(self) -> str:
        """Returns the result in one line."""
        passed = sum(check.passed for check in self.checks)
        verdict = "PASSED" if self.passed else "FAILED"
        return f"{verdict}: {passed}/{len(self.checks)} checks, {len(self.errors)} errors, {len(self.warnings)} warnings"
