/**
 * A client for the Amplifier server: sessions, events, approvals, rules, hooks and the audit log. Needs nothing but `fetch`.
 *
 *     const client = new Client("http://127.0.0.1:7878", token);
 *     const session = await client.start({ prompt: "Tidy up", workspace: "/home/ann/project" });
 *     for await (const message of client.stream({ session: session.id })) {
 *         if (message.type !== "approval_requested") continue;
 *         const approval = await client.whole(message.approval);     // show it, then
 *         await client.answer(approval, "Allow once");
 *     }
 *
 * Everything that goes wrong is a `ServerError` with the server's own code and words. See docs/reference/api.md for what the forms hold.
 */

import type {
    Actor, ApprovalRules, AuditStatus, DecidedApproval, DryRunReport, HookStats, ListedRule, Me, NewRule, OpenApproval, Page, ReloadResults, RuleOffer, Session, StreamMessage, Timeline,
} from "./types";

export type * from "./types";
export type Query = Record<string, string | number | undefined>;

/** The server refused: `code` is a word for programs, `by` who was faster, if somebody was. */
export class ServerError extends Error {
    constructor(readonly status: number, readonly code: string, message: string, readonly by?: Actor) {
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
    timeline(id: string, query: Query = {}): Promise<Timeline> {
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
    records(query: Query = {}): Promise<Page> {
        return this.#get("/api/audit/records", query);
    }
    /** Messages as they come, the first one `hello`. Ends when the server does; go on from the last `cursor` with `after`. */
    async *stream(query: Query = {}, signal?: AbortSignal): AsyncGenerator<StreamMessage, void, undefined> {
        const response = await this.#call("GET", "/api/stream", { query, signal });
        const decoder = new TextDecoder();
        let rest = "";
        for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
            const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
            rest = lines.pop() ?? "";
            for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as StreamMessage;
        }
    }

    /** The questions that are open. */
    async approvals(): Promise<OpenApproval[]> {
        return (await this.#get<{ approvals: OpenApproval[] }>("/api/approvals")).approvals;
    }
    /** The approval with all that will run: a truncated one comes without it, and is not to be answered before it was seen. */
    async whole(approval: OpenApproval): Promise<OpenApproval> {
        if (!approval.truncated) return approval;
        const found = await this.#get<OpenApproval | DecidedApproval>(`/api/approvals/${encodeURIComponent(approval.id)}`);
        if ("granted" in found) throw new ServerError(409, "decided", `the approval ${approval.id} is decided: ${found.reason}`);
        return found;
    }
    /**
     * Answers with the label of an option. If somebody was faster, or it is too late, that is a `ServerError` with status 409.
     * `rule` is one of the `offers` of the approval, for an option that always allows.
     */
    answer(approval: OpenApproval, option: string, scope?: "once" | "project", rule?: RuleOffer): Promise<DecidedApproval> {
        const chosen = rule && { operations: rule.operations, scope: rule.scope };
        return this.#post(`/api/approvals/${encodeURIComponent(approval.id)}/answer`, { option, nonce: approval.nonce, scope, rule: chosen });
    }
    async history(query: Query = {}): Promise<DecidedApproval[]> {
        return (await this.#get<{ decisions: DecidedApproval[] }>("/api/approvals/history", query)).decisions;
    }
    /** The rules, and the files that cannot be read: what they allow is asked until they are mended. */
    rules(): Promise<ApprovalRules> {
        return this.#get("/api/rules");
    }
    addRule(rule: NewRule): Promise<ListedRule> {
        return this.#post("/api/rules", rule);
    }
    async revoke(id: string): Promise<void> {
        await this.#call("DELETE", `/api/rules/${encodeURIComponent(id)}`);
    }

    async hooks(query: Query = {}): Promise<HookStats[]> {
        return (await this.#get<{ hooks: HookStats[] }>("/api/hooks", query)).hooks;
    }
    /** Has the connected sessions look at their bundles at once: what came of it in each. */
    reload(): Promise<ReloadResults> {
        return this.#post("/api/hooks/reload", {});
    }
    test(bundle?: string): Promise<unknown> {
        return this.#post("/api/hooks/test", { bundle });
    }
    /** What would come of an event: of the hooks of a session in `workspace`, or of those of a `bundle` alone. */
    try(event: string, data: object = {}, more: { workspace?: string; bundle?: string } = {}): Promise<DryRunReport> {
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
        let told: { code?: string; message?: string; by?: Actor } = {};
        try { told = (JSON.parse(text) as { error?: typeof told }).error ?? {}; } catch { /* not the server's own words */ }
        throw new ServerError(response.status, told.code ?? "unknown", told.message ?? (text || `status ${response.status}`), told.by);
    }
}
