"""Programs that bundles and sessions start, confined through the interpreter: what they cannot do, and what happens where that is not possible."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import re
import py_compile
import shutil
import socket
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from amplifier_core.audit import AuditLog, open_log, verify
from amplifier_core.bundles import mount, parse
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.session import ScriptedProvider, Session
from sessions import UNRECORDED, run


def is_possible() -> bool:
    """Whether this system has user namespaces."""
    return shutil.which("unshare") is not None and subprocess.run(["unshare", "-Urmn", "true"], capture_output=True).returncode == 0


needs_namespaces = pytest.mark.skipif(not is_possible(), reason="this system allows no user namespaces")


@pytest.fixture
def place(tmp_path: pathlib.Path) -> pathlib.Path:
    """A workspace, and a folder beside it."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# ---- hooks ----------------------------------------------------------------------------------------------------------

TRIES = """
import json, os, signal, socket, sys, tempfile

def tried(what):
    try:
        what().close()
        return True
    except OSError:
        return False

def found():
    return json.dumps({
        "network": tried(lambda: socket.create_connection(("127.0.0.1", PORT), 5)),
        "workspace": tried(lambda: open("PLACE/workspace/made", "w")),
        "elsewhere": tried(lambda: open("PLACE/elsewhere/made", "w")),
        "temporary": "TMPDIR" in os.environ and tried(tempfile.NamedTemporaryFile),
        "key": tried(lambda: open("PLACE/audit.key")),
    })

if sys.argv[1] == "command":
    print(found(), file=sys.stderr)
    sys.exit(2)
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "result": {"action": "deny", "reason": found()}}), flush=True)
"""


def tries(place: pathlib.Path, port: int, kind: str, confine: str) -> set[str]:
    """What the program of a hook can do."""
    (place / "tries.py").write_text(TRIES.replace("PORT", str(port)).replace("PLACE", str(place)))
    bundle = f"hooks: [{{{kind}: ['{sys.executable}', tries.py, {kind}], on: 'tool:pre', on_error: deny{confine}}}]"

    async def main() -> str | None:
        with open_log(place / "audit", place / "audit.key") as log:
            session = SessionCoordinator(HookRegistry(), audit=log)
            async with await mount(session, parse(bundle, place / "bundle.yaml"), workspace=place / "workspace"):
                return (await session.execute_with_hooks("tool:pre", {})).reason

    said = json.loads(run(main()) or "")
    return {what for what, could in said.items() if could}


