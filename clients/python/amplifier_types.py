"""The forms of the API."""

# Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union


class _ActionPreview(TypedDict):
    #: The kind of operation: the name of a tool, `prompt`, `agent`, or an event.
    title: str


class ActionPreview(_ActionPreview, total=False):
    """The effect of an operation, described for the person who is asked before it runs. The code that will run the operation makes it; an operation that nobody describes is shown as data. Terminals, pages and programs only draw it. The texts may hold any characters: whoever draws them makes them safe to show."""

    #: The operation line by line: a command, a diff, a task.
    body: List[PreviewRow]
    #: The file that the preview was compared with, if the operation changes one.
    compared_with: Union[ComparedWith, None]
    #: Further settings of the operation: a time limit, a range.
    fields: List[PreviewField]
    #: The effect in a few words: a new file, the number of lines that are added and removed.
    summary: Union[str, None]
    #: The file, pattern or agent that it is about.
    target: Union[str, None]
    #: `true` if something is left out because it is too large. The first warning says so.
    truncated: bool
    #: Facts that the person has to know before an answer.
    warnings: List[str]


class Actor(TypedDict):
    """The user who did something, and the channel."""

    #: The name that the approval system knows the user by.
    name: str
    #: The channel: `terminal`, `console`, `api`, …
    via: str


class AllReloaded(TypedDict):
    """What came of it."""

    #: What came of it in each.
    results: List[SessionReloaded]
    #: How many sessions are connected.
    sessions: int


class _ApprovalAnswer(TypedDict):
    #: The label of an option.
    label: str


class ApprovalAnswer(_ApprovalAnswer, total=False):
    """The option that an approver chose, and the approver's identity."""

    #: The approver, where known. It is recorded.
    by: Union[Actor, None]


class _ApprovalDecision(TypedDict):
    #: The basis of the decision.
    basis: DecisionBasis
    #: `true` if the operation may run.
    granted: bool
    #: The reason, in words.
    reason: str


class ApprovalDecision(_ApprovalDecision, total=False):
    """The decision on an approval request."""

    #: The approver, where known.
    by: Union[Actor, None]


class ApprovalOption(TypedDict):
    """An answer that is offered, and what it does."""

    #: What it does. The kernel decides by this, never by the label.
    effect: Effect
    #: What the person reads and answers.
    label: str


class _ApprovalReport(TypedDict):
    #: The hook.
    hook: str


class ApprovalReport(_ApprovalReport, total=False):
    """An approval that a hook requested, and the decision."""

    #: `true` if another hook changed the data after this one asked, so that no allow given in advance counted.
    changed_after_asking: bool
    #: The file that the approver was shown a change of.
    compared_with: Union[ComparedWith, None]
    #: The time of the request.
    created_at: Union[str, None]
    #: The time of the decision.
    decided_at: Union[str, None]
    #: The number of the record of the decision.
    decided_seq: Union[int, None]
    #: The decision; missing while the request is open.
    decision: Union[ApprovalDecision, None]
    #: The decision if there is no answer in time.
    default: Union[DefaultDecision, None]
    #: The digest of the operation.
    digest: Union[str, None]
    #: `true` if the approval is requested only when no other hook requests one.
    fallback: bool
    #: The id of the request, `SESSION.RUN.N`; missing if nobody was asked.
    id: Union[str, None]
    #: The answers that came when the request was no longer open.
    late_answers: List[ApprovalAnswer]
    #: The options of the approver.
    options: List[ApprovalOption]
    #: The question.
    prompt: Union[str, None]
    #: The time limit in seconds.
    timeout_s: Union[float, None]
    #: The time from the request to the decision, in milliseconds.
    waited_ms: Union[int, None]


