"""The tamper-evident audit log: open it, hand it to a session or a coordinator as ``audit``, and verify it.

Every record is chained to the one before it, and checkpoints are signed: what was changed afterwards is found out.
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
    """Opens a log in a folder, signed with the key in a file (beside the folder, as ``<folder>.key``, unless given). Both are made if
    they are not there. Relative paths are those of the folder that is current now, wherever the process goes.

    ``durability`` says when a record counts as kept: ``"group"`` and ``"record"`` when it survives a loss of power, ``"async"`` as soon
    as it was taken. The log is closed by ``close``, at the end of a ``with`` block, or at the end of the program.
    """
    key = f"{os.fspath(folder).rstrip('/')}.key" if key_file is None else key_file
    log = AuditLog(folder, key, durability=durability)
    _OPEN.add(log)
    # What was registered last runs first: a folder that was there before, such as a temporary one, is there when the log is closed.
    atexit.unregister(_close_all)
    atexit.register(_close_all)
    return log


def verify(
    folder: str | os.PathLike[str], *, key: str | None = None, checkpoints: bytes | None = None
) -> AuditReport:
    """Checks the log in a folder: every byte, every link, every signature. What is wrong in it stands in the report.

    ``key`` is the public key that it must be signed with, as ``AuditLog.status()`` says it; ``checkpoints`` is what was kept of it in
    a second place.
    """
    return _verify(folder, key=key, checkpoints=checkpoints)


def records(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The records of a log, in order. Their hashes are checked, the chain is not: that is what :func:`verify` does."""
    return _records(folder)


def _close_all() -> None:
    # One that fails does not keep the others open.
    with contextlib.ExitStack() as logs:
        for log in list(_OPEN):
            logs.callback(log.close)
