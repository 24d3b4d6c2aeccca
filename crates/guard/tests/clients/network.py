"""A network of one machine: only loopback, so that no agent reaches anything else."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

INSIDE = "GUARD_CLIENTS_PRIVATE_NETWORK"
SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41 | 0x08


def enter() -> bool:
    """Runs this program again in a private network. Returns `true` inside of it, and `false` where that is not possible."""
    if os.environ.get(INSIDE):
        bring_up_loopback()
        return True
    unshare = shutil.which("unshare")
    # The namespace for processes ends everything with the run, also what went into another session.
    options = ["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if unshare is None or subprocess.run([unshare, *options, "true"], check=False, capture_output=True).returncode != 0:
        return False
    os.environ[INSIDE] = "1"
    os.execv(unshare, [unshare, *options, sys.executable, *sys.argv])


def bring_up_loopback() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP_RUNNING))
