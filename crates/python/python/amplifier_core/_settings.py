"""The settings of a session in its configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_NUMBERS = ("injection_size_limit", "injection_budget_per_turn")
_SWITCHES = ("forbid_default_allow", "audit_required")
_OVER_BUDGET = ("warn", "drop", "truncate")
#: The names of all settings.
SETTINGS = (*_NUMBERS, "over_budget", *_SWITCHES)


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a configuration: those under ``"session"``, or the configuration itself. The kernel checks them again, but
    cannot name invalid ones in its errors."""
    if "session" in config:
        for name in SETTINGS:
            if name in config:
                raise _wrong(f"`{name}` is next to `session` and has no effect; move it under `session`")
        # An empty YAML key.
        config = {} if config["session"] is None else config["session"]
        if not isinstance(config, Mapping):
            raise _wrong(f"`session` must be a dict of settings; found `{config!r}`")
    settings = dict(config)
    for name in _NUMBERS:
        value = settings.get(name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value <= sys.maxsize):
            raise _wrong(f"`{name}` must be a whole number from 0 on, or `None` for no limit; found `{value!r}`")
    if settings.get("over_budget", "warn") not in _OVER_BUDGET:
        raise _wrong(f"`over_budget` must be {', '.join(map(repr, _OVER_BUDGET))}; found `{settings['over_budget']!r}`")
    for name in _SWITCHES:
        if not isinstance(settings.get(name, False), bool):
            raise _wrong(f"`{name}` must be `True` or `False`; found `{settings[name]!r}`")
    return settings


def _wrong(text: str) -> ValueError:
    return ValueError(f"invalid configuration: {text}")
