"""Times the package `amplifier-core`, which has the same API, where it is installed."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

DATA = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_call_id": "c", "turn": 1}


async def main(handlers: int) -> None:
    registry = HookRegistry()
    for number in range(handlers):

        async def hook(event: str, data: dict[str, Any]) -> HookResult:
            tool = data.get("tool_name", "")
            if tool in ("rm", "format"):
                return HookResult(action="deny", reason=f"{tool} is blocked")
            return HookResult(action="continue")

        registry.register("tool:pre", hook, 0, f"hook {number}")
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(300):
            await registry.emit("tool:pre", DATA)
        best = min(best, (time.perf_counter() - start) / 300 * 1e6)
    print(best, flush=True)


asyncio.run(main(int(sys.argv[1])))
