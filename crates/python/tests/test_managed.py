"""The managed bundle of a machine applies to sessions with a bundle of their own."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

POLICY = """session: { confirm: writes }
hooks:
  - rule: no-deploy
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.contains("deploy")
    deny: people deploy
"""

# The user is the administrator of a namespace with its own `/etc`.
ETC = "mount -t tmpfs -o mode=755 tmpfs /etc && mkdir /etc/amplifier && umask 022 && printf %s \"$POLICY\" >/etc/amplifier/bundle.yaml && {then} exec \"$@\""


def has_namespaces() -> bool:
    return shutil.which("unshare") is not None and subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode == 0


def run_managed(code: str, folder: pathlib.Path, then: str = "") -> subprocess.CompletedProcess[str]:
    """Runs Python where the policy is managed."""
    script = ETC.replace("{then}", then)
    words = ["unshare", "-Urm", "sh", "-c", script, "sh", sys.executable, "-c", textwrap.dedent(code)]
    environment = {"POLICY": POLICY, "AMPLIFIER_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=90)


SESSION = """
    import asyncio
    from amplifier_core.bundles import parse
    from amplifier_core.session import ScriptedProvider, Session

    OWN = "hooks:\\n  - rule: no-deploy\\n    on: tool:pre\\n    enabled: false\\n    deny: never\\n"

    async def main():
        session = Session(
            ScriptedProvider([]), workspace=".", bundle=parse(OWN), confirm="off", config={"audit_required": False}
        )
        async with session:
            print((await session.execute_tool("Bash", {"command": "touch deploy"})).error)
            print((await session.execute_tool("Write", {"file_path": "made", "content": "x"})).success)

    asyncio.run(main())
"""


@pytest.mark.skipif(not has_namespaces(), reason="no namespaces")
def test_a_session_cannot_switch_the_managed_bundle_off(tmp_path: pathlib.Path) -> None:
    ran = run_managed(SESSION, tmp_path)
    denied, written = ran.stdout.splitlines()
    assert "no-deploy" in denied and "people deploy" in denied, ran.stderr
    # `confirm` of the policy holds, and nobody can answer.
    assert written == "False"
    assert not (tmp_path / "deploy").exists() and not (tmp_path / "made").exists()


@pytest.mark.skipif(not has_namespaces(), reason="no namespaces")
def test_a_managed_bundle_that_others_can_change_stops_sessions(tmp_path: pathlib.Path) -> None:
    ran = run_managed(SESSION, tmp_path, "chmod o+w /etc/amplifier/bundle.yaml &&")
    assert ran.returncode != 0
    assert "can be changed by another user than the administrator" in ran.stderr
