"""Codex CLI."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from model import Call, Text

from .agent import Agent, Workspace, add_file, nested


class Codex(Agent):
    name = guard_name = "codex"
    package = "codex"
    program = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    before_tool, after_tool, prompt_submit = "PreToolUse", "PostToolUse", "UserPromptSubmit"

    def configure(self, place: Workspace, url: str, mcp: list[str] | None) -> None:
        lines = [
            'model = "gpt-5.5"',
            'model_provider = "scripted"',
            "check_for_update_on_startup = false",
            "",
            # Otherwise each run ends with five seconds for a server that it cannot reach.
            "[analytics]",
            "enabled = false",
            "",
            "[features]",
            # Sub-agents without a search for their tools.
            "multi_agent_v2 = true",
            "",
            "[model_providers.scripted]",
            'name = "scripted"',
            f"base_url = {json.dumps(url + '/v1')}",
            'wire_api = "responses"',
            'env_key = "SCRIPTED_KEY"',
            "request_max_retries = 0",
            "stream_max_retries = 0",
            "",
            f"[projects.{json.dumps(str(place.repo))}]",
            'trust_level = "trusted"',
            "",
        ]
        if mcp:
            lines += ["[mcp_servers.marker]", f"command = {json.dumps(mcp[0])}", f"args = {json.dumps(mcp[1:])}", ""]
        place.write(place.home / ".codex/config.toml", "\n".join(lines))

    def install_hooks(self, place: Workspace, commands: dict[str, str], timeout: int) -> None:
        file = place.home / ".codex/hooks.json"
        groups = {event: [{"hooks": [{"type": "command", "command": command, "timeout": timeout}]}] for event, command in commands.items()}
        place.write(file, {"hooks": groups})
        with open(place.home / ".codex/config.toml", "a") as config:
            for event, command in commands.items():
                key = f"{file}:{snake_case(event)}:0:0"
                config.write(f'[hooks.state.{json.dumps(key)}]\ntrusted_hash = "{trust_hash(event, command, timeout)}"\n\n')

    def command(self, place: Workspace, program: Path, prompt: str) -> list[str]:
        return [str(program), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt]

    def environment(self, place: Workspace, url: str) -> dict[str, str]:
        return {"SCRIPTED_KEY": "scripted", "CODEX_HOME": str(place.home / ".codex")}

    def shell(self, command: str) -> Call:
        return Call("exec_command", {"cmd": command})

    def write_file(self, place: Workspace, name: str, content: str) -> Call:
        return add_file(name, content)

    def mcp(self, path: Path) -> Call:
        return Call("mcp__marker.mark", {"path": str(path)})

    def child(self, prompt: str) -> list[Text | Call]:
        task = {"message": prompt, "task_name": "scripted", "agent_type": "default", "fork_turns": "none"}
        return [Call("collaboration.spawn_agent", task), Call("collaboration.wait_agent", {"timeout_ms": 20000})]

    def deny(self, reason: str) -> dict[str, Any]:
        return nested("PreToolUse", permissionDecision="deny", permissionDecisionReason=reason)

    def rewrite(self, call: Call) -> dict[str, Any]:
        assert isinstance(call.arguments, dict)
        return nested("PreToolUse", permissionDecision="allow", updatedInput={"command": call.arguments["cmd"]})

    def add_context(self, text: str) -> dict[str, Any]:
        return nested("PostToolUse", additionalContext=text)

    def redact(self, text: str) -> dict[str, Any]:
        return {"decision": "block", "reason": text}

    def deny_result(self, reason: str) -> dict[str, Any]:
        return {"decision": "block", "reason": reason}

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return {"decision": "block", "reason": reason}


def snake_case(event: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def trust_hash(event: str, command: str, timeout: int) -> str:
    """The hash that Codex compares before it runs a hook of a user: canonical JSON of the group with this one hook."""
    hook = {"async": False, "command": command, "timeout": timeout, "type": "command"}
    text = json.dumps({"event_name": snake_case(event), "hooks": [hook]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
