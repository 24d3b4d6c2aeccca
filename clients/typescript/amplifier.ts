/**
 * A client for the Amplifier server: sessions, events, approvals, rules, hooks and the audit log. Needs nothing but `fetch`.
 *
 *     const client = new Client("http://127.0.0.1:7878", token);
 *     const session = await client.start({ prompt: "Tidy up", workspace: "/home/ann/project" });
 *     for await (const message of client.stream({ session: session.id })) {
 *         if (message.type === "asked") await client.answer(message.approval, "Allow once");
 *     }
 *
 * Everything that goes wrong is a `ServerError` with the server's own code and words. See docs/server.md for what the forms hold.
 */

export type State = "running" | "waiting" | "idle" | "away" | "ended" | "gone";
export interface Session {
    id: string; name?: string; workspace?: string; state: State; connected: boolean; takes_prompts: boolean; place?: "server" | "process";
    pid?: number; begun_at: string; last_at: string; turns: number; tool_calls: number; denials: number; errors: number; pending: number;
    tokens: number; prompt?: string; ended?: string; parent?: string;
}
export interface Row { kind: "plain" | "context" | "added" | "removed" | "gap" | "note"; text: string; old?: number; new?: number }
export interface Action {
    title: string; target?: string; about?: string; notes: string[]; body: Row[]; fields: { name: string; value: string }[];
}
export interface Approval {
    id: string; session: string; within?: string; session_name?: string; workspace: string; hook: string; event: string; prompt: string; reason?: string;
    options: { label: string; effect: string }[]; asked_at: string; deadline: string; timeout_s: number; default: "allow" | "deny";
    digest: string; action: Action; nonce?: string;
}
export interface Person { name: string; via: string }
export interface Decided {
    id?: string; session: string; hook: string; event: string; prompt: string; granted: boolean; basis: string; reason: string; by?: Person;
    asked_at?: string; decided_at: string; seq: number;
}
export interface Reloaded { session: string; result: "unchanged" | "changed" | "refused" | "not_trusted" | "no_answer"; message?: string }
export interface Tried {
    decision: string; by: string; says: string; data: Record<string, unknown>; warning?: string;
    hooks: { hook: string; answer: string; took_us: number; reason: string | null; error: string | null }[];
    approvals: { hook: string; prompt: string; options: string[] }[]; messages: { hook: string; level: string; text: string }[];
    injections: { hook: string; role: string; placement: string; text: string }[];
}
export interface Rule {
    id: string; scope: "session" | "project" | "user"; session?: string; project?: string; hook: string; pattern: string;
    decision: "allow" | "deny"; by?: Person; explanation: string;
}
export interface Event {
    seq: number; at: string; session?: string; turn?: number; event?: string; kind: string; body: unknown; writer: string; hash: string;
}
export interface Busy { asked: number; seconds: number; hook: string; pattern: string }
export interface AuditStatus {
    log: string; size: number; verified_to: number; sound: boolean; problems: { seq?: number; text: string }[]; exposed: number;
    checkpoint?: { size: number; at: string }; checking: boolean; proves: string[]; cannot_prove: string[];
}
export interface Me { name: string; role: "viewer" | "approver" | "admin" }
export interface HookStats {
    hook: string; events: string[]; calls: number; denials: number; asks: number; modifies: number; injects: number; errors: number;
    p50_ns: number; p95_ns: number; max_ns: number; latency: number[]; recent: number[];
}
export type Message =
    | { type: "hello"; me: Me; cursor: number; now: string; sessions: Session[]; known: number; approvals: Approval[]; pending: number; busy?: Busy; audit: AuditStatus }
    | { type: "events"; events: Event[]; cursor: number }
    | { type: "session"; session: Session }
    | { type: "asked"; approval: Approval }
    | { type: "closed"; id: string; decided: Decided }
    | { type: "busy"; busy: Busy | null }
    | { type: "rules" }
    | { type: "audit"; audit: AuditStatus };
export type Query = Record<string, string | number | undefined>;

/** The server refused: `code` is a word for programs, `by` who was faster, if somebody was. */
export class ServerError extends Error {
    constructor(readonly status: number, readonly code: string, message: string, readonly by?: Person) {
        super(message);
        this.name = "ServerError";
    }
}

/** Talks to one server with one token. */
export class Client {
    readonly #url: string;
    readonly #token: string;

    constructor(url: string, token: string) {
        this.#url = url.replace(/\/+$/, "");
        this.#token = token;
    }

