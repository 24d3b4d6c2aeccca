"""The guide, whose samples stand in no fence, with what its text promises."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from samples import SEEDS, Programs, answer, execute, passage

#: What it defines.
GUIDE = ["logging_hook", "my_custom_hook", "handler", "linter_hook", "production_guard", "safe_hook"]


def test_every_sample_is_accounted_for() -> None:
    text = next(SEEDS.glob("003_*.txt")).read_text()
    assert re.findall(r"^(?:async )?def (\w+)", text, re.MULTILINE) == GUIDE


def test_a_handler_that_says_nothing_continues() -> None:
    code = passage("003", "async def handler", "    ...")
    assert asyncio.run(answer(code, "handler", "tool:pre", {})).action == "continue"


def test_a_logging_hook() -> None:
    code = passage("003", "from amplifier_core.models import HookResult\n\nasync def logging_hook", '    return HookResult(action="continue")')
    printed: list[str] = []
    asyncio.run(answer(code, "logging_hook", "tool:pre", {"n": 1}, print=printed.append))
    assert printed[0].startswith("[tool:pre] {'n': 1")


def test_a_custom_hook_is_registered_twice() -> None:
    hook = passage("003", "from amplifier_core.models import HookResult\nfrom amplifier_core.hooks", '    return HookResult(action="continue")')
    registering = passage("003", "from amplifier_core.hooks import HookRegistry\n\nregistry", "unregister_pre()")

    async def run() -> None:
        space = await execute(f"{hook}\n{registering}")
        assert space["registry"].list_handlers() == {"session:end": ["my_custom_hook_session_end"]}

    asyncio.run(run())


def test_a_linter_hook() -> None:
    code = passage("003", "import subprocess\n", "registry.register(event=\"tool:post\", handler=linter_hook, priority=10)")
    # It imports the real module; what it starts is looked up in it.
    programs = Programs(returncode=1, stderr=b"E501")

    async def run() -> None:
        space = await execute(code)
        space["subprocess"] = programs
        data = {"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}
        result = await space["registry"].emit("tool:post", data)
        assert (result.action, result.user_message) == ("inject_context", "Found linting issues in a.py")

    asyncio.run(run())


def test_a_production_guard() -> None:
    code = passage("003", "async def production_guard", "registry.register(event=\"tool:pre\", handler=production_guard, priority=5)")

    async def run() -> None:
        space = await execute(code)
        result = await space["registry"].emit("tool:pre", {"tool_input": {"file_path": "x/.env"}})
        assert (result.action, result.reason) == ("ask_user", "Production file requires explicit user approval")

    asyncio.run(run())


def test_a_hook_that_handles_its_errors() -> None:
    code = passage("003", "import logging\nfrom amplifier_core.models", '            user_message_level="error"\n        )')

    def fail(data: dict[str, Any]) -> None:
        raise RuntimeError("disk full")

    result = asyncio.run(answer(code, "safe_hook", "tool:post", {}, do_something=fail))
    assert (result.action, result.user_message, result.user_message_level) == ("continue", "Hook error: disk full", "error")


def test_contribution_channels() -> None:
    code = passage("003", "# Module A registers as a contributor", 'capabilities = collect_contributions("agent_capabilities")')
    session = SessionCoordinator(HookRegistry())
    names = {
        "register_contributor": session.register_contributor,
        "collect_contributions": session.collect_contributions,
        "my_capability_provider": lambda: ["web", "code"],
    }
    assert asyncio.run(execute(code, **names))["capabilities"] == [["web", "code"]]
