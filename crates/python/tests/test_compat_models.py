"""The models that modules of Amplifier exchange: messages, results of tools, descriptions of models and sessions."""

from __future__ import annotations

import importlib.metadata
import json
import pickle
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pydantic")

import pydantic

import amplifier_core
from amplifier_core import ChatRequest, ChatResponse, Message, ModelInfo, ToolResult, Usage
from amplifier_core.interfaces import ApprovalRequest, ApprovalResponse, ContextManager, Tool
from amplifier_core.message_models import (
    ImageBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    ResponseFormatJson,
    ResponseFormatJsonSchema,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolCallBlock,
    ToolResultBlock,
    ToolSpec,
)
from amplifier_core.models import ConfigField, ContextInjection, ModuleInfo, Pricing, ProviderInfo, SessionStatus

IMAGE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}


def test_a_message_reads_each_kind_of_block_by_its_type() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "hi"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_result", "tool_call_id": "1", "output": "a"},
        {"type": "image", "source": IMAGE},
        {"type": "reasoning", "content": [], "summary": ["s"]},
    ]
    message = Message.model_validate({"role": "assistant", "content": blocks})
    kinds = [TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolCallBlock, ToolResultBlock, ImageBlock, ReasoningBlock]
    assert [type(block) for block in message.content] == kinds
    assert message.model_dump(exclude_none=True)["content"] == blocks
    for wrong in ({"role": "robot", "content": ""}, {"role": "user", "content": [{"type": "video"}]}):
        with pytest.raises(pydantic.ValidationError):
            Message.model_validate(wrong)


def test_messages_requests_and_responses_keep_fields_of_providers() -> None:
    message = Message.model_validate({"role": "user", "content": "hi", "cache": True})
    request = ChatRequest.model_validate({"messages": [message], "seed": 7})
    assert request.model_dump()["seed"] == 7
    assert request.messages[0].model_dump()["cache"] is True
    assert (request.stream, request.tools, request.max_output_tokens) == (False, None, None)
    response = ChatResponse.model_validate({"content": [{"type": "text", "text": "x", "index": 3}], "id": "r"})
    assert response.model_dump()["content"][0]["index"] == 3
    with_tools = ChatRequest(
        messages=[message], tools=[ToolSpec(name="bash", parameters={})], response_format=ResponseFormatJsonSchema(json_schema={})
    )
    assert isinstance(with_tools.response_format, ResponseFormatJsonSchema)
    parsed = ChatRequest.model_validate({"messages": [], "response_format": {"type": "json"}})
    assert isinstance(parsed.response_format, ResponseFormatJson)
    assert ToolCall(id="1", name="bash", arguments={}).arguments == {}


@pytest.mark.parametrize("model", ["usage", "status"])
def test_a_cost_is_exact(model: str) -> None:
    def cost(value: Any) -> Any:
        if model == "usage":
            return Usage(input_tokens=1, output_tokens=2, total_tokens=3, cost_usd=value)
        return SessionStatus(session_id="s", cost_usd=value)

    assert cost("0.10").cost_usd == Decimal("0.10")
    assert cost(Decimal("1E-7")).model_dump()["cost_usd"] == "1E-7"
    assert json.loads(cost(2).model_dump_json())["cost_usd"] == "2"
    assert cost(None).model_dump()["cost_usd"] is None
    with pytest.raises(pydantic.ValidationError, match="must be Decimal, not float"):
        cost(0.5)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Success"),
        ({"output": "a\x1b[31m\tb\n"}, "a[31m\tb\n"),
        ({"output": ""}, ""),
        ({"output": {"a": [1]}}, '{"a": [1]}'),
        ({"output": 5}, "5"),
        ({"output": {"cost": Decimal("0.10")}}, '{"cost": "0.10"}'),
        ({"success": False}, "Error: Failed"),
        ({"success": False, "error": {"code": 1}}, "Error: Unknown error"),
        ({"success": False, "error": {"message": "no"}}, "no"),
        ({"success": False, "output": "o", "error": {"message": "no"}}, "o"),
        ({"error": {"message": "ignored"}}, "Success"),
    ],
)
def test_the_text_of_a_tool_result(fields: dict[str, Any], text: str) -> None:
    result = ToolResult(**fields)
    assert result.get_serialized_output() == text
    assert str(result) == text


