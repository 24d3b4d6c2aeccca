"""The policy of a workspace around a session of modules: bundles, approvals, the audit log and the console."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from module_sessions import Approver, begun, note, notes, plan, told

from amplifier_core import AmplifierSession, HookResult, observe
from amplifier_core.audit import records, verify
from amplifier_core.observation import Observation
from amplifier_core.session import SessionRefusedError
from amplifier_core.testing import CollectingDisplay

POLICY = """
session: { audit: record }
hooks:
  - rule: no-passwords
    on: tool:pre
    when: has(tool_input.text) && tool_input.text.contains("password")
    deny: no passwords in notes
  - rule: ask-about-plans
    on: tool:pre
    when: has(tool_input.text) && tool_input.text.contains("plan")
    ask: Keep a plan?
    options: [Allow once, Deny]
  - rule: shorten
    on: tool:pre
    when: has(tool_input.text) && tool_input.text.contains("long")
    modify: { set: { /tool_input/text: short } }
  - rule: hide
    on: tool:post
    when: tool_name == "read_notes"
    modify: { set: { /result/output: "(hidden)" } }
"""


@pytest.fixture(autouse=True)
def policy(home: pathlib.Path) -> pathlib.Path:
    """The bundle of the user."""
    file = home / "bundle.yaml"
    file.write_text(POLICY)
    return file


class Played:
    """An observed session that has ended."""

    def __init__(self, home: pathlib.Path, told: list[str], notes: list[str], observation: Observation) -> None:
        self.told = told
        self.notes = notes
        self.observation = observation
        self.report = verify(home / "audit")
        self.records = records(home / "audit")

    def of(self, kind: str, event: str | None = None) -> list[dict[str, Any]]:
        """The bodies of the records of one kind."""
        return [one["body"] for one in self.records if one["kind"] == kind and event in (None, one["event"])]


def play(
    home: pathlib.Path, config: dict[str, Any], approvals: Any = None, before: Callable[[AmplifierSession], Any] | None = None, **options: Any
) -> Played:
    """Runs a turn of an observed session."""

    async def main() -> Played:
        session = await begun(config, approval_system=approvals, session_id="observed")
        if before is not None:
            before(session)
        observation = await observe(session, **options)
        await session.execute("Keep it")
        found = told(session), notes(session)
        await session.cleanup()
        return Played(home, *found, observation)

    return asyncio.run(main())


def test_a_rule_denies_a_tool_and_the_log_says_so(home: pathlib.Path) -> None:
    played = play(home, plan(note("my password"), "I see."))
    assert (played.told, played.notes) == (["Denied by hook: no passwords in notes"], [])
    assert played.report.is_sound and played.report.to_dict()["sealed"] == 1
    (decided,) = [body for body in played.of("event", "tool:pre") if "decision" in body]
    assert (decided["decision"], decided["denied_by"]) == ("deny", "no-passwords")
    assert {record["session"] for record in played.records if record["event"] == "prompt:submit"} == {"observed"}


def test_the_example_runs() -> None:
    example = pathlib.Path(__file__).parents[1] / "examples" / "observe.py"
    ended = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("Denied by hook: no passwords in notes\nsound\n", 0), ended.stderr


def test_a_program_that_does_not_clean_up_ends_and_leaves_a_sound_log(home: pathlib.Path) -> None:
    program = (
        "import asyncio, sys\n"
        f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
        "from amplifier_core import observe\n"
        "from module_sessions import begun, note, plan\n"
        "async def main():\n"
        "    session = await begun(plan(note('my password'), 'Done.'))\n"
        "    await observe(session, serve=True)\n"
        "    print(await session.execute('Keep it'))\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("Done.\n", 0), ended.stderr
    report = verify(home / "audit")
    assert report.is_sound and report.to_dict()["sealed"] == 0


def test_modules_emit_models_and_nothing(home: pathlib.Path) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Call", tool_name=(str, "write_note"), tool_input=(dict, ...))
    denied, changed = model(tool_input={"text": "my password"}), model(tool_input={"text": "a long text"})

    async def main() -> list[str]:
        session = await begun(plan("Done."))
        await observe(session)
        hooks = session.coordinator.hooks
        found = [(await hooks.emit("tool:pre", call)).action for call in (denied, changed)]
        found.append((await hooks.emit("notes:seen", None)).action)
        await session.cleanup()
        return found

    assert asyncio.run(main()) == ["deny", "continue", "continue"]
    assert changed.tool_input == {"text": "short"}


def test_a_message_of_a_rule_is_shown_once(policy: pathlib.Path) -> None:
    policy.write_text("hooks:\n  - rule: greet\n    on: prompt:submit\n    message: hello\n")
    display = CollectingDisplay()

    async def main() -> None:
        session = await begun(plan("Done."), display_system=display)
        await observe(session)
        await session.execute("Keep it")
        await session.cleanup()

    asyncio.run(main())
    assert display.texts() == ["hello"]


def test_every_operation_that_may_begin_has_an_end(home: pathlib.Path) -> None:
    played = play(home, plan([("read_notes", {}), ("write_note", {"text": "too large"})], note("one"), "Done."))
    assert played.told[1] == "Error: no space left"
    assert (played.report.verdict, played.report.to_dict()["in_doubt"]) == ("sound", [])
    begun = [body.get("tool_call_id") for body in played.of("intent")]
    ended = [body.get("tool_call_id") for body in played.of("outcome")]
    assert sorted(map(str, begun)) == sorted(map(str, ended))
    assert begun.count(None) == 3


@pytest.mark.parametrize(("answer", "kept"), [("Allow once", ["a plan"]), ("Deny", [])])
def test_a_rule_asks_through_the_approval_system_of_the_application(home: pathlib.Path, answer: str, kept: list[str]) -> None:
    approver = Approver(answer)
    played = play(home, plan(note("a plan"), "Done."), approver)
    assert (approver.asked, played.notes) == (["Keep a plan?"], kept)
    (decision,) = played.of("approval_decision")
    assert decision["granted"] is (answer == "Allow once")


def test_hooks_of_modules_ask_and_are_recorded_too(home: pathlib.Path) -> None:
    approver = Approver("Deny")
    played = play(home, plan(note("please ask"), "Done."), approver)
    assert (approver.asked, played.notes) == (["Keep the note?"], [])
    assert [body["granted"] for body in played.of("approval_decision")] == [False]


def test_nobody_to_ask_denies(home: pathlib.Path) -> None:
    assert play(home, plan(note("a plan"), "Done.")).notes == []


def test_a_changed_input_is_what_the_tool_gets(home: pathlib.Path) -> None:
    played = play(home, plan(note("a long text"), "Done."))
    assert played.notes == ["short"]


def test_a_changed_result_is_what_the_model_reads(home: pathlib.Path) -> None:
    played = play(home, plan([("read_notes", {})], "Done.", texts=["secret"]))
    assert "(hidden)" in played.told[0] and "secret" not in played.told[0]


def test_a_change_that_the_orchestrator_would_lose_is_denied(home: pathlib.Path) -> None:
    def rewrite(session: AmplifierSession) -> None:
        change = HookResult(action="modify", data={"prompt": "something else"})
        session.coordinator.hooks.register("prompt:submit", lambda event, data: change, name="rewrite")

    played = play(home, plan("Done."), before=rewrite)
    (decided,) = played.of("event", "prompt:submit")
    assert (decided["decision"], decided["denied_by"]) == ("deny", "observe")
    assert played.of("event", "provider:request") == []


def test_injections_are_added_once(home: pathlib.Path, policy: pathlib.Path) -> None:
    policy.write_text("hooks:\n  - rule: lasting\n    on: prompt:submit\n    inject: be brief\n")

    async def main() -> tuple[list[str], list[str]]:
        session = await begun(plan("Done.", hooks={"reminder": "be kind"}))
        await observe(session)
        await session.execute("Hello")
        provider, context = session.coordinator.get("providers", "scripted"), session.coordinator.get("context")
        found = [message.content for message in provider.requests[0].messages], [one["content"] for one in context.messages]
        await session.cleanup()
        return found

    asked, kept = asyncio.run(main())
    assert asked == ["be brief", "Hello", "be kind"]
    assert kept == ["be brief", "Hello", "Done."]


def test_the_module_of_a_bundle_observes_without_code(home: pathlib.Path) -> None:
    async def main() -> list[str]:
        config = plan(note("a plan"), "Done.")
        config["hooks"].append({"module": "hooks-policy", "config": {"mode": "deny"}})
        session = await begun(config, approval_system=Approver("Allow once"))
        await session.execute("Keep it")
        found = notes(session)
        await session.cleanup()
        return found

    assert asyncio.run(main()) == []
    assert verify(home / "audit").is_sound


def test_a_sub_session_has_the_policy_of_its_parent(home: pathlib.Path) -> None:
    async def main() -> tuple[list[str], list[str]]:
        parent = await begun(plan("Done."), session_id="parent")
        await observe(parent)
        child = await begun(plan(note("my password"), "Done."), session_id="child", parent_id="parent")
        await child.execute("Keep it")
        found = told(child), notes(child)
        await child.cleanup()
        await parent.cleanup()
        return found

    assert asyncio.run(main()) == (["Denied by hook: no passwords in notes"], [])
    assert {"parent", "child"} >= {record["session"] for record in records(home / "audit") if record["event"] == "tool:pre"} == {"child"}


def test_a_bundle_of_the_project_needs_trust_and_a_named_one_does_not(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    project = tmp_path / "work"
    (project / ".amplifier").mkdir(parents=True)
    bundle = project / ".amplifier" / "bundle.yaml"
    bundle.write_text("hooks:\n  - rule: nothing\n    on: tool:pre\n    deny: nothing is allowed\n")
    played = play(home, plan(note("a text"), "Done."), workspace=project)
    assert played.notes == ["a text"]
    assert any("not trusted" in warning for warning in played.observation.warnings)
    played = play(home, plan(note("a text"), "Done."), workspace=project, bundle=bundle)
    assert played.told == ["Denied by hook: nothing is allowed"]


def test_the_workspace_is_the_working_folder_of_the_session(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def work(session: AmplifierSession) -> None:
        session.coordinator.register_capability("session.working_dir", str(tmp_path))

    assert play(home, plan("Done."), before=work).observation.workspace == str(tmp_path.resolve())


def test_a_mistake_in_a_bundle_stops_the_observation(home: pathlib.Path, policy: pathlib.Path) -> None:
    policy.write_text("hooks:\n  - rule: wrong\n    on: tool:pre\n    when: tool_nam == 1\n    deny: no\n")
    with pytest.raises(ValueError, match="unknown name `tool_nam`; did you mean `tool_name`"):
        play(home, plan("Done."))


def test_a_bundle_whose_policy_cannot_be_used_denies_everything(home: pathlib.Path, policy: pathlib.Path) -> None:
    policy.write_text("hooks: [{ rule: wrong, on: 'tool:pre', deny: no, denied: yes }]")

    async def main() -> None:
        config = plan("Done.")
        config["hooks"].append({"module": "hooks-policy"})
        await (await begun(config)).execute("Keep it")

    with pytest.raises(SessionRefusedError, match="the policy cannot be used: .*unknown key `denied`"):
        asyncio.run(main())


def test_after_its_end_an_observed_session_denies(home: pathlib.Path) -> None:
    async def main() -> tuple[str, str | None]:
        session = await begun(plan(note("a text"), "Done."))
        observation = await observe(session)
        assert await observe(session) is observation
        await observation.end()
        await observation.end()
        result = await session.coordinator.hooks.emit("tool:pre", {"tool_name": "write_note", "tool_input": {"text": "a"}})
        await session.cleanup()
        return result.action, result.reason

    action, reason = asyncio.run(main())
    assert action == "deny" and "audit" in (reason or "")


def test_parts_of_an_observed_session_stay() -> None:
    async def main() -> None:
        session = await begun(plan("Done."))
        await observe(session)
        try:
            session.coordinator.approval_system = Approver("Allow")
        finally:
            await session.cleanup()

    with pytest.raises(RuntimeError, match="cannot replace `approval_system` of an observed session"):
        asyncio.run(main())


def test_only_sessions_of_modules_are_observed() -> None:
    with pytest.raises(TypeError, match="`observe` needs an `AmplifierSession` or its coordinator; found `object`"):
        asyncio.run(observe(object()))  # type: ignore[arg-type]
