// Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date

/** The effect of an operation, described for the approver before it runs. The code that will run the operation makes it; other operations are shown as data. Terminals, pages and programs only draw it. The texts may contain any characters: the drawing code must escape them. */
export interface ActionPreview {
    /** The operation line by line: a command, a diff, a task. */
    body?: PreviewRow[];
    /** The file that the preview was compared with, if the operation changes one. */
    compared_with?: ComparedWith | null;
    /** Further settings of the operation: a time limit, a range. */
    fields?: PreviewField[];
    /** The effect in a few words: a new file, the number of lines that are added and removed. */
    summary?: string | null;
    /** The file, pattern or agent. */
    target?: string | null;
    /** The kind of operation: the name of a tool, `prompt`, `agent`, or an event. */
    title: string;
    /** `true` if a part is left out because it is too large. The first warning says so. */
    truncated?: boolean;
    /** Warnings that the approver must read before the answer. */
    warnings?: string[];
}

/** The activity of the last hours. */
export interface Activity {
    /** Costs in these hours by currency, as far as prices are known. */
    costs: Cost[];
    /** Denials in these hours by hook, the most first. */
    denials_by_hook: HookDenials[];
    /** The hours, the oldest first; the last one is not over. */
    hours: ActivityHour[];
}

/** Counts of a period. */
export interface ActivityCounts {
    /** Number of denied operations. */
    denials: number;
    /** Number of sessions that ended after an error. */
    failed_sessions: number;
    /** Number of failed hook calls. */
    hook_errors: number;
    /** Number of prompts. */
    prompts: number;
    /** Number of started sessions. */
    sessions: number;
    /** Number of tokens used. */
    tokens: number;
    /** Number of tool calls. */
    tool_calls: number;
}

/** The counts of one hour. */
export interface ActivityHour {
    /** Beginning of the hour. */
    at: string;
    /** Costs by currency, as far as prices are known. */
    costs: Cost[];
    /** Number of denied operations. */
    denials: number;
    /** Number of sessions that ended after an error. */
    failed_sessions: number;
    /** Number of failed hook calls. */
    hook_errors: number;
    /** Number of prompts. */
    prompts: number;
    /** Number of started sessions. */
    sessions: number;
    /** Number of tokens used. */
    tokens: number;
    /** Number of tool calls. */
    tool_calls: number;
}

/** The user who did something, and the channel. */
export interface Actor {
    /** The name that the approval system knows the user by. */
    name: string;
    /** The channel: `terminal`, `console`, `api`, … */
    via: string;
}

/** An answer to an approval request. */
export interface AnswerBody {
    /** Nonce of the request. */
    nonce: string;
    /** Label of the chosen option. */
    option: string;
    /** Reason for a denial, which the model reads; at most 2,000 characters. No effect if the option allows. */
    reason?: string | null;
    /** One of the request's `offers`, with an option that always allows: `operations` and `scope` as offered. */
    rule?: ChosenRule | null;
    /** Scope of the answer. */
    scope?: AnswerScope;
}

/** The form of an answer link's page. */
export interface AnswerForm {
    /** The answer. */
    answer: LinkAnswer;
    /** Secret of the link. */
    code: string;
    /** Digest of the request that the page showed. */
    digest: string;
    /** Nonce of the request that the page showed. */
    nonce: string;
    /** Reason for a denial, which the model reads. */
    reason?: string;
}

/** The option that an approver chose, and the approver's identity. */
export interface ApprovalAnswer {
    /** The approver, where known. It is recorded. */
    by?: Actor | null;
    /** The label of an option. */
    label: string;
    /** The approver's reason for a denial, which the model reads: at most [`MAX_REASON_CHARS`](Self::MAX_REASON_CHARS) characters. No effect if the option allows. */
    reason?: string | null;
    /** One of the offered rules. Only an option that always allows can create one. */
    rule?: ChosenRule | null;
}

/** The decision on an approval request. */
export interface ApprovalDecision {
    /** The basis of the decision. */
    basis: DecisionBasis;
    /** The approver, where known. */
    by?: Actor | null;
    /** `true` if the operation may run. */
    granted: boolean;
    /** The operations of the rules that decided, or of the rule that the approver created. */
    operations?: string[];
    /** The reason, in words. */
    reason: string;
    /** The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it. */
    rule?: string | null;
    /** The scope of the rule that the approver created. */
    scope?: RuleScope | null;
}