class _ApprovalRequest(TypedDict):
    #: The time of the request.
    created_at: str
    #: The decision when the time is up.
    default: DefaultDecision
    #: The digest of the data that will run.
    digest: str
    #: The event at which it asks.
    event: str
    #: The hook that asks.
    hook: str
    #: The number of the request in its session. Sub-agents count with the session that they work for.
    number: int
    #: The possible answers.
    options: List[ApprovalOption]
    #: The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it, and nothing is run if the file has another one by then.
    preview: ActionPreview
    #: The text of the request.
    prompt: str
    #: The time that the kernel waits for an answer, in seconds.
    timeout_s: float


class ApprovalRequest(_ApprovalRequest, total=False):
    """A hook's request to a user to allow an operation."""

    #: The reason that the hook gives.
    reason: Union[str, None]
    #: The kernel's own warning to the approver.
    warning: Union[str, None]


class _ApprovalRule(TypedDict):
    #: The answer.
    decision: DefaultDecision
    #: The hook whose requests the rule answers.
    hook: str
    #: The prompts; `*` stands for any text.
    pattern: str
    #: The sessions that the rule is for.
    scope: RuleScope


class ApprovalRule(_ApprovalRule, total=False):
    """An answer given in advance: for a session, a project or a user."""

    #: The user who gave it, where known.
    by: Union[Actor, None]
    #: The time at which it was given, where known.
    created_at: Union[str, None]
    #: The event of the request that the answer was given to. The pattern is then its exact prompt.
    event: Union[str, None]
    #: The folder, if the scope is a project.
    project: Union[str, None]
    #: The session, if the scope is one.
    session: Union[str, None]


class _AuditStatus(TypedDict):
    #: What it cannot prove.
    cannot_prove: List[str]
    #: Whether it is being verified.
    checking: bool
    #: How many records are newer than the last checkpoint that is kept elsewhere; all if none is.
    exposed: int
    #: The id of the log.
    log: str
    #: What is wrong.
    problems: List[Problem]
    #: What verifying proves.
    proves: List[str]
    #: How many records there are.
    size: int
    #: Whether nothing is wrong with them.
    sound: bool
    #: Every record below this number is verified.
    verified_to: int


class AuditStatus(_AuditStatus, total=False):
    """What is proven about the audit log."""

    #: The last checkpoint.
    checkpoint: Union[CheckpointSeen, None]


class Browser(TypedDict):
    """A browser that is in."""

    #: The name that its answers are recorded under.
    name: str
    #: What it may do.
    role: Role
    #: When it last asked for something.
    seen: str
    #: When it came in.
    since: str


class Browsers(TypedDict):
    """The browsers that are in."""

    #: They.
    browsers: List[Browser]


class Busy(TypedDict):
    """Too many questions in a short time."""

    #: How many were asked.
    asked: int
    #: By which hook.
    hook: str
    #: A rule that would answer them.
    pattern: str
    #: In how many seconds.
    seconds: int


class CheckpointSeen(TypedDict):
    """A signed checkpoint."""

    #: When it was signed.
    at: str
    #: How many records it covers.
    size: int


class ComparedWith(TypedDict):
    """The file that a preview was compared with."""

    #: The path, with links followed.
    path: str
    #: The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace.
    version: str


class _DecidedApproval(TypedDict):
    #: The basis of the decision.
    basis: DecisionBasis
    #: The time of the decision.
    decided_at: str
    #: The event at which it asked.
    event: str
    #: `true` if the operation may run.
    granted: bool
    #: The hook that asked.
    hook: str
    #: The text of the request.
    prompt: str
    #: The reason, in words.
    reason: str
    #: The session.
    session: str


class DecidedApproval(_DecidedApproval, total=False):
    """An approval request that was decided."""

    #: The approver, where known.
    by: Union[Actor, None]
    #: The time of the request.
    created_at: Union[str, None]
    #: `SESSION.RUN.NUMBER`; missing if no approver had to be asked.
    id: Union[str, None]
    #: The number of the record of the decision; 0 if it is not read yet.
    seq: int


class Decisions(TypedDict):
    """Decisions."""

    #: They, the newest first.
    decisions: List[DecidedApproval]


