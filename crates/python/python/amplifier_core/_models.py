"""The models of ``amplifier_core.models`` that need pydantic."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from amplifier_core._extra import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_serializer
from amplifier_core._money import exact, text_of
from amplifier_core.message_models import ImageBlock, TextBlock

__all__ = [
    "ConfigField",
    "ContextInjection",
    "ModelInfo",
    "ModuleInfo",
    "Pricing",
    "ProviderInfo",
    "SessionStatus",
    "ToolResult",
]

#: The text in the place of an image in event data.
_IMAGE_OMITTED = "[Image omitted from the event; the model receives it unless a hook changes the result.]"

#: Characters that terminals and providers reject in text.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_MEDIA_TYPE = re.compile(r"image/[a-z0-9][a-z0-9.+-]*")


class ToolResult(BaseModel):
    """The result of a tool: ``output`` for the model, or ``error`` with a ``message``. ``content`` has texts and images that replace the
    output for models that take them."""

    # The data of an image does not belong into an error.
    model_config = ConfigDict(validate_assignment=True, hide_input_in_errors=True)

    success: bool = True
    output: Any | None = None
    error: dict[str, Any] | None = None
    content: list[TextBlock | ImageBlock] | None = None

    @field_validator("content", mode="before")
    @classmethod
    def normalize_content(cls, value: Any) -> Any:
        """Keeps the fields that reach a model, and no others; no blocks are ``None``."""
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise ValueError("content must be a list of text and image blocks")
        return [_block(one) for one in value] or None

    def model_post_init(self, context: Any, /) -> None:
        if not self.success and self.output is None and self.error and self.error.get("message"):
            self.output = self.error["message"]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> ToolResult:
        """Returns a copy with some fields changed, which are validated."""
        fields = {field: getattr(self, field) for field in type(self).model_fields}
        copy: ToolResult = super().model_copy(deep=deep) if update is None else type(self).model_validate({**fields, **update})
        return copy.model_copy(deep=True) if deep and update is not None else copy

    @field_serializer("content", when_used="unless-none")
    def serialize_content(self, value: list[Any]) -> list[dict[str, Any]]:
        """Returns the blocks, validated again because lists can be changed in place."""
        return [_block(one) for one in value]

    @model_serializer(mode="wrap")
    def serialize_model(self, handler: Any) -> dict[str, Any]:
        """Leaves out ``content`` if there is none, for readers that do not know it."""
        fields: dict[str, Any] = handler(self)
        if fields.get("content", self) is None:
            del fields["content"]
        return fields

    def get_serialized_output(self) -> str:
        """Returns the text for the model."""
        if self.output is not None:
            text = json.dumps(self.output, default=_exact_number) if isinstance(self.output, (dict, list)) else str(self.output)
        elif self.success:
            text = "Success"
        else:
            text = f"Error: {self.error.get('message', 'Unknown error') if self.error else 'Failed'}"
        return _CONTROLS.sub("", text)

    def safe_hook_presentation(self) -> dict[str, Any]:
        """Returns the result as JSON data for the event ``tool:post``, without images."""
        fields = self.model_dump()
        if fields.get("content"):
            omitted = {"type": "text", "text": _IMAGE_OMITTED}
            fields["content"] = [omitted if block["type"] == "image" else block for block in fields["content"]]
        try:
            copy: dict[str, Any] = json.loads(json.dumps(fields, allow_nan=False, ensure_ascii=False).encode())
        except ValueError as error:
            raise ValueError(f"the result has no JSON form: {error}") from None
        return copy

    def __str__(self) -> str:
        return self.get_serialized_output()


def _exact_number(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"`{type(value).__name__}` in the output of a tool is not JSON serializable")


def _block(given: Any) -> dict[str, Any]:
    """Returns the known fields of a text or image block."""
    fields = given.model_dump() if isinstance(given, BaseModel) else given
    kind = fields.get("type") if isinstance(fields, dict) else None
    if kind == "text" and isinstance(fields.get("text"), str):
        return {"type": "text", "text": fields["text"]}
    if kind != "image":
        raise ValueError("content has only blocks of text and images")
    source = fields.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        raise ValueError("an image has a source of the type base64")
    media_type, data = source.get("media_type"), source.get("data")
    if not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
        raise ValueError("the media type of an image is image/ and a name in small letters")
    try:
        # The decoder takes padding after whole groups.
        is_valid = isinstance(data, str) and len(data) % 4 == 0 and base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        is_valid = False
    if not is_valid:
        raise ValueError("the data of an image is not base64")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


class ContextInjection(BaseModel):
    """One of the injections of an event, with the hook that it is from."""

    content: str
    role: Literal["system", "user", "assistant"] = "system"
    ephemeral: bool = False
    append_to_last_tool_result: bool = False
    hook_name: str = "unknown"
    event: str = ""


class Pricing(BaseModel):
    """The prices of a model, per million tokens."""

    input_per_million: float
    output_per_million: float
    cache_read_per_million: float | None = None
    cache_write_per_million: float | None = None
    currency: str = "USD"

    @field_validator("currency")
    @classmethod
    def _validate_currency(cls, value: str) -> str:
        if not re.fullmatch("[A-Z]{3}", value):
            raise ValueError(f"currency must be a code of three capital letters, such as USD; found `{value}`")
        return value


class ModelInfo(BaseModel):
    """A model of a provider."""

    id: str
    display_name: str
    context_window: int
    max_output_tokens: int
    capabilities: list[str] = Field(default_factory=list)
    defaults: dict[str, Any] = Field(default_factory=dict)
    pricing: Pricing | None = None


class ConfigField(BaseModel):
    """A setting of a provider that an application can ask the user for."""

    id: str
    display_name: str
    field_type: Literal["text", "secret", "choice", "boolean"] = "text"
    prompt: str
    env_var: str | None = None
    choices: list[str] | None = None
    required: bool = True
    default: str | None = None
    #: The values of other settings with which this one is asked for.
    show_when: dict[str, str] | None = None
    #: Asked for after a model is chosen.
    requires_model: bool = False


class ProviderInfo(BaseModel):
    """A provider, and the settings it needs."""

    id: str
    display_name: str
    credential_env_vars: list[str] = Field(default_factory=list)
    capabilities: list[str] = Field(default_factory=list)
    defaults: dict[str, Any] = Field(default_factory=dict)
    config_fields: list[ConfigField] = Field(default_factory=list)


class ModuleInfo(BaseModel):
    """A module, and the mount point it belongs to."""

    id: str
    name: str
    version: str
    type: Literal["orchestrator", "provider", "tool", "context", "hook", "resolver"]
    mount_point: str
    description: str
    config_schema: dict[str, Any] | None = None


class SessionStatus(BaseModel):
    """The state and the counters of a session."""

    session_id: str
    started_at: datetime = Field(default_factory=datetime.now)
    ended_at: datetime | None = None
    status: Literal["running", "completed", "failed", "cancelled"] = "running"
    total_messages: int = 0
    tool_invocations: int = 0
    tool_successes: int = 0
    tool_failures: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    cost_usd: Decimal | None = None
    last_activity: datetime | None = None
    last_error: dict[str, Any] | None = None

    @field_validator("cost_usd", mode="before")
    @classmethod
    def reject_float_cost_usd(cls, value: Any) -> Any:
        """Rejects floats."""
        return exact("cost_usd", value)

    @field_serializer("cost_usd")
    def serialize_cost_usd(self, value: Decimal | None) -> str | None:
        """Returns the cost as text."""
        return text_of(value)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields that are set, in JSON form."""
        return self.model_dump(mode="json", exclude_none=True)


for _name in __all__:
    # Pickles and messages name the public place.
    globals()[_name].__module__ = "amplifier_core.models"
