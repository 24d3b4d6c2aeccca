"""Our policy around an existing session: one line adds bundles, approvals, the audit log and the console.

    await amplifier_core.observe(session)

Without code, the module ``hooks-policy`` does the same: name it under ``hooks`` in the bundle of the session.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import weakref
from collections.abc import Mapping
from typing import Any, Literal

from amplifier_core._native import Coordinator, HookResult, ObservedSession, observe_session
from amplifier_core.amplifier_session import AmplifierSession
from amplifier_core.approval import TerminalApprovals, _has_terminal
from amplifier_core.coordinator import Verdict, _approvals, _display
from amplifier_core.module_coordinator import ModuleCoordinator, MountedContext

__all__ = ["Observation", "mount", "observe"]

logger = logging.getLogger(__name__)

#: The observed sessions, by their ids. Sub-sessions look for their parents.
_OBSERVED: weakref.WeakValueDictionary[str, Observation] = weakref.WeakValueDictionary()

#: Pieces of answers: they are recorded only if a hook has something to say.
_FREQUENT = ("content_block:delta", "thinking:delta")

#: The events after a model call. Orchestrators of Amplifier emit none with the complete answer.
_AFTER_ANSWER = ("llm:response", "content_block:end", "tool:pre", "provider:request", "prompt:complete", "execution:end", "session:end")

#: The events with the result of a model call.
_ANSWERS = ("provider:response", "provider:error", "error:provider")

#: The fields that an orchestrator keeps by itself: a change in the data of the event does not reach it.
_KEPT = {"tool:pre": ("tool_name", "tool_input"), "prompt:submit": ("prompt",)}

#: The data of the running emission, as the orchestrator gave it.
_EMITTED: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("amplifier_core_emitted")

#: After all hooks that change data.
_LAST = 1_000_000


class _RoutedResult(HookResult):
    """A result whose approvals, injections and messages were handled when the event was emitted."""

    __slots__ = ()


class Observation:
    """The policy around a session. It ends when the session is cleaned up."""

    def __init__(self, coordinator: ModuleCoordinator, observed: ObservedSession, options: Mapping[str, Any]) -> None:
        self._coordinator = coordinator
        self._observed = observed
        self._options = dict(options)
        #: ``True`` during a model call.
        self._is_asking = False
        #: The native coordinator, which emits, routes and records.
        self.kernel: Coordinator = observed.coordinator()

    @property
    def workspace(self) -> str:
        """The folder whose policy applies."""
        return self._observed.workspace

    @property
    def audit_folder(self) -> os.PathLike[str]:
        """The folder of the audit log."""
        return self._observed.audit_folder

    @property
    def warnings(self) -> list[str]:
        """The warnings about the policy, such as a bundle that is not trusted."""
        return self._observed.warnings

    async def emit(self, event: str, data: dict[str, Any]) -> Verdict:
        """Emits an event, routes the results of its hooks, and records everything. Changes of a tool's input are made in the dict that the
        orchestrator runs the tool with."""
        given = {**self._plan(), **data} if event in ("session:start", "session:resume") else data
        if self._is_asking and event in (*_AFTER_ANSWER, *_ANSWERS):
            self._is_asking = False
            if event not in _ANSWERS:
                self._record_end("provider:response", None, None)
        token = _EMITTED.set(given)
        try:
            outcome = await self.kernel.emit(event, given)
        finally:
            _EMITTED.reset(token)
        if event in _FREQUENT and not _speaks(outcome):
            return Verdict(outcome.result(), outcome, None, None)
        result, denied = await self.kernel.route(outcome)
        by, reason = denied or (None, None)
        if event == "tool:pre" and by is None:
            _change_input(given, result)
        elif event == "provider:request" and by is None:
            self._is_asking = True
        elif event in ("tool:error", "error:tool"):
            self._record_end(event, given.get("tool_call_id"), False)
        return Verdict(result, outcome, by, reason)

    def _record_end(self, event: str, tool_call_id: str | None, success: bool | None) -> None:
        try:
            self.kernel.record_outcome(event, tool_call_id, success)
        except OSError as error:
            # The next gate denies.
            logger.error("The end of an operation was not recorded: %s", error)

    def _plan(self) -> dict[str, Any]:
        plan = {"client": {"name": "microsoft-amplifier"}, "workspace": self.workspace, "served": self._observed.is_served}
        return {"mount_plan": plan, "source": "startup"}

    async def _emit_for_hooks(self, event: str, data: Any = None) -> HookResult:
        """The ``emit`` of the session's registry."""
        verdict = await self.emit(event, _as_dict(data))
        if not verdict.proceeds:
            return _RoutedResult(action="deny", reason=verdict.reason)
        result = verdict.result
        fields: dict[str, Any] = {"data": result.data, "suppress_output": result.suppress_output}
        if result.action == "inject_context" and result.ephemeral:
            # The orchestrator adds these to its next request.
            for name in ("context_injection", "context_injection_role", "ephemeral", "append_to_last_tool_result"):
                fields[name] = getattr(result, name)
            return _RoutedResult(action="inject_context", **fields)
        return _RoutedResult(action="continue", **fields)

    def has_routed(self, result: HookResult) -> bool:
        """Returns ``True`` for a result of the session's registry, which is completely handled."""
        return isinstance(result, _RoutedResult)

    def set_idle(self, idle: bool) -> None:
        """Shows the session as idle or busy in the console."""
        self._observed.set_idle(idle)

    async def end(self, reason: str = "complete") -> None:
        """Seals the session's part of the log and leaves the server. Later operations of the session are denied, because they cannot be
        recorded. Calling it again has no effect."""
        await self._observed.end(reason)

    def __repr__(self) -> str:
        return f"<Observation of session {self._coordinator.session_id}>"


