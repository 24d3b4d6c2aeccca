"""Helpers of providers and loops: errors, retries, shorter data, blocks of content, cancellation."""

from __future__ import annotations

import asyncio
import gc
import pickle
import warnings
import weakref
from typing import Any

import pytest

import amplifier_core
from amplifier_core import capabilities, llm_errors
from amplifier_core.cancellation import CancellationState, CancellationToken
from amplifier_core.content_models import (
    ContentBlock,
    ContentBlockType,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from amplifier_core.llm_errors import InvalidToolCallError, LLMError, RateLimitError
from amplifier_core.utils import SENSITIVE_KEYS, redact_secrets, truncate_values
from amplifier_core.utils.retry import RetryConfig, classify_error_message, retry_with_backoff

RETRYABLE = {"RateLimitError", "ProviderUnavailableError", "NetworkError", "LLMTimeoutError", "StreamError"}


@pytest.mark.parametrize("name", llm_errors.__all__)
def test_an_error_knows_if_a_retry_may_help(name: str) -> None:
    kind: type[LLMError] = getattr(llm_errors, name)
    assert getattr(amplifier_core, name) is kind
    assert kind("no").retryable is (name in RETRYABLE)
    assert kind("no", retryable=name not in RETRYABLE).retryable is (name not in RETRYABLE)
    error = kind("no", provider="p", model="m", status_code=500)
    assert (str(error), error.provider, error.model, error.status_code) == ("no", "p", "m", 500)
    assert (error.retry_after, error.delay_multiplier) == (None, 1.0)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), vars(copy)) == (kind, vars(error))


def test_the_errors_form_a_hierarchy() -> None:
    assert issubclass(llm_errors.QuotaExceededError, RateLimitError)
    assert issubclass(llm_errors.AccessDeniedError, llm_errors.AuthenticationError)
    assert issubclass(llm_errors.NetworkError, llm_errors.ProviderUnavailableError)
    assert all(issubclass(getattr(llm_errors, name), LLMError) for name in llm_errors.__all__)
    assert repr(RateLimitError("no", provider="p", retry_after=3)) == "RateLimitError('no', provider='p', retryable=True, retry_after=3)"
    error = InvalidToolCallError("no", tool_name="bash", raw_arguments="{")
    assert (error.tool_name, error.raw_arguments) == ("bash", "{")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    delays: list[float] = []

    async def sleep(delay: float) -> None:
        delays.append(delay)

    monkeypatch.setattr("amplifier_core.utils.retry.asyncio.sleep", sleep)
    return delays


def attempt(config: RetryConfig | None, error: BaseException, successes_after: int = 99) -> tuple[Any, int, list[tuple[int, float]]]:
    calls: list[int] = []
    told: list[tuple[int, float]] = []

    async def operation() -> str:
        calls.append(1)
        if len(calls) > successes_after:
            return "ok"
        raise error

    async def on_retry(number: int, delay: float, because: LLMError) -> None:
        assert because is error
        told.append((number, delay))

    try:
        answer: Any = asyncio.run(retry_with_backoff(operation, config, on_retry=on_retry))
    except Exception as raised:
        answer = raised
    return answer, len(calls), told


STEADY: dict[str, Any] = {"jitter": False}


@pytest.mark.parametrize(
    ("config", "fields", "delays"),
    [
        ({}, {}, [1.0, 2.0, 4.0]),
        ({"max_retries": 0}, {}, []),
        ({"max_delay": 1.5}, {}, [1.0, 1.5, 1.5]),
        ({"initial_delay": 0.5, "backoff_factor": 3.0, "max_retries": 2}, {}, [0.5, 1.5]),
        ({}, {"retry_after": 10.0}, [10.0, 10.0, 10.0]),
        ({"max_delay": 5.0}, {"retry_after": 10.0}, [10.0, 10.0, 10.0]),
        ({}, {"retry_after": 1.5}, [1.5, 2.0, 4.0]),
        ({"honor_retry_after": False}, {"retry_after": 10.0}, [1.0, 2.0, 4.0]),
        ({"max_delay": 2.0}, {"delay_multiplier": 10.0}, [10.0, 20.0, 20.0]),
    ],
)
def test_delays_grow(slept: list[float], config: dict[str, Any], fields: dict[str, Any], delays: list[float]) -> None:
    error = RateLimitError("slow down", **fields)
    answer, calls, told = attempt(RetryConfig(**STEADY, **config), error)
    assert answer is error
    assert calls == len(delays) + 1
    assert slept == delays
    assert told == list(enumerate(delays, 1))


