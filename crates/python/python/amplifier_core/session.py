"""Sessions: an agent with a model, tools and hooks.

    provider = ScriptedProvider(["Good morning."])
    async with Session(provider) as session:
        print(await session.prompt("Hello"))

Everything runs in the awaiting task, on its loop and thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import logging
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from amplifier_core._given import Given, give
from amplifier_core._native import (
    AgentSession,
    AuditLog,
    Bundle,
    Channels,
    Coordinator,
    HookRegistry,
    Protection,
    RemoteProvider,
    ScriptedProvider,
    session_settings,
)
from amplifier_core._server import ServerCommands
from amplifier_core._settings import settings_of
from amplifier_core.approval import TerminalApprovals, _has_terminal
from amplifier_core.bundles import MountedBundle, Reload, _mount
from amplifier_core.coordinator import SessionCoordinator, _approvals, _audit, _display

if TYPE_CHECKING:
    from amplifier_core.amplifier_session import AmplifierSession as AmplifierSession

__all__ = [
    "AmplifierSession",
    "RemoteProvider",
    "ScriptedProvider",
    "Session",
    "SessionContext",
    "SessionRefusedError",
    "Tool",
    "ToolResult",
    "Turn",
]

logger = logging.getLogger(__name__)

_Self = TypeVar("_Self", bound="Session")


class _Visit:
    """A turn or a tool call, as seen by the code inside it."""

    __slots__ = ("is_over", "session")

    def __init__(self, session: int) -> None:
        self.session = session
        self.is_over = False


#: The turns in which this code runs or was started.
_INSIDE: contextvars.ContextVar[tuple[_Visit, ...]] = contextvars.ContextVar("amplifier_core_inside", default=())


class SessionRefusedError(Exception):
    """A hook or the user denied the start of the session."""

    def __init__(self, text: str, denied_by: str, reason: str) -> None:
        super().__init__(text)
        self.denied_by = denied_by
        self.reason = reason

    # By default, a copy would contain only the text.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.denied_by, self.reason), self.__dict__


class Tool:
    """A custom tool: a function, sync or async, that takes its input as a dict.

    The model reads the return value: a text, or a dict that becomes the ``tool_result`` of ``tool:post``, of which the model reads
    ``output``. The model reads an exception as a failure.
    """

    __slots__ = ("description", "execute", "input_schema", "name")

    def __init__(
        self,
        name: str,
        function: Callable[[dict[str, Any]], Any],
        description: str = "",
        input_schema: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.execute = function
        self.description = description
        self.input_schema = dict(input_schema or {"type": "object"})

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


class ToolResult:
    """The result of :meth:`Session.execute_tool`."""

    __slots__ = ("output", "result", "success", "tool_call_id")

    def __init__(self, tool_call_id: str, success: bool, result: Any, output: str) -> None:
        self.tool_call_id = tool_call_id
        #: ``True`` if the tool ran successfully.
        self.success = success
        #: The ``tool_result`` after all hooks; ``None`` if the tool did not run.
        self.result = result
        #: The text for the model.
        self.output = output

    @property
    def error(self) -> str | None:
        """The failure or the denial; ``None`` after success."""
        return None if self.success else self.output

    def __repr__(self) -> str:
        return f"<ToolResult: {'success' if self.success else self.output}>"


class Turn:
    """The result of a turn. As text: the answer, or the reason for a missing answer."""

    __slots__ = ("denied_by", "end", "reason", "text")

    def __init__(
        self,
        end: Literal["answered", "refused", "interrupted", "failed"],
        text: str,
        denied_by: str | None,
        reason: str | None,
    ) -> None:
        self.end = end
        self.text = text
        #: The hook that denied the turn.
        self.denied_by = denied_by
        #: The reason for a denial or failure.
        self.reason = reason

    @property
    def answered(self) -> bool:
        """``True`` if the turn has an answer."""
        return self.end == "answered"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Turn: {self.end}, {self.text!r}>"


class SessionContext:
    """The conversation of a session."""

    def __init__(self, session: Session) -> None:
        # Weak: the conversation does not keep the session alive.
        self._session = weakref.ref(session)

    def _kernel(self) -> AgentSession:
        session = self._session()
        if session is None:
            raise RuntimeError("the session no longer exists")
        return session._kernel

    def get_messages(self) -> list[dict[str, Any]]:
        """The messages so far: dicts with ``role`` and ``content``, and optionally ``tool_calls``, ``tool_call_id`` and ``metadata``.
        The ``metadata`` of injected messages contain ``source``: ``"hook"``."""
        return self._kernel().messages()

    def add_message(self, role: str, content: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Adds a message for the next prompt."""
        self._kernel().add_message(role, content, dict(metadata or {}))

    def __len__(self) -> int:
        return len(self.get_messages())


