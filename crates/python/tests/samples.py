"""The code samples of the documentation, word for word: they are read from ``seeds/``, never retyped."""

from __future__ import annotations

import ast
import inspect
import logging
import pathlib
import re
import types
from typing import Any, Literal

from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

SEEDS = pathlib.Path(__file__).parent / "seeds"
FENCED = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks() -> dict[str, str]:
    """Every sample that stands in a fence, by the number of its document and its place in it."""
    found = {}
    for path in sorted(SEEDS.glob("*.txt")):
        for place, code in enumerate(FENCED.findall(path.read_text())):
            found[f"{path.name[:3]}/{place}"] = code
    return found


def passage(document: str, first: str, last: str) -> str:
    """A sample that stands in no fence: from the line that begins so to the next one that is this."""
    text = next(SEEDS.glob(f"{document}_*.txt")).read_text()
    start = re.search(rf"^{re.escape(first)}", text, re.MULTILINE)
    assert start, first
    end = text.index(f"\n{last}\n", start.start()) + len(last) + 1
    return text[start.start() : end]


class StructuredLogger:
    """A logger that takes fields, as the samples write it."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []

    def _log(self, message: str, **fields: Any) -> None:
        self.records.append((message, fields))

    debug = info = warning = error = _log


class Programs:
    """Stands for ``subprocess``: nothing is started, and programs end as they are told."""

    def __init__(self, returncode: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.answer = types.SimpleNamespace(returncode=returncode, stdout=stdout, stderr=stderr)
        self.started: list[list[str]] = []

    def run(self, command: list[str], **_: Any) -> Any:
        self.started.append(command)
        return self.answer


def around(**names: Any) -> dict[str, Any]:
    """What the samples take for granted."""
    usual = {
        "Any": Any,
        "Literal": Literal,
        "HookRegistry": HookRegistry,
        "HookResult": HookResult,
        "logger": StructuredLogger(),
        "logging": logging,
        "re": re,
        "registry": HookRegistry(),
        "subprocess": Programs(),
        "__name__": "sample",
    }
    return {**usual, **names}


async def execute(code: str, **names: Any) -> dict[str, Any]:
    """Runs a sample. It may await at its top level, as the documentation does."""
    space = around(**names)
    program = compile(code, "<sample>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(program, space)
    if inspect.isawaitable(running):
        await running
    return space


async def answer(code: str, hook: str, event: str, data: dict[str, Any], **names: Any) -> HookResult:
    """What a hook that a sample defines makes of an event, through a registry."""
    space = await execute(code, **names)
    registry = HookRegistry(strict=True)
    registry.register(event, space[hook])
    return await registry.emit(event, data)
