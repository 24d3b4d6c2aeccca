"""A hook module: `mount` registers its hooks and gives back what takes them away. A package offers it with an entry point:

[project.entry-points."amplifier.modules"]
hooks-path-guard = "path_guard:mount"
"""

import asyncio
from collections.abc import Callable
from typing import Any

from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.models import HookResult


class PathGuard:
    """Keeps tools away from some files."""

    def __init__(self, protected: list[str]) -> None:
        self.protected = protected

    async def check(self, event: str, data: dict[str, Any]) -> HookResult:
        tool_input = data.get("tool_input")
        path = tool_input.get("file_path") if isinstance(tool_input, dict) else None
        if isinstance(path, str) and any(part in path for part in self.protected):
            return HookResult(action="deny", reason=f"{path} is protected")
        return HookResult(action="continue")


async def mount(coordinator: SessionCoordinator, config: dict[str, Any]) -> Callable[[], None]:
    guard = PathGuard(config.get("protected", [".env"]))
    return coordinator.hooks.register("tool:pre", guard.check, priority=5, name="path_guard", on_error="deny")


async def main() -> None:
    import sys

    from amplifier_core import modules
    from amplifier_core.testing import make_coordinator

    coordinator = make_coordinator()
    async with await modules.mount(coordinator, sys.modules[__name__], {"protected": ["secrets/"]}):
        result = await coordinator.execute_with_hooks("tool:pre", {"tool_input": {"file_path": "secrets/key"}})
        print(result.reason)


if __name__ == "__main__":
    asyncio.run(main())
