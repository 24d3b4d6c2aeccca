"""Runs the shared conformance cases: the form of the cases is described in ``conformance/README.md``."""

from __future__ import annotations

import asyncio
import datetime
import json
import pathlib
import re
from collections.abc import Callable
from typing import Any

from amplifier_core.approval import ApprovalAnswer, ApprovalRequest
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult

FOLDER = pathlib.Path(__file__).parents[3] / "conformance"
SPECIFICATION = FOLDER.parent / "docs" / "specification.md"

CASE = {"name", "section", "rule", "defaults", "reserved", "parallel_observers", "session", "hooks", "steps"}
HOOK = {"name", "on", "priority", "role", "on_error", "timeout", "answer", "answers"}
SESSION = {
    "injection_size_limit",
    "injection_budget_per_turn",
    "over_budget",
    "forbid_default_allow",
    "audit_required",
    "approvals",
    "rules",
    "operations",
    "broken",
}
STEPS = {
    "emit": {"data", "expect"},
    "collect": {"data", "timeout", "expect"},
    "process": {"event", "hook", "expect"},
    "register": {"expect"},
    "unregister": set(),
    "defaults": set(),
    "begin_turn": set(),
    "wait": set(),
    "list": {"expect"},
}
EXPECT = {
    *("decision", "by", "reason", "reason_has", "data", "timestamp", "ran", "saw", "told", "stamped", "approvals"),
    *("injections", "messages", "responses", "reports", "flat", "error", "names", "verdict", "asked", "context"),
    *("shown", "audit", "no_audit"),
}


