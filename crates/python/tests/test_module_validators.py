"""Validators of modules, and of the configuration of a session."""

from __future__ import annotations

import asyncio
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("pydantic")

from module_sessions import MODULES, plan

from amplifier_core.testing import MockContextManager, MockTool, ScriptedOrchestrator, create_test_coordinator, wait_for
from amplifier_core.validation import (
    ContextValidator,
    HookValidator,
    MountPlanValidator,
    OrchestratorValidator,
    ProviderValidator,
    ToolValidator,
)


@pytest.mark.parametrize(
    ("validator", "module"),
    [
        (ProviderValidator, "provider_scripted"),
        (ToolValidator, "tool_notes"),
        (HookValidator, "hooks_marks"),
        (OrchestratorValidator, "loop_plain"),
        (ContextValidator, "context_plain"),
    ],
)
def test_a_complete_module_passes(validator: type[Any], module: str) -> None:
    result = asyncio.run(validator().validate(MODULES / f"amplifier_module_{module}"))
    assert result.passed, result.errors


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("x =", ["module_importable"]),
        ("", ["mount_exists"]),
        ("def mount(coordinator, config): ...", ["mount_signature", "protocol_compliance"]),
        ("async def mount(coordinator, config): await coordinator.mount('tools', object(), 't')", ["tool_name", "tool_description", "tool_execute"]),
        (
            "class T:\n    name = description = 't'\n    def execute(self, input): ...\n"
            "async def mount(coordinator, config): await coordinator.mount('tools', T())",
            ["tool_execute"],
        ),
    ],
)
def test_a_mistake_is_named(tmp_path: pathlib.Path, text: str, failed: list[str], request: pytest.FixtureRequest) -> None:
    package = tmp_path / f"amplifier_module_tool_{abs(hash(text))}"
    package.mkdir()
    (package / "__init__.py").write_text(text)
    result = asyncio.run(ToolValidator().validate(package))
    assert [check.name for check in result.errors] == failed
    assert not result.passed and result.summary().startswith("FAILED")


def test_a_configuration_is_checked_without_loading_modules() -> None:
    assert MountPlanValidator().validate(plan()).passed
    result = MountPlanValidator().validate({"session": {"orchestrator": "loop"}, "tools": {}, "hooks": [{"module": 1, "config": []}]})
    assert [check.name for check in result.errors] == ["session.orchestrator", "session.context", "tools", "hooks[0].module", "hooks[0].config"]
    assert result.format_errors().startswith("1. [session.orchestrator] `session.orchestrator` must be a dict with `module`; found `str`")


def test_parts_for_tests_of_modules() -> None:
    async def main() -> None:
        coordinator, context, tool = create_test_coordinator(), MockContextManager([{"role": "user", "content": "a"}]), MockTool("t", 7)
        await coordinator.mount("context", context)
        await coordinator.mount("tools", tool)
        await context.add_message({"role": "user", "content": "b"})
        assert [message["content"] for message in await context.get_messages_for_request()] == ["a", "b"]
        assert (await coordinator.get("tools", "t").execute({})).output == 7 and tool.call_count == 1
        orchestrator = ScriptedOrchestrator(["one", "two"])
        assert [await orchestrator.execute("p", context, {}, {}, coordinator.hooks) for _ in range(3)] == ["one", "two", "two"]
        assert await wait_for(lambda: True) and not await wait_for(lambda: False, 0.01)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("Provider", "provider_scripted"),
        ("Tool", "tool_notes"),
        ("Hook", "hooks_marks"),
        ("Orchestrator", "loop_plain"),
        ("Context", "context_plain"),
    ],
)
def test_the_suite_of_a_module_inherits_tests(tmp_path: pathlib.Path, kind: str, module: str) -> None:
    shutil.copytree(MODULES / f"amplifier_module_{module}", tmp_path / f"amplifier_module_{module}")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_own.py").write_text(
        f"from amplifier_core.validation.behavioral import {kind}BehaviorTests\n"
        f"from amplifier_core.validation.structural import {kind}StructuralTests\n\n"
        f"class TestBehavior({kind}BehaviorTests): ...\n\nclass TestStructure({kind}StructuralTests): ...\n"
    )
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ended.returncode == 0 and "passed" in ended.stdout, ended.stdout
    (tmp_path / f"amplifier_module_{module}" / "__init__.py").write_text("async def mount(coordinator, config): raise ValueError('no')")
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ended.returncode == 1 and "`mount` failed: ValueError: no" in ended.stdout
