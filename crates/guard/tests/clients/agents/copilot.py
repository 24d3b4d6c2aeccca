"""Copilot CLI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model import Call, Text

from .agent import Agent, Workspace, add_file


class Copilot(Agent):
    name = guard_name = "copilot"
    package = "copilot"
    program = "node_modules/@github/copilot-linux-x64/copilot"
    shared_caches = (".cache/copilot",)
    before_tool, after_tool, prompt_submit = "preToolUse", "postToolUse", "userPromptSubmitted"

    def configure(self, place: Workspace, url: str, mcp: list[str] | None) -> None:
        servers = {"marker": {"type": "local", "command": mcp[0], "args": mcp[1:], "tools": ["*"]}} if mcp else {}
        place.write(place.home / ".copilot/mcp-config.json", {"mcpServers": servers})
        place.write(place.home / ".copilot/config.json", {"trusted_folders": [str(place.repo)], "banner": "never"})

    def install_hooks(self, place: Workspace, commands: dict[str, str], timeout: int) -> None:
        hooks = {event: [{"type": "command", "bash": command, "timeoutSec": timeout}] for event, command in commands.items()}
        place.write(place.home / ".copilot/hooks/test.json", {"version": 1, "hooks": hooks})

    def command(self, place: Workspace, program: Path, prompt: str) -> list[str]:
        return [str(program), "-p", prompt, "--allow-all-tools", "--allow-all-paths", "--no-auto-update"]

    def environment(self, place: Workspace, url: str) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": url + "/v1",
            "COPILOT_PROVIDER_WIRE_API": "responses",
            "COPILOT_PROVIDER_API_KEY": "scripted",
            "COPILOT_MODEL": "gpt-5.4",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def shell(self, command: str) -> Call:
        return Call("bash", {"command": command, "description": "scripted"})

    def write_file(self, place: Workspace, name: str, content: str) -> Call:
        return add_file(name, content)

    def mcp(self, path: Path) -> Call:
        return Call("marker-mark", {"path": str(path)})

    def child(self, prompt: str) -> list[Text | Call]:
        return [Call("task", {"name": "scripted", "description": "scripted", "prompt": prompt, "agent_type": "general-purpose", "mode": "sync"})]

    def deny(self, reason: str) -> dict[str, Any]:
        return {"permissionDecision": "deny", "permissionDecisionReason": reason}

    def rewrite(self, call: Call) -> dict[str, Any]:
        return {"modifiedArgs": call.arguments}

    def add_context(self, text: str) -> dict[str, Any]:
        return {"additionalContext": text}

    def redact(self, text: str) -> dict[str, Any]:
        return {"modifiedResult": {"resultType": "success", "textResultForLlm": text}}

    def deny_result(self, reason: str) -> dict[str, Any]:
        return {"decision": "block", "reason": reason}

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return {"decision": "block", "reason": reason}
