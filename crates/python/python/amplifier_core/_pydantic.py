"""``HookResult`` as a field of a pydantic model."""

from __future__ import annotations

import json
from typing import Any, Literal, Optional

from amplifier_core._native import HookResult


def core_schema(cls: type[HookResult]) -> Any:
    """Returns the schema by which pydantic validates and serializes results."""
    # There if pydantic is, which calls this.
    from pydantic_core import core_schema as schema

    def validate(value: Any) -> HookResult:
        return value if isinstance(value, cls) else cls.model_validate(value)

    def serialize(result: HookResult, info: Any) -> dict[str, Any]:
        return result.model_dump(
            mode=info.mode,
            exclude_unset=info.exclude_unset,
            exclude_defaults=info.exclude_defaults,
            exclude_none=info.exclude_none,
        )

    serialization = schema.plain_serializer_function_ser_schema(serialize, info_arg=True)
    return schema.no_info_plain_validator_function(validate, serialization=serialization)


_Text = Optional[str]

#: The types of the fields.
_ANNOTATIONS: dict[str, Any] = {
    "action": Literal["continue", "deny", "modify", "inject_context", "ask_user"],
    "data": Optional[dict[str, Any]],
    "reason": _Text,
    "context_injection": _Text,
    "context_injection_role": Literal["system", "user", "assistant"],
    "ephemeral": bool,
    "append_to_last_tool_result": bool,
    "approval_prompt": _Text,
    "approval_options": Optional[list[Any]],
    "approval_timeout": float,
    "approval_default": Literal["allow", "deny"],
    "approval_fallback": bool,
    "suppress_output": bool,
    "user_message": _Text,
    "user_message_level": Literal["info", "warning", "error"],
    "user_message_source": _Text,
}


def model_fields(cls: type[HookResult]) -> dict[str, Any]:
    """Returns the fields of a class of results as pydantic describes them."""
    from amplifier_core._extra import FieldInfo

    defaults = cls()
    return {
        field: FieldInfo(annotation=annotation, default=getattr(defaults, field))
        for field, annotation in _ANNOTATIONS.items()
    }


def json_schema(text: str) -> dict[str, Any]:
    """Parses a JSON Schema. Its definitions are put in the place of their references, so that it can be part of another schema."""
    schema: dict[str, Any] = json.loads(text)
    definitions = schema.pop("$defs", {})
    schema.pop("$schema", None)

    def inlined(part: Any) -> Any:
        if isinstance(part, list):
            return [inlined(one) for one in part]
        if not isinstance(part, dict):
            return part
        named = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        own = {key: value for key, value in part.items() if key != "$ref"}
        return {key: inlined(value) for key, value in {**named, **own}.items()}

    result: dict[str, Any] = inlined(schema)
    return result