class _DryRun(TypedDict):
    #: The event.
    event: str


class DryRun(_DryRun, total=False):
    """An event whose outcome is to be tried. Approvals are not requested, and nothing runs but the hooks."""

    #: A bundle as text, whose hooks alone are tried.
    bundle: Union[str, None]
    #: Its data.
    data: Dict[str, Any]
    #: The folder whose hooks are tried, as a session there would have them; the server's own if missing.
    workspace: Union[str, None]


class _DryRunReport(TypedDict):
    #: The approvals that hooks requested.
    approvals: List[ApprovalReport]
    #: The state of the data.
    data_status: DataStatus
    #: The event.
    event: str
    #: The parts of the system that failed.
    failures: List[FailureReport]
    #: The hooks that were called, in running order.
    hooks: List[HookReport]
    #: The texts for the agent.
    injections: List[InjectionReport]
    #: The messages for the user.
    messages: List[MessageReport]
    #: The output of hooks, as far as they did not suppress it. It is not recorded.
    outputs: List[OutputReport]
    #: The number of further records of the emission whose content is erased or withheld.
    unreadable: int


class DryRunReport(_DryRunReport, total=False):
    """The report of an event that was tried."""

    #: The data as the hooks left it; missing if it was erased or withheld.
    data: Union[Dict[str, Any], None]
    #: The decision of the hooks; missing if it was erased.
    decision: Union[DecisionKind, None]
    #: The hook that denied the event.
    denied_by: Union[str, None]
    #: The operation that may begin after the event.
    intent: Union[IntentReport, None]
    #: The reason of the denial.
    reason: Union[str, None]
    #: The result of the operation that ended before the event.
    result: Union[OperationResult, None]
    #: The reason why hooks of a project may be missing: it is not trusted.
    warning: Union[str, None]


class _EmissionReport(TypedDict):
    #: The approvals that hooks requested.
    approvals: List[ApprovalReport]
    #: The state of the data.
    data_status: DataStatus
    #: The event.
    event: str
    #: The parts of the system that failed.
    failures: List[FailureReport]
    #: The hooks that were called, in running order.
    hooks: List[HookReport]
    #: The texts for the agent.
    injections: List[InjectionReport]
    #: The messages for the user.
    messages: List[MessageReport]
    #: The output of hooks, as far as they did not suppress it. It is not recorded.
    outputs: List[OutputReport]
    #: The number of further records of the emission whose content is erased or withheld.
    unreadable: int


class EmissionReport(_EmissionReport, total=False):
    """The outcome of an emission as JSON, built from the outcome itself or from the records of a log. A field that the source does not know is missing."""

    #: The data as the hooks left it; missing if it was erased or withheld.
    data: Union[Dict[str, Any], None]
    #: The decision of the hooks; missing if it was erased.
    decision: Union[DecisionKind, None]
    #: The hook that denied the event.
    denied_by: Union[str, None]
    #: The operation that may begin after the event.
    intent: Union[IntentReport, None]
    #: The reason of the denial.
    reason: Union[str, None]
    #: The result of the operation that ended before the event.
    result: Union[OperationResult, None]


class Ended(TypedDict):
    """How many browsers are out now."""

    #: So many.
    ended: int


class _Explained(TypedDict):
    #: A word for programs.
    code: str
    #: What is wrong, and what to do.
    message: str


class Explained(_Explained, total=False):
    """What went wrong."""

    #: Who was faster, if somebody else has answered.
    by: Union[Actor, None]


class Failure(TypedDict):
    """Something went wrong."""

    #: What.
    error: Explained


class FailureReport(TypedDict):
    """A part of the system that failed."""

    #: The error.
    error: str
    #: The part.
    part: str


class _Given(TypedDict):
    #: The nonce of the question.
    nonce: str
    #: The label of an option.
    option: str


class Given(_Given, total=False):
    """An answer."""

    #: For what it holds.
    scope: AnswerScope


