"""Calls a hook in the kernel, as an agent does, and records the results."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from amplifier_core.hooks import ChangedInPlaceError, HookRegistry
from amplifier_core.modules import Registration
from amplifier_core.validation._data import events_for, ordinary, strange
from amplifier_core.validation._report import HookSummary, Report


@dataclass(frozen=True)
class Limits:
    """Time limits of hooks, in seconds."""

    #: The limit of one call, unless the hook's own ``timeout`` is shorter. A hook that blocks the event loop cannot be interrupted.
    timeout: float = 5.0
    #: The duration of a call with usual data above which a hook counts as slow.
    slow: float = 0.05
    #: The duration of the speed measurement of one hook.
    measuring: float = 0.25


#: The maximum number of calls for the speed measurement.
_CALLS = 200

#: The maximum length of an error in a finding.
_LONGEST = 500


async def try_hook(registration: Registration, limits: Limits, report: Report) -> None:
    """Tests a hook with usual and unusual data, and measures its speed."""
    summary = HookSummary(registration.name, registration.event, registration.priority)
    report.hooks.append(summary)
    trial = _Trial(registration, limits, report, summary)
    with _quiet():
        for event in events_for(registration.event):
            found = first = await trial.call(event, "ordinary data", ordinary(event))
            for label, data in strange(event):
                # All other data would time out too.
                if found == "timeout":
                    break
                found = await trial.call(event, label, data)
            if first is None and summary.seconds is None:
                await trial.measure(event)


class _Trial:
    def __init__(self, registration: Registration, limits: Limits, report: Report, summary: HookSummary) -> None:
        self.registration = registration
        self.limits = limits
        self.report = report
        self.summary = summary
        # The time limit in a session, but at most the limit of this check.
        self.timeout = min(registration.options.get("timeout", limits.timeout), limits.timeout)
        self.strict = self._registry(strict=True)

    def _registry(self, strict: bool) -> HookRegistry:
        registry = HookRegistry(strict=strict)
        hook = self.registration
        registry.register(hook.event, hook.handler, 0, hook.name, timeout=self.timeout)
        return registry

    async def call(self, event: str, label: str, data: dict[str, Any]) -> str | None:
        """Calls the hook once. Returns the code and the message of a problem, if any."""
        self.summary.calls += 1
        found = await self._fault(event, data)
        if found is None:
            return None
        code, message = found
        self.report.add(code, message, self.registration.name, event, label)
        return code

    async def _fault(self, event: str, data: dict[str, Any]) -> tuple[str, str] | None:
        try:
            outcome = await self.strict.emit_with_outcome(event, data)
        except ChangedInPlaceError as error:
            fields = ", ".join(f"`{field}`" for field in error.fields)
            return "changed-in-place", f"the hook changed {fields} in place; answer with `modify` and a copy instead"
        except SystemExit as end:
            return _ends(end)
        (told,) = outcome.reports
        match told["answer"]:
            case "failed":
                return "raised", f"the hook raised {_short(told['error'])}; read fields with `get` and check their types"
            case "timed_out":
                return "timeout", f"no answer within {self.timeout:g} s; set a shorter limit for awaited calls"
            case "unreadable":
                return "answer", _short(told["error"])
        return None

    async def measure(self, event: str) -> None:
        """Measures the duration of a call with usual data."""
        registry = self._registry(strict=False)
        data = ordinary(event)
        times: list[float] = []
        end = time.monotonic() + self.limits.measuring
        while not times or (len(times) < _CALLS and time.monotonic() < end):
            try:
                outcome = await registry.emit_with_outcome(event, data)
            except SystemExit as end:
                self.report.add(*_ends(end), self.registration.name, event, "ordinary data, many times")
                return
            times.append(outcome.reports[0]["duration_ns"] / 1e9)
        self.summary.calls += len(times)
        self.summary.seconds = middle = statistics.median(times)
        if middle > self.limits.slow:
            message = f"a call takes {middle * 1e3:.0f} ms, and the agent waits; more than {self.limits.slow * 1e3:g} ms is slow"
            self.report.add("slow", message, self.registration.name, event, severity="warning")


def _ends(end: SystemExit) -> tuple[str, str]:
    return "raised", f"the hook raised SystemExit({end.code!r}); answer with `deny` instead"


def _short(error: str) -> str:
    """Shortens an error, which may quote huge data."""
    return error if len(error) <= _LONGEST else f"{error[:_LONGEST]}…"


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses the kernel's log of failures, which are in the report."""
    logger = logging.getLogger("amplifier_core.hooks")

    def nothing(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(nothing)
    try:
        yield
    finally:
        logger.removeFilter(nothing)
