"""Validators of modules: the module is imported and mounted on a coordinator of its own, which really runs its ``mount``."""

from __future__ import annotations

import inspect
import os
import pathlib
from typing import Any

from amplifier_core._apart import called
from amplifier_core._interfaces import MEMBERS, ModuleType, missing_members, mounted_at, plain_methods
from amplifier_core.loader import ModuleLoader
from amplifier_core.validation.base import ValidationResult

__all__ = ["ContextValidator", "HookValidator", "ModuleValidator", "OrchestratorValidator", "ProviderValidator", "ToolValidator"]


class ModuleValidator:
    """Checks the modules of one kind."""

    module_type: ModuleType

    async def validate(
        self, module_path: str | os.PathLike[str], entry_point: str | None = None, config: dict[str, Any] | None = None
    ) -> ValidationResult:
        """Checks the package at a path, or with an import path; ``entry_point`` is the name of its ``mount``."""
        result = ValidationResult(self.module_type, str(module_path))
        loader = ModuleLoader()
        try:
            await self._validate(result, loader, module_path, entry_point or "mount", config)
        finally:
            loader.cleanup()
        return result

    async def _validate(
        self, result: ValidationResult, loader: ModuleLoader, path: str | os.PathLike[str], name: str, config: dict[str, Any] | None
    ) -> None:
        module, problem = None, None
        try:
            module = loader.import_path(pathlib.Path(path)) if os.path.exists(path) else loader.import_name(os.fspath(path))
        except Exception as error:
            problem = str(error)
        if not result.check("module_importable", problem, f"imported from {path}"):
            return
        mount = getattr(module, name, None)
        if not result.check("mount_exists", None if callable(mount) else f"there is no function `{name}`", f"found `{name}`"):
            return
        result.check("mount_signature", _signature_problem(mount), "`mount` is async and takes a coordinator and a configuration")
        await self._check_mounted(result, mount, config)

    async def _check_mounted(self, result: ValidationResult, mount: Any, config: dict[str, Any] | None) -> None:
        # It imports this package.
        from amplifier_core.testing import MockCoordinator

        coordinator, cleanup = MockCoordinator(), None
        try:
            cleanup = mount(coordinator, dict(config or {}))
            cleanup = await cleanup if inspect.isawaitable(cleanup) else cleanup
            mounted = mounted_at(coordinator, self.module_type)
            has_hooks = bool(coordinator.hooks.list_handlers())
            problem = None if mounted or has_hooks or self.module_type == "hook" else f"`mount` has mounted no {self.module_type}"
            if result.check("protocol_compliance", problem, f"`mount` has mounted {', '.join(mounted) or 'hooks'}"):
                for name, one in mounted.items():
                    self._check_members(result, name, one)
        except Exception as error:
            result.check("protocol_compliance", f"`mount` failed: {type(error).__name__}: {error}", "")
        finally:
            if callable(cleanup):
                await called(cleanup)
            await coordinator.cleanup()

    def _check_members(self, result: ValidationResult, name: str, mounted: Any) -> None:
        missing = missing_members(self.module_type, mounted)
        sync = [] if missing else plain_methods(self.module_type, mounted)
        for member in MEMBERS[self.module_type]:
            problem = f"`{name}` has no `{member}`" if member in missing else None
            problem = f"`{member}` of `{name}` must be async" if member in sync else problem
            result.check(f"{self.module_type}_{member}", problem, f"`{name}` has `{member}`")


def _signature_problem(mount: Any) -> str | None:
    try:
        inspect.signature(mount).bind(None, {})
    except TypeError:
        return f"`mount` takes `{inspect.signature(mount)}`; it is called as `mount(coordinator, config)`"
    except ValueError:
        return None
    return None if inspect.iscoroutinefunction(mount) else "`mount` must be async"


class ProviderValidator(ModuleValidator):
    """Checks providers."""

    module_type: ModuleType = "provider"


class ToolValidator(ModuleValidator):
    """Checks tools."""

    module_type: ModuleType = "tool"


class HookValidator(ModuleValidator):
    """Checks hooks. ``amplifier_core.validation.validate`` also calls them."""

    module_type: ModuleType = "hook"


class OrchestratorValidator(ModuleValidator):
    """Checks orchestrators."""

    module_type: ModuleType = "orchestrator"


class ContextValidator(ModuleValidator):
    """Checks contexts."""

    module_type: ModuleType = "context"
