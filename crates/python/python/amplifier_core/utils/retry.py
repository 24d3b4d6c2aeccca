"""Calls of a provider that are tried again."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import Awaitable, Callable
from typing import TypeVar

from amplifier_core.llm_errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    NotFoundError,
    ProviderUnavailableError,
    RateLimitError,
)

__all__ = ["RetryConfig", "classify_error_message", "retry_with_backoff"]

T = TypeVar("T")

#: The share by which a delay varies, so that many clients do not return at the same time.
_JITTER = 0.2


class RetryConfig:
    """The number of retries, and the delays between them in seconds: ``initial_delay``, then ``backoff_factor`` times as much each time,
    up to ``max_delay``. With ``jitter``, each delay is between half and one and a half of that.

    ``min_delay`` and ``backoff_multiplier`` are the old names of ``initial_delay`` and ``backoff_factor``.
    """

    def __init__(
        self,
        max_retries: int = 3,
        initial_delay: float = 1.0,
        max_delay: float = 60.0,
        backoff_factor: float = 2.0,
        jitter: bool | float | None = None,
        honor_retry_after: bool = True,
        min_delay: float | None = None,
        backoff_multiplier: float | None = None,
    ) -> None:
        if max_retries < 0:
            raise ValueError(f"`max_retries` must be 0 or more; found {max_retries}")
        if min_delay is not None:
            _deprecated("min_delay", "initial_delay")
            initial_delay = min_delay if initial_delay == 1.0 else initial_delay
        if backoff_multiplier is not None:
            _deprecated("backoff_multiplier", "backoff_factor")
            backoff_factor = backoff_multiplier if backoff_factor == 2.0 else backoff_factor
        if jitter is not None and not isinstance(jitter, bool):
            warnings.warn("`jitter` is `True` or `False`; a number counts as `True` unless it is 0", DeprecationWarning, stacklevel=2)
        self.max_retries = max_retries
        self.initial_delay = float(initial_delay)
        self.max_delay = float(max_delay)
        self.backoff_factor = float(backoff_factor)
        self.jitter = _JITTER if jitter is None or jitter else 0.0
        self.honor_retry_after = honor_retry_after

    @property
    def min_delay(self) -> float:
        """The old name of ``initial_delay``."""
        _deprecated("min_delay", "initial_delay")
        return self.initial_delay

    @property
    def backoff_multiplier(self) -> float:
        """The old name of ``backoff_factor``."""
        _deprecated("backoff_multiplier", "backoff_factor")
        return self.backoff_factor

    def __repr__(self) -> str:
        return f"RetryConfig({', '.join(f'{field}={value!r}' for field, value in vars(self).items())})"


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"`{old}` is deprecated; use `{new}`", DeprecationWarning, stacklevel=3)


async def retry_with_backoff(
    operation: Callable[[], Awaitable[T]],
    config: RetryConfig | None = None,
    *,
    on_retry: Callable[[int, float, LLMError], Awaitable[None]] | None = None,
) -> T:
    """Calls ``operation`` until it succeeds, or fails with an error that is not ``retryable``, or was retried often enough.

    ``on_retry(attempt, delay, error)`` is awaited before each delay.
    """
    config = config or RetryConfig()
    attempt = 0
    while True:
        try:
            return await operation()
        except LLMError as error:
            attempt += 1
            if not error.retryable or attempt > config.max_retries:
                raise
            delay = _delay(config, attempt, error)
            if on_retry is not None:
                await on_retry(attempt, delay, error)
        await asyncio.sleep(delay)


def _delay(config: RetryConfig, attempt: int, error: LLMError) -> float:
    """Returns the delay before a retry. The provider's own wish counts even above the maximum."""
    try:
        grown = config.initial_delay * config.backoff_factor ** (attempt - 1)
    except OverflowError:
        grown = config.max_delay
    delay = min(grown, config.max_delay) * error.delay_multiplier
    if config.honor_retry_after and error.retry_after is not None:
        delay = max(delay, error.retry_after)
    return delay * random.uniform(0.5, 1.5) if config.jitter else delay


#: The words of messages, and their errors: the first that matches counts.
_WORDS: tuple[tuple[type[LLMError], tuple[str, ...]], ...] = (
    (ContextLengthError, ("context length", "maximum context", "too many tokens")),
    (RateLimitError, ("rate limit", "too many requests")),
    (AuthenticationError, ("authentication", "api key", "unauthorized")),
    (NotFoundError, ("not found",)),
    (ContentFilterError, ("content filter", "safety", "blocked")),
)

#: The status codes that decide alone.
_CODES: dict[int, type[LLMError]] = {
    401: AuthenticationError,
    403: AccessDeniedError,
    404: NotFoundError,
    413: ContextLengthError,
    429: RateLimitError,
}


def classify_error_message(message: str, *, status_code: int | None = None, provider: str | None = None) -> type[LLMError]:
    """Returns the class of error that a provider's message and status code mean. ``provider`` makes no difference yet."""
    if status_code is not None:
        if status_code in _CODES:
            return _CODES[status_code]
        if status_code >= 500:
            return ProviderUnavailableError
    text = message.lower()
    for error, words in _WORDS:
        if any(word in text for word in words):
            return error
    return InvalidRequestError if status_code in (400, 422) else LLMError