def test_a_retry_may_succeed(slept: list[float]) -> None:
    assert attempt(RetryConfig(**STEADY), RateLimitError("slow down"), successes_after=2)[:2] == ("ok", 3)


@pytest.mark.parametrize("error", [llm_errors.AuthenticationError("no"), ValueError("no")])
def test_other_errors_are_not_retried(slept: list[float], error: Exception) -> None:
    assert attempt(RetryConfig(), error)[:2] == (error, 1)
    assert slept == []


def test_jitter_stays_between_half_and_one_and_a_half(slept: list[float]) -> None:
    for _ in range(50):
        attempt(RetryConfig(max_retries=1, initial_delay=10.0), RateLimitError("slow down"))
    assert all(5.0 <= delay <= 15.0 for delay in slept)
    assert len(set(slept)) > 1


def test_many_retries_stay_below_the_maximum(slept: list[float]) -> None:
    attempt(RetryConfig(**STEADY, max_retries=3000, max_delay=60.0), RateLimitError("slow down"))
    assert max(slept) == 60.0


def test_the_old_names_of_a_configuration_warn() -> None:
    for old, new in (("min_delay", "initial_delay"), ("backoff_multiplier", "backoff_factor")):
        with pytest.warns(DeprecationWarning, match=f"use `{new}`"):
            config = RetryConfig(**{old: 5.0})  # type: ignore[arg-type]
        assert getattr(config, new) == 5.0
        with pytest.warns(DeprecationWarning, match=f"use `{new}`"):
            assert getattr(config, old) == 5.0
    with pytest.warns(DeprecationWarning, match="`jitter` is `True` or `False`"):
        assert RetryConfig(jitter=0.5).jitter == RetryConfig(jitter=True).jitter > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RetryConfig(jitter=False).jitter == 0
    with pytest.raises(ValueError, match="0 or more"):
        RetryConfig(max_retries=-1)


@pytest.mark.parametrize(
    ("message", "code", "name"),
    [
        ("Rate limit exceeded", None, "RateLimitError"),
        ("too many requests", None, "RateLimitError"),
        ("invalid api key", None, "AuthenticationError"),
        ("Unauthorized", None, "AuthenticationError"),
        ("context length exceeded by too many tokens", None, "ContextLengthError"),
        ("blocked by the safety system", None, "ContentFilterError"),
        ("model not found", None, "NotFoundError"),
        ("rate limit", 400, "RateLimitError"),
        ("hello", 400, "InvalidRequestError"),
        ("hello", 422, "InvalidRequestError"),
        ("rate limit", 401, "AuthenticationError"),
        ("rate limit", 403, "AccessDeniedError"),
        ("hello", 404, "NotFoundError"),
        ("hello", 413, "ContextLengthError"),
        ("hello", 429, "RateLimitError"),
        ("rate limit", 503, "ProviderUnavailableError"),
        ("hello", None, "LLMError"),
        ("hello", 418, "LLMError"),
    ],
)
def test_a_message_and_a_code_name_the_error(message: str, code: int | None, name: str) -> None:
    assert classify_error_message(message, status_code=code, provider="p").__name__ == name


def test_long_texts_are_cut_with_a_note() -> None:
    cut = "aaaaa... (truncated 3 chars)"
    assert truncate_values({"k": ["a" * 8, 5, None]}, 5) == {"k": [cut, 5, None]}
    assert truncate_values("a" * 180) == "a" * 180
    assert truncate_values("a" * 181).endswith("(truncated 1 chars)")


