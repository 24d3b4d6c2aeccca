"""The forms of the API."""

# Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union


class _ActionPreview(TypedDict):
    #: The kind of operation: the name of a tool, `prompt`, `agent`, or an event.
    title: str


class ActionPreview(_ActionPreview, total=False):
    """The effect of an operation, described for the approver before it runs. The code that will run the operation makes it; other operations are shown as data. Terminals, pages and programs only draw it. The texts may contain any characters: the drawing code must escape them."""

    #: The operation line by line: a command, a diff, a task.
    body: List[PreviewRow]
    #: The file that the preview was compared with, if the operation changes one.
    compared_with: Union[ComparedWith, None]
    #: Further settings of the operation: a time limit, a range.
    fields: List[PreviewField]
    #: The effect in a few words: a new file, the number of lines that are added and removed.
    summary: Union[str, None]
    #: The file, pattern or agent.
    target: Union[str, None]
    #: `true` if a part is left out because it is too large. The first warning says so.
    truncated: bool
    #: Warnings that the approver must read before the answer.
    warnings: List[str]


class Activity(TypedDict):
    """The activity of the last hours."""

    #: Costs in these hours by currency, as far as prices are known.
    costs: List[Cost]
    #: Denials in these hours by hook, the most first.
    denials_by_hook: List[HookDenials]
    #: The hours, the oldest first; the last one is not over.
    hours: List[ActivityHour]


class ActivityCounts(TypedDict):
    """Counts of a period."""

    #: Number of denied operations.
    denials: int
    #: Number of sessions that ended after an error.
    failed_sessions: int
    #: Number of failed hook calls.
    hook_errors: int
    #: Number of prompts.
    prompts: int
    #: Number of started sessions.
    sessions: int
    #: Number of tokens used.
    tokens: int
    #: Number of tool calls.
    tool_calls: int


class ActivityHour(TypedDict):
    """The counts of one hour."""

    #: Beginning of the hour.
    at: str
    #: Costs by currency, as far as prices are known.
    costs: List[Cost]
    #: Number of denied operations.
    denials: int
    #: Number of sessions that ended after an error.
    failed_sessions: int
    #: Number of failed hook calls.
    hook_errors: int
    #: Number of prompts.
    prompts: int
    #: Number of started sessions.
    sessions: int
    #: Number of tokens used.
    tokens: int
    #: Number of tool calls.
    tool_calls: int


class Actor(TypedDict):
    """The user who did something, and the channel."""

    #: The name that the approval system knows the user by.
    name: str
    #: The channel: `terminal`, `console`, `api`, …
    via: str


class _AnswerBody(TypedDict):
    #: Nonce of the request.
    nonce: str
    #: Label of the chosen option.
    option: str


class AnswerBody(_AnswerBody, total=False):
    """An answer to an approval request."""

    #: Reason for a denial, which the model reads; at most 2,000 characters. No effect if the option allows.
    reason: Union[str, None]
    #: One of the request's `offers`, with an option that always allows: `operations` and `scope` as offered.
    rule: Union[ChosenRule, None]
    #: Scope of the answer.
    scope: AnswerScope


class _AnswerForm(TypedDict):
    #: The answer.
    answer: LinkAnswer
    #: Secret of the link.
    code: str
    #: Digest of the request that the page showed.
    digest: str
    #: Nonce of the request that the page showed.
    nonce: str


class AnswerForm(_AnswerForm, total=False):
    """The form of an answer link's page."""

    #: Reason for a denial, which the model reads.
    reason: str


class _ApprovalAnswer(TypedDict):
    #: The label of an option.
    label: str


class ApprovalAnswer(_ApprovalAnswer, total=False):
    """The option that an approver chose, and the approver's identity."""

    #: The approver, where known. It is recorded.
    by: Union[Actor, None]
    #: The approver's reason for a denial, which the model reads: at most [`MAX_REASON_CHARS`](Self::MAX_REASON_CHARS) characters. No effect if the option allows.
    reason: Union[str, None]
    #: One of the offered rules. Only an option that always allows can create one.
    rule: Union[ChosenRule, None]


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
    #: The operations of the rules that decided, or of the rule that the approver created.
    operations: List[str]
    #: The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it.
    rule: Union[str, None]
    #: The scope of the rule that the approver created.
    scope: Union[RuleScope, None]


