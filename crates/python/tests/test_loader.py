"""The loader of modules: where a module comes from, and what it must mount."""

from __future__ import annotations

import asyncio
import pathlib
import sys
from typing import Any

import pytest

from amplifier_core import ModuleLoader, ModuleValidationError
from amplifier_core.module_sources import ModuleNotFoundError, ModuleSource, ModuleSourceResolver
from amplifier_core.testing import MockCoordinator

COMPLETE = """
class Tool:
    name = "{name}"
    description = "a tool"
    async def execute(self, input): ...

async def mount(coordinator, config):
    await coordinator.mount("tools", Tool())
    coordinator.session_state["config"] = config
    return lambda: coordinator.session_state.update(cleaned=True)
"""


class Source(ModuleSource):
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def resolve(self) -> pathlib.Path:
        return self.path


class Resolver:
    def __init__(self, path: pathlib.Path | None) -> None:
        self.path = path

    async def async_resolve(self, module_id: str, source_hint: Any = None, profile_hint: Any = None) -> Source:
        if self.path is None:
            raise ModuleNotFoundError(f"`{module_id}` is not here")
        return Source(self.path / str(source_hint or ""))

    def resolve(self, module_id: str, source_hint: Any = None) -> Source:
        raise AssertionError("`async_resolve` is preferred")


def package(folder: pathlib.Path, module_id: str, text: str) -> pathlib.Path:
    made = folder / f"amplifier_module_{module_id.replace('-', '_')}"
    made.mkdir(parents=True)
    (made / "__init__.py").write_text(text)
    return made


def mounted(loader: ModuleLoader, module_id: str, coordinator: MockCoordinator, **options: Any) -> Any:
    async def main() -> Any:
        mount = await loader.load(module_id, coordinator=coordinator, **options)
        return await loader.initialize(mount, coordinator)

    return asyncio.run(main())


def resolving(path: pathlib.Path | None) -> MockCoordinator:
    coordinator = MockCoordinator()
    coordinator.mount_points["module-source-resolver"] = Resolver(path)
    return coordinator


def test_resolvers_are_written_by_applications() -> None:
    assert isinstance(Resolver(None), ModuleSourceResolver)


@pytest.mark.parametrize("hint", ["", "amplifier_module_tool_one"])
def test_a_source_is_the_package_or_the_folder_with_it(tmp_path: pathlib.Path, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "tool-one", COMPLETE.format(name="one"))
    monkeypatch.delitem(sys.modules, "amplifier_module_tool_one", raising=False)
    coordinator, loader = resolving(tmp_path), ModuleLoader()
    cleanup = mounted(loader, "tool-one", coordinator, config={"a": 1}, source_hint=hint)
    assert (list(coordinator.get("tools")), coordinator.session_state["config"]) == (["one"], {"a": 1})
    cleanup()
    assert coordinator.session_state["cleaned"]
    assert str(tmp_path) in sys.path
    loader.cleanup()
    assert str(tmp_path) not in sys.path


def test_a_module_without_a_source_may_be_installed_or_in_a_folder(tmp_path: pathlib.Path) -> None:
    package(tmp_path, "tool-two", COMPLETE.format(name="two"))
    coordinator, loader = resolving(None), ModuleLoader(search_paths=[tmp_path])
    mounted(loader, "tool-two", coordinator)
    assert list(coordinator.get("tools")) == ["two"]
    loader.cleanup()
    with pytest.raises(ModuleNotFoundError, match="`tool-none` is not here"):
        mounted(loader, "tool-none", coordinator)
    with pytest.raises(ModuleNotFoundError, match="there is no module `tool-none`; install its package"):
        mounted(loader, "tool-none", MockCoordinator())


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("tool-bad1", "x =", "`amplifier_module_tool_bad1` cannot be imported: SyntaxError"),
        ("tool-bad2", "", "module `tool-bad2` has no `mount`"),
        ("tool-bad3", "async def mount(): ...", r"`mount` of module `tool-bad3` takes `\(\)`; it is called as"),
        ("tool-bad4", "async def mount(coordinator, config): ...", "module `tool-bad4` has mounted no tool"),
        (
            "provider-bad5",
            "async def mount(coordinator, config): await coordinator.mount('providers', object(), 'p')",
            "the provider `p` of module `provider-bad5` lacks `name`, `get_info`, `list_models`, `complete`, `parse_tool_calls`",
        ),
        (
            "tool-bad6",
            "async def mount(coordinator, config):\n    await coordinator.mount('tools', object(), 't')\n    1 / 0",
            "division by zero",
        ),
    ],
)
def test_a_bad_module_leaves_nothing_mounted(tmp_path: pathlib.Path, name: str, text: str, problem: str) -> None:
    package(tmp_path, name, text)
    coordinator, loader = resolving(tmp_path), ModuleLoader()
    with pytest.raises((ModuleValidationError, ZeroDivisionError), match=problem):
        mounted(loader, name, coordinator, source_hint=f"amplifier_module_{name.replace('-', '_')}")
    assert (coordinator.get("tools"), coordinator.get("providers")) == ({}, {})
    loader.cleanup()


def test_a_replaced_tool_is_restored_if_its_module_is_refused(tmp_path: pathlib.Path) -> None:
    package(tmp_path, "tool-bad7", "async def mount(coordinator, config): await coordinator.mount('tools', object(), 't')")
    coordinator, loader, known = resolving(tmp_path), ModuleLoader(), object()
    coordinator.mount_points["tools"]["t"] = known
    with pytest.raises(ModuleValidationError, match="lacks"):
        mounted(loader, "tool-bad7", coordinator)
    assert coordinator.get("tools") == {"t": known}
    loader.cleanup()


def test_a_source_with_other_packages_is_ambiguous(tmp_path: pathlib.Path) -> None:
    for name in ("tool-a", "tool-b"):
        package(tmp_path, name, COMPLETE.format(name=name))
    with pytest.raises(ModuleValidationError, match="found `amplifier_module_tool_a`, `amplifier_module_tool_b`"):
        mounted(ModuleLoader(), "tool-c", resolving(tmp_path))


def test_installed_modules_are_listed() -> None:
    pytest.importorskip("pydantic")
    found = {module.id: module for module in asyncio.run(ModuleLoader().discover())}
    policy = found["hooks-policy"]
    assert (policy.type, policy.mount_point, policy.description) == ("hook", "hooks", "amplifier_core.observation:mount")