class Health(TypedDict):
    """That the server works."""

    #: `ok`.
    status: str
    #: The version of the server.
    version: str


class _HookReport(TypedDict):
    #: The action, or the kind of failure.
    answer: ActionKind
    #: The time that it took, in nanoseconds.
    duration_ns: int
    #: The hook.
    hook: str


class HookReport(_HookReport, total=False):
    """The answer of a hook, or its failure."""

    #: The error of a hook that failed.
    error: Union[str, None]
    #: The reason that it gave.
    reason: Union[str, None]
    #: `true` if it kept its output out of the transcript.
    suppressed_output: bool


class HookStats(TypedDict):
    """What a hook has done so far."""

    #: How often it asked a person.
    asks: int
    #: How often it was called.
    calls: int
    #: How often it denied.
    denials: int
    #: How often it failed.
    errors: int
    #: The events at which it was called.
    events: List[str]
    #: Its name.
    hook: str
    #: How often it told the agent something.
    injects: int
    #: How many calls took up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts.
    latency: List[int]
    #: The slowest call.
    max_ns: int
    #: How often it changed data.
    modifies: int
    #: Half of the calls were as fast as that, in nanoseconds.
    p50_ns: int
    #: 95 of 100 calls were as fast as that.
    p95_ns: int
    #: Calls in each of the last 30 minutes, the oldest first.
    recent: List[int]


class HooksOf(TypedDict):
    """The hooks of a session."""

    #: They, in running order.
    hooks: List[Dict[str, Any]]


class HooksSeen(TypedDict):
    """Hooks, by name."""

    #: What each has done so far.
    hooks: List[HookStats]


class _InjectionReport(TypedDict):
    #: The size of the text.
    bytes: int
    #: The hook.
    hook: str
    #: The place in the conversation.
    placement: Placement
    #: The role of the message.
    role: MessageRole
    #: The text.
    text: str


class InjectionReport(_InjectionReport, total=False):
    """A text that a hook adds to the conversation of the agent."""

    #: The status; missing if no session applied its limits.
    status: Union[InjectionStatus, None]
    #: The number of tokens of the text; missing if it was not counted.
    tokens: Union[int, None]


class _IntentReport(TypedDict):
    #: The number of its record.
    seq: int
    #: `true` if the log has no result of it: it runs, or it is unknown how it ended.
    unresolved: bool


class IntentReport(_IntentReport, total=False):
    """A gated operation that may begin."""

    #: The digest of the operation; missing if the data is too deep to have one.
    digest: Union[str, None]
    #: The call that it is paired with its result by.
    tool_call_id: Union[str, None]


class Link(TypedDict):
    """A link that lets one browser in, once."""

    #: Until when.
    expires_at: str
    #: To be opened in a browser.
    url: str


class LinkWanted(TypedDict):
    """A link that is wanted."""

    #: The name that answers given through it are recorded under.
    name: str
    #: What it allows: `viewer`, `approver`, `admin`.
    role: str


class _LogRecord(TypedDict):
    #: When.
    at: str
    #: What it says.
    body: Any
    #: Its hash, in hexadecimal.
    hash: str
    #: What kind of record it is.
    kind: str
    #: Its number: the cursor of streams.
    seq: int
    #: Who wrote it.
    writer: str


class LogRecord(_LogRecord, total=False):
    """One record of the audit log."""

    #: At which event.
    event: Union[str, None]
    #: In which session.
    session: Union[str, None]
    #: In which turn of it.
    turn: Union[int, None]


class Me(TypedDict):
    """Who is asking the server."""

    #: The name.
    name: str
    #: What they may do: `viewer`, `approver`, `admin`.
    role: str


class _MessageReport(TypedDict):
    #: The urgency.
    level: MessageLevel
    #: The source: `hook:NAME`, or a part of the system.
    source: str
    #: The text.
    text: str


class MessageReport(_MessageReport, total=False):
    """A message for the user."""

    #: `true` if there was a display to show it; missing if no session had to.
    shown: Union[bool, None]