@needs_namespaces
@pytest.mark.parametrize("kind", ["command", "worker"])
@pytest.mark.parametrize(
    ("confine", "can"),
    [
        ("", {"network", "workspace", "elsewhere", "key"}),
        (", confine: {}", set()),
        (", confine: { network: true }", {"network"}),
        (", confine: { write: temporary }", {"temporary"}),
        (", confine: { write: workspace }", {"workspace"}),
        (", confine: { write: all }", {"workspace", "elsewhere"}),
    ],
)
def test_a_hook_can_do_what_its_confinement_leaves(
    place: pathlib.Path, port: int, monkeypatch: pytest.MonkeyPatch, kind: str, confine: str, can: set[str]
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert tries(place, port, kind, confine) == can


TOUCHES = "for file in bundle.yaml touches.sh ../audit/more ../store/more CONFINING; do echo x >> $file && echo $file >&2; done; exit 2"


@needs_namespaces
@pytest.mark.parametrize("is_session", [True, False])
def test_a_hook_that_may_write_everywhere_still_cannot_change_what_governs_and_records_the_session(
    place: pathlib.Path, is_session: bool
) -> None:
    import amplifier_core

    workspace, confining = place / "workspace", pathlib.Path(amplifier_core.__file__ or "").parent / "_confine.py"
    (workspace / "touches.sh").write_text(TOUCHES.replace("CONFINING", f"{confining} made"))
    (workspace / "bundle.yaml").write_text("hooks: [{command: [sh, touches.sh], on: 'tool:pre', confine: {write: all}}]\n")
    before = {path: path.read_bytes() for path in [*workspace.iterdir(), confining]}

    async def main() -> str | None:
        bundle = workspace / "bundle.yaml"
        with open_log(place / "audit", place / "audit.key") as log:
            if is_session:
                async with Session(ScriptedProvider([]), workspace=workspace, confirm="off", bundle=bundle, audit=log, store=place / "store") as running:
                    return (await running.coordinator.execute_with_hooks("tool:pre", {})).reason
            session = SessionCoordinator(HookRegistry(), audit=log)
            async with await mount(session, bundle, workspace=workspace):
                return (await session.execute_with_hooks("tool:pre", {})).reason

    reason = run(main()) or ""
    assert [line for line in reason.splitlines() if ":" not in line] == ["made"]
    assert {path: path.read_bytes() for path in before} == before
    assert verify(place / "audit").is_sound


@needs_namespaces
def test_a_confined_program_is_started_as_any_other(tmp_path: pathlib.Path) -> None:
    # Python ignores a signal that a shell pipeline relies on.
    command = "echo $ONE; yes | head -1 >&2; kill -l $(bash -c 'kill -PIPE $$; echo 1' >/dev/null; echo $?) >&2; exit 2"
    bundle = json.dumps({"hooks": [{"command": command, "on": "tool:pre", "confine": {}, "env": {"ONE": "1"}}]})

    async def main() -> str | None:
        registry = HookRegistry()
        async with await mount(registry, parse(bundle, tmp_path / "bundle.yaml")):
            return (await registry.emit("tool:pre", {})).reason

    assert run(main()) == "y\nPIPE"


CONFINED = "hooks: [{command: 'true', on: 'tool:pre', confine: {}}]"


@pytest.mark.parametrize(
    ("attribute", "value", "why"),
    [
        ("frozen", True, "this program has no interpreter of its own that could be started"),
        ("executable", "", "this program has no interpreter of its own that could be started"),
        # Something that is no interpreter, and ends well whatever it is asked.
        ("executable", shutil.which("true"), "the launcher ended without a reason"),
    ],
)
def test_a_hook_that_cannot_be_confined_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, attribute: str, value: Any, why: str
) -> None:
    monkeypatch.setattr(sys, attribute, value, raising=False)
    registry = HookRegistry()
    with pytest.raises(ValueError, match=f"^bundle:1:9: it cannot be confined: {why}"):
        run(mount(registry, parse(CONFINED)))
    assert registry.list_handlers() == {}


WITHOUT = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'


@needs_namespaces
def test_where_the_system_allows_no_namespaces_a_confined_hook_is_not_loaded_and_commands_have_landlock_or_are_said_to_be_free(
    tmp_path: pathlib.Path,
) -> None:
    code = f"""
        import asyncio, logging
        from amplifier_core.bundles import mount, parse
        from amplifier_core.hooks import HookRegistry
        from amplifier_core.session import ScriptedProvider, Session
        try:
            asyncio.run(mount(HookRegistry(), parse({CONFINED!r})))
        except ValueError as error:
            print(error)
        try:
            Session(ScriptedProvider([]), workspace=".", confirm="off", store="../store", confine=True)
        except RuntimeError as error:
            print(error)
        session = Session(ScriptedProvider([]), workspace=".", confirm="off", store="../store")
        print(asyncio.run(session.execute_tool("Bash", {{"command": "grep NoNewPrivs /proc/self/status"}})).output)
        """
    (tmp_path / "workspace").mkdir()
    words = ["unshare", "-Ur", "sh", "-c", WITHOUT, sys.executable, "-c", textwrap.dedent(code)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path / "workspace")
    hook, session, command = [line for line in ended.stdout.splitlines() if "|" not in line]
    assert hook.startswith("bundle:1:9: it cannot be confined: this system allows no user namespaces: ")
    assert session.startswith("sandboxing is not available: this system allows no user namespaces: ")
    has_landlock = ended.stderr.startswith("commands and hooks are confined by Landlock, because namespaces are not available (this system allows no user namespaces: ")
    assert has_landlock or ended.stderr.startswith("commands are not confined here (this system allows no user namespaces: ")
    assert command.split() == ["NoNewPrivs:", "1" if has_landlock else "0"]