class ApprovalFlood(TypedDict):
    """A report about too many approval requests in a short time."""

    #: Number of requests.
    asked: int
    #: The hook.
    hook: str
    #: Pattern of a rule that would answer them.
    pattern: str
    #: Period in seconds.
    seconds: int


class ApprovalOption(TypedDict):
    """A possible answer, with its effect."""

    #: The effect. The kernel decides by the effect, never by the label.
    effect: Effect
    #: The text of the option.
    label: str


class _ApprovalReport(TypedDict):
    #: The hook.
    hook: str


class ApprovalReport(_ApprovalReport, total=False):
    """An approval that a hook requested, and the decision."""

    #: `true` if another hook changed the data after the request, so that no allow given in advance counted.
    changed_after_asking: bool
    #: The file whose change the approver was shown.
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
    #: The id of the request, `SESSION.RUN.N`; missing if the decision needed no request.
    id: Union[str, None]
    #: The answers that arrived after the request was closed.
    late_answers: List[ApprovalAnswer]
    #: The options of the approver.
    options: List[ApprovalOption]
    #: The prompt of the request.
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
    #: The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version; the operation does not run if the file has changed since.
    preview: ActionPreview
    #: The text of the request.
    prompt: str
    #: The time that the kernel waits for an answer, in seconds.
    timeout_s: float


class ApprovalRequest(_ApprovalRequest, total=False):
    """A hook's request to a user to allow an operation."""

    #: The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them.
    offers: List[RuleOffer]
    #: The reason that the hook gives.
    reason: Union[str, None]
    #: The kernel's own warning to the approver.
    warning: Union[str, None]


class _ApprovalRule(TypedDict):
    #: The answer.
    decision: DefaultDecision
    #: The hook whose requests the rule answers.
    hook: str
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
    #: The operation, by the name that its description has: `write src/**`. It is compared letter by letter.
    operation: Union[str, None]
    #: The prompts; `*` stands for any text. Empty if the rule is about an operation.
    pattern: str
    #: The folder, if the scope is a project.
    project: Union[str, None]
    #: The session, if the scope is one.
    session: Union[str, None]


class ApprovalRules(TypedDict):
    """Approval rules, and rule files that could not be read."""

    #: The rules.
    rules: List[ListedRule]
    #: Files that cannot be read. While there are some, no rule allows anything.
    unreadable: List[UnreadableFile]


class _AuditStatus(TypedDict):
    #: Properties that it cannot prove.
    cannot_prove: List[str]
    #: `true` while a verification runs.
    checking: bool
    #: Number of records since the last anchored checkpoint; all records without one.
    exposed: int
    #: Log id.
    log: str
    #: The problems.
    problems: List[Problem]
    #: Properties that the verification proves.
    proves: List[str]
    #: Number of records.
    size: int
    #: `true` if no problem was found.
    sound: bool
    #: Records below this number are verified.
    verified_to: int


class AuditStatus(_AuditStatus, total=False):
    """Verification status of the audit log."""

    #: Last checkpoint.
    checkpoint: Union[CheckpointStatus, None]


class Browser(TypedDict):
    """A signed-in browser."""

    #: Name in records of its answers.
    name: str
    #: Role.
    role: Role
    #: Time of the last request.
    seen: str
    #: Sign-in time.
    since: str


class Browsers(TypedDict):
    """The signed-in browsers."""

    #: The browsers.
    browsers: List[Browser]


class CheckpointStatus(TypedDict):
    """A signed checkpoint."""

    #: Signing time.
    at: str
    #: Number of records covered.
    size: int


class ChosenRule(TypedDict):
    """The rule that an approver chose, by the values of its [`RuleOffer`]."""

    #: The names of the allowed operations, as offered.
    operations: List[str]
    #: The sessions that the rule is for.
    scope: RuleScope


