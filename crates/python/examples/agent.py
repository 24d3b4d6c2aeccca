"""An agent with a tool of its own, a rule and a module of Python from a bundle, a person who is asked, and a record that is verified.

The session asks before it writes. A real one would ask on the terminal: leave out `approval_system`.
"""

import asyncio
import pathlib
import tempfile
from typing import Any

from amplifier_core.approval import ScriptedApprovals
from amplifier_core.audit import open_log, verify
from amplifier_core.bundles import parse
from amplifier_core.display import TerminalDisplay
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool

# `path_guard.py` stands beside this file, and has `mount(coordinator, config)`.
BUNDLE = """
hooks:
  - rule: ask-before-mail
    on: tool:pre
    when: tool_name == "Mail"
    ask: "Send a mail to {{ tool_input.to }}?"
  - module: hooks-bash-guard
  - module: path_guard.py
"""

SCRIPT: list[str | dict[str, Any]] = [
    {"text": "I write it down.", "tools": [{"name": "Write", "input": {"file_path": "note.txt", "content": "hello"}}]},
    {"tools": [{"name": "Mail", "input": {"to": "ada@example.org", "text": "hello"}}]},
    {"tools": [{"name": "Read", "input": {"file_path": ".env"}}]},
    "Done.",
]


async def mail(input: dict[str, Any]) -> str:
    return f"sent to {input['to']}"


def count(event: str, data: dict[str, Any]) -> HookResult:
    return HookResult(action="inject_context", context_injection=f"{data['tool_name']} took {data['duration_ms']} ms")


async def main() -> None:
    hooks = HookRegistry()
    hooks.register("tool:post", count)
    with tempfile.TemporaryDirectory() as folder, open_log(pathlib.Path(folder, "audit")) as log:
        workspace = pathlib.Path(folder, "work")
        workspace.mkdir()
        async with Session(
            ScriptedProvider(SCRIPT),
            hooks=hooks,
            workspace=workspace,
            tools=[Tool("Mail", mail, "Sends a mail.", {"type": "object", "required": ["to", "text"]})],
            bundle=parse(BUNDLE, pathlib.Path(__file__).with_name("bundle.yaml")),
            approval_system=ScriptedApprovals("Allow once", "Allow", "Deny"),
            display_system=TerminalDisplay(),
            audit=log,
        ) as session:
            print(await session.prompt("Write a note and mail it."))
            for message in session.context.get_messages():
                print(f"{message['role']:>10}  {message['content']}")
            again = await session.execute_tool("Mail", {"to": "bob@example.org", "text": "hello"})
            print(again.error)
        print(verify(log.folder))


asyncio.run(main())
