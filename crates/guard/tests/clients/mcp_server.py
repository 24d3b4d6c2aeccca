"""A small MCP server on standard input and output, with one tool: `mark` creates a file."""

import json
import sys
from pathlib import Path

TOOL = {
    "name": "mark",
    "description": "Creates an empty file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def answer(method: str, params: dict) -> dict | None:
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "marker", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        Path(params["arguments"]["path"]).touch()
        return {"content": [{"type": "text", "text": "marked-4417"}], "isError": False}
    return {} if method == "ping" else None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | reply), flush=True)
