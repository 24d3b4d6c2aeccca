"""Tests of the form of a module, for its own test suite: it is imported, mounted, and complete.

    class TestStructure(ToolStructuralTests): ...

The fixture ``module_path`` finds the module beside the folder of the tests.
"""

from __future__ import annotations

import pathlib

from amplifier_core.validation.modules import (
    ContextValidator,
    HookValidator,
    ModuleValidator,
    OrchestratorValidator,
    ProviderValidator,
    ToolValidator,
)

__all__ = [
    "ContextStructuralTests",
    "HookStructuralTests",
    "OrchestratorStructuralTests",
    "ProviderStructuralTests",
    "ToolStructuralTests",
]


class _StructuralTests:
    validator: type[ModuleValidator]

    async def test_the_module_is_complete(self, module_path: pathlib.Path) -> None:
        """Fails with all mistakes that the validator finds."""
        result = await self.validator().validate(module_path)
        assert result.passed, [check.message for check in result.errors]


class ContextStructuralTests(_StructuralTests):
    """The form of a context."""

    validator = ContextValidator


class HookStructuralTests(_StructuralTests):
    """The form of a module of hooks."""

    validator = HookValidator


class OrchestratorStructuralTests(_StructuralTests):
    """The form of an orchestrator."""

    validator = OrchestratorValidator


class ProviderStructuralTests(_StructuralTests):
    """The form of a provider."""

    validator = ProviderValidator


class ToolStructuralTests(_StructuralTests):
    """The form of a module of tools."""

    validator = ToolValidator
