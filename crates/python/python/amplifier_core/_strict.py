"""Finds out hooks that change nested values in place. For tests: it copies everything."""

from __future__ import annotations

import copy
from typing import Any


class ChangedInPlaceError(RuntimeError):
    """A hook changed a nested value of the data in place instead of answering with ``modify``."""

    def __init__(self, hook: str, fields: list[str]) -> None:
        self.hook = hook
        self.fields = fields
        names = ", ".join(f"`{field}`" for field in fields)
        super().__init__(f"hook `{hook}` changed {names} in place; answer with `modify` and a copy instead")


def snapshot(data: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The values of the data, each with a copy of what it is now."""
    kept = []
    for field, value in data.items():
        try:
            kept.append((field, value, copy.deepcopy(value)))
        except Exception:  # What cannot be copied cannot be watched.
            continue
    return kept


def check(hook: str, kept: list[tuple[str, Any, Any]]) -> None:
    """Raises if the values are no longer what they were."""
    changed = [field for field, value, before in kept if _differs(value, before)]
    if changed:
        raise ChangedInPlaceError(hook, changed)


def _differs(value: Any, before: Any) -> bool:
    try:
        return not (value is before or bool(value == before)) and not _is_unequal_to_itself(before)
    except Exception:  # Some types cannot say whether they are equal.
        return False


def _is_unequal_to_itself(value: Any) -> bool:
    try:
        return not bool(copy.deepcopy(value) == value)
    except Exception:
        return True
