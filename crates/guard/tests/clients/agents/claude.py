"""Claude Code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from model import Call, Text

from .agent import Agent, Workspace, nested


class Claude(Agent):
    name = guard_name = "claude"
    package = "claude"
    program = "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    before_tool, after_tool, prompt_submit = "PreToolUse", "PostToolUse", "UserPromptSubmit"
    # Further keys of each hook.
    options: ClassVar[dict[str, Any]] = {}

    def configure(self, place: Workspace, url: str, mcp: list[str] | None) -> None:
        servers = {"marker": {"type": "stdio", "command": mcp[0], "args": mcp[1:]}} if mcp else {}
        place.write(place.root / "mcp.json", {"mcpServers": servers})
        place.write(place.home / ".claude.json", {"hasCompletedOnboarding": True})

    def install_hooks(self, place: Workspace, commands: dict[str, str], timeout: int) -> None:
        def group(command: str) -> dict[str, Any]:
            return {"hooks": [{"type": "command", "command": command, "timeout": timeout} | self.options]}

        place.write(place.home / ".claude/settings.json", {"hooks": {event: [group(command)] for event, command in commands.items()}})

    def command(self, place: Workspace, program: Path, prompt: str) -> list[str]:
        mode = ["--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"]
        return [str(program), "-p", prompt, *mode, "--mcp-config", str(place.root / "mcp.json"), "--strict-mcp-config"]

    def environment(self, place: Workspace, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "scripted",
            # As root, the mode that asks nothing needs this.
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def shell(self, command: str) -> Call:
        return Call("Bash", {"command": command, "description": "scripted"})

    def write_file(self, place: Workspace, name: str, content: str) -> Call:
        return Call("Write", {"file_path": str(place.repo / name), "content": content})

    def mcp(self, path: Path) -> Call:
        return Call("mcp__marker__mark", {"path": str(path)})

    def child(self, prompt: str) -> list[Text | Call]:
        return [Call("Agent", {"description": "scripted", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": False})]

    def deny(self, reason: str) -> dict[str, Any]:
        return nested("PreToolUse", permissionDecision="deny", permissionDecisionReason=reason)

    def rewrite(self, call: Call) -> dict[str, Any]:
        return nested("PreToolUse", updatedInput=call.arguments)

    def add_context(self, text: str) -> dict[str, Any]:
        return nested("PostToolUse", additionalContext=text)

    def redact(self, text: str) -> dict[str, Any]:
        return nested("PostToolUse", updatedToolOutput={"stdout": text, "stderr": "", "interrupted": False, "isImage": False})

    def deny_result(self, reason: str) -> dict[str, Any]:
        return {"decision": "block", "reason": reason}

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return {"decision": "block", "reason": reason}


class ClaudeOnFailure(Claude):
    """Claude Code with hooks that block when they fail."""

    name = "claude-on-failure"
    options: ClassVar[dict[str, Any]] = {"onFailure": "block"}
