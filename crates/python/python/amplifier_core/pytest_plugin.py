"""Fixtures for tests of hooks. pytest finds the plugin of the installed package automatically.

============================  ===================================================================================
``hook_registry``             a registry, strict unless switched off
``event_recorder``            records every event of ``hook_registry``
``scripted_approval``         the approval system: ``scripted_approval.decide("Allow")``; denies by default
``mock_context``              the conversation
``collecting_display``        the display
``coordinator``               a session coordinator of all these
``module_path``               the package of the module under test, beside the folder of the tests
============================  ===================================================================================

A strict registry raises ``ChangedInPlaceError`` if a hook changes nested values in place. ``--no-hooks-strict``, or
``hooks_strict = false`` in the configuration, disables that; ``--hooks-strict`` enables it again.

Async tests that use one of these fixtures, or are marked with ``pytest.mark.asyncio``, run on their own event loop,
unless another plugin runs them.
"""

from __future__ import annotations

import inspect
import pathlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from amplifier_core.coordinator import SessionCoordinator
    from amplifier_core.hooks import HookRegistry
    from amplifier_core.testing import CollectingDisplay, EventRecorder, MockApprovalSystem, MockContext

# Imported in the fixtures, because pytest loads the plugin in every run.

_FIXTURES = frozenset(
    {
        "collecting_display",
        "coordinator",
        "event_recorder",
        "hook_registry",
        "mock_context",
        "module_path",
        "scripted_approval",
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the switch for strict registries."""
    group = parser.getgroup("amplifier", "hooks of agents")
    about = "fail where a hook changes nested values in place (the default)"
    group.addoption("--hooks-strict", action="store_const", const=True, default=None, dest="hooks_strict", help=about)
    about = "let hooks change nested values in place"
    group.addoption("--no-hooks-strict", action="store_const", const=False, dest="hooks_strict", help=about)
    parser.addini("hooks_strict", "whether the registry of the tests is strict", type="bool", default=True)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark, unless its own plugin is installed."""
    if not config.pluginmanager.hasplugin("asyncio"):
        config.addinivalue_line("markers", "asyncio: run an async test on an event loop of its own")


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """Runs async tests that use the fixtures or are marked."""
    # Plugins for async tests replace the test with a plain function, or run first.
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    if _FIXTURES.isdisjoint(pyfuncitem.fixturenames) and pyfuncitem.get_closest_marker("asyncio") is None:
        return None
    import asyncio

    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture
def hook_registry(pytestconfig: pytest.Config) -> HookRegistry:
    """The registry of the test, strict unless disabled."""
    from amplifier_core.hooks import HookRegistry

    chosen = pytestconfig.getoption("hooks_strict")
    return HookRegistry(strict=pytestconfig.getini("hooks_strict") if chosen is None else chosen)


@pytest.fixture
def event_recorder(hook_registry: HookRegistry) -> EventRecorder:
    """Records every event of ``hook_registry``."""
    from amplifier_core.testing import EventRecorder

    return EventRecorder().attach(hook_registry)


@pytest.fixture
def scripted_approval() -> MockApprovalSystem:
    """The approval system. ``decide`` adds answers; all other requests are denied."""
    from amplifier_core.testing import MockApprovalSystem

    return MockApprovalSystem()


@pytest.fixture
def mock_context() -> MockContext:
    """The conversation."""
    from amplifier_core.testing import MockContext

    return MockContext()


@pytest.fixture
def collecting_display() -> CollectingDisplay:
    """The display."""
    from amplifier_core.testing import CollectingDisplay

    return CollectingDisplay()


@pytest.fixture
def coordinator(
    hook_registry: HookRegistry,
    mock_context: MockContext,
    scripted_approval: MockApprovalSystem,
    collecting_display: CollectingDisplay,
) -> SessionCoordinator:
    """A session coordinator with ``hook_registry``, ``mock_context``, ``scripted_approval`` and ``collecting_display``."""
    from amplifier_core.testing import make_coordinator

    return make_coordinator(
        hook_registry, context=mock_context, approval_system=scripted_approval, display_system=collecting_display
    )


@pytest.fixture
def module_path(request: pytest.FixtureRequest) -> pathlib.Path:
    """The package ``amplifier_module_*`` in the folder of the project, for tests in a folder below it."""
    for folder in request.path.parents:
        packages = sorted(file.parent for file in folder.glob("amplifier_module_*/__init__.py"))
        if len(packages) == 1:
            return packages[0]
        if (folder / "pyproject.toml").exists():
            break
    pytest.fail(f"no module found for `{request.path}`; its package is `amplifier_module_*`, beside the folder of the tests")