class ComparedWith(TypedDict):
    """The file that a preview was compared with."""

    #: The path, with links followed.
    path: str
    #: The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace.
    version: str


class Cost(TypedDict):
    """A sum of money, as `hooks-cost` counted it."""

    #: Amount.
    amount: float
    #: Currency, such as `USD`.
    currency: str
    #: `true` if the price of some calls is unknown, so that the cost is higher.
    incomplete: bool


class _DecidedApproval(TypedDict):
    #: The basis of the decision.
    basis: DecisionBasis
    #: The time of the decision.
    decided_at: str
    #: The event of the request.
    event: str
    #: `true` if the operation may run.
    granted: bool
    #: The hook of the request.
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
    #: `SESSION.RUN.NUMBER`; missing if no approver was asked.
    id: Union[str, None]
    #: The operations of the rules that decided, or of the rule that the approver created.
    operations: List[str]
    #: The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it.
    rule: Union[str, None]
    #: The scope of the rule that the approver created.
    scope: Union[RuleScope, None]
    #: The sequence number of the decision record; 0 until read.
    seq: int


class Decisions(TypedDict):
    """Decisions."""

    #: The decisions, the newest first.
    decisions: List[DecidedApproval]


class _DeviceSubscription(TypedDict):
    #: Authentication secret of the device, as base64url.
    auth: str
    #: Address of the push service for this device.
    endpoint: str
    #: Public key of the device, as base64url.
    p256dh: str


class DeviceSubscription(_DeviceSubscription, total=False):
    """A subscription to push messages, as the browser made it."""

    #: `true` if notifications may open their request without signing in. For approvers only.
    answers: bool


class _DryRun(TypedDict):
    #: The event.
    event: str


class DryRun(_DryRun, total=False):
    """An event to try. Only hooks run, and no approvals are requested."""

    #: A bundle as text, if only its hooks are to be tried.
    bundle: Union[str, None]
    #: The data.
    data: Dict[str, Any]
    #: The workspace of the hooks; that of the server if missing.
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
    #: The output of hooks, unless suppressed. It is not recorded.
    outputs: List[OutputReport]
    #: The number of further records of the emission whose content is erased or withheld.
    unreadable: int


class DryRunReport(_DryRunReport, total=False):
    """The report of a tried event."""

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
    #: The reason why hooks may be missing: the project is not trusted.
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
    #: The output of hooks, unless suppressed. It is not recorded.
    outputs: List[OutputReport]
    #: The number of further records of the emission whose content is erased or withheld.
    unreadable: int


class EmissionReport(_EmissionReport, total=False):
    """The outcome of an emission as JSON, built from the outcome itself or from the records of a log. Fields that are unknown to the source are missing."""

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


class _ErrorDetails(TypedDict):
    #: Error code for programs.
    code: str
    #: The problem, and what to do.
    message: str


class ErrorDetails(_ErrorDetails, total=False):
    """An error."""

    #: The approver who was faster.
    by: Union[Actor, None]


class ErrorResponse(TypedDict):
    """The body of every error response."""

    #: The error.
    error: ErrorDetails


class FailureReport(TypedDict):
    """A part of the system that failed."""

    #: The error.
    error: str
    #: The part.
    part: str


class Health(TypedDict):
    """Health check response."""

    #: `ok`.
    status: str
    #: Server version.
    version: str


class HookDenials(TypedDict):
    """The denials of a hook."""

    #: Number of denied operations.
    denials: int
    #: Hook name.
    hook: str


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
    #: `true` if its output is left out of the transcript.
    suppressed_output: bool


class HookStats(TypedDict):
    """Statistics of a hook."""

    #: Number of approval requests.
    asks: int
    #: Number of calls.
    calls: int
    #: Number of denials.
    denials: int
    #: Number of failures.
    errors: int
    #: Events of its calls.
    events: List[str]
    #: Hook name.
    hook: str
    #: Number of injections.
    injects: int
    #: Histogram of durations up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts.
    latency: List[int]
    #: Longest duration, in nanoseconds.
    max_ns: int
    #: Number of modifications.
    modifies: int
    #: Median duration, in nanoseconds.
    p50_ns: int
    #: 95th percentile of the duration, in nanoseconds.
    p95_ns: int
    #: Calls in each of the last 30 minutes, the oldest first.
    recent: List[int]


