"""The coordinator that modules get: mount points, capabilities, and the routing of results as orchestrators use it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from amplifier_core import HookResult, ModuleCoordinator
from amplifier_core.coordinator import ModuleCoordinator as OfCoordinator
from amplifier_core.coordinator import SessionCoordinator


def coordinator(approvals: Any = None, display: Any = None, **settings: Any) -> ModuleCoordinator:
    session = SimpleNamespace(session_id="s", parent_id="p", config={"session": {"orchestrator": "x", "context": "y", **settings}})
    return ModuleCoordinator(session, approval_system=approvals, display_system=display)


class Context:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def add_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)


class Approver:
    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
        return self.answer


def process(of: ModuleCoordinator, **result: Any) -> HookResult:
    return asyncio.run(of.process_hook_result(HookResult(**result), "tool:pre", "hook"))


def test_it_is_a_session_coordinator_with_the_facts_of_its_session() -> None:
    of = coordinator()
    assert OfCoordinator is ModuleCoordinator and isinstance(of, SessionCoordinator)
    assert (of.session_id, of.parent_id, of.session_state, of.loader) == ("s", "p", {}, None)
    assert of.config is of.session.config and of.get("hooks") is of.hooks


def test_objects_are_mounted_by_name_or_alone() -> None:
    of, tool, other = coordinator(), SimpleNamespace(name="read"), object()

    async def mount() -> None:
        await of.mount("tools", tool)
        await of.mount("tools", other, name="write")
        await of.mount("context", other)
        await of.mount("module-source-resolver", other, "ignored")

    asyncio.run(mount())
    assert of.get("tools") == {"read": tool, "write": other} and of.get("tools", "read") is tool
    assert of.get("tools", "none") is None and of.get("providers") == {} and of.get("context") is other
    assert of.to_dict()["tools"] == ["read", "write"] and of.to_dict()["has_context"]
    asyncio.run(of.unmount("tools", "write"))
    asyncio.run(of.unmount("tools", "write"))
    asyncio.run(of.unmount("context"))
    assert of.get("tools") == {"read": tool} and of.get("context") is None


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ("agents", "unknown mount point `agents`; there are `orchestrator`, `providers`"),
        ("tools", "an object of `tools` needs a name"),
        ("hooks", "hooks are not mounted; register them"),
    ],
)
def test_an_object_without_a_place_is_an_error(point: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        asyncio.run(coordinator().mount(point, object()))


def test_an_unknown_mount_point_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown mount point `agents`"):
        coordinator().get("agents")
    with pytest.raises(ValueError, match="the name of the object to unmount from `tools` is missing"):
        asyncio.run(coordinator().unmount("tools"))


def test_modules_share_capabilities_and_contributions() -> None:
    of = coordinator()
    of.register_capability("session.working_dir", "/work")
    of.register_contributor("events", "a", lambda: ["a:b"])
    of.register_contributor("events", "b", lambda: None)
    assert (of.get_capability("session.working_dir"), of.get_capability("none")) == ("/work", None)

    async def collect() -> list[Any]:
        return await of.collect_contributions("events")

    assert asyncio.run(collect()) == [["a:b"]]


def test_clean_ups_run_once_and_the_latest_first() -> None:
    of, done = coordinator(), []

    async def later() -> None:
        done.append("later")

    of.register_cleanup(lambda: done.append("first"))
    of.register_cleanup(later)
    asyncio.run(of.cleanup())
    asyncio.run(of.cleanup())
    assert done == ["later", "first"]


def test_a_lasting_injection_goes_to_the_context_that_is_mounted_then() -> None:
    of, context = coordinator(), Context()
    asyncio.run(of.mount("context", context))
    result = process(of, action="inject_context", context_injection="mind it")
    assert (result.action, result.context_injection) == ("continue", None)
    (message,) = context.messages
    assert (message["role"], message["content"], message["metadata"]["hook_name"]) == ("system", "mind it", "hook")


def test_an_ephemeral_injection_is_left_to_the_orchestrator() -> None:
    of, context = coordinator(), Context()
    asyncio.run(of.mount("context", context))
    result = process(of, action="inject_context", context_injection="mind it", ephemeral=True)
    assert (result.action, result.context_injection, result.ephemeral, context.messages) == ("inject_context", "mind it", True, [])


def test_limits_apply_where_the_configuration_has_them() -> None:
    huge = {"action": "inject_context", "context_injection": "x" * 20_000}
    assert process(coordinator(), **huge).action == "continue"
    limited = coordinator(injection_size_limit=50)
    assert (limited.injection_size_limit, limited.injection_budget_per_turn) == (50, None)
    with pytest.raises(ValueError, match="20000 characters, 50 are allowed"):
        process(limited, **huge)


@pytest.mark.parametrize(("answer", "action"), [("Allow", "continue"), ("Deny", "deny")])
def test_the_approval_system_decides(answer: str, action: str) -> None:
    assert process(coordinator(Approver(answer)), action="ask_user", approval_prompt="Go?").action == action


def test_an_approval_system_can_come_later_and_without_one_requests_are_denied() -> None:
    of = coordinator()
    assert process(of, action="ask_user", approval_prompt="Go?").action == "deny"
    of.approval_system = Approver("Allow")
    assert process(of, action="ask_user", approval_prompt="Go?").action == "continue"
    of.approval_system = object()
    with pytest.raises(TypeError, match="an approval system has"):
        process(of, action="ask_user", approval_prompt="Go?")


def test_the_turn_can_be_cancelled() -> None:
    of = coordinator()
    asyncio.run(of.request_cancel())
    assert of.cancellation.is_cancelled and not of.cancellation.is_immediate
    asyncio.run(of.request_cancel(immediate=True))
    assert of.cancellation.is_immediate