# ---- the tools of a session -----------------------------------------------------------------------------------------


@pytest.fixture
def governed(place: pathlib.Path) -> Iterator[tuple[pathlib.Path, AuditLog]]:
    """A workspace with a bundle and its program in it, beside a log, its key and a store."""
    hooks = place / "workspace" / "hooks"
    hooks.mkdir()
    (hooks / "check.sh").write_text("#!/bin/sh\n")
    (hooks / "check.sh").chmod(0o700)
    (hooks / "guard.py").write_text("def mount(coordinator, config): ...\n")
    (hooks / "bundle.yaml").write_text("events: ['my:event']\nhooks: [{command: ./check.sh, on: 'my:event'}, {module: ./guard.py}]\n")
    with open_log(place / "audit", place / "audit.key") as log:
        yield place, log


def session(governed: tuple[pathlib.Path, AuditLog], **options: Any) -> Session:
    place, log = governed
    workspace = place / "workspace"
    bundle = workspace / "hooks" / "bundle.yaml"
    return Session(ScriptedProvider([]), workspace=workspace, confirm="off", bundle=bundle, audit=log, store=place / "store", **options)


ATTACKS = [
    "echo x >> hooks/bundle.yaml",
    "echo x >> hooks/check.sh",
    "echo x >> hooks/guard.py",
    "rm hooks/bundle.yaml",
    "mv hooks other",
    "touch ../audit/more",
    "echo 0 > ../audit.key.log",
    "rm ../audit.key.log",
    "rm -r ../audit",
    "mv ../audit ../other",
    "touch ../store/more",
    "cat ../audit.key | grep .",
    "cp hooks/check.sh ../audit.key",
]


@needs_namespaces
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_command_cannot_change_what_governs_the_session(governed: tuple[pathlib.Path, AuditLog], attack: str) -> None:
    place, _ = governed
    before = {path: path.read_bytes() for path in (place / "workspace").rglob("*") if path.is_file()}

    async def main() -> None:
        async with session(governed) as running:
            tried = await running.execute_tool("Bash", {"command": attack})
            assert not tried.success, tried.output
            assert (await running.execute_tool("Bash", {"command": "echo fine > made; cat made"})).output == "fine"

    run(main())
    assert {path: path.read_bytes() for path in before} == before
    assert verify(place / "audit").is_sound


def test_nor_can_file_tools(governed: tuple[pathlib.Path, AuditLog]) -> None:
    async def main() -> None:
        # Whether commands are confined or not.
        async with session(governed, confine=False) as running:
            for file in ["hooks/bundle.yaml", "hooks/check.sh", "hooks/guard.py"]:
                written = await running.execute_tool("Write", {"file_path": file, "content": "x"})
                assert "tools cannot change" in (written.error or ""), written
            assert (await running.execute_tool("Write", {"file_path": "made", "content": "x"})).success

    run(main())


MODULE = "def mount(coordinator, config): ...\n"

MODULES = {
    "./pack": ["pack/__init__.py", "pack/more.py", "pack/__pycache__/__init__.pyc", "shared.py", "common/rules.py", "common/new.py", "deep.py"],
    "./linked": ["real/__init__.py", "real/more.py"],
    "./lone.py": ["lone.py"],
    "found_pack.inner": ["found_pack/__init__.py", "found_pack/inner.py", "found_pack/new.py"],
    "found_space.inner:mount": ["found_space/inner/__init__.py", "found_space/inner/new.py", "found_space/rules.py", "found_space/__init__.py"],
    "found_space.lone": ["found_space/lone.py", "found_space/rules.py"],
    "found_lone": ["found_lone.py", "__pycache__/found_lone.pyc"],
    "found_zipped": ["found.zip"],
    "found_zipped_lone": ["found.zip"],
}


