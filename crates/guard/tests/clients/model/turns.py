"""The script of a conversation, and the requests that a client made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The prompts of a run contain these, so that the server knows whose request it has.
MAIN_PROMPT = "main-task-5721"
CHILD_PROMPT = "child-task-9304"


@dataclass(frozen=True)
class Text:
    """A turn in which the model only answers."""

    text: str


@dataclass(frozen=True)
class Call:
    """A turn in which the model calls one tool. Arguments in the form of a string make a free-form call."""

    tool: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True)
class ToolResult:
    """The result of one tool call, as the model reads it."""

    call_id: str
    text: str


@dataclass
class Exchange:
    """One request of a client, in a form that all wires share."""

    wire: str
    model: str
    stream: bool
    prompts: list[str]
    results: list[ToolResult]
    tools: list[str]
    raw: dict[str, Any]
    turn: Text | Call | None = None

    @property
    def is_side_request(self) -> bool:
        """`true` for titles, summaries and the like: nothing that the script has turns for."""
        return not self.tools or not (self.is_child or any(MAIN_PROMPT in text for text in self.prompts))

    @property
    def is_child(self) -> bool:
        """`true` for a request of a sub-agent."""
        return not any(MAIN_PROMPT in text for text in self.prompts) and any(CHILD_PROMPT in text for text in self.prompts)


@dataclass(frozen=True)
class Script:
    """The turns of the main agent and those of its sub-agent.

    The turn is chosen by the number of results in the request, not by a counter: a client that retries gets the same turn again.
    """

    main: list[Text | Call]
    child: list[Text | Call] = field(default_factory=list)

    def turn(self, exchange: Exchange) -> Text | Call:
        if exchange.is_side_request:
            return Text("a short title")
        turns = self.child if exchange.is_child else self.main
        done = len(exchange.results)
        return turns[done] if done < len(turns) else Text("done")