class HookStatsList(TypedDict):
    """Statistics of hooks, by name."""

    #: The statistics.
    hooks: List[HookStats]


class _InjectionReport(TypedDict):
    #: The size of the text.
    bytes: int
    #: The hook.
    hook: str
    #: The position in the conversation.
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
    #: `true` if the log has no result for it: it is running, or its end is unknown.
    unresolved: bool


class IntentReport(_IntentReport, total=False):
    """A gated operation that may begin."""

    #: The digest of the operation; missing if the data is nested too deeply.
    digest: Union[str, None]
    #: The tool call, which pairs the intent with its result.
    tool_call_id: Union[str, None]


class KeyProof(TypedDict):
    """A proof that the server knows the key of a browser."""

    #: The proof.
    proof: str


class _ListedRule(TypedDict):
    #: The answer.
    decision: DefaultDecision
    #: The requests that it answers, in a sentence.
    explanation: str
    #: The hook whose requests the rule answers.
    hook: str
    #: Identifies the rule when it is revoked.
    id: str
    #: The sessions that the rule is for.
    scope: RuleScope


class ListedRule(_ListedRule, total=False):
    """An approval rule as the API lists it."""

    #: The user who gave it, where known.
    by: Union[Actor, None]
    #: The time at which it was given, where known.
    created_at: Union[str, None]
    #: The event of the request that the answer was given to. The pattern is then its exact prompt.
    event: Union[str, None]
    #: The operation, by the name that its description has: `write src/**`. It is compared letter by letter.
    operation: Union[str, None]
    #: The prompts; `*` stands for any text. Empty if the rule is about an operation.
    pattern: str
    #: The folder, if the scope is a project.
    project: Union[str, None]
    #: The session, if the scope is one.
    session: Union[str, None]


class _LogRecord(TypedDict):
    #: Time.
    at: str
    #: Body.
    body: Any
    #: Hash, in hexadecimal.
    hash: str
    #: Kind of record.
    kind: str
    #: Record number, the cursor of streams.
    seq: int
    #: The writer: the run of a session, or the server.
    writer: str


class LogRecord(_LogRecord, total=False):
    """One record of the audit log."""

    #: Event name.
    event: Union[str, None]
    #: Session id.
    session: Union[str, None]
    #: Turn number.
    turn: Union[int, None]


class Me(TypedDict):
    """The authenticated user."""

    #: Name.
    name: str
    #: Role: `viewer`, `approver` or `admin`.
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


class _NewRule(TypedDict):
    #: The decision.
    decision: DefaultDecision
    #: The hook whose approval requests the rule answers.
    hook: str
    #: Scope of the rule.
    scope: RuleScope


class NewRule(_NewRule, total=False):
    """An approval rule to add."""

    #: Operation, such as `run cargo test *` or `write src/**`, compared letter by letter.
    operation: Union[str, None]
    #: Pattern of prompts; `*` matches any text. Missing if the rule is about an operation.
    pattern: str
    #: The folder, for scope `project`.
    project: Union[str, None]
    #: The session, for scope `session`.
    session: Union[str, None]


class NewSession(TypedDict, total=False):
    """A session to start."""

    #: First prompt.
    prompt: Union[str, None]
    #: Working folder; the server's by default.
    workspace: Union[str, None]


class _OpenApproval(TypedDict):
    #: The time of the request.
    created_at: str
    #: The time limit for an answer.
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
    #: The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version; the operation does not run if the file has changed since.
    preview: ActionPreview
    #: The text of the request.
    prompt: str
    #: The session of the request.
    session: str
    #: The time that the kernel waits for an answer, in seconds.
    timeout_s: float
    #: The workspace.
    workspace: str