/** A report about too many approval requests in a short time. */
export interface ApprovalFlood {
    /** Number of requests. */
    asked: number;
    /** The hook. */
    hook: string;
    /** Pattern of a rule that would answer them. */
    pattern: string;
    /** Period in seconds. */
    seconds: number;
}

/** A possible answer, with its effect. */
export interface ApprovalOption {
    /** The effect. The kernel decides by the effect, never by the label. */
    effect: Effect;
    /** The text of the option. */
    label: string;
}

/** An approval that a hook requested, and the decision. */
export interface ApprovalReport {
    /** `true` if another hook changed the data after the request, so that no allow given in advance counted. */
    changed_after_asking?: boolean;
    /** The file whose change the approver was shown. */
    compared_with?: ComparedWith | null;
    /** The time of the request. */
    created_at?: string | null;
    /** The time of the decision. */
    decided_at?: string | null;
    /** The number of the record of the decision. */
    decided_seq?: number | null;
    /** The decision; missing while the request is open. */
    decision?: ApprovalDecision | null;
    /** The decision if there is no answer in time. */
    default?: DefaultDecision | null;
    /** The digest of the operation. */
    digest?: string | null;
    /** `true` if the approval is requested only when no other hook requests one. */
    fallback?: boolean;
    /** The hook. */
    hook: string;
    /** The id of the request, `SESSION.RUN.N`; missing if the decision needed no request. */
    id?: string | null;
    /** The answers that arrived after the request was closed. */
    late_answers?: ApprovalAnswer[];
    /** The options of the approver. */
    options?: ApprovalOption[];
    /** The prompt of the request. */
    prompt?: string | null;
    /** The time limit in seconds. */
    timeout_s?: number | null;
    /** The time from the request to the decision, in milliseconds. */
    waited_ms?: number | null;
}

/** A hook's request to a user to allow an operation. */
export interface ApprovalRequest {
    /** The time of the request. */
    created_at: string;
    /** The decision when the time is up. */
    default: DefaultDecision;
    /** The digest of the data that will run. */
    digest: string;
    /** The event at which it asks. */
    event: string;
    /** The hook that asks. */
    hook: string;
    /** The number of the request in its session. Sub-agents count with the session that they work for. */
    number: number;
    /** The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them. */
    offers?: RuleOffer[];
    /** The possible answers. */
    options: ApprovalOption[];
    /** The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version; the operation does not run if the file has changed since. */
    preview: ActionPreview;
    /** The text of the request. */
    prompt: string;
    /** The reason that the hook gives. */
    reason?: string | null;
    /** The time that the kernel waits for an answer, in seconds. */
    timeout_s: number;
    /** The kernel's own warning to the approver. */
    warning?: string | null;
}

/** An answer given in advance: for a session, a project or a user. */
export interface ApprovalRule {
    /** The user who gave it, where known. */
    by?: Actor | null;
    /** The time at which it was given, where known. */
    created_at?: string | null;
    /** The answer. */
    decision: DefaultDecision;
    /** The event of the request that the answer was given to. The pattern is then its exact prompt. */
    event?: string | null;
    /** The hook whose requests the rule answers. */
    hook: string;
    /** The operation, by the name that its description has: `write src/**`. It is compared letter by letter. */
    operation?: string | null;
    /** The prompts; `*` stands for any text. Empty if the rule is about an operation. */
    pattern?: string;
    /** The folder, if the scope is a project. */
    project?: string | null;
    /** The sessions that the rule is for. */
    scope: RuleScope;
    /** The session, if the scope is one. */
    session?: string | null;
}

/** Approval rules, and rule files that could not be read. */
export interface ApprovalRules {
    /** The rules. */
    rules: ListedRule[];
    /** Files that cannot be read. While there are some, no rule allows anything. */
    unreadable: UnreadableFile[];
}

/** Verification status of the audit log. */
export interface AuditStatus {
    /** Properties that it cannot prove. */
    cannot_prove: string[];
    /** `true` while a verification runs. */
    checking: boolean;
    /** Last checkpoint. */
    checkpoint?: CheckpointStatus | null;
    /** Number of records since the last anchored checkpoint; all records without one. */
    exposed: number;
    /** Log id. */
    log: string;
    /** The problems. */
    problems: Problem[];
    /** Properties that the verification proves. */
    proves: string[];
    /** Number of records. */
    size: number;
    /** `true` if no problem was found. */
    sound: boolean;
    /** Records below this number are verified. */
    verified_to: number;
}

