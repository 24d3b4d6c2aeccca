/** What a program does with the TypeScript client. The last line says that all of it held. */

import { Client, ServerError, type DryRunReport, type OpenApproval, type ListedRule } from "./amplifier.js";

declare const process: { argv: string[] };
const [workspace = "", url = "", token = "", viewer = ""] = process.argv.slice(2);

function check(found: unknown, expected: unknown): void {
    const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
    if (one !== other) throw new Error(`${one} is not ${other}`);
}

async function refused(status: number, code: string, ask: () => Promise<unknown>): Promise<ServerError> {
    try {
        await ask();
    } catch (error) {
        if (!(error instanceof ServerError)) throw error;
        check([error.status, error.code], [status, code]);
        return error;
    }
    throw new Error(`nothing was refused with ${code}`);
}

const client = new Client(`${url}/`, token);
check(await client.me(), { name: "ada", role: "admin" });
check(await client.sessions(), []);
const session = await client.start({ prompt: "Make it", workspace });
check([session.runs_in, session.connected], ["server", true]);

// Its questions come on its own stream.
let asked: OpenApproval | undefined;
let closed = "";
for await (const message of client.stream({ session: session.id, after: 0 })) {
    if (message.type === "hello") asked = message.approvals[0];
    if (message.type === "approval_requested") asked = message.approval;
    const question = asked;
    if (question !== undefined && closed === "") {
        asked = undefined;
        closed = "soon";
        check([question.session, question.prompt, question.preview.body?.[0]?.text], [session.id, "Run `touch made`?", "touch made"]);
        check((await client.approvals()).map((one) => one.id), [question.id]);
        await refused(403, "nonce", () => client.answer({ ...question, nonce: "wrong" }, "Allow once"));
        await refused(422, "invalid_option", () => client.answer(question, "Yes"));
        const other = { operations: ["run *"], scope: "user" as const, label: "", explanation: "" };
        await refused(422, "invalid_option", () => client.answer(question, "Allow always", undefined, other));
        check((await client.answer(question, "Allow once")).granted, true);
        const second = await refused(409, "answered", () => client.answer(question, "Deny"));
        check(second.by, { name: "ada", via: "api" });
    }
    if (message.type === "approval_closed") {
        closed = message.id;
        check([message.decided.granted, message.decided.by?.via], [true, "api"]);
    }
    if (message.type === "records" && message.records.some((record) => record.event === "prompt:complete")) break;
}
check(closed.startsWith(`${session.id}.`), true);
check(await client.approvals(), []);

while ((await client.session(session.id)).state !== "idle") {
    await client.records({ after: (await client.records()).cursor, wait: 0.1 });
}
const decided = await client.history({ session: session.id });
check(decided.map((one) => [one.granted, one.by]), [[true, { name: "ada", via: "api" }]]);
check((await client.sessions()).map((one) => one.id), [session.id]);
check((await client.timeline(session.id)).items.length > 0, true);

const rule: ListedRule = await client.addRule({ scope: "user", hook: "confirm", pattern: "Run `rm *`?", decision: "deny" });
const listed = await client.rules();
check(listed.rules.map((one) => one.id), [rule.id]);
check(listed.unreadable.map((one) => [one.file.includes("0".repeat(32)), one.reason !== ""]), [[true, true]]);
await client.revoke(rule.id);
check((await client.rules()).rules, []);
await refused(404, "not_found", () => client.revoke(rule.id));

check((await client.hooks()).some((hook) => hook.hook === "confirm" && hook.asks === 1), true);
const tried: DryRunReport = await client.try("tool:pre", { tool_name: "Bash", tool_input: { command: "ls" } }, { workspace });
check([tried.decision, tried.hooks.map((hook) => hook.hook), tried.approvals[0]?.prompt], ["ask_user", ["confirm"], "Run `ls`?"]);
const bundle = "hooks:\n  - rule: never\n    on: tool:pre\n    deny: never\n";
check((await client.try("tool:pre", {}, { bundle })).denied_by, "never");
await refused(422, "body", () => client.try("tool"));
check((await client.reload()).results.map((one) => one.result), ["unchanged"]);
const audit = await client.verify();
check([audit.sound, audit.problems, audit.verified_to > 0], [true, [], true]);
check((await client.audit()).sound, true);
check((await client.proof(0) as { seq: number }).seq, 0);
await client.end(session.id);

await refused(401, "unauthenticated", () => new Client(url, "wrong").sessions());
await refused(401, "unauthenticated", () => new Client(url, "wrong").stream().next());
check(await new Client(url, viewer).me(), { name: "watcher", role: "viewer" });
await refused(403, "role", () => new Client(url, viewer).start());
await refused(404, "not_found", () => client.session("../../health"));
await refused(0, "unreachable", () => new Client("http://127.0.0.1:9", viewer).me());
const stopping = new AbortController();
const stream = client.stream({}, stopping.signal);
check((await stream.next()).value?.type, "hello");
stopping.abort();
console.log("All of it held.");