class OpenApproval(_OpenApproval, total=False):
    """An open approval request with its session."""

    #: The machine of the session, if it is another one than the server's. The server sets it.
    machine: Union[str, None]
    #: Must be returned with the answer, so that only a shown request can be answered. Empty for viewers, who cannot answer, and on the link: the server sets it.
    nonce: str
    #: The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them.
    offers: List[RuleOffer]
    #: The connected session, if the request comes from its sub-agent.
    parent_session: Union[str, None]
    #: The reason that the hook gives.
    reason: Union[str, None]
    #: The name of the session.
    session_name: Union[str, None]
    #: `true` if a long preview is omitted here: `GET /api/approvals/{id}` returns the whole request.
    truncated: bool
    #: The kernel's own warning to the approver.
    warning: Union[str, None]


class OperationResult(TypedDict, total=False):
    """A gated operation that has ended."""

    #: `true` if it succeeded, where that is known.
    success: Union[bool, None]
    #: The tool call, which pairs the outcome with its intent.
    tool_call_id: Union[str, None]


class OutputReport(TypedDict):
    """The output of a hook."""

    #: The hook.
    hook: str
    #: The text.
    text: str


class Page(TypedDict):
    """A page of records."""

    #: Next cursor: records from this number on, or before it for requests with `before`. There may be more records although the page is short.
    cursor: int
    #: Number of the first record in the log.
    first: int
    #: The records, the oldest first.
    records: List[LogRecord]


class _PendingApprovals(TypedDict):
    #: The requests, the oldest first. Long previews are omitted.
    approvals: List[OpenApproval]
    #: Number of all open requests.
    pending: int


class PendingApprovals(_PendingApprovals, total=False):
    """Open approval requests."""

    #: Report about too many requests in a short time.
    busy: Union[ApprovalFlood, None]


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
    #: Description.
    text: str


class Problem(_Problem, total=False):
    """A problem of the audit log."""

    #: Record number, if known.
    seq: Union[int, None]


class Prompt(TypedDict):
    """A prompt for a session."""

    #: The text.
    text: str


class PushDevice(TypedDict):
    """A device that receives push messages."""

    #: `true` if its notifications open their request without signing in.
    answers: bool
    #: Identifies the device: the first 16 bytes of the SHA-256 of its endpoint, as base64url.
    id: str


class PushStatus(TypedDict):
    """The server's key for push messages, and the devices of the user."""

    #: The devices.
    devices: List[PushDevice]
    #: The public key that a browser subscribes with (`applicationServerKey`), as base64url.
    key: str


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
    #: The output of hooks, unless suppressed. It is not recorded.
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


class ReloadResults(TypedDict):
    """The results of a reload."""

    #: The result of each session.
    results: List[SessionReload]
    #: Number of connected sessions.
    sessions: int


class RuleOffer(TypedDict):
    """A rule that an approver may create with an answer: it allows the operation of the request, and others like it."""

    #: A sentence about the requests that the rule would answer.
    explanation: str
    #: The allowed operations in a few words.
    label: str
    #: The names of the allowed operations, one for each part of this one.
    operations: List[str]
    #: The sessions that the rule would be for.
    scope: RuleScope


class SearchMatch(TypedDict):
    """A record that a search found."""

    #: Time.
    at: str
    #: Event name.
    event: str
    #: The text around the first word.
    excerpt: str
    #: The searched part of the record.
    part: SearchPart
    #: Record number.
    seq: int
    #: Session id.
    session: str


class _SearchResults(TypedDict):
    #: The matches, the newest first.
    matches: List[SearchMatch]


class SearchResults(_SearchResults, total=False):
    """The matches in a part of the log."""

    #: Continues the search with older records. Missing at the end.
    cursor: Union[str, None]
    #: Time of the oldest record that was searched; missing if there was none.
    searched_since: Union[str, None]


