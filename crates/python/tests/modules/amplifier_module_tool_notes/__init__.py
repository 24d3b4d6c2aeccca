"""Tools for notes: one keeps a text, and one reads all of them."""

from __future__ import annotations

from typing import Any

from amplifier_core import ModuleCoordinator, ToolResult

from .notes import Notes


async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None) -> None:
    notes = Notes((config or {}).get("texts", []))
    coordinator.register_capability("notes", notes)
    for tool in (WriteNote(notes), ReadNotes(notes)):
        await coordinator.mount("tools", tool, name=tool.name)


class WriteNote:
    name = "write_note"
    description = "Keeps a text."
    input_schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        if not isinstance(input.get("text"), str):
            return ToolResult(success=False, error={"message": "the text is missing"})
        if "too large" in input["text"]:
            raise OSError("no space left")
        self.notes.add(input["text"])
        return ToolResult(success=True, output="kept")


class ReadNotes:
    name = "read_notes"
    description = "Reads all texts."
    input_schema = {"type": "object"}

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        return ToolResult(success=True, output="\n".join(self.notes.texts))
