// A server that only pretends: it serves the console as the real one does, and plays a few believable sessions.
// `node mock.mjs [PORT]` to look at it by hand; the tests start it themselves.

import { createHash, createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';
import { believable } from './story.mjs';

const CONSOLE = new URL('../../src/console/', import.meta.url);
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' };

/** The key that a link gives to a browser. */
export const KEY = 'K'.repeat(43);

/** How many sessions that are over and how many questions the first message has, and how many items of a timeline can still change. */
const FIRST_SESSIONS = 200;
const FIRST_APPROVALS = 500;
const CHANGING = 8;

export const hash = (value) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** The texts of a record that a search looks at. */
function searched({ kind, body }) {
  const texts = (value) => (typeof value === 'string' ? [value] : value && typeof value === 'object' ? Object.values(value).flatMap(texts) : []);
  if (kind === 'event') return [['prompt', body.data?.prompt], ['input', texts(body.data?.tool_input).join('\n')], ['reason', body.reason]].filter(([, text]) => text);
  return [['reason', body?.reason ?? body?.error]].filter(([, text]) => text);
}

/** What happened in the last hours: what the sessions tell, and a believable day before it. */
function activity(state, hours) {
  const now = Math.floor(Date.now() / 3_600_000);
  const busy = state.sessions.length > 0;
  const all = Array.from({ length: hours }, (_, n) => {
    const tool_calls = busy && n % 24 > 6 ? Math.round(60 * Math.abs(Math.sin(n / 2.3))) : 0;
    return { at: new Date((now - hours + 1 + n) * 3_600_000).toISOString(), sessions: tool_calls ? 2 : 0, prompts: Math.round(tool_calls / 6), tool_calls, denials: Math.round(tool_calls / 14), hook_errors: tool_calls > 55 ? 1 : 0, failed_sessions: tool_calls > 58 ? 1 : 0, tokens: tool_calls * 2_900, costs: tool_calls ? [{ amount: tool_calls * 0.0087, currency: 'USD', incomplete: false }] : [] };
  });
  const costs = busy ? [{ amount: all.reduce((sum, hour) => sum + hour.tool_calls * 0.0087, 0), currency: 'USD', incomplete: false }] : [];
  return { hours: all, costs, denials_by_hook: state.hooks.filter((one) => one.denials).map((one) => ({ hook: one.hook, denials: one.denials })).sort((a, b) => b.denials - a.denials) };
}

/**
 * Starts it. The state can be given, so that a restart finds what was there before.
 * @param {{port?: number, role?: string, state?: any, quiet?: boolean}} [options]
 */
export async function startMock(options = {}) {
  const state = options.state ?? believable(options);
  state.role = options.role ?? state.role ?? 'admin';
  state.known ??= true;
  // Whoever entered last in this browser: its cookie is theirs, so no other key counts.
  state.name ??= 'ada';
  state.key ??= KEY;
  state.answers ??= [];
  state.searches ??= [];
  const sockets = new Set();
  const connections = new Set();
  const say = (message) => {
    const text = JSON.stringify(message);
    for (const socket of sockets) socket.send(text);
  };
  const me = () => ({ name: state.name, role: state.role });
  const hello = () => ({ type: 'hello', me: me(), cursor: state.records.length, now: new Date().toISOString(), sessions: newest().filter((one, at) => at < FIRST_SESSIONS || !['ended', 'failed', 'gone'].includes(one.state)), known: state.sessions.length, approvals: state.approvals.slice(0, FIRST_APPROVALS), pending: state.approvals.length, ...(state.busy ? { busy: state.busy } : {}), audit: state.audit });
  const newest = () => [...state.sessions].sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  const refuse = (status, code, message, by) => ({ status, body: { error: { code, message, ...(by ? { by } : {}) } } });
  const ok = (body, status = 200) => ({ status, body });

  const decide = (id, granted, more = {}) => {
    const approval = state.approvals.find((one) => one.id === id);
    if (!approval) return null;
    state.approvals = state.approvals.filter((one) => one.id !== id);
    const seq = state.log('approval_decision', approval.session, approval.event, { hook: approval.hook, granted, basis: 'answer', reason: `User ${granted ? 'allowed' : 'denied'}: ${approval.prompt}`, ...more });
    const decided = { id, session: approval.session, hook: approval.hook, event: approval.event, prompt: approval.prompt, granted, basis: 'answer', reason: '', created_at: approval.created_at, decided_at: new Date().toISOString(), seq, ...more };
    state.decided.unshift(decided);
    const session = state.sessions.find((one) => one.id === approval.session);
    if (session) {
      session.pending = state.approvals.filter((one) => one.session === session.id).length;
      session.state = session.pending ? 'waiting' : session.state === 'waiting' ? 'running' : session.state;
      say({ type: 'session', session });
    }
    const isOpen = (one) => one.decision === 'ask_user' && one.approvals.every((asked) => !asked.decision);
    const item = (state.timelines[approval.session] ?? []).findLast(isOpen);
    if (item) {
      const { created_at, decided_at, granted: _, basis, reason, by, hook, prompt } = decided;
      item.approvals = [{ id, hook, prompt, options: approval.options, created_at, decided_at, decision: { granted, basis, reason, ...(by ? { by } : {}) } }];
      if (!granted) Object.assign(item, { denied: true, denied_by: approval.hook, reason: decided.reason || `User denied: ${approval.prompt}` });
      say({ type: 'records', records: [{ seq, at: decided.decided_at, session: approval.session, kind: 'approval_decision', event: approval.event, body: decided, writer: 'w1', hash: hash(decided) }], cursor: state.records.length });
    }
    say({ type: 'approval_closed', id, decided });
    return decided;
  };

  const routes = [
    ['GET', /^\/health$/, () => ok({ status: 'ok', version: '0.0.0' })],
    ['GET', /^\/api\/me$/, () => ok(me())],
    ['POST', /^\/api\/leave$/, () => { state.known = false; return ok(null, 204); }],
    ['GET', /^\/api\/sessions$/, (_, __, query) => {
      const fits = (one) => !query.has('before') || one.updated_at < query.get('before');
      return ok({ sessions: newest().filter(fits).slice(0, Number(query.get('limit') ?? 100)) });
    }],
    ['POST', /^\/api\/sessions$/, (_, body) => {
      const session = { ...state.sessions[0], id: `s-new-${state.sessions.length}`, name: undefined, state: 'idle', pending: 0, prompt: body.prompt, workspace: body.workspace ?? '/home/ada/work/harbour', started_at: new Date().toISOString(), updated_at: new Date().toISOString(), turns: 0, tool_calls: 0, denials: 0, errors: 0, tokens: 0 };
      state.sessions.unshift(session);
      state.timelines[session.id] = [];
      say({ type: 'session', session });
      return ok(session, 201);
    }],
    ['GET', /^\/api\/sessions\/([^/]+)$/, ([id]) => { const one = state.sessions.find((s) => s.id === id); return one ? ok(one) : refuse(404, 'unknown', `unknown session \`${id}\``); }],
    ['GET', /^\/api\/sessions\/([^/]+)\/timeline$/, ([id], _, query) => {
      if (!state.sessions.some((one) => one.id === id)) return refuse(404, 'unknown', `unknown session \`${id}\``);
      const all = state.timelines[id] ?? [];
      const limit = Number(query.get('limit') ?? 100);
      const items = all.filter((one) => one.seq >= Number(query.get('after') ?? 0)).slice(0, limit);
      // Like the server, it gives again what can still change, to who has come to the end.
      const changing = items.find((one, at) => at >= items.length - CHANGING || one.approvals.some((asked) => !asked.decision));
      return ok({ items, cursor: items.length >= limit ? items.at(-1).seq + 1 : changing?.seq ?? state.records.length });
    }],
    ['POST', /^\/api\/sessions\/([^/]+)\/(prompt|interrupt|end)$/, ([id, what], body) => {
      state.commands.push({ id, what, ...body });
      const session = state.sessions.find((s) => s.id === id);
      if (what === 'prompt' && session?.state !== 'idle') return refuse(409, 'busy', 'the session is running a turn; wait for the end, or interrupt the turn');
      if (what === 'prompt') {
        const seq = state.add(id, { event: 'prompt:submit', data: { prompt: body.text }, decision: 'continue' });
        say({ type: 'records', records: [state.records[seq]], cursor: state.records.length });
      }
      return ok(null, 202);
    }],
    ['GET', /^\/api\/activity$/, (_, __, query) => ok(activity(state, Number(query.get('hours') ?? 24)))],
    ['GET', /^\/api\/search$/, (_, __, query) => {
      state.searches.push(Object.fromEntries(query));
      const wanted = query.get('text').toLowerCase().split(/\s+/).filter(Boolean);
      const before = Number(query.get('cursor') ?? state.records.length);
      // Like the server, it reads a part of the log at a time.
      const from = Math.max(0, before - 400);
      const fits = (one) => (!query.has('since') || one.at >= query.get('since')) && (!query.has('until') || one.at < query.get('until'));
      const matches = state.records.slice(from, before).filter(fits).flatMap((one) => {
        const found = searched(one).find(([, text]) => wanted.every((word) => text.toLowerCase().includes(word)));
        return found ? [{ seq: one.seq, at: one.at, session: one.session, event: one.event, part: found[0], excerpt: found[1].slice(0, 240) }] : [];
      }).reverse();
      return ok({ matches, ...(from > 0 ? { cursor: String(from) } : {}), searched_since: state.records[from]?.at });
    }],
    ['GET', /^\/api\/audit\/records$/, (_, __, query) => {
      const wild = (pattern, text) => !pattern || (pattern.endsWith('*') ? text?.startsWith(pattern.slice(0, -1)) : text === pattern);
      const fits = (one) => wild(query.get('event'), one.event) && wild(query.get('kind'), one.kind) && wild(query.get('session'), one.session) && (!query.get('hook') || one.body?.hook === query.get('hook')) && (!query.get('text') || JSON.stringify(one.body).includes(query.get('text')));
      const limit = Number(query.get('limit') ?? 100);
      if (query.has('before')) {
        // Like the server, it reads a part of the log at a time.
        const end = Math.min(state.records.length, Number(query.get('before')));
        const from = Math.max(0, end - 400);
        const records = state.records.slice(from, end).filter(fits).slice(-limit);
        return ok({ records, cursor: records.length === limit ? records[0].seq : from, first: 0 });
      }
      const found = state.records.filter((one) => one.seq >= Number(query.get('after') ?? 0) && fits(one));
      const records = found.slice(0, limit);
      return ok({ records, cursor: found.length > records.length ? records.at(-1).seq + 1 : state.records.length, first: 0 });
    }],
    ['GET', /^\/api\/approvals$/, (_, __, query) => {
      const fits = (one) => !query.has('after') || one.created_at > query.get('after');
      return ok({ approvals: state.approvals.filter(fits).slice(0, Number(query.get('limit') ?? 1_000)), pending: state.approvals.length, busy: state.busy ?? null });
    }],
    ['GET', /^\/api\/approvals\/history$/, (_, __, query) => {
      const before = Number(query.get('before') ?? Infinity);
      return ok({ decisions: state.decided.filter((one) => one.seq < before && (!query.get('hook') || one.hook === query.get('hook'))).slice(0, Number(query.get('limit') ?? 50)) });
    }],
    ['GET', /^\/api\/approvals\/([^/]+)$/, ([id]) => { const one = state.approvals.find((a) => a.id === id) ?? state.decided.find((a) => a.id === id); return one ? ok(one) : refuse(404, 'unknown', 'unknown approval request'); }],
    ['POST', /^\/api\/approvals\/([^/]+)\/answer$/, ([id], body) => {
      if (state.role === 'viewer') return refuse(403, 'role', 'a viewer cannot answer');
      state.answers.push({ id, ...body });
      if (state.refuseNext) {
        const { status, code, message, by } = state.refuseNext;
        delete state.refuseNext;
        return refuse(status, code, message, by);
      }
      const approval = state.approvals.find((one) => one.id === id);
      if (!approval) {
        const was = state.decided.find((one) => one.id === id);
        return was ? refuse(409, 'answered', 'another approver has already answered', was.by) : refuse(404, 'unknown', 'unknown approval request');
      }
      if (approval.nonce !== body.nonce) return refuse(403, 'nonce', 'the nonce is not the one of this question');
      const option = approval.options.find((one) => one.label === body.option);
      if (!option) return refuse(422, 'invalid_option', 'that was not offered');
      const decided = decide(id, option.effect.startsWith('allow'), { by: { name: state.name, via: 'console' } });
      return ok(decided);
    }],
    ['GET', /^\/api\/rules$/, () => ok({ rules: state.rules, ...(state.unreadable ? { unreadable: state.unreadable } : {}) })],
    ['POST', /^\/api\/rules$/, (_, body) => {
      const rule = { id: `r${state.rules.length + 1}`, ...body, by: { name: 'ada', via: 'console' }, explanation: `Questions of \`${body.hook}\` that read \`${body.pattern}\` are ${body.decision === 'allow' ? 'allowed' : 'denied'} without asking.` };
      state.rules.push(rule);
      say({ type: 'rules' });
      return ok(rule, 201);
    }],
    ['DELETE', /^\/api\/rules\/([^/]+)$/, ([id]) => { state.rules = state.rules.filter((one) => one.id !== id); say({ type: 'rules' }); return ok(null, 204); }],
    ['GET', /^\/api\/hooks$/, () => ok({ hooks: state.hooks })],
    ['POST', /^\/api\/hooks\/reload$/, () => ok({ sessions: 3, ...(state.reloads ? { results: state.reloads } : {}) })],
    ['POST', /^\/api\/hooks\/test$/, (_, body) => { state.tested = body; return body.bundle?.startsWith('hooks: 7') ? refuse(422, 'unusable', 'hooks: expected a list, found 7') : ok(state.tests); }],
    ['POST', /^\/api\/links$/, (_, body) => { state.links = [...(state.links ?? []), body]; return ok({ url: `http://127.0.0.1:7878/enter?code=${hash(body).slice(0, 43)}`, expires_at: new Date(Date.now() + 600_000).toISOString() }, 201); }],
    ['GET', /^\/api\/audit$/, () => ok(state.audit)],
    ['POST', /^\/api\/audit\/verify$/, () => { state.audit = { ...state.audit, size: state.records.length, verified_to: state.audit.sound ? state.records.length : state.audit.verified_to }; return ok(state.audit); }],
    ['GET', /^\/api\/audit\/proof\/(\d+)$/, ([seq]) => ok({ record: state.records[Number(seq)], index: Number(seq), path: Array.from({ length: 11 }, (_, n) => hash([seq, n])), checkpoint: `amplifier-audit\n${state.records.length}\n${hash('root')}\n\n— key ${hash('signature')}` })],
  ];

  // The server's proof that it gave that key.
  const proof = (challenge) => createHmac('sha256', createHash('sha256').update(state.key).digest()).update(`amplifier\nhttp://127.0.0.1:${server.address().port}\n${challenge}`).digest('base64url');
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://mock');
    const headers = { 'content-security-policy': CSP, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' };
    // Every link works here, as often as one likes.
    const isEntrance = url.pathname === '/enter';
    const file = url.pathname === '/' || isEntrance ? 'index.html' : /^\/console\/([a-z_]+\.(?:js|css|svg))$/.exec(url.pathname)?.[1];
    if (file && request.method === 'GET') {
      try {
        const text = await readFile(new URL(file, CONSOLE));
        const body = isEntrance ? String(text).replace('</head>', `<meta name="amplifier-key" content="${state.key}"></head>`) : text;
        response.writeHead(200, { ...headers, 'content-type': TYPES[file.split('.').at(-1)] }).end(body);
      } catch {
        response.writeHead(404, headers).end();
      }
      return;
    }
    let text = '';
    for await (const chunk of request) text += chunk;
    let result = refuse(404, 'unknown', 'no such path');
    const isKnown = state.known && request.headers['x-amplifier-key'] === state.key;
    if (url.pathname === '/proof') result = state.known ? ok({ proof: state.isStrange ? 'other' : proof(url.searchParams.get('challenge')) }) : refuse(401, 'unauthenticated', 'not known');
    else if (url.pathname.startsWith('/api/') && !isKnown) result = refuse(401, 'unknown', 'not known; get a link with `amplifier serve link`');
    else {
      for (const [method, path, run] of routes) {
        const match = path.exec(url.pathname);
        if (!match || method !== request.method) continue;
        if (method === 'POST' && request.headers['content-type'] !== 'application/json') result = refuse(415, 'content_type', 'JSON only');
        else result = run(match.slice(1).map(decodeURIComponent), text ? JSON.parse(text) : {}, url.searchParams);
        break;
      }
    }
    await state.delay?.(url.pathname);
    response.writeHead(result.status, { ...headers, 'content-type': 'application/json' }).end(result.body === null ? undefined : JSON.stringify(result.body));
  });
  server.on('connection', (connection) => {
    connections.add(connection);
    connection.on('close', () => connections.delete(connection));
  });
  const wss = new WebSocketServer({ noServer: true });
  server.on('upgrade', async (request, socket, head) => {
    state.upgrades = (state.upgrades ?? 0) + 1;
    await state.isOpen;
    if (!state.known || request.headers['sec-websocket-protocol'] !== `amplifier, key.${state.key}`) return socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    if (state.deaf > 0) {
      state.deaf -= 1;
      return;
    }
    wss.handleUpgrade(request, socket, head, (ws) => {
      state.streams.push(request.url);
      sockets.add(ws);
      ws.on('close', () => sockets.delete(ws));
      ws.on('message', (data) => state.watches.push(JSON.parse(String(data))));
      ws.send(JSON.stringify(hello()));
    });
  });
  await new Promise((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const port = server.address().port;

  return {
    state,
    port,
    url: `http://127.0.0.1:${port}/`,
    say,
    decide,
    /** Says again how things are, as the server does when something was missed. */
    greet: () => say(hello()),
    ask(approval) {
      state.approvals.push(approval);
      const session = state.sessions.find((one) => one.id === approval.session);
      if (session) Object.assign(session, { state: 'waiting', pending: session.pending + 1 });
      say({ type: 'approval_requested', approval });
      if (session) say({ type: 'session', session });
    },
    add(id, item) {
      const seq = state.add(id, item);
      const one = state.sessions.find((s) => s.id === id);
      if (one) one.updated_at = new Date().toISOString();
      say({ type: 'records', records: [state.records[seq]], cursor: state.records.length });
      return seq;
    },
    setBusy(busy) {
      state.busy = busy;
      say({ type: 'approval_flood', busy });
    },
    setAudit(audit) {
      state.audit = { ...state.audit, ...audit };
      say({ type: 'audit', audit: state.audit });
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const connection of connections) connection.destroy();
      await closed;
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await startMock({ port: Number(process.argv[2] ?? 8099) });
  console.log(mock.url);
  const { tick } = await import('./story.mjs');
  setInterval(() => tick(mock), 2_500);
}
