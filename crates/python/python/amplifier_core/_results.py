"""The Python part of ``HookResult``: the defaults of subclasses, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from amplifier_core._native import HookResult


def take_defaults(cls: type[HookResult], fields: list[str]) -> None:
    """Uses class attributes as defaults of fields, as pydantic does. As attributes, they would hide the fields."""
    defaults = {field: vars(cls)[field] for field in fields}
    for field, value in defaults.items():
        if hasattr(value, "__get__"):
            raise TypeError(f"`{cls.__name__}.{field}` would hide the field; set the field instead")
        delattr(cls, field)
    # Invalid values are detected here, and not at a gate.
    HookResult(**defaults)
    make: Callable[..., Any] = cls.__new__

    def new(kind: type[HookResult], /, *arguments: Any, **given: Any) -> Any:
        return make(kind, *arguments, **{**defaults, **given})

    setattr(cls, "__new__", staticmethod(new))


def loads(text: str | bytes | bytearray) -> Any:
    """Parses JSON. Duplicate keys are an error."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("duplicate key")
    return read
