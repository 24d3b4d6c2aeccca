"""Bundles around what Python emits: rules, all built-in modules, programs, servers, and modules of Python; in sessions, too."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import http.server
import json
import os
import pathlib
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import components
from amplifier_core.approval import ScriptedApprovals
from amplifier_core.bundles import builtin_modules, load, mount, parse
from amplifier_core.coordinator import SessionCoordinator
from amplifier_core.hooks import HookRegistry
from amplifier_core.models import HookResult
from amplifier_core.session import ScriptedProvider, Session, Tool
from sessions import UNRECORDED, run


def emit(bundle: str, event: str, data: dict[str, Any], folder: pathlib.Path | str = ".") -> HookResult:
    """What the hooks of a bundle make of an event that Python emits."""

    async def main() -> HookResult:
        registry = HookRegistry()
        async with await mount(registry, parse(bundle, pathlib.Path(folder) / "bundle.yaml"), workspace=folder):
            return await registry.emit(event, data)

    return run(main())


RULE = """
hooks:
  - rule: no-rm
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.contains("rm ")
    deny: "{{ tool_input.command }} is not allowed"
"""


def bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}}


def test_a_rule_stands_around_what_python_emits() -> None:
    denied = emit(RULE, "tool:pre", bash("rm -rf x"))
    assert (denied.action, denied.reason) == ("deny", "rm -rf x is not allowed")
    assert emit(RULE, "tool:pre", bash("ls")).action == "continue"


def test_hooks_of_both_kinds_run_in_one_order() -> None:
    heard: list[str] = []

    async def main() -> None:
        registry = HookRegistry()
        registry.register("tool:pre", lambda event, data: heard.append(data["tool_input"]["n"]), priority=-1, name="early")
        rule = "hooks: [{rule: set, on: 'tool:pre', modify: {set: {/tool_input/n: two}}}]"
        async with await mount(registry, parse(rule)):
            registry.register("tool:pre", lambda event, data: heard.append(data["tool_input"]["n"]), priority=1, name="late")
            assert registry.list_handlers("tool:pre") == {"tool:pre": ["early", "set", "late"]}
            outcome = await registry.emit_with_outcome("tool:pre", {"tool_input": {"n": "one"}})
            assert [report["hook"] for report in outcome.reports] == ["early", "set", "late"]
            assert heard == ["one", "two"]
        assert registry.list_handlers("tool:pre") == {"tool:pre": ["early", "late"]}

    run(main())


def test_what_a_rule_leaves_alone_stays_what_it_is_in_python() -> None:
    when = datetime.datetime(2026, 1, 1)
    rule = "events: ['my:event']\nhooks: [{rule: set, on: 'my:event', modify: {set: {/n: 2}}}]"
    result = emit(rule, "my:event", {"n": 1, "when": when, "pair": (1, 2), "big": 2**80})
    assert result.data is not None
    assert (result.data["n"], result.data["when"], result.data["pair"], result.data["big"]) == (2, when, (1, 2), 2**80)


def test_so_do_the_neighbours_of_what_a_rule_changes() -> None:
    rule = "hooks: [{rule: set, on: 'tool:pre', modify: {set: {/tool_input/timeout: 5, /tool_input/steps/1/n: 2, /tool_input/1: one}}}]"
    when, kept = datetime.date(2020, 1, 1), {"pair": (1, 2)}
    steps = [b"first", {"n": 1, "raw": b"second"}, float("inf")]
    given = {"timeout": 1, "blob": b"\0abc", "big": 2**70, "when": when, "kept": kept, 1: "uno", 2: b"due", "steps": steps}
    result = emit(rule, "tool:pre", {"tool_input": given})
    assert result.data is not None
    steps = [b"first", {"n": 2, "raw": b"second"}, float("inf")]
    changed = {**given, "timeout": 5, 1: "one", "steps": steps}
    assert result.data["tool_input"] == changed
    assert result.data["tool_input"]["kept"] is kept
    # What was given is as it was.
    assert (given["timeout"], given[1]) == (1, "uno")


@pytest.mark.parametrize(
    ("given", "change", "changed"),
    [
        ({"x": 1, "1": b"text", 1: "number"}, "set: {/tool_input/x: 5}", {"x": 5, "1": b"text", 1: "number"}),
        ({"l": [b"x", (1, 2)]}, "set: {/tool_input/l/-: 1}", {"l": [b"x", (1, 2), 1]}),
        ({"l": ["x", b"k", b"k"]}, "remove: [/tool_input/l/0]", {"l": [b"k", b"k"]}),
        ({"t": (1, b"k")}, "set: {/tool_input/t/0: 2}", {"t": (2, b"k")}),
    ],
)
def test_no_neighbour_is_taken_for_another(given: dict[Any, Any], change: str, changed: dict[Any, Any]) -> None:
    result = emit(f"hooks: [{{rule: set, on: 'tool:pre', modify: {{{change}}}}}]", "tool:pre", {"tool_input": given})
    assert result.data is not None
    assert result.data["tool_input"] == changed


def test_what_is_too_deep_to_be_judged_does_not_pass() -> None:
    rule = "hooks: [{rule: secrets, on: 'tool:pre', when: has_secret(tool_input), deny: caught}]"
    for levels in (100, 200):
        data: dict[str, Any] = {"password": "hunter2hunter2"}
        for _ in range(levels):
            data = {"n": data}
        result = emit(rule, "tool:pre", {"tool_input": data})
        assert result.action == "deny"
        assert ("caught" in str(result.reason)) == (levels == 100)
    assert "the data is more than 130 levels deep" in str(result.reason)


@pytest.mark.parametrize("earlier", [[], ["{rule: early, on: 'tool:pre', when: 'tool_name == \"other\"', deny: no}"]])
def test_what_a_hook_changed_in_place_is_judged_as_it_is(earlier: list[str]) -> None:
    late = "{rule: late, priority: 10, on: 'tool:pre', when: 'tool_input.command == \"rm\"', deny: caught}"

    async def main() -> None:
        registry = HookRegistry()
        registry.register("tool:pre", lambda event, data: data["tool_input"].update(command="rm"), priority=5)
        async with await mount(registry, parse(f"hooks: [{', '.join([*earlier, late])}]")):
            assert (await registry.emit("tool:pre", bash("ls"))).action == "deny"

    run(main())


def test_an_object_that_changes_what_it_is_in_is_no_panic() -> None:
    data: dict[str, Any] = {}

    class Lazy:
        def __str__(self) -> str:
            data["cached"] = "x"
            return "x"

    data.update(lazy=Lazy(), other=1)
    rule = "hooks: [{rule: all, on: 'tool:pre', when: 'tool_input.lazy == \"x\"', deny: seen}]"
    assert emit(rule, "tool:pre", {"tool_input": data}).reason == "seen"


def test_a_rule_that_fails_denies() -> None:
    rule = "hooks: [{rule: careful, on: 'tool:pre', when: 'tool_input.n > 3', deny: too many}]"
    denied = emit(rule, "tool:pre", {"tool_input": {"n": "three"}})
    assert denied.action == "deny"
    assert (denied.reason or "").startswith("the hook failed: ")


def test_approvals_and_injections_of_a_bundle_are_routed() -> None:
    bundle = """
    hooks:
      - { rule: ask, on: "tool:pre", ask: "Run {{ tool_input.command }}?" }
      - { rule: tell, on: "tool:pre", inject: "mind the gap" }
    """
    person = ScriptedApprovals("Allow", "Deny")
    messages: list[str] = []

    class Context:
        def add_message(self, role: str, content: str, metadata: dict[str, Any]) -> None:
            messages.append(content)

    async def main() -> None:
        session = SessionCoordinator(HookRegistry(), Context(), person)
        await mount(session, parse(textwrap.dedent(bundle)))
        assert (await session.execute_with_hooks("tool:pre", bash("ls"))).action == "continue"
        assert (await session.execute_with_hooks("tool:pre", bash("ls"))).reason == "User denied: Run ls?"

    run(main())
    assert ([request.prompt for request in person.requests], messages[:1]) == (["Run ls?"] * 2, ["mind the gap"])


PROGRAM = """
import json, sys
request = json.loads(sys.stdin.readline())
print(json.dumps({"action": "deny", "reason": request["data"]["tool_input"]["command"] + " says no"}))
"""

WORKER = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "result": {"action": "deny", "reason": str(os.getpid())}}), flush=True)
"""