def cases() -> list[dict[str, Any]]:
    """Every case of every file."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        file = json.loads(path.read_text())
        known(file, {"about", "cases"})
        found.extend(file["cases"])
    return found


def sections() -> set[str]:
    """The numbers of the headings of the specification: ``1``, ``5.1``."""
    headings = re.findall(r"^#{2,3} ([0-9.]+) ", SPECIFICATION.read_text(), re.MULTILINE)
    return {number.rstrip(".") for number in headings}


def known(fields: dict[str, Any], keys: set[str]) -> None:
    """A misspelt key must not pass unnoticed."""
    unknown = set(fields) - keys
    assert not unknown, f"unknown keys {unknown} in {fields}"


class Call:
    def __init__(self, hook: str, told: str, data: dict[str, Any]) -> None:
        self.hook, self.told, self.data = hook, told, data


class World:
    """The world around the hooks of a case, and everything that can be looked at afterwards."""

    def __init__(self, case: dict[str, Any]) -> None:
        known(case, CASE)
        self.registry = HookRegistry(parallel_observers=case.get("parallel_observers", False))
        self.registry.set_default_fields(**case.get("defaults", {}))
        self.registry.set_reserved_fields(**case.get("reserved", {}))
        self.calls: list[Call] = []
        self.unregister: dict[str, Callable[[], None]] = {}
        self.requests: list[ApprovalRequest] = []
        self.context: list[dict[str, Any]] = []
        self.shown: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.session = self._session(case["session"]) if case.get("session") is not None else None
        for hook in case.get("hooks", []):
            self.register(hook)

    def _session(self, session: dict[str, Any]) -> SessionCoordinator:
        known(session, SESSION)
        self.broken = session.get("broken", [])
        self.script = session.get("approvals")
        policies = SESSION - {"approvals", "rules", "operations", "broken"}
        return SessionCoordinator(
            self.registry,
            context=_Context(self),
            approval_system=None if self.script is None else _Person(self),
            display_system=_Screen(self),
            audit=_Audit(self),
            config={key: value for key, value in session.items() if key in policies},
            approval_rules=session.get("rules", {}),
            operations=session.get("operations", ()),
        )

    def register(self, hook: dict[str, Any]) -> None:
        known(hook, HOOK)
        called = 0

        async def scripted(event: str, data: dict[str, Any]) -> Any:
            nonlocal called
            self.calls.append(Call(hook["name"], event, dict(data)))
            answers = hook.get("answers") or [hook.get("answer")]
            answer = answers[min(called, len(answers) - 1)]
            called += 1
            return await self.act(answer, data)

        self.unregister[hook["name"]] = self.registry.register(
            hook.get("on", "tool:pre"),
            scripted,
            hook.get("priority", 0),
            hook["name"],
            role=hook.get("role", "gate"),
            on_error=hook.get("on_error", "continue"),
            timeout=hook.get("timeout", 30.0),
        )

    async def act(self, answer: Any, data: dict[str, Any]) -> Any:
        while isinstance(answer, dict) and "$after" in answer:
            await asyncio.sleep(answer["$after"])
            answer = answer["answer"]
        if not isinstance(answer, dict):
            return answer
        match next(((key, value) for key, value in answer.items() if key.startswith("$")), None):
            case None:
                return answer
            case "$raw", value:
                return value
            case "$set", fields:
                data.update(fields)
                return HookResult(action="modify", data=data)
            case "$mutate", fields:
                data.update(fields)
                return None
            case ("$raise" | "$panic"), text:
                raise RuntimeError(text)
            case "$hang", _:
                await asyncio.sleep(1e9)
            case "$emit", event:
                await self.registry.emit(event, answer.get("data", {}))
            case "$register", hook:
                self.register(hook)
            case "$unregister", name:
                self.unregister[name]()
            case other:
                raise AssertionError(f"unknown answer {other}")
        return None


class _Context:
    def __init__(self, world: World) -> None:
        self.world = world

    async def add_message(self, role: str, content: str, metadata: dict[str, Any]) -> None:
        if "context" in self.world.broken:
            raise RuntimeError("the context is broken")
        self.world.context.append(
            {
                "role": role,
                "content": content,
                "ephemeral": metadata.get("ephemeral", False),
                "append_to_last_tool_result": metadata.get("append_to_last_tool_result", False),
                "hook": metadata["hook_name"],
                "event": metadata["event"],
                "source": metadata["source"],
            }
        )


class _Screen:
    def __init__(self, world: World) -> None:
        self.world = world

    def show_message(self, message: str, level: str, source: str) -> None:
        if "display" in self.world.broken:
            raise RuntimeError("the display is broken")
        self.world.shown.append({"level": level, "text": message, "source": source})


class _Person:
    def __init__(self, world: World) -> None:
        self.world = world

    async def ask(self, request: ApprovalRequest) -> str:
        self.world.requests.append(request)
        script = self.world.script
        entry = script[min(len(self.world.requests), len(script)) - 1] if script else {"$hang": True}
        if isinstance(entry, str):
            return entry
        if "$after" in entry:
            await asyncio.sleep(entry["$after"])
            return str(entry["answer"])
        if "$rule" in entry:
            return ApprovalAnswer(entry["answer"], rule=entry["$rule"])
        if "$error" in entry:
            raise RuntimeError(entry["$error"])
        await asyncio.sleep(1e9)
        return ""


class _Audit:
    def __init__(self, world: World) -> None:
        self.world = world

    def record(self, record: dict[str, Any]) -> None:
        if "audit" in self.world.broken:
            raise RuntimeError("the audit log is broken")
        self.world.records.append(record)


async def run(case: dict[str, Any]) -> list[str]:
    """Every difference between what a case expects and what came, in words."""
    world = World(case)
    found = []
    for number, step in enumerate(case["steps"], 1):
        kind = next(key for key in step if key in STEPS)
        known(step, {kind, *STEPS[kind]})
        before = [len(kept) for kept in (world.calls, world.requests, world.context, world.shown, world.records)]
        came = await take(kind, step, world)
        expect = step.get("expect", {})
        known(expect, EXPECT)
        found += [f"step {number}: {text}" for text in differences(expect, came, world, before)]
    return found


async def take(kind: str, step: dict[str, Any], world: World) -> dict[str, Any]:
    came: dict[str, Any] = {}
    match kind:
        case "emit":
            try:
                if world.session is None:
                    came["outcome"] = await world.registry.emit_with_outcome(step["emit"], step.get("data", {}))
                else:
                    came["verdict"] = await world.session.emit(step["emit"], step.get("data", {}))
                    came["outcome"] = came["verdict"].outcome
            except ValueError:
                came["error"] = "invalid_event_name"
        case "collect":
            try:
                timeout = step.get("timeout", 1.0)
                came["responses"] = await world.registry.emit_and_collect(step["collect"], step.get("data", {}), timeout)
            except ValueError:
                came["error"] = "invalid_event_name"
        case "process":
            assert world.session is not None
            result = HookResult.model_validate(step["process"])
            try:
                came["processed"] = await world.session.process_hook_result(result, step["event"], step["hook"])
                came["hook"] = step["hook"]
            except ValueError as error:
                assert "exceeds" in str(error)
                came["error"] = "injection_too_large"
        case "register":
            try:
                world.register(step["register"])
            except ValueError:
                came["error"] = "invalid_event_name"
        case "unregister":
            world.unregister[step["unregister"]]()
        case "defaults":
            world.registry.set_default_fields(**step["defaults"])
        case "begin_turn":
            assert world.session is not None
            world.session.reset_turn()
        case "wait":
            await asyncio.sleep(step["wait"])
        case "list":
            came["listed"] = world.registry.list_handlers(step["list"])
    return came


def differences(expect: dict[str, Any], came: dict[str, Any], world: World, before: list[int]) -> list[str]:
    found: list[str] = []
    calls = world.calls[before[0] :]
    requests = world.requests[before[1] :]
    outcome, verdict = came.get("outcome"), came.get("verdict")
    processed = came.get("processed")

    def same(what: str, got: Any) -> None:
        if what in expect and expect[what] != got:
            found.append(f"{what}: wanted {expect[what]}, got {got}")

    def alike(what: str, got: list[dict[str, Any]]) -> None:
        if what not in expect:
            return
        wanted = expect[what]
        if len(wanted) != len(got) or not all(_fits(one, other) for one, other in zip(wanted, got)):
            found.append(f"{what}: wanted {wanted}, got {got}")

    if came.get("error") != expect.get("error"):
        found.append(f"error: wanted {expect.get('error')}, got {came.get('error')}")
    if "names" in expect:
        # Without an event, the names come by event, and are compared within each.
        wanted = {event: [name for name in expect["names"] if name in names] for event, names in came["listed"].items()}
        if wanted != came["listed"] or sum(map(len, wanted.values())) != len(expect["names"]):
            found.append(f"names: wanted {expect['names']}, got {came['listed']}")
    if outcome is not None:
        same("decision", outcome.decision)
        same("responses", outcome.responses)
        alike("approvals", outcome.approvals)
        placed = [
            {
                **one,
                "ephemeral": one["placement"] != "history",
                "append_to_last_tool_result": one["placement"] == "last_tool_result",
            }
            for one in outcome.injections
        ]
        alike("injections", placed)
        alike("messages", [{**message, "hook": message["source"].removeprefix("hook:")} for message in outcome.messages])
        reports = [{"hook": report["hook"], "answer": report["answer"]} for report in outcome.reports]
        if "reports" in expect:
            wanted = [
                {**report, "answer": "failed"} if report["answer"] == "panicked" else report for report in expect["reports"]
            ]
            if wanted != reports:
                found.append(f"reports: wanted {wanted}, got {reports}")
        for field, wanted in expect.get("flat", {}).items():
            got = getattr(outcome.result(), field)
            if field == "data" and isinstance(got, dict):
                got = _without_timestamp(got) if "timestamp" not in wanted else got
            if got != wanted:
                found.append(f"flat.{field}: wanted {wanted}, got {got}")
    else:
        same("responses", came.get("responses"))
    by = reason = None
    data = outcome.data if outcome is not None else None
    if verdict is not None:
        same("verdict", "proceed" if verdict.proceeds else "denied")
        by, reason, data = verdict.denied_by, verdict.reason, verdict.data or {}
    elif processed is not None:
        same("verdict", "denied" if processed.action == "deny" else "proceed")
        # A single answer is denied by its hook, or by the hook that asked.
        by = came["hook"] if processed.action == "deny" else None
        reason = processed.reason
    elif outcome is not None:
        by, reason = outcome.denied_by, outcome.reason
    same("by", by)
    same("reason", reason)
    for part in expect.get("reason_has", []):
        if part not in (reason or ""):
            found.append(f"reason_has: wanted {part}, got {reason}")
    if data is not None:
        same("timestamp", _is_utc(data.get("timestamp")))
        same("data", _without_timestamp(data))
    same("ran", [call.hook for call in calls])
    last = {call.hook: call for call in calls}
    for hook, wanted in expect.get("saw", {}).items():
        got = _without_timestamp(last[hook].data) if hook in last else None
        if got != wanted:
            found.append(f"saw.{hook}: wanted {wanted}, got {got}")
    for hook, wanted in expect.get("told", {}).items():
        told = last[hook].told if hook in last else None
        if told != wanted:
            found.append(f"told.{hook}: wanted {wanted}, got {told}")
    for hook in expect.get("stamped", []):
        if hook not in last or not _is_utc(last[hook].data.get("timestamp")):
            found.append(f"stamped: {hook} was not")
    alike("asked", [_asked(request) for request in requests])
    alike("context", world.context[before[2] :])
    alike("shown", world.shown[before[3] :])
    kinds = [record["kind"] for record in world.records[before[4] :]]
    rest = iter(kinds)
    if not all(wanted in rest for wanted in expect.get("audit", [])):
        found.append(f"audit: wanted {expect['audit']}, got {kinds}")
    if set(expect.get("no_audit", [])) & set(kinds):
        found.append(f"no_audit: unwanted {expect['no_audit']}, got {kinds}")
    return found


def _asked(request: ApprovalRequest) -> dict[str, Any]:
    fields = ("hook", "event", "prompt", "options", "effects", "timeout", "default", "reason")
    offers = [{key: offer[key] for key in ("operations", "scope")} for offer in request.offers]
    found = {field: getattr(request, field) for field in fields}
    return {**found, "data": _without_timestamp(request.data), "offers": offers}


def _fits(wanted: dict[str, Any], got: dict[str, Any]) -> bool:
    for field, value in wanted.items():
        if field == "text_has":
            parts = value if isinstance(value, list) else [value]
            if not all(part in got["text"] for part in parts):
                return False
        elif field not in got or got[field] != value:
            return False
    return True


def _without_timestamp(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "timestamp"}


def _is_utc(text: Any) -> bool:
    return isinstance(text, str) and datetime.datetime.fromisoformat(text).utcoffset() == datetime.timedelta(0)
