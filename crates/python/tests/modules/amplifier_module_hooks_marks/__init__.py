"""Hooks that deny, ask, change and mark, as their configuration says."""

from __future__ import annotations

from typing import Any

from amplifier_core import HookResult, ModuleCoordinator


async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None) -> Any:
    config = config or {}
    coordinator.session_state.setdefault("events", [])

    async def record(event: str, data: dict[str, Any]) -> HookResult:
        coordinator.session_state["events"].append(event)
        return HookResult(action="continue")

    async def guard(event: str, data: dict[str, Any]) -> HookResult:
        text = str(data.get("tool_input", {}).get("text"))
        if "forbidden" in text:
            return HookResult(action="deny", reason="forbidden text")
        if "ask" in text:
            return HookResult(action="ask_user", approval_prompt="Keep the note?", approval_timeout=5.0)
        return HookResult(action="continue")

    async def remind(event: str, data: dict[str, Any]) -> HookResult:
        text = config.get("reminder")
        return HookResult(action="inject_context", context_injection=text, ephemeral=True) if text else HookResult()

    events = config.get("events", ["session:start", "prompt:submit", "tool:pre", "tool:post", "session:end"])
    unregister = [coordinator.hooks.register(event, record, priority=10, name="marks") for event in events]
    unregister.append(coordinator.hooks.register("tool:pre", guard, name="marks-guard"))
    unregister.append(coordinator.hooks.register("provider:request", remind, name="marks-reminder"))
    coordinator.register_contributor("observability.events", "hooks-marks", lambda: ["marks:seen"])

    def cleanup() -> None:
        for one in unregister:
            one()

    return cleanup
