"""Sessions of modules, which are written like those of Amplifier and installed or found like them."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from installed import install
from module_sessions import MODULES, POINTS, Approver, Resolver, begun, listen, note, notes, plan, told

from amplifier_core import AmplifierSession, HookResult
from amplifier_core.session import SessionRefusedError


def run(config: dict[str, Any], *prompts: str, **options: Any) -> tuple[AmplifierSession, list[str]]:
    async def main() -> tuple[AmplifierSession, list[str]]:
        session = await begun(config, **options)
        answers = [await session.execute(prompt) for prompt in prompts]
        return session, answers

    return asyncio.run(main())


def test_a_turn_runs_the_tools_that_the_model_calls() -> None:
    session, answers = run(plan(note("one"), [("read_notes", {})], "Both are kept.", texts=["zero"]), "Keep it")
    assert answers == ["Both are kept."]
    assert told(session) == ["kept", "zero\none"]
    assert session.coordinator.session_state["tools at start"] == ["read_notes", "write_note"]
    assert session.coordinator.session_state["events"][:3] == ["session:start", "prompt:submit", "tool:pre"]


def test_a_module_is_mounted_once() -> None:
    session, _ = run(plan("Done."))
    assert session.coordinator.hooks.list_handlers("tool:pre")["tool:pre"] == ["marks-guard", "marks"]


def test_a_denial_reaches_the_model() -> None:
    session, _ = run(plan(note("forbidden"), "I see."), "Keep it")
    assert (told(session), notes(session)) == (["Denied by hook: forbidden text"], [])


@pytest.mark.parametrize(("answer", "kept"), [("Allow", ["please ask"]), ("Deny", [])])
def test_the_application_answers_approval_requests(answer: str, kept: list[str]) -> None:
    approver = Approver(answer)
    session, _ = run(plan(note("please ask"), "Done."), "Keep it", approval_system=approver)
    assert (approver.asked, notes(session)) == (["Keep the note?"], kept)


def test_without_an_approval_system_nothing_is_approved() -> None:
    session, _ = run(plan(note("please ask"), "Done."), "Keep it")
    assert notes(session) == []


def test_an_ephemeral_injection_is_in_one_request_and_not_in_the_context() -> None:
    session, _ = run(plan("Done.", hooks={"reminder": "be brief"}), "Hello")
    (request,) = session.coordinator.get("providers", "scripted").requests
    assert [message.content for message in request.messages] == ["Hello", "be brief"]
    assert len(session.coordinator.get("context").messages) == 2


def test_events_have_the_ids_of_the_session_and_begin_once() -> None:
    async def main() -> list[tuple[str, dict[str, Any]]]:
        session = await begun(plan("One.", "Two."), session_id="own", parent_id="parent")
        seen = listen(session, "session:start", "session:fork", "prompt:submit", "session:end")
        await session.execute("a")
        await session.execute("b")
        await session.cleanup()
        return seen

    seen = asyncio.run(main())
    assert [event for event, _ in seen] == ["session:start", "prompt:submit", "prompt:submit", "session:end"]
    assert all((data["session_id"], data["parent_id"]) == ("own", "parent") for _, data in seen)


def test_a_sub_session_says_so_once_its_modules_are_mounted() -> None:
    async def main() -> list[tuple[str, dict[str, Any]]]:
        config = plan("One.")
        config["session"]["metadata"] = {"agent": "helper"}
        session = AmplifierSession(config, parent_id="parent")
        seen = listen(session, "session:fork", "session:start", "session:end")
        await session.coordinator.mount("module-source-resolver", Resolver())
        await session.initialize()
        await session.cleanup()
        await session.cleanup()
        return seen

    seen = asyncio.run(main())
    assert [(event, data.get("parent"), data.get("metadata")) for event, data in seen] == [
        ("session:fork", "parent", {"agent": "helper"}),
        ("session:end", None, None),
    ]


def test_a_resumed_session_begins_with_another_event() -> None:
    session, _ = run(plan("One.", hooks={"events": ["session:start", "session:resume"]}), "a", is_resumed=True)
    assert session.coordinator.session_state["events"] == ["session:resume"]


def test_a_denied_start_stops_the_session() -> None:
    async def main() -> None:
        session = await begun(plan("One."))
        session.coordinator.hooks.register("session:start", lambda event, data: HookResult(action="deny", reason="not today"))
        await session.execute("a")

    with pytest.raises(SessionRefusedError, match="the session must not start: not today"):
        asyncio.run(main())


def test_a_module_that_cannot_be_mounted_is_left_out_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> tuple[AmplifierSession, list[tuple[str, dict[str, Any]]]]:
        session = AmplifierSession(plan("One.", tools=[{"module": "tool-none"}, {"module": "tool-notes"}, "tool-text"]))
        seen = listen(session, "module:load_failed")
        await session.coordinator.mount("module-source-resolver", Resolver())
        await session.initialize()
        return session, seen

    session, seen = asyncio.run(main())
    assert sorted(session.coordinator.get("tools")) == ["read_notes", "write_note"]
    failed = [(data["module_id"], data["module_type"], data["reason_code"]) for _, data in seen]
    assert failed[0] == ("tool-none", "tool", "missing_source")
    assert "no source for `tool-none`" in caplog.text


@pytest.mark.parametrize("kind", ["orchestrator", "context"])
def test_a_session_needs_its_orchestrator_and_its_context(kind: str) -> None:
    config = plan("One.")
    config["session"][kind] = {"module": "none"}
    with pytest.raises(RuntimeError, match=f"the session cannot be initialized: its {kind} failed: no source for `none`"):
        run(config)
    del config["session"][kind]
    with pytest.raises(ValueError, match=f"the configuration has no `session.{kind}`"):
        AmplifierSession(config)


def test_a_session_must_be_initialized_before_a_turn() -> None:
    with pytest.raises(RuntimeError, match="call `initialize` first"):
        asyncio.run(AmplifierSession(plan("One.")).execute("a"))


def test_a_failed_turn_names_the_cause_and_the_session_goes_on() -> None:
    async def main() -> str:
        session = await begun(plan())
        with pytest.raises(RuntimeError, match="the turn failed: IndexError: pop from empty list") as raised:
            await session.execute("a")
        assert isinstance(raised.value.__cause__, IndexError)
        session.coordinator.get("providers", "scripted").script.append("Again.")
        return await session.execute("b")

    assert asyncio.run(main()) == "Again."


def test_a_cancelled_turn_says_so() -> None:
    async def main() -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        session = await begun(plan("One."))
        seen = listen(session, "cancel:completed")
        await session.coordinator.request_cancel()
        return await session.execute("a"), seen

    answer, seen = asyncio.run(main())
    assert answer == "cancelled"
    assert [data["was_immediate"] for _, data in seen] == [False]


def test_providers_of_one_module_have_the_names_of_their_entries() -> None:
    entries = [{"module": "provider-scripted", "instance_id": "fast"}, {"module": "provider-scripted"}]
    session, _ = run(plan(providers=entries))
    assert list(session.coordinator.get("providers")) == ["fast", "scripted"]


def test_the_block_cleans_the_session_up() -> None:
    async def main() -> AmplifierSession:
        session = AmplifierSession(plan("One."))
        await session.coordinator.mount("module-source-resolver", Resolver())
        async with session as same:
            assert same is session
            await session.execute("a")
        return session

    session = asyncio.run(main())
    assert session.coordinator.get("context").messages == []
    assert session.coordinator.session_state["events"][-1] == "session:end"
    assert session.status.status == "completed"


def test_installed_modules_need_no_resolver(tmp_path: pathlib.Path) -> None:
    files = {str(file.relative_to(MODULES)): file.read_text() for file in sorted(MODULES.rglob("*.py"))}
    folder = install(tmp_path, "amplifier-modules-of-tests", files, POINTS)
    program = (
        "import asyncio, sys\n"
        f"sys.path[:0] = [{str(folder)!r}]\n"
        "from amplifier_core import AmplifierSession\n"
        f"config = {plan(note('forbidden'), 'Done.')!r}\n"
        "async def main():\n"
        "    async with AmplifierSession(config) as session:\n"
        "        print(await session.execute('Keep it'))\n"
        "        print(session.coordinator.get('context').messages[2]['content'])\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("Done.\nDenied by hook: forbidden text\n", 0), ended.stderr


