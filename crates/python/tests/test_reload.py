"""Bundles whose changes are taken over while a session runs, or when they are asked for."""

from __future__ import annotations

import asyncio
import logging
import os
import pathlib
import sys

import pytest

from amplifier_core.audit import open_log, records
from amplifier_core.bundles import MountedBundle, Reload, load, mount, parse
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.session import ScriptedProvider, Session
from amplifier_core.testing import CollectingDisplay
from sessions import UNRECORDED, run


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "bundle.yaml"


def rule(name: str, deny: str) -> str:
    return f"  - {{ rule: {name}, on: 'tool:pre', deny: {deny} }}\n"


async def reason(registry: HookRegistry) -> str | None:
    return (await registry.emit("tool:pre", {})).reason


def parts(came: Reload) -> tuple[bool, list[str], list[str], list[str], str | None]:
    return came.changed, came.kept, came.began, came.ended, came.error


def test_reload_says_what_came_of_it(file: pathlib.Path) -> None:
    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks:\n" + rule("one", "first") + rule("two", "second"))
        async with await mount(registry, file) as mounted:
            came = await mounted.reload()
            assert parts(came) == (False, ["one", "two"], [], [], None)
            assert str(came) == "the hooks of the bundle are as they were"

            file.write_text("hooks:\n" + rule("two", "second") + rule("three", "third") + rule("one", "changed"))
            came = await mounted.reload()
            assert parts(came) == (True, ["two"], ["three", "one"], ["one"], None)
            assert str(came) == "a bundle has changed: its hooks are active from now on"
            assert registry.list_handlers() == {"tool:pre": ["two", "three", "one"]}
            assert await reason(registry) == "second"

            file.write_text("hooks:\n" + rule("three", "third") + rule("two", "second") + rule("one", "changed"))
            assert parts(await mounted.reload()) == (True, ["three", "two", "one"], [], [], None)
            assert await reason(registry) == "third"
        assert registry.list_handlers() == {}
        with pytest.raises(RuntimeError, match="the bundle is no longer mounted"):
            await mounted.reload()
        assert registry.list_handlers() == {}

    run(main())


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("hooks:\n  - { rule: one, on: 'tool:pre', dney: no }\n", "did you mean `deny`?"),
        ("hooks: [{module: hooks-cost, config: {nonsense: 1}}]", "`config` of `hooks-cost`"),
        ("hooks: [{rule: x, on: 'no event', deny: no}]", "bundle.yaml:1:19: "),
        ("hooks: [{module: no_such_module_here}]", "there is no module `no_such_module_here`"),
        ("", "the file is empty; write `hooks: []`"),
        ("# Soon.\n", "the file is empty; write `hooks: []`"),
        ("hooks:\n", "the `hooks` key is missing; write `hooks: []`"),
        ("session: {}\n", "the `hooks` key is missing; write `hooks: []`"),
        (None, "the file cannot be read"),
    ],
)
def test_a_version_with_a_mistake_changes_nothing(
    file: pathlib.Path, caplog: pytest.LogCaptureFixture, text: str | None, mistake: str
) -> None:
    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks:\n" + rule("one", "first"))
        async with await mount(registry, file) as mounted:
            bundle = mounted.bundle
            file.unlink() if text is None else file.write_text(text)
            came = await mounted.reload()
            assert (came.changed, came.kept) == (False, ["one"])
            assert mistake in (came.error or "")
            assert (mounted.bundle, await reason(registry)) == (bundle, "first")
            assert registry.list_handlers() == {"tool:pre": ["one"]}

            file.write_text("hooks:\n" + rule("one", "mended"))
            assert (await mounted.reload()).error is None
            assert await reason(registry) == "mended"

    run(main())
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.name == "amplifier_core.bundles"
    assert warning.getMessage().startswith("a bundle has changed and cannot be used, so the old version stays active:\n")


