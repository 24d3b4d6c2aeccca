"""What the user has configured, and what a bundle says about a session."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pathlib
from typing import Any

import pytest

from amplifier_core.approval import ApprovalRequest
from amplifier_core.audit import open_log
from amplifier_core.bundles import mount, parse
from amplifier_core.hooks import HookRegistry
from amplifier_core.session import RemoteProvider, ScriptedProvider, Session
from sessions import UNRECORDED, run

ASKS = "hooks: [{ rule: true, name: guard, on: 'tool:pre', ask: 'Run it?' }]"


@pytest.fixture
def workspace(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def session(workspace: pathlib.Path, bundle: str = ASKS, **options: Any) -> Session:
    return Session(ScriptedProvider([]), workspace=workspace, confirm="off", bundle=parse(bundle), config=UNRECORDED, confine=False, **options)


async def may_run(running: Session) -> bool:
    return (await running.execute_tool("Bash", {"command": "true"})).success


# ---- approval rules -------------------------------------------------------------------------------------------------


def test_rules_of_the_user_count_from_when_they_are_given_until_they_are_taken_back(workspace: pathlib.Path, home: pathlib.Path) -> None:
    rules = home / "approvals.json"

    async def main() -> list[bool]:
        tried = []
        async with session(workspace) as running:
            tried.append(await may_run(running))
            rules.write_text('{"guard:Run it?": "allow"}')
            tried.append(await may_run(running))
            rules.write_text('{"guard:Run it?": "allow", "guard:*": "deny"}')
            tried.append(await may_run(running))
            rules.write_text('{"guard:Run it?": "allow"}')
            tried.append(await may_run(running))
            # A file that cannot be read may hold a no.
            rules.write_text("{")
            tried.append(await may_run(running))
            rules.unlink()
            tried.append(await may_run(running))
        return tried

    assert run(main()) == [False, True, False, True, False, False]


def test_rules_for_a_project_count_in_it_alone(workspace: pathlib.Path, home: pathlib.Path) -> None:
    folder = home / "projects" / hashlib.sha256(str(workspace).encode()).hexdigest()[:32]
    folder.mkdir(parents=True)
    (folder / "path").write_text(str(workspace))
    (folder / "approvals.json").write_text('{"guard:*": "allow"}')
    (workspace / "other").mkdir()

    async def main(place: pathlib.Path) -> bool:
        async with session(place) as running:
            return await may_run(running)

    assert run(main(workspace))
    assert not run(main(workspace / "other"))


def test_rules_of_the_program_count_beside_those_of_the_user_and_deny_wins(workspace: pathlib.Path, home: pathlib.Path) -> None:
    async def main(rules: dict[str, str], **options: Any) -> bool:
        async with session(workspace, approval_rules=rules, **options) as running:
            return await may_run(running)

    assert run(main({"guard:*": "allow"}))
    (home / "approvals.json").write_text('{"guard:*": "deny"}')
    assert not run(main({"guard:*": "allow"}))
    assert run(main({"guard:*": "allow"}, home=False))
    other = workspace.parent / "home"
    assert run(main({"guard:*": "allow"}, home=other))
    (home / "approvals.json").write_text('{"guard:*": "allow"}')
    assert run(main({}))
    assert not run(main({"guard:*": "deny"}))
    assert not run(main({}, home=False))


def test_no_tool_writes_rules_also_without_a_bundle(workspace: pathlib.Path) -> None:
    home = workspace.parent / "home"

    async def main() -> None:
        async with Session(ScriptedProvider([]), workspace=workspace, confirm="off", home=home) as running:
            command = f"echo '{{}}' > {home}/approvals.json"
            assert not (await running.execute_tool("Bash", {"command": command})).success

    run(main())
    assert not (home / "approvals.json").exists()


def test_rules_that_cannot_be_read_when_a_session_begins_are_an_error(workspace: pathlib.Path, home: pathlib.Path) -> None:
    (home / "approvals.json").write_text("[]")
    with pytest.raises(ValueError, match="^approval rules: `.*approvals.json`: "):
        session(workspace)
    session(workspace, home=False)


@pytest.mark.parametrize("name", ["confirm", "protect", "session-bundles"])
def test_no_hook_of_a_bundle_passes_for_one_of_the_command(workspace: pathlib.Path, home: pathlib.Path, name: str) -> None:
    (home / "approvals.json").write_text(f'{{"{name}:*": "allow"}}')

    async def main() -> None:
        bundle = ASKS.replace("guard", name)
        async with session(workspace, bundle) as running:
            assert not await may_run(running)
        async with await mount(HookRegistry(), parse(bundle)) as mounted:
            assert mounted.bundle.hooks == [f"{name} (named)"]

    run(main())


# ---- settings of a bundle -------------------------------------------------------------------------------------------


class Silent:
    """Somebody who never answers."""

    def __init__(self) -> None:
        self.timeouts: list[float] = []

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
        self.timeouts.append(timeout)
        await asyncio.sleep(60)
        return "Allow once"


class SilentAtOnce:
    """The same, asked with one object."""

    def __init__(self) -> None:
        self.timeouts: list[float] = []

    async def ask(self, request: ApprovalRequest) -> str:
        self.timeouts.append(request.timeout)
        await asyncio.sleep(60)
        return "Allow once"


@pytest.mark.parametrize("kind", [Silent, SilentAtOnce])
def test_a_bundle_says_how_long_a_question_waits_for_an_answer_at_most(
    workspace: pathlib.Path, kind: type[Silent] | type[SilentAtOnce]
) -> None:
    person = kind()

    async def main() -> bool:
        async with session(workspace, f"session: {{ approval_timeout: 0.2 }}\n{ASKS}", approval_system=person) as running:
            return await may_run(running)

    assert not run(main())
    assert person.timeouts == [0.2]


def test_a_bundle_says_how_safely_the_log_is_kept(tmp_path: pathlib.Path) -> None:
    bundle = parse("session: { audit: record }")
    with open_log(tmp_path / "audit") as log:
        with pytest.raises(ValueError, match="^the bundle wants the audit log kept `record`, and it is kept `group`: open it with `durability=\"record\"`$"):
            Session(ScriptedProvider([]), bundle=bundle, audit=log)
    with open_log(tmp_path / "audit", durability="record") as log:
        Session(ScriptedProvider([]), bundle=bundle, audit=log)
        Session(ScriptedProvider([]), bundle=parse("session: { audit: async }"), audit=log)


def test_a_model_of_a_bundle_needs_no_name_and_an_empty_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = parse(json.dumps({"providers": [{"provider": "anthropic"}]}))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(ValueError, match="^the provider `anthropic` needs a key: set ANTHROPIC_API_KEY"):
        Session(bundle=bundle, config=UNRECORDED)
    with pytest.raises(ValueError, match="needs a key"):
        RemoteProvider("anthropic", "claude-sonnet-4-5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    Session(bundle=bundle, config=UNRECORDED)
