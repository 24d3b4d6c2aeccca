"""Parts that are given once."""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar, overload

T = TypeVar("T")


class Given(Generic[T]):
    """An attribute that its object has from the beginning. The kernel was made with it, so setting it later would change nothing."""

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

    # Nothing is a value of that type: type checkers refuse it, too.
    def __set__(self, owner: object, value: NoReturn) -> None:
        raise AttributeError(f"`{self._name}` of a `{self._owner}` cannot be set: give it when the `{self._owner}` is made")


def give(owner: object, **parts: Any) -> None:
    """Gives an object its parts."""
    owner.__dict__.update(parts)
