"""Displays for messages from hooks."""

from __future__ import annotations

import sys
from typing import Literal, Protocol, TextIO, runtime_checkable

from amplifier_core._native import visible

__all__ = ["DisplaySystem", "LoggingDisplay", "TerminalDisplay"]

_LEVELS: dict[str, int] = {"info": 20, "warning": 30, "error": 40}


def _number(level: str) -> int:
    if level not in _LEVELS:
        raise ValueError(f"`level` must be one of {', '.join(_LEVELS)}; found `{level}`")
    return _LEVELS[level]


@runtime_checkable
class DisplaySystem(Protocol):
    """A display for messages, sync or async."""

    def show_message(self, message: str, level: Literal["info", "warning", "error"], source: str) -> object: ...


class TerminalDisplay:
    """Writes messages of at least ``level`` to the terminal, one per line."""

    def __init__(self, stream: TextIO | None = None, level: Literal["info", "warning", "error"] = "info") -> None:
        self._stream = stream
        self._level = _number(level)

    def show_message(self, message: str, level: Literal["info", "warning", "error"] = "info", source: str = "hook") -> None:
        """Writes a message."""
        if _number(level) >= self._level:
            stream = self._stream or sys.stderr
            stream.write(f"{level} [{visible(source)}] {visible(message, lines=True)}\n")
            stream.flush()


class LoggingDisplay:
    """A display for programs without a screen: messages go to ``logging``, with their level."""

    def __init__(self, name: str = "amplifier_core.display") -> None:
        self._name = name

    def show_message(self, message: str, level: Literal["info", "warning", "error"] = "info", source: str = "hook") -> None:
        """Logs a message."""
        import logging

        logging.getLogger(self._name).log(_number(level), "[%s] %s", source, message)
