"""Confinement: a program is started through this file, which the interpreter runs without anything of the user's, as a launcher.

    python -I -S -B _confine.py OPTIONS -- PROGRAM ARGUMENTS
"""

from __future__ import annotations

import os
import sys


def starter() -> list[str]:
    """The words that start this interpreter so. Raises ``RuntimeError`` if there is none that can be started."""
    if sys.platform != "linux":
        raise RuntimeError(f"sandboxes need Linux, and this is {sys.platform}")
    if getattr(sys, "frozen", False) or not sys.executable:
        raise RuntimeError("this program has no interpreter of its own that could be started")
    # Without links: they could be made to lead elsewhere.
    return [os.path.realpath(sys.executable), "-I", "-S", "-B", os.path.realpath(__file__)]


def parts() -> list[str]:
    """What confines: whoever can change one of these is not confined by it."""
    own = [starter()[0], os.path.dirname(os.path.realpath(__file__)), os.path.dirname(os.path.realpath(os.__file__))]
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as mapped:
        paths = {line.split(None, 5)[-1].rstrip("\n") for line in mapped if "/libpython" in line}
    return own + sorted(path for path in paths if os.path.isfile(path))


def main() -> int:
    # Only now, and last: nothing else is imported from there.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from amplifier_core._native import become_confined

    return become_confined(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
