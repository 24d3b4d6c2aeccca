"""A guard that blocks a tool, and a caller that respects it."""

import asyncio
from typing import Any

from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

registry = HookRegistry()


@registry.register(HookRegistry.TOOL_PRE, on_error="deny")
async def no_rm(event: str, data: dict[str, Any]) -> HookResult:
    if data.get("tool_name") == "rm":
        return HookResult(action="deny", reason="no rm")
    return HookResult(action="continue")


async def main() -> None:
    result = await registry.emit("tool:pre", {"tool_name": "rm"})
    print(result.action, result.reason)


asyncio.run(main())
