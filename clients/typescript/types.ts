// Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date

/** The effect of an operation, described for the person who is asked before it runs. The code that will run the operation makes it; an operation that nobody describes is shown as data. Terminals, pages and programs only draw it. The texts may hold any characters: whoever draws them makes them safe to show. */
export interface ActionPreview {
    /** The operation line by line: a command, a diff, a task. */
    body?: PreviewRow[];
    /** The file that the preview was compared with, if the operation changes one. */
    compared_with?: ComparedWith | null;
    /** Further settings of the operation: a time limit, a range. */
    fields?: PreviewField[];
    /** The effect in a few words: a new file, the number of lines that are added and removed. */
    summary?: string | null;
    /** The file, pattern or agent that it is about. */
    target?: string | null;
    /** The kind of operation: the name of a tool, `prompt`, `agent`, or an event. */
    title: string;
    /** `true` if something is left out because it is too large. The first warning says so. */
    truncated?: boolean;
    /** Facts that the person has to know before an answer. */
    warnings?: string[];
}

/** The user who did something, and the channel. */
export interface Actor {
    /** The name that the approval system knows the user by. */
    name: string;
    /** The channel: `terminal`, `console`, `api`, … */
    via: string;
}

/** What came of it. */
export interface AllReloaded {
    /** What came of it in each. */
    results: SessionReloaded[];
    /** How many sessions are connected. */
    sessions: number;
}

/** The option that an approver chose, and the approver's identity. */
export interface ApprovalAnswer {
    /** The approver, where known. It is recorded. */
    by?: Actor | null;
    /** The label of an option. */
    label: string;
}

/** The decision on an approval request. */
export interface ApprovalDecision {
    /** The basis of the decision. */
    basis: DecisionBasis;
    /** The approver, where known. */
    by?: Actor | null;
    /** `true` if the operation may run. */
    granted: boolean;
    /** The reason, in words. */
    reason: string;
}

/** An answer that is offered, and what it does. */
export interface ApprovalOption {
    /** What it does. The kernel decides by this, never by the label. */
    effect: Effect;
    /** What the person reads and answers. */
    label: string;
}

/** An approval that a hook requested, and the decision. */
export interface ApprovalReport {
    /** `true` if another hook changed the data after this one asked, so that no allow given in advance counted. */
    changed_after_asking?: boolean;
    /** The file that the approver was shown a change of. */
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
    /** The id of the request, `SESSION.RUN.N`; missing if nobody was asked. */
    id?: string | null;
    /** The answers that came when the request was no longer open. */
    late_answers?: ApprovalAnswer[];
    /** The options of the approver. */
    options?: ApprovalOption[];
    /** The question. */
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
    /** The possible answers. */
    options: ApprovalOption[];
    /** The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it, and nothing is run if the file has another one by then. */
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
    /** The prompts; `*` stands for any text. */
    pattern: string;
    /** The folder, if the scope is a project. */
    project?: string | null;
    /** The sessions that the rule is for. */
    scope: RuleScope;
    /** The session, if the scope is one. */
    session?: string | null;
}

/** What is proven about the audit log. */
export interface AuditStatus {
    /** What it cannot prove. */
    cannot_prove: string[];
    /** Whether it is being verified. */
    checking: boolean;
    /** The last checkpoint. */
    checkpoint?: CheckpointSeen | null;
    /** How many records are newer than the last checkpoint that is kept elsewhere; all if none is. */
    exposed: number;
    /** The id of the log. */
    log: string;
    /** What is wrong. */
    problems: Problem[];
    /** What verifying proves. */
    proves: string[];
    /** How many records there are. */
    size: number;
    /** Whether nothing is wrong with them. */
    sound: boolean;
    /** Every record below this number is verified. */
    verified_to: number;
}

/** A browser that is in. */
export interface Browser {
    /** The name that its answers are recorded under. */
    name: string;
    /** What it may do. */
    role: Role;
    /** When it last asked for something. */
    seen: string;
    /** When it came in. */
    since: string;
}

