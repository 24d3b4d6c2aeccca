"""Detects hooks that change nested values in place. Only for tests, because everything is copied."""

from __future__ import annotations

import contextlib
import copy
from typing import Any


class ChangedInPlaceError(RuntimeError):
    """A hook changed a nested value of the data in place instead of answering with ``modify``."""

    def __init__(self, hook: str, fields: list[str]) -> None:
        self.hook = hook
        self.fields = fields
        names = ", ".join(f"`{field}`" for field in fields)
        super().__init__(f"hook `{hook}` changed {names} in place; answer with `modify` and a copy instead")

    # By default, a copy would contain only the text.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.hook, self.fields), self.__dict__


def is_found(error: BaseException) -> bool:
    """Returns ``True`` for such an error, or a group that contains one."""
    return isinstance(error, ChangedInPlaceError) or any(is_found(part) for part in getattr(error, "exceptions", ()))


class _Kept:
    """A snapshot of a value."""

    __slots__ = ("before", "parts", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        #: The items of a dict, list, tuple or set, in order; ``None`` for other values.
        self.parts: list[tuple[Any, _Kept]] | None = None
        #: A copy of any other value.
        self.before: Any = _UNKNOWN


#: The marker of a value that cannot be copied, and so not be compared.
_UNKNOWN = object()

#: Immutable types.
_FIXED = (str, int, float, complex, bytes, type(None))


def snapshot(data: dict[str, Any]) -> list[tuple[str, Any]]:
    """Takes a snapshot of the values of the data."""
    kept = []
    for field, value in data.items():
        try:
            kept.append((field, _keep(value, {})))
        except Exception:  # Too deep, for one.
            continue
    return kept


def check(hook: str, kept: list[tuple[str, _Kept]]) -> None:
    """Raises if the values have changed since the snapshot."""
    changed = [field for field, value in kept if _has_changed(value, set())]
    if changed:
        raise ChangedInPlaceError(hook, changed)


def _keep(value: Any, known: dict[int, _Kept]) -> _Kept:
    kept = known.get(id(value))
    if kept is None:
        kept = known[id(value)] = _Kept(value)
        parts = _parts(value)
        if parts is not None:
            kept.parts = []
            for place, part in parts:
                kept.parts.append((place, _keep(part, known)))
        elif isinstance(value, _FIXED):
            kept.before = value
        else:
            with contextlib.suppress(Exception):
                kept.before = copy.deepcopy(value)
    return kept


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    """Returns the items of a container. Other objects are not inspected, because they may refer to the whole program."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if isinstance(value, (set, frozenset)):
        return [(part, part) for part in value]
    return None


def _has_changed(kept: _Kept, seen: set[int]) -> bool:
    if kept.parts is None:
        return kept.before is not _UNKNOWN and _differs(kept.value, kept.before)
    if id(kept) in seen:
        return False
    seen.add(id(kept))
    now = dict(_parts(kept.value) or ())
    if len(now) != len(kept.parts):
        return True
    for place, part in kept.parts:
        if place not in now or _is_another(now[place], part) or _has_changed(part, seen):
            return True
    return False


def _is_another(value: Any, kept: _Kept) -> bool:
    """Returns ``True`` if a value was replaced by a different one."""
    if value is kept.value:
        return False
    try:
        return type(value) is not type(kept.value) or not bool(value == kept.value)
    except Exception:  # Some types cannot say whether they are equal; somebody put it there.
        return True


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
