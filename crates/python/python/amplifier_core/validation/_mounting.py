"""Mounts a module, checks its registrations, and unmounts it."""

from __future__ import annotations

import asyncio
from typing import Any

from amplifier_core._handlers import SignatureError, suggestions
from amplifier_core.modules import Module, ModuleError, Mounted, Registration
from amplifier_core.testing import make_coordinator
from amplifier_core.validation._data import known
from amplifier_core.validation._report import Report
from amplifier_core.validation._trial import Limits, try_hook


async def examine(module: Module, config: dict[str, Any], limits: Limits, report: Report) -> None:
    """Checks everything about a module."""
    try:
        mounted = await asyncio.wait_for(module.mount(make_coordinator(), config), limits.timeout)
    except asyncio.TimeoutError:
        report.add("timeout", f"`mount` exceeded the time limit of {limits.timeout:g} s")
        return
    except ModuleError as error:
        cause = error.__cause__
        if isinstance(cause, SignatureError):
            report.add("handler-signature", str(cause), cause.hook, cause.event)
            return
        # Errors of the module have a cause; a wrong signature of `mount` has none.
        report.add("mount" if cause is not None else "mount-signature", str(error))
        return
    try:
        if mounted.returned is not None and not callable(mounted.returned):
            kind = type(mounted.returned).__name__
            report.add("mount-result", f"`mount` returned a `{kind}`; return a clean-up function or None")
        if not mounted.registrations:
            report.add("no-hooks", "`mount` registered no hooks with this configuration", severity="warning")
        for registration in mounted.registrations:
            _check_event(registration, report)
            await try_hook(registration, limits, report)
    finally:
        await _check_cleanup(mounted, limits, report)


def _check_event(registration: Registration, report: Report) -> None:
    """Reports unknown events that are probably mistakes. Other custom events are valid."""
    event = registration.event
    names = [] if known(event) else suggestions(event)
    if names:
        message = f"unknown event `{event}`; did you mean {' or '.join(f'`{name}`' for name in names)}?"
        report.add("event-name", message, registration.name, event, severity="warning")


async def _check_cleanup(mounted: Mounted, limits: Limits, report: Report) -> None:
    cleans_up = callable(mounted.returned)
    try:
        await asyncio.wait_for(mounted.cleanup(), limits.timeout)
        left = [registration for registration in mounted.registrations if registration.active]
        if cleans_up and left:
            names = ", ".join(f"`{registration.name}` at `{registration.event}`" for registration in left)
            report.add("left-behind", f"the cleanup leaves {names} registered; unregister them there", severity="warning")
    except asyncio.TimeoutError:
        report.add("timeout", f"the cleanup exceeded the time limit of {limits.timeout:g} s")
    except Exception as error:
        report.add("cleanup", f"the cleanup raised {type(error).__name__}: {error}")
    try:
        await asyncio.wait_for(mounted.unmount(), limits.timeout)
    except asyncio.TimeoutError:
        report.add("timeout", f"the cleanup exceeded the time limit of {limits.timeout:g} s")
    except ModuleError as error:
        report.add("cleanup", str(error))