    me(): Promise<Me> {
        return this.#get("/api/me");
    }
    /** Sessions that are known, the newest first: `state`, `limit`. */
    async sessions(query: Query = {}): Promise<Session[]> {
        return (await this.#get<{ sessions: Session[] }>("/api/sessions", query)).sessions;
    }
    session(id: string): Promise<Session> {
        return this.#get(`/api/sessions/${encodeURIComponent(id)}`);
    }
    /** Starts a session inside the server. */
    start(what: { prompt?: string; workspace?: string } = {}): Promise<Session> {
        return this.#post("/api/sessions", what);
    }
    timeline(id: string, query: Query = {}): Promise<{ items: unknown[]; cursor: number }> {
        return this.#get(`/api/sessions/${encodeURIComponent(id)}/timeline`, query);
    }
    async prompt(id: string, text: string): Promise<void> {
        await this.#post(`/api/sessions/${encodeURIComponent(id)}/prompt`, { text });
    }
    /** Stops the turn: the first time when the running tool has finished, the second time at once. */
    async interrupt(id: string): Promise<void> {
        await this.#post(`/api/sessions/${encodeURIComponent(id)}/interrupt`, {});
    }
    async end(id: string): Promise<void> {
        await this.#post(`/api/sessions/${encodeURIComponent(id)}/end`, {});
    }

    /** Records after a cursor: `after`, `session`, `event`, `kind`, `hook`, `text`, `limit`, `wait` (seconds). */
    events(query: Query = {}): Promise<{ events: Event[]; cursor: number; first: number }> {
        return this.#get("/api/events", query);
    }
    /** Messages as they come, the first one `hello`. Ends when the server does; go on from the last `cursor` with `after`. */
    async *stream(query: Query = {}, signal?: AbortSignal): AsyncGenerator<Message, void, undefined> {
        const response = await this.#call("GET", "/api/stream", { query, signal });
        const decoder = new TextDecoder();
        let rest = "";
        for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
            const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
            rest = lines.pop() ?? "";
            for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as Message;
        }
    }

    /** The questions that are open. */
    async approvals(): Promise<Approval[]> {
        return (await this.#get<{ approvals: Approval[] }>("/api/approvals")).approvals;
    }
    /** Answers with the label of an option. If somebody was faster, or it is too late, that is a `ServerError` with status 409. */
    answer(approval: Approval, option: string, scope?: "once" | "project"): Promise<{ granted: boolean; reason: string }> {
        return this.#post(`/api/approvals/${encodeURIComponent(approval.id)}/answer`, { option, nonce: approval.nonce, scope });
    }
    async history(query: Query = {}): Promise<Decided[]> {
        return (await this.#get<{ decisions: Decided[] }>("/api/approvals/history", query)).decisions;
    }
    /** The rules, and the files that cannot be read: what they allow is asked until they are mended. */
    rules(): Promise<{ rules: Rule[]; unreadable: { file: string; why: string }[] }> {
        return this.#get("/api/rules");
    }
    addRule(rule: Omit<Rule, "id" | "by" | "explanation">): Promise<Rule> {
        return this.#post("/api/rules", rule);
    }
    async revoke(id: string): Promise<void> {
        await this.#call("DELETE", `/api/rules/${encodeURIComponent(id)}`);
    }

    async hooks(query: Query = {}): Promise<HookStats[]> {
        return (await this.#get<{ hooks: HookStats[] }>("/api/hooks", query)).hooks;
    }
    /** Has the connected sessions look at their bundles at once: what came of it in each. */
    reload(): Promise<{ sessions: number; results: Reloaded[] }> {
        return this.#post("/api/hooks/reload", {});
    }
    test(bundle?: string): Promise<unknown> {
        return this.#post("/api/hooks/test", { bundle });
    }
    /** What would come of an event: of the hooks of a session in `workspace`, or of those of a `bundle` alone. */
    try(event: string, data: object = {}, more: { workspace?: string; bundle?: string } = {}): Promise<Tried> {
        return this.#post("/api/hooks/try", { event, data, ...more });
    }
    audit(): Promise<AuditStatus> {
        return this.#get("/api/audit");
    }
    verify(): Promise<AuditStatus> {
        return this.#post("/api/audit/verify", {});
    }
    proof(seq: number): Promise<unknown> {
        return this.#get(`/api/audit/proof/${seq}`);
    }

    async #get<T>(path: string, query: Query = {}): Promise<T> {
        return (await (await this.#call("GET", path, { query })).json()) as T;
    }
    async #post<T>(path: string, body: object): Promise<T> {
        const text = await (await this.#call("POST", path, { body })).text();
        return (text === "" ? {} : JSON.parse(text)) as T;
    }
    async #call(method: string, path: string, more: { query?: Query; body?: object; signal?: AbortSignal | undefined } = {}): Promise<Response> {
        const url = new URL(this.#url + path);
        for (const [name, value] of Object.entries(more.query ?? {})) if (value !== undefined) url.searchParams.set(name, String(value));
        const headers: Record<string, string> = { Authorization: `Bearer ${this.#token}`, Accept: "application/json, application/x-ndjson" };
        if (more.body) headers["Content-Type"] = "application/json";
        const body = more.body ? JSON.stringify(more.body) : null;
        const response = await fetch(url, { method, headers, body, signal: more.signal ?? null }).catch((error: unknown) => {
            if (more.signal?.aborted) throw error;
            throw new ServerError(0, "unreachable", `the server ${this.#url} cannot be reached: ${String(error)}`);
        });
        if (response.ok) return response;
        const text = await response.text();
        let told: { code?: string; message?: string; by?: Person } = {};
        try { told = (JSON.parse(text) as { error?: typeof told }).error ?? {}; } catch { /* not the server's own words */ }
        throw new ServerError(response.status, told.code ?? "unknown", told.message ?? (text || `status ${response.status}`), told.by);
    }
}