/** A signed-in browser. */
export interface Browser {
    /** Name in records of its answers. */
    name: string;
    /** Role. */
    role: Role;
    /** Time of the last request. */
    seen: string;
    /** Sign-in time. */
    since: string;
}

/** The signed-in browsers. */
export interface Browsers {
    /** The browsers. */
    browsers: Browser[];
}

/** A signed checkpoint. */
export interface CheckpointStatus {
    /** Signing time. */
    at: string;
    /** Number of records covered. */
    size: number;
}

/** The rule that an approver chose, by the values of its [`RuleOffer`]. */
export interface ChosenRule {
    /** The names of the allowed operations, as offered. */
    operations: string[];
    /** The sessions that the rule is for. */
    scope: RuleScope;
}

/** The file that a preview was compared with. */
export interface ComparedWith {
    /** The path, with links followed. */
    path: string;
    /** The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace. */
    version: string;
}

/** A sum of money, as `hooks-cost` counted it. */
export interface Cost {
    /** Amount. */
    amount: number;
    /** Currency, such as `USD`. */
    currency: string;
    /** `true` if the price of some calls is unknown, so that the cost is higher. */
    incomplete: boolean;
}

/** An approval request that was decided. */
export interface DecidedApproval {
    /** The basis of the decision. */
    basis: DecisionBasis;
    /** The approver, where known. */
    by?: Actor | null;
    /** The time of the request. */
    created_at?: string | null;
    /** The time of the decision. */
    decided_at: string;
    /** The event of the request. */
    event: string;
    /** `true` if the operation may run. */
    granted: boolean;
    /** The hook of the request. */
    hook: string;
    /** `SESSION.RUN.NUMBER`; missing if no approver was asked. */
    id?: string | null;
    /** The operations of the rules that decided, or of the rule that the approver created. */
    operations?: string[];
    /** The text of the request. */
    prompt: string;
    /** The reason, in words. */
    reason: string;
    /** The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it. */
    rule?: string | null;
    /** The scope of the rule that the approver created. */
    scope?: RuleScope | null;
    /** The sequence number of the decision record; 0 until read. */
    seq?: number;
    /** The session. */
    session: string;
}

/** Decisions. */
export interface Decisions {
    /** The decisions, the newest first. */
    decisions: DecidedApproval[];
}

/** A subscription to push messages, as the browser made it. */
export interface DeviceSubscription {
    /** `true` if notifications may open their request without signing in. For approvers only. */
    answers?: boolean;
    /** Authentication secret of the device, as base64url. */
    auth: string;
    /** Address of the push service for this device. */
    endpoint: string;
    /** Public key of the device, as base64url. */
    p256dh: string;
}

/** An event to try. Only hooks run, and no approvals are requested. */
export interface DryRun {
    /** A bundle as text, if only its hooks are to be tried. */
    bundle?: string | null;
    /** The data. */
    data?: { [key: string]: unknown };
    /** The event. */
    event: string;
    /** The workspace of the hooks; that of the server if missing. */
    workspace?: string | null;
}

/** The report of a tried event. */
export interface DryRunReport {
    /** The approvals that hooks requested. */
    approvals: ApprovalReport[];
    /** The data as the hooks left it; missing if it was erased or withheld. */
    data?: { [key: string]: unknown } | null;
    /** The state of the data. */
    data_status: DataStatus;
    /** The decision of the hooks; missing if it was erased. */
    decision?: DecisionKind | null;
    /** The hook that denied the event. */
    denied_by?: string | null;
    /** The event. */
    event: string;
    /** The parts of the system that failed. */
    failures: FailureReport[];
    /** The hooks that were called, in running order. */
    hooks: HookReport[];
    /** The texts for the agent. */
    injections: InjectionReport[];
    /** The operation that may begin after the event. */
    intent?: IntentReport | null;
    /** The messages for the user. */
    messages: MessageReport[];
    /** The output of hooks, unless suppressed. It is not recorded. */
    outputs: OutputReport[];
    /** The reason of the denial. */
    reason?: string | null;
    /** The result of the operation that ended before the event. */
    result?: OperationResult | null;
    /** The number of further records of the emission whose content is erased or withheld. */
    unreadable: number;
    /** The reason why hooks may be missing: the project is not trusted. */
    warning?: string | null;
}

