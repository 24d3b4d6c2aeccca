"""The models of a session: scripted ones, those of Python, and those behind a network."""

from __future__ import annotations

import asyncio
import http.server
import json
import logging
import threading
from typing import Any

import pytest

from amplifier_core.session import RemoteProvider, ScriptedProvider, Session, Tool
from sessions import run


def test_a_failing_provider_ends_the_turn() -> None:
    async def main() -> None:
        async with Session(ScriptedProvider([{"error": "rejected"}])) as session:
            turn = await session.prompt("hey")
            assert turn.end == "failed"
            assert "rejected the request" in (turn.reason or "")

    run(main())


class Parrot:
    """A model that is written in Python."""

    name = "parrot"
    model = "grey"

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def complete(self, request: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        self.requests.append(request)
        last = request["messages"][-1]
        if last["role"] == "tool":
            return f"It says {last['content']}."
        if len(self.requests) == 1:
            raise ConnectionError("the line is dead")
        return {"text": "Let me see.", "tools": [{"name": "look", "input": {"where": last["content"]}}]}


def test_a_provider_of_python_is_asked_and_asked_again_when_the_line_is_dead() -> None:
    parrot = Parrot()

    async def main() -> None:
        look = Tool("look", lambda input: f"{input['where']}!")
        async with Session(parrot, tools=[look], options={"retry_delay": 0.001}) as session:
            assert str(await session.prompt("there")) == "It says there!."

    run(main())
    assert len(parrot.requests) == 3
    assert {tool["name"] for tool in parrot.requests[0]["tools"]} == {"look", "Task"}


def test_a_model_behind_a_network_is_asked() -> None:
    asked: list[dict[str, Any]] = []

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for piece in ("Good ", "morning."):
                self.wfile.write(chunk({"content": piece}))
                self.wfile.flush()
            self.wfile.write(chunk({}, "stop") + b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    async def main() -> None:
        provider = RemoteProvider("openai", "local", base_url=f"http://127.0.0.1:{server.server_port}/v1/")
        async with Session(provider, options={"retries": 0}) as session:
            turn = await session.prompt("Hello")
            assert (turn.end, turn.text) == ("answered", "Good morning."), turn.reason

    try:
        run(main())
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    about_hooks, prompt = (message["content"] for message in asked[0]["messages"])
    assert about_hooks.startswith("Hooks of this session can add context.")
    assert prompt == "Hello"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (3, "must return a str or a dict"),
        ({"txt": "x"}, "unknown key `txt` in an answer"),
        ({"tools": [{}]}, "expected a `name`"),
        ({"tools": {"name": "ls"}}, "`tools` of an answer must be a list of calls"),
        ({"text": [{"type": "text", "text": "hi"}]}, "`text` of an answer must be a str"),
        ({"text": "hi", "stop": 1}, "`stop` of an answer must be a str"),
    ],
)
def test_an_answer_that_cannot_be_read_fails_the_turn_at_once(answer: Any, problem: str) -> None:
    asked = list[dict[str, Any]]()

    class Broken:
        def complete(self, request: dict[str, Any]) -> Any:
            asked.append(request)
            return answer

    async def main() -> None:
        async with Session(Broken()) as session:
            turn = await session.prompt("hey")
            assert turn.end == "failed"
            assert problem in (turn.reason or "")

    run(main())
    assert len(asked) == 1


def test_a_mistake_in_a_provider_or_a_tool_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def complete(self, request: dict[str, Any]) -> Any:
            return {}["answer"]

    def look(input: dict[str, Any]) -> Any:
        return {}["tree"]

    async def main() -> None:
        async with Session(Broken(), tools=[look]) as session:
            turn = await session.prompt("hey")
            assert turn.text == "Failed: the provider failed: KeyError: 'answer'"
            await session.execute_tool("look")

    with caplog.at_level(logging.DEBUG):
        run(main())
    raised = [(record.name, record.levelname, str(record.exc_info[1])) for record in caplog.records if record.exc_info]
    assert raised == [("amplifier_core.coordinator", "ERROR", "'answer'"), ("amplifier_core.session", "DEBUG", "'tree'")]


def test_a_session_that_has_used_its_tokens_stops_however_many_a_model_claims() -> None:
    class Boastful:
        def complete(self, request: dict[str, Any]) -> Any:
            return {"text": "hi", "usage": {"input_tokens": 2**64 - 1, "output_tokens": 5}}

    async def main() -> None:
        async with Session(Boastful(), options={"tokens": 100}) as session:
            assert (await session.prompt("hey")).answered
            assert "reached its limit of 100 tokens" in (await session.prompt("hey")).text

    run(main())