class NewSession(TypedDict, total=False):
    """A session that is to be."""

    #: What it works on first.
    prompt: Union[str, None]
    #: The folder that it works in; that of the server unless given.
    workspace: Union[str, None]


class _OpenApproval(TypedDict):
    #: The time of the request.
    created_at: str
    #: The time at which the kernel stops waiting.
    deadline: str
    #: The decision when the time is up.
    default: DefaultDecision
    #: The digest of the data that will run.
    digest: str
    #: The event at which it asks.
    event: str
    #: The hook that asks.
    hook: str
    #: `SESSION.RUN.NUMBER`.
    id: str
    #: The number of the request in its session. Sub-agents count with the session that they work for.
    number: int
    #: The possible answers.
    options: List[ApprovalOption]
    #: The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it, and nothing is run if the file has another one by then.
    preview: ActionPreview
    #: The text of the request.
    prompt: str
    #: The session that asks.
    session: str
    #: The time that the kernel waits for an answer, in seconds.
    timeout_s: float
    #: The folder that the session works in.
    workspace: str


class OpenApproval(_OpenApproval, total=False):
    """An approval request that waits for an answer, and the session that made it."""

    #: Returned with the answer, so that only what was shown can be answered. Empty for viewers, who cannot answer, and on the link: the server makes it.
    nonce: str
    #: If the session is a sub-agent: the connected session that it works for.
    parent_session: Union[str, None]
    #: The reason that the hook gives.
    reason: Union[str, None]
    #: The name of the session.
    session_name: Union[str, None]
    #: `true` if the lines of the preview are left out here, because there are many: `GET /api/approvals/{id}` has them.
    truncated: bool
    #: The kernel's own warning to the approver.
    warning: Union[str, None]


class OperationResult(TypedDict, total=False):
    """A gated operation that has ended."""

    #: `true` if it succeeded, where that is known.
    success: Union[bool, None]
    #: The call that it is paired with its intent by.
    tool_call_id: Union[str, None]


class OutputReport(TypedDict):
    """The output of a hook."""

    #: The hook.
    hook: str
    #: The text.
    text: str


class Page(TypedDict):
    """Some records, and where to go on."""

    #: What to ask for next: records from this number on, or before it if `before` was asked for. There may be more even if there are fewer here than were asked for.
    cursor: int
    #: The number of the first record that is still there.
    first: int
    #: The records, the oldest first.
    records: List[LogRecord]


class _Pending(TypedDict):
    #: The questions, the oldest first, and long ones without the lines of their actions.
    approvals: List[OpenApproval]
    #: How many there are, listed or not.
    pending: int


class Pending(_Pending, total=False):
    """What waits for an answer."""

    #: Whether there are too many in a short time.
    busy: Union[Busy, None]


class PreviewField(TypedDict):
    """A named value of a preview."""

    #: The name.
    name: str
    #: The value as JSON.
    value: str


class _PreviewRow(TypedDict):
    #: The kind of line.
    kind: PreviewRowKind
    #: The text, without its line feed.
    text: str


class PreviewRow(_PreviewRow, total=False):
    """One line of a preview."""

    #: Its line number after the change.
    new: Union[int, None]
    #: Its line number before the change.
    old: Union[int, None]


class _Problem(TypedDict):
    #: What.
    text: str


class Problem(_Problem, total=False):
    """Something that is wrong with the audit log."""

    #: At which record, where that is known.
    seq: Union[int, None]


class Prompt(TypedDict):
    """A prompt."""

    #: It.
    text: str


class Proof(TypedDict):
    """A proof that the server knows the key of a browser."""

    #: It.
    proof: str