/** The outcome of an emission as JSON, built from the outcome itself or from the records of a log. Fields that are unknown to the source are missing. */
export interface EmissionReport {
    /** The approvals that hooks requested. */
    approvals: ApprovalReport[];
    /** The data as the hooks left it; missing if it was erased or withheld. */
    data?: { [key: string]: unknown } | null;
    /** The state of the data. */
    data_status: DataStatus;
    /** The decision of the hooks; missing if it was erased. */
    decision?: DecisionKind | null;
    /** The hook that denied the event. */
    denied_by?: string | null;
    /** The event. */
    event: string;
    /** The parts of the system that failed. */
    failures: FailureReport[];
    /** The hooks that were called, in running order. */
    hooks: HookReport[];
    /** The texts for the agent. */
    injections: InjectionReport[];
    /** The operation that may begin after the event. */
    intent?: IntentReport | null;
    /** The messages for the user. */
    messages: MessageReport[];
    /** The output of hooks, unless suppressed. It is not recorded. */
    outputs: OutputReport[];
    /** The reason of the denial. */
    reason?: string | null;
    /** The result of the operation that ended before the event. */
    result?: OperationResult | null;
    /** The number of further records of the emission whose content is erased or withheld. */
    unreadable: number;
}

/** An error. */
export interface ErrorDetails {
    /** The approver who was faster. */
    by?: Actor | null;
    /** Error code for programs. */
    code: string;
    /** The problem, and what to do. */
    message: string;
}

/** The body of every error response. */
export interface ErrorResponse {
    /** The error. */
    error: ErrorDetails;
}

/** A part of the system that failed. */
export interface FailureReport {
    /** The error. */
    error: string;
    /** The part. */
    part: string;
}

/** Health check response. */
export interface Health {
    /** `ok`. */
    status: string;
    /** Server version. */
    version: string;
}

/** The denials of a hook. */
export interface HookDenials {
    /** Number of denied operations. */
    denials: number;
    /** Hook name. */
    hook: string;
}

/** The answer of a hook, or its failure. */
export interface HookReport {
    /** The action, or the kind of failure. */
    answer: ActionKind;
    /** The time that it took, in nanoseconds. */
    duration_ns: number;
    /** The error of a hook that failed. */
    error?: string | null;
    /** The hook. */
    hook: string;
    /** The reason that it gave. */
    reason?: string | null;
    /** `true` if its output is left out of the transcript. */
    suppressed_output?: boolean;
}

/** Statistics of a hook. */
export interface HookStats {
    /** Number of approval requests. */
    asks: number;
    /** Number of calls. */
    calls: number;
    /** Number of denials. */
    denials: number;
    /** Number of failures. */
    errors: number;
    /** Events of its calls. */
    events: string[];
    /** Hook name. */
    hook: string;
    /** Number of injections. */
    injects: number;
    /** Histogram of durations up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts. */
    latency: number[];
    /** Longest duration, in nanoseconds. */
    max_ns: number;
    /** Number of modifications. */
    modifies: number;
    /** Median duration, in nanoseconds. */
    p50_ns: number;
    /** 95th percentile of the duration, in nanoseconds. */
    p95_ns: number;
    /** Calls in each of the last 30 minutes, the oldest first. */
    recent: number[];
}

/** Statistics of hooks, by name. */
export interface HookStatsList {
    /** The statistics. */
    hooks: HookStats[];
}

/** A text that a hook adds to the conversation of the agent. */
export interface InjectionReport {
    /** The size of the text. */
    bytes: number;
    /** The hook. */
    hook: string;
    /** The position in the conversation. */
    placement: Placement;
    /** The role of the message. */
    role: MessageRole;
    /** The status; missing if no session applied its limits. */
    status?: InjectionStatus | null;
    /** The text. */
    text: string;
    /** The number of tokens of the text; missing if it was not counted. */
    tokens?: number | null;
}

/** A gated operation that may begin. */
export interface IntentReport {
    /** The digest of the operation; missing if the data is nested too deeply. */
    digest?: string | null;
    /** The number of its record. */
    seq: number;
    /** The tool call, which pairs the intent with its result. */
    tool_call_id?: string | null;
    /** `true` if the log has no result for it: it is running, or its end is unknown. */
    unresolved: boolean;
}

/** A proof that the server knows the key of a browser. */
export interface KeyProof {
    /** The proof. */
    proof: string;
}

