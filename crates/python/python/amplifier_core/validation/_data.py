"""Test data for hooks: usual data for each event, and unusual data."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterator
from typing import Any

from amplifier_core.hooks import HookRegistry

_TOOL_INPUT = {"file_path": "notes.txt", "content": "hello", "command": "true"}
_TOOL = {"tool_name": "Write", "tool_input": _TOOL_INPUT, "tool_call_id": "call-1", "tool_definition": "0" * 64}
_MODEL = {"provider": "scripted", "model": "script"}
_AGENT = {"parent_session_id": "parent", "agent_name": "helper", "task": "look around"}
_ASKED = {"hook": "guard", "event": "tool:pre", "prompt": "Allow Write?"}
_ARTIFACT = {"path": "notes.txt", "bytes": 5}
_TEXT = {"type": "text", "text": "nothing"}
_ERROR = {"error": {"kind": "failed", "message": "it went wrong"}}

#: The usual fields of each event, in addition to the fields of all events.
_FIELDS: dict[str, dict[str, Any]] = {
    "tool:pre": _TOOL,
    "tool:post": {**_TOOL, "tool_result": {"success": True, "output": "done"}, "success": True, "duration_ms": 12},
    "session:start": {"mount_plan": {"tools": ["Write", "Read"]}, "source": "startup"},
    "session:resume": {"resumed_session_id": "check", "messages_count": 4},
    "session:fork": {"parent_session_id": "parent", "turn": 2},
    "session:end": {
        "reason": "complete",
        "duration_ms": 1200,
        "stats": {"total_messages": 4, "tool_invocations": 2, "total_tokens": 900},
    },
    "prompt:submit": {"prompt": "what is new?", "metadata": {}},
    "prompt:complete": {"prompt": "what is new?", "response": "nothing", "duration_ms": 1200},
    "execution:start": {"prompt": "what is new?"},
    "execution:complete": {"status": "success", "response": "nothing"},
    "orchestrator:complete": {
        "orchestrator": "loop-basic",
        "final_message": {"role": "assistant", "content": "nothing"},
        "turn_count": 2,
        "duration_ms": 1200,
        "status": "success",
    },
    "provider:request": {
        **_MODEL,
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is new?"}],
        "parameters": {"max_tokens": 1000},
    },
    "provider:response": {
        **_MODEL,
        "content": "I write it down.",
        "tool_calls": [{"id": "call-1", "name": "Write", "input": _TOOL_INPUT}],
        "usage": {"input_tokens": 90, "output_tokens": 20},
        "stop_reason": "tool_use",
    },
    "provider:retry": {"provider": "scripted", "attempt": 2, "delay_ms": 500, **_ERROR},
    "provider:throttle": {"provider": "scripted", "delay_ms": 500},
    "content_block:start": {"index": 0, "block_type": "text"},
    "content_block:delta": {"index": 0, "delta": _TEXT},
    "content_block:end": {"index": 0, "block": _TEXT},
    "thinking:delta": {"delta": "hm"},
    "thinking:final": {"content": "hm, nothing"},
    "agent:spawn": {**_AGENT, "config_override": {"tools": ["Read"]}},
    "agent:complete": {**_AGENT, "result": {"output": "done"}, "duration_ms": 500, "status": "success"},
    "artifact:read": _ARTIFACT,
    "artifact:write": _ARTIFACT,
    "context:pre_compact": {"trigger": "auto", "current_tokens": 9000, "target_tokens": 4000, "messages_count": 40},
    "context:post_compact": {"previous_tokens": 9000, "current_tokens": 3000, "messages_count": 8},
    "user:notification": {"notification_type": "alert", "message": "look", "metadata": {}},
    "approval:required": {**_ASKED, "options": ["Allow", "Deny"], "digest": "9f86d081" * 8},
    "approval:granted": {**_ASKED, "reason": "User allowed: Allow Write?"},
    "approval:denied": {**_ASKED, "reason": "User denied: Allow Write?"},
    "policy:violation": {"policy": "workspace", "reason": "it is outside of the workspace", "event": "tool:pre"},
    "cancel:requested": {"level": "graceful"},
    "cancel:completed": {"level": "graceful"},
    "decision:tool_resolution": {
        "available_tools": ["Write", "Read"],
        "selected_tool": "Write",
        "reason": "the model asked for it",
        "tool_call_id": "call-1",
    },
    "decision:agent_resolution": {"agent_name": "helper", "reason": "to help"},
    "decision:context_resolution": {"strategy": "summarize", "reason": "it is too long"},
    "error:tool": {"tool_name": "Write", **_ERROR},
    "error:provider": {"provider": "scripted", **_ERROR},
    "error:orchestration": _ERROR,
    # Of modules of Amplifier, which choose the fields.
    "plan:start": {"plan": "look around"},
    "plan:end": {"plan": "look around"},
    "llm:request": {**_MODEL, "message_count": 4},
    "llm:response": {**_MODEL, "usage": {"input_tokens": 100, "output_tokens": 20}, "status": "ok"},
    "provider:resolve": _MODEL,
    "provider:tool_sequence_repaired": {"provider": "scripted", "repair_count": 1},
    "context:include": _ARTIFACT,
    "context:compaction": {"before_tokens": 900, "after_tokens": 300},
    "module:load_failed": {"module_id": "tool-notes", **_ERROR},
    "module:on_session_ready_failed": {"module_id": "tool-notes", **_ERROR},
}

_DEPTH = 200
_UNICODE = "Ünï 漢字 👩‍👩‍👧 \u202eback\u202c \x00\x1b[2J \ud800 e\u0301"


def known(event: str) -> list[str]:
    """Returns the known events of a hook that is registered for an event, its alias, or a pattern."""
    registry = HookRegistry()
    registry.register(event, lambda event, data: None)
    return [name for name in _FIELDS if any(registry.list_handlers(name).values())]


def events_for(event: str) -> list[str]:
    """Returns the events for testing a hook that is registered for an event or a pattern."""
    return [event] if "*" not in event else known(event) or [event.replace("*", "any")]


def ordinary(event: str) -> dict[str, Any]:
    """Returns the usual data of an event."""
    fields = next((_FIELDS[name] for name in known(event)), {})
    return {"session_id": "check", **copy.deepcopy(fields)}


def strange(event: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields unusual data, each with a description."""
    for label, data in _variations(ordinary(event)):
        # Copied, because the data share values that a hook may change.
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
    """Returns the value with every text replaced."""
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