/** The browsers that are in. */
export interface Browsers {
    /** They. */
    browsers: Browser[];
}

/** Too many questions in a short time. */
export interface Busy {
    /** How many were asked. */
    asked: number;
    /** By which hook. */
    hook: string;
    /** A rule that would answer them. */
    pattern: string;
    /** In how many seconds. */
    seconds: number;
}

/** A signed checkpoint. */
export interface CheckpointSeen {
    /** When it was signed. */
    at: string;
    /** How many records it covers. */
    size: number;
}

/** The file that a preview was compared with. */
export interface ComparedWith {
    /** The path, with links followed. */
    path: string;
    /** The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace. */
    version: string;
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
    /** The event at which it asked. */
    event: string;
    /** `true` if the operation may run. */
    granted: boolean;
    /** The hook that asked. */
    hook: string;
    /** `SESSION.RUN.NUMBER`; missing if no approver had to be asked. */
    id?: string | null;
    /** The text of the request. */
    prompt: string;
    /** The reason, in words. */
    reason: string;
    /** The number of the record of the decision; 0 if it is not read yet. */
    seq?: number;
    /** The session. */
    session: string;
}

/** Decisions. */
export interface Decisions {
    /** They, the newest first. */
    decisions: DecidedApproval[];
}

/** An event whose outcome is to be tried. Approvals are not requested, and nothing runs but the hooks. */
export interface DryRun {
    /** A bundle as text, whose hooks alone are tried. */
    bundle?: string | null;
    /** Its data. */
    data?: { [key: string]: unknown };
    /** The event. */
    event: string;
    /** The folder whose hooks are tried, as a session there would have them; the server's own if missing. */
    workspace?: string | null;
}

/** The report of an event that was tried. */
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
    /** The output of hooks, as far as they did not suppress it. It is not recorded. */
    outputs: OutputReport[];
    /** The reason of the denial. */
    reason?: string | null;
    /** The result of the operation that ended before the event. */
    result?: OperationResult | null;
    /** The number of further records of the emission whose content is erased or withheld. */
    unreadable: number;
    /** The reason why hooks of a project may be missing: it is not trusted. */
    warning?: string | null;
}

/** The outcome of an emission as JSON, built from the outcome itself or from the records of a log. A field that the source does not know is missing. */
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
    /** The output of hooks, as far as they did not suppress it. It is not recorded. */
    outputs: OutputReport[];
    /** The reason of the denial. */
    reason?: string | null;
    /** The result of the operation that ended before the event. */
    result?: OperationResult | null;
    /** The number of further records of the emission whose content is erased or withheld. */
    unreadable: number;
}

/** How many browsers are out now. */
export interface Ended {
    /** So many. */
    ended: number;
}

/** What went wrong. */
export interface Explained {
    /** Who was faster, if somebody else has answered. */
    by?: Actor | null;
    /** A word for programs. */
    code: string;
    /** What is wrong, and what to do. */
    message: string;
}

/** Something went wrong. */
export interface Failure {
    /** What. */
    error: Explained;
}

/** A part of the system that failed. */
export interface FailureReport {
    /** The error. */
    error: string;
    /** The part. */
    part: string;
}

/** An answer. */
export interface Given {
    /** The nonce of the question. */
    nonce: string;
    /** The label of an option. */
    option: string;
    /** For what it holds. */
    scope?: AnswerScope;
}

/** That the server works. */
export interface Health {
    /** `ok`. */
    status: string;
    /** The version of the server. */
    version: string;
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
    /** `true` if it kept its output out of the transcript. */
    suppressed_output?: boolean;
}

