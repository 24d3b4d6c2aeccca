"""Gemini generateContent and streamGenerateContent: Gemini CLI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .turns import Call, Exchange, Text, ToolResult

MODEL = re.compile(r"/models/([^/:]+):(\w+)")


def read(path: str, body: dict[str, Any]) -> Exchange:
    prompts, results = [], []
    for content in body.get("contents", []):
        for part in content.get("parts", []):
            if "functionResponse" in part:
                response = part["functionResponse"]
                results.append(ToolResult(response.get("id", ""), plain(response.get("response"))))
            elif "text" in part and content.get("role") == "user":
                prompts.append(part["text"])
    tools = [entry["name"] for tool in body.get("tools") or [] for entry in tool.get("functionDeclarations", [])]
    found = MODEL.search(path)
    model, method = found.groups() if found else ("", "")
    return Exchange("gemini", model, method == "streamGenerateContent", prompts, results, tools, body)


def plain(response: Any) -> str:
    if isinstance(response, dict) and set(response) <= {"output", "error"}:
        return "\n".join(str(text) for text in response.values())
    return json.dumps(response)


def write(exchange: Exchange, turn: Text | Call, number: int) -> Iterator[bytes]:
    if isinstance(turn, Text):
        part: dict[str, Any] = {"text": turn.text}
    else:
        part = {"functionCall": {"id": f"call_{number}", "name": turn.tool, "args": turn.arguments}}
    answer = {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": exchange.model,
    }
    data = json.dumps(answer)
    yield f"data: {data}\r\n\r\n".encode() if exchange.stream else data.encode()
