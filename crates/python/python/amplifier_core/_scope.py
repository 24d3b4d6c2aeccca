"""Views of the registry and the coordinator that record the registrations of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Registration:
    """A hook registered by a module."""

    __slots__ = ("_given", "_register", "_unregister", "active", "default", "event", "handler", "options", "priority")

    def __init__(
        self,
        event: str,
        handler: Callable[..., Any],
        priority: int,
        name: str | None,
        options: dict[str, Any],
        register: Callable[[str | None], Callable[[], None]],
    ) -> None:
        self.event = event
        self.handler = handler
        self.priority = priority
        #: The default name without its number; ``None`` if the module set a name.
        self.default = str(getattr(handler, "__name__", type(handler).__name__)) if name is None else None
        self.options = options
        #: ``True`` while registered.
        self.active = True
        self._given = name
        self._register = register
        self._unregister = register(name)

    @property
    def name(self) -> str:
        """The name of the hook."""
        return str(getattr(self._unregister, "name", self._given or self.default))

    def __call__(self) -> None:
        """Unregisters the hook. Calling it again has no effect."""
        self.active = False
        self._unregister()

    def renew(self, name: str | None = None) -> None:
        """Registers the hook again, if still registered, as the last of its priority, optionally with another name."""
        if self.active:
            self._given = self._given if name is None else name
            # The new one first, so that no event is missed in between.
            before, self._unregister = self._unregister, self._register(self._given)
            before()

    def __repr__(self) -> str:
        return f"<Registration of {self.name} for {self.event}>"


class ScopedHooks:
    """The registry as seen by a module. Records every registered hook."""

    def __init__(self, hooks: Any, settings: dict[str, Any], defaults: dict[str, Any]) -> None:
        self._hooks = hooks
        # Defaults for settings that the module does not set.
        self._defaults = defaults
        # Settings that override those of the module.
        self._settings = settings
        #: ``True`` once the module is being unmounted: later registrations would never be removed.
        self.is_closed = False
        self.registrations: list[Registration] = []

    def register(
        self, event: str, handler: Callable[..., Any] | None = None, priority: int = 0, name: str | None = None, **options: Any
    ) -> Any:
        """Registers a hook, also as a decorator."""
        if handler is None:

            def decorate(decorated: Callable[..., Any]) -> Callable[..., Any]:
                self.register(event, decorated, priority, name, **options)
                return decorated

            return decorate
        self.must_be_open()
        settings = {"priority": priority, "name": name, **self._defaults, **options, **self._settings}
        priority, name = settings.pop("priority"), settings.pop("name")
        options = settings

        def register(name: str | None) -> Callable[[], None]:
            unregister: Callable[[], None] = self._hooks.register(event, handler, priority, name, **options)
            return unregister

        registration = Registration(event, handler, priority, name, options, register)
        self.registrations.append(registration)
        return registration

    on = register

    def must_be_open(self) -> None:
        """Raises ``RuntimeError`` if the module is not mounted any more."""
        if self.is_closed:
            raise RuntimeError("the module is no longer mounted and cannot register anything; end its tasks in its clean-up")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)


class Scope:
    """The coordinator as seen by a module. All calls except registrations go to the coordinator itself."""

    def __init__(
        self, coordinator: Any, settings: dict[str, Any] | None = None, defaults: dict[str, Any] | None = None
    ) -> None:
        self._coordinator = coordinator
        self.hooks = ScopedHooks(coordinator.hooks, settings or {}, defaults or {})
        self._cleanups: list[Callable[[], Any]] = []

    def get(self, point: str, name: str | None = None) -> Any:
        """Returns the object at a mount point: ``get("hooks")`` is ``hooks``; ``None`` for an unknown one."""
        if point == "hooks":
            return self.hooks
        of_coordinator = getattr(self._coordinator, "get", None)
        if callable(of_coordinator):
            return of_coordinator(point) if name is None else of_coordinator(point, name)
        return getattr(self._coordinator, point, None) if name is None else None

    def register_contributor(self, *arguments: Any, **named: Any) -> Callable[[], None]:
        """Registers a contributor until the module is unmounted."""
        self.hooks.must_be_open()
        unregister: Callable[[], None] = self._coordinator.register_contributor(*arguments, **named)
        self._cleanups.append(unregister)
        return unregister

    def register_cleanup(self, cleanup: Callable[[], Any]) -> None:
        """Registers a function, sync or async, for the unmounting of the module."""
        if not callable(cleanup):
            raise TypeError(f"a cleanup must be callable; found `{type(cleanup).__name__}`")
        self.hooks.must_be_open()
        self._cleanups.append(cleanup)

    def next_cleanup(self) -> Callable[[], Any] | None:
        """Returns the next clean-up of the module: first hooks, which must not be called any more, then the latest functions."""
        for registration in reversed(self.hooks.registrations):
            if registration.active:
                return registration
        return self._cleanups.pop() if self._cleanups else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)
