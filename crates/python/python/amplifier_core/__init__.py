"""Hooks for AI agents: observe, block, modify, inject, ask, and control output.

Names are imported on first use: ``from amplifier_core import HookRegistry`` and
``from amplifier_core.hooks import HookRegistry`` are the same class.
"""

_PLACES = {
    "HookRegistry": "hooks",
    "HookResult": "models",
    "Session": "session",
    "SessionCoordinator": "coordinator",
    "__version__": "_native",
    # The names of Amplifier, by their modules.
    "CancellationState": "cancellation",
    "CancellationToken": "cancellation",
    "ContentBlock": "content_models",
    "ContentBlockType": "content_models",
    "TextContent": "content_models",
    "ThinkingContent": "content_models",
    "ToolCallContent": "content_models",
    "ToolResultContent": "content_models",
    "ApprovalProvider": "interfaces",
    "ApprovalRequest": "interfaces",
    "ApprovalResponse": "interfaces",
    "ContextManager": "interfaces",
    "HookHandler": "interfaces",
    "Orchestrator": "interfaces",
    "Provider": "interfaces",
    "Tool": "interfaces",
    "AbortError": "llm_errors",
    "AccessDeniedError": "llm_errors",
    "AuthenticationError": "llm_errors",
    "ConfigurationError": "llm_errors",
    "ContentFilterError": "llm_errors",
    "ContextLengthError": "llm_errors",
    "InvalidRequestError": "llm_errors",
    "InvalidToolCallError": "llm_errors",
    "LLMError": "llm_errors",
    "LLMTimeoutError": "llm_errors",
    "NetworkError": "llm_errors",
    "NotFoundError": "llm_errors",
    "ProviderUnavailableError": "llm_errors",
    "QuotaExceededError": "llm_errors",
    "RateLimitError": "llm_errors",
    "StreamError": "llm_errors",
    "ChatRequest": "message_models",
    "ChatResponse": "message_models",
    "Degradation": "message_models",
    "ImageBlock": "message_models",
    "Message": "message_models",
    "ReasoningBlock": "message_models",
    "RedactedThinkingBlock": "message_models",
    "ResponseFormat": "message_models",
    "ResponseFormatJson": "message_models",
    "ResponseFormatJsonSchema": "message_models",
    "ResponseFormatText": "message_models",
    "TextBlock": "message_models",
    "ThinkingBlock": "message_models",
    "ToolCall": "message_models",
    "ToolCallBlock": "message_models",
    "ToolResultBlock": "message_models",
    "ToolSpec": "message_models",
    "Usage": "message_models",
    "ConfigField": "models",
    "ContextInjection": "models",
    "ModelInfo": "models",
    "ModuleInfo": "models",
    "Pricing": "models",
    "ProviderInfo": "models",
    "SessionStatus": "models",
    "ToolResult": "models",
    "RetryConfig": "utils.retry",
    "classify_error_message": "utils.retry",
    "retry_with_backoff": "utils.retry",
    # Sessions of modules.
    "AmplifierSession": "session",
    "ModuleCoordinator": "coordinator",
    "ModuleLoader": "loader",
    "ModuleValidationError": "loader",
    "observe": "observation",
}

__all__ = ["HookRegistry", "HookResult", "Session", "SessionCoordinator", "__version__"]


def __getattr__(name):
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    # Not a class: probably a module, which is imported after this error.
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from amplifier_core._names import missing

    raise missing(name, __all__, _PLACES)
