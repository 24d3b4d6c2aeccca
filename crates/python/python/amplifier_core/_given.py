"""Attributes that are set once."""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar, overload

T = TypeVar("T")


class Given(Generic[T]):
    """An attribute that is set at construction. Setting it later would not affect the kernel, which was created with it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner.__name__
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Given[T]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> T: ...
    def __get__(self, owner: object | None, kind: type) -> Given[T] | T:
        if owner is None:
            return self
        try:
            part: T = owner.__dict__[self._name]
        except KeyError:
            raise AttributeError(f"the `{self._owner}` has no `{self._name}` yet") from None
        return part

    # No value has that type, so type checkers reject the assignment too.
    def __set__(self, owner: object, value: NoReturn) -> None:
        raise AttributeError(f"`{self._name}` of a `{self._owner}` cannot be set; pass it to the constructor")


def give(owner: object, **parts: Any) -> None:
    """Sets the attributes of an object."""
    owner.__dict__.update(parts)
