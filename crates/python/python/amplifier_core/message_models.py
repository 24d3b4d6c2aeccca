"""Messages of a conversation, requests to a provider, and its responses."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Union

from amplifier_core._extra import BaseModel, ConfigDict, Field, field_serializer, field_validator
from amplifier_core._money import exact, text_of

__all__ = [
    "ChatRequest",
    "ChatResponse",
    "ContentBlockUnion",
    "Degradation",
    "ImageBlock",
    "Message",
    "ReasoningBlock",
    "RedactedThinkingBlock",
    "ResponseFormat",
    "ResponseFormatJson",
    "ResponseFormatJsonSchema",
    "ResponseFormatText",
    "TextBlock",
    "ThinkingBlock",
    "ToolCall",
    "ToolCallBlock",
    "ToolResultBlock",
    "ToolSpec",
    "Usage",
]

_Visibility = Literal["internal", "developer", "user"] | None


class _Open(BaseModel):
    """A model that keeps fields it does not know, because providers add their own."""

    model_config = ConfigDict(extra="allow")


class TextBlock(_Open):
    """Text."""

    type: Literal["text"] = "text"
    text: str
    visibility: _Visibility = None


class ThinkingBlock(_Open):
    """The thinking of the model, with the provider's signature."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = None
    visibility: _Visibility = None
    content: list[Any] | None = None


class RedactedThinkingBlock(_Open):
    """Thinking that the provider encrypted."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str
    visibility: _Visibility = None


class ToolCallBlock(_Open):
    """A tool call of the model."""

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    input: dict[str, Any]
    visibility: _Visibility = None


class ToolResultBlock(_Open):
    """The result of a tool call."""

    type: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    output: Any
    visibility: _Visibility = None


class ImageBlock(_Open):
    """An image: ``{"type": "base64", "media_type": …, "data": …}``."""

    type: Literal["image"] = "image"
    source: dict[str, Any]
    visibility: _Visibility = None


class ReasoningBlock(_Open):
    """Reasoning of the model, and its summary."""

    type: Literal["reasoning"] = "reasoning"
    content: list[Any]
    summary: list[Any]
    visibility: _Visibility = None


ContentBlockUnion = Annotated[
    Union[TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolCallBlock, ToolResultBlock, ImageBlock, ReasoningBlock],
    Field(discriminator="type"),
]


class Message(_Open):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "function", "tool"]
    content: str | list[ContentBlockUnion]
    name: str | None = None
    tool_call_id: str | None = None
    metadata: dict[str, Any] | None = None


class ToolSpec(_Open):
    """A tool that the model may call; ``parameters`` is a JSON Schema."""

    name: str
    parameters: dict[str, Any]
    description: str | None = None


class ResponseFormatText(BaseModel):
    """A response in text."""

    type: Literal["text"] = "text"


class ResponseFormatJson(BaseModel):
    """A response in JSON."""

    type: Literal["json"] = "json"


class ResponseFormatJsonSchema(BaseModel):
    """A response in JSON of a schema."""

    model_config = ConfigDict(populate_by_name=True)

    type: Literal["json_schema"] = "json_schema"
    json_schema: dict[str, Any]
    strict: bool | None = None


ResponseFormat = Union[ResponseFormatText, ResponseFormatJson, ResponseFormatJsonSchema]


class ChatRequest(_Open):
    """A request to a provider."""

    messages: list[Message]
    tools: list[ToolSpec] | None = None
    response_format: ResponseFormat | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    conversation_id: str | None = None
    stream: bool | None = False
    metadata: dict[str, Any] | None = None
    model: str | None = None
    tool_choice: str | dict[str, Any] | None = None
    stop: list[str] | None = None
    reasoning_effort: str | None = None
    timeout: float | None = None


class ToolCall(_Open):
    """A tool call, as a provider reports it."""

    id: str
    name: str
    arguments: dict[str, Any]


class Usage(_Open):
    """The tokens of a response, and its cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: Decimal | None = None

    @field_validator("cost_usd", mode="before")
    @classmethod
    def reject_float_cost(cls, value: Any) -> Any:
        """Rejects floats."""
        return exact("cost_usd", value)

    @field_serializer("cost_usd")
    def serialize_cost_usd(self, value: Decimal | None) -> str | None:
        """Returns the cost as text."""
        return text_of(value)


class Degradation(_Open):
    """A request that the provider answered in another way than asked."""

    requested: str
    actual: str
    reason: str


class ChatResponse(_Open):
    """The response of a provider."""

    content: list[ContentBlockUnion]
    tool_calls: list[ToolCall] | None = None
    usage: Usage | None = None
    degradation: Degradation | None = None
    finish_reason: str | None = None
    metadata: dict[str, Any] | None = None
