"""The errors of providers: one class for each cause, with what a caller needs to try again."""

from __future__ import annotations

__all__ = [
    "AbortError",
    "AccessDeniedError",
    "AuthenticationError",
    "ConfigurationError",
    "ContentFilterError",
    "ContextLengthError",
    "InvalidRequestError",
    "InvalidToolCallError",
    "LLMError",
    "LLMTimeoutError",
    "NetworkError",
    "NotFoundError",
    "ProviderUnavailableError",
    "QuotaExceededError",
    "RateLimitError",
    "StreamError",
]


class LLMError(Exception):
    """A call of a model failed.

    ``retryable`` is ``True`` if the same call may succeed later: after ``retry_after`` seconds if given, and after ``delay_multiplier``
    times the usual delay. The default depends on the class.
    """

    #: The default of ``retryable``.
    _passes = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status_code: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        delay_multiplier: float = 1.0,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.status_code = status_code
        self.retryable = self._passes if retryable is None else retryable
        self.retry_after = retry_after
        self.delay_multiplier = delay_multiplier

    def __repr__(self) -> str:
        unset = {"retryable": False, "delay_multiplier": 1.0}
        fields = ("provider", "model", "status_code", "retryable", "retry_after", "delay_multiplier")
        shown = [f"{field}={getattr(self, field)!r}" for field in fields if getattr(self, field) != unset.get(field)]
        return f"{type(self).__name__}({', '.join([repr(str(self)), *shown])})"


class RateLimitError(LLMError):
    """Too many requests or tokens in a short time."""

    _passes = True


class QuotaExceededError(RateLimitError):
    """The account has no quota left. Waiting does not help."""

    _passes = False


class AuthenticationError(LLMError):
    """The key is missing, invalid or expired."""


class AccessDeniedError(AuthenticationError):
    """The key is valid, but may not do this."""


class ContextLengthError(LLMError):
    """The request is larger than the context of the model."""


class ContentFilterError(LLMError):
    """The provider's filter rejected the request or the response."""


class InvalidRequestError(LLMError):
    """The provider rejected the request as malformed."""


class ProviderUnavailableError(LLMError):
    """The provider is down or overloaded."""

    _passes = True


class NetworkError(ProviderUnavailableError):
    """The provider cannot be reached."""


class LLMTimeoutError(LLMError):
    """No response in time."""

    _passes = True


class NotFoundError(LLMError):
    """The model or the address does not exist."""


class StreamError(LLMError):
    """The response ended in the middle."""

    _passes = True


class AbortError(LLMError):
    """The caller cancelled the call."""


class ConfigurationError(LLMError):
    """The provider is not configured correctly."""


class InvalidToolCallError(LLMError):
    """The model called a tool in a form that cannot be read."""

    def __init__(
        self,
        message: str,
        *,
        tool_name: str | None = None,
        raw_arguments: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        status_code: int | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, provider=provider, model=model, status_code=status_code, retryable=retryable)
        self.tool_name = tool_name
        self.raw_arguments = raw_arguments