/** What a hook has done so far. */
export interface HookStats {
    /** How often it asked a person. */
    asks: number;
    /** How often it was called. */
    calls: number;
    /** How often it denied. */
    denials: number;
    /** How often it failed. */
    errors: number;
    /** The events at which it was called. */
    events: string[];
    /** Its name. */
    hook: string;
    /** How often it told the agent something. */
    injects: number;
    /** How many calls took up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts. */
    latency: number[];
    /** The slowest call. */
    max_ns: number;
    /** How often it changed data. */
    modifies: number;
    /** Half of the calls were as fast as that, in nanoseconds. */
    p50_ns: number;
    /** 95 of 100 calls were as fast as that. */
    p95_ns: number;
    /** Calls in each of the last 30 minutes, the oldest first. */
    recent: number[];
}

/** The hooks of a session. */
export interface HooksOf {
    /** They, in running order. */
    hooks: { [key: string]: unknown }[];
}

/** Hooks, by name. */
export interface HooksSeen {
    /** What each has done so far. */
    hooks: HookStats[];
}

/** A text that a hook adds to the conversation of the agent. */
export interface InjectionReport {
    /** The size of the text. */
    bytes: number;
    /** The hook. */
    hook: string;
    /** The place in the conversation. */
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
    /** The digest of the operation; missing if the data is too deep to have one. */
    digest?: string | null;
    /** The number of its record. */
    seq: number;
    /** The call that it is paired with its result by. */
    tool_call_id?: string | null;
    /** `true` if the log has no result of it: it runs, or it is unknown how it ended. */
    unresolved: boolean;
}

/** A link that lets one browser in, once. */
export interface Link {
    /** Until when. */
    expires_at: string;
    /** To be opened in a browser. */
    url: string;
}

/** A link that is wanted. */
export interface LinkWanted {
    /** The name that answers given through it are recorded under. */
    name: string;
    /** What it allows: `viewer`, `approver`, `admin`. */
    role: string;
}

/** One record of the audit log. */
export interface LogRecord {
    /** When. */
    at: string;
    /** What it says. */
    body: unknown;
    /** At which event. */
    event?: string | null;
    /** Its hash, in hexadecimal. */
    hash: string;
    /** What kind of record it is. */
    kind: string;
    /** Its number: the cursor of streams. */
    seq: number;
    /** In which session. */
    session?: string | null;
    /** In which turn of it. */
    turn?: number | null;
    /** Who wrote it. */
    writer: string;
}

