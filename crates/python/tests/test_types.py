"""What a strict type checker says about code that uses the package, and what the types are at run time."""

from __future__ import annotations

import importlib
import inspect
import pathlib
import typing
from collections.abc import Iterator
from typing import Any

import pytest

MODULES = (
    "amplifier_session",
    "approval",
    "audit",
    "bundles",
    "coordinator",
    "display",
    "loader",
    "module_coordinator",
    "module_sources",
    "modules",
    "observation",
    "session",
    "testing",
    "validation",
)

#: What it gives is slow to import.
SLOW = "amplifier_core.modules.available"

# Strict: it also finds an error to ignore that is none.
PROGRAM = """
from typing import Any, Literal

from amplifier_core.approval import ApprovalSystem, ScriptedApprovals, TerminalApprovals
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.testing import MockApprovalSystem, make_coordinator


class Sync:
    def request_approval(self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]) -> str:
        return options[0]


class Async:
    async def request_approval(
        self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]
    ) -> str:
        return options[0]


class Derived(ApprovalSystem):
    async def request_approval(
        self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]
    ) -> str:
        return options[0]


class Wrong:
    def request_approval(self, prompt: str) -> int:
        return 1


systems: list[ApprovalSystem] = [Sync(), Async(), Derived(), MockApprovalSystem(), TerminalApprovals(), ScriptedApprovals()]
wrong: ApprovalSystem = Wrong()  # type: ignore[assignment]


async def mount(coordinator: SessionCoordinator, config: dict[str, Any]) -> None:
    coordinator.register_cleanup(coordinator.hooks.register("tool:pre", lambda event, data: None))
    coordinator.get("hooks").register("tool:post", lambda event, data: None)


async def test_mount() -> None:
    coordinator = make_coordinator()
    await mount(coordinator, {})
    await coordinator.cleanup()
    coordinator.approval_system = Sync()  # type: ignore[assignment]
"""


def test_code_of_users_is_well_typed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("mypy.api")
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    assert api.run(["--strict", "program.py"]) == ("Success: no issues found in 1 source file\n", "", 0)


def public(module: str) -> Iterator[tuple[str, Any]]:
    """The classes of a module with their methods, and its functions."""
    for name in importlib.import_module(module).__all__:
        thing = getattr(importlib.import_module(module), name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield f"{module}.{name}", thing
        for inner, part in inspect.getmembers(thing) if inspect.isclass(thing) else ():
            part = part.fget if isinstance(part, property) else part
            if inspect.isfunction(part):
                yield f"{module}.{name}.{inner}", part


@pytest.mark.parametrize("module", MODULES)
def test_programs_can_read_the_types(module: str) -> None:
    for name, thing in public(f"amplifier_core.{module}"):
        if name != SLOW:
            # A type that is not there at run time is a `NameError`.
            typing.get_type_hints(thing)
