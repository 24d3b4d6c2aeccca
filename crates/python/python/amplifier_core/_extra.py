"""pydantic, which only the models of conversations need."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("pydantic") is None:
    raise ModuleNotFoundError(
        "the models of `amplifier_core` need pydantic: install `amplifier-hooks[compat]`", name="pydantic"
    )

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_serializer
from pydantic.fields import FieldInfo

__all__ = ["BaseModel", "ConfigDict", "Field", "FieldInfo", "field_serializer", "field_validator", "model_serializer"]
