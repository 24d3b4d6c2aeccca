"""A session whose person, conversation and screen are written in Python."""

import asyncio
from typing import Any, Literal

from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.display import TerminalDisplay
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult


class Conversation:
    """What the agent knows."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def add_message(self, role: str, content: str, metadata: dict[str, Any]) -> None:
        self.messages.append({"role": role, "content": content, "metadata": metadata})


class Person:
    """Agrees to everything but production. A real one asks somebody."""

    async def request_approval(
        self, prompt: str, options: list[str], timeout: float, default: Literal["allow", "deny"]
    ) -> str:
        return "Deny" if "production" in prompt else "Allow"


async def production_guard(event: str, data: dict[str, Any]) -> HookResult:
    path = data["tool_input"]["file_path"]
    return HookResult(action="ask_user", approval_prompt=f"Write {path}?", approval_options=["Allow", "Deny"])


def linter(event: str, data: dict[str, Any]) -> HookResult:
    return HookResult(
        action="inject_context", context_injection="a.py:1 line too long", user_message="1 issue", user_message_level="warning"
    )


async def main() -> None:
    hooks = HookRegistry()
    hooks.register("tool:pre", production_guard, on_error="deny")
    hooks.register("tool:post", linter)
    conversation = Conversation()
    session = SessionCoordinator(hooks, conversation, Person(), TerminalDisplay(), session_id="demo")
    for path in ("a.py", "production/a.py"):
        allowed = await session.execute_with_hooks("tool:pre", {"tool_name": "Write", "tool_input": {"file_path": path}})
        if allowed.action == "deny":
            print(f"{path}: {allowed.reason}")
            continue
        await session.execute_with_hooks("tool:post", {"tool_name": "Write", "tool_result": {"success": True}})
        print(f"{path}: {conversation.messages[-1]['content']}")


asyncio.run(main())
