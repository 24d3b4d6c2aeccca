"""Everything that one run left behind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from model import Exchange


@dataclass
class Observation:
    """The files, the requests and the exit code of one run."""

    # The files of the repository, read before the folders of the run are removed.
    files: frozenset[str]
    exchanges: list[Exchange]
    exit: int | None
    seconds: float
    stdout: str
    stderr: str
    hook_calls: list[dict[str, Any]] = field(default_factory=list)
    unknown_paths: list[str] = field(default_factory=list)

    def has_file(self, name: str) -> bool:
        return name in self.files

    def was_hooked(self, text: str) -> bool:
        """`true` if a hook was called with this text in its payload."""
        return any(text in call["payload"] for call in self.hook_calls)

    @property
    def main_requests(self) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if not exchange.is_side_request and not exchange.is_child]

    @property
    def child_requests(self) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if not exchange.is_side_request and exchange.is_child]

    @property
    def results(self) -> list[str]:
        """The results of tool calls that the model read."""
        return [result.text for exchange in self.exchanges for result in exchange.results]

    def was_told(self, text: str) -> bool:
        """`true` if the model read the text in any request: as a result, as context, or as a prompt."""
        return any(text in json.dumps(exchange.raw, ensure_ascii=False) for exchange in self.exchanges)
