"""Times the package `amplifier-core`, which has the same API, where it is installed: a bare loop over handlers that answer with its
class, and its registry."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

DATA = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_call_id": "c", "turn": 1}


async def hook(event: str, data: dict[str, Any]) -> HookResult:
    tool = data.get("tool_name", "")
    if tool in ("rm", "format"):
        return HookResult(action="deny", reason=f"{tool} is blocked")
    return HookResult(action="continue")


async def timed(call: Callable[[], Awaitable[Any]], rounds: int) -> None:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(300):
            await call()
        best = min(best, (time.perf_counter() - start) / 300 * 1e6)
    # At once: it may crash on the way.
    print(best, flush=True)


async def main(handlers: int) -> None:
    registry = HookRegistry()
    for number in range(handlers):
        registry.register("tool:pre", hook, 0, f"hook {number}")

    async def bare() -> None:
        for handler in [hook] * handlers:
            await handler("tool:pre", DATA)

    await timed(bare, 80)
    await timed(lambda: registry.emit("tool:pre", DATA), 5)


asyncio.run(main(int(sys.argv[1])))