class _RecordedEmission(TypedDict):
    #: The approvals that hooks requested.
    approvals: List[ApprovalReport]
    #: The state of the data.
    data_status: DataStatus
    #: The event.
    event: str
    #: The parts of the system that failed.
    failures: List[FailureReport]
    #: The hooks that were called, in running order.
    hooks: List[HookReport]
    #: The texts for the agent.
    injections: List[InjectionReport]
    #: The messages for the user.
    messages: List[MessageReport]
    #: The output of hooks, as far as they did not suppress it. It is not recorded.
    outputs: List[OutputReport]
    #: The run of the session.
    run: str
    #: The number of its first record.
    seq: int
    #: The time of that record.
    time: str
    #: The number of further records of the emission whose content is erased or withheld.
    unreadable: int


class RecordedEmission(_RecordedEmission, total=False):
    """The report of an emission that is in a log."""

    #: The data as the hooks left it; missing if it was erased or withheld.
    data: Union[Dict[str, Any], None]
    #: The decision of the hooks; missing if it was erased.
    decision: Union[DecisionKind, None]
    #: The hook that denied the event.
    denied_by: Union[str, None]
    #: The operation that may begin after the event.
    intent: Union[IntentReport, None]
    #: The reason of the denial.
    reason: Union[str, None]
    #: The result of the operation that ended before the event.
    result: Union[OperationResult, None]
    #: The session.
    session: Union[str, None]
    #: The turn of the session.
    turn: Union[int, None]


class _ReloadResult(TypedDict):
    #: The outcome.
    result: ReloadStatus


class ReloadResult(_ReloadResult, total=False):
    """The result of a reload of the bundles of a session."""

    #: The problem, or what to do about it.
    message: Union[str, None]


class _Rule(TypedDict):
    #: The answer.
    decision: DefaultDecision
    #: The requests that it answers, in a sentence.
    explanation: str
    #: The hook whose requests the rule answers.
    hook: str
    #: Identifies the rule when it is revoked.
    id: str
    #: The prompts; `*` stands for any text.
    pattern: str
    #: The sessions that the rule is for.
    scope: RuleScope


class Rule(_Rule, total=False):
    """An approval rule as the API lists it."""

    #: The user who gave it, where known.
    by: Union[Actor, None]
    #: The time at which it was given, where known.
    created_at: Union[str, None]
    #: The event of the request that the answer was given to. The pattern is then its exact prompt.
    event: Union[str, None]
    #: The folder, if the scope is a project.
    project: Union[str, None]
    #: The session, if the scope is one.
    session: Union[str, None]


class Rules(TypedDict):
    """Standing answers."""

    #: They.
    rules: List[Rule]
    #: The files that cannot be read, so that what stands in them is missing here. While that is so, none of them allows anything.
    unreadable: List[UnreadableFile]


class _Session(TypedDict):
    #: Whether it is connected, so that it can be answered, stopped and prompted from here.
    connected: bool
    #: How many operations were denied.
    denials: int
    #: How many hooks failed.
    errors: int
    #: Its id.
    id: str
    #: How many questions are open.
    pending: int
    #: When it was first heard of.
    started_at: str
    #: What it does at the moment.
    state: State
    #: Whether it takes prompts from here.
    takes_prompts: bool
    #: How many tokens were used.
    tokens: int
    #: How many tools were called.
    tool_calls: int
    #: How many turns it has had.
    turns: int
    #: When it was last heard of.
    updated_at: str


class Session(_Session, total=False):
    """A session, as far as it is known."""

    #: Why it ended, if it has.
    ended: Union[str, None]
    #: The name that a hook or a person gave it.
    name: Union[str, None]
    #: The session that delegated to it.
    parent: Union[str, None]
    #: The process that it runs in, if it is connected.
    pid: Union[int, None]
    #: The last prompt, or its beginning.
    prompt: Union[str, None]
    #: Where it runs, if it is connected.
    runs_in: Union[Place, None]
    #: The folder that it works in.
    workspace: Union[str, None]


class _SessionReloaded(TypedDict):
    #: The outcome.
    result: ReloadStatus
    #: Which.
    session: str


class SessionReloaded(_SessionReloaded, total=False):
    """What came of it in one session."""

    #: The problem, or what to do about it.
    message: Union[str, None]


