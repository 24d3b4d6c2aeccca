"""A loop with parallel tool calls, written like those of Amplifier: it knows the session only by its mounted objects."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from amplifier_core import ModuleCoordinator, ToolResult
from amplifier_core.events import PROMPT_COMPLETE, PROMPT_SUBMIT, PROVIDER_REQUEST, TOOL_ERROR, TOOL_POST, TOOL_PRE
from amplifier_core.message_models import ChatRequest, Message

__amplifier_module_type__ = "orchestrator"


async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None) -> None:
    await coordinator.mount("orchestrator", PlainLoop(config or {}))


async def on_session_ready(coordinator: ModuleCoordinator) -> None:
    coordinator.session_state["tools at start"] = sorted(coordinator.get("tools"))


class PlainLoop:
    def __init__(self, config: dict[str, Any]) -> None:
        self.steps = config.get("steps", 8)

    async def execute(
        self, prompt: str, context: Any, providers: dict[str, Any], tools: dict[str, Any], hooks: Any, coordinator: Any = None
    ) -> str:
        submitted = await hooks.emit(PROMPT_SUBMIT, {"prompt": prompt})
        submitted = await coordinator.process_hook_result(submitted, PROMPT_SUBMIT, "loop")
        if submitted.action == "deny":
            return f"denied: {submitted.reason}"
        await context.add_message({"role": "user", "content": prompt})
        provider = next(iter(providers.values()))
        for step in range(self.steps):
            if coordinator.cancellation.is_cancelled:
                return "cancelled"
            request = await hooks.emit(PROVIDER_REQUEST, {"provider": provider.name, "iteration": step})
            request = await coordinator.process_hook_result(request, PROVIDER_REQUEST, "loop")
            if request.action == "deny":
                return f"denied: {request.reason}"
            messages = list(await context.get_messages_for_request(provider=provider))
            if request.action == "inject_context" and request.ephemeral:
                messages.append({"role": request.context_injection_role, "content": request.context_injection})
            response = await provider.complete(ChatRequest(messages=[Message(**_plain(message)) for message in messages]))
            calls = provider.parse_tool_calls(response)
            text = "".join(block.text for block in response.content if block.type == "text")
            if not calls:
                await context.add_message({"role": "assistant", "content": text})
                await hooks.emit(PROMPT_COMPLETE, {"response": text})
                return text
            await context.add_message({"role": "assistant", "content": text})
            results = await asyncio.gather(*[self._call(call, tools, hooks, coordinator) for call in calls])
            for call, result in zip(calls, results, strict=True):
                await context.add_message({"role": "tool", "tool_call_id": call.id, "content": result})
        return "too many steps"

    async def _call(self, call: Any, tools: dict[str, Any], hooks: Any, coordinator: Any) -> str:
        data = {"tool_name": call.name, "tool_call_id": call.id, "tool_input": call.arguments}
        before = await hooks.emit(TOOL_PRE, data)
        before = await coordinator.process_hook_result(before, TOOL_PRE, call.name)
        if before.action == "deny":
            return f"Denied by hook: {before.reason}"
        coordinator.cancellation.register_tool_start(call.id, call.name)
        try:
            # As the loops of Amplifier: the arguments of the model, not the data of the event.
            result: ToolResult = await tools[call.name].execute(call.arguments)
        except Exception as error:
            await hooks.emit(TOOL_ERROR, {**data, "error": {"type": type(error).__name__, "msg": str(error)}})
            return f"Error: {error}"
        finally:
            coordinator.cancellation.register_tool_complete(call.id)
        given = result.model_dump()
        after = await hooks.emit(TOOL_POST, {**data, "result": given})
        await coordinator.process_hook_result(after, TOOL_POST, call.name)
        changed = (after.data or {}).get("result")
        if changed is not None and changed is not given:
            return json.dumps(changed)
        return result.get_serialized_output()


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in ("role", "content", "tool_call_id") if message.get(key) is not None}
