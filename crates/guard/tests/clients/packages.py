"""Installs the pinned versions of the agents from npm. `npm ci` checks the hash of each package; no script of a package runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from agents import Agent

PACKAGES = Path(__file__).resolve().parent / "packages"


class InstallError(Exception):
    """An agent that cannot be installed."""


def folder_of(agent: Agent, cache: Path) -> Path:
    """The folder of one installation. Another lock file is another folder, so that two versions never mix."""
    lock = (PACKAGES / agent.package / "package-lock.json").read_bytes()
    return cache / f"{agent.package}-{hashlib.sha256(lock).hexdigest()[:12]}"


def install(agent: Agent, cache: Path) -> float:
    """Installs an agent unless it is there. Returns the seconds that this took."""
    folder = folder_of(agent, cache)
    if (folder / agent.program).exists():
        return 0.0
    started = time.monotonic()
    partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(PACKAGES / agent.package, partial)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(command, check=False, cwd=partial, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"cannot install `{agent.package}`: {error}; check `npm` and the network") from error
    if done.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise InstallError(f"cannot install `{agent.package}`: npm exited with {done.returncode}: {done.stderr.strip()[-400:]}")
    if not (partial / agent.program).exists():
        shutil.rmtree(partial, ignore_errors=True)
        raise InstallError(f"cannot install `{agent.package}`: `{agent.program}` is missing; only Linux on x86-64 is supported")
    try:
        partial.rename(folder)
    except OSError:
        # Another run was faster.
        shutil.rmtree(partial, ignore_errors=True)
    return time.monotonic() - started
