"""Routes the results of hooks: approval requests to the user, injections to the conversation, messages to the display."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amplifier_core._apart import called
from amplifier_core._given import Given, give
from amplifier_core._native import AuditLog, Channels, Collecting, Coordinator, HookRegistry, HookResult, Outcome
from amplifier_core._settings import settings_of

if TYPE_CHECKING:
    from amplifier_core.module_coordinator import ModuleCoordinator as ModuleCoordinator

__all__ = ["INJECTION_BUDGET_PER_TURN", "MAX_INJECTION_SIZE", "ModuleCoordinator", "SessionCoordinator", "Verdict"]

logger = logging.getLogger("amplifier_core.coordinator")

#: The default maximum size of an injection, in characters.
MAX_INJECTION_SIZE = 10_240

#: The default maximum number of injected tokens per turn.
INJECTION_BUDGET_PER_TURN = 10_000

#: The default ``emit``, which subclasses and tests may override.
_EMIT = HookRegistry.emit

#: The event of approvals and messages that are handled without an event.
_NO_EVENT = "hook:result"


class Verdict:
    """The decision on an operation, the data to proceed with, and the results of all hooks."""

    __slots__ = ("denied_by", "outcome", "reason", "result")

    def __init__(self, result: HookResult, outcome: Outcome | None, denied_by: str | None, reason: str | None) -> None:
        self.result = result
        #: ``None`` if the registry's ``emit`` is overridden: then only the result is available.
        self.outcome = outcome
        self.denied_by = denied_by
        self.reason = reason

    @property
    def proceeds(self) -> bool:
        """``True`` if the operation may run."""
        return self.denied_by is None

    @property
    def data(self) -> dict[str, Any] | None:
        """The data to run the operation with; ``None`` if denied."""
        return self.result.data

    def __repr__(self) -> str:
        if self.proceeds:
            return "<Verdict: proceed>"
        return f"<Verdict: denied by {self.denied_by}: {self.reason}>"


class Contributions(list[Any]):
    """The contributions of a channel, in order of registration.

    The list contains the contributions that are available immediately. Awaiting it waits for the others and returns a plain list of all
    contributions; it can be awaited repeatedly.
    """

    def __init__(self, collecting: Collecting) -> None:
        super().__init__(collecting.at_once())
        self._collecting = collecting

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        return self._collecting.finish().__await__()


class SessionCoordinator:
    """Emits events for a session and routes the results of the hooks, in this order: approvals, injections, messages.

    ``context``, ``approval_system``, ``display_system`` and ``audit`` may be ``None``: injections and messages are then dropped, and every
    approval request is denied. They cannot be set later. Their methods may be sync or async:

    - ``context.add_message(role, content, metadata)``, or ``context.add_message(message)`` with a dict of these;
    - ``approval_system.request_approval(prompt, options, timeout, default)``, or ``ask(request)``; of both, ``ask`` if its parameter is called
      ``request``;
    - ``display_system.show_message(message, level, source)``;
    - ``audit.record(record)``, which must not wait, and ``audit.flush()`` if there is one.

    ``config`` has the settings of the session (or holds them under ``"session"``, and there alone): ``injection_size_limit``,
    ``injection_budget_per_turn``, ``over_budget`` (``"warn"``, ``"drop"``, ``"truncate"``), ``forbid_default_allow`` and
    ``audit_required``. ``approval_rules`` are the user's approval rules: ``{"<hook>:<pattern>": "allow" or "deny"}``, or
    ``{"<hook>": {"<operation>": "allow" or "deny"}}``. ``operations`` are the parts of every operation, for rules about operations:
    ``[{"widths": [{"operation": …, "label": …, "allows": true}]}]``, from narrow to wide.
    """

    hooks = Given[HookRegistry]()
    context = Given[Any]()
    approval_system = Given[Any]()
    display_system = Given[Any]()
    audit = Given[Any]()
    config = Given[dict[str, Any]]()

    def __init__(
        self,
        hooks: HookRegistry,
        context: Any = None,
        approval_system: Any = None,
        display_system: Any = None,
        config: Mapping[str, Any] | None = None,
        *,
        audit: Any = None,
        session_id: str | None = None,
        approval_rules: Mapping[str, Any] | None = None,
        operations: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        config, rules = _dict("config", config), _dict("approval_rules", approval_rules)
        give(
            self,
            hooks=hooks,
            context=context,
            approval_system=approval_system,
            display_system=display_system,
            audit=audit,
            config=config,
        )
        self._session_id = session_id
        self._channels = Channels()
        self._cleanups: list[Callable[[], Any]] = []
        self._kernel = Coordinator(
            hooks,
            context=_context(context),
            approvals=_approvals(approval_system),
            display=_display(display_system),
            audit=_audit(audit),
            config=settings_of(config),
            session_id=session_id,
            rules=rules,
            operations=json.dumps(list(operations)),
        )

    async def execute_with_hooks(self, event: str, data: dict[str, Any]) -> HookResult:
        """Emits an event and routes the results of the hooks. The result's action is ``deny`` if the operation must not run; otherwise
        its data is the data to run the operation with."""
        return (await self.emit(event, data)).result

    async def emit(self, event: str, data: dict[str, Any]) -> Verdict:
        """Like :meth:`execute_with_hooks`, but returns the complete verdict."""
        # Not through the attribute, which would cost more than this check.
        hooks = self.__dict__["hooks"]
        if type(hooks).emit is not _EMIT or "emit" in hooks.__dict__:
            return await self._emit_by_another(event, data)
        return await self._route(await self._kernel.emit(event, data))

    async def _route(self, outcome: Outcome) -> Verdict:
        result, denied = await self._kernel.route(outcome)
        by, reason = denied or (None, None)
        return Verdict(result, outcome, by, reason)

    async def _emit_by_another(self, event: str, data: dict[str, Any]) -> Verdict:
        """Emits by an overridden ``emit``. Only its return value counts, unless it returns ``None`` or the value of the registry's own
        ``emit``: then the complete outcome counts."""
        if self._session_id is not None:
            data = {**data, "session_id": self._session_id}
        collected: list[tuple[Outcome, HookResult, HookResult]] = []
        collector = self._kernel.collector()
        asked = [collected]
        token = collector.set(asked)
        try:
            given = await self.hooks.emit(event, data)
            # A spy that wraps ``emit`` returns its value.
            if inspect.isawaitable(given):
                given = await given
        finally:
            collector.reset(token)
            asked.clear()
        if given is None:
            outcomes = [outcome for outcome, *_ in collected if outcome.event == event]
            result = HookResult()
        else:
            result = HookResult.model_validate(given)
            same = [outcome for outcome, flat, as_given in collected if flat is given and as_given == result]
            outcomes = same or [one for one, _, as_given in collected if one.event == event and as_given == result]
        if outcomes:
            return await self._route(outcomes[-1])
        counts = data if result.data is None else result.data
        by, reason = await self._kernel.process(result, event, "composite", counts) or (None, None)
        if by is not None:
            update: dict[str, Any] = {"action": "deny", "data": None, "reason": reason}
        else:
            # Remaining requests and denials were granted, or have no effect at this event.
            action = "continue" if result.action in ("ask_user", "deny") else result.action
            update = {"action": action, "data": counts}
        return Verdict(result.model_copy(update=update), None, by, reason)

    async def process_hook_result(
        self, result: HookResult, event: str, hook_name: str = "composite", data: dict[str, Any] | None = None
    ) -> HookResult:
        """Routes the result of a single hook, or of ``hooks.emit``. Returns a denial if the hook or the user denied, and otherwise the
        result itself; a granted request becomes a ``continue``.

        Raises ``ValueError`` if the injection exceeds the session's limits.
        """
        denied = await self._kernel.process(result, event, hook_name, data or {})
        if denied is not None:
            return HookResult(action="deny", reason=denied[1])
        return HookResult(action="continue", data=result.data) if result.action == "ask_user" else result

    def handle_context_injection(
        self, result: HookResult, hook_name: str = "composite", event: str = _NO_EVENT
    ) -> Awaitable[None]:
        """Adds the injection of a result to the conversation, within the limits of the session.

        Raises ``ValueError`` immediately if the injection is too large.
        """
        self._kernel.check_injection(hook_name, result.context_injection or "")
        return self._inject(result, hook_name, event)

    async def _inject(self, result: HookResult, hook_name: str, event: str) -> None:
        if result.context_injection:
            alone = {"action": "inject_context", "user_message": None}
            await self._kernel.process(result.model_copy(update=alone), event, hook_name, {})

    async def handle_approval_request(
        self, result: HookResult, hook_name: str = "composite", event: str = _NO_EVENT
    ) -> HookResult:
        """Requests approval. Returns ``continue`` or a denial."""
        alone = {"action": "ask_user", "context_injection": None, "user_message": None}
        return await self.process_hook_result(result.model_copy(update=alone), event, hook_name)

    async def handle_user_message(self, result: HookResult, hook_name: str = "composite", event: str = _NO_EVENT) -> None:
        """Shows the message of a result."""
        if result.user_message:
            message = HookResult(
                user_message=result.user_message,
                user_message_level=result.user_message_level,
                user_message_source=result.user_message_source,
            )
            await self._kernel.process(message, event, hook_name, {})

    def reset_turn(self) -> None:
        """Starts a turn and resets the injection budget."""
        self._kernel.begin_turn()

    def forget_answers(self) -> None:
        """Forgets the remembered answers of the session."""
        self._kernel.forget_answers()

    @property
    def injection_budget(self) -> int:
        """The number of tokens that hooks injected in this turn."""
        return self._kernel.injected_tokens

    def register_contributor(
        self, channel: str, contributor: Callable[[], Any] | str, callback: Callable[[], Any] | None = None
    ) -> Callable[[], None]:
        """Registers a function that provides data for a channel: ``register_contributor(channel, function)``, or
        ``register_contributor(channel, name, function)``. Returns a function that unregisters it."""
        if isinstance(contributor, str):
            name = contributor
            function = callback
        else:
            name = getattr(contributor, "__name__", type(contributor).__name__)
            function = contributor
        if not callable(function):
            raise TypeError(f"the contributor `{name}` must be callable")
        return self._channels.register(channel, name, function)

    def collect_contributions(self, channel: str) -> Contributions:
        """Returns the contributions of a channel, in order of registration; failures are logged and skipped. Await the result if
        some contributors are async."""
        return Contributions(self._channels.collect(channel))

    def get(self, point: str, name: str | None = None) -> Any:
        """Returns the object at a mount point: ``get("hooks")`` is ``hooks``; ``None`` for an unknown one."""
        # A method is no mount point.
        return None if name is not None or point.startswith("_") else vars(self).get(point)

    def register_cleanup(self, cleanup: Callable[[], Any]) -> None:
        """Registers a function, sync or async, for :meth:`cleanup`. A function that a module registers while ``modules.mount`` mounts it
        is called when the module is unmounted instead."""
        if not callable(cleanup):
            raise TypeError(f"a cleanup must be callable; found `{type(cleanup).__name__}`")
        self._cleanups.append(cleanup)

    async def cleanup(self) -> None:
        """Calls the functions of :meth:`register_cleanup` once, the latest first. Failures are logged. A ``Session`` calls this at its
        end; otherwise call it yourself."""
        while self._cleanups:
            cleanup = self._cleanups.pop()
            try:
                await called(cleanup)
            except Exception as error:
                logger.warning("A cleanup failed: %s: %s", type(error).__name__, error, exc_info=error)

    def __repr__(self) -> str:
        return f"<SessionCoordinator of {self.hooks!r}>"


def _dict(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"`{name}` must be a dict; found `{type(given).__name__}`")
    return dict(given or {})


# A part, and `True` if its method takes a single object. A part with a wrong signature is rejected now; later, results of hooks would be
# lost.
_Part = tuple[Any, bool]


def _context(context: Any) -> _Part | None:
    if context is None:
        return None
    called = "add_message(role, content, metadata)` or `add_message(message)"
    method = _method(context, "add_message", "a context", called)
    if _takes(method, role="", content="", metadata={}):
        return context, False
    if _takes(method, {}):
        return context, True
    raise _misfit(context, "add_message", called)


def _approvals(system: Any) -> _Part | None:
    if system is None:
        return None
    called = "request_approval(prompt, options, timeout, default)` or `ask(request)"
    ask, request_approval = getattr(system, "ask", None), getattr(system, "request_approval", None)
    can_ask = callable(ask) and _takes(ask, None)
    can_request = callable(request_approval) and _takes(request_approval, prompt="", options=[], timeout=0.0, default="")
    # An `ask` next to the other method may have another purpose, and a mock has every method: the name of its parameter decides, or that of
    # the mocked class.
    of_class = getattr(system.__class__, "ask", None)
    if can_ask and (not can_request or "request" in {*_parameters(ask), *_parameters(of_class)}):
        return system, True
    if can_request:
        return system, False
    name = "ask" if callable(ask) and not callable(request_approval) else "request_approval"
    _method(system, name, "an approval system", called)
    raise _misfit(system, name, called)


def _display(display: Any) -> _Part | None:
    if display is None:
        return None
    called = "show_message(message, level, source)"
    method = _method(display, "show_message", "a display system", called)
    if not _takes(method, message="", level="", source=""):
        raise _misfit(display, "show_message", called)
    return display, False


def _audit(audit: Any) -> _Part | None:
    if audit is None or isinstance(audit, AuditLog):
        return None if audit is None else (audit, False)
    method = _method(audit, "record", "an audit log", "record(record)")
    if inspect.iscoroutinefunction(method):
        raise TypeError(f"`record` of `{type(audit).__name__}` must not be async: keep the record, and let `flush` wait for it")
    if not _takes(method, {}):
        raise _misfit(audit, "record", "record(record)")
    return audit, False


def _method(part: Any, name: str, kind: str, called: str) -> Callable[..., Any]:
    method: Callable[..., Any] | None = getattr(part, name, None)
    if not callable(method):
        raise TypeError(f"{kind} has `{called}`; `{type(part).__name__}` has not")
    return method


def _takes(method: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Returns ``True`` unless the call would certainly fail."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _parameters(method: Any) -> Collection[str]:
    """Returns the names of the parameters, as far as known."""
    try:
        return inspect.signature(method).parameters
    except (TypeError, ValueError):
        return ()


def _misfit(part: Any, name: str, called: str) -> TypeError:
    signature = inspect.signature(getattr(part, name))
    return TypeError(f"`{name}` of `{type(part).__name__}` takes `{signature}`; it is called as `{called}`, with these names")


def __getattr__(name: str) -> Any:
    # It is written with a `SessionCoordinator`, and so imported later.
    if name == "ModuleCoordinator":
        from amplifier_core.module_coordinator import ModuleCoordinator

        return ModuleCoordinator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