@pytest.mark.parametrize("is_command", [False, pytest.param(True, marks=needs_namespaces)])
@pytest.mark.parametrize("name", MODULES)
def test_nor_the_code_of_a_module_wherever_it_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, is_command: bool
) -> None:
    for file in {
        "pack/__init__.py", "real/__init__.py", "lone.py", "found_pack/__init__.py", "found_pack/inner.py", "found_space/inner/__init__.py",
        "found_space/lone.py", "found_lone.py", "shared.py", "common/rules.py", "deep.py",
    }:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(MODULE)
    (tmp_path / "linked").mkdir()
    for link, target in {
        "linked/__init__.py": "real/__init__.py", "pack/shared.py": "shared.py", "pack/common": "common", "common/deep.py": "deep.py",
        "pack/itself": "pack", "pack/none.py": "none.py",
    }.items():
        (tmp_path / link).symlink_to(tmp_path / target)
    with zipfile.ZipFile(tmp_path / "found.zip", "w") as archive:
        archive.writestr("found_zipped/__init__.py", MODULE)
        archive.writestr("found_zipped_lone.py", MODULE)
    monkeypatch.syspath_prepend(tmp_path / "found.zip")
    monkeypatch.syspath_prepend(tmp_path)
    bundle = parse(f"hooks: [{{ module: '{name}' }}]", tmp_path / "bundle.yaml")

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path, confirm="off", bundle=bundle, confine=is_command, config=UNRECORDED) as running:
            for file in MODULES[name]:
                attack = f"mkdir -p {os.path.dirname(file) or '.'}; echo x > {file}"
                write = ("Bash", {"command": attack}) if is_command else ("Write", {"file_path": file, "content": "x"})
                tried = await running.execute_tool(*write)
                assert not tried.success, (file, tried)
            assert (await running.execute_tool("Write", {"file_path": "other/made", "content": "x"})).success

    try:
        run(main())
    finally:
        for module in [module for module in sys.modules if module.startswith("found_") or module in ("pack", "linked", "real")]:
            del sys.modules[module]


@pytest.mark.parametrize("is_command", [False, pytest.param(True, marks=needs_namespaces)])
@pytest.mark.parametrize("name", ["./kept_pack", "kept_pack", "kept_lone"])
def test_nor_bytecode_that_is_kept_elsewhere(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, is_command: bool
) -> None:
    (tmp_path / "kept_pack" / "inner").mkdir(parents=True)
    for file in ("kept_pack/__init__.py", "kept_lone.py"):
        (tmp_path / file).write_text(MODULE)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    bytecode = os.path.join("cache", str(tmp_path).lstrip("/"), "kept_lone.pyc" if name == "kept_lone" else "kept_pack/inner/more.pyc")
    bundle = parse(f"hooks: [{{ module: '{name}' }}]", tmp_path / "bundle.yaml")
    write = ("Bash", {"command": f"mkdir -p {os.path.dirname(bytecode)}; echo x > {bytecode}"}) if is_command else (
        "Write", {"file_path": bytecode, "content": "x"}
    )

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path, confirm="off", bundle=bundle, confine=is_command, config=UNRECORDED) as running:
            assert not (await running.execute_tool(*write)).success

    try:
        run(main())
    finally:
        for module in ("kept_pack", "kept_lone"):
            sys.modules.pop(module, None)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("found_lone", ["found_lone/__init__.py", "found_lone/__init__.so", "found_lone.so", "found_lone.abi3.so"]),
        ("found_space.inner", ["found_space.py", "found_space.so", "found_space/__init__.py"]),
    ],
)
def test_nor_can_file_tools_put_another_module_before_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, before: list[str]
) -> None:
    (tmp_path / "found_space").mkdir()
    for file in ("found_lone.py", "found_space/inner.py"):
        (tmp_path / file).write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    bundle = parse(f"hooks: [{{ module: {name} }}]")

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=tmp_path, confirm="off", bundle=bundle, confine=False, config=UNRECORDED) as running:
            for file in before:
                assert not (await running.execute_tool("Write", {"file_path": file, "content": "x"})).success, file
            for file in ("found_lone/notes.txt", "found_lone.txt", "found_spaces.py"):
                assert (await running.execute_tool("Write", {"file_path": file, "content": "x"})).success, file

    try:
        run(main())
    finally:
        for module in [module for module in sys.modules if module.startswith("found_")]:
            del sys.modules[module]


