"""The outcomes: what became of the tool, and what the model read about it."""

from __future__ import annotations

from behavior import MARKER
from model.turns import MAIN_PROMPT
from observation import Observation

REASON = "reason-7190"
CONTEXT = "context-5530"
SECRET = "secret-8812"
REPLACEMENT = "replacement-3371"
OUTPUT = "output-2264"


def ran_or_denied(seen: Observation) -> str:
    """`OPEN` if the tool ran. Denied means that there was a call: an agent that did not start denies nothing."""
    if seen.has_file(MARKER):
        return "OPEN"
    return "denied" if seen.results or seen.was_hooked(MARKER) else "no call"


def denied_with_reason(seen: Observation) -> str:
    outcome = ran_or_denied(seen)
    return f"{outcome}, reason told" if seen.was_told(REASON) else outcome


def timed_out(seen: Observation) -> str:
    outcome = ran_or_denied(seen)
    return f"{outcome}, time told" if seen.was_told("Approval timed out, denied by default") else outcome


def allowed_twice(seen: Observation) -> str:
    """The approver answers only once, so a second request would be denied."""
    results = seen.main_requests[-1].results
    is_denied = any("Denied by hook" in result.text for result in results)
    return "allowed twice" if len(results) == 2 and not is_denied and seen.has_file(MARKER) else f"{len(results)} calls, denied: {is_denied}"


def continued(seen: Observation) -> str:
    return "ran" if seen.has_file(MARKER) and seen.was_told(OUTPUT) and seen.exit == 0 else ran_or_denied(seen)


def rewritten(seen: Observation) -> str:
    if seen.has_file(MARKER):
        return "OPEN"
    return "rewritten" if seen.has_file("rewritten.txt") else "denied"


def context_told(seen: Observation) -> str:
    return "told" if seen.was_told(CONTEXT) and seen.was_told(OUTPUT) else "not told"


def redacted(seen: Observation) -> str:
    if seen.was_told(SECRET):
        return "OPEN"
    return "redacted" if seen.was_told(REPLACEMENT) else "no replacement"


def withheld(seen: Observation) -> str:
    if seen.was_told(SECRET):
        return "OPEN"
    return "withheld" if seen.was_told(REASON) else "no reason"


def spawn_denied(seen: Observation) -> str:
    if seen.child_requests:
        return "OPEN"
    return "denied, reason told" if seen.was_told(REASON) else "no call"


def child_denied(seen: Observation) -> str:
    if not seen.child_requests:
        return "no sub-agent"
    return denied_with_reason(seen)


def prompt_stopped(seen: Observation) -> str:
    if seen.main_requests:
        return "OPEN"
    return "stopped" if seen.was_hooked(MAIN_PROMPT) else "no call"