class Sessions(TypedDict):
    """Sessions."""

    #: They, the newest first.
    sessions: List[Session]


class TestBody(TypedDict, total=False):
    """Which bundle is tested."""

    #: The bundle as text; that of the server's folder if none is given.
    bundle: Union[str, None]


class Timeline(TypedDict):
    """The course of a session."""

    #: Where to go on. Fewer items than were asked for are all there are; those of them that may still change come again, and one with the same `seq` takes the place of the one before.
    cursor: int
    #: What happened, the oldest first.
    items: List[TimelineItem]


class _TimelineItem(TypedDict):
    #: The approvals that hooks requested.
    approvals: List[ApprovalReport]
    #: The state of the data.
    data_status: DataStatus
    #: `true` if the operation does not run: a hook denied it, or an approval was denied.
    denied: bool
    #: The event.
    event: str
    #: The parts of the system that failed.
    failures: List[FailureReport]
    #: The hooks that were called, in running order.
    hooks: List[HookReport]
    #: The texts for the agent.
    injections: List[InjectionReport]
    #: `event`, or the kind of a record that belongs to no emission: `seal`, `gap`. Its kind stands in `event`, too, and its body in `data`.
    kind: str
    #: The messages for the user.
    messages: List[MessageReport]
    #: The output of hooks, as far as they did not suppress it. It is not recorded.
    outputs: List[OutputReport]
    #: The run of the session.
    run: str
    #: The number of its first record.
    seq: int
    #: The time of that record.
    time: str
    #: `true` if long texts or lists are shortened.
    truncated: bool
    #: The number of further records of the emission whose content is erased or withheld.
    unreadable: int


class TimelineItem(_TimelineItem, total=False):
    """An event of a session with the report of its emission, or a record that belongs to none."""

    #: The data as the hooks left it; missing if it was erased or withheld.
    data: Union[Dict[str, Any], None]
    #: The decision of the hooks; missing if it was erased.
    decision: Union[DecisionKind, None]
    #: The hook that denied the event.
    denied_by: Union[str, None]
    #: The operation that may begin after the event.
    intent: Union[IntentReport, None]
    #: The reason of the denial.
    reason: Union[str, None]
    #: The result of the operation that ended before the event.
    result: Union[OperationResult, None]
    #: The session.
    session: Union[str, None]
    #: The turn of the session.
    turn: Union[int, None]


class UnreadableFile(TypedDict):
    """A file of approval rules that cannot be read."""

    #: The file, or the folder that it should be in.
    file: str
    #: The reason.
    reason: str


class _Wanted(TypedDict):
    #: What it answers.
    decision: DefaultDecision
    #: The hook whose questions it answers.
    hook: str
    #: The questions: `*` stands for any text.
    pattern: str
    #: For what it holds.
    scope: RuleScope


class Wanted(_Wanted, total=False):
    """A standing answer that is to be."""

    #: The folder, if it holds for one.
    project: Union[str, None]
    #: The session, if it holds for one.
    session: Union[str, None]


#: The action of a hook without its payload, or the kind of its failure.
ActionKind = Literal["continue", "respond", "deny", "modify", "inject_context", "ask_user", "failed", "panicked", "timed_out", "unreadable"]


#: The requests that an answer is for.
AnswerScope = Literal["once", "project"]


#: The state of the data of an event.
DataStatus = Literal["whole", "redacted", "erased", "withheld"]


#: The basis of a decision.
DecisionBasis = Literal["answer", "rule", "remembered", "timeout", "not_offered", "no_system", "failed", "cancelled", "disconnected"]


#: The decision of an emission, in a word.
DecisionKind = Literal["continue", "modify", "inject_context", "ask_user", "deny", "cancelled"]


#: An answer that counts without an approver: after the time limit, or by a rule.
DefaultDecision = Literal["allow", "deny"]


#: The effect of an option.
Effect = Literal["allow_once", "allow_always", "deny", "deny_always"]


