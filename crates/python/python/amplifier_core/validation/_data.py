"""Data for trying hooks: ordinary for each event, and strange."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

_TOOL = {"tool_name": "Write", "tool_input": {"file_path": "notes.txt", "content": "hello", "command": "true"}}
_AGENT = {"parent_session_id": "parent", "agent_name": "helper", "task": "look around"}
_ERROR = {"error": {"type": "RuntimeError", "message": "it went wrong"}}

#: What comes with each event, beside the fields of all events.
_FIELDS: dict[str, dict[str, Any]] = {
    "tool:pre": _TOOL,
    "tool:post": {**_TOOL, "tool_result": {"success": True, "output": "done"}, "success": True, "duration_ms": 12},
    "session:start": {"mount_plan": {}, "source": "startup"},
    "session:end": {
        "reason": "complete",
        "duration_ms": 1200,
        "stats": {"total_messages": 4, "tool_invocations": 2, "total_tokens": 900},
    },
    "prompt:submit": {"prompt": "what is new?", "metadata": {}},
    "orchestrator:complete": {
        "orchestrator": "loop-basic",
        "final_message": {"role": "assistant", "content": "nothing"},
        "turn_count": 2,
        "duration_ms": 1200,
        "status": "success",
    },
    "agent:spawn": {**_AGENT, "config_override": {}},
    "agent:complete": {**_AGENT, "result": {"output": "done"}, "duration_ms": 500, "status": "success"},
    "context:pre_compact": {"trigger": "auto", "current_tokens": 9000, "target_tokens": 4000, "messages_count": 40},
    "user:notification": {"notification_type": "alert", "message": "look", "metadata": {}},
    "decision:tool_resolution": {"available_tools": ["Write", "Read"], "selected_tool": "Write", "reason": "to write"},
    "decision:agent_resolution": {"agent_name": "helper", "reason": "to help"},
    "decision:context_resolution": {"strategy": "simple", "reason": "it is enough"},
    "error:tool": {"tool_name": "Write", **_ERROR},
    "error:provider": {"provider": "scripted", **_ERROR},
    "error:orchestration": _ERROR,
}

#: How many events stand for a pattern.
_OF_A_PATTERN = 3

_DEPTH = 200
_UNICODE = "Ünï 漢字 👩‍👩‍👧 \u202eback\u202c \x00\x1b[2J \ud800 e\u0301"


def events_for(event: str) -> list[str]:
    """The events to try a hook with that is registered for an event or a pattern."""
    if "*" not in event:
        return [event]
    matching = [known for known in _FIELDS if fnmatchcase(known, event)]
    return matching[:_OF_A_PATTERN] or [event.replace("*", "any")]


def ordinary(event: str) -> dict[str, Any]:
    """What usually comes with an event."""
    # Aliases differ in these alone.
    fields = _FIELDS.get(event) or _FIELDS.get(event.replace("-", "_"), {})
    return {"session_id": "check", **copy.deepcopy(fields)}


def strange(event: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Data that nobody expects, and what is strange about each."""
    for label, data in _variations(ordinary(event)):
        # They share values, which a hook may change.
        yield label, copy.deepcopy(data)


def _variations(usual: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "no fields", {}
    for name in usual:
        yield f"no `{name}`", {key: value for key, value in usual.items() if key != name}
    for name, value in usual.items():
        if isinstance(value, dict):
            yield f"an empty `{name}`", {**usual, name: {}}
        for other in (None, 7, "text", ["a", 1], {"a": 1}):
            if type(other) is not type(value):
                yield f"`{name}` as {_kind(other)}", {**usual, name: other}
    for name, value in usual.items():
        if isinstance(value, dict):
            for inner in value:
                yield f"`{name}.{inner}` as None", {**usual, name: {**value, inner: None}}
    yield "unknown fields", {**usual, "surprise": {"a": [1, 2]}, "": "an empty name"}
    yield "unicode", _with_text(usual, _UNICODE)
    yield "huge texts", _with_text(usual, "x" * 1_000_000)
    yield "a huge list", {**usual, "items": list(range(10_000))}
    yield "deep data", {**usual, "deep": _deep()}
    made = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
    odd = {"when": made, "raw": b"\xff\x00", "many": (1, 2), "nan": float("nan"), "big": 1 << 200, "thing": object()}
    yield "values that JSON cannot hold", {**usual, **odd}


def _kind(value: Any) -> str:
    return {"NoneType": "None", "int": "a number", "str": "text", "list": "a list", "dict": "a dict"}[type(value).__name__]


def _with_text(value: Any, text: str) -> Any:
    """The same with every text replaced."""
    if isinstance(value, dict):
        return {name: _with_text(inner, text) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_text(inner, text) for inner in value]
    return text if isinstance(value, str) else value


def _deep() -> Any:
    value: Any = "the end"
    for level in range(_DEPTH):
        value = {"next": value} if level % 2 else [value]
    return value
