"""What only a process of its own can show: imports, and how it ends."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import amplifier_core

HERE = pathlib.Path(__file__).parent


def script(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)


def succeeds(code: str) -> str:
    ended = script(code)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_installed_package_is_tested() -> None:
    assert "site-packages" in (amplifier_core.__file__ or "")


def test_importing_and_emitting_needs_neither_asyncio_nor_logging_nor_typing() -> None:
    succeeds(
        """
        import sys
        before = set(sys.modules)
        from amplifier_core.hooks import HookRegistry
        from amplifier_core.models import HookResult
        from amplifier_core import events
        registry = HookRegistry()

        @registry.register("tool:pre")
        async def hook(event, data):
            return HookResult(action="deny", reason="no")

        try:
            registry.emit("tool:pre", {}).send(None)
        except StopIteration as stop:
            assert stop.value.reason == "no"
        new = {name.split(".")[0] for name in set(sys.modules) - before}
        assert new <= {"amplifier_core", "types"}, new
        """
    )


def test_two_hundred_scripts_that_emit_and_exit_at_once_end_well() -> None:
    code = """
        import asyncio, sys
        from amplifier_core.hooks import HookRegistry
        from amplifier_core.models import HookResult
        from amplifier_core.coordinator import SessionCoordinator
        registry = HookRegistry()

        @registry.register("tool:pre")
        async def hook(event, data):
            await asyncio.sleep(0)
            return HookResult(action="ask_user", approval_prompt="Go?")

        class Person:
            async def request_approval(self, prompt, options, timeout, default):
                return "Allow"

        async def main():
            asyncio.ensure_future(registry.emit("tool:pre", {}))
            session = SessionCoordinator(registry, None, Person(), None)
            result = await session.execute_with_hooks("tool:pre", {"n": 1})
            assert result.action == "continue"

        asyncio.run(main())
        """
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda _: script(code), range(200)))
    assert {(one.returncode, one.stderr) for one in ended} == {(0, "")}


def test_ctrl_c_ends_a_program_that_emits() -> None:
    ended = script(
        """
        import asyncio, os, signal
        from amplifier_core.hooks import HookRegistry
        registry = HookRegistry()

        @registry.register("tool:pre")
        async def hook(event, data):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)

        asyncio.run(registry.emit("tool:pre", {}))
        """
    )
    assert ended.returncode != 0
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
