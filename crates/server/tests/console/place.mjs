// A place to try the real program in: a home, a workspace, a server, and sessions whose models play a script.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createConnection } from 'node:net';
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LIMIT, until, within } from './waits.mjs';

const PROGRAM = process.env.AMPLIFIER_PROGRAM ?? fileURLToPath(new URL('../../../../target/debug/amplifier', import.meta.url));

export class Place {
  /** @type {Set<import('node:child_process').ChildProcess>} */
  #children = new Set();
  /** @type {Set<import('node:net').Socket>} */
  #sockets = new Set();
  #scripts = 0;
  server = null;

  /** A place with files in its workspace, a bundle for all sessions, and standing answers. */
  static async make({ files = {}, bundle = null, rules = null } = {}) {
    assert.ok(existsSync(PROGRAM), `${PROGRAM} is missing: cargo build -p amplifier`);
    const place = new Place();
    place.root = await realpath(await mkdtemp(join(tmpdir(), 'amplifier-')));
    for (const folder of ['home', 'harbour']) await mkdir(place.at(folder));
    for (const [name, text] of Object.entries(files)) await place.write(`harbour/${name}`, text);
    if (bundle) await place.write('bundle.yaml', bundle);
    if (rules) await place.write('home/approvals.json', JSON.stringify(rules));
    place.bundle = bundle ? place.at('bundle.yaml') : null;
    return place;
  }

  at(path) {
    return join(this.root, path);
  }

  async write(path, text) {
    await mkdir(dirname(this.at(path)), { recursive: true });
    await writeFile(this.at(path), text);
  }

  read(path) {
    return readFile(this.at(path), 'utf8');
  }

  has(path) {
    return existsSync(this.at(path));
  }

  #how(workspace = 'harbour') {
    const env = { PATH: process.env.PATH, HOME: this.root, USER: 'ada', AMPLIFIER_HOME: this.at('home'), ...(this.bundle ? { AMPLIFIER_BUNDLE: this.bundle } : {}) };
    return { cwd: this.at(workspace), env };
  }

  /** Runs the program to its end. */
  amplifier(...args) {
    return new Promise((resolve) => {
      execFile(PROGRAM, args, { ...this.#how(), timeout: LIMIT, maxBuffer: 64 << 20 }, (error, out, err) => resolve({ code: error ? error.code : 0, out, err }));
    });
  }

  #start(args, { input = null, workspace } = {}) {
    const child = spawn(PROGRAM, args, { ...this.#how(workspace), stdio: [input === null ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    this.#children.add(child);
    const ran = { child, out: '', err: '', code: null };
    child.stdout.setEncoding('utf8').on('data', (text) => { ran.out += text; });
    child.stderr.setEncoding('utf8').on('data', (text) => { ran.err += text; });
    if (input !== null) child.stdin.end(input);
    ran.end = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`it does not end: ${args.join(' ').slice(0, 200)}: ${ran.err}`)), LIMIT);
      child.on('close', (code) => {
        clearTimeout(timer);
        this.#children.delete(child);
        ran.code = code;
        resolve(ran);
      });
    });
    // Whoever waits for it hears of it; nobody has to.
    ran.end.catch(() => {});
    return ran;
  }

  async script(answers) {
    const path = this.at(`script-${this.#scripts += 1}.json`);
    await writeFile(path, JSON.stringify({ answers }));
    return path;
  }

  /** Starts the server, on the same port as before if there was one. */
  async serve({ answers = null } = {}) {
    const listen = this.server ? new URL(this.server.url).host : '127.0.0.1:0';
    const script = answers ? ['--script', await this.script(answers)] : [];
    const ran = this.#start(['serve', '--listen', listen, '--json', ...script]);
    await until(() => ran.out.includes('\n') || ran.code !== null, () => `the server starts: ${ran.err}`);
    assert.equal(ran.code, null, ran.err);
    this.server = { ...JSON.parse(ran.out), ran };
  }

  /** Ends the server, in order or at once. */
  async stop(signal = 'SIGTERM') {
    this.server.ran.child.kill(signal);
    await this.server.ran.end;
  }

  /** A session that the server sees. */
  async run(prompt, answers, { more = [], workspace } = {}) {
    const long = prompt.length > 1_000;
    return this.#start(['run', '--serve', '--script', await this.script(answers), ...more, long ? '-' : prompt], { input: long ? prompt : null, workspace });
  }

  /** Something that says to the server that it is a session, and asks so many questions. */
  async pretend(session, asks = 0) {
    const socket = createConnection(this.at('home/server/socket'));
    this.#sockets.add(socket);
    const say = (message) => socket.write(`${JSON.stringify(message)}\n`);
    const now = Date.now();
    const asked = new Date(now).toISOString();
    say({ type: 'hello', version: 4, session, run: 'run', name: session, pid: process.pid, workspace: this.at('harbour'), takes_prompts: false, idle: false, started_at: asked });
    await within(new Promise((resolve, reject) => { socket.once('data', resolve).once('error', reject).once('close', () => reject(new Error(`the server does not want ${session}`))); }), () => 'the server says welcome');
    socket.setEncoding('utf8');
    let rest = '';
    socket.on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const { type, id, ref, label, by } of lines.map((line) => JSON.parse(line))) {
        if (type === 'answer') say({ type: 'answered', id, ref, status: 'taken', decision: { granted: label !== 'Deny', basis: 'answer', reason: '', by } });
      }
    });
    const options = [{ label: 'Allow once', effect: 'allow_once' }, { label: 'Deny', effect: 'deny' }];
    for (let n = 1; n <= asks; n += 1) say({ type: 'approval_requested', approval: { id: `${session}.run.${n}`, number: n, session, workspace: this.at('harbour'), hook: 'guard', event: 'tool:pre', prompt: `Run step ${n}?`, options, created_at: new Date(now + n).toISOString(), deadline: new Date(now + 3_600_000 + n).toISOString(), timeout_s: 3_600, default: 'deny', digest: n.toString(16).padStart(64, '0'), preview: { title: 'Bash', warnings: [], body: [], fields: [] }, nonce: '' } });
  }

  async link(name, role) {
    const made = await this.amplifier('serve', 'link', '--name', name, '--role', role);
    assert.equal(made.code, 0, made.err);
    return made.out.trim();
  }

  async api(method, path, body, token = null) {
    const bearer = token ?? (await this.read('home/server/token')).trim();
    const response = await fetch(this.server.url + path, { method, headers: { authorization: `Bearer ${bearer}`, ...(body ? { 'content-type': 'application/json' } : {}) }, body: body ? JSON.stringify(body) : undefined, signal: AbortSignal.timeout(LIMIT) });
    return { status: response.status, body: await response.json().catch(() => null) };
  }

  /** What the audit log says of that kind. */
  async recorded(kind) {
    const { code, out, err } = await this.amplifier('audit', 'export', '--kind', kind);
    assert.equal(code, 0, err);
    return out.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line).body);
  }

  async remove() {
    for (const socket of this.#sockets) socket.destroy();
    const ends = [...this.#children].map((child) => new Promise((resolve) => child.once('close', resolve)));
    for (const child of this.#children) child.kill('SIGKILL');
    await within(Promise.all(ends), () => 'the processes end');
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}
