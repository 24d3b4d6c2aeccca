"""Anthropic Messages: Claude Code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .turns import Call, Exchange, Text, ToolResult

PATHS = ("/v1/messages",)


def read(path: str, body: dict[str, Any]) -> Exchange:
    prompts, results = [], []
    for message in body.get("messages", []):
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for part in content or []:
            if part.get("type") == "tool_result":
                results.append(ToolResult(part.get("tool_use_id", ""), plain(part.get("content"))))
            elif part.get("type") == "text" and message.get("role") == "user":
                prompts.append(part["text"])
    tools = [tool.get("name", "") for tool in body.get("tools") or []]
    return Exchange("anthropic", body.get("model", ""), bool(body.get("stream")), prompts, results, tools, body)


def plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def write(exchange: Exchange, turn: Text | Call, number: int) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": exchange.model, "stop_sequence": None, "usage": usage}
    if isinstance(turn, Text):
        block: dict[str, Any] = {"type": "text", "text": turn.text}
        start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
        reason = "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{number:020}", "name": turn.tool, "input": turn.arguments}
        start, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
        reason = "tool_use"
    if not exchange.stream:
        yield json.dumps(message | {"content": [block], "stop_reason": reason}).encode()
        return
    yield event("message_start", message=message | {"content": [], "stop_reason": None})
    yield event("content_block_start", index=0, content_block=start)
    yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 5})
    yield event("message_stop")


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | data)}\n\n".encode()
