"""A registry in plain Python with the same rules, as fast as its author could write it: what the native one is measured against."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

STRENGTH = {"continue": 0, "modify": 1, "inject_context": 2, "ask_user": 3, "deny": 4}


class Result:
    """What a hook answers."""

    __slots__ = (
        *("action", "data", "reason", "context_injection", "context_injection_role", "ephemeral"),
        *("append_to_last_tool_result", "approval_prompt", "approval_options", "approval_timeout", "approval_default"),
        *("suppress_output", "user_message", "user_message_level"),
    )

    def __init__(
        self,
        *,
        action: str = "continue",
        data: dict[str, Any] | None = None,
        reason: str | None = None,
        context_injection: str | None = None,
        context_injection_role: str = "system",
        ephemeral: bool = False,
        append_to_last_tool_result: bool = False,
        approval_prompt: str | None = None,
        approval_options: list[str] | None = None,
        approval_timeout: float = 300.0,
        approval_default: str = "deny",
        suppress_output: bool = False,
        user_message: str | None = None,
        user_message_level: str = "info",
    ) -> None:
        if action not in STRENGTH:
            raise ValueError(action)
        if not approval_timeout >= 0:
            raise ValueError(approval_timeout)
        self.action = action
        self.data = data
        self.reason = reason
        self.context_injection = context_injection
        self.context_injection_role = context_injection_role
        self.ephemeral = ephemeral
        self.append_to_last_tool_result = append_to_last_tool_result
        self.approval_prompt = approval_prompt
        self.approval_options = approval_options
        self.approval_timeout = approval_timeout
        self.approval_default = approval_default
        self.suppress_output = suppress_output
        self.user_message = user_message
        self.user_message_level = user_message_level


class Registry:
    """Who listens."""

    def __init__(self) -> None:
        self.hooks: dict[str, list[tuple[int, int, str, Callable[..., Any], float]]] = {}
        self.defaults: dict[str, Any] = {}
        self.registrations = 0

    def register(self, event: str, handler: Callable[..., Any], priority: int = 0, name: str | None = None) -> Callable[[], None]:
        self.registrations += 1
        entry = (priority, self.registrations, name or handler.__name__, handler, 30.0)
        hooks = [*self.hooks.get(event, ()), entry]
        hooks.sort(key=lambda hook: hook[:2])
        self.hooks[event] = hooks

        def unregister() -> None:
            self.hooks[event] = [hook for hook in self.hooks[event] if hook is not entry]

        return unregister

    async def emit(self, event: str, data: dict[str, Any]) -> Result:
        hooks = self.hooks.get(event, ())
        current = {**self.defaults, **data}
        if not hooks:
            return Result(data=current)
        current["timestamp"] = datetime.now(timezone.utc).isoformat()
        action, reason = "continue", None
        injections: list[str] = []
        first = None
        for _, _, name, handler, timeout in hooks:
            try:
                answer = handler(event, current.copy())
                if inspect.isawaitable(answer):
                    async with asyncio.timeout(timeout):
                        answer = await answer
            except Exception:
                continue
            if answer is None:
                continue
            said = answer.action
            if said == "continue":
                continue
            if said == "deny":
                return Result(action="deny", reason=answer.reason)
            if said == "modify":
                current = dict(answer.data)
            elif said == "inject_context":
                injections.append(answer.context_injection)
            else:
                first = first or answer
            if STRENGTH[said] > STRENGTH[action]:
                action, reason = said, answer.reason
        return Result(action=action if action != "modify" else "continue", data=current, reason=reason)

    async def emit_and_collect(self, event: str, data: dict[str, Any], timeout: float = 1.0) -> list[Any]:
        current = {**self.defaults, **data, "timestamp": datetime.now(timezone.utc).isoformat()}
        found = []
        for _, _, _, handler, _ in self.hooks.get(event, ()):
            try:
                async with asyncio.timeout(timeout):
                    answer = await handler(event, current.copy())
            except Exception:
                continue
            if answer is not None and answer.data is not None:
                found.append(answer.data)
        return found
