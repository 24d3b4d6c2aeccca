"""Mounts a module, checks its registrations, and unmounts it."""

from __future__ import annotations

import asyncio
import inspect
from difflib import get_close_matches
from typing import Any

from amplifier_core.events import ALL_EVENTS
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
        # Errors of the module have a cause; a wrong signature has none.
        report.add("mount" if error.__cause__ is not None else "mount-signature", str(error))
        return
    try:
        if mounted.returned is not None and not callable(mounted.returned):
            kind = type(mounted.returned).__name__
            report.add("mount-result", f"`mount` returned a `{kind}`; return a clean-up function or None")
        if not mounted.registrations:
            report.add("no-hooks", "`mount` registered no hooks with this configuration", severity="warning")
        for registration in mounted.registrations:
            _check_event(registration, report)
            if _check_signature(registration, report):
                await try_hook(registration, limits, report)
    finally:
        await _check_cleanup(mounted, limits, report)


def _check_event(registration: Registration, report: Report) -> None:
    """Reports unknown events with a name similar to a known one. Other custom events are valid."""
    event = registration.event
    if known(event):
        return
    lower = event.lower()
    if known(lower):
        close = [lower]
    else:
        close = [] if "*" in event else get_close_matches(lower, ALL_EVENTS, 1, 0.8)
    if close:
        message = f"unknown event `{event}`; did you mean `{close[0]}`?"
        report.add("event-name", message, registration.name, event, severity="warning")


def _check_signature(registration: Registration, report: Report) -> bool:
    try:
        signature = inspect.signature(registration.handler)
    except (TypeError, ValueError):  # Some builtins have none.
        return True
    try:
        signature.bind("", {})
    except TypeError:
        message = f"the hook takes `{signature}`; expected `hook(event, data)`"
        report.add("handler-signature", message, registration.name, registration.event)
        return False
    return True


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
