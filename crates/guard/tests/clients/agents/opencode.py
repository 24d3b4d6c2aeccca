"""opencode. It has no command hooks: a plugin calls the test hook and applies its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model import Call, Text

from .agent import Agent, Workspace

PLUGIN = Path(__file__).with_name("opencode_plugin.js")


class OpenCode(Agent):
    name = guard_name = "opencode"
    package = "opencode"
    program = "node_modules/opencode-linux-x64/bin/opencode"
    before_tool, after_tool, prompt_submit = "tool.execute.before", "tool.execute.after", "chat.message"

    def configure(self, place: Workspace, url: str, mcp: list[str] | None) -> None:
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": url + "/v1", "apiKey": "scripted"},
            "models": {"scripted": model},
        }
        settings: dict[str, Any] = {
            "$schema": "https://opencode.ai/config.json",
            "provider": {"scripted": provider},
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "autoupdate": False,
            "share": "disabled",
            "permission": "allow",
        }
        if mcp:
            settings["mcp"] = {"marker": {"type": "local", "command": mcp, "enabled": True}}
        place.write(place.home / ".config/opencode/opencode.json", settings)
        # With a plugin, each start installs a package for types. Without network, four attempts take 72 seconds.
        place.write(place.home / ".npmrc", "fetch-retries=0\n")

    def install_hooks(self, place: Workspace, commands: dict[str, str], timeout: int) -> None:
        text = PLUGIN.read_text().replace("/* COMMANDS */ {}", json.dumps(commands))
        place.write(place.home / ".config/opencode/plugin/test.js", text)

    def break_hooks(self, place: Workspace, how: str) -> None:
        code = {"syntax error": "export const TestHooks = async () => ({\n", "throws while loading": 'throw new Error("scripted");\n'}
        place.write(place.home / ".config/opencode/plugin/test.js", code[how])

    def command(self, place: Workspace, program: Path, prompt: str) -> list[str]:
        return [str(program), "run", "--auto", "-m", "scripted/scripted", prompt]

    def environment(self, place: Workspace, url: str) -> dict[str, str]:
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def shell(self, command: str) -> Call:
        return Call("bash", {"command": command, "description": "scripted"})

    def write_file(self, place: Workspace, name: str, content: str) -> Call:
        return Call("write", {"filePath": str(place.repo / name), "content": content})

    def mcp(self, path: Path) -> Call:
        return Call("marker_mark", {"path": str(path)})

    def child(self, prompt: str) -> list[Text | Call]:
        return [Call("task", {"description": "scripted", "prompt": prompt, "subagent_type": "general"})]

    # The plugin of the tests knows these answers; opencode itself knows exceptions and objects that change.

    def deny(self, reason: str) -> dict[str, Any]:
        return {"deny": reason}

    def rewrite(self, call: Call) -> dict[str, Any]:
        return {"args": call.arguments}

    def add_context(self, text: str) -> dict[str, Any]:
        return {"append": text}

    def redact(self, text: str) -> dict[str, Any]:
        return {"output": text}

    def deny_result(self, reason: str) -> dict[str, Any]:
        return {"deny": reason}

    def deny_prompt(self, reason: str) -> dict[str, Any]:
        return {"deny": reason}