class _Commands:
    """The commands of the server. They arrive on another thread."""

    def __init__(self, coordinator: ModuleCoordinator) -> None:
        # Weak: the link does not keep the session alive.
        self._coordinator = weakref.ref(coordinator)
        self._loop = asyncio.get_running_loop()

    def interrupt(self) -> None:
        """Stops the running turn."""
        self._call(lambda coordinator: coordinator.cancellation.request_graceful())

    def end(self) -> None:
        """Stops the running turn immediately, and denies everything after it."""

        def end(coordinator: ModuleCoordinator) -> None:
            _deny_all(coordinator, "server", "the session was ended in the console")
            coordinator.cancellation.request_immediate()

        self._call(end)

    def _call(self, function: Any) -> None:
        def call() -> None:
            coordinator = self._coordinator()
            if coordinator is not None:
                function(coordinator)

        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            logger.warning("The event loop of an observed session is closed: a command of the server has no effect")


def _deny_all(coordinator: ModuleCoordinator, name: str, reason: str) -> None:
    def deny(event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="deny", reason=reason)

    coordinator.hooks.register("*", deny, -_LAST, name, on_error="deny")


def _deny_lost_changes(event: str, data: dict[str, Any]) -> HookResult | None:
    """Denies an operation whose changes would be lost: it would run with other data than hooks and approvers have seen."""
    given = _EMITTED.get({})
    for name in _KEPT.get(event, ()):
        before, now = given.get(name), data.get(name)
        if before is now or before == now or isinstance(before, dict) and isinstance(now, dict):
            continue
        return HookResult(action="deny", reason=f"a hook changed `{name}`, and this agent cannot use the change; deny, or let the user decide")
    return None


def _change_input(given: dict[str, Any], result: HookResult) -> None:
    """Changes the input of a tool in place, because orchestrators ignore the data of the result."""
    before, now = given.get("tool_input"), (result.data or {}).get("tool_input")
    if isinstance(before, dict) and isinstance(now, dict) and before is not now and before != now:
        changed = dict(now)
        before.clear()
        before.update(changed)


