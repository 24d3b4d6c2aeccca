"""Bundles that go: no hook stays, whatever their modules do when they clean up, and whatever they do later."""

from __future__ import annotations

import asyncio
import pathlib
import sys
from typing import Any

import pytest

from amplifier_core.bundles import MountedBundle, load, mount
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.modules import Module, ModuleError
from sessions import run

MODULE = """
import asyncio

cleaned = []

def mount(coordinator, config):
    coordinator.hooks.register("tool:pre", lambda event, data: None, name=config["word"])
    async def cleanup():
        if config.get("waits") and not cleaned:
            cleaned.append("waiting")
            await asyncio.get_running_loop().create_future()
        if config.get("fails"):
            raise OSError(f"no disk for {config['word']}")
        cleaned.append(config["word"])
    coordinator.register_cleanup(cleanup)
"""


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "own.py").write_text(MODULE)
    return tmp_path / "bundle.yaml"


def entries(**configs: str) -> str:
    given = [f"{{ module: ./own.py, name: {word}, config: {{ word: {word}{more} }} }}" for word, more in configs.items()]
    return f"hooks: [{', '.join(given)}]\n"


def cleaned(mounted: MountedBundle) -> list[str]:
    found: list[str] = sys.modules[mounted.modules[0].registrations[0].handler.__module__].cleaned
    return found


def test_a_cleanup_that_fails_keeps_no_other_hook(file: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        registry = HookRegistry()
        file.write_text(entries(a="", b=", fails: true", c=", fails: true", d=""))
        mounted = await mount(registry, load(file), follow=True)
        done = cleaned(mounted)
        assert registry.list_handlers()["tool:pre"] == ["a", "b", "c", "d"]
        with pytest.raises(ModuleError, match="^module `own` failed to clean up: OSError: no disk for c$"):
            await mounted.unmount()
        assert (registry.list_handlers(), done) == ({}, ["d", "a"])
        await mounted.unmount()

    run(main())
    assert [record.getMessage() for record in caplog.records] == ["module `own` failed to clean up: OSError: no disk for b"]


def test_what_ends_the_block_is_not_hidden_by_a_cleanup_that_fails(file: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main(error: BaseException | None) -> None:
        registry = HookRegistry()
        try:
            async with await mount(registry, file):
                if error is not None:
                    raise error
        finally:
            assert registry.list_handlers() == {}

    file.write_text(entries(a="", b=", fails: true"))
    for error in (KeyError("of the block"), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            run(main(error))
    assert [record.getMessage() for record in caplog.records] == ["module `own` failed to clean up: OSError: no disk for b"] * 2
    with pytest.raises(ModuleError, match="no disk for b"):
        run(main(None))


def test_an_unmount_that_is_cancelled_keeps_no_hook_and_can_be_finished(file: pathlib.Path) -> None:
    async def main() -> None:
        registry = HookRegistry()
        file.write_text(entries(a="", b="", c=", waits: true"))
        mounted = await mount(registry, file)
        done = cleaned(mounted)
        unmounting = asyncio.ensure_future(mounted.unmount())
        while not done:
            await asyncio.sleep(0)
        assert registry.list_handlers() == {}
        unmounting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unmounting
        await mounted.unmount()
        assert (registry.list_handlers(), done) == ({}, ["waiting", "b", "a"])

    run(main())


def test_a_new_version_whose_hook_cannot_be_mounted_leaves_none_of_its_own(file: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        registry = HookRegistry()
        file.write_text(entries(a=""))
        async with await mount(registry, file) as mounted:
            file.write_text(entries(b=", fails: true", c="").replace("word: c", "other: c"))
            came: Any = await mounted.reload()
            assert "KeyError: 'word'" in came.error
            assert registry.list_handlers() == {"tool:pre": ["a"]}

    run(main())
    assert "no disk for b" in caplog.text


def test_a_module_that_is_gone_registers_nothing(file: pathlib.Path) -> None:
    views: list[Any] = []

    def keep(coordinator: Any, config: dict[str, Any]) -> None:
        views.append(coordinator)

    async def main() -> None:
        coordinator = SessionCoordinator(HookRegistry())
        for leave in ("unmount", "withdraw"):
            mounted = await Module("keep", keep, "here").mount(coordinator)
            (view,) = views
            view.hooks.register("tool:pre", lambda event, data: None, name="in time")
            done = getattr(mounted, leave)()
            if done is not None:
                await done
            for late in (
                lambda view=view: view.hooks.register("tool:pre", lambda event, data: None),
                lambda view=view: view.get("hooks").on("tool:pre")(lambda event, data: None),
                lambda view=view: view.register_contributor("status", "keep", lambda: 1),
                lambda view=view: view.register_cleanup(print),
            ):
                with pytest.raises(RuntimeError, match="^the module is no longer mounted and cannot register anything"):
                    late()
            await mounted.unmount()
            views.clear()
        assert coordinator.hooks.list_handlers() == {}

    run(main())


def test_a_module_mounts_no_bundle_and_is_told_what_to_do(file: pathlib.Path) -> None:
    async def within(coordinator: Any, config: dict[str, Any]) -> None:
        await mount(coordinator, file)

    async def main() -> None:
        coordinator = SessionCoordinator(HookRegistry())
        file.write_text(entries(a=""))
        with pytest.raises(ModuleError, match="A module cannot mount one: name it under `includes`"):
            await Module("within", within, "here").mount(coordinator)
        assert coordinator.hooks.list_handlers() == {}

    run(main())