class _Coordinator(SessionCoordinator):
    """The coordinator of a session, with the kernel of the session."""

    def __init__(self, session: Session, config: Mapping[str, Any]) -> None:
        give(
            self,
            hooks=session.hooks,
            context=session.context,
            approval_system=session.approval_system,
            display_system=session.display_system,
            audit=session.audit,
            config=dict(config),
        )
        self._channels = Channels()
        self._cleanups = []
        self._session = weakref.ref(session)
        self._of_session: Coordinator | None = None

    @property
    def _kernel(self) -> Coordinator:  # type: ignore[override]
        if self._of_session is None:
            session = self._session()
            if session is None:
                raise RuntimeError("the session no longer exists")
            self._of_session = session._kernel.coordinator()
        return self._of_session


class Session:
    """An agent session: prompts in, answers out, with hooks at every step.

    ``provider`` is a :class:`ScriptedProvider`, a :class:`RemoteProvider`, or a custom object with ``complete(request)``, sync or async,
    which returns a text or a dict with ``text`` and ``tools``; without one, the bundle's provider is used.

    ``workspace`` is a folder. It adds the tools ``Read``, ``Write``, ``Edit``, ``MultiEdit``, ``Bash``, ``Glob``, ``Grep`` and ``Todo``,
    which are limited to this folder. ``tools`` are custom tools: a :class:`Tool`, an object with ``name`` and ``execute(input)``, or a
    function. ``only`` limits the session to the named tools; an unknown name raises ``ValueError`` at the start.

    A session with a workspace or with MCP servers asks before it acts: the built-in hook ``confirm`` requests approval for ``"all"`` commands,
    writes and other tools, for ``"writes"`` and commands that may change something, for such ``"commands"`` alone, or is ``"off"``. ``mode`` is
    ``"ask"``; ``"accept-edits"``, which accepts writes that git can undo; ``"plan"``, which denies changes; or ``"deny"``, which denies
    every approval request. Both take precedence over those of the bundle. Without an ``approval_system``, the session asks on the
    terminal; without a terminal, every approval request is denied.

    ``hooks``, ``approval_system``, ``display_system``, ``config`` and ``approval_rules`` are those of a ``SessionCoordinator``;
    ``audit`` is an ``AuditLog`` or an object with ``record``. ``bundle`` is a file or a ``Bundle``, whose hooks and settings apply to
    the session; changes of its files are reloaded while the session runs, unless ``follow`` is false. ``options`` are limits: ``steps``,
    ``tokens``, ``retries``, ``retry_delay``, ``call_timeout``, ``depth``, ``compact_above``, ``compact_to``, ``parameters``. ``store`` is
    a folder for conversations; ``resume`` continues a stored one, by its id or ``"last"``; ``fork`` starts a new one as a copy of a
    stored one, at its end or after a ``turn``. Relative paths are resolved against the current folder at construction.

    No tool can change the bundle, its programs, an ``AuditLog``, the store, or the paths that the command ``amplifier`` protects. Commands
    and MCP servers run in a sandbox for this purpose. On systems without a sandbox, a warning is logged, and commands are analysed and
    denied if they would change protected paths. ``confine=True`` makes a missing sandbox an error, and ``confine=False`` disables it.

    ``home`` is the folder of the user's configuration for sessions with a bundle: ``AMPLIFIER_HOME`` or the default folders, as for the
    command, created if missing. Its approval rules are read for each request, in addition to ``approval_rules``; ``[sandbox]`` of its
    ``config.toml`` applies too. ``False`` uses no home.

    ``serve=True``, or ``approvals: server`` in the bundle, connects the session to the server of that home (``amplifier serve``), like
    ``--serve`` of the command: approval requests are answered there or by ``approval_system``, whichever is first. The server can stop a
    turn, end the session, add and revoke rules, and reload the bundle. This requires an ``AuditLog`` as ``audit``.

    The session starts with an ``async with`` block or at its first use, and ends with the block or with :meth:`end`.
    """

    hooks = Given[HookRegistry]()
    approval_system = Given[Any]()
    display_system = Given[Any]()
    audit = Given[Any]()

    def __init__(
        self,
        provider: Any = None,
        *,
        hooks: HookRegistry | None = None,
        tools: Iterable[Any] = (),
        workspace: str | os.PathLike[str] | None = None,
        only: Iterable[str] | None = None,
        system: str | None = None,
        confirm: Literal["all", "writes", "commands", "off"] | None = None,
        mode: Literal["ask", "accept-edits", "plan", "deny"] | None = None,
        approval_system: Any = None,
        display_system: Any = None,
        audit: Any = None,
        config: Mapping[str, Any] | None = None,
        approval_rules: Mapping[str, str] | None = None,
        bundle: Bundle | str | os.PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
        orchestrator: Literal["loop-basic", "loop-streaming"] | None = None,
        store: str | os.PathLike[str] | None = None,
        resume: str | None = None,
        fork: str | None = None,
        turn: int | None = None,
        follow: bool = True,
        confine: bool | None = None,
        home: str | os.PathLike[str] | Literal[False] | None = None,
        serve: bool | None = None,
    ) -> None:
        hooks = HookRegistry() if hooks is None else hooks
        if type(hooks).emit is not HookRegistry.emit:
            raise TypeError(f"a session does not call the `emit` of `{type(hooks).__name__}`; register hooks instead of overriding `emit`")
        if approval_system is None and _has_terminal():
            approval_system = TerminalApprovals()
        give(self, hooks=hooks, approval_system=approval_system, display_system=display_system, audit=audit)
        #: The name that a hook gave to the session.
        self.name: str | None = None
        for name, stored in (("resume", resume), ("fork", fork)):
            if stored is not None and store is None:
                raise ValueError(f"`{name}` requires the `store` of the session")
        if resume is not None and fork is not None:
            raise ValueError("`resume` and `fork` cannot be combined; give one of them")
        if turn is not None and fork is None:
            raise ValueError("`turn` requires `fork`")
        if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool) or turn < 0):
            raise ValueError(f"`turn` must be a whole number from 0 on; found `{turn!r}`")
        self._from = (resume, fork, turn)
        self._place = _settled("workspace", "." if workspace is None else workspace)
        store = None if store is None else _settled("store", store)
        if bundle is not None and not isinstance(bundle, Bundle):
            bundle = Bundle.load(bundle)
        self._bundle: Bundle | None = bundle
        self._mounted: MountedBundle | None = None
        self._follow = follow
        # Any thread may start or end the session, and others wait for that on their own loops.
        self._changing = threading.Lock()
        self._state: Literal["new", "starting", "running", "ended"] = "new"
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ending: concurrent.futures.Future[None] | None = None
        settings = session_settings(bundle, confirm=confirm, mode=mode, acts=workspace is not None)
        config = dict(config or {})
        limits = {**settings["config"], **settings_of(config)}
        if bundle is not None and audit is None and limits["audit_required"]:
            raise ValueError('a session with a bundle needs an audit log; give `audit`, or `config={"audit_required": False}` for none')
        if bundle is not None and isinstance(audit, AuditLog):
            bundle.check_log(audit)
        approvals = _approvals(approval_system)
        is_served = settings["approvals"] == "server" if serve is None else serve
        if is_served and settings["mode"] == "deny":
            raise ValueError("`serve` has no effect in the mode `deny`; leave out one of them")
        self._server = ServerCommands(self) if is_served else None
        #: The protected paths. Commands run in its sandbox, as do the programs of hooks, which could run files that commands have written.
        self._protection = Protection(
            self._place,
            bundle=bundle,
            audit=audit,
            store=store,
            home=None if home is None or home is False else _settled("home", home),
            is_home_used=home is not False and (bundle is not None or home is not None or is_served),
            confine=confine,
            starts=workspace is not None or bool(settings["mcp"]),
        )
        for warning in self._protection.warnings:
            logger.warning("%s", warning)
        self.context = SessionContext(self)
        #: Emits events of the session and routes the results of hooks.
        self.coordinator: SessionCoordinator = _Coordinator(self, config)
        self._kernel = AgentSession(
            self.hooks,
            provider=_provider(provider, bundle),
            tools=_tools(tools),
            place=self._place,
            has_workspace=workspace is not None,
            only=[list(names) for names in (only, settings["only"]) if names is not None],
            system=settings["system"] if system is None else system,
            confirm=settings["confirm"],
            mode=settings["mode"],
            approvals=approvals,
            approval_timeout=settings["approval_timeout"],
            display=_display(display_system),
            audit=_audit(audit),
            config=limits,
            rules=dict(approval_rules or {}),
            options=dict(options or {}),
            orchestrator=orchestrator or settings["orchestrator"],
            servers=settings["mcp"],
            store=store,
            mount_plan={
                "client": {"name": "python"},
                **({} if workspace is None else {"workspace": self._place}),
                **({"served": True} if is_served else {}),
                "mode": settings["mode"],
                "confirm": settings["confirm"],
            },
            protection=self._protection,
            server=self._server,
        )

    async def start(self) -> None:
        """Starts the session: registers the hooks of its bundle and emits ``session:start``.

        Raises :class:`SessionRefusedError` if a hook denies the start, and ``ValueError`` for an invalid bundle.
        """
        with self._alone():
            if not self._change("new", "starting"):
                raise RuntimeError("the session has already started")
            await self._start()

    def _change(
        self,
        before: Literal["new", "running"],
        after: Literal["starting", "ended"],
        ending: concurrent.futures.Future[None] | None = None,
    ) -> bool:
        """Changes the state from ``before`` to ``after``. Returns ``True`` if the state was ``before``."""
        with self._changing:
            is_so = self._state == before
            if is_so:
                self._state, self._ending = after, ending
            return is_so

    async def _start(self) -> None:
        if self._server is not None:
            self._server.follow()
        try:
            if self._bundle is not None:
                of_session = weakref.ref(self)

                def name_session(id: str, name: str) -> None:
                    session = of_session()
                    if session is not None:
                        session.name = name

                self._mounted = await _mount(
                    self.coordinator, self._bundle, self._place, name_session, self._follow, self._protection
                )
            await self._kernel.start(*self._from)
            self._state = "running"
            self._started.set_result(None)
        except BaseException as error:
            self._state = "ended"
            is_own = isinstance(error, Exception)
            self._started.set_exception(error if is_own else RuntimeError("the session has ended: its start was cancelled"))
            with _logged():
                await self._unmount()
            raise

    async def prompt(self, prompt: str, metadata: Mapping[str, Any] | None = None) -> Turn:
        """Runs a turn, from a prompt to an answer, after any turn in progress.

        A cancellation stops tools and model calls, and the turn ends as interrupted, before the cancellation propagates.
        """
        await self._begin()
        with self._alone():
            return Turn(*await self._kernel.prompt(prompt, dict(metadata or {})))

    async def execute_tool(self, name: str, input: Mapping[str, Any] | None = None) -> ToolResult:
        """Calls a tool outside of a turn, with the same steps: ``tool:pre`` with its approvals, the tool, ``tool:post`` with its
        injections. The call and its result become part of the conversation."""
        await self._begin()
        with self._alone():
            return ToolResult(*await self._kernel.execute_tool(name, dict(input or {})))

    async def compact(self) -> None:
        """Summarizes the conversation now. Raises ``RuntimeError`` on failure, without changing the conversation."""
        await self._begin()
        with self._alone():
            kept = await self._kernel.compact()
        if kept is not None:
            raise RuntimeError(kept[1])

    async def reload(self) -> Reload:
        """Reloads the bundle of the session and returns the result: see :meth:`~amplifier_core.bundles.MountedBundle.reload`.
        Settings, tools and models do not change after the start."""
        if self._mounted is None or self._state != "running":
            raise RuntimeError("no active bundle: the session has none, or is not running")
        return await self._mounted.reload()

    def cancel(self) -> Literal["graceful", "immediate"]:
        """Stops the running turn after the running tool; called again, stops everything immediately. Can be called from any thread."""
        return self._kernel.cancel()

    async def end(self, reason: str = "complete") -> None:
        """Ends the session after any turn in progress: unregisters the hooks of its bundle, cleans up its coordinator, and seals its part of
        an ``AuditLog``. Calling it again has no effect. A cancellation only stops the wait; the session still ends."""
        if self._state == "starting":
            raise RuntimeError("the session has not started")
        if self._state == "running":
            self._must_be_outside()
        ending: concurrent.futures.Future[None] = concurrent.futures.Future()
        if self._change("running", "ended", ending):
            # In a separate task: a running turn keeps its guards until it is over, even if the caller is cancelled.
            finish = asyncio.ensure_future(self._finish(reason))
            finish.add_done_callback(lambda _: self._finished(ending))
            await asyncio.shield(finish)
        elif self._change("new", "ended"):
            await self.coordinator.cleanup()
        elif self._ending is not None and not self._is_inside():
            await _until(self._ending)
            # If the task was cancelled.
            await self._unmount()

    async def _finish(self, reason: str) -> None:
        with self._alone():
            try:
                await self._kernel.end(reason)
            except BaseException:
                if self._kernel.has_ended:
                    with _logged():
                        await self._unmount()
                raise
            await self._unmount()

    def _finished(self, ending: concurrent.futures.Future[None]) -> None:
        if self._kernel.has_ended:
            ending.set_result(None)
        else:
            # The loop is closed or the program is stopped: the session keeps its guards until another caller ends it.
            self._state = "running"
            ending.set_exception(RuntimeError("the session has not ended: its end was cancelled"))

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._kernel.id

    @property
    def tokens(self) -> int:
        """The number of tokens used so far, including sub-agents."""
        return self._kernel.tokens

    @property
    def tools(self) -> list[str]:
        """The names of the tools."""
        return self._kernel.tools

    async def _end_when_started(self, reason: str) -> None:
        if self._state == "starting":
            with contextlib.suppress(Exception):
                await _until(self._started)
        await self.end(reason)

    async def _begin(self) -> None:
        if self._server is not None and self._server.has_ended and self._state == "running":
            await self.end("user_exit")
        if self._state not in ("new", "starting"):
            return
        with self._alone():
            if self._change("new", "starting"):
                await self._start()
            else:
                await _until(self._started)

    def _is_inside(self) -> bool:
        """Returns ``True`` if called from a hook or a tool of the session."""
        return any(visit.session == id(self) and not visit.is_over for visit in _INSIDE.get())

    def _must_be_outside(self) -> None:
        if self._is_inside():
            raise RuntimeError("the session is already in a turn; its hooks and tools cannot wait for another turn")

    @contextlib.contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """Raises if the operation would wait for itself, because turns run one at a time."""
        self._must_be_outside()
        visit = _Visit(id(self))
        token = _INSIDE.set((*_INSIDE.get(), visit))
        try:
            yield
        finally:
            visit.is_over = True
            _INSIDE.reset(token)

    async def _unmount(self) -> None:
        try:
            if self._mounted is not None:
                await self._mounted.unmount()
        finally:
            await self.coordinator.cleanup()

    async def __aenter__(self: _Self) -> _Self:
        if self._state == "ended":
            raise RuntimeError("the session has ended; create a new one, with `resume` to continue this one")
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            await self.end()
        else:
            with _logged():
                await self.end("error")

    def __repr__(self) -> str:
        return f"<Session: {self._state}>"