def _as_dict(data: Any) -> Any:
    """Returns the data of an event as a dict: modules also give models, and nothing."""
    if data is None:
        return {}
    # Not a deep copy: the input of a tool is changed in place.
    return dict(data) if hasattr(data, "model_dump") else data


def _speaks(outcome: Any) -> bool:
    return outcome.decision != "continue" or bool(outcome.approvals or outcome.injections or outcome.messages)


async def observe(
    session: AmplifierSession | ModuleCoordinator,
    *,
    workspace: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    bundle: str | os.PathLike[str] | None = None,
    mode: Literal["ask", "accept-edits", "plan", "deny"] | None = None,
    confirm: Literal["all", "writes", "commands", "off"] | None = None,
    serve: bool | None = None,
) -> Observation:
    """Applies the policy of a workspace to a session, or to the coordinator of one: its bundles (of the user, of the project if trusted, and
    ``bundle``), approval rules, limits and audit log, as for the command ``amplifier``. Sub-sessions are observed, too.

    From then on, every event of the session is recorded, and an operation that hooks or approvers deny is denied wherever the session
    emits its event. Approval requests go to the approval system of the session, or to the terminal, and with ``serve`` (or
    ``approvals = "server"`` in the configuration) also to the console.

    ``workspace`` is the capability ``session.working_dir``, or the current folder. ``home`` is the folder of the user's configuration, by
    default that of the command. ``mode`` and ``confirm`` override the configuration; ``confirm`` is off unless somebody chose it.

    Raises ``ValueError`` for a configuration or a bundle that cannot be used. Observing a session again has no effect.
    """
    coordinator = getattr(session, "coordinator", session)
    if not isinstance(coordinator, ModuleCoordinator):
        raise TypeError(f"`observe` needs an `AmplifierSession` or its coordinator; found `{type(session).__name__}`")
    if coordinator._observation is not None:
        return coordinator._observation
    system = coordinator.approval_system
    if system is None and _has_terminal():
        system = TerminalApprovals()
    place = workspace or coordinator.get_capability("session.working_dir") or "."
    observed: ObservedSession = await observe_session(
        coordinator.hooks,
        session_id=coordinator.session_id,
        workspace=os.path.realpath(place),
        home=None if home is None else os.path.realpath(home),
        bundle=None if bundle is None else os.path.realpath(bundle),
        mode=mode,
        confirm=confirm,
        serve=serve,
        context=(MountedContext(coordinator), True),
        approvals=_approvals(system),
        display=_display(coordinator.display_system),
        commands=_Commands(coordinator),
    )
    options = {"workspace": place, "home": home, "bundle": bundle, "mode": mode, "confirm": confirm, "serve": serve}
    observation = Observation(coordinator, observed, options)
    coordinator._observation = observation
    for event in _KEPT:
        coordinator.hooks.register(event, _deny_lost_changes, _LAST, "observe", on_error="deny")
    # Orchestrators and modules emit on the registry.
    coordinator.hooks.emit = observation._emit_for_hooks  # type: ignore[method-assign]
    coordinator.register_cleanup(observation.end)
    _OBSERVED[coordinator.session_id] = observation
    return observation


async def observe_child(session: AmplifierSession) -> None:
    """Observes a sub-session if its parent is observed."""
    parent = _OBSERVED.get(session.parent_id or "")
    if parent is None:
        return
    if session.coordinator.approval_system is None:
        session.coordinator.approval_system = parent._coordinator.approval_system
    await observe(session, **parent._options)


async def mount(coordinator: ModuleCoordinator, config: dict[str, Any] | None = None) -> None:
    """Observes the session: the module ``hooks-policy``. Its ``config`` has the options of :func:`observe`.

    A session goes on without a module that cannot be mounted. Without its policy, everything in it is denied.
    """
    try:
        await observe(coordinator, **(config or {}))
    except BaseException as error:
        _deny_all(coordinator, "hooks-policy", f"the policy cannot be used: {error}")
        raise
