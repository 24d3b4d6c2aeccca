"""The sandbox launcher: the interpreter runs this file, isolated from the user's site packages, to start a program.

    python -I -S -B _confine.py OPTIONS -- PROGRAM ARGUMENTS
"""

from __future__ import annotations

import os
import sys


def starter() -> list[str]:
    """Returns the command of the launcher. Raises ``RuntimeError`` if this program has no interpreter that can be started."""
    if sys.platform != "linux":
        raise RuntimeError(f"sandboxes need Linux, and this is {sys.platform}")
    if getattr(sys, "frozen", False) or not sys.executable:
        raise RuntimeError("this program has no interpreter of its own that could be started")
    # Resolved, because links could be changed.
    return [os.path.realpath(sys.executable), "-I", "-S", "-B", os.path.realpath(__file__)]


def parts() -> list[str]:
    """Returns the files of the launcher. A program that can change one of them can escape the sandbox."""
    own = [starter()[0], os.path.dirname(os.path.realpath(__file__)), os.path.dirname(os.path.realpath(os.__file__))]
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as mapped:
        paths = {line.split(None, 5)[-1].rstrip("\n") for line in mapped if "/libpython" in line}
    return own + sorted(path for path in paths if os.path.isfile(path))


def main() -> int:
    # Last, because nothing else is imported from there.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from amplifier_core._native import become_confined

    return become_confined(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
