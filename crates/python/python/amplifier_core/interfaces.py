"""The parts of an Amplifier session as protocols: what a module that provides one has to offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from amplifier_core._extra import BaseModel, Field, field_validator

if TYPE_CHECKING:
    from amplifier_core.hooks import HookRegistry
    from amplifier_core.message_models import ChatRequest, ChatResponse, ToolCall
    from amplifier_core.models import HookResult, ModelInfo, ProviderInfo, ToolResult

__all__ = [
    "ApprovalProvider",
    "ApprovalRequest",
    "ApprovalResponse",
    "ContextManager",
    "HookHandler",
    "Orchestrator",
    "Provider",
    "Tool",
]


@runtime_checkable
class Orchestrator(Protocol):
    """The loop of an agent."""

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: HookRegistry,
        **kwargs: Any,
    ) -> str: ...


@runtime_checkable
class Provider(Protocol):
    """A provider of models."""

    @property
    def name(self) -> str: ...

    def get_info(self) -> ProviderInfo: ...

    async def list_models(self) -> list[ModelInfo]: ...

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse: ...

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]: ...


@runtime_checkable
class Tool(Protocol):
    """A tool that the model calls. ``input_schema`` is a JSON Schema."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> dict[str, Any]: ...

    async def execute(self, input: dict[str, Any]) -> ToolResult: ...


@runtime_checkable
class ContextManager(Protocol):
    """The conversation of a session: dicts with ``role`` and ``content``."""

    async def add_message(self, message: dict[str, Any]) -> None: ...

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any | None = None
    ) -> list[dict[str, Any]]: ...

    async def get_messages(self) -> list[dict[str, Any]]: ...

    async def set_messages(self, messages: list[dict[str, Any]]) -> None: ...

    async def clear(self) -> None: ...


@runtime_checkable
class HookHandler(Protocol):
    """The handler of an event."""

    async def __call__(self, event: str, data: dict[str, Any]) -> HookResult: ...


class ApprovalRequest(BaseModel):
    """A request of an approval hook. The requests of this package's coordinator are those of ``amplifier_core.approval``."""

    tool_name: str
    action: str
    details: dict[str, Any] = Field(default_factory=dict)
    risk_level: str
    #: Seconds; ``None`` waits without a limit.
    timeout: float | None = None

    @field_validator("timeout")
    @classmethod
    def _validate_timeout(cls, value: float | None) -> float | None:
        if value is not None and value <= 0:
            raise ValueError("Timeout must be positive, or None for no limit")
        return value


class ApprovalResponse(BaseModel):
    """The answer to a request of an approval hook."""

    approved: bool
    reason: str | None = None
    remember: bool = False


@runtime_checkable
class ApprovalProvider(Protocol):
    """Asks the user for an approval hook."""

    async def request_approval(self, request: ApprovalRequest) -> ApprovalResponse: ...