async def _until(done: concurrent.futures.Future[None]) -> None:
    """Waits for a future of another loop. A cancellation only stops the wait."""
    await asyncio.shield(asyncio.wrap_future(done))


@contextlib.contextmanager
def _logged() -> Generator[None, None, None]:
    """Logs failures while another exception propagates."""
    try:
        yield
    except Exception as error:
        logger.error("A session did not end as it should: %s: %s", type(error).__name__, error, exc_info=error)


def _settled(name: str, path: str | os.PathLike[str]) -> str:
    """Resolves a path once, so that the same file is checked, protected and used, even if the current folder or links change later."""
    if not os.fspath(path):
        raise ValueError(f"`{name}` is an empty path; the current folder is `.`")
    return os.path.realpath(path)


def _provider(given: Any, bundle: Bundle | None) -> Any:
    """Returns the given provider, or the first one of the bundle."""
    found = bundle.provider() if given is None and bundle is not None else given
    if found is None:
        raise ValueError("missing model; give a `provider`, or a `bundle` with `providers`")
    return found


def _tools(tools: Iterable[Any]) -> list[tuple[Callable[[dict[str, Any]], Any], str, str, dict[str, Any]]]:
    known = [_tool(tool) for tool in tools]
    names = [name for _, name, _, _ in known]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"duplicate tool name `{name}`")
    return known


def _tool(tool: Any) -> tuple[Callable[[dict[str, Any]], Any], str, str, dict[str, Any]]:
    """Returns the parts of a tool for the native session."""
    function = getattr(tool, "execute", None)
    if not callable(function):
        function = tool
    if not callable(function):
        raise TypeError(f"a tool is a `Tool`, an object with `name` and `execute(input)`, or a function; found `{type(tool).__name__}`")
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise TypeError(f"missing `name` of tool `{name or type(tool).__name__}`; give a `Tool(name, function)`")
    description = getattr(tool, "description", None) or inspect.getdoc(tool) or ""
    schema = getattr(tool, "input_schema", None)
    return function, name, str(description), dict(schema if schema is not None else {"type": "object"})


def __getattr__(name: str) -> Any:
    # It needs more imports, and raises errors of this module.
    if name == "AmplifierSession":
        from amplifier_core.amplifier_session import AmplifierSession

        return AmplifierSession
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
