"""The coordinator of a session that is made of modules: mount points and capabilities, next to the routing of results."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amplifier_core._given import Given, give
from amplifier_core._native import Channels, Coordinator, HookRegistry, HookResult
from amplifier_core._settings import SETTINGS, settings_of
from amplifier_core.coordinator import SessionCoordinator, Verdict, _approvals, _display

if TYPE_CHECKING:
    from amplifier_core.cancellation import CancellationToken
    from amplifier_core.observation import Observation

__all__ = ["ModuleCoordinator"]

logger = logging.getLogger("amplifier_core.coordinator")

#: The mount points with a single object, and those with objects by name.
_SINGLE = ("orchestrator", "context", "module-source-resolver")
_NAMED = ("providers", "tools")


class MountedContext:
    """Passes injections to the context that is mounted at that time."""

    def __init__(self, coordinator: ModuleCoordinator) -> None:
        self._coordinator = coordinator

    async def add_message(self, message: dict[str, Any]) -> None:
        # Orchestrators add ephemeral texts to a single request by themselves; a context would keep them.
        if message["metadata"].get("ephemeral"):
            return
        context = self._coordinator.context
        if context is None:
            logger.warning("An injection was dropped: no context is mounted")
            return
        added = context.add_message(message)
        if inspect.isawaitable(added):
            await added


class ModuleCoordinator(SessionCoordinator):
    """Connects the modules of an :class:`~amplifier_core.session.AmplifierSession`.

    Modules mount their objects (``tools``, ``providers``, ``orchestrator``, ``context``, ``module-source-resolver``) and share others as
    capabilities. Results of hooks are routed as by a ``SessionCoordinator``. ``session`` has ``session_id``, ``parent_id`` and
    ``config``. The parts of the session can be replaced while it runs.
    """

    def __init__(self, session: Any, approval_system: Any = None, display_system: Any = None) -> None:
        from amplifier_core.cancellation import CancellationToken

        give(self, hooks=HookRegistry(compat=True), config=session.config)
        self.session = session
        self.session_id: str = session.session_id
        self.parent_id: str | None = session.parent_id
        #: The loader of the session's modules.
        self.loader: Any = None
        #: Values that modules of the session share.
        self.session_state: dict[str, Any] = {}
        #: The mounted objects, by mount point.
        self.mount_points: dict[str, Any] = {
            "orchestrator": None,
            "providers": {},
            "tools": {},
            "context": None,
            "hooks": self.hooks,
            "module-source-resolver": None,
        }
        self.cancellation: CancellationToken = CancellationToken()
        self._approval_system = approval_system
        self._display_system = display_system
        self._capabilities: dict[str, Any] = {}
        self._channels = Channels()
        self._cleanups = []
        self._unobserved: Coordinator | None = None
        self._observation: Observation | None = None

    def _set_session(self, session: Any) -> None:
        self.session = session

    @property
    def context(self) -> Any:
        """The mounted context."""
        return self.mount_points.get("context")

    @property
    def approval_system(self) -> Any:
        """The approval system. A new one replaces it for later requests, and forgets remembered answers."""
        return self._approval_system

    @approval_system.setter
    def approval_system(self, system: Any) -> None:
        self._must_be_unobserved("approval_system")
        self._approval_system = system
        self._unobserved = None

    @property
    def display_system(self) -> Any:
        """The display for messages of hooks."""
        return self._display_system

    @display_system.setter
    def display_system(self, display: Any) -> None:
        self._must_be_unobserved("display_system")
        self._display_system = display
        self._unobserved = None

    @property
    def audit(self) -> Any:
        """``None``: :func:`amplifier_core.observe` records a session."""
        return None

    def _must_be_unobserved(self, name: str) -> None:
        if self._observation is not None:
            raise RuntimeError(f"cannot replace `{name}` of an observed session; set it before `observe`")

    @property
    def _kernel(self) -> Coordinator:  # type: ignore[override]
        if self._observation is not None:
            return self._observation.kernel
        if self._unobserved is None:
            # Without the id of the session, which would replace the ids that modules put into events.
            self._unobserved = Coordinator(
                self.hooks,
                context=(MountedContext(self), True),
                approvals=_approvals(self._approval_system),
                display=_display(self._display_system),
                audit=None,
                config=self.limits(),
                session_id=None,
                rules={},
                operations="[]",
            )
        return self._unobserved

    def limits(self) -> dict[str, Any]:
        """The limits of the session. Those that its configuration leaves out do not apply."""
        session = self.config.get("session")
        given = {name: session[name] for name in SETTINGS if name in session} if isinstance(session, Mapping) else {}
        return {"injection_size_limit": None, "injection_budget_per_turn": None, **settings_of(given)}

    # ---- mount points ----------------------------------------------------------------------------------------------

    async def mount(self, mount_point: str, module: Any, name: str | None = None) -> None:
        """Mounts an object. Providers and tools need a name, which may be their ``name``."""
        if mount_point in _SINGLE:
            self.mount_points[mount_point] = module
        elif mount_point in _NAMED:
            name = getattr(module, "name", None) if name is None else name
            if not isinstance(name, str) or not name:
                raise ValueError(f"an object of `{mount_point}` needs a name; give it a `name`, or pass one to `mount`")
            self.mount_points[mount_point][name] = module
        elif mount_point == "hooks":
            raise ValueError("hooks are not mounted; register them: `coordinator.hooks.register(event, handler)`")
        else:
            raise self._unknown(mount_point)

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        """Removes a mounted object. An unknown name has no effect."""
        if mount_point in _SINGLE:
            self.mount_points[mount_point] = None
        elif mount_point in _NAMED:
            if name is None:
                raise ValueError(f"the name of the object to unmount from `{mount_point}` is missing")
            self.mount_points[mount_point].pop(name, None)
        elif mount_point == "hooks":
            raise ValueError("hooks are not unmounted; call the function that `register` returned")
        else:
            raise self._unknown(mount_point)

    def get(self, mount_point: str, name: str | None = None) -> Any:
        """Returns a mounted object, or ``None``: ``get("tools")`` is a dict of all tools, ``get("tools", "bash")`` one of them."""
        if mount_point not in self.mount_points:
            raise self._unknown(mount_point)
        mounted = self.mount_points[mount_point]
        return mounted.get(name) if mount_point in _NAMED and name is not None else mounted

    def _unknown(self, mount_point: str) -> ValueError:
        known = ", ".join(f"`{one}`" for one in self.mount_points)
        return ValueError(f"unknown mount point `{mount_point}`; there are {known}")

    # ---- capabilities and channels ---------------------------------------------------------------------------------

    def register_capability(self, name: str, value: Any) -> None:
        """Offers a value, often a function, to other modules, under a name such as ``"session.working_dir"``."""
        self._capabilities[name] = value

    def get_capability(self, name: str) -> Any:
        """Returns the value of a capability, or ``None``."""
        return self._capabilities.get(name)

    # ---- hooks -----------------------------------------------------------------------------------------------------

    async def emit(self, event: str, data: dict[str, Any]) -> Verdict:
        """Emits an event, routes the results of the hooks, and returns the complete verdict."""
        if self._observation is not None:
            return await self._observation.emit(event, data)
        return await super().emit(event, data)

    async def process_hook_result(
        self, result: HookResult, event: str, hook_name: str = "unknown", data: dict[str, Any] | None = None
    ) -> HookResult:
        """Routes a result of ``hooks.emit``: requests approval, adds injections to the context and shows messages. Returns a denial, or a
        result to continue with. Ephemeral injections stay in the result, for the orchestrator.

        Raises ``ValueError`` if the injection exceeds the session's limits.
        """
        if self._observation is not None and self._observation.has_routed(result):
            return result
        processed = await super().process_hook_result(result, event, hook_name, data)
        if processed.action == "inject_context" and not processed.ephemeral:
            return processed.model_copy(update={"action": "continue", "context_injection": None})
        return processed

    async def request_cancel(self, immediate: bool = False) -> None:
        """Stops the running turn: after the running tools, or immediately."""
        if immediate:
            self.cancellation.request_immediate()
        else:
            self.cancellation.request_graceful()

    def set_idle(self, idle: bool) -> None:
        """Shows an observed session as idle or busy in the console."""
        if self._observation is not None:
            self._observation.set_idle(idle)

    @property
    def injection_size_limit(self) -> int | None:
        """The longest injection in characters, as configured."""
        limit: int | None = self.limits()["injection_size_limit"]
        return limit

    @property
    def injection_budget_per_turn(self) -> int | None:
        """The number of tokens that hooks may inject in a turn, as configured."""
        budget: int | None = self.limits()["injection_budget_per_turn"]
        return budget

    def to_dict(self) -> dict[str, Any]:
        """Returns an overview of the session's modules."""
        return {
            "tools": list(self.mount_points["tools"]),
            "providers": list(self.mount_points["providers"]),
            "has_orchestrator": self.mount_points["orchestrator"] is not None,
            "has_context": self.mount_points["context"] is not None,
            "capabilities": list(self._capabilities),
            "has_approval_provider": self._approval_system is not None,
            "has_display_service": self._display_system is not None,
        }

    def __repr__(self) -> str:
        return f"<ModuleCoordinator of session {self.session_id}>"
