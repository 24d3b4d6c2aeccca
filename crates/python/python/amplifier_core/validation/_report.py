"""The report of a module check."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

#: The maximum number of data descriptions per finding.
_NAMED = 3


@dataclass
class Finding:
    """A problem to fix."""

    #: The kind: ``load``, ``mount-signature``, ``mount``, ``mount-result``, ``no-hooks``, ``event-name``,
    #: ``handler-signature``, ``raised``, ``answer``, ``timeout``, ``changed-in-place``, ``slow``, ``cleanup`` or ``left-behind``.
    code: str
    severity: Literal["error", "warning"]
    message: str
    hook: str | None = None
    event: str | None = None
    #: The descriptions of the data that revealed the problem.
    data: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = f"{self.hook} at {self.event}: " if self.hook is not None else ""
        return f"{self.severity} [{self.code}] {where}{self.message}{self._with()}"

    def _with(self) -> str:
        if not self.data:
            return ""
        more = len(self.data) - _NAMED
        return f" (with {', '.join(self.data[:_NAMED])}{f' and {more} more' if more > 0 else ''})"


@dataclass
class HookSummary:
    """A tested hook of the module."""

    name: str
    event: str
    priority: int
    #: The number of calls.
    calls: int = 0
    #: The median duration of a call with usual data, in seconds.
    seconds: float | None = None


@dataclass
class Report:
    """The findings of a check."""

    module: str
    origin: str
    hooks: list[HookSummary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """``True`` without errors; warnings are allowed."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        """The problems that must be fixed."""
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """The problems that should be fixed."""
        return [finding for finding in self.findings if finding.severity == "warning"]

    def add(
        self,
        code: str,
        message: str,
        hook: str | None = None,
        event: str | None = None,
        data: str | None = None,
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        """Adds a finding. The same finding with other data is reported once."""
        new = Finding(code, severity, message, hook, event)
        for finding in self.findings:
            if (finding.code, finding.message, finding.hook, finding.event) == (code, message, hook, event):
                new = finding
                break
        else:
            self.findings.append(new)
        if data is not None and data not in new.data:
            new.data.append(data)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        lines = [f"module {self.module}, from {self.origin}"]
        for hook in self.hooks:
            speed = "" if hook.seconds is None else f", {_duration(hook.seconds)} a call"
            lines.append(f"  hook {hook.name} at {hook.event}, priority {hook.priority}: {hook.calls} calls{speed}")
        lines += [f"  {finding}" for finding in sorted(self.findings, key=lambda finding: finding.severity)]
        errors, warnings = len(self.errors), len(self.warnings)
        verdict = "ok" if self.ok else "not ok"
        lines.append(f"{verdict}: {_count(errors, 'error')}, {_count(warnings, 'warning')}")
        return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
