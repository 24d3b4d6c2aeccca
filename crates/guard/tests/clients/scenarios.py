"""The scenarios: a script for the model, a behavior of the hook, and the outcome that is expected of each agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents import Agent, Workspace
from approver import Approval
from behavior import MARKER, Behavior, answer
from model import Script
from model.turns import CHILD_PROMPT, MAIN_PROMPT
from observation import Observation
from outcomes import (
    CONTEXT,
    OUTPUT,
    REASON,
    REPLACEMENT,
    SECRET,
    allowed_twice,
    child_denied,
    context_told,
    continued,
    denied_with_reason,
    prompt_stopped,
    ran_or_denied,
    redacted,
    rewritten,
    spawn_denied,
    timed_out,
    withheld,
)

# A hook may take this many seconds before the agent ends it.
HOOK_LIMIT = 4
LONGER_THAN_THE_LIMIT = 30

Dialect = Any
Behaviors = dict[str, Behavior]


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    summary: str
    script: Callable[[Agent, Workspace], Script]
    # By moment: `before_tool`, `after_tool`, `prompt_submit`.
    behaviors: Callable[[Agent, Dialect], Behaviors]
    outcome: Callable[[Observation], str]
    # The outcome by agent; `*` is any other.
    expected: dict[str, str]
    needs_mcp: bool = False
    # A program to configure in place of the hook: `missing`, `not executable`.
    program: str = ""
    # A way to break the installed hooks that only one agent knows.
    broken_hooks: str = ""
    # The outcome with our guard where it differs.
    with_guard: str = ""
    # A failure of the guard itself, which the hooks of the tests do not have.
    guard_fault: str = ""
    # A rule asks a user. Only our guard has approvals.
    approval: Approval | None = None
    is_failure: bool = False

    def expected_of(self, agent: Agent) -> str | None:
        """The outcome with the hooks of the tests; `None` if there is nothing to measure."""
        # A plugin of opencode decides itself what a failure means.
        if self.guard_fault or (self.is_failure and agent.name == "opencode"):
            return self.expected.get(agent.name)
        return self.expected.get(agent.name, self.expected.get("*"))


def shell_script(command: str) -> Callable[[Agent, Workspace], Script]:
    return lambda agent, place: Script([agent.shell(command)])


TOUCH = shell_script(f"touch {MARKER}; echo {OUTPUT}")
# The secret is in the output, but not in the command.
SECRET_SCRIPT = shell_script(f"echo {SECRET[:6]}''{SECRET[6:]} # {MARKER}")


def quiet(agent: Agent, dialect: Dialect) -> Behaviors:
    return {}


def denial(agent: Agent, dialect: Dialect) -> Behaviors:
    return {"before_tool": answer(dialect.deny(REASON))}


def before_tool(behavior: Behavior) -> Callable[[Agent, Dialect], Behaviors]:
    return lambda agent, dialect: {"before_tool": behavior}


def with_denial(change: Callable[[str], Behavior]) -> Callable[[Agent, Dialect], Behaviors]:
    """A behavior that is made from the text of a denial."""
    return lambda agent, dialect: {"before_tool": change(json.dumps(dialect.deny(REASON)))}


SCENARIOS = [
    Scenario("allow", "the hook prints nothing: the tool runs", TOUCH, quiet, continued, {"*": "ran"}),
    Scenario("deny", "the hook denies a shell call", TOUCH, denial, denied_with_reason, {"*": "denied, reason told"}),
    Scenario(
        "deny-write",
        "the hook denies a call of the tool that writes files",
        lambda agent, place: Script([agent.write_file(place, MARKER, "text\n")]),
        denial,
        denied_with_reason,
        {"*": "denied, reason told"},
    ),
    Scenario(
        "deny-mcp",
        "the hook denies a call of an MCP tool",
        lambda agent, place: Script([agent.mcp(place.repo / MARKER)]),
        denial,
        denied_with_reason,
        {"*": "denied, reason told"},
        needs_mcp=True,
    ),
    Scenario(
        "deny-child",
        "the hook denies a shell call of a sub-agent",
        lambda agent, place: Script(agent.child(CHILD_PROMPT), [agent.shell(f"touch {MARKER}")]),
        denial,
        child_denied,
        {"*": "denied, reason told"},
    ),
    Scenario(
        "deny-spawn",
        "the hook denies the start of a sub-agent",
        lambda agent, place: Script(agent.child(CHILD_PROMPT), [agent.shell(f"touch {MARKER}")]),
        lambda agent, dialect: {"before_tool": answer(dialect.deny(REASON), when=CHILD_PROMPT)},
        spawn_denied,
        {"*": "denied, reason told"},
    ),
    Scenario(
        "deny-result",
        "the hook denies the result of a call",
        SECRET_SCRIPT,
        lambda agent, dialect: {"after_tool": answer(dialect.deny_result(REASON))},
        withheld,
        {"*": "withheld", "claude": "OPEN", "claude-on-failure": "OPEN"},
        with_guard="withheld",
    ),
    Scenario(
        "deny-prompt",
        "the hook denies the prompt",
        TOUCH,
        lambda agent, dialect: {"prompt_submit": answer(dialect.deny_prompt(REASON), when=MAIN_PROMPT)},
        prompt_stopped,
        {"*": "stopped"},
    ),
    Scenario(
        "rewrite",
        "the hook replaces the input",
        TOUCH,
        lambda agent, dialect: {"before_tool": answer(dialect.rewrite(agent.shell("touch rewritten.txt")))},
        rewritten,
        {"*": "rewritten"},
    ),
    Scenario(
        "context",
        "the hook adds context after the call",
        TOUCH,
        lambda agent, dialect: {"after_tool": answer(dialect.add_context(CONTEXT))},
        context_told,
        {"*": "told"},
    ),
    Scenario(
        "redact",
        "the hook replaces the result",
        SECRET_SCRIPT,
        lambda agent, dialect: {"after_tool": answer(dialect.redact(REPLACEMENT))},
        redacted,
        {"*": "redacted"},
    ),
]


def failure(name: str, summary: str, behaviors: Callable[[Agent, Dialect], Behaviors], program: str = "", **opened: str) -> Scenario:
    """A hook that fails at a gate. `opened` has the agents whose outcome is not `denied`."""
    expected = {key.replace("_", "-"): value for key, value in opened.items()}
    return Scenario(name, summary, TOUCH, behaviors, ran_or_denied, {"*": "denied"} | expected, program=program, is_failure=True)


OPEN = "OPEN"

SCENARIOS += [
    failure("exit-1", "exit code 1", before_tool(Behavior(stderr=REASON, exit=1)), claude=OPEN, codex=OPEN, gemini=OPEN),
    failure("exit-2", "exit code 2 and a reason on stderr", before_tool(Behavior(stderr=REASON, exit=2))),
    failure("exit-2-silent", "exit code 2 without output", before_tool(Behavior(exit=2)), codex=OPEN, gemini=OPEN),
    failure("exit-3", "another exit code, with text", before_tool(Behavior(stderr=REASON, exit=3)), claude=OPEN, codex=OPEN),
    failure("exit-126", "the exit code of a shell that cannot execute a program", before_tool(Behavior(stderr=REASON, exit=126)), claude=OPEN, codex=OPEN),
    failure("missing", "the program is missing", quiet, program="missing", claude=OPEN, codex=OPEN),
    failure("not-executable", "the program is not executable", quiet, program="not executable", claude=OPEN, codex=OPEN),
    failure("killed", "killed by a signal", before_tool(Behavior(signal="SIGKILL")), claude=OPEN, codex=OPEN, gemini=OPEN),
    failure("timeout", "no end before the time limit", before_tool(Behavior(sleep=LONGER_THAN_THE_LIMIT)), claude=OPEN, codex=OPEN, gemini=OPEN, copilot=OPEN),
    failure(
        "timeout-after-deny",
        "a denial, but no end before the time limit",
        with_denial(lambda text: Behavior(stdout=text, sleep=LONGER_THAN_THE_LIMIT)),
        claude=OPEN,
        codex=OPEN,
        gemini=OPEN,
        copilot=OPEN,
    ),
    failure(
        "child-holds-stdout",
        "a denial and the end, but a child keeps the output open",
        with_denial(lambda text: Behavior(stdout=text, hold=LONGER_THAN_THE_LIMIT)),
        codex=OPEN,
        gemini=OPEN,
        copilot=OPEN,
    ),
    failure(
        "broken-json",
        "half of a denial",
        with_denial(lambda text: Behavior(stdout=text[: len(text) // 2])),
        claude=OPEN,
        claude_on_failure=OPEN,
        codex=OPEN,
        gemini=OPEN,
        copilot=OPEN,
    ),
    failure("text", "text that is no JSON", before_tool(Behavior(stdout="no")), claude=OPEN, claude_on_failure=OPEN, codex=OPEN, gemini=OPEN, copilot=OPEN),
    failure(
        "text-around-json",
        "text before and after a denial",
        with_denial(lambda text: Behavior(stdout=f"note\n{text}\nend")),
        claude=OPEN,
        claude_on_failure=OPEN,
        codex=OPEN,
        gemini=OPEN,
        copilot=OPEN,
    ),
    failure(
        "nul",
        "a denial and a NUL character",
        with_denial(lambda text: Behavior(stdout=text + "\0")),
        claude=OPEN,
        claude_on_failure=OPEN,
        codex=OPEN,
        gemini=OPEN,
        copilot=OPEN,
    ),
    failure("unknown-field", "a denial with an unknown field", lambda agent, dialect: {"before_tool": answer(dialect.deny(REASON) | {"extra": 1})}, codex=OPEN),
    failure(
        "unknown-value",
        "a decision that is not known: `DENY`",
        lambda agent, dialect: {"before_tool": answer(agent.unknown_value(dialect.deny(REASON)))},
        claude=OPEN,
        codex=OPEN,
        gemini=OPEN,
        copilot=OPEN,
    ),
    failure("deny-12mb", "a denial of 12 MB", lambda agent, dialect: {"before_tool": answer(dialect.deny(REASON + "x" * 12_000_000))}, copilot=OPEN),
]

SCENARIOS += [
    Scenario("plugin-syntax", "a plugin with a syntax error", TOUCH, denial, ran_or_denied, {"opencode": OPEN}, broken_hooks="syntax error", is_failure=True),
    Scenario(
        "plugin-throws",
        "a plugin that throws while loading",
        TOUCH,
        denial,
        ran_or_denied,
        {"opencode": OPEN},
        broken_hooks="throws while loading",
        is_failure=True,
    ),
]


def guard_repair(name: str, summary: str) -> Scenario:
    """A fault after which the guard decides as before."""
    return Scenario(name, summary, TOUCH, denial, denied_with_reason, {"*": "denied, reason told"}, guard_fault=name)


def guard_fault(name: str, summary: str) -> Scenario:
    return Scenario(name, summary, TOUCH, quiet, ran_or_denied, {"*": "denied"}, guard_fault=name, is_failure=True)


SCENARIOS += [
    guard_fault("guard-exit-1", "the hook program exits with 1"),
    guard_fault("guard-killed", "the hook program is killed by a signal"),
    guard_fault("daemon-missing", "the program of the daemon is missing"),
    guard_fault("daemon-exits", "the daemon exits at once"),
    guard_fault("daemon-closes", "the daemon closes each connection"),
    guard_fault("daemon-garbage", "the daemon answers with garbage"),
    guard_fault("daemon-forged", "something else on the socket allows everything"),
    guard_fault("daemon-hangs", "the daemon is stopped, and never answers"),
    guard_fault("start-missing", "the daemon is killed, and the file for its start is missing"),
    guard_fault("audit-broken", "the daemon starts again, and cannot write the audit log"),
    guard_fault("folder-open", "others can access the folder of the socket"),
    guard_fault("bundle-broken", "the daemon starts again, and cannot load the user's bundle"),
    guard_fault("bundle-edited", "the user's bundle is broken while the daemon runs"),
    # Nothing of ours runs that could deny, except the plugin of opencode; only Claude Code has a setting for it. The real program ends itself before the limit.
    Scenario(
        "guard-hangs",
        "something else than the hook program hangs in its place",
        TOUCH,
        quiet,
        ran_or_denied,
        {"*": OPEN, "claude": "denied", "opencode": "denied"},
        guard_fault="guard-hangs",
    ),
    # Nobody is at a terminal: clients with a dialog deny or end, and the guard denies for the others.
    Scenario(
        "ask-dialog",
        "the hook asks in the dialog of the agent, which has no terminal",
        TOUCH,
        before_tool(answer({"action": "ask_user", "approval_prompt": REASON})),
        ran_or_denied,
        {"*": "denied"},
        guard_fault="ask-dialog",
        is_failure=True,
    ),
    guard_repair("daemon-killed", "the daemon is killed; the hook program starts another one"),
]


def approval(via: str, name: str, summary: str, outcome: Callable[[Observation], str], with_guard: str, calls: int = 1, **more: Any) -> Scenario:
    """A request about a shell call, answered in one of the ways that users have."""

    def script(agent: Agent, place: Workspace) -> Script:
        # A rule is for one command, so that it answers for the next call, too.
        command = f"touch {MARKER}; echo {OUTPUT}" if calls == 1 else f"touch {MARKER}"
        return Script([agent.shell(command)] * calls)

    return Scenario(name, summary, script, quiet, outcome, {}, with_guard=with_guard, approval=Approval(via, **more))


for via, place in (("api", "over the API"), ("page", "in the console"), ("watch", "in `approvals watch`")):
    SCENARIOS += [
        approval(via, f"ask-allow-{via}", f"a user allows {place}", continued, "ran", option="Allow once"),
        approval(via, f"ask-deny-{via}", f"a user denies {place}, with a reason", denied_with_reason, "denied, reason told", option="Deny", reason=REASON),
    ]

SCENARIOS += [
    approval("api", "ask-rule", "a user allows by a rule, and the second call is not asked about", allowed_twice, "allowed twice", calls=2, option="Allow always"),
    approval("watch", "ask-rule-watch", "the same in `approvals watch`", allowed_twice, "allowed twice", calls=2, option="Allow always"),
    approval("nobody", "ask-timeout", "nobody answers; the request ends before the time limit of the agent", timed_out, "denied, time told", limit=3),
]
