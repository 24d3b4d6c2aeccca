"""OpenAI Responses: Codex and Copilot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .anthropic import event
from .turns import Call, Exchange, Text, ToolResult

PATHS = ("/v1/responses", "/responses")


def read(path: str, body: dict[str, Any]) -> Exchange:
    prompts, results = [], []
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for item in items:
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            results.append(ToolResult(item.get("call_id", ""), plain(item.get("output"))))
        elif item.get("role") == "user":
            prompts.append(plain(item.get("content")))
        elif item.get("type") == "agent_message":
            # The task of a sub-agent of Codex. Its text is in a field that a real server encrypts.
            prompts.append(json.dumps(item.get("content")))
    tools = [name for tool in body.get("tools") or [] for name in names(tool)]
    return Exchange("responses", body.get("model", ""), bool(body.get("stream")), prompts, results, tools, body)


def names(tool: dict[str, Any]) -> list[str]:
    """The name of a tool. Codex puts the tools of an MCP server into a namespace."""
    if tool.get("type") == "namespace":
        return [f"{tool.get('name')}.{inner.get('name')}" for inner in tool.get("tools", [])]
    return [tool.get("name") or tool.get("type", "")]


def plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else json.dumps(content)


def write(exchange: Exchange, turn: Text | Call, number: int) -> Iterator[bytes]:
    item = output_item(turn, number)
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    response = {"id": f"resp_{number}", "object": "response", "created_at": 1767225600, "model": exchange.model, "error": None}
    complete = response | {"status": "completed", "output": [item], "usage": usage}
    if not exchange.stream:
        yield json.dumps(complete).encode()
        return
    started = response | {"status": "in_progress", "output": []}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": started}),
        ("response.in_progress", {"response": started}),
        ("response.output_item.added", {"output_index": 0, "item": started_item(item)}),
        *deltas(item),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": complete}),
    ]
    for sequence, (kind, data) in enumerate(events):
        yield event(kind, sequence_number=sequence, **data)


def output_item(turn: Text | Call, number: int) -> dict[str, Any]:
    if isinstance(turn, Text):
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    call = {"id": f"item_{number}", "call_id": f"call_{number}", "status": "completed"}
    if isinstance(turn.arguments, str):
        return call | {"type": "custom_tool_call", "name": turn.tool, "input": turn.arguments}
    space, dot, name = turn.tool.rpartition(".")
    namespace = {"namespace": space} if dot else {}
    return call | namespace | {"type": "function_call", "name": name, "arguments": json.dumps(turn.arguments)}


def started_item(item: dict[str, Any]) -> dict[str, Any]:
    empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "custom_tool_call": {"input": ""}}
    return item | {"status": "in_progress"} | empty[item["type"]]


def deltas(item: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    place = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "message":
        part = item["content"][0]
        place |= {"content_index": 0}
        return [
            ("response.content_part.added", place | {"part": part | {"text": ""}}),
            ("response.output_text.delta", place | {"delta": part["text"]}),
            ("response.output_text.done", place | {"text": part["text"]}),
            ("response.content_part.done", place | {"part": part}),
        ]
    if item["type"] == "custom_tool_call":
        kind, key = "response.custom_tool_call_input", "input"
    else:
        kind, key = "response.function_call_arguments", "arguments"
    return [(f"{kind}.delta", place | {"delta": item[key]}), (f"{kind}.done", place | {key: item[key]})]