/** Who is asking the server. */
export interface Me {
    /** The name. */
    name: string;
    /** What they may do: `viewer`, `approver`, `admin`. */
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

/** A session that is to be. */
export interface NewSession {
    /** What it works on first. */
    prompt?: string | null;
    /** The folder that it works in; that of the server unless given. */
    workspace?: string | null;
}

/** An approval request that waits for an answer, and the session that made it. */
export interface OpenApproval {
    /** The time of the request. */
    created_at: string;
    /** The time at which the kernel stops waiting. */
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
    /** Returned with the answer, so that only what was shown can be answered. Empty for viewers, who cannot answer, and on the link: the server makes it. */
    nonce?: string;
    /** The number of the request in its session. Sub-agents count with the session that they work for. */
    number: number;
    /** The possible answers. */
    options: ApprovalOption[];
    /** If the session is a sub-agent: the connected session that it works for. */
    parent_session?: string | null;
    /** The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it, and nothing is run if the file has another one by then. */
    preview: ActionPreview;
    /** The text of the request. */
    prompt: string;
    /** The reason that the hook gives. */
    reason?: string | null;
    /** The session that asks. */
    session: string;
    /** The name of the session. */
    session_name?: string | null;
    /** The time that the kernel waits for an answer, in seconds. */
    timeout_s: number;
    /** `true` if the lines of the preview are left out here, because there are many: `GET /api/approvals/{id}` has them. */
    truncated?: boolean;
    /** The kernel's own warning to the approver. */
    warning?: string | null;
    /** The folder that the session works in. */
    workspace: string;
}

/** A gated operation that has ended. */
export interface OperationResult {
    /** `true` if it succeeded, where that is known. */
    success?: boolean | null;
    /** The call that it is paired with its intent by. */
    tool_call_id?: string | null;
}

/** The output of a hook. */
export interface OutputReport {
    /** The hook. */
    hook: string;
    /** The text. */
    text: string;
}

/** Some records, and where to go on. */
export interface Page {
    /** What to ask for next: records from this number on, or before it if `before` was asked for. There may be more even if there are fewer here than were asked for. */
    cursor: number;
    /** The number of the first record that is still there. */
    first: number;
    /** The records, the oldest first. */
    records: LogRecord[];
}

/** What waits for an answer. */
export interface Pending {
    /** The questions, the oldest first, and long ones without the lines of their actions. */
    approvals: OpenApproval[];
    /** Whether there are too many in a short time. */
    busy?: Busy | null;
    /** How many there are, listed or not. */
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

/** Something that is wrong with the audit log. */
export interface Problem {
    /** At which record, where that is known. */
    seq?: number | null;
    /** What. */
    text: string;
}

/** A prompt. */
export interface Prompt {
    /** It. */
    text: string;
}

/** A proof that the server knows the key of a browser. */
export interface Proof {
    /** It. */
    proof: string;
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
    /** The output of hooks, as far as they did not suppress it. It is not recorded. */
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

/** An approval rule as the API lists it. */
export interface Rule {
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
    /** The prompts; `*` stands for any text. */
    pattern: string;
    /** The folder, if the scope is a project. */
    project?: string | null;
    /** The sessions that the rule is for. */
    scope: RuleScope;
    /** The session, if the scope is one. */
    session?: string | null;
}

/** Standing answers. */
export interface Rules {
    /** They. */
    rules: Rule[];
    /** The files that cannot be read, so that what stands in them is missing here. While that is so, none of them allows anything. */
    unreadable: UnreadableFile[];
}

/** A session, as far as it is known. */
export interface Session {
    /** Whether it is connected, so that it can be answered, stopped and prompted from here. */
    connected: boolean;
    /** How many operations were denied. */
    denials: number;
    /** Why it ended, if it has. */
    ended?: string | null;
    /** How many hooks failed. */
    errors: number;
    /** Its id. */
    id: string;
    /** The name that a hook or a person gave it. */
    name?: string | null;
    /** The session that delegated to it. */
    parent?: string | null;
    /** How many questions are open. */
    pending: number;
    /** The process that it runs in, if it is connected. */
    pid?: number | null;
    /** The last prompt, or its beginning. */
    prompt?: string | null;
    /** Where it runs, if it is connected. */
    runs_in?: Place | null;
    /** When it was first heard of. */
    started_at: string;
    /** What it does at the moment. */
    state: State;
    /** Whether it takes prompts from here. */
    takes_prompts: boolean;
    /** How many tokens were used. */
    tokens: number;
    /** How many tools were called. */
    tool_calls: number;
    /** How many turns it has had. */
    turns: number;
    /** When it was last heard of. */
    updated_at: string;
    /** The folder that it works in. */
    workspace?: string | null;
}

/** What came of it in one session. */
export interface SessionReloaded {
    /** The problem, or what to do about it. */
    message?: string | null;
    /** The outcome. */
    result: ReloadStatus;
    /** Which. */
    session: string;
}

/** Sessions. */
export interface Sessions {
    /** They, the newest first. */
    sessions: Session[];
}

/** Which bundle is tested. */
export interface TestBody {
    /** The bundle as text; that of the server's folder if none is given. */
    bundle?: string | null;
}

/** The course of a session. */
export interface Timeline {
    /** Where to go on. Fewer items than were asked for are all there are; those of them that may still change come again, and one with the same `seq` takes the place of the one before. */
    cursor: number;
    /** What happened, the oldest first. */
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
    /** `event`, or the kind of a record that belongs to no emission: `seal`, `gap`. Its kind stands in `event`, too, and its body in `data`. */
    kind: string;
    /** The messages for the user. */
    messages: MessageReport[];
    /** The output of hooks, as far as they did not suppress it. It is not recorded. */
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
    /** The file, or the folder that it should be in. */
    file: string;
    /** The reason. */
    reason: string;
}

/** A standing answer that is to be. */
export interface Wanted {
    /** What it answers. */
    decision: DefaultDecision;
    /** The hook whose questions it answers. */
    hook: string;
    /** The questions: `*` stands for any text. */
    pattern: string;
    /** The folder, if it holds for one. */
    project?: string | null;
    /** For what it holds. */
    scope: RuleScope;
    /** The session, if it holds for one. */
    session?: string | null;
}

/** The action of a hook without its payload, or the kind of its failure. */
export type ActionKind = "continue" | "respond" | "deny" | "modify" | "inject_context" | "ask_user" | "failed" | "panicked" | "timed_out" | "unreadable";

/** The requests that an answer is for. */
export type AnswerScope = "once" | "project";

/** The state of the data of an event. */
export type DataStatus = "whole" | "redacted" | "erased" | "withheld";

/** The basis of a decision. */
export type DecisionBasis = "answer" | "rule" | "remembered" | "timeout" | "not_offered" | "no_system" | "failed" | "cancelled" | "disconnected";

/** The decision of an emission, in a word. */
export type DecisionKind = "continue" | "modify" | "inject_context" | "ask_user" | "deny" | "cancelled";

/** An answer that counts without an approver: after the time limit, or by a rule. */
export type DefaultDecision = "allow" | "deny";

/** The effect of an option. */
export type Effect = "allow_once" | "allow_always" | "deny" | "deny_always";

/** The status of an injection after the session's limits were applied. */
export type InjectionStatus = "injected" | "over_budget" | "truncated" | "dropped" | "refused" | "no_context";

/** How urgent a message is. */
export type MessageLevel = "info" | "warning" | "error";

/** As whom a message speaks. */
export type MessageRole = "system" | "user" | "assistant";

/** Nothing. */
export type Nothing = { [key: string]: unknown };

/** Where a session runs. */
export type Place = "server" | "process";

/** Where an injection lands, and how long it stays. */
export type Placement = "history" | "next_call" | "last_tool_result";

/** The kind of a line of a preview. */
export type PreviewRowKind = "plain" | "context" | "added" | "removed" | "gap" | "note";

/** A question: open, or decided. */
export type Question = OpenApproval | DecidedApproval;

/** Nothing has to be said. */
export type ReloadBody = { [key: string]: unknown };

/** The outcome of a reload. */
export type ReloadStatus = "unchanged" | "changed" | "refused" | "not_trusted" | "no_answer";

/** What somebody may do. Each role may do what those before it may. */
export type Role = "viewer" | "approver" | "admin";

/** The sessions that a rule is for. */
export type RuleScope = "session" | "project" | "user";

/** What a session does. */
export type State = "running" | "waiting" | "idle" | "away" | "ended" | "gone";

/** What the server sends. */
export type StreamMessage = { approvals: OpenApproval[]; audit: AuditStatus; busy?: Busy | null; cursor: number; known: number; me: Me; now: string; pending: number; sessions: Session[]; type: "hello" } | { session: Session; type: "session" } | { approval: OpenApproval; type: "approval_requested" } | { decided: DecidedApproval; id: string; type: "approval_closed" } | { busy?: Busy | null; type: "approval_flood" } | { type: "rules" } | { audit: AuditStatus; type: "audit" } | { error?: Explained | null; id: string; ok: boolean; type: "answered" } | { cursor: number; records: LogRecord[]; type: "records" };

/** Nothing has to be said. */
export type VerifyBody = { [key: string]: unknown };
