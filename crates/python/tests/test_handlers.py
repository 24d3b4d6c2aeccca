"""Registration finds handlers that cannot be called, and events that are probably mistakes."""

from __future__ import annotations

import functools
import logging
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from amplifier_core.hooks import HookRegistry


class Guard:
    def method(self, event: str, data: dict[str, Any]) -> None: ...

    def too_few(self, event: str) -> None: ...

    @classmethod
    def of_class(cls, event: str, data: dict[str, Any]) -> None: ...

    def __call__(self, event: str, data: dict[str, Any]) -> None: ...


class Created:
    def __init__(self, event: str, data: dict[str, Any]) -> None: ...


@functools.wraps(Guard.too_few)
def wrapper(*arguments: Any, **named: Any) -> None: ...


@pytest.mark.parametrize(
    "handler",
    [
        lambda event, data: None,
        lambda *arguments: None,
        lambda event, data=None, more=1, *, named=2: None,
        Guard(),
        Guard().method,
        Guard.of_class,
        Created,
        wrapper,
        functools.partial(lambda extra, event, data: None, 1),
        AsyncMock(),
        MagicMock(),
        print,
    ],
)
def test_handlers_that_take_an_event_and_its_data_are_accepted(handler: Any) -> None:
    registry = HookRegistry()
    registry.register("tool:pre", handler, name="guard")
    assert registry.list_handlers() == {"tool:pre": ["guard"]}


@pytest.mark.parametrize(
    ("handler", "signature"),
    [
        (lambda: None, "()"),
        (lambda event: None, "(event)"),
        (lambda event, data, more: None, "(event, data, more)"),
        (lambda event, data, *, named: None, "(event, data, *, named)"),
        (lambda **named: None, "(**named)"),
        (Guard().too_few, "(event: 'str') -> 'None'"),
        (functools.partial(lambda event, data: None, 1), "(data)"),
    ],
)
def test_a_handler_that_cannot_be_called_is_refused(handler: Any, signature: str) -> None:
    registry = HookRegistry()
    refused = f"cannot register hook `guard` for `tool:pre`: it takes `{signature}`, but is called with `(event, data)`; change its parameters"
    for register in (
        lambda: registry.register("tool:pre", handler, name="guard"),
        lambda: registry.on("tool:pre", name="guard")(handler),
    ):
        with pytest.raises(TypeError) as raised:
            register()
        assert str(raised.value) == refused
    assert registry.list_handlers() == {}


def guard(event: str, data: dict[str, Any]) -> None: ...


@pytest.mark.parametrize(
    ("event", "meant"),
    [("tool:prre", "tool:pre"), ("Tool:Post", "tool:post"), ("tool:before", "tool:pre' or 'tool:post' or 'tool:error"), ("prompt:sumbit", "prompt:submit"), ("tol:*", "tool:*")],
)
def test_an_event_that_is_probably_a_mistake_is_reported_once(event: str, meant: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        HookRegistry().register(event, guard)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        f"Hook 'guard' is registered for the unknown event '{event}'; did you mean '{meant}'?"
    ]


@pytest.mark.parametrize("event", ["tool:pre", "tool:error", "context:pre-compact", "tool:*", "*", "my-app:saved", "my-app:*"])
def test_known_events_and_those_of_other_programs_are_not_reported(event: str, caplog: pytest.LogCaptureFixture) -> None:
    HookRegistry().register(event, guard)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
