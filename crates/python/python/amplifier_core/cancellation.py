"""Cancellation of a session, and of the sessions that it started."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any
from weakref import WeakSet

from amplifier_core._apart import called

__all__ = ["CancellationState", "CancellationToken"]

logger = logging.getLogger("amplifier_core.cancellation")


class CancellationState(str, Enum):
    """The state of a token: running calls finish after ``GRACEFUL`` and end at ``IMMEDIATE``."""

    NONE = "none"
    GRACEFUL = "graceful"
    IMMEDIATE = "immediate"

    # The same text in every version of Python.
    def __str__(self) -> str:
        return self.value


class CancellationToken:
    """Says to a loop and its tools that the user cancelled. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._state = CancellationState.NONE
        self._tools: dict[str, str] = {}
        # Weak: a child that nobody uses any more need not be told.
        self._children: WeakSet[CancellationToken] = WeakSet()
        self._callbacks: list[Callable[[], Awaitable[Any] | Any]] = []
        self._lock = threading.Lock()

    @property
    def state(self) -> CancellationState:
        """The state, which is equal to its text."""
        return self._state

    @property
    def is_cancelled(self) -> bool:
        """``True`` after each kind of request."""
        return self._state is not CancellationState.NONE

    @property
    def is_graceful(self) -> bool:
        """``True`` if running tools may finish."""
        return self._state is CancellationState.GRACEFUL

    @property
    def is_immediate(self) -> bool:
        """``True`` if running tools must end."""
        return self._state is CancellationState.IMMEDIATE

    def request_graceful(self) -> bool:
        """Lets running tools finish. Returns ``False`` if a cancellation was requested before."""
        return self._raise_to(CancellationState.GRACEFUL)

    def request_immediate(self) -> bool:
        """Ends running tools. Returns ``False`` if that was requested before."""
        return self._raise_to(CancellationState.IMMEDIATE)

    def request_cancellation(self) -> None:
        """The same as :meth:`request_graceful`, without a return value."""
        self.request_graceful()

    def reset(self) -> None:
        """Starts a turn: neither cancelled nor with running tools. Children and callbacks are kept."""
        with self._lock:
            self._state = CancellationState.NONE
            self._tools.clear()

    def register_tool_start(self, tool_call_id: str, tool_name: str) -> None:
        """Adds a running tool."""
        with self._lock:
            self._tools[tool_call_id] = tool_name

    def register_tool_complete(self, tool_call_id: str) -> None:
        """Removes a running tool, if it is known."""
        with self._lock:
            self._tools.pop(tool_call_id, None)

    @property
    def running_tools(self) -> set[str]:
        """The ids of running tool calls."""
        with self._lock:
            return set(self._tools)

    @property
    def running_tool_names(self) -> list[str]:
        """The names of running tools."""
        with self._lock:
            return list(self._tools.values())

    def register_child(self, child: CancellationToken) -> None:
        """Cancels a token with this one, and at once if this one is cancelled."""
        if not isinstance(child, CancellationToken):
            raise TypeError(f"a child must be a CancellationToken; found `{type(child).__name__}`")
        with self._lock:
            self._children.add(child)
            state = self._state
        child._raise_to(state)

    def unregister_child(self, child: CancellationToken) -> None:
        """Stops cancelling a token with this one."""
        with self._lock:
            self._children.discard(child)

    def on_cancel(self, callback: Callable[[], Awaitable[Any] | Any]) -> None:
        """Adds a function, sync or async, for :meth:`trigger_callbacks`."""
        if not callable(callback):
            raise TypeError(f"a callback must be callable; found `{type(callback).__name__}`")
        with self._lock:
            self._callbacks.append(callback)

    async def trigger_callbacks(self) -> None:
        """Calls the functions of :meth:`on_cancel`, in order. Failures are logged."""
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            try:
                await called(callback)
            except Exception as error:
                logger.warning("A cancellation callback failed: %s: %s", type(error).__name__, error, exc_info=error)

    def _raise_to(self, state: CancellationState) -> bool:
        """Raises the state of this token and its children. Returns ``True`` if its own was lower."""
        order = list(CancellationState)
        with self._lock:
            is_higher = order.index(state) > order.index(self._state)
            if is_higher:
                self._state = state
            children = list(self._children)
        if is_higher:
            for child in children:
                child._raise_to(state)
        return is_higher

    def __repr__(self) -> str:
        return f"<CancellationToken: {self._state}>"
