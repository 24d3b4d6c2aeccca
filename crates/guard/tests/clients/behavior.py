"""The ways in which a hook answers or fails."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

# Hooks leave calls alone whose payload does not contain this: the calls that an agent makes on its own.
MARKER = "ran.txt"


@dataclass(frozen=True)
class Behavior:
    """One behavior of the test hook: output first, then the end."""

    stdout: str = ""
    stderr: str = ""
    exit: int = 0
    # The name of a signal with which the hook ends itself.
    signal: str = ""
    # Seconds between the output and the end.
    sleep: float = 0
    # Seconds for which a child keeps the standard output open after the end.
    hold: float = 0
    # For hooks of a bundle: fields of objects in the data that the hook changes, and texts that it replaces in the result.
    merge: dict[str, dict[str, Any]] = field(default_factory=dict)
    replace: dict[str, str] = field(default_factory=dict)
    when: str = MARKER

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def answer(value: dict[str, Any] | Behavior, **further: Any) -> Behavior:
    """A hook that prints an answer and succeeds."""
    if isinstance(value, Behavior):
        return dataclasses.replace(value, **further)
    return Behavior(stdout=json.dumps(value), **further)
