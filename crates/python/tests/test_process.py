"""What only a process of its own can show: imports, and how it ends."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import amplifier_core
import components
from amplifier_core.audit import records, verify

HERE = pathlib.Path(__file__).parent


def script(code: str) -> subprocess.CompletedProcess[str]:
    # That a process with threads is forked, newer versions of Python point out; that it works is what is tested.
    about_forks = ["-W", "ignore:This process:DeprecationWarning"]
    # Tests that run in the background of a shell ignore SIGINT, and Python would, too.
    command = ["env", "--default-signal=INT", sys.executable, *about_forks, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


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


def test_scripts_that_use_a_session_and_exit_at_once_end_well() -> None:
    code = """
        import asyncio, sys, tempfile
        from amplifier_core.audit import open_log
        from amplifier_core.bundles import mount, parse
        from amplifier_core.hooks import HookRegistry
        from amplifier_core.session import ScriptedProvider, Session

        async def main():
            folder = tempfile.TemporaryDirectory()
            log = open_log(folder.name + "/audit", durability="async")
            script = [{"tools": [{"name": "Bash", "input": {"command": "echo hi"}}]}, {"text": "x", "delay_ms": 2}]
            session = Session(ScriptedProvider(script), workspace=folder.name, confirm="off", audit=log)
            turn = asyncio.ensure_future(session.prompt("go"))
            registry = HookRegistry()
            await mount(registry, parse("hooks: [{command: 'sleep 5', on: 'tool:pre'}]"))
            emission = asyncio.ensure_future(registry.emit("tool:pre", {}))
            await asyncio.sleep(float(sys.argv[1]))
            if turn.done():
                turn.result()
            return folder

        kept = asyncio.run(main())
        """

    def one(number: int) -> tuple[int, str]:
        arguments = [sys.executable, "-c", textwrap.dedent(code), str(number / 1000)]
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stderr

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(one, range(40))) == {(0, "")}


def test_the_end_of_a_program_closes_its_audit_log(tmp_path: pathlib.Path) -> None:
    succeeds(
        f"""
        import asyncio
        from amplifier_core.audit import open_log
        from amplifier_core.coordinator import SessionCoordinator
        from amplifier_core.hooks import HookRegistry
        log = open_log({str(tmp_path / "audit")!r}, durability="async")
        session = SessionCoordinator(HookRegistry(), audit=log, session_id="mine")
        asyncio.run(session.execute_with_hooks("tool:pre", {{}}))
        """
    )
    assert "tool:pre" in [record["event"] for record in records(tmp_path / "audit")]
    assert verify(tmp_path / "audit").is_sound


def test_logs_are_closed_before_the_folder_of_one_goes() -> None:
    succeeds(
        """
        import tempfile
        from amplifier_core.audit import open_log

        folders = [tempfile.TemporaryDirectory() for _ in range(2)]
        logs = [open_log(folder.name + "/audit") for folder in folders]
        """
    )


def test_a_process_that_was_forked_has_sessions_of_its_own() -> None:
    succeeds(
        """
        import asyncio, os
        from amplifier_core.session import ScriptedProvider, Session

        async def main():
            script = [{"tools": [{"name": "Bash", "input": {"command": "echo hi"}}]}, {"text": "done", "delay_ms": 5}]
            async with Session(ScriptedProvider(script), workspace=".", confirm="off") as session:
                assert str(await session.prompt("go")) == "done"

        asyncio.run(main())
        child = os.fork()
        asyncio.run(main())
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """
    )


@components.needs_components
def test_components_are_stopped_in_time_in_a_process_that_was_forked(tmp_path: pathlib.Path) -> None:
    (tmp_path / "denies.wasm").write_bytes(components.DENIES)
    (tmp_path / "loops.wasm").write_bytes(components.LOOPS)
    succeeds(
        f"""
        import asyncio, os
        from amplifier_core.bundles import mount, parse
        from amplifier_core.hooks import HookRegistry
        import logging; logging.disable()
        bundle = "events: ['one:event', 'two:event']\\nhooks: [{{wasm: denies.wasm, on: 'one:event'}}, {{wasm: loops.wasm, on: 'two:event', timeout: 0.2, on_error: deny}}]"

        async def main():
            registry = HookRegistry()
            await mount(registry, parse(bundle, {str(tmp_path / "bundle.yaml")!r}))
            assert (await registry.emit("one:event", {{}})).reason == "the component says no"
            denied = await registry.emit("two:event", {{}})
            assert denied.action == "deny" and "no answer within" in denied.reason, denied

        asyncio.run(main())
        child = os.fork()
        asyncio.run(main())
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """
    )


@components.needs_components
def test_webassembly_is_not_there_before_a_bundle_with_a_component_is_mounted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "denies.wasm").write_bytes(components.DENIES)
    printed = succeeds(
        f"""
        import asyncio, os, sys
        from amplifier_core.bundles import mount, parse
        from amplifier_core.hooks import HookRegistry
        def threads():
            names = [open(f"/proc/self/task/{{task}}/comm").read().strip() for task in os.listdir("/proc/self/task")]
            return sum(name.startswith("amplifier-wasm") for name in names)
        def reserved():
            (size,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize")]
            return int(size) // 1024**2
        if sys.platform == "linux":
            asyncio.run(mount(HookRegistry(), parse("hooks: [{{module: hooks-redaction}}, {{rule: x, on: 'tool:pre', deny: no}}]")))
            print(threads(), reserved() < 4)
            asyncio.run(mount(HookRegistry(), parse("hooks: [{{wasm: denies.wasm, on: 'tool:pre'}}]", {str(tmp_path / "bundle.yaml")!r})))
            print(threads(), reserved() < 4)
        """
    )
    assert printed in ("0 True\n1 False\n", "")


def test_neither_threads_nor_the_agent_are_there_before_they_are_needed() -> None:
    succeeds(
        """
        import asyncio, os, sys
        import amplifier_core.session, amplifier_core.audit
        from amplifier_core.hooks import HookRegistry
        asyncio.run(HookRegistry().emit("tool:pre", {}))
        threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
        assert threads == 1, threads
        """
    )


def test_a_fork_leaves_the_audit_log_to_its_parent(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "audit"
    said = succeeds(
        f"""
        import asyncio, os, sys
        from amplifier_core.audit import open_log
        from amplifier_core.coordinator import SessionCoordinator
        from amplifier_core.hooks import HookRegistry
        log = open_log({str(folder)!r})
        session = SessionCoordinator(HookRegistry(), audit=log, config={{"audit_required": True}})
        child = os.fork()
        if child == 0:
            # That nothing can be recorded is logged.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                log.policy_change({{"by": "child"}})
            except OSError as error:
                print(error, flush=True)
            print(asyncio.run(session.execute_with_hooks("tool:pre", {{"tool_name": "ls"}})).action, flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        log.policy_change({{"by": "parent"}})
        """
    )
    assert said == "the audit log was opened by another process; after a fork, open the log again\ndeny\n"
    assert verify(folder).is_sound
    assert [record["kind"] for record in records(folder)].count("policy_change") == 1


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


def test_threads_that_ask_one_server_do_not_wait_for_each_other_for_ever() -> None:
    succeeds(
        """
        import asyncio, faulthandler, http.server, threading
        from amplifier_core.bundles import mount, parse
        from amplifier_core.hooks import HookRegistry

        class Server(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_): ...

        faulthandler.dump_traceback_later(50, exit=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry = HookRegistry()
        url = f"http://127.0.0.1:{server.server_port}/"
        asyncio.run(mount(registry, parse(f"hooks: [{{http: '{url}', on: tool:pre, timeout: 20, on_error: deny}}]")))

        async def work():
            for _ in range(5):
                results = await asyncio.gather(*[registry.emit("tool:pre", {}) for _ in range(20)])
                assert {result.action for result in results} == {"continue"}

        threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """
    )


def test_a_bundle_that_was_mounted_before_a_fork_says_what_to_do() -> None:
    ended = script(
        """
        import asyncio, os
        from amplifier_core.bundles import mount, parse
        from amplifier_core.hooks import HookRegistry

        registry = HookRegistry()
        asyncio.run(mount(registry, parse("hooks: [{command: 'true', on: tool:pre, on_error: deny}]")))
        if os.fork() == 0:
            print(asyncio.run(registry.emit("tool:pre", {})).reason, flush=True)
            os._exit(0)
        os.wait()
        """
    )
    assert ended.stdout == "the hook failed: the hook belongs to another process; after a fork, mount its bundle again\n"
