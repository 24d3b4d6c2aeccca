"""Sessions that are made of modules: an orchestrator, a context, providers, tools and hooks."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, TypeVar

from amplifier_core._apart import called
from amplifier_core._interfaces import MOUNT_POINTS, ModuleType, mounted_at, newly_mounted
from amplifier_core.hooks import HookResult
from amplifier_core.loader import ModuleLoader
from amplifier_core.module_coordinator import ModuleCoordinator
from amplifier_core.module_sources import ModuleNotFoundError

__all__ = ["AmplifierSession"]

logger = logging.getLogger("amplifier_core.session")

_Self = TypeVar("_Self", bound="AmplifierSession")

#: The sections of the configuration with lists of modules, in the order of mounting.
_LISTS: tuple[tuple[str, ModuleType], ...] = (("providers", "provider"), ("tools", "tool"), ("hooks", "hook"))


class AmplifierSession:
    """A session whose parts are modules, as in Microsoft's Amplifier.

    ``config`` names the modules: ``session`` has ``orchestrator`` and ``context``; ``providers``, ``tools`` and ``hooks`` are lists. A
    module is ``{"module": id, "source": …, "config": {…}}``; see :class:`~amplifier_core.loader.ModuleLoader`.

    ``async with`` initializes the session and cleans it up. A session with a ``parent_id`` is a sub-session; one whose parent is
    observed is observed, too (:func:`amplifier_core.observe`).
    """

    def __init__(
        self,
        config: dict[str, Any],
        loader: ModuleLoader | None = None,
        session_id: str | None = None,
        parent_id: str | None = None,
        approval_system: Any = None,
        display_system: Any = None,
        is_resumed: bool = False,
    ) -> None:
        if not isinstance(config, dict):
            raise TypeError(f"`config` must be a dict; found `{type(config).__name__}`")
        for name in ("orchestrator", "context"):
            if not (config.get("session") or {}).get(name):
                raise ValueError(f"the configuration has no `session.{name}`; name a module there")
        self.config = config
        self.session_id = session_id or str(uuid.uuid4())
        self.parent_id = parent_id
        self.is_resumed = is_resumed
        self.initialized = False
        self._status: Literal["running", "completed", "failed", "cancelled"] = "running"
        self._error: dict[str, Any] | None = None
        self._since = datetime.now()
        self._until: datetime | None = None
        self.coordinator = ModuleCoordinator(self, approval_system, display_system)
        self.coordinator.hooks.set_default_fields(session_id=self.session_id, parent_id=parent_id)
        self.loader = ModuleLoader(self.coordinator) if loader is None else loader
        self.coordinator.loader = self.loader
        self._has_begun = False

    @property
    def status(self) -> Any:
        """The state of the session at this moment, a ``SessionStatus`` of ``amplifier_core.models``."""
        # It needs `pydantic`.
        from amplifier_core.models import SessionStatus

        return SessionStatus(
            session_id=self.session_id, started_at=self._since, ended_at=self._until, status=self._status, last_error=self._error
        )

    async def initialize(self) -> None:
        """Loads and mounts the modules. Calling it again has no effect.

        Raises ``RuntimeError`` if the orchestrator or the context cannot be mounted. Other modules that cannot are left out: an error is
        logged and ``module:load_failed`` is emitted.
        """
        if self.initialized:
            return
        self.loader.clear_on_session_ready_queue()
        await self._observe_like_parent()
        session = self.config["session"]
        for kind in ("orchestrator", "context"):
            try:
                await self._mount(kind, session[kind], (self.config.get(kind) or {}).get("config"))
            except Exception as error:
                logger.error("Cannot mount the %s: %s", kind, error)
                raise RuntimeError(f"the session cannot be initialized: its {kind} failed: {error}") from error
        for section, kind in _LISTS:
            for spec in self.config.get(section) or ():
                await self._mount_or_report(kind, spec)
        await self._call_when_ready()
        if self.parent_id is not None:
            await self._emit("session:fork", {"parent": self.parent_id, **self._metadata()})
        self.initialized = True

    async def _observe_like_parent(self) -> None:
        """Observes a sub-session before its modules run."""
        if self.parent_id is not None:
            from amplifier_core.observation import observe_child

            await observe_child(self)

    async def _mount(self, kind: ModuleType, spec: Any, default: dict[str, Any] | None = None) -> None:
        spec = {"module": spec} if isinstance(spec, str) else spec
        if not isinstance(spec, Mapping) or not isinstance(spec.get("module"), str):
            raise ValueError(f"a {kind} is `{{'module': id, 'source': …, 'config': {{…}}}}`; found `{spec!r}`")
        config = spec.get("config") if spec.get("config") is not None else default
        before = mounted_at(self.coordinator, kind)
        mount = await self.loader.load(spec["module"], config, spec.get("source"), self.coordinator)
        cleanup = await mount(self.coordinator)
        if cleanup is not None:
            self.coordinator.register_cleanup(cleanup)
        if kind == "provider" and spec.get("instance_id"):
            await self._rename(kind, spec, before)

    async def _rename(self, kind: ModuleType, spec: Mapping[str, Any], before: dict[str, Any]) -> None:
        """Moves a provider to the name of its entry, so that a module can have several."""
        point, mounted = MOUNT_POINTS[kind], newly_mounted(self.coordinator, kind, before)
        if len(mounted) != 1:
            raise ValueError(f"`instance_id` of `{spec['module']}` needs a module that mounts one {kind}; it has mounted {len(mounted)}")
        ((name, provider),) = mounted.items()
        await self.coordinator.unmount(point, name)
        if name in before:
            await self.coordinator.mount(point, before[name], name)
        await self.coordinator.mount(point, provider, spec["instance_id"])

    async def _mount_or_report(self, kind: ModuleType, spec: Any) -> None:
        try:
            await self._mount(kind, spec)
        except Exception as error:
            known = spec if isinstance(spec, Mapping) else {}
            module = known.get("module", spec)
            logger.error("Cannot mount the %s '%s': %s", kind, module, error, exc_info=error)
            reason = "missing_source" if isinstance(error, ModuleNotFoundError) else getattr(error, "reason_code", "unknown")
            failed = {"module_id": module, "module_type": kind, "error": str(error), "reason_code": reason}
            if known.get("instance_id"):
                failed["instance_id"] = known["instance_id"]
            await self._emit("module:load_failed", failed)

    async def _call_when_ready(self) -> None:
        """Calls ``on_session_ready`` of the modules."""
        for module_id, ready in self.loader.get_on_session_ready_queue():
            try:
                await called(lambda ready=ready: ready(self.coordinator))  # type: ignore[misc]
            except Exception as error:
                logger.error("`on_session_ready` of '%s' failed: %s", module_id, error, exc_info=error)
                await self._emit("module:on_session_ready_failed", {"module_id": module_id, "error": str(error)})
        self.loader.clear_on_session_ready_queue()

    async def execute(self, prompt: str) -> str:
        """Runs a turn with the mounted orchestrator, and returns its answer.

        Raises :class:`~amplifier_core.session.SessionRefusedError` if a hook denies the start of the session, and ``RuntimeError`` if the
        turn fails.
        """
        if not self.initialized:
            raise RuntimeError("the session is not initialized; call `initialize` first")
        if not self._has_begun:
            await self._begin()
        mounted = {name: self.coordinator.get(name) for name in ("context", "providers", "tools", "hooks")}
        orchestrator = self.coordinator.get("orchestrator")
        self._check_mounted(orchestrator, mounted)
        self.coordinator.reset_turn()
        self.coordinator.set_idle(False)
        try:
            answer: str = await orchestrator.execute(prompt=prompt, **mounted, coordinator=self.coordinator)
        except Exception as error:
            await self._end_turn(f"{type(error).__name__}: {error}")
            raise RuntimeError(f"the turn failed: {type(error).__name__}: {error}") from error
        finally:
            self.coordinator.set_idle(True)
        await self._end_turn(None)
        return answer

    def _check_mounted(self, orchestrator: Any, mounted: dict[str, Any]) -> None:
        for name, one in (("orchestrator", orchestrator), ("context", mounted["context"])):
            if one is None:
                raise RuntimeError(f"cannot run a turn: no {name} is mounted")
        if not mounted["providers"]:
            raise RuntimeError("cannot run a turn: no provider is mounted")

    async def _begin(self) -> None:
        """Emits the first event of the session."""
        event = "session:resume" if self.is_resumed else "session:start"
        result = await self._emit(event, self._metadata())
        processed = await self.coordinator.process_hook_result(result, event, "session")
        if processed.action == "deny":
            from amplifier_core.session import SessionRefusedError

            reason = processed.reason or "no reason given"
            raise SessionRefusedError(f"the session must not start: {reason}", "hook", reason)
        self._has_begun = True

    def _metadata(self) -> dict[str, Any]:
        metadata = self.config["session"].get("metadata")
        return {} if metadata is None else {"metadata": metadata}

    async def _end_turn(self, error: str | None) -> None:
        if self.coordinator.cancellation.is_cancelled:
            self._status = "cancelled"
            data: dict[str, Any] = {"was_immediate": self.coordinator.cancellation.is_immediate}
            await self._emit("cancel:completed", data if error is None else {**data, "error": error})
        else:
            self._status = "completed" if error is None else "failed"
        self._error = None if error is None else {"message": error}

    async def _emit(self, event: str, data: dict[str, Any]) -> HookResult:
        ids = {"session_id": self.session_id, "parent_id": self.parent_id}
        return await self.coordinator.hooks.emit(event, {**ids, **data})

    async def cleanup(self) -> None:
        """Emits ``session:end``, and cleans up the modules. Failures are logged."""
        try:
            if self.initialized:
                self._until = datetime.now()
                await self._emit("session:end", {"status": self._status})
        finally:
            self.initialized = self._has_begun = False
            await self.coordinator.cleanup()
            self.loader.cleanup()

    async def __aenter__(self: _Self) -> _Self:
        await self.initialize()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.cleanup()

    def __repr__(self) -> str:
        return f"<AmplifierSession {self.session_id}: {self._status}>"
