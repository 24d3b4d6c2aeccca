"""Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model import Call, Text

from .agent import Agent, Workspace


class Gemini(Agent):
    name = guard_name = "gemini"
    package = "gemini"
    program = "node_modules/@google/gemini-cli/bundle/gemini.js"
    before_tool, after_tool, prompt_submit = "BeforeTool", "AfterTool", "BeforeAgent"

    def configure(self, place: Workspace, url: str, mcp: list[str] | None) -> None:
        settings: dict[str, Any] = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "experimental": {"enableAgents": True},
        }
        if mcp:
            settings["mcpServers"] = {"marker": {"command": mcp[0], "args": mcp[1:], "trust": True}}
        place.write(place.home / ".gemini/settings.json", settings)

    def install_hooks(self, place: Workspace, commands: dict[str, str], timeout: int) -> None:
        file = place.home / ".gemini/settings.json"

        def group(command: str) -> dict[str, Any]:
            return {"hooks": [{"type": "command", "name": "test", "command": command, "timeout": timeout * 1000}]}

        settings = json.loads(file.read_text())
        settings["hooks"] = {event: [group(command)] for event, command in commands.items()}
        place.write(file, settings)

    def command(self, place: Workspace, program: Path, prompt: str) -> list[str]:
        return ["node", str(program), "-p", prompt, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-flash"]

    def environment(self, place: Workspace, url: str) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "scripted", "GEMINI_CLI_NO_RELAUNCH": "true"}

    def shell(self, command: str) -> Call:
        return Call("run_shell_command", {"command": command, "description": "scripted"})

    def write_file(self, place: Workspace, name: str, content: str) -> Call:
        return Call("write_file", {"file_path": str(place.repo / name), "content": content})

    def mcp(self, path: Path) -> Call:
        return Call("mcp_marker_mark", {"path": str(path)})

    def child(self, prompt: str) -> list[Text | Call]:
        return [Call("invoke_agent", {"agent_name": "generalist", "prompt": prompt})]

    def deny(self, reason: str) -> dict[str, Any]:
        return {"decision": "deny", "reason": reason}

    def rewrite(self, call: Call) -> dict[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": call.arguments}}

    def add_context(self, text: str) -> dict[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": text}}

    def redact(self, text: str) -> dict[str, Any]:
        return {"decision": "deny", "reason": text}

    def deny_result(self, reason: str) -> dict[str, Any]:
        return {"decision": "deny", "reason": reason}

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return {"decision": "deny", "reason": reason}
