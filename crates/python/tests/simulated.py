"""An event loop whose time is simulated: whoever sleeps is woken at once, in the right order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    def __init__(self, begins: float) -> None:
        super().__init__()
        self.passed = begins

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and nothing will happen")
        if not ready and timeout:
            self.passed += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self, begins: float) -> None:
        self._simulated = _Selector(begins)
        super().__init__(self._simulated)
        # What a clock that began long ago can tell apart: otherwise who is due now is never due.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        # A timer counts as due when it is nearly due, so that rounding does not make the loop spin.
        return self._simulated.passed


def run(main: Coroutine[Any, Any, T], begins: float = 0.0) -> T:
    """Runs a coroutine in simulated time, and what it left behind until it is cancelled. ``begins`` is what the clock says first."""
    loop = SimulatedLoop(begins)
    try:
        return loop.run_until_complete(main)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