def test_a_command_is_run_for_an_event(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hook.py").write_text(PROGRAM)
    bundle = f"hooks: [{{command: ['{sys.executable}', hook.py], on: 'tool:pre'}}]"
    assert emit(bundle, "tool:pre", bash("ls"), tmp_path).reason == "ls says no"


@pytest.mark.parametrize("kind", ["command", "worker"])
def test_programs_run_in_the_workspace_and_find_the_files_of_the_bundle(tmp_path: pathlib.Path, kind: str) -> None:
    for folder, word in (("policies", "ours"), ("workspace", "theirs")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hook.py").write_text(WORKER.replace("str(os.getpid())", f"'{word} in ' + os.getcwd()"))
    if kind == "command":
        (tmp_path / "policies" / "hook.py").write_text("import os, sys\nsys.exit(print('ours in', os.getcwd(), file=sys.stderr) or 2)\n")
    bundle = f"hooks: [{{{kind}: ['{sys.executable}', hook.py], on: 'tool:pre'}}]"
    workspace = tmp_path / "workspace"

    async def main() -> str | None:
        registry = HookRegistry()
        async with await mount(registry, parse(bundle, tmp_path / "policies" / "bundle.yaml"), workspace=workspace):
            return (await registry.emit("tool:pre", bash("ls"))).reason

    assert run(main()) == f"ours in {workspace.resolve()}"


def test_a_worker_is_kept_running(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hook.py").write_text(WORKER)
    bundle = f"hooks: [{{worker: ['{sys.executable}', hook.py], on: 'tool:pre', workers: 1}}]"

    async def main() -> set[str | None]:
        registry = HookRegistry()
        async with await mount(registry, parse(bundle, tmp_path / "bundle.yaml")):
            return {(await registry.emit("tool:pre", bash("ls"))).reason for _ in range(5)}

    (process,) = run(main())
    assert process is not None and int(process) != os.getpid()


@contextlib.contextmanager
def served(answer: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_is_asked() -> None:
    with served({"action": "deny", "reason": "the server says no"}) as (url, asked):

        async def main() -> None:
            registry = HookRegistry()
            async with await mount(registry, parse(f"hooks: [{{http: '{url}', on: 'tool:pre'}}]")):
                results = await asyncio.gather(*(registry.emit("tool:pre", bash(str(number))) for number in range(20)))
                assert {result.reason for result in results} == {"the server says no"}

        run(main())
    assert sorted(int(one["data"]["tool_input"]["command"]) for one in asked) == list(range(20))


@pytest.mark.skipif(components.are_built_in(), reason="the package was built with components")
def test_a_package_without_components_says_so(tmp_path: pathlib.Path) -> None:
    (tmp_path / "deny.wasm").write_bytes(components.DENIES)
    with pytest.raises(ValueError, match=f"bundle.yaml:1:9: {components.WITHOUT}"):
        emit("hooks: [{wasm: deny.wasm, on: 'tool:pre'}]", "tool:pre", {}, tmp_path)


@components.needs_components
def test_a_component_is_asked_in_its_sandbox(tmp_path: pathlib.Path) -> None:
    (tmp_path / "deny.wasm").write_bytes(components.DENIES)

    async def main() -> None:
        registry = HookRegistry()
        bundle = "hooks: [{wasm: deny.wasm, on: 'tool:pre', when: 'tool_name == \"Bash\"', memory: 1}]"
        async with await mount(registry, parse(bundle, tmp_path / "bundle.yaml")):
            results = await asyncio.gather(*(registry.emit("tool:pre", bash(str(number))) for number in range(20)))
            assert {(result.action, result.reason) for result in results} == {("deny", "the component says no")}
            assert (await registry.emit("tool:pre", {"tool_name": "Read"})).action == "continue"

    run(main())
    (tmp_path / "deny.wasm").write_bytes(b"no component")
    with pytest.raises(ValueError, match=r"bundle.yaml:1:9: .*deny\.wasm"):
        emit("hooks: [{wasm: deny.wasm, on: 'tool:pre'}]", "tool:pre", {}, tmp_path)


def test_a_program_that_takes_too_long_is_ended_by_its_time_limit(tmp_path: pathlib.Path) -> None:
    bundle = "hooks: [{command: 'sleep 30', on: 'tool:pre', timeout: 0.2, on_error: deny}]"
    denied = emit(bundle, "tool:pre", bash("ls"), tmp_path)
    assert denied.action == "deny"
    assert "no answer within" in (denied.reason or "")


def test_cancelling_emit_cancels_the_program_of_a_hook(tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "marker"

    async def main() -> None:
        registry = HookRegistry()
        async with await mount(registry, parse(f"hooks: [{{command: 'sleep 0.5; touch {marker}', on: 'tool:pre'}}]")):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(registry.emit("tool:pre", {}), 0.1)
        await asyncio.sleep(0.8)

    run(main())
    assert not marker.exists()


def test_observers_of_a_bundle_run_side_by_side_with_those_of_python() -> None:
    heard: list[str] = []

    async def main() -> None:
        registry = HookRegistry(parallel_observers=True)

        async def note(event: str, data: dict[str, Any]) -> None:
            await asyncio.sleep(0)
            heard.append(event)

        registry.register("tool:post", note, role="observer")
        bundle = "hooks: [{command: 'sleep 0.01', on: 'tool:post', role: observer, name: sleeper}]"
        async with await mount(registry, parse(bundle)):
            outcome = await registry.emit_with_outcome("tool:post", {})
            assert sorted((report["hook"], report["answer"]) for report in outcome.reports) == [
                ("note", "continue"), ("sleeper", "continue"),
            ]

    run(main())
    assert heard == ["tool:post"]


#: What some modules cannot do without.
CONFIGURED: dict[str, Any] = {
    "hooks-approval": {"rules": [{"tool": "Bash", "pattern": "rm *", "action": "deny"}]},
    "hooks-logging": {"path": "events.jsonl"},
    "hooks-metrics": {"file": "metrics.prom"},
}


def test_every_built_in_module_can_be_mounted_and_hears_a_session(tmp_path: pathlib.Path) -> None:
    names = [module["name"] for module in builtin_modules()]
    assert len(names) == 15
    hooks = [{"module": name, "config": CONFIGURED.get(name, {})} for name in names]

    async def main() -> Session:
        script = [{"text": "Let me look.", "tools": [{"name": "Bash", "input": {"command": "echo hi"}}]}, "Done."]
        bundle = parse(json.dumps({"hooks": hooks}), tmp_path / "bundle.yaml")
        async with Session(ScriptedProvider(script), workspace=tmp_path, confirm="off", bundle=bundle, config=UNRECORDED) as session:
            assert str(await session.prompt("look around")) == "Done."
            assert {name for names in session.hooks.list_handlers().values() for name in names} == set(names)
            await asyncio.sleep(0)
        assert session.hooks.list_handlers() == {}
        return session

    session = run(main())
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert {"session:start", "tool:pre", "tool:post", "session:end"} <= {line["event"] for line in lines}
    assert session.name


def test_the_bash_guard_asks_in_a_session_before_a_dangerous_command() -> None:
    person = ScriptedApprovals("Deny")

    async def main() -> None:
        bundle = parse("hooks: [{module: hooks-bash-guard}]")
        async with Session(ScriptedProvider([]), workspace=".", confirm="off", bundle=bundle, approval_system=person, config=UNRECORDED) as session:
            assert not (await session.execute_tool("Bash", {"command": "rm -rf /"})).success
            assert (await session.execute_tool("Bash", {"command": "echo hi"})).output == "hi"

    run(main())


def test_a_mistake_is_told_with_its_place() -> None:
    with pytest.raises(ValueError) as raised:
        parse("hooks:\n  - rule: x\n    onn: tool:pre\n    deny: no\n", "my/bundle.yaml")
    assert str(raised.value) == "my/bundle.yaml:3:5: unknown key `onn`; did you mean `on`?\n 3 |     onn: tool:pre\n   |     ^"
    with pytest.raises(ValueError, match=r"nowhere\.yaml: the file cannot be read"):
        load("nowhere.yaml")
    with pytest.raises(ValueError, match=r"^bundle:1:30: `config` of `hooks-cost`: .*`nonsense`"):
        run(mount(HookRegistry(), parse("hooks: [{module: hooks-cost, config: {nonsense: 1}}]")))


def test_hooks_of_one_name_are_doubted() -> None:
    twice = parse("hooks:\n  - module: hooks-approval\n  - module: hooks-approval\n", "b.yaml")
    (doubt,) = twice.doubts()
    assert doubt.startswith("b.yaml:3:5: duplicate hook name `hooks-approval`: ")
    assert parse("hooks:\n  - module: hooks-approval\n  - { module: hooks-approval, name: other }\n").doubts() == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("rule: a, on: 'tool:pre', when: 'tool_name = 1', deny: no", "="),
        ("rule: a, on: 'tool:pre', deny: no, ask: Sure?", "`ask` conflicts with `deny`"),
        ("module: no_such_module_here", "there is no module"),
        ("module: hooks-cost, config: { currencies: 3 }", "currencies"),
        ("http: nowhere, on: 'tool:pre'", "invalid address of hook"),
    ],
)
def test_what_no_hook_can_be_made_of_is_found_by_mount(entry: str, problem: str) -> None:
    bundle = parse(f"hooks:\n  - {{ {entry} }}\n", "b.yaml")
    registry = HookRegistry()
    with pytest.raises(ValueError, match=r"^b\.yaml:2:\d+: ") as raised:
        run(mount(registry, bundle))
    assert problem in str(raised.value)
    assert registry.list_handlers() == {}


# ---- modules of Python ----------------------------------------------------------------------------------------------

MODULE = """
from amplifier_core.models import HookResult

async def mount(coordinator, config):
    async def guard(event, data):
        if config["word"] in data["tool_input"]["command"]:
            return HookResult(action="deny", reason=f"no {config['word']}")
    coordinator.hooks.register("tool:pre", guard, priority=5, name="word-guard")
    def cleanup():
        config["log"].append("gone") if "log" in config else None
    return cleanup
"""


def test_a_module_of_python_is_loaded_from_a_file_beside_the_bundle(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "guard.py").write_text(MODULE)
    (tmp_path / "bundle.yaml").write_text(
        "hooks:\n  - module: ./hooks/guard.py\n    config: { word: sudo }\n  - { rule: last, on: 'tool:pre', deny: anything }\n"
    )

    async def main() -> None:
        registry = HookRegistry()
        mounted = await mount(registry, tmp_path / "bundle.yaml")
        assert registry.list_handlers() == {"tool:pre": ["last", "word-guard"]}
        assert [module.name for module in mounted.modules] == ["guard"]
        await mounted.unmount()
        await mounted.unmount()
        assert registry.list_handlers() == {}

    run(main())


def test_a_module_of_python_is_found_by_its_import_path_and_the_bundle_has_the_last_word(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "word_guard_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    bundle = """
    hooks:
      - { rule: allow-all, on: "tool:pre", message: seen, priority: 3 }
      - { module: word_guard_module, config: { word: sudo }, priority: -5, name: mine, timeout: 2, on_error: deny }
    """

    async def main() -> None:
        ran: list[Any] = []
        parsed = parse(textwrap.dedent(bundle))
        assert (parsed.hooks, parsed.foreign) == (["allow-all", "mine"], ["word_guard_module"])
        async with Session(ScriptedProvider([]), tools=[Tool("Bash", ran.append)], bundle=parsed, config=UNRECORDED) as session:
            assert session.hooks.list_handlers() == {"tool:pre": ["mine", "allow-all"]}
            denied = await session.execute_tool("Bash", {"command": "sudo ls"})
            assert denied.error == "Denied by hook mine: no sudo"
            assert (await session.execute_tool("Bash", {"command": "ls"})).success
            # On a command that is no text the module fails, and the bundle says what that means.
            assert not (await session.execute_tool("Bash", {})).success
        assert ran == [{"command": "ls"}]

    run(main())


def test_a_module_by_its_entry_point(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "entry_guard.py").write_text(MODULE)
    about = tmp_path / "entry_guard-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: entry-guard\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[amplifier.modules]\nhooks-entry-guard = entry_guard:mount\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = emit("hooks: [{module: hooks-entry-guard, config: {word: sudo}}]", "tool:pre", bash("sudo ls"))
    assert result.reason == "no sudo"


def test_a_bundle_is_mounted_around_hooks_and_nothing_else() -> None:
    with pytest.raises(TypeError, match="around a `HookRegistry` or a coordinator; found `dict`"):
        run(mount({}, parse(RULE)))


def test_a_module_that_nobody_has_is_a_mistake_in_the_bundle() -> None:
    async def main(name: str) -> None:
        registry = HookRegistry()
        try:
            await mount(registry, parse(f"hooks:\n  - {{ rule: x, on: 'tool:pre', deny: no }}\n  - module: {name}\n", "b.yaml"))
        finally:
            # None of its hooks stays.
            assert registry.list_handlers() == {}

    with pytest.raises(ValueError, match=r"^b\.yaml:3:5: there is no module `hooks-bash-gard`.*did you mean `hooks-bash-guard`\?\n 3 \|"):
        run(main("hooks-bash-gard"))
    with pytest.raises(ValueError, match=r"^b\.yaml:3:5: module `nothing\.py` cannot be loaded: there is no such file"):
        run(main("nothing.py"))


@pytest.mark.parametrize("setting", ["when: 'true'", "ephemeral: true", "on: tool:pre"])
def test_settings_that_do_not_go_with_a_module_of_python_are_refused(setting: str) -> None:
    with pytest.raises(ValueError, match="applies to built-in modules only|does not apply to modules"):
        parse(f"hooks: [{{module: my_module, {setting}}}]")


# ---- settings of a session ------------------------------------------------------------------------------------------


def test_a_bundle_says_which_model_tools_and_limits_a_session_has(tmp_path: pathlib.Path) -> None:
    (tmp_path / "script.json").write_text('{"answers": [{"text": "From the script."}]}')
    (tmp_path / "bundle.yaml").write_text(
        textwrap.dedent("""
        session: { system: Be brief., mode: deny, injection_size_limit: 3 }
        tools: { only: [Read] }
        providers: [{ provider: scripted, script: script.json }]
        hooks:
          - { rule: ask, on: "tool:pre", ask: Really? }
        """)
    )
    person = ScriptedApprovals("Allow")

    async def main() -> None:
        async with Session(bundle=tmp_path / "bundle.yaml", workspace=tmp_path, confirm="off", approval_system=person, config=UNRECORDED) as session:
            assert session.tools == ["Read"]
            assert str(await session.prompt("hello")) == "From the script."
            assert session.context.get_messages()[0] == {"role": "system", "content": "Be brief."}
            assert not (await session.execute_tool("Read", {"file_path": "script.json"})).success

    run(main())
    assert person.requests == []


def test_what_a_session_and_its_bundle_leave_is_left_and_has_to_be_there(tmp_path: pathlib.Path) -> None:
    async def left(bundle: str, only: list[str]) -> list[str]:
        async with Session(ScriptedProvider([]), bundle=parse(bundle), workspace=tmp_path, confirm="off", only=only, config=UNRECORDED) as session:
            return session.tools

    assert run(left("tools: {only: [Read, Grep]}", ["Grep", "Bash"])) == ["Grep"]
    with pytest.raises(ValueError, match="^unknown tool `Grpe` in `only`; expected one of Bash, Edit"):
        run(left("tools: {only: [Read, Grpe]}", ["Read"]))
    with pytest.raises(ValueError, match="^unknown tool `Baash` in `only`"):
        run(left("tools: {only: [Read]}", ["Read", "Baash"]))


def test_a_bundle_brings_the_tools_of_a_server(tmp_path: pathlib.Path) -> None:
    server = pathlib.Path(__file__).parents[2] / "agent" / "tests" / "mcp" / "server.py"
    bundle = parse(json.dumps({"tools": {"mcp": {"local": {"command": sys.executable, "args": [str(server)]}}}}))

    async def main() -> None:
        async with Session(ScriptedProvider([]), bundle=bundle, confirm="off", config=UNRECORDED) as session:
            assert "mcp__local__echo" in session.tools
            assert (await session.execute_tool("mcp__local__echo", {"text": "hello"})).output == "hello"
            failed = await session.execute_tool("mcp__local__fail")
            assert (failed.success, failed.error) == (False, "Error: the disk is full")
        missing = parse("tools: {mcp: {none: {command: no-such-program-here}}}")
        with pytest.raises(RuntimeError, match="the MCP server `none` cannot be started"):
            await Session(ScriptedProvider([]), bundle=missing, config=UNRECORDED).start()

    run(main())


@pytest.mark.parametrize("confine", [None, False])
def test_a_server_of_tools_may_stand_beside_the_bundle(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, confine: bool | None
) -> None:
    server = pathlib.Path(__file__).parents[2] / "agent" / "tests" / "mcp" / "server.py"
    (tmp_path / "mcp.sh").write_text(f"#!/bin/sh\nexec {sys.executable} {server}\n")
    (tmp_path / "mcp.sh").chmod(0o755)
    (tmp_path / "bundle.yaml").write_text("tools: {mcp: {local: {command: ./mcp.sh}}}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    bundle = load("bundle.yaml")
    monkeypatch.chdir("elsewhere")

    async def main() -> None:
        async with Session(ScriptedProvider([]), bundle=bundle, confirm="off", confine=confine, config=UNRECORDED) as session:
            assert (await session.execute_tool("mcp__local__echo", {"text": "hello"})).output == "hello"
        missing = parse("tools: {mcp: {none: {command: ./no-such-program}}}", tmp_path / "bundle.yaml")
        with pytest.raises(RuntimeError, match=rf"the MCP server `none` cannot be started: `{tmp_path}/no-such-program`: .*[Nn]o such file"):
            await Session(ScriptedProvider([]), bundle=missing, confine=confine, config=UNRECORDED).start()

    run(main())


def test_a_bundle_that_fails_leaves_a_session_that_did_not_start() -> None:
    async def main() -> None:
        hooks = HookRegistry()
        session = Session(ScriptedProvider(["ok"]), hooks=hooks, bundle=parse("hooks: [{module: no_such_module_here}]"), config=UNRECORDED)
        with pytest.raises(ValueError, match="there is no module `no_such_module_here`"):
            await session.prompt("hello")
        assert hooks.list_handlers() == {}

    run(main())


FAILING = """
from typing import Any


def mount(coordinator: Any, config: dict[str, Any]) -> None:
    def fails(event: str, data: dict[str, Any]) -> None:
        raise ValueError("boom")

    coordinator.hooks.register("tool:*", fails, name="fails")
    coordinator.hooks.register("tool:*", fails, name="lax", on_error="continue")
"""


def test_a_failing_hook_of_a_bundle_denies_where_an_operation_waits_for_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    for hook, name in (("module: ./failing.py", "fails"), ('command: "exit 1"\n    on: "tool:*"\n    name: fails', "fails")):
        bundle = f"hooks:\n  - {hook}\n"
        denied = emit(bundle, "tool:pre", bash("ls"), tmp_path)
        assert denied.action == "deny" and str(denied.reason).startswith("the hook failed: "), (name, denied)
        assert emit(bundle, "tool:post", {**bash("ls"), "tool_result": {}}, tmp_path).action == "continue"
        lax = bundle + "    on_error: continue\n"
        assert emit(lax, "tool:pre", bash("ls"), tmp_path).action == "continue"


def test_an_invalid_denial_denies_and_a_value_that_is_no_result_follows_on_error() -> None:
    async def main(answer: Any) -> str:
        registry = HookRegistry()
        registry.register("tool:pre", lambda event, data: answer, name="hook")
        return (await registry.emit("tool:pre", bash("ls"))).action

    for answer in ({"action": "deny", "reson": "x"}, {"action": "explode"}, {"action": "modify"}, {"action": 5}):
        assert run(main(answer)) == "deny", answer
    for answer in ("deny", ["deny"], {"acton": "deny"}, {"action": "continue", "user_message_level": "fatal"}):
        assert run(main(answer)) == "continue", answer


def test_the_display_is_told_once_about_each_cause_of_a_failing_hook() -> None:
    shown: list[tuple[str, str, str]] = []

    class Display:
        def show_message(self, message: str, level: str, source: str) -> None:
            shown.append((level, source, message))

    async def main() -> None:
        registry = HookRegistry()
        causes = iter(["one", "one", "two"])

        def fails(event: str, data: dict[str, Any]) -> None:
            raise ValueError(next(causes))

        registry.register("tool:pre", fails)
        coordinator = SessionCoordinator(registry, display_system=Display())
        for _ in range(3):
            await coordinator.emit("tool:pre", bash("ls"))

    run(main())
    went_on = "the operation went on without this hook"
    assert shown == [("warning", "hook:fails", f"failed at tool:pre: ValueError: {cause}; {went_on}") for cause in ("one", "two")]


def test_a_session_of_a_bundle_needs_an_audit_log_or_says_that_it_keeps_no_record(tmp_path: pathlib.Path) -> None:
    bundle = parse("hooks: []", tmp_path / "bundle.yaml")
    for config in (None, {"injection_size_limit": 10}, {"session": None}):
        with pytest.raises(ValueError, match="needs an audit log"):
            Session(ScriptedProvider([]), bundle=bundle, config=config)
    Session(ScriptedProvider([]), bundle=bundle, config={"session": UNRECORDED})
    Session(ScriptedProvider([]))


def test_a_session_of_a_bundle_denies_what_cannot_be_recorded(tmp_path: pathlib.Path) -> None:
    class Broken:
        def record(self, record: object) -> None:
            raise OSError("the disk is full")

    async def main() -> str:
        bundle = parse("hooks: []", tmp_path / "bundle.yaml")
        session = Session(ScriptedProvider(["Done."]), bundle=bundle, audit=Broken())
        with pytest.raises(Exception, match="the disk is full") as refused:
            await session.start()
        return type(refused.value).__name__

    assert run(main()) == "SessionRefusedError"


def test_a_session_of_a_bundle_takes_no_silence_for_consent(tmp_path: pathlib.Path) -> None:
    asks = "hooks:\n  - { rule: ask, on: tool:pre, ask: Go?, ask_timeout: 0.05, default: allow }\n"

    class Nobody:
        async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:
            await asyncio.sleep(3600)
            return "Allow"

    async def main() -> str:
        tool = Tool("go", lambda input: "done", "Goes.")
        provider = ScriptedProvider([{"tools": [{"name": "go", "input": {}}]}, "Done."])
        bundle = parse(asks, tmp_path / "bundle.yaml")
        async with Session(provider, tools=[tool], bundle=bundle, approval_system=Nobody(), config=UNRECORDED) as session:
            await session.prompt("Go")
            return next(message["content"] for message in session.context.get_messages() if message["role"] == "tool")

    assert "Approval timed out, denied by default" in run(main())
