"""The kinds of modules, and the members that the object of each kind has."""

from __future__ import annotations

import inspect
from typing import Any, Literal

ModuleType = Literal["orchestrator", "provider", "tool", "context", "hook", "resolver"]

#: The mount point of each kind.
MOUNT_POINTS: dict[ModuleType, str] = {
    "orchestrator": "orchestrator",
    "provider": "providers",
    "tool": "tools",
    "hook": "hooks",
    "context": "context",
    "resolver": "module-source-resolver",
}

#: The members of an object of each kind. Those of hooks are checked when they are registered.
MEMBERS: dict[ModuleType, tuple[str, ...]] = {
    "orchestrator": ("execute",),
    "provider": ("name", "get_info", "list_models", "complete", "parse_tool_calls"),
    "tool": ("name", "description", "execute"),
    "context": ("add_message", "get_messages", "get_messages_for_request", "set_messages", "clear"),
    "hook": (),
    "resolver": (),
}

#: The members that are no methods, and those that are plain functions.
_VALUES = ("name", "description")
_PLAIN = ("get_info", "parse_tool_calls")

#: The beginnings of module ids.
_PREFIXES: dict[str, ModuleType] = {
    "loop": "orchestrator",
    "orchestrator": "orchestrator",
    "provider": "provider",
    "tool": "tool",
    "hook": "hook",
    "hooks": "hook",
    "context": "context",
}

_KINDS: tuple[ModuleType, ...] = tuple(MOUNT_POINTS)


def type_of(module_id: str, module: Any = None) -> ModuleType | None:
    """Returns the kind of a module: that in ``__amplifier_module_type__``, or that of its name; ``None`` if neither says."""
    said = getattr(module, "__amplifier_module_type__", None)
    for kind in _KINDS:
        if said == kind:
            return kind
    return _PREFIXES.get(module_id.partition("-")[0])


def missing_members(kind: ModuleType, mounted: Any) -> list[str]:
    """Returns the members that an object of this kind lacks."""
    return [name for name in MEMBERS[kind] if not _has(mounted, name)]


def _has(mounted: Any, name: str) -> bool:
    member = getattr(mounted, name, None)
    return member is not None if name in _VALUES else callable(member)


def plain_methods(kind: ModuleType, mounted: Any) -> list[str]:
    """Returns the methods that must be ``async`` and are not."""
    methods = [name for name in MEMBERS[kind] if name not in (*_VALUES, *_PLAIN)]
    return [name for name in methods if not inspect.iscoroutinefunction(inspect.unwrap(getattr(mounted, name)))]


def newly_mounted(coordinator: Any, kind: ModuleType, before: dict[str, Any]) -> dict[str, Any]:
    """Returns the objects that were mounted since ``before``, by name."""
    now = mounted_at(coordinator, kind)
    return {name: mounted for name, mounted in now.items() if before.get(name) is not mounted}


def mounted_at(coordinator: Any, kind: ModuleType) -> dict[str, Any]:
    """Returns the mounted objects of a kind, by name."""
    if kind == "hook":
        return {}
    mounted = coordinator.get(MOUNT_POINTS[kind])
    if isinstance(mounted, dict):
        return dict(mounted)
    return {} if mounted is None else {kind: mounted}
