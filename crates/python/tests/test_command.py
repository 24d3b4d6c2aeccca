"""The command `amplifier` that is installed with the package, without Rust and without the source tree."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

import amplifier_core

COMMAND = pathlib.Path(sysconfig.get_path("scripts")) / ("amplifier.exe" if os.name == "nt" else "amplifier")


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder without a checkout, on a machine without cargo."""
    monkeypatch.setenv("PATH", f"{COMMAND.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def amplifier(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["amplifier", *arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


@pytest.mark.usefixtures("place")
def test_the_command_has_the_version_of_the_package() -> None:
    said = amplifier("--version")
    assert (said.returncode, said.stdout) == (0, f"amplifier {amplifier_core.__version__}\n")
    assert importlib.metadata.version("amplifier-hooks") == amplifier_core.__version__


@pytest.mark.usefixtures("place")
def test_the_command_shows_its_demo() -> None:
    shown = amplifier("demo", "--fast")
    assert shown.returncode == 0, shown.stderr


def test_the_command_runs_a_task_in_its_sandbox(place: pathlib.Path) -> None:
    calls = [{"name": "Bash", "input": {"command": "echo made > made.txt; echo x >> ../audit.jsonl; id -u"}}]
    (place / "script.json").write_text(json.dumps({"answers": [{"text": "I try.", "tools": calls}, {"text": "Done."}]}))
    asked = amplifier("run", "--provider", "scripted", "--script", "script.json", "go")
    assert asked.returncode == 3 and not (place / "made.txt").exists(), (asked.stdout, asked.stderr)
    ran = amplifier("run", "--provider", "scripted", "--script", "script.json", "--confirm", "off", "go")
    assert (ran.returncode, (place / "made.txt").read_text()) == (0, "made\n"), (ran.stdout, ran.stderr)


def test_modules_are_checked_without_the_source_tree(place: pathlib.Path) -> None:
    (place / "guard.py").write_text("def mount(coordinator, config):\n    coordinator.hooks.register('tool:pre', lambda event, data: None)\n")
    checked = subprocess.run([sys.executable, "-m", "amplifier_core.validation", "guard.py"], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_wheel_has_all_licences() -> None:
    files = {file.name: file for file in importlib.metadata.files("amplifier-hooks") or ()}
    assert "Permission is hereby granted" in files["LICENSE"].read_text()
    others = files["THIRD-PARTY.txt"].read_text()
    assert all(re.search(rf"\b{crate} \d", others) for crate in ("pyo3", "tokio", "clap", "ring"))


def test_the_command_runs_wherever_the_wheel_can_be_installed() -> None:
    wheel = importlib.metadata.distribution("amplifier-hooks").read_text("WHEEL") or ""
    tagged = re.search(r"manylinux_2_(\d+)", wheel)
    if tagged is None:
        pytest.skip("the wheel is not tagged with a version of glibc")
    needed = max(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", COMMAND.read_bytes()))
    assert needed <= int(tagged[1])