def test_an_output_without_a_json_form_is_an_error() -> None:
    with pytest.raises(TypeError, match="`set` in the output of a tool is not JSON serializable"):
        ToolResult(output={"a": {1}}).get_serialized_output()


def test_a_failed_result_has_its_message_as_output() -> None:
    assert ToolResult(success=False, error={"message": "no"}).output == "no"
    assert ToolResult(success=True).model_copy(update={"success": False, "error": {"message": "no"}}).output == "no"
    assert ToolResult(success=False, output="", error={"message": "no"}).output == ""


def test_content_has_only_what_a_model_receives() -> None:
    given = [{"type": "text", "text": "a", "visibility": "user", "more": 1}, {"type": "image", "source": {**IMAGE, "more": 1}}]
    result = ToolResult.model_validate({"output": "o", "content": given})
    assert result.content == [TextBlock(text="a"), ImageBlock(source=dict(IMAGE))]
    expected = [{"type": "text", "text": "a"}, {"type": "image", "source": IMAGE}]
    assert result.model_dump()["content"] == expected
    assert json.loads(result.model_dump_json())["content"] == expected
    shown = result.safe_hook_presentation()
    assert shown["content"][0] == {"type": "text", "text": "a"}
    assert shown["content"][1]["type"] == "text"
    assert "AAAA" not in json.dumps(shown)


@pytest.mark.parametrize("empty", [None, [], ()])
def test_a_result_without_content_has_no_such_key(empty: Any) -> None:
    assert ToolResult(output="o", content=empty).model_dump() == {"success": True, "output": "o", "error": None}


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        {"type": "text", "text": "a"},
        [5],
        [{"text": "a"}],
        [{"type": "text", "text": 5}],
        [{"type": "tool_call", "id": "1", "name": "n", "input": {}}],
        [{"type": "image", "source": {}}],
        [{"type": "image", "source": {"type": "url", "url": "https://a/b.png"}}],
        *[[{"type": "image", "source": {**IMAGE, "media_type": other}}] for other in ("text/html", "IMAGE/PNG", "image/", None)],
        *[[{"type": "image", "source": {**IMAGE, "data": other}}] for other in ("", "@@", "AAA", "AAAA=", "AA AA", 5)],
    ],
)
def test_other_content_is_an_error_without_the_data(wrong: Any) -> None:
    with pytest.raises(pydantic.ValidationError) as raised:
        ToolResult(content=wrong)
    assert "input_value" not in str(raised.value)
    result = ToolResult(output="o")
    with pytest.raises(pydantic.ValidationError):
        result.content = wrong
    with pytest.raises(pydantic.ValidationError):
        result.model_copy(update={"content": wrong})


def test_content_that_was_changed_in_place_is_checked_again() -> None:
    result = ToolResult.model_validate({"content": [{"type": "image", "source": IMAGE}]})
    assert isinstance(result.content, list)
    assert isinstance(result.content[0], ImageBlock)
    result.content[0].source["data"] = "not base64"
    for dump in (result.model_dump, result.model_dump_json, result.safe_hook_presentation):
        with pytest.raises(ValueError, match="not base64"):
            dump()


def test_data_for_hooks_is_a_copy_in_json() -> None:
    result = ToolResult(output={"a": [1], 2: "b"})
    shown = result.safe_hook_presentation()
    assert shown == {"success": True, "output": {"a": [1], "2": "b"}, "error": None}
    shown["output"]["a"].append(2)
    assert result.output == {"a": [1], 2: "b"}
    with pytest.raises(ValueError, match="no JSON form"):
        ToolResult(output=float("nan")).safe_hook_presentation()


