"""The lines and the table of a run."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scenarios import Scenario


@dataclass(frozen=True)
class Result:
    """The result of one scenario with one agent."""

    agent: str
    scenario: str
    outcome: str
    expected: str | None
    exit: int | None
    seconds: float
    detail: str = ""

    @property
    def is_expected(self) -> bool:
        return self.expected is None or self.outcome == self.expected

    def line(self) -> str:
        mark = "ok  " if self.is_expected else "DIFF"
        wanted = "" if self.is_expected else f" (expected: {self.expected})"
        detail = f"\n     {self.detail}" if self.detail and not self.is_expected else ""
        return f"{mark} {self.agent:18} {self.scenario:20} {self.outcome}{wanted}  {self.seconds:.1f} s{detail}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"is_expected": self.is_expected}


def table(results: list[Result]) -> str:
    """Scenarios as rows, agents as columns. A star marks an outcome that was not expected."""
    agents = list(dict.fromkeys(result.agent for result in results))
    rows = list(dict.fromkeys(result.scenario for result in results))
    cells = {(result.scenario, result.agent): result.outcome + ("" if result.is_expected else " *") for result in results}
    lines = [["scenario", *agents]] + [[row, *(cells.get((row, agent), "–") for agent in agents)] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def failure_table(results: list[Result], scenarios: list[Scenario]) -> str:
    """The failures as rows, with the names of the columns and rows for readers."""
    summaries = {scenario.name: scenario.summary for scenario in scenarios if scenario.is_failure or scenario.guard_fault}
    failures = [result for result in results if result.scenario in summaries]
    agents = list(dict.fromkeys(result.agent for result in failures))
    cells = {(result.scenario, result.agent): result.outcome for result in failures}
    lines = ["| failure | " + " | ".join(agents) + " |", "|---" * (len(agents) + 1) + "|"]
    for row in dict.fromkeys(result.scenario for result in failures):
        outcomes = " | ".join(cells.get((row, agent), "–") for agent in agents)
        lines.append(f"| {summaries[row]} (`{row}`) | {outcomes} |")
    return "\n".join(lines)


def write_section(page: Path, name: str, text: str) -> None:
    """Replaces the generated section of a page."""
    begin, end = f"<!-- generated: {name} -->", "<!-- end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    content = page.read_text()
    if not pattern.search(content):
        raise ValueError(f"`{page}` has no section `{begin}`")
    page.write_text(pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", content))
