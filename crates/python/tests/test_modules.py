"""Modules are found, mounted and unmounted."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import pytest

import installed
from amplifier_core import modules
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.modules import Module, ModuleError
from amplifier_core.testing import make_coordinator

SECRET = {"tool_input": {"file_path": "a/.env"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return installed.install_example(tmp_path_factory.mktemp("site"))


@pytest.fixture
def package(site: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("amplifier_module_path_guard", None)


def written(folder: pathlib.Path, code: str, name: str = "own.py") -> pathlib.Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(code))
    return path


def refused(name: Any) -> str:
    with pytest.raises(ModuleError) as caught:
        modules.load(name)
    return str(caught.value)


async def denied(coordinator: SessionCoordinator, data: dict[str, Any] = SECRET) -> str | None:
    return (await coordinator.execute_with_hooks("tool:pre", data)).reason


def of(function: Any) -> Module:
    return Module("own", function, "the test")


# ---- finding --------------------------------------------------------------------------------------------------------


def test_an_installed_package_offers_its_module_by_name(package: None) -> None:
    assert modules.available()["hooks-path-guard"].value == "amplifier_module_path_guard:mount"
    found = modules.load("hooks-path-guard")
    assert found.name == "hooks-path-guard"
    assert found.origin == "amplifier_module_path_guard:mount of package amplifier-module-path-guard"


@pytest.mark.parametrize("name", ["amplifier_module_path_guard", "amplifier_module_path_guard:mount", installed.EXAMPLE])
def test_a_module_is_found_by_import_path_and_by_file(package: None, name: Any) -> None:
    async def run() -> None:
        coordinator = make_coordinator()
        async with await modules.mount(coordinator, name):
            assert await denied(coordinator) == "a/.env is protected"
        assert await denied(coordinator) is None

    asyncio.run(run())


def test_a_folder_is_a_package_that_may_import_itself(tmp_path: pathlib.Path) -> None:
    written(tmp_path, "from own_package.inner import mount", "own_package/__init__.py")
    written(tmp_path, "from . import other\ndef mount(coordinator, config): ...", "own_package/inner.py")
    written(tmp_path, "", "own_package/other.py")
    found = modules.load(str(tmp_path / "own_package"))
    assert found.name == "own_package"
    assert modules.load(tmp_path / "own_package").function is found.function
    elsewhere = written(tmp_path, "", "elsewhere/own_package/__init__.py")
    assert refused(elsewhere.parent).endswith(
        f"another `own_package` is imported already, from `{tmp_path}/own_package/__init__.py`; rename the folder"
    )
    for name in ("own_package", "own_package.inner", "own_package.other"):
        del sys.modules[name]


# One is there, the other is not everywhere, but programs ask for it.
@pytest.mark.parametrize("name", ["secrets", "winreg"])
def test_a_folder_does_not_replace_the_standard_library(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, name, raising=False)
    folder = written(tmp_path, "def mount(coordinator, config): ...", f"{name}/__init__.py").parent
    assert refused(folder) == (
        f"module `{folder}` cannot be loaded: it would replace `{name}` of the standard library; rename the folder"
    )
    assert name not in sys.modules


def test_a_folder_does_not_replace_what_is_installed(
    package: None, site: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "amplifier_module_path_guard"
    folder = written(tmp_path, "def mount(coordinator, config): ...", f"{name}/__init__.py").parent
    assert refused(folder) == (
        f"module `{folder}` cannot be loaded: it would replace another `{name}`, from `{site / name}.py`; "
        "rename the folder, or uninstall the other"
    )
    # Itself is no other, and neither is a folder that is no package, such as the one around it.
    within = written(tmp_path, "def mount(coordinator, config): ...", "own_project/own_project/__init__.py").parent
    monkeypatch.syspath_prepend(str(tmp_path))
    for path in (folder, within):
        assert modules.load(path).name == path.name
        del sys.modules[path.name]


def test_an_imported_module_is_one_already() -> None:
    own = types.ModuleType("own")
    own.mount = lambda coordinator, config: None  # type: ignore[attr-defined]
    assert modules.load(own).function is own.mount


def test_what_cannot_be_found_says_what_to_do(package: None, tmp_path: pathlib.Path) -> None:
    assert refused("hooks-path-gard").startswith("there is no module `hooks-path-gard`: did you mean `hooks-path-guard`?")
    assert "install the package that offers it as an entry point of `amplifier.modules`" in refused("no_such_thing")
    assert refused("./gone.py") == "module `gone.py` cannot be loaded: there is no such file"
    assert "the folder has no `__init__.py`" in refused(tmp_path)
    assert refused("json:nothing") == "module `json` has no `nothing`; check the spelling"
    assert refused("json") == "module `json` has no `mount`; define `async def mount(coordinator, config)` in it"
    assert refused("json:__doc__") == "`mount` of module `json:__doc__` must be a function; found `str`"
    assert "not a Python file" in refused(written(tmp_path, "", "own.txt"))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
    ],
)
def test_what_cannot_be_imported_says_why(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, code: str, error: str
) -> None:
    path = written(tmp_path, code, "broken_module.py")
    assert refused(path) == f"module `{path}` cannot be imported: {error}"
    monkeypatch.syspath_prepend(str(tmp_path))
    assert refused("broken_module") == f"module `broken_module` cannot be imported: {error}"
    assert not [name for name in sys.modules if "broken_module" in name]


def test_two_packages_with_one_name_must_be_told_apart(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        monkeypatch.syspath_prepend(str(installed.install(tmp_path, package, {}, {"hooks-same": f"{package}:mount"})))
    assert "ambiguous module `hooks-same`" in refused("hooks-same")


# ---- mounting -------------------------------------------------------------------------------------------------------


def guard(event: str, data: dict[str, Any]) -> HookResult:
    return HookResult(action="deny", reason="no")


def nothing_returned(coordinator: Any, config: dict[str, Any]) -> None:
    coordinator.hooks.register("tool:pre", guard)


async def decorated(coordinator: Any, config: dict[str, Any]) -> None:
    @coordinator.get("hooks").on(coordinator.hooks.TOOL_PRE, priority=3)  # type: ignore[untyped-decorator]
    def inner(event: str, data: dict[str, Any]) -> HookResult:
        return HookResult(action="deny", reason="no")


def returns_unregister(coordinator: Any, config: dict[str, Any]) -> Any:
    return coordinator.hooks.register("tool:pre", guard)


def returns_async(coordinator: Any, config: dict[str, Any]) -> Any:
    unregister = coordinator.hooks.register("tool:pre", guard)

    async def cleanup() -> None:
        await asyncio.sleep(0)
        unregister()

    return cleanup


def returns_rubbish(coordinator: Any, config: dict[str, Any]) -> Any:
    coordinator.hooks.register("tool:pre", guard)
    return 7


@pytest.mark.parametrize("function", [nothing_returned, decorated, returns_unregister, returns_async, returns_rubbish])
def test_unmounting_leaves_nothing_whatever_mount_returned(function: Any) -> None:
    async def run() -> None:
        coordinator = make_coordinator()
        mounted = await of(function).mount(coordinator)
        assert await denied(coordinator) == "no"
        await mounted.unmount()
        await mounted.unmount()
        assert coordinator.hooks.list_handlers() == {}

    asyncio.run(run())


def test_a_mount_that_returns_rubbish_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(of(returns_rubbish).mount(make_coordinator()))
    assert caplog.record_tuples == [
        (
            "amplifier_core.modules",
            logging.WARNING,
            "`mount` of module `own` returned a `int`; return a clean-up function or None",
        )
    ]


def test_a_module_sees_the_coordinator_and_a_configuration_of_its_own() -> None:
    seen: list[Any] = []

    def mount(coordinator: Any, config: dict[str, Any]) -> None:
        coordinator.register_contributor("channel", lambda: "mine")
        seen.extend([coordinator.context, coordinator.get("context"), coordinator.get("tools"), dict(config)])
        config["n"] = 2

    async def run() -> None:
        coordinator = make_coordinator()
        config = {"n": 1}
        mounted = await of(mount).mount(coordinator, config)
        assert seen == [coordinator.context, coordinator.context, None, {"n": 1}]
        assert config == {"n": 1}
        assert await coordinator.collect_contributions("channel") == ["mine"]
        await mounted.unmount()
        assert await coordinator.collect_contributions("channel") == []

    asyncio.run(run())


def test_a_module_can_be_mounted_on_a_coordinator_itself(caplog: pytest.LogCaptureFixture) -> None:
    cleaned: list[str] = []

    async def mount(coordinator: SessionCoordinator, config: dict[str, Any]) -> None:
        async def later() -> None:
            await asyncio.sleep(0)
            cleaned.append("later")

        coordinator.get("hooks").register("tool:pre", lambda event, data: HookResult(action="deny", reason="no"))
        coordinator.register_cleanup(lambda: cleaned.append("first"))
        coordinator.register_cleanup(lambda: 1 / 0)
        coordinator.register_cleanup(later)
        assert coordinator.get("hooks") is coordinator.hooks
        assert (coordinator.get("tools"), coordinator.get("hooks", "name")) == (None, None)
        # Methods and internals are no mount points.
        assert [coordinator.get(name) for name in ("reset_turn", "injection_budget", "_kernel", "__class__")] == [None] * 4
        with pytest.raises(TypeError, match="a cleanup must be callable; found `int`"):
            coordinator.register_cleanup(3)  # type: ignore[arg-type]

    async def run() -> None:
        coordinator = make_coordinator()
        await mount(coordinator, {})
        assert await denied(coordinator) == "no"
        assert cleaned == []
        await coordinator.cleanup()
        await coordinator.cleanup()

    asyncio.run(run())
    assert cleaned == ["later", "first"]
    assert caplog.messages == ["A cleanup failed: ZeroDivisionError: division by zero"]


@pytest.mark.parametrize("error", [RuntimeError("no disk"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_a_mount_that_fails_leaves_nothing(error: BaseException) -> None:
    cleaned: list[str] = []

    async def mount(coordinator: Any, config: dict[str, Any]) -> None:
        coordinator.hooks.register("tool:pre", guard)
        coordinator.register_cleanup(lambda: cleaned.append("closed"))
        raise error

    registry = HookRegistry()

    async def run() -> None:
        await of(mount).mount(make_coordinator(registry))

    expected = ModuleError if isinstance(error, Exception) else type(error)
    with pytest.raises(expected) as caught:
        asyncio.run(run())
    assert (registry.list_handlers(), cleaned) == ({}, ["closed"])
    if expected is ModuleError:
        assert str(caught.value) == "module `own` cannot be mounted: RuntimeError: no disk"


def test_a_mount_with_another_signature_is_refused() -> None:
    async def mount(coordinator: Any) -> None: ...

    with pytest.raises(ModuleError, match=r"is called as `mount\(coordinator, config\)`"):
        asyncio.run(of(mount).mount(make_coordinator()))
    with pytest.raises(ModuleError, match="needs a coordinator with `hooks`; found `int`"):
        asyncio.run(of(returns_unregister).mount(3))


def test_a_cleanup_that_fails_is_told_and_the_hooks_go_all_the_same() -> None:
    def mount(coordinator: Any, config: dict[str, Any]) -> Any:
        coordinator.hooks.register("tool:pre", guard)

        def cleanup() -> None:
            raise OSError("no disk")

        return cleanup

    async def run() -> None:
        coordinator = make_coordinator()
        mounted = await of(mount).mount(coordinator)
        with pytest.raises(ModuleError, match="module `own` failed to clean up: OSError: no disk"):
            await mounted.unmount()
        await mounted.unmount()
        assert coordinator.hooks.list_handlers() == {}

    asyncio.run(run())


def test_a_cancelled_unmount_takes_the_hooks_away_and_can_be_finished() -> None:
    closed: list[str] = []

    def mount(coordinator: Any, config: dict[str, Any]) -> Any:
        coordinator.register_cleanup(lambda: closed.append("file"))
        coordinator.register_cleanup(lambda: asyncio.get_running_loop().create_future() if not closed else None)
        coordinator.hooks.register("tool:pre", guard)

    async def run() -> None:
        coordinator = make_coordinator()
        mounted = await of(mount).mount(coordinator)
        unmounting = asyncio.ensure_future(mounted.unmount())
        await asyncio.sleep(0)
        unmounting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unmounting
        assert (coordinator.hooks.list_handlers(), closed) == ({}, [])
        await mounted.unmount()
        assert closed == ["file"]

    asyncio.run(run())