class _Session(TypedDict):
    #: `true` if the session is connected, and accepts answers and commands.
    connected: bool
    #: Number of denied operations.
    denials: int
    #: Number of failed hook calls.
    errors: int
    #: Session id.
    id: str
    #: Number of open approval requests.
    pending: int
    #: Time of the first activity.
    started_at: str
    #: Current state.
    state: SessionState
    #: `true` if the session accepts prompts from the server.
    takes_prompts: bool
    #: Number of tokens used.
    tokens: int
    #: Number of tool calls.
    tool_calls: int
    #: Number of turns.
    turns: int
    #: Time of the last activity.
    updated_at: str


class Session(_Session, total=False):
    """A session."""

    #: The agent program.
    client: Union[SessionClient, None]
    #: Cost of the model calls with a known price; missing without one.
    cost: Union[Cost, None]
    #: The reason of the end.
    ended: Union[str, None]
    #: The model's last text, possibly truncated.
    last_message: Union[str, None]
    #: The machine of a connected session on another one.
    machine: Union[str, None]
    #: Approval mode of a connected session: `ask`, `accept-edits`, `plan` or `deny`.
    mode: Union[str, None]
    #: The model of the last call, as far as the agent program names it.
    model: Union[str, None]
    #: Name given by a hook or a user.
    name: Union[str, None]
    #: Parent session.
    parent: Union[str, None]
    #: Process id of a connected session.
    pid: Union[int, None]
    #: The last prompt, possibly truncated.
    prompt: Union[str, None]
    #: Location of a connected session.
    runs_in: Union[SessionHost, None]
    #: Working folder.
    workspace: Union[str, None]


class _SessionClient(TypedDict):
    #: Name, such as `amplifier`.
    name: str


class SessionClient(_SessionClient, total=False):
    """The agent program of a session."""

    #: Version.
    version: Union[str, None]


class SessionHooks(TypedDict):
    """The hooks of a session."""

    #: The hooks, in running order.
    hooks: List[Dict[str, Any]]


class SessionList(TypedDict):
    """Sessions."""

    #: The sessions, the newest first.
    sessions: List[Session]


class _SessionReload(TypedDict):
    #: The outcome.
    result: ReloadStatus
    #: The session.
    session: str


class SessionReload(_SessionReload, total=False):
    """The result of a reload in one session."""

    #: The problem, or what to do about it.
    message: Union[str, None]


class SignInLink(TypedDict):
    """A one-time sign-in link."""

    #: Expiry time.
    expires_at: str
    #: URL for a browser.
    url: str


class SignInLinkRequest(TypedDict):
    """A request for a sign-in link."""

    #: Name for records of answers.
    name: str
    #: Role: `viewer`, `approver` or `admin`.
    role: str


class SignedOutBrowsers(TypedDict):
    """The result of signing browsers out."""

    #: Number of browsers.
    ended: int


class TestBody(TypedDict, total=False):
    """The bundle to test."""

    #: The bundle as text; by default, the bundle of the server's folder.
    bundle: Union[str, None]


class Timeline(TypedDict):
    """The timeline of a session."""

    #: Next cursor. Fewer items than requested means the end; items that may still change come again, and replace those with the same `seq`.
    cursor: int
    #: The items, the oldest first.
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
    #: `event`, or the kind of a record without an emission: `seal`, `gap`. The kind is repeated in `event`, and the body is in `data`.
    kind: str
    #: The messages for the user.
    messages: List[MessageReport]
    #: The output of hooks, unless suppressed. It is not recorded.
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

    #: The file, or the folder of a missing file.
    file: str
    #: The reason.
    reason: str


#: The action of a hook without its payload, or the kind of its failure.
ActionKind = Literal["continue", "respond", "deny", "modify", "inject_context", "ask_user", "failed", "panicked", "timed_out", "unreadable"]


#: The scope of an answer.
AnswerScope = Literal["once", "project"]


#: An approval request: open, or decided.
ApprovalLookup = Union[OpenApproval, DecidedApproval]


#: The state of the data of an event.
DataStatus = Literal["whole", "redacted", "erased", "withheld"]


#: The basis of a decision.
DecisionBasis = Literal["answer", "rule", "remembered", "timeout", "not_offered", "no_system", "failed", "cancelled", "disconnected"]