WORKER = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "result": {"action": "deny", "reason": str(os.getpid())}}), flush=True)
"""


def test_a_hook_that_did_not_change_goes_on_and_one_whose_program_did_begins_anew(file: pathlib.Path) -> None:
    program = file.parent / "worker.py"
    program.write_text(WORKER)
    worker = f"  - {{ worker: ['{sys.executable}', ./worker.py], name: worker, on: 'tool:pre', workers: 1 }}\n"

    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks:\n" + worker)
        async with await mount(registry, file) as mounted:
            first = await reason(registry)
            file.write_text("events: ['my:event']\nhooks:\n  - { rule: other, on: 'my:event', deny: no }\n" + worker)
            assert parts(await mounted.reload()) == (True, ["worker"], ["other"], [], None)
            assert await reason(registry) == first
            program.write_text(WORKER + "# changed\n")
            assert parts(await mounted.reload()) == (True, ["other"], ["worker"], ["worker"], None)
            assert await reason(registry) not in (first, None)

    run(main())


def test_what_a_hook_counted_is_not_lost(file: pathlib.Path) -> None:
    limit = "  - { module: hooks-rate-limit, config: { limits: [{ tools: [Bash], calls: 2, per: 3600 }] } }\n"

    async def main() -> None:
        file.write_text("hooks:\n" + limit)
        registry = HookRegistry()
        async with await mount(registry, file) as mounted:
            data = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "session_id": "one"}
            answers = [(await registry.emit("tool:pre", data)).action]
            file.write_text("hooks:\n" + limit + rule("never", "no").replace("deny:", "when: 'false', deny:"))
            assert (await mounted.reload()).kept == ["hooks-rate-limit"]
            answers += [(await registry.emit("tool:pre", data)).action for _ in range(2)]
            assert answers == ["continue", "continue", "deny"]

    run(main())


NOTIFY = """
hooks:
  - module: hooks-notify
    config: { desktop: false, events: ['my:news'], command: 'touch begun; while [ ! -e go ]; do sleep 0.01; done; sleep 0.1; touch sent' }
"""


@pytest.mark.parametrize("end", ["session:end", "unmount"])
@pytest.mark.parametrize("reloads", [True, False])
def test_what_a_hook_began_is_waited_for_when_the_hook_is_gone(file: pathlib.Path, end: str, reloads: bool) -> None:
    def there(name: str) -> bool:
        return (file.parent / name).exists()

    async def main() -> None:
        registry = HookRegistry()
        file.write_text(NOTIFY)
        async with await mount(registry, file) as mounted:
            await registry.emit("my:news", {})
            while not there("begun"):
                await asyncio.sleep(0)
            if reloads:
                file.write_text("hooks: []\n")
                assert (await mounted.reload()).ended == ["hooks-notify"]
                assert registry.list_handlers() == {"session:end": ["session-wait"]}
            assert not there("sent")
            (file.parent / "go").touch()
            if end == "unmount":
                await mounted.unmount()
            else:
                await registry.emit("session:end", {})
            assert there("sent")
        assert registry.list_handlers() == {}

    run(main())


# ---- modules of Python ----------------------------------------------------------------------------------------------

MODULE = """
heard = []

def mount(coordinator, config):
    heard.append(f"mounted {config['word']}")
    def guard(event, data):
        return {"action": "deny", "reason": config["word"]}
    coordinator.hooks.register("tool:pre", guard)
    async def cleanup():
        heard.append(f"cleaned up {config['word']}")
    return cleanup