/** An approval rule as the API lists it. */
export interface ListedRule {
    /** The user who gave it, where known. */
    by?: Actor | null;
    /** The time at which it was given, where known. */
    created_at?: string | null;
    /** The answer. */
    decision: DefaultDecision;
    /** The event of the request that the answer was given to. The pattern is then its exact prompt. */
    event?: string | null;
    /** The requests that it answers, in a sentence. */
    explanation: string;
    /** The hook whose requests the rule answers. */
    hook: string;
    /** Identifies the rule when it is revoked. */
    id: string;
    /** The operation, by the name that its description has: `write src/**`. It is compared letter by letter. */
    operation?: string | null;
    /** The prompts; `*` stands for any text. Empty if the rule is about an operation. */
    pattern?: string;
    /** The folder, if the scope is a project. */
    project?: string | null;
    /** The sessions that the rule is for. */
    scope: RuleScope;
    /** The session, if the scope is one. */
    session?: string | null;
}

/** One record of the audit log. */
export interface LogRecord {
    /** Time. */
    at: string;
    /** Body. */
    body: unknown;
    /** Event name. */
    event?: string | null;
    /** Hash, in hexadecimal. */
    hash: string;
    /** Kind of record. */
    kind: string;
    /** Record number, the cursor of streams. */
    seq: number;
    /** Session id. */
    session?: string | null;
    /** Turn number. */
    turn?: number | null;
    /** The writer: the run of a session, or the server. */
    writer: string;
}

/** The authenticated user. */
export interface Me {
    /** Name. */
    name: string;
    /** Role: `viewer`, `approver` or `admin`. */
    role: string;
}

/** A message for the user. */
export interface MessageReport {
    /** The urgency. */
    level: MessageLevel;
    /** `true` if there was a display to show it; missing if no session had to. */
    shown?: boolean | null;
    /** The source: `hook:NAME`, or a part of the system. */
    source: string;
    /** The text. */
    text: string;
}

/** An approval rule to add. */
export interface NewRule {
    /** The decision. */
    decision: DefaultDecision;
    /** The hook whose approval requests the rule answers. */
    hook: string;
    /** Operation, such as `run cargo test *` or `write src/**`, compared letter by letter. */
    operation?: string | null;
    /** Pattern of prompts; `*` matches any text. Missing if the rule is about an operation. */
    pattern?: string;
    /** The folder, for scope `project`. */
    project?: string | null;
    /** Scope of the rule. */
    scope: RuleScope;
    /** The session, for scope `session`. */
    session?: string | null;
}

/** A session to start. */
export interface NewSession {
    /** First prompt. */
    prompt?: string | null;
    /** Working folder; the server's by default. */
    workspace?: string | null;
}

/** An open approval request with its session. */
export interface OpenApproval {
    /** The time of the request. */
    created_at: string;
    /** The time limit for an answer. */
    deadline: string;
    /** The decision when the time is up. */
    default: DefaultDecision;
    /** The digest of the data that will run. */
    digest: string;
    /** The event at which it asks. */
    event: string;
    /** The hook that asks. */
    hook: string;
    /** `SESSION.RUN.NUMBER`. */
    id: string;
    /** The machine of the session, if it is another one than the server's. The server sets it. */
    machine?: string | null;
    /** Must be returned with the answer, so that only a shown request can be answered. Empty for viewers, who cannot answer, and on the link: the server sets it. */
    nonce?: string;
    /** The number of the request in its session. Sub-agents count with the session that they work for. */
    number: number;
    /** The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them. */
    offers?: RuleOffer[];
    /** The possible answers. */
    options: ApprovalOption[];
    /** The connected session, if the request comes from its sub-agent. */
    parent_session?: string | null;
    /** The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version; the operation does not run if the file has changed since. */
    preview: ActionPreview;
    /** The text of the request. */
    prompt: string;
    /** The reason that the hook gives. */
    reason?: string | null;
    /** The session of the request. */
    session: string;
    /** The name of the session. */
    session_name?: string | null;
    /** The time that the kernel waits for an answer, in seconds. */
    timeout_s: number;
    /** `true` if a long preview is omitted here: `GET /api/approvals/{id}` returns the whole request. */
    truncated?: boolean;
    /** The kernel's own warning to the approver. */
    warning?: string | null;
    /** The workspace. */
    workspace: string;
}

/** A gated operation that has ended. */
export interface OperationResult {
    /** `true` if it succeeded, where that is known. */
    success?: boolean | null;
    /** The tool call, which pairs the outcome with its intent. */
    tool_call_id?: string | null;
}

