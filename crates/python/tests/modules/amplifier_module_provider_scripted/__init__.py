"""A provider that plays a script: texts, and lists of tool calls as pairs of a name and an input."""

from __future__ import annotations

from typing import Any

from amplifier_core import ModelInfo, ModuleCoordinator, ProviderInfo
from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall


async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None) -> None:
    await coordinator.mount("providers", ScriptedProvider((config or {}).get("script", ["Good morning."])), name="scripted")


class ScriptedProvider:
    name = "scripted"

    def __init__(self, script: list[Any]) -> None:
        self.script = list(script)
        self.requests: list[ChatRequest] = []

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="scripted", display_name="Scripted")

    async def list_models(self) -> list[ModelInfo]:
        return [ModelInfo(id="script", display_name="Script", context_window=100_000, max_output_tokens=1_000)]

    async def complete(self, request: ChatRequest, **kwargs: Any) -> ChatResponse:
        self.requests.append(request)
        step = self.script.pop(0)
        if isinstance(step, str):
            return ChatResponse(content=[TextBlock(text=step)])
        number = len(self.requests)
        calls = [ToolCall(id=f"call-{number}-{place}", name=name, arguments=dict(input)) for place, (name, input) in enumerate(step)]
        return ChatResponse(content=[TextBlock(text="")], tool_calls=calls)

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        return response.tool_calls or []