def test_bytecode_beside_a_lone_file_does_not_count(tmp_path: pathlib.Path) -> None:
    guard = tmp_path / "guard.py"
    guard.write_text("def mount(coordinator, config): raise RuntimeError('theirs')\n")
    os.utime(guard, (1, 1))
    py_compile.compile(str(guard))
    guard.write_text("def mount(coordinator, config): raise RuntimeError('ours..')\n")
    os.utime(guard, (1, 1))
    with pytest.raises(ValueError, match=r"RuntimeError: ours\.\."):
        run(mount(HookRegistry(), parse("hooks: [{ module: ./guard.py }]", tmp_path / "bundle.yaml")))


@needs_namespaces
def test_a_command_cannot_change_what_confines_it(governed: tuple[pathlib.Path, AuditLog]) -> None:
    import amplifier_core

    confines = pathlib.Path(amplifier_core.__file__ or "").parent / "_confine.py"
    before = confines.read_bytes()

    async def main() -> None:
        async with session(governed, confine=True) as running:
            for attack in [f"echo x >> {confines}", f"rm {confines}", f"mv {confines.parent} {confines.parent}.old"]:
                assert not (await running.execute_tool("Bash", {"command": attack})).success
            status = await running.execute_tool("Bash", {"command": "grep NoNewPrivs /proc/self/status"})
            assert status.output.split() == ["NoNewPrivs:", "1"]

    run(main())
    assert confines.read_bytes() == before


@needs_namespaces
def test_a_server_of_tools_is_confined_as_commands_are(place: pathlib.Path) -> None:
    server = pathlib.Path(__file__).parents[2] / "agent" / "tests" / "mcp" / "server.py"
    (place / "server.py").write_text(f"open({str(place / 'store' / 'made')!r}, 'w')\n")
    good = parse(json.dumps({"tools": {"mcp": {"local": {"command": sys.executable, "args": [str(server)]}}}}))
    bad = parse(json.dumps({"tools": {"mcp": {"bad": {"command": sys.executable, "args": [str(place / "server.py")]}}}}))
    missing = parse("tools: {mcp: {none: {command: no-such-program-here}}}")

    async def main() -> None:
        async with Session(ScriptedProvider([]), bundle=good, confirm="off", store=place / "store", config=UNRECORDED) as running:
            assert (await running.execute_tool("mcp__local__echo", {"text": "hello"})).output == "hello"
        with pytest.raises(RuntimeError, match="the MCP server `bad` failed the handshake"):
            await Session(ScriptedProvider([]), bundle=bad, store=place / "store", config=UNRECORDED).start()
        with pytest.raises(RuntimeError, match="the MCP server `none` cannot be started: `no-such-program-here`: not found in `PATH`"):
            await Session(ScriptedProvider([]), bundle=missing, store=place / "store", config=UNRECORDED).start()

    run(main())
    assert not (place / "store" / "made").exists()


