"""Built-in modules and rules know the tools of Amplifier's modules, and the field with their results."""

from __future__ import annotations

import asyncio
import pathlib
import sys
from typing import Any

import pytest

from amplifier_core.bundles import mount, parse
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from sessions import run

KEY = "AKIAIOSFODNN7EXAMPLE"

BASH_GUARD = "hooks:\n  - module: hooks-bash-guard\n"
REDACTION = "hooks:\n  - module: hooks-redaction\n"
INFRA = "hooks:\n  - rule: infra\n    on: tool:pre\n    when: changes('infra/**')\n    deny: no infra\n"


def emit(
    registry: HookRegistry, bundle: str, folder: pathlib.Path, event: str, tool: str, tool_input: dict[str, Any], **more: Any
) -> HookResult:
    async def main() -> HookResult:
        async with await mount(registry, parse(bundle, folder / "bundle.yaml"), workspace=folder):
            return await registry.emit(event, {"tool_name": tool, "tool_input": tool_input, **more})

    return run(main())


@pytest.fixture
def pre(tmp_path: pathlib.Path) -> Any:
    def emit_pre(bundle: str, tool: str, tool_input: dict[str, Any], compat: bool = False) -> HookResult:
        return emit(HookRegistry(compat=compat), bundle, tmp_path, "tool:pre", tool, tool_input)

    return emit_pre


@pytest.fixture
def post(tmp_path: pathlib.Path) -> Any:
    def emit_post(bundle: str, result: Any) -> HookResult:
        return emit(HookRegistry(), bundle, tmp_path, "tool:post", "bash", {"command": "env"}, result=result)

    return emit_post


@pytest.mark.parametrize("tool", ["bash", "Bash"])
def test_the_bash_guard_checks_the_shell(pre: Any, tool: str) -> None:
    assert pre(BASH_GUARD, tool, {"command": "rm -rf /"}).action == "ask_user"
    assert pre(BASH_GUARD, tool, {"command": "ls"}).action == "continue"


@pytest.mark.parametrize(
    ("tool", "tool_input", "action"),
    [
        ("write_file", {"file_path": "infra/a.tf", "content": ""}, "deny"),
        ("edit_file", {"file_path": "infra/a.tf", "old_string": "a", "new_string": "b"}, "deny"),
        ("write_file", {"file_path": "src/a.py", "content": ""}, "continue"),
        ("bash", {"command": "echo > infra/a.tf"}, "deny"),
        ("bash", {"command": "cat infra/a.tf"}, "continue"),
        ("read_file", {"file_path": "infra/a.tf"}, "continue"),
        ("grep", {"pattern": "x", "path": "infra"}, "continue"),
        ("glob", {"pattern": "infra/*"}, "continue"),
        # Any loop may have such a tool, so its effect is unknown.
        ("task", {"instruction": "x"}, "deny"),
        ("my_tool", {}, "deny"),
    ],
)
def test_a_rule_about_changes_knows_the_tools(pre: Any, tool: str, tool_input: dict[str, Any], action: str) -> None:
    assert pre(INFRA, tool, tool_input).action == action


@pytest.mark.parametrize("tool", ["task", "delegate", "todo"])
def test_general_words_are_amplifiers_in_its_sessions(pre: Any, tool: str) -> None:
    assert pre(INFRA, tool, {"instruction": "x"}, compat=True).action == "continue"


def test_an_input_with_both_names_of_a_field_is_unknown(pre: Any) -> None:
    assert pre(INFRA, "task", {"instruction": "x", "prompt": "y"}, compat=True).action == "deny"


def test_a_rule_names_tools_in_our_words(pre: Any) -> None:
    rule = """
hooks:
  - rule: push
    on: tool:pre
    when: tool_name == "Bash" && shell(tool_input.command).force_push
    deny: "no {{ tool_name }}"
"""
    denied = pre(rule, "bash", {"command": "git push --force"})
    assert (denied.action, denied.reason) == ("deny", "no Bash")
    assert pre(rule, "bash", {"command": "git push"}).action == "continue"


def test_handlers_in_python_keep_the_words_of_the_loop(tmp_path: pathlib.Path) -> None:
    registry = HookRegistry()
    seen: list[str] = []
    registry.register("tool:pre", lambda event, data: seen.append(data["tool_name"]), priority=100)
    result = emit(registry, BASH_GUARD, tmp_path, "tool:pre", "bash", {"command": "ls"})
    assert seen == [(result.data or {})["tool_name"]] == ["bash"]


