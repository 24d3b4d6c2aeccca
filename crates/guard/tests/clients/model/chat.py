"""OpenAI chat completions: opencode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .responses import plain
from .turns import Call, Exchange, Text, ToolResult

PATHS = ("/v1/chat/completions", "/chat/completions")


def read(path: str, body: dict[str, Any]) -> Exchange:
    prompts, results = [], []
    for message in body.get("messages", []):
        if message.get("role") == "tool":
            results.append(ToolResult(message.get("tool_call_id", ""), plain(message.get("content"))))
        elif message.get("role") == "user":
            prompts.append(plain(message.get("content")))
    tools = [tool.get("function", {}).get("name", "") for tool in body.get("tools") or []]
    return Exchange("chat", body.get("model", ""), bool(body.get("stream")), prompts, results, tools, body)


def write(exchange: Exchange, turn: Text | Call, number: int) -> Iterator[bytes]:
    if isinstance(turn, Text):
        message: dict[str, Any] = {"role": "assistant", "content": turn.text}
        reason = "stop"
    else:
        function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
        message = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}
        reason = "tool_calls"
    base = {"id": f"chat_{number}", "created": 1767225600, "model": exchange.model}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if not exchange.stream:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        yield json.dumps(base | {"object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        return
    chunk = base | {"object": "chat.completion.chunk"}
    yield data(chunk | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]})
    yield data(chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
    yield b"data: [DONE]\n\n"


def data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