"""


def module(word: str) -> str:
    return f"  - {{ module: ./guard.py, config: {{ word: {word} }} }}\n"


def heard(mounted: MountedBundle) -> list[str]:
    return list(sys.modules[mounted.modules[0]._scope.hooks.registrations[0].handler.__module__].heard)


def test_a_module_that_did_not_change_stays_mounted_in_its_place(file: pathlib.Path) -> None:
    (file.parent / "guard.py").write_text(MODULE)

    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks:\n" + rule("first", "no") + module("a") + rule("last", "no"))
        async with await mount(registry, file) as mounted:
            (guard,) = mounted.modules
            assert registry.list_handlers() == {"tool:pre": ["first", "guard", "last"]}

            file.write_text("hooks:\n" + rule("first", "changed") + rule("second", "no") + module("a") + rule("last", "no"))
            assert parts(await mounted.reload()) == (True, ["./guard.py", "last"], ["first", "second"], ["first"], None)
            assert registry.list_handlers() == {"tool:pre": ["first", "second", "guard", "last"]}
            assert (mounted.modules, heard(mounted)) == ([guard], ["mounted a"])

            file.write_text("hooks:\n" + module("b") + rule("last", "no"))
            came = await mounted.reload()
            assert (came.began, came.ended) == (["./guard.py"], ["first", "second", "./guard.py"])
            assert (await reason(registry), registry.list_handlers()) == ("b", {"tool:pre": ["guard", "last"]})
            assert heard(mounted) == ["mounted a", "mounted b", "cleaned up a"]
        assert registry.list_handlers() == {}

    run(main())


def test_a_file_of_python_that_changed_is_imported_anew(file: pathlib.Path) -> None:
    (file.parent / "guard.py").write_text(MODULE)

    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks:\n" + module("a"))
        async with await mount(registry, file) as mounted:
            # As long as before, within the same second.
            (file.parent / "guard.py").write_text(MODULE.replace('config["word"]}', 'str([1, 2, 3])}'))
            came = await mounted.reload()
            assert (came.began, came.ended, came.error) == (["./guard.py"], ["./guard.py"], None)
            assert await reason(registry) == "[1, 2, 3]"
            (file.parent / "guard.py").write_text("raise RuntimeError('not today')\n")
            assert "RuntimeError: not today" in ((await mounted.reload()).error or "")
            assert await reason(registry) == "[1, 2, 3]"
            assert heard(mounted) == ["mounted a"]

    run(main())


def test_a_new_version_that_is_cancelled_leaves_the_old_one(file: pathlib.Path) -> None:
    (file.parent / "slow.py").write_text(
        "import asyncio\nasync def mount(coordinator, config):\n"
        "    coordinator.hooks.register('tool:pre', lambda event, data: None, name='slow')\n    await asyncio.sleep(60)\n"
    )

    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks:\n" + rule("one", "first"))
        async with await mount(registry, file) as mounted:
            file.write_text("hooks:\n  - { module: ./slow.py }\n" + rule("two", "second"))
            reloading = asyncio.ensure_future(mounted.reload())
            while registry.list_handlers() == {"tool:pre": ["one"]}:
                await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="the bundle is already being reloaded"):
                await mounted.reload()
            reloading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reloading
            assert registry.list_handlers() == {"tool:pre": ["one"]}
            assert await reason(registry) == "first"

    run(main())


# ---- following ------------------------------------------------------------------------------------------------------


def test_a_session_follows_its_bundle_and_the_person_is_told(file: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "amplifier_core.bundles")
    display = CollectingDisplay()

    async def main() -> None:
        file.write_text("hooks: []\n")
        with open_log(file.parent / "audit", file.parent / "audit.key") as log:
            provider = ScriptedProvider([f"answer {number}" for number in range(9)])
            async with Session(provider, bundle=file, display_system=display, audit=log) as session:
                await session.prompt("one")
                assert display.messages == []
                file.write_text("hooks:\n" + rule("guard", "no"))
                await session.prompt("two")
                assert await reason(session.hooks) == "no"
                file.write_text("hooks: [")
                await session.prompt("three")
                await session.prompt("four")
                assert await reason(session.hooks) == "no"
                file.write_text("hooks: []\n")
                await session.prompt("five")
                assert await reason(session.hooks) is None
            assert session.hooks.list_handlers() == {}

    run(main())
    changed = "a bundle has changed: its hooks are active from now on"
    broken = "a bundle has changed and cannot be used, so the old version stays active:"
    expected = [("info", changed), ("warning", broken), ("info", changed)]
    told = [(level, message.splitlines()[0]) for message, level, _ in display.messages]
    assert told == expected
    logged = [record for record in caplog.records if record.name == "amplifier_core.bundles"]
    assert [(record.levelname.lower(), record.getMessage().splitlines()[0]) for record in logged] == expected
    changes = [record for record in records(file.parent / "audit") if record["kind"] == "policy_change"]
    assert [record["body"]["change"] for record in changes] == [{"bundles": [str(file)]}] * 2


def test_every_version_is_told_and_recorded_as_by_the_command(file: pathlib.Path) -> None:
    display = CollectingDisplay()

    async def main() -> None:
        file.write_text("hooks:\n" + rule("guard", "no"))
        with open_log(file.parent / "audit", file.parent / "audit.key") as log:
            session = SessionCoordinator(HookRegistry(), display_system=display, audit=log)
            async with await mount(session, file, follow=True):
                file.write_text("hooks:\n" + rule("guard", "no") + "session: { injection_size_limit: 3 }\n")
                await session.execute_with_hooks("execution:start", {"prompt": "x"})
                await session.execute_with_hooks("provider:request", {})

    run(main())
    assert [(level, message) for message, level, _ in display.messages] == [
        ("info", "a bundle has changed: its hooks are active from now on")
    ]
    changes = [record for record in records(file.parent / "audit") if record["kind"] == "policy_change"]
    assert [record["body"]["change"] for record in changes] == [{"bundles": [str(file)]}]


def test_a_module_may_begin_a_turn_while_it_is_mounted(file: pathlib.Path) -> None:
    (file.parent / "turn.py").write_text(
        "async def mount(coordinator, config):\n    await coordinator.hooks.emit('execution:start', {'prompt': 'x'})\n"
        "    coordinator.hooks.register('tool:pre', lambda event, data: None, name='turn')\n"
    )

    async def main() -> None:
        registry = HookRegistry()
        file.write_text("hooks: []\n")
        async with await mount(registry, file, follow=True):
            file.write_text("hooks:\n" + rule("first", "no") + "  - { module: ./turn.py }\n" + rule("last", "no"))
            await registry.emit("execution:start", {"prompt": "x"})
            assert registry.list_handlers("tool:pre") == {"tool:pre": ["first", "turn", "last"]}

    run(main())


def test_a_session_need_not_follow_its_bundle(file: pathlib.Path) -> None:
    async def main() -> None:
        file.write_text("hooks:\n" + rule("guard", "no"))
        async with Session(ScriptedProvider(["one"]), bundle=load(file), follow=False, config=UNRECORDED) as session:
            assert session.hooks.list_handlers() == {"tool:pre": ["guard"]}
            file.write_text("hooks: []\n")
            await session.prompt("one")
            assert await reason(session.hooks) == "no"
            assert (await session.reload()).ended == ["guard"]
            assert await reason(session.hooks) is None
        with pytest.raises(RuntimeError, match="no active bundle"):
            await session.reload()

    run(main())


def test_a_loop_of_ones_own_can_follow(file: pathlib.Path) -> None:
    async def main() -> None:
        display = CollectingDisplay()
        session = SessionCoordinator(HookRegistry(), display_system=display)
        file.write_text("hooks: []\n")
        async with await mount(session, file, follow=True):
            file.write_text("includes: [more.yaml]\n")
            await session.execute_with_hooks("execution:start", {"prompt": "x"})
            # The mistake is in a file that the version in force does not have.
            (file.parent / "more.yaml").write_text("hooks:\n" + rule("guard", "no"))
            await session.execute_with_hooks("provider:request", {})
            assert await reason(session.hooks) == "no"
            (file.parent / "more.yaml").write_text("hooks:\n" + rule("guard", "other"))
            await session.execute_with_hooks("provider:request", {})
            assert await reason(session.hooks) == "other"
        assert session.hooks.list_handlers() == {}
        assert [level for _, level, _ in display.messages] == ["warning", "info", "info"]

    run(main())


def test_a_text_has_nothing_to_follow_but_what_it_includes(file: pathlib.Path) -> None:
    async def main() -> None:
        registry = HookRegistry()
        async with await mount(registry, parse("hooks:\n" + rule("guard", "no")), follow=True) as mounted:
            assert registry.list_handlers() == {"tool:pre": ["guard"]}
            assert not (await mounted.reload()).changed
        file.write_text("hooks:\n" + rule("guard", "no"))
        text = parse(f"includes: [{file.name}]", os.fspath(file.parent / "text"))
        async with await mount(registry, text, follow=True):
            file.write_text("hooks:\n" + rule("guard", "other"))
            await registry.emit("execution:start", {})
            assert await reason(registry) == "other"

    run(main())


# ---- another current folder -----------------------------------------------------------------------------------------

MORE = """
hooks:
  - { command: ./guard.sh, on: "tool:pre", on_error: deny }
  - { module: ./own.py, config: { event: "prompt:submit" } }