def test_commands_are_confined_unless_there_is_nothing_to_protect_or_that_is_switched_off(
    governed: tuple[pathlib.Path, AuditLog], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    why = "this program has no interpreter of its own that could be started"
    Session(ScriptedProvider([]), workspace=governed[0] / "workspace", confirm="off")
    session(governed, confine=False)
    assert caplog.records == []
    with pytest.raises(RuntimeError, match=f"^sandboxing is not available: {why}$"):
        session(governed, confine=True)
    session(governed)
    (warning,) = caplog.records
    assert (warning.name, warning.levelno) == ("amplifier_core.session", logging.WARNING)
    assert warning.getMessage().startswith(f"commands are not confined here ({why}): ")


@pytest.mark.parametrize("attack", ["echo x >> hooks/bundle.yaml", "rm -r hooks", "cp made ../audit/more", "cat made > ../store/made"])
def test_without_a_sandbox_commands_that_would_change_what_is_protected_are_denied(
    governed: tuple[pathlib.Path, AuditLog], monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    place, _ = governed
    before = {path: path.read_bytes() for path in (place / "workspace").rglob("*") if path.is_file()}
    hooks = HookRegistry()

    async def main() -> None:
        async with session(governed, hooks=hooks) as running:
            tried = await running.execute_tool("Bash", {"command": attack})
            assert "Denied by hook protect: tools cannot change `" in tried.output
            assert (await running.execute_tool("Bash", {"command": "echo fine > made; cat made"})).output == "fine"

    run(main())
    assert {path: path.read_bytes() for path in before} == before
    # It belongs to the session, and not to whoever uses the registry afterwards.
    assert hooks.list_handlers() == {}


def test_a_session_that_leaves_commands_free_does_not_judge_them(governed: tuple[pathlib.Path, AuditLog]) -> None:
    async def main() -> None:
        async with session(governed, confine=False) as running:
            assert (await running.execute_tool("Bash", {"command": "echo >> hooks/check.sh"})).success

    run(main())


@pytest.mark.parametrize("is_command", [False, pytest.param(True, marks=needs_namespaces)])
def test_tools_cannot_answer_for_the_person_or_change_what_the_person_has_configured(
    governed: tuple[pathlib.Path, AuditLog], home: pathlib.Path, monkeypatch: pytest.MonkeyPatch, is_command: bool
) -> None:
    place, _ = governed
    (home / "server").mkdir()
    (home / "server" / "token").write_text("secret")
    monkeypatch.setenv("HOME", str(place / "user"))
    (place / "user").mkdir()
    (place / "user" / ".bashrc").write_text("")
    (place / "user" / "more").write_text("")
    (home / "config.toml").write_text(f"[sandbox]\nread_only = ['{place}/user/more']\n")
    (place / "workspace" / "token").symlink_to(home / "server" / "token")

    async def main() -> None:
        async with session(governed, confine=is_command) as running:
            for file in (home / "approvals.json", place / "user" / ".bashrc", place / "user" / "more"):
                write = ("Bash", {"command": f"echo '{{}}' > {file}"}) if is_command else ("Write", {"file_path": str(file), "content": "{}"})
                assert not (await running.execute_tool(*write)).success, file
            read = ("Bash", {"command": "cat token"}) if is_command else ("Read", {"file_path": "token"})
            assert not (await running.execute_tool(*read)).success

    run(main())


def test_a_session_without_a_home_makes_none(place: pathlib.Path, home: pathlib.Path) -> None:
    home.rmdir()
    Session(ScriptedProvider([]), workspace=place / "workspace", confirm="off", store=place / "store")
    Session(ScriptedProvider([]), workspace=place / "workspace", confirm="off", bundle=parse("hooks: []"), home=False, config=UNRECORDED)
    assert not home.exists()
    Session(ScriptedProvider([]), workspace=place / "workspace", confirm="off", bundle=parse("hooks: []"), home=place / "home", config=UNRECORDED)
    assert (place / "home" / "server").is_dir()
    Session(ScriptedProvider([]), workspace=place / "workspace", confirm="off", bundle=parse("hooks: []"), config=UNRECORDED)
    assert (home / "server").is_dir()


def test_a_workspace_within_what_is_protected_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "store" / "workspace").mkdir(parents=True)
    with pytest.raises(ValueError, match="which tools cannot change; choose another workspace"):
        Session(ScriptedProvider([]), workspace=tmp_path / "store" / "workspace", confirm="off", store=tmp_path / "store")


def test_a_new_version_cannot_name_a_program_that_tools_could_have_written(governed: tuple[pathlib.Path, AuditLog]) -> None:
    place, _ = governed
    hooks = place / "workspace" / "hooks"

    async def main() -> None:
        async with session(governed, confine=False) as running:
            (place / "workspace" / "late.sh").write_text("#!/bin/sh\n")
            (hooks / "bundle.yaml").write_text("events: ['my:event']\nhooks: [{command: ../late.sh, on: 'my:event'}]\n")
            came = await running.reload()
            assert (came.error or "").endswith("late.sh` is not protected from the tools of this session; start a new one")
            assert came.kept == ["./check.sh", "./guard.py"]
            # In the folder of the bundle, tools could not have written it.
            (hooks / "late.sh").write_text("#!/bin/sh\n")
            (hooks / "bundle.yaml").write_text("events: ['my:event']\nhooks: [{command: ./late.sh, on: 'my:event'}]\n")
            assert (await running.reload()).began == ["./late.sh"]

    run(main())


@needs_namespaces
def test_a_link_that_commands_could_turn_is_pointed_out(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "guard.sh").write_text("#!/bin/sh\nexit 2\n")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "guard.sh").symlink_to("../real/guard.sh")
    (workspace / "bundle.yaml").write_text("hooks: [{command: ./guard.sh, on: 'tool:pre'}]")
    why = f"`{workspace}/guard.sh` is a link that .*; name the target instead: `{tmp_path}/real/guard.sh`"
    with pytest.raises(RuntimeError, match=why):
        Session(ScriptedProvider([]), workspace=workspace, confirm="off", bundle=workspace / "bundle.yaml", confine=True, config=UNRECORDED)
    Session(ScriptedProvider([]), workspace=workspace, confirm="off", bundle=workspace / "bundle.yaml", config=UNRECORDED)
    assert re.search(why, caplog.text)


