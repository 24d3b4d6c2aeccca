"""The plugin, in runs of pytest of their own."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import installed

ROOT = pathlib.Path(__file__).parents[3]


def run(folder: pathlib.Path, code: str, *options: str, ini: str = "") -> tuple[dict[str, int], str]:
    """How many tests passed, failed and so on, and what was printed."""
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (folder / "test_own.py").write_text(textwrap.dedent(code))
    program = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(folder)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, cwd=folder)
    counts = re.findall(r"(\d+) (passed|failed|errors?|skipped|warnings?)", ended.stdout.splitlines()[-1])
    return {what: int(number) for number, what in counts}, ended.stdout


def test_the_fixtures_belong_together(tmp_path: pathlib.Path) -> None:
    counts, printed = run(
        tmp_path,
        """
        import pytest
        from amplifier_core.models import HookResult

        async def test_all(coordinator, hook_registry, event_recorder, scripted_approval, mock_context, collecting_display):
            assert coordinator.hooks is hook_registry
            ask = HookResult(action="ask_user", approval_prompt="Go?", user_message="hello")
            hook_registry.register("tool:pre", lambda event, data: ask)
            scripted_approval.decide("Allow")
            assert (await coordinator.execute_with_hooks("tool:pre", {"n": 1})).action == "continue"
            assert (await coordinator.execute_with_hooks("tool:pre", {"n": 2})).action == "deny"
            event_recorder.assert_emitted("tool:pre", n=2)
            assert len(scripted_approval.questions) == 2
            inject = HookResult(action="inject_context", context_injection="mind it")
            hook_registry.register("tool:post", lambda event, data: inject)
            await coordinator.execute_with_hooks("tool:post", {})
            assert [message["content"] for message in mock_context.injections] == ["mind it"]
            assert "hello" in collecting_display.texts()

        def test_every_test_has_its_own(hook_registry, mock_context):
            assert (hook_registry.list_handlers(), mock_context.messages) == ({}, [])

        @pytest.mark.parametrize("n", [1, 2])
        async def test_parameters(n, hook_registry):
            assert n

        async def test_failures_are_told(hook_registry):
            assert 1 == 2
        """,
    )
    assert counts == {"passed": 4, "failed": 1}, printed


def test_marked_async_tests_run_too(tmp_path: pathlib.Path) -> None:
    code = "import pytest\n@pytest.mark.asyncio\nasync def test_mine(tmp_path): assert tmp_path"
    counts, printed = run(tmp_path, code, "--strict-markers", "-W", "error")
    assert counts == {"passed": 1}, printed


def test_async_tests_without_the_fixtures_are_left_to_others(tmp_path: pathlib.Path) -> None:
    counts, printed = run(tmp_path, "async def test_mine(): ...")
    assert counts == {"failed": 1}, printed
    assert "async def functions are not natively supported" in printed


CARELESS = """
    async def test_careless(hook_registry):
        hook_registry.register("tool:pre", lambda event, data: data["a"].append(1))
        await hook_registry.emit("tool:pre", {"a": []})
    """


@pytest.mark.parametrize(
    ("options", "ini", "ended"),
    [
        ([], "", "failed"),
        (["--no-hooks-strict"], "", "passed"),
        ([], "hooks_strict = false", "passed"),
        (["--hooks-strict"], "hooks_strict = false", "failed"),
    ],
)
def test_strictness_is_an_option(tmp_path: pathlib.Path, options: list[str], ini: str, ended: str) -> None:
    counts, printed = run(tmp_path, CARELESS, *options, ini=ini)
    assert counts == {ended: 1}
    assert ("ChangedInPlaceError: hook `<lambda>` changed `a` in place" in printed) == (ended == "failed")


def test_the_plugin_imports_the_package_only_when_it_is_used(tmp_path: pathlib.Path) -> None:
    code = """
        import sys

        def test_nothing_is_imported():
            loaded = {name for name in sys.modules if name.startswith("amplifier_core")}
            assert loaded == {"amplifier_core", "amplifier_core.pytest_plugin"}
        """
    counts, printed = run(tmp_path, code)
    assert counts == {"passed": 1}, printed


def test_the_tests_in_the_guide_pass(tmp_path: pathlib.Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "test-hooks-in-python.md").read_text()
    module, tests = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "path_guard.py").write_text(module)
    counts, printed = run(tmp_path, tests)
    assert counts == {"passed": 3}, printed
    ended = subprocess.run([sys.executable, "-m", "amplifier_core.validation", str(tmp_path / "path_guard.py")], timeout=60)
    assert ended.returncode == 0


def test_importing_the_package_imports_neither_pytest_nor_asyncio() -> None:
    code = """
import sys
import amplifier_core, amplifier_core.hooks, amplifier_core.models, amplifier_core.events, amplifier_core.modules
assert not {"asyncio", "pytest", "unittest", "importlib.metadata"} & set(sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_example_runs() -> None:
    ended = subprocess.run([sys.executable, str(installed.EXAMPLE)], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "secrets/key is protected\n", "")
