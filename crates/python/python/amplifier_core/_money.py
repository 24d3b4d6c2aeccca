"""Amounts of money in models: exact, and texts in JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def exact(field: str, value: Any) -> Any:
    """Returns the value of a field; rejects floats, which are not exact."""
    if isinstance(value, float):
        raise ValueError(f"{field} must be Decimal, not float: give Decimal('{value}')")
    return value


def text_of(value: Decimal | None) -> str | None:
    """Returns an amount as text."""
    return None if value is None else str(value)