@needs_namespaces
def test_a_key_behind_a_link_cannot_be_read_when_the_link_is_gone(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    key, workspace = tmp_path / "real" / "audit.key", tmp_path / "workspace"
    workspace.mkdir()
    open_log(tmp_path / "audit", key).close()
    (workspace / "linked.key").symlink_to(key)
    why = f"`{workspace}/linked.key` is a link that .*; name the target instead: `{key}`"

    async def main() -> None:
        with open_log(tmp_path / "audit", workspace / "linked.key") as log:
            with pytest.raises(RuntimeError, match=why):
                Session(ScriptedProvider([]), workspace=workspace, confirm="off", audit=log, confine=True)
            async with Session(ScriptedProvider([]), workspace=workspace, confirm="off", audit=log) as running:
                assert re.search(why, caplog.text)
                assert (await running.execute_tool("Bash", {"command": "rm linked.key"})).success
                assert not (await running.execute_tool("Bash", {"command": f"cat {key}"})).success

    run(main())


def test_file_tools_cannot_make_a_log_that_cannot_be_opened(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        with open_log(tmp_path / "audit") as log:
            async with Session(ScriptedProvider([]), workspace=tmp_path, confirm="off", audit=log, confine=False) as running:
                written = await running.execute_tool("Write", {"file_path": "audit.key.log", "content": "0"})
                assert "tools cannot change" in (written.error or ""), written

    run(main())
    open_log(tmp_path / "audit").close()


@pytest.mark.parametrize("is_command", [False, pytest.param(True, marks=needs_namespaces)])
def test_the_program_of_a_server_of_tools_cannot_be_changed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, is_command: bool
) -> None:
    server = pathlib.Path(__file__).parents[2] / "agent" / "tests" / "mcp" / "server.py"
    shutil.copy(server, tmp_path / "server.py")
    (tmp_path / "own.sh").write_text(f"#!/bin/sh\nexec {os.path.realpath(sys.executable)} {server}\n")
    (tmp_path / "own.sh").chmod(0o755)
    servers = {"own": {"command": "./own.sh"}, "other": {"command": os.path.realpath(sys.executable), "args": ["server.py"]}}
    (tmp_path / "bundle.yaml").write_text(json.dumps({"tools": {"mcp": servers}}))
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=".", confirm="off", bundle="bundle.yaml", confine=is_command, config=UNRECORDED) as running:
            for file in ("own.sh", "server.py"):
                write = ("Bash", {"command": f"echo x > {file}"}) if is_command else ("Write", {"file_path": file, "content": "x"})
                assert not (await running.execute_tool(*write)).success, file

    run(main())