"""

OWN = """
def mount(coordinator, config):
    coordinator.hooks.register(config["event"], lambda event, data: {"action": "deny", "reason": "WORD"})
"""


@pytest.mark.parametrize("is_text", [False, True])
def test_another_current_folder_does_not_bring_other_guards(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, is_text: bool
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for folder, word in ((tmp_path, "ours"), (theirs, "theirs")):
        (folder / "guard.sh").write_text(f"#!/bin/sh\necho {word} >&2\nexit 2\n")
        (folder / "guard.sh").chmod(0o755)
        (folder / "own.py").write_text(OWN.replace("WORD", word))
    (tmp_path / "more.yaml").write_text(MORE)
    (tmp_path / "bundle.yaml").write_text("includes: [more.yaml]\n")
    for name in ("bundle.yaml", "more.yaml"):
        (theirs / name).write_text("hooks: []\n")

    async def main() -> None:
        registry = HookRegistry()
        monkeypatch.chdir(tmp_path)
        bundle = parse("includes: [more.yaml]", "bundle.yaml") if is_text else load("bundle.yaml")
        async with await mount(registry, bundle, follow=True) as mounted:
            monkeypatch.chdir(theirs)
            assert await reason(registry) == "ours"
            assert str(await mounted.reload()) == "the hooks of the bundle are as they were"
            (tmp_path / "more.yaml").write_text(MORE.replace("prompt:submit", "prompt:complete"))
            await registry.emit("execution:start", {})
            assert (await registry.emit("prompt:complete", {})).reason == "ours"
            assert await reason(registry) == "ours"
            # Names are told as they were given.
            (tmp_path / "more.yaml").write_text("")
            assert (await mounted.reload()).error == "more.yaml: the file is empty; write `hooks: []` for a bundle without hooks"

    run(main())