/** The output of a hook. */
export interface OutputReport {
    /** The hook. */
    hook: string;
    /** The text. */
    text: string;
}

/** A page of records. */
export interface Page {
    /** Next cursor: records from this number on, or before it for requests with `before`. There may be more records although the page is short. */
    cursor: number;
    /** Number of the first record in the log. */
    first: number;
    /** The records, the oldest first. */
    records: LogRecord[];
}

/** Open approval requests. */
export interface PendingApprovals {
    /** The requests, the oldest first. Long previews are omitted. */
    approvals: OpenApproval[];
    /** Report about too many requests in a short time. */
    busy?: ApprovalFlood | null;
    /** Number of all open requests. */
    pending: number;
}

/** A named value of a preview. */
export interface PreviewField {
    /** The name. */
    name: string;
    /** The value as JSON. */
    value: string;
}

/** One line of a preview. */
export interface PreviewRow {
    /** The kind of line. */
    kind: PreviewRowKind;
    /** Its line number after the change. */
    new?: number | null;
    /** Its line number before the change. */
    old?: number | null;
    /** The text, without its line feed. */
    text: string;
}

/** A problem of the audit log. */
export interface Problem {
    /** Record number, if known. */
    seq?: number | null;
    /** Description. */
    text: string;
}

/** A prompt for a session. */
export interface Prompt {
    /** The text. */
    text: string;
}

/** A device that receives push messages. */
export interface PushDevice {
    /** `true` if its notifications open their request without signing in. */
    answers: boolean;
    /** Identifies the device: the first 16 bytes of the SHA-256 of its endpoint, as base64url. */
    id: string;
}

/** The server's key for push messages, and the devices of the user. */
export interface PushStatus {
    /** The devices. */
    devices: PushDevice[];
    /** The public key that a browser subscribes with (`applicationServerKey`), as base64url. */
    key: string;
}

/** The report of an emission that is in a log. */
export interface RecordedEmission {
    /** The approvals that hooks requested. */
    approvals: ApprovalReport[];
    /** The data as the hooks left it; missing if it was erased or withheld. */
    data?: { [key: string]: unknown } | null;
    /** The state of the data. */
    data_status: DataStatus;
    /** The decision of the hooks; missing if it was erased. */
    decision?: DecisionKind | null;
    /** The hook that denied the event. */
    denied_by?: string | null;
    /** The event. */
    event: string;
    /** The parts of the system that failed. */
    failures: FailureReport[];
    /** The hooks that were called, in running order. */
    hooks: HookReport[];
    /** The texts for the agent. */
    injections: InjectionReport[];
    /** The operation that may begin after the event. */
    intent?: IntentReport | null;
    /** The messages for the user. */
    messages: MessageReport[];
    /** The output of hooks, unless suppressed. It is not recorded. */
    outputs: OutputReport[];
    /** The reason of the denial. */
    reason?: string | null;
    /** The result of the operation that ended before the event. */
    result?: OperationResult | null;
    /** The run of the session. */
    run: string;
    /** The number of its first record. */
    seq: number;
    /** The session. */
    session?: string | null;
    /** The time of that record. */
    time: string;
    /** The turn of the session. */
    turn?: number | null;
    /** The number of further records of the emission whose content is erased or withheld. */
    unreadable: number;
}

/** The result of a reload of the bundles of a session. */
export interface ReloadResult {
    /** The problem, or what to do about it. */
    message?: string | null;
    /** The outcome. */
    result: ReloadStatus;
}

/** The results of a reload. */
export interface ReloadResults {
    /** The result of each session. */
    results: SessionReload[];
    /** Number of connected sessions. */
    sessions: number;
}

/** A rule that an approver may create with an answer: it allows the operation of the request, and others like it. */
export interface RuleOffer {
    /** A sentence about the requests that the rule would answer. */
    explanation: string;
    /** The allowed operations in a few words. */
    label: string;
    /** The names of the allowed operations, one for each part of this one. */
    operations: string[];
    /** The sessions that the rule would be for. */
    scope: RuleScope;
}

/** A record that a search found. */
export interface SearchMatch {
    /** Time. */
    at: string;
    /** Event name. */
    event: string;
    /** The text around the first word. */
    excerpt: string;
    /** The searched part of the record. */
    part: SearchPart;
    /** Record number. */
    seq: number;
    /** Session id. */
    session: string;
}