def test_the_descriptions_have_their_defaults() -> None:
    model = ModelInfo(id="m", display_name="M", context_window=10, max_output_tokens=5)
    assert model.model_dump() == {
        **{"id": "m", "display_name": "M", "context_window": 10, "max_output_tokens": 5},
        **{"capabilities": [], "defaults": {}, "pricing": None},
    }
    field = ConfigField(id="k", display_name="Key", prompt="Key?", field_type="secret", env_var="KEY")
    assert (field.required, field.choices, field.show_when, field.requires_model) == (True, None, None, False)
    provider = ProviderInfo(id="p", display_name="P", config_fields=[field])
    assert (provider.credential_env_vars, provider.config_fields) == ([], [field])
    assert Pricing(input_per_million=1, output_per_million=2).currency == "USD"
    with pytest.raises(pydantic.ValidationError, match="three capital letters"):
        Pricing(input_per_million=1, output_per_million=2, currency="usd")
    module = ModuleInfo(id="m", name="M", version="1", type="tool", mount_point="tools", description="d")
    assert module.config_schema is None
    injection = ContextInjection(content="x")
    assert (injection.role, injection.hook_name, injection.event) == ("system", "unknown", "")


def test_a_status_as_a_dict_has_the_fields_that_are_set() -> None:
    fields = SessionStatus(session_id="s", last_error={"a": 1}).to_dict()
    assert isinstance(fields.pop("started_at"), str)
    counters = ("total_messages", "tool_invocations", "tool_successes", "tool_failures", "total_input_tokens", "total_output_tokens")
    assert fields == {"session_id": "s", "status": "running", "last_error": {"a": 1}, **dict.fromkeys(counters, 0)}


def test_the_requests_of_approval_hooks() -> None:
    request = ApprovalRequest(tool_name="bash", action="run", risk_level="high")
    assert (request.details, request.timeout) == ({}, None)
    for timeout in (0, -1):
        with pytest.raises(pydantic.ValidationError, match="Timeout must be positive"):
            ApprovalRequest(tool_name="bash", action="run", risk_level="high", timeout=timeout)
    response = ApprovalResponse(approved=True)
    assert (response.reason, response.remember) == (None, False)
    # The coordinator's own requests are another class, at its place.
    from amplifier_core import approval

    assert amplifier_core.ApprovalRequest is ApprovalRequest
    assert {ApprovalRequest, approval.ApprovalRequest} > {ApprovalRequest}


def test_the_protocols_describe_parts() -> None:
    class Echo:
        name = "echo"
        description = "repeats"
        input_schema: dict[str, Any] = {}

        async def execute(self, input: dict[str, Any]) -> ToolResult:
            return ToolResult(output=input)

    assert isinstance(Echo(), Tool)
    assert not isinstance(Echo(), ContextManager)


def test_models_are_pickled_and_named_by_their_public_place() -> None:
    for model in (ToolResult(output="o"), ContextInjection(content="x"), Message(role="user", content="hi")):
        assert pickle.loads(pickle.dumps(model)) == model
    assert ToolResult.__module__ == "amplifier_core.models"


@pytest.mark.parametrize("statement", ["from amplifier_core import ToolResult", "import amplifier_core.message_models", "from amplifier_core.models import ModelInfo"])
def test_without_pydantic_the_error_says_what_to_install(statement: str) -> None:
    program = f"import importlib.util\nimportlib.util.find_spec = lambda name: None\n{statement}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    text = "ModuleNotFoundError: the models of `amplifier_core` need pydantic: install `amplifier-hooks[compat]`\n"
    assert ended.stderr.endswith(text)


def test_hooks_need_no_pydantic() -> None:
    program = (
        "import sys, asyncio, amplifier_core\n"
        "from amplifier_core import HookRegistry, HookResult, LLMError, TextContent, CancellationToken, retry_with_backoff\n"
        "from amplifier_core.models import HookResult\nfrom amplifier_core import events, llm_errors, content_models, utils, capabilities\n"
        "registry = HookRegistry()\nregistry.register('tool:pre', lambda event, data: HookResult(action='deny'))\n"
        "assert asyncio.run(registry.emit('tool:pre', {})).action == 'deny'\n"
        "assert not [name for name in sys.modules if name.startswith('pydantic')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_package_has_the_extra_that_the_error_names() -> None:
    assert importlib.metadata.metadata("amplifier-hooks").get_all("Provides-Extra") == ["compat"]