#: The decision of an emission without its denial.
DecisionKind = Literal["continue", "modify", "inject_context", "ask_user", "deny", "cancelled"]


#: A decision without an approver: after the time limit, or by a rule.
DefaultDecision = Literal["allow", "deny"]


#: The effect of an option.
Effect = Literal["allow_once", "allow_always", "deny", "deny_always"]


#: An empty object.
EmptyBody = Dict[str, Any]


#: The status of an injection after the session's limits were applied.
InjectionStatus = Literal["injected", "over_budget", "truncated", "dropped", "refused", "no_context"]


#: An answer by a link. None of them lasts.
LinkAnswer = Literal["allow_once", "deny"]


#: The urgency of a message.
MessageLevel = Literal["info", "warning", "error"]


#: The role of a message.
MessageRole = Literal["system", "user", "assistant"]


#: The position and lifetime of an injection.
Placement = Literal["history", "next_call", "last_tool_result"]


#: The kind of a line of a preview.
PreviewRowKind = Literal["plain", "context", "added", "removed", "gap", "note"]


#: Request body without fields.
ReloadBody = Dict[str, Any]


#: The outcome of a reload.
ReloadStatus = Literal["unchanged", "changed", "refused", "not_trusted", "no_answer"]


#: Permissions of a user. Each role includes those before it.
Role = Literal["viewer", "approver", "admin"]


#: The sessions that a rule is for.
RuleScope = Literal["session", "project", "user"]


#: A part of a record that is searched.
SearchPart = Literal["prompt", "input", "reason", "approval"]


#: The location of a session.
SessionHost = Literal["server", "process", "machine"]


#: The state of a session.
SessionState = Literal["running", "waiting", "idle", "away", "ended", "failed", "gone"]


class _StreamMessageHello(TypedDict):
    #: The open approval requests, the oldest first; limited in number.
    approvals: List[OpenApproval]
    #: Verification status of the audit log.
    audit: AuditStatus
    #: Number of the first record that follows.
    cursor: int
    #: Number of all sessions.
    known: int
    #: The authenticated user.
    me: Me
    #: Server time.
    now: str
    #: Number of open approval requests.
    pending: int
    #: The sessions updated last, and all that are active.
    sessions: List[Session]
    type: Literal["hello"]


class StreamMessageHello(_StreamMessageHello, total=False):
    """The current state."""

    #: Report about too many requests, if there are.
    busy: Union[ApprovalFlood, None]


class StreamMessageSession(TypedDict):
    """A session has changed."""

    #: The session.
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
    #: The id of the request.
    id: str
    type: Literal["approval_closed"]


class _StreamMessageApprovalflood(TypedDict):
    type: Literal["approval_flood"]


class StreamMessageApprovalflood(_StreamMessageApprovalflood, total=False):
    """The report about too many approval requests has changed."""

    #: The report; `None` if there are not too many any more.
    busy: Union[ApprovalFlood, None]


class StreamMessageRules(TypedDict):
    """The approval rules have changed."""

    type: Literal["rules"]


class StreamMessageAudit(TypedDict):
    """The verification status of the audit log has changed."""

    #: The status.
    audit: AuditStatus
    type: Literal["audit"]


class _StreamMessageAnswered(TypedDict):
    #: The id of the request.
    id: str
    #: `true` if the answer counts.
    ok: bool
    type: Literal["answered"]


class StreamMessageAnswered(_StreamMessageAnswered, total=False):
    """The result of an answer."""

    #: The reason if it does not count.
    error: Union[ErrorDetails, None]


class StreamMessageRecords(TypedDict):
    """New records of the audit log."""

    #: The number of the next record.
    cursor: int
    #: The records, the oldest first.
    records: List[LogRecord]
    type: Literal["records"]


#: A message of the server.
StreamMessage = Union[StreamMessageHello, StreamMessageSession, StreamMessageApprovalrequested, StreamMessageApprovalclosed, StreamMessageApprovalflood, StreamMessageRules, StreamMessageAudit, StreamMessageAnswered, StreamMessageRecords]


#: Request body without fields.
VerifyBody = Dict[str, Any]
