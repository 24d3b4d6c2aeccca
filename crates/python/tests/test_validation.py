"""The check of modules finds what is wrong with them, and nothing in those that are in order."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import installed
from amplifier_core.events import ALL_EVENTS
from amplifier_core.modules import Module
from amplifier_core.validation import Limits, Report, validate

ROOT = pathlib.Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schema" / "events.schema.json").read_text())["$defs"]

QUICK = Limits(timeout=0.2, measuring=0.02)

HEAD = """
import asyncio, sys, time
from amplifier_core.models import HookResult
"""

#: A module around one hook.
AROUND = """
def mount(coordinator, config):
    coordinator.hooks.register("tool:pre", hook)
"""


def check(folder: pathlib.Path, code: str, config: dict[str, Any] | None = None) -> Report:
    path = folder / "own.py"
    path.write_text(HEAD + textwrap.dedent(code))
    return asyncio.run(validate(path, config, QUICK))


def told(report: Report) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity, finding.message) for finding in report.findings]


def test_the_example_is_in_order() -> None:
    report = asyncio.run(validate(installed.EXAMPLE))
    assert (report.ok, report.findings) == (True, [])
    (hook,) = report.hooks
    assert (hook.name, hook.event, hook.priority) == ("path_guard", "tool:pre", 5)
    assert hook.calls > 20
    assert hook.seconds is not None and 0 < hook.seconds < 0.05


@pytest.mark.parametrize(
    ("hook", "code", "message"),
    [
        ("def hook(event): ...", "handler-signature", "cannot register hook `hook` for `tool:pre`: it takes `(event)`, but is called with `(event, data)`; change its parameters"),
        (
            "def hook(event, data): return 7",
            "answer",
            "the answer cannot be read: expected a HookResult, a dict or None, found `int`",
        ),
        (
            "def hook(event, data): return HookResult(action='modify')",
            "answer",
            "the answer cannot be read: `modify` needs `data`",
        ),
        (
            # Once is enough to wait for it.
            "calls = []\nasync def hook(event, data):\n    calls.append(1)\n    if len(calls) == 1: await asyncio.sleep(60)",
            "timeout",
            "no answer within 0.2 s; set a shorter limit for awaited calls",
        ),
        (
            "def hook(event, data): sys.exit(3)",
            "raised",
            "the hook raised SystemExit(3); answer with `deny` instead",
        ),
        (
            "async def hook(event, data): raise OSError('x' * 10_000)",
            "raised",
            f"the hook raised OSError: {'x' * 491}…; read fields with `get` and check their types",
        ),
    ],
)
def test_a_faulty_hook_is_told(tmp_path: pathlib.Path, hook: str, code: str, message: str) -> None:
    report = check(tmp_path, f"{hook}\n{AROUND}")
    assert told(report) == [(code, "error", message)]
    assert (report.findings[0].hook, report.findings[0].event) == ("hook", "tool:pre")
    assert not report.ok


def test_a_hook_must_answer_within_its_own_timeout(tmp_path: pathlib.Path) -> None:
    guard = """
        async def guard(event, data):
            await asyncio.sleep(0.03)
            return HookResult(action="deny", reason="no")

        def mount(coordinator, config):
            coordinator.hooks.register("tool:pre", guard, timeout=TIMEOUT)
        """
    late = ("timeout", "error", "no answer within 0.01 s; set a shorter limit for awaited calls")
    assert told(check(tmp_path, guard.replace("TIMEOUT", "0.01"))) == [late]
    assert told(check(tmp_path, guard.replace("TIMEOUT", "60.0"))) == []


def test_strange_data_brings_careless_hooks_to_light(tmp_path: pathlib.Path) -> None:
    report = check(
        tmp_path,
        """
        def hook(event, data):
            if "secret" in data["tool_input"]["file_path"]:
                return HookResult(action="deny", reason="no")

        def mount(coordinator, config):
            coordinator.hooks.register("tool:pre", hook)
        """,
    )
    assert {finding.code for finding in report.findings} == {"raised"}
    data = {label for finding in report.findings for label in finding.data}
    expected = {"no fields", "no `tool_input`", "an empty `tool_input`", "`tool_input` as None", "`tool_input.file_path` as None"}
    assert expected <= data
    assert "ordinary data" not in data
    assert str(report.findings[0]) == (
        "error [raised] hook at tool:pre: the hook raised KeyError: 'tool_input'; "
        "read fields with `get` and check their types (with no fields, no `tool_input`)"
    )
    # It works with ordinary data, so its speed is known.
    assert report.hooks[0].seconds is not None


def test_deep_huge_and_odd_data_is_tried(tmp_path: pathlib.Path) -> None:
    report = check(
        tmp_path,
        """
        import json

        def hook(event, data):
            text = json.dumps(data, default=None if "thing" in data else str)
            text.encode()
            if len(text) > 100_000:
                raise MemoryError("too much")
            "".join(value for value in data.values() if isinstance(value, str)).encode()

            def walk(value, depth=0):
                assert depth < 100, "too deep"
                for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                    walk(inner, depth + 1)
            walk(data)

        def mount(coordinator, config):
            coordinator.hooks.register("prompt:submit", hook)
        """,
    )
    data = {label for finding in report.findings for label in finding.data}
    assert data == {"unicode", "huge texts", "deep data", "values that JSON cannot hold"}


def test_changing_nested_data_in_place_is_found(tmp_path: pathlib.Path) -> None:
    report = check(
        tmp_path,
        """
        def hook(event, data):
            data["mine"] = 1
            if isinstance(data.get("tool_input"), dict):
                data["tool_input"]["seen"] = True

        def mount(coordinator, config):
            coordinator.hooks.register("tool:*", hook)
        """,
    )
    message = "the hook changed `tool_input` in place; answer with `modify` and a copy instead"
    assert [(finding.code, finding.event, finding.message) for finding in report.findings] == [
        ("changed-in-place", "tool:pre", message),
        ("changed-in-place", "tool:post", message),
    ]


@pytest.fixture(scope="module")
def tried() -> dict[str, dict[str, Any]]:
    """The first data of each event with which a hook for all of them is tried."""
    seen: dict[str, dict[str, Any]] = {}

    def mount(coordinator: Any, config: dict[str, Any]) -> None:
        coordinator.hooks.register("*", lambda event, data: seen.setdefault(event, data) and None)

    asyncio.run(validate(Module("own", mount, "the test"), None, QUICK))
    return seen


def test_a_hook_for_all_events_is_tried_with_each(tried: dict[str, dict[str, Any]]) -> None:
    assert set(tried) == set(ALL_EVENTS)


@pytest.mark.parametrize("event", sorted(set(SCHEMA) & set(ALL_EVENTS)))
def test_ordinary_data_is_what_is_documented(event: str, tried: dict[str, dict[str, Any]]) -> None:
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    for name, field in SCHEMA[event]["properties"].items():
        assert isinstance(tried[event].get(name, ...), kinds.get(field.get("type"), (dict, list, str))), name


@pytest.mark.parametrize(
    ("event", "hook", "codes"),
    [
        ("provider:request", "isinstance(data.get('messages'), list) and data['messages'].append({})", {"changed-in-place"}),
        ("error:tool", "data['tool_name'].upper() if 'tool_name' in data else None", {"raised"}),
        ("tool:error", "data['tool_name'].upper() if 'tool_name' in data else None", {"raised"}),
        ("execution:end", "data['status'].upper() if 'status' in data else None", {"raised"}),
    ],
)
def test_every_event_is_tried_with_its_own_fields(tmp_path: pathlib.Path, event: str, hook: str, codes: set[str]) -> None:
    around = AROUND.replace("tool:pre", event)
    report = check(tmp_path, f"def hook(event, data):\n    {hook}\n{around}")
    assert {finding.code for finding in report.findings} == codes
    assert {finding.event for finding in report.findings} == {event}


def test_a_hook_that_hangs_is_not_waited_for_with_all_data() -> None:
    calls: list[str] = []

    async def hangs(event: str, data: dict[str, Any]) -> None:
        calls.append(event)
        await asyncio.sleep(60)

    def mount(coordinator: Any, config: dict[str, Any]) -> None:
        coordinator.hooks.register("tool:*", hangs, timeout=0.01)

    report = asyncio.run(validate(Module("own", mount, "the test"), None, QUICK))
    assert {finding.code for finding in report.findings} == {"timeout"}
    assert calls == ["tool:pre", "tool:post", "tool:error"]


def test_data_of_one_trial_does_not_reach_the_next(tmp_path: pathlib.Path) -> None:
    code = """
        def hook(event, data):
            value = data.get("tool_input")
            assert not (isinstance(value, dict) and "seen" in value)
            if isinstance(value, dict):
                value["seen"] = True

        def mount(coordinator, config):
            coordinator.hooks.register("tool:pre", hook)
        """
    assert {finding.code for finding in check(tmp_path, code).findings} == {"changed-in-place"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "def mount(coordinator, config): ...",
            ("no-hooks", "warning", "`mount` registered no hooks with this configuration"),
        ),
        (
            "def mount(coordinator): ...",
            (
                "mount-signature",
                "error",
                "`mount` of module `own` takes `(coordinator)`; it is called as `mount(coordinator, config)`",
            ),
        ),
        (
            "def mount(coordinator, config): config['path']",
            ("mount", "error", "module `own` cannot be mounted: KeyError: 'path'"),
        ),
        ("def mount(coordinator, config): sys.exit(1)", ("mount", "error", "module `own` cannot be mounted: SystemExit: 1")),
        (
            "async def mount(coordinator, config): await asyncio.sleep(60)",
            ("timeout", "error", "`mount` exceeded the time limit of 0.2 s"),
        ),
        (
            """
            def mount(coordinator, config):
                coordinator.hooks.register("tool:pre", lambda event, data: None)
                return 7
            """,
            ("mount-result", "error", "`mount` returned a `int`; return a clean-up function or None"),
        ),
        (
            """
            def mount(coordinator, config):
                coordinator.hooks.register("tool:pre", lambda event, data: None, name="one")
                return coordinator.hooks.register("tool:post", lambda event, data: None, name="two")
            """,
            ("left-behind", "warning", "the cleanup leaves `one` at `tool:pre` registered; unregister them there"),
        ),
        (
            """
            def mount(coordinator, config):
                coordinator.hooks.register("tool:pre", lambda event, data: None)
                return lambda: 1 / 0
            """,
            ("cleanup", "error", "the cleanup raised ZeroDivisionError: division by zero"),
        ),
        (
            """
            def hook(event, data): time.sleep(0.06)

            def mount(coordinator, config):
                coordinator.hooks.register("own:event", hook)
            """,
            ("slow", "warning", ...),
        ),
    ],
)
def test_a_faulty_mount_is_told(tmp_path: pathlib.Path, code: str, expected: tuple[str, str, Any]) -> None:
    report = check(tmp_path, code)
    (found,) = told(report)
    assert found[:2] == expected[:2]
    assert expected[2] in (..., found[2])
    assert report.ok == (expected[1] == "warning")


@pytest.mark.parametrize(
    ("event", "meant"),
    [
        ("tools:pre", "tool:pre"),
        ("Tool:Pre", "tool:pre"),
        ("TOOLS:PRE", "tool:pre"),
        ("Tool:Error", "tool:error"),
        ("Context:Pre-Compact", "context:pre-compact"),
        ("Tool:*", "tool:*"),
    ],
)
def test_a_slip_in_the_name_of_an_event_is_told(tmp_path: pathlib.Path, event: str, meant: str) -> None:
    report = check(tmp_path, f"def hook(event, data): ...\n{AROUND.replace('tool:pre', event)}")
    assert told(report) == [("event-name", "warning", f"unknown event `{event}`; did you mean `{meant}`?")]


@pytest.mark.parametrize("event", ["context:pre-compact", "execution:end", "tool:error", "own:event", "*", "tool:*", "own:*", "Own:*"])
def test_aliases_patterns_and_events_of_ones_own_are_fine(event: str) -> None:
    def mount(coordinator: Any, config: dict[str, Any]) -> None:
        coordinator.hooks.register(event, lambda event, data: None)

    assert asyncio.run(validate(Module("own", mount, "the test"), None, QUICK)).findings == []


def test_the_module_is_mounted_with_the_configuration(tmp_path: pathlib.Path) -> None:
    code = f"def hook(event, data): ...\n{AROUND}\n    assert config == {{'n': 1}}"
    assert check(tmp_path, code, {"n": 1}).findings == []


# ---- the command ----------------------------------------------------------------------------------------------------


def command(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": path}
    program = [sys.executable, "-m", "amplifier_core.validation", *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, env=environment)


def test_a_module_that_ends_the_program_is_not_in_order(tmp_path: pathlib.Path) -> None:
    mount = """
    import sys

    def mount(coordinator, config):
        calls = []
        unregister = coordinator.hooks.register("tool:pre", lambda event, data: HOOK, name="hook")
        return lambda: (unregister(), CLEANUP)
    """
    cases = [
        ("calls.append(1) or len(calls) > 60 and sys.exit(0) or None", "None", "raised SystemExit(0)"),
        ("None", "sys.exit(0)", "the module raised SystemExit(0)"),
    ]
    for number, (hook, cleanup, told) in enumerate(cases):
        file = tmp_path / f"module_{number}.py"
        file.write_text(textwrap.dedent(mount).replace("HOOK", hook).replace("CLEANUP", cleanup))
        ended = command(str(file))
        assert (ended.returncode, told in ended.stdout + ended.stderr) == (1, True), ended


def test_what_a_module_prints_is_no_part_of_the_report(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "printing.py"
    file.write_text(
        textwrap.dedent(
            """
            import subprocess, sys

            print("imported")

            def mount(coordinator, config):
                subprocess.run([sys.executable, "-c", "print('from a program')"], check=True)
                print("past the stream", file=sys.__stdout__)
                coordinator.hooks.register("tool:pre", lambda event, data: print("called"))
            """
        )
    )
    ended = command(str(file), "--json")
    assert (ended.returncode, json.loads(ended.stdout)["ok"]) == (0, True)
    for printed in ("imported", "from a program", "past the stream", "called"):
        assert printed in ended.stderr
    assert command(str(file)).stdout.splitlines()[-1] == "ok: 0 errors, 0 warnings"


def test_the_command_checks_an_installed_package(tmp_path: pathlib.Path) -> None:
    ended = command("hooks-path-guard", path=str(installed.install_example(tmp_path)))
    assert (ended.returncode, ended.stderr) == (0, "")
    first, hook, last = ended.stdout.splitlines()
    assert first == (
        "module hooks-path-guard, from amplifier_module_path_guard:mount of package amplifier-module-path-guard"
    )
    assert hook.startswith("  hook path_guard at tool:pre, priority 5: ")
    assert last == "ok: 0 errors, 0 warnings"


def test_the_command_prints_json_and_tells_by_its_exit_code(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(f"def hook(event, data): return 7\n{AROUND}")
    ended = command(str(bad), "--json")
    report = json.loads(ended.stdout)
    assert (ended.returncode, ended.stderr, report["ok"]) == (1, "", False)
    assert [(finding["code"], finding["hook"]) for finding in report["findings"]] == [("answer", "hook")]
    empty = tmp_path / "empty.py"
    empty.write_text("def mount(coordinator, config): ...")
    assert command(str(empty)).returncode == 0
    assert command(str(empty), "--deny-warnings").returncode == 1
    gone = command("no_such_module")
    assert (gone.returncode, gone.stdout.splitlines()[-1]) == (2, "not ok: 1 error, 0 warnings")
    for wrong in (["--config", "[]"], ["--config", "{"], ["--slow", "no"], ["--timeout", "0"]):
        assert command(str(bad), *wrong).returncode == 2
