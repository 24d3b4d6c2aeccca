"""Relative paths: they are those of the folder that was current when they were given, wherever the process goes."""

from __future__ import annotations

import pathlib

import pytest

from amplifier_core.audit import open_log, records, verify
from amplifier_core.bundles import parse
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.session import ScriptedProvider, Session
from sessions import UNRECORDED, contents, run


@pytest.fixture
def places(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> tuple[pathlib.Path, pathlib.Path]:
    """The folder that is current, and another."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    return here, there


def used(folder: pathlib.Path) -> list[str]:
    return [record["body"]["data"]["tool_name"] for record in records(folder) if record["event"] == "tool:pre" and "data" in record["body"]]


def test_a_log_stays_the_same(places: tuple[pathlib.Path, pathlib.Path], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = places
    with monkeypatch.context() as other:
        other.chdir(there)
        open_log("audit", "audit.key").close()
    before = {path: path.read_bytes() for path in there.rglob("*") if path.is_file()}

    async def main() -> None:
        with open_log("audit", "audit.key") as log:
            assert (log.folder, log.key_file) == (here / "audit", here / "audit.key")
            session = SessionCoordinator(HookRegistry(), audit=log, session_id="s", config={"audit_required": True})
            for folder, tool in ((here, "one"), (there, "two")):
                monkeypatch.chdir(folder)
                assert (await session.execute_with_hooks("tool:pre", {"tool_name": tool})).action == "continue"

    run(main())
    assert {path: path.read_bytes() for path in there.rglob("*") if path.is_file()} == before
    assert verify(here / "audit").is_sound
    assert used(here / "audit") == ["one", "two"]


def test_a_session_protects_the_log_that_was_opened_elsewhere(
    places: tuple[pathlib.Path, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = places

    async def main() -> None:
        with open_log("audit", "audit.key") as log:
            monkeypatch.chdir(there)
            async with Session(ScriptedProvider([]), workspace=here, confirm="off", audit=log, confine=False) as session:
                assert not (await session.execute_tool("Read", {"file_path": "audit.key"})).success
                assert not (await session.execute_tool("Write", {"file_path": "audit/x", "content": "x"})).success

    run(main())


GUARD = """
hooks:
  - rule: guard
    on: tool:pre
    when: path_matches(tool_input.file_path, "production/**")
    deny: no production
"""


def test_guards_judge_the_workspace_in_which_tools_work(
    places: tuple[pathlib.Path, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = places
    (here / "workspace").mkdir()

    async def main() -> None:
        session = Session(ScriptedProvider([]), workspace="workspace", confirm="off", bundle=parse(GUARD), confine=False, config=UNRECORDED)
        monkeypatch.chdir(there)
        async with session:
            for file in (here / "workspace" / "production" / "x", pathlib.Path("production/x")):
                written = await session.execute_tool("Write", {"file_path": str(file), "content": "x"})
                assert "no production" in (written.error or ""), written

    run(main())


def test_a_conversation_stays_in_its_store(places: tuple[pathlib.Path, pathlib.Path], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = places

    async def main() -> None:
        session = Session(ScriptedProvider(["One.", "Two."]), store="store")
        monkeypatch.chdir(there)
        await session.prompt("first")
        monkeypatch.chdir(here)
        await session.prompt("second")
        await session.end()
        async with Session(ScriptedProvider([]), store="store", resume="last") as resumed:
            assert contents(resumed, "user") == ["first", "second"]

    run(main())
    assert list(there.iterdir()) == []


@pytest.mark.parametrize("name", ["workspace", "store"])
def test_an_empty_path_is_none(name: str) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` is an empty path; the current folder is `.`$"):
        Session(ScriptedProvider([]), **{name: ""})  # type: ignore[arg-type]