@pytest.mark.parametrize("result", [{"success": True, "output": f"id {KEY}", "error": None}, f"id {KEY}"])
def test_redaction_changes_the_result_under_its_own_name(post: Any, result: Any) -> None:
    data = post(REDACTION, result).data
    assert KEY not in str(data)
    assert "id " in str(data["result"])
    assert set(data) == {"tool_name", "tool_input", "result", "timestamp"}


def test_redaction_changes_the_result_of_a_tool_as_a_model(post: Any) -> None:
    pytest.importorskip("pydantic")
    from amplifier_core.models import ToolResult

    shown = post(REDACTION, ToolResult(output=f"id {KEY}")).data["result"]
    assert KEY not in str(shown)
    assert shown["success"] is True
    unchanged = ToolResult(output="nothing")
    assert post(REDACTION, unchanged).data["result"] is unchanged


def test_a_rule_reads_the_success_of_a_result(post: Any) -> None:
    rule = """
hooks:
  - rule: failed
    on: tool:post
    when: "!success"
    inject: "it failed: {{ tool_name }}"
"""
    failed = post(rule, {"success": False, "output": "x"})
    assert (failed.action, failed.context_injection) == ("inject_context", "it failed: Bash")
    assert post(rule, {"success": True}).action == "continue"


def test_a_modification_has_the_words_of_the_loop(pre: Any) -> None:
    rule = """
hooks:
  - rule: short
    on: tool:pre
    modify:
      set: { /tool_input/prompt: shorter }
"""
    data = pre(rule, "task", {"instruction": "long", "agent": "a"}, compat=True).data
    assert (data["tool_name"], data["tool_input"]) == ("task", {"instruction": "shorter", "agent": "a"})


def test_handlers_of_an_amplifier_session_are_told_the_emitted_name() -> None:
    for compat, told in ((True, "tool:error"), (False, "error:tool")):
        registry = HookRegistry(compat=compat)
        seen: list[str] = []
        registry.register("error:tool", lambda event, data: seen.append(event))
        asyncio.run(registry.emit("tool:error", {}))
        assert seen == [told]


class Coordinator:
    """A coordinator with a mount point for tools."""

    def __init__(self, *tools: str) -> None:
        self.hooks = HookRegistry()
        self.config: dict[str, Any] = {}
        self._tools = dict.fromkeys(tools)

    def get(self, point: str, name: str | None = None) -> Any:
        return self._tools if point == "tools" else None


FOR_TOOLS = """
hooks:
  - module: hooks-bash-guard
  - rule: push
    on: tool:pre
    when: tool_name in ["Bash", "Terminal"] && tool_input.command.contains("push")
    deny: no push
  - rule: any
    on: tool:pre
    when: tool_input.size() > 100
    deny: too much
  - rule: servers
    on: tool:pre
    when: tool_name == "mcp__github__merge"
    deny: no merge
    enabled: false
"""


@pytest.mark.parametrize(
    ("tools", "unmatched"),
    [(["bash", "read_file"], []), (["Bash"], []), (["read_file"], ["hooks-bash-guard", "push"]), ([], ["hooks-bash-guard", "push"])],
)
def test_hooks_that_match_no_mounted_tool_are_reported_at_session_start(
    tools: list[str], unmatched: list[str], tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator = Coordinator(*tools)

    async def main() -> None:
        async with await mount(coordinator, parse(FOR_TOOLS, tmp_path / "bundle.yaml"), workspace=tmp_path):
            assert caplog.records == []
            await coordinator.hooks.emit("session:start", {})
        caplog_messages = len(caplog.records)
        await coordinator.hooks.emit("session:start", {})
        assert len(caplog.records) == caplog_messages

    run(main())
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(unmatched)
    for message, hook in zip(messages, unmatched, strict=True):
        assert f"hook `{hook}` never applies: the session has no tool `Bash`" in message


def test_hook_programs_and_their_answers_use_our_words(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "shorten.py"
    program.write_text(
        "import json, sys\n"
        "request = json.load(sys.stdin)\n"
        "data = request['data']\n"
        "assert (data['tool_name'], data['success']) == ('Bash', True), data\n"
        "data['tool_result']['output'] = 'short'\n"
        "print(json.dumps({'action': 'modify', 'data': data}))\n"
    )
    bundle = f"hooks:\n  - command: [{sys.executable}, shorten.py]\n    on: tool:post\n"
    given = {"success": True, "output": "long"}
    data = emit(HookRegistry(), bundle, tmp_path, "tool:post", "bash", {"command": "env"}, result=given).data or {}
    assert data["result"] == {"success": True, "output": "short"}
    assert set(data) == {"tool_name", "tool_input", "result", "timestamp"}
    assert data["tool_name"] == "bash"
