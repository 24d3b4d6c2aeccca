"""An MCP server over stdio for the tests: one JSON-RPC message a line, nothing but the standard library."""

import base64
import json
import os
import socket
import subprocess
import sys

ANY = {"type": "object"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "echo", "description": "Says the same.", "inputSchema": TEXT},
    {"name": "fail", "description": "Fails.", "inputSchema": ANY},
    {"name": "refuse", "description": "Answers with a protocol error.", "inputSchema": ANY},
    {"name": "slow", "description": "Never answers.", "inputSchema": ANY},
    {"name": "cancelled", "description": "Tells which calls were cancelled.", "inputSchema": ANY},
    {"name": "crash", "description": "Ends the server.", "inputSchema": ANY},
    {"name": "pictures", "description": "Gives more than text.", "inputSchema": ANY},
    {"name": "numbers.structured", "inputSchema": ANY},
    {"name": "much", "description": "Gives too much.", "inputSchema": ANY},
    {"name": "environment", "description": "Tells what it sees of the environment.", "inputSchema": ANY},
    {"name": "change", "description": "Changes the description of `echo`.", "inputSchema": ANY},
    {"name": "hold", "description": "Connects to a socket that it and a child of it keep open.", "inputSchema": ANY},
]
slow_calls, cancelled, held = [], [], []


def text(content, **more):
    return {"content": [{"type": "text", "text": content}], **more}


def call(name, arguments):
    if name == "echo":
        return text(arguments["text"])
    if name == "fail":
        return text("the disk is full", isError=True)
    if name == "cancelled":
        return text(json.dumps([request in slow_calls for request in cancelled]))
    if name == "crash":
        os._exit(1)
    if name == "pictures":
        data = base64.b64encode(bytes(1234)).decode()
        return {"content": [
            {"type": "text", "text": "first"},
            {"type": "image", "mimeType": "image/png", "data": data},
            {"type": "audio", "mimeType": "audio/wav", "data": data},
            {"type": "resource", "resource": {"uri": "file:///notes", "text": "a note"}},
            {"type": "resource", "resource": {"uri": "file:///blob", "blob": data}},
            {"type": "resource_link", "uri": "file:///far", "name": "far"},
        ]}
    if name == "numbers.structured":
        return {"content": [], "structuredContent": {"n": [1, 2]}}
    if name == "much":
        return text("é" * 100_000)
    if name == "change":
        # From now on it says something else about `echo`, and says so, unless it is told not to.
        TOOLS[0]["description"] = arguments["description"]
        if arguments.get("announced", True):
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
        return text("changed")
    if name == "environment":
        return text(json.dumps(sorted(os.environ)))
    if name == "hold":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(arguments["path"])
        held.append(connection)
        held.append(subprocess.Popen(["sleep", "1000"], pass_fds=[connection.fileno()]))
        return text("held")
    raise KeyError(name)


def answer(request, method, params):
    if method == "initialize":
        return {"result": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }}
    if method == "tools/list":
        # In two pages.
        if (params or {}).get("cursor") == "second":
            return {"result": {"tools": TOOLS[5:]}}
        return {"result": {"tools": TOOLS[:5], "nextCursor": "second"}}
    if method == "tools/call" and params["name"] == "slow":
        slow_calls.append(request)
        return None
    if method == "tools/call" and params["name"] == "refuse":
        return {"error": {"code": params["arguments"]["code"], "message": "not like this"}}
    if method == "tools/call":
        return {"result": call(params["name"], params.get("arguments", {}))}
    return {"error": {"code": -32601, "message": "there is no such method"}}


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode.startswith("echo="):
        TOOLS[0]["description"] = mode.removeprefix("echo=")
    if mode == "schema":
        TOOLS[0]["inputSchema"] = {**TEXT, "additionalProperties": True}
    print("starting", file=sys.stderr, flush=True)
    if mode == "die":
        sys.exit("something is missing")
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "notifications/cancelled":
            cancelled.append(message["params"]["requestId"])
        if mode == "silent" or "id" not in message:
            continue
        found = answer(message["id"], message["method"], message.get("params"))
        if found is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **found}), flush=True)


main()