/** The matches in a part of the log. */
export interface SearchResults {
    /** Continues the search with older records. Missing at the end. */
    cursor?: string | null;
    /** The matches, the newest first. */
    matches: SearchMatch[];
    /** Time of the oldest record that was searched; missing if there was none. */
    searched_since?: string | null;
}

/** A session. */
export interface Session {
    /** The agent program. */
    client?: SessionClient | null;
    /** `true` if the session is connected, and accepts answers and commands. */
    connected: boolean;
    /** Cost of the model calls with a known price; missing without one. */
    cost?: Cost | null;
    /** Number of denied operations. */
    denials: number;
    /** The reason of the end. */
    ended?: string | null;
    /** Number of failed hook calls. */
    errors: number;
    /** Session id. */
    id: string;
    /** The model's last text, possibly truncated. */
    last_message?: string | null;
    /** The machine of a connected session on another one. */
    machine?: string | null;
    /** Approval mode of a connected session: `ask`, `accept-edits`, `plan` or `deny`. */
    mode?: string | null;
    /** The model of the last call, as far as the agent program names it. */
    model?: string | null;
    /** Name given by a hook or a user. */
    name?: string | null;
    /** Parent session. */
    parent?: string | null;
    /** Number of open approval requests. */
    pending: number;
    /** Process id of a connected session. */
    pid?: number | null;
    /** The last prompt, possibly truncated. */
    prompt?: string | null;
    /** Location of a connected session. */
    runs_in?: SessionHost | null;
    /** Time of the first activity. */
    started_at: string;
    /** Current state. */
    state: SessionState;
    /** `true` if the session accepts prompts from the server. */
    takes_prompts: boolean;
    /** Number of tokens used. */
    tokens: number;
    /** Number of tool calls. */
    tool_calls: number;
    /** Number of turns. */
    turns: number;
    /** Time of the last activity. */
    updated_at: string;
    /** Working folder. */
    workspace?: string | null;
}

/** The agent program of a session. */
export interface SessionClient {
    /** Name, such as `amplifier`. */
    name: string;
    /** Version. */
    version?: string | null;
}

/** The hooks of a session. */
export interface SessionHooks {
    /** The hooks, in running order. */
    hooks: { [key: string]: unknown }[];
}

/** Sessions. */
export interface SessionList {
    /** The sessions, the newest first. */
    sessions: Session[];
}

/** The result of a reload in one session. */
export interface SessionReload {
    /** The problem, or what to do about it. */
    message?: string | null;
    /** The outcome. */
    result: ReloadStatus;
    /** The session. */
    session: string;
}

/** A one-time sign-in link. */
export interface SignInLink {
    /** Expiry time. */
    expires_at: string;
    /** URL for a browser. */
    url: string;
}

/** A request for a sign-in link. */
export interface SignInLinkRequest {
    /** Name for records of answers. */
    name: string;
    /** Role: `viewer`, `approver` or `admin`. */
    role: string;
}

/** The result of signing browsers out. */
export interface SignedOutBrowsers {
    /** Number of browsers. */
    ended: number;
}

/** The bundle to test. */
export interface TestBody {
    /** The bundle as text; by default, the bundle of the server's folder. */
    bundle?: string | null;
}

/** The timeline of a session. */
export interface Timeline {
    /** Next cursor. Fewer items than requested means the end; items that may still change come again, and replace those with the same `seq`. */
    cursor: number;
    /** The items, the oldest first. */
    items: TimelineItem[];
}

