// Guarded agents in a place: the installed hook lines, called with payloads that real agents have sent.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PAYLOADS = fileURLToPath(new URL('../../../guard/tests/payloads/', import.meta.url));
/** The settings with the hooks of each agent, below the home, and the variable in which it names its version. */
const AGENTS = {
  claude: { settings: '.claude/settings.json', variables: { AI_AGENT: 'claude-code_2-1-325_harness' } },
  codex: { settings: '.codex/hooks.json', variables: {} },
};

/** Installs the guard for agents with a settings folder. */
export async function install(place, ...agents) {
  const done = await place.amplifier('guard', 'install', ...agents);
  assert.equal(done.code, 0, done.out + done.err);
}

/** Calls a hook of an agent, with a captured payload and other fields. Resolves at its end. */
export function call(place, agent, event, label, fields = {}) {
  const { settings, variables } = AGENTS[agent];
  const { hooks } = JSON.parse(readFileSync(place.at(settings), 'utf8'));
  const line = hooks[event][0].hooks[0].command;
  const { samples } = JSON.parse(readFileSync(`${PAYLOADS}${agent}/${event}.json`, 'utf8'));
  const sample = samples.find((one) => one.label === label);
  assert.ok(sample, `${agent} ${event} ${label}`);
  const child = spawn('/bin/sh', ['-c', line], { cwd: place.at('harbour'), env: { PATH: process.env.PATH, ...variables } });
  const ran = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => { ran.out += text; });
  child.stderr.setEncoding('utf8').on('data', (text) => { ran.err += text; });
  child.stdin.end(JSON.stringify({ ...sample.stdin, cwd: place.at('harbour'), ...fields }));
  return new Promise((resolve) => { child.on('close', (code) => resolve({ ...ran, code })); });
}

/** Ends the daemon of a place. */
export function endDaemon(place) {
  const isOurs = (id) => {
    try {
      const line = readFileSync(`/proc/${id}/cmdline`, 'utf8');
      return line.includes('\0daemon\0') && line.includes(place.at('home/guard'));
    } catch {
      return false;
    }
  };
  for (const id of readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOurs(name))) execFileSync('kill', ['-9', id]);
}
