"""The HTTP server on loopback: it finds the wire by the path, answers from the script, and records each request."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from . import anthropic, chat, gemini, responses
from .turns import Exchange, Script


class ModelServer:
    """A model server for one run. Use it as a context manager."""

    def __init__(self, script: Script, at_first_turn: Callable[[], None] = lambda: None) -> None:
        self.script = script
        self.at_first_turn = at_first_turn
        self.exchanges: list[Exchange] = []
        # Paths that no wire knows: a client that needs one of them shows up here.
        self.unknown: list[str] = []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def record(self, exchange: Exchange) -> int:
        """Records one request and chooses its turn. Returns its number."""
        with self._lock:
            if not exchange.is_side_request and all(earlier.is_side_request for earlier in self.exchanges):
                self.at_first_turn()
            exchange.turn = self.script.turn(exchange)
            self.exchanges.append(exchange)
            return len(self.exchanges)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_HEAD(self) -> None:
                self._send(200, "application/json", [])

            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                if path.endswith("/models"):
                    model = {"id": "scripted", "object": "model", "owned_by": "nobody"}
                    self._send(200, "application/json", [json.dumps({"object": "list", "data": [model]}).encode()])
                    return
                server.unknown.append(f"GET {path}")
                self._send(404, "application/json", [b'{"error":{"message":"unknown path"}}'])

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                path = self.path.split("?")[0]
                if path.endswith(("count_tokens", "countTokens")):
                    self._send(200, "application/json", [b'{"input_tokens":10,"totalTokens":10}'])
                    return
                wire = wire_of(path)
                if wire is None:
                    server.unknown.append(f"POST {path}")
                    self._send(404, "application/json", [b'{"error":{"message":"unknown path"}}'])
                    return
                exchange = wire.read(path, json.loads(body))
                number = server.record(exchange)
                assert exchange.turn is not None
                kind = "text/event-stream" if exchange.stream else "application/json"
                self._send(200, kind, list(wire.write(exchange, exchange.turn, number)))

            def _send(self, status: int, kind: str, chunks: list[bytes]) -> None:
                body = b"".join(chunks)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler


def wire_of(path: str) -> ModuleType | None:
    for wire in (anthropic, responses, chat):
        if path in wire.PATHS:
            return wire
    return gemini if gemini.MODEL.search(path) else None
