#!/usr/bin/env python3
"""A model that plays a script, for agents that speak the Messages API. It needs no network and no account.

    model.py SCRIPT PORT_FILE

SCRIPT is a JSON list of steps: `{"tool": NAME, "input": {...}}` or `{"text": TEXT}`. The number of tool results in a request selects the step. Each
result is appended to `PORT_FILE.results`, one JSON text per line.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def results(messages):
    """The texts of all tool results in a conversation."""
    found = []
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                inner = block.get("content")
                inner = inner if isinstance(inner, str) else "".join(part.get("text", "") for part in inner or [])
                found.append(inner)
    return found


class Model(BaseHTTPRequestHandler):
    script = []
    log = Path()

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path:
            return self.answer("application/json", json.dumps({"input_tokens": 10}))
        if not self.path.split("?")[0].endswith("/v1/messages"):
            return self.answer("application/json", "{}")
        given = results(request.get("messages", []))
        # Requests without tools are about titles and summaries.
        step = {"text": "A title"} if not request.get("tools") else self.script[min(len(given), len(self.script) - 1)]
        if request.get("tools"):
            self.log.write_text("".join(json.dumps(text) + "\n" for text in given))
        if "tool" in step:
            block = {"type": "tool_use", "id": f"toolu_{len(given):020}", "name": step["tool"], "input": step["input"]}
        else:
            block = {"type": "text", "text": step["text"]}
        reason = "tool_use" if "tool" in step else "end_turn"
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request.get("model", "model"), "usage": usage}
        if not request.get("stream"):
            return self.answer("application/json", json.dumps({**message, "content": [block], "stop_reason": reason, "stop_sequence": None}))
        empty = {**block, "input": {}} if "tool" in step else {**block, "text": ""}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])} if "tool" in step else {"type": "text_delta", "text": step["text"]}
        events = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
        self.answer("text/event-stream", "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events))

    do_GET = do_HEAD

    def answer(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    Model.script = json.loads(Path(sys.argv[1]).read_text())
    port_file = Path(sys.argv[2])
    Model.log = port_file.with_name(port_file.name + ".results")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    port_file.write_text(str(server.server_port))
    server.serve_forever()


if __name__ == "__main__":
    main()