/** An event of a session with the report of its emission, or a record that belongs to none. */
export interface TimelineItem {
    /** The approvals that hooks requested. */
    approvals: ApprovalReport[];
    /** The data as the hooks left it; missing if it was erased or withheld. */
    data?: { [key: string]: unknown } | null;
    /** The state of the data. */
    data_status: DataStatus;
    /** The decision of the hooks; missing if it was erased. */
    decision?: DecisionKind | null;
    /** `true` if the operation does not run: a hook denied it, or an approval was denied. */
    denied: boolean;
    /** The hook that denied the event. */
    denied_by?: string | null;
    /** The event. */
    event: string;
    /** The parts of the system that failed. */
    failures: FailureReport[];
    /** The hooks that were called, in running order. */
    hooks: HookReport[];
    /** The texts for the agent. */
    injections: InjectionReport[];
    /** The operation that may begin after the event. */
    intent?: IntentReport | null;
    /** `event`, or the kind of a record without an emission: `seal`, `gap`. The kind is repeated in `event`, and the body is in `data`. */
    kind: string;
    /** The messages for the user. */
    messages: MessageReport[];
    /** The output of hooks, unless suppressed. It is not recorded. */
    outputs: OutputReport[];
    /** The reason of the denial. */
    reason?: string | null;
    /** The result of the operation that ended before the event. */
    result?: OperationResult | null;
    /** The run of the session. */
    run: string;
    /** The number of its first record. */
    seq: number;
    /** The session. */
    session?: string | null;
    /** The time of that record. */
    time: string;
    /** `true` if long texts or lists are shortened. */
    truncated: boolean;
    /** The turn of the session. */
    turn?: number | null;
    /** The number of further records of the emission whose content is erased or withheld. */
    unreadable: number;
}

/** A file of approval rules that cannot be read. */
export interface UnreadableFile {
    /** The file, or the folder of a missing file. */
    file: string;
    /** The reason. */
    reason: string;
}

/** The action of a hook without its payload, or the kind of its failure. */
export type ActionKind = "continue" | "respond" | "deny" | "modify" | "inject_context" | "ask_user" | "failed" | "panicked" | "timed_out" | "unreadable";

/** The scope of an answer. */
export type AnswerScope = "once" | "project";

/** An approval request: open, or decided. */
export type ApprovalLookup = OpenApproval | DecidedApproval;

/** The state of the data of an event. */
export type DataStatus = "whole" | "redacted" | "erased" | "withheld";

/** The basis of a decision. */
export type DecisionBasis = "answer" | "rule" | "remembered" | "timeout" | "not_offered" | "no_system" | "failed" | "cancelled" | "disconnected";

/** The decision of an emission without its denial. */
export type DecisionKind = "continue" | "modify" | "inject_context" | "ask_user" | "deny" | "cancelled";

/** A decision without an approver: after the time limit, or by a rule. */
export type DefaultDecision = "allow" | "deny";

/** The effect of an option. */
export type Effect = "allow_once" | "allow_always" | "deny" | "deny_always";

/** An empty object. */
export type EmptyBody = { [key: string]: unknown };

/** The status of an injection after the session's limits were applied. */
export type InjectionStatus = "injected" | "over_budget" | "truncated" | "dropped" | "refused" | "no_context";

/** An answer by a link. None of them lasts. */
export type LinkAnswer = "allow_once" | "deny";

/** The urgency of a message. */
export type MessageLevel = "info" | "warning" | "error";

/** The role of a message. */
export type MessageRole = "system" | "user" | "assistant";

/** The position and lifetime of an injection. */
export type Placement = "history" | "next_call" | "last_tool_result";

/** The kind of a line of a preview. */
export type PreviewRowKind = "plain" | "context" | "added" | "removed" | "gap" | "note";

/** Request body without fields. */
export type ReloadBody = { [key: string]: unknown };

/** The outcome of a reload. */
export type ReloadStatus = "unchanged" | "changed" | "refused" | "not_trusted" | "no_answer";

/** Permissions of a user. Each role includes those before it. */
export type Role = "viewer" | "approver" | "admin";

/** The sessions that a rule is for. */
export type RuleScope = "session" | "project" | "user";

/** A part of a record that is searched. */
export type SearchPart = "prompt" | "input" | "reason" | "approval";

/** The location of a session. */
export type SessionHost = "server" | "process" | "machine";

/** The state of a session. */
export type SessionState = "running" | "waiting" | "idle" | "away" | "ended" | "failed" | "gone";

/** A message of the server. */
export type StreamMessage = { approvals: OpenApproval[]; audit: AuditStatus; busy?: ApprovalFlood | null; cursor: number; known: number; me: Me; now: string; pending: number; sessions: Session[]; type: "hello" } | { session: Session; type: "session" } | { approval: OpenApproval; type: "approval_requested" } | { decided: DecidedApproval; id: string; type: "approval_closed" } | { busy?: ApprovalFlood | null; type: "approval_flood" } | { type: "rules" } | { audit: AuditStatus; type: "audit" } | { error?: ErrorDetails | null; id: string; ok: boolean; type: "answered" } | { cursor: number; records: LogRecord[]; type: "records" };

/** Request body without fields. */
export type VerifyBody = { [key: string]: unknown };