#: The status of an injection after the session's limits were applied.
InjectionStatus = Literal["injected", "over_budget", "truncated", "dropped", "refused", "no_context"]


#: How urgent a message is.
MessageLevel = Literal["info", "warning", "error"]


#: As whom a message speaks.
MessageRole = Literal["system", "user", "assistant"]


#: Nothing.
Nothing = Dict[str, Any]


#: Where a session runs.
Place = Literal["server", "process"]


#: Where an injection lands, and how long it stays.
Placement = Literal["history", "next_call", "last_tool_result"]


#: The kind of a line of a preview.
PreviewRowKind = Literal["plain", "context", "added", "removed", "gap", "note"]


#: A question: open, or decided.
Question = Union[OpenApproval, DecidedApproval]


#: Nothing has to be said.
ReloadBody = Dict[str, Any]


#: The outcome of a reload.
ReloadStatus = Literal["unchanged", "changed", "refused", "not_trusted", "no_answer"]


#: What somebody may do. Each role may do what those before it may.
Role = Literal["viewer", "approver", "admin"]


#: The sessions that a rule is for.
RuleScope = Literal["session", "project", "user"]


#: What a session does.
State = Literal["running", "waiting", "idle", "away", "ended", "gone"]


class _StreamMessageHello(TypedDict):
    #: The questions that are open, the oldest first; not all if there are very many.
    approvals: List[OpenApproval]
    #: What is proven about the audit log.
    audit: AuditStatus
    #: The number of the first record that will come.
    cursor: int
    #: How many sessions there are.
    known: int
    #: Who the server takes the client for.
    me: Me
    #: The time at the server.
    now: str
    #: How many questions are open.
    pending: int
    #: The sessions last heard of, and all that are not over.
    sessions: List[Session]
    type: Literal["hello"]


class StreamMessageHello(_StreamMessageHello, total=False):
    """How things are."""

    #: Whether there are too many.
    busy: Union[Busy, None]


class StreamMessageSession(TypedDict):
    """Something about a session has changed."""

    #: How it is now.
    session: Session
    type: Literal["session"]


class StreamMessageApprovalrequested(TypedDict):
    """An approval request is open."""

    #: The request.
    approval: OpenApproval
    type: Literal["approval_requested"]


class StreamMessageApprovalclosed(TypedDict):
    """An approval request is closed."""

    #: The decision.
    decided: DecidedApproval
    #: Its id.
    id: str
    type: Literal["approval_closed"]


class _StreamMessageApprovalflood(TypedDict):
    type: Literal["approval_flood"]


class StreamMessageApprovalflood(_StreamMessageApprovalflood, total=False):
    """There are too many approval requests, or no longer."""

    #: How many; none if there are not too many any more.
    busy: Union[Busy, None]


class StreamMessageRules(TypedDict):
    """The standing answers have changed."""

    type: Literal["rules"]


class StreamMessageAudit(TypedDict):
    """What is proven about the audit log has changed."""

    #: What is proven.
    audit: AuditStatus
    type: Literal["audit"]


class _StreamMessageAnswered(TypedDict):
    #: Of the answer to which question.
    id: str
    #: Whether it counts.
    ok: bool
    type: Literal["answered"]


class StreamMessageAnswered(_StreamMessageAnswered, total=False):
    """What became of an answer."""

    #: Why not.
    error: Union[Explained, None]


class StreamMessageRecords(TypedDict):
    """New records of the audit log."""

    #: The number of the next record.
    cursor: int
    #: The records, the oldest first.
    records: List[LogRecord]
    type: Literal["records"]


#: What the server sends.
StreamMessage = Union[StreamMessageHello, StreamMessageSession, StreamMessageApprovalrequested, StreamMessageApprovalclosed, StreamMessageApprovalflood, StreamMessageRules, StreamMessageAudit, StreamMessageAnswered, StreamMessageRecords]


#: Nothing has to be said.
VerifyBody = Dict[str, Any]
