"""The tamper-evident audit log: open a log, pass it to a session or a coordinator as ``audit``, and verify it.

Every record is chained to the one before it, and checkpoints are signed, so that later changes are detected.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from typing import Any, Literal

from amplifier_core._native import AuditLog, AuditReport
from amplifier_core._native import records as _records
from amplifier_core._native import verify as _verify

__all__ = ["AuditLog", "AuditReport", "open_log", "records", "verify"]

_OPEN: weakref.WeakSet[AuditLog] = weakref.WeakSet()


def open_log(
    folder: str | os.PathLike[str], key_file: str | os.PathLike[str] | None = None, *, durability: Literal["async", "group", "record"] = "group"
) -> AuditLog:
    """Opens a log in a folder, signed with the key in a file (``<folder>.key`` next to the folder, unless given). Creates both if missing.
    Relative paths are resolved against the current folder at this moment.

    ``durability`` defines when a record is acknowledged: ``"group"`` and ``"record"`` when it survives a loss of power, ``"async"``
    immediately. The log is closed by ``close``, at the end of a ``with`` block, or at the end of the program.
    """
    key = f"{os.fspath(folder).rstrip('/')}.key" if key_file is None else key_file
    log = AuditLog(folder, key, durability=durability)
    _OPEN.add(log)
    # Handlers run in reverse order: a folder with its own handler, such as a temporary one, still exists when the log is closed.
    atexit.unregister(_close_all)
    atexit.register(_close_all)
    return log


def verify(
    folder: str | os.PathLike[str], *, key: str | None = None, checkpoints: bytes | None = None
) -> AuditReport:
    """Verifies the log in a folder: every byte, link and signature. The report lists the problems.

    ``key`` is the public key that must have signed the log, as returned by ``AuditLog.status()``; ``checkpoints`` are checkpoints stored
    elsewhere.
    """
    return _verify(folder, key=key, checkpoints=checkpoints)


def records(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Returns the records of a log, in order. Hashes are checked, but not the chain: see :func:`verify`."""
    return _records(folder)


def _close_all() -> None:
    # A failure does not keep the other logs open.
    with contextlib.ExitStack() as logs:
        for log in list(_OPEN):
            logs.callback(log.close)