def test_values_of_secret_keys_are_redacted_in_a_copy() -> None:
    given = {"API_KEY": "x", "n": [{"password": None, "auth": {"a": 1}}], "max_tokens": 5, "text": "token=abc", 1: "x"}
    redacted = redact_secrets(given)
    hidden = "[REDACTED]"
    assert redacted == {"API_KEY": hidden, "n": [{"password": hidden, "auth": hidden}], "max_tokens": 5, "text": "token=abc", 1: "x"}
    assert given["API_KEY"] == "x"
    assert redact_secrets({"mine": 1, "token": 2}, frozenset({"mine"})) == {"mine": hidden, "token": 2}
    assert all(key == key.lower() for key in SENSITIVE_KEYS)


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        (ContentBlock(ContentBlockType.TEXT, {"raw": 1}), {"type": "text"}),
        (TextContent(text="a"), {"type": "text", "text": "a"}),
        (ThinkingContent(text="a"), {"type": "thinking", "text": "a"}),
        (ToolCallContent(id="1", name="n"), {"type": "tool_call", "id": "1", "name": "n", "arguments": None}),
        (ToolResultContent(tool_call_id="1", output="o"), {"type": "tool_result", "tool_call_id": "1", "output": "o"}),
        (
            ToolResultContent(tool_call_id="1", error="e"),
            {"type": "tool_result", "tool_call_id": "1", "output": None, "error": "e"},
        ),
    ],
)
def test_a_block_of_content_as_a_dict(block: ContentBlock, fields: dict[str, Any]) -> None:
    assert block.to_dict() == fields


def test_the_capabilities_are_listed() -> None:
    names = [name for name in capabilities.__all__ if name != "ALL_WELL_KNOWN_CAPABILITIES"]
    assert sorted(getattr(capabilities, name) for name in names) == sorted(capabilities.ALL_WELL_KNOWN_CAPABILITIES)
    assert all(getattr(capabilities, name) == name.lower() for name in names)


def test_a_cancellation_only_gets_stricter() -> None:
    token = CancellationToken()
    assert (token.state, token.is_cancelled) == ("none", False)
    assert token.request_graceful()
    assert not token.request_graceful()
    assert (token.state, token.is_cancelled, token.is_graceful, token.is_immediate) == ("graceful", True, True, False)
    assert token.request_immediate()
    assert not token.request_graceful()
    assert token.state is CancellationState.IMMEDIATE
    assert f"{token.state}" == "immediate"
    token.reset()
    assert not token.is_cancelled


def test_a_token_knows_the_running_tools() -> None:
    token = CancellationToken()
    token.register_tool_start("1", "bash")
    token.register_tool_start("2", "grep")
    token.register_tool_complete("1")
    token.register_tool_complete("unknown")
    assert (token.running_tools, token.running_tool_names) == ({"2"}, ["grep"])
    token.reset()
    assert token.running_tools == set()


def test_children_are_cancelled_with_their_parent() -> None:
    parent, child, grandchild, late = (CancellationToken() for _ in range(4))
    parent.register_child(child)
    child.register_child(grandchild)
    parent.request_graceful()
    assert (child.state, grandchild.state) == ("graceful", "graceful")
    parent.request_immediate()
    parent.register_child(late)
    assert (grandchild.state, late.state) == ("immediate", "immediate")
    parent.reset()
    assert child.is_immediate
    parent.unregister_child(child)
    child.reset()
    parent.request_graceful()
    assert not child.is_cancelled
    alone = CancellationToken()
    alone.register_child(parent)
    parent.request_immediate()
    assert not alone.is_cancelled
    with pytest.raises(TypeError, match="found `int`"):
        parent.register_child(5)  # type: ignore[arg-type]


def test_a_token_does_not_keep_its_children() -> None:
    parent, child = CancellationToken(), CancellationToken()
    parent.register_child(child)
    gone = weakref.ref(child)
    del child
    gc.collect()
    assert gone() is None


def test_callbacks_run_in_order_and_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    token = CancellationToken()
    seen: list[str] = []

    async def first() -> None:
        seen.append("first")

    async def broken() -> None:
        raise ValueError("broken")

    token.on_cancel(first)
    token.on_cancel(broken)
    token.on_cancel(lambda: seen.append("last"))
    token.request_immediate()
    assert seen == []
    asyncio.run(token.trigger_callbacks())
    assert seen == ["first", "last"]
    assert "ValueError: broken" in caplog.text
