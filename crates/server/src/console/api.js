// Requests to the server. Each brings the key of this browser, once the server has proven that it is the one that gave it: browsers give cookies to every
// port of a machine, and another program may have taken this one while the server was away.

/** A request that the server refused, or that did not reach it (`status` 0). */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {import('./types.js').Actor} [by]
   */
  constructor(status, code, message, by) {
    super(message);
    this.status = status;
    this.code = code;
    this.by = by;
  }
}

/** @type {() => void} */
let whenUnknown = () => {};

/** @param {() => void} tell called when this browser is not signed in (any more) */
export function onUnknown(tell) {
  whenUnknown = tell;
}

/** @type {() => void} */
let whenReplaced = () => {};

/** @param {() => void} tell called when another user signs in in another tab */
export function onReplaced(tell) {
  whenReplaced = tell;
}

/** @type {() => void} */
let whenStrange = () => {};

/** @param {() => void} tell called when an unknown server replies */
export function onStrange(tell) {
  whenStrange = tell;
}

/** Time limit for another tab to send its key. */
const HANDOVER_MS = 1_000;

/**
 * The key. Only pages hold it, in memory: a browser writes stored data to its profile, where a command of an agent may read it. A reloaded page
 * requests the key from other tabs.
 */
let mine = given();
let isProven = false;
let isStrange = false;
/** @type {Promise<void> | null} */
let proving = null;
/** @type {Promise<string | null> | null} */
let asking = null;

const tabs = new BroadcastChannel('amplifier.key');
tabs.addEventListener('message', ({ data }) => {
  if (typeof data?.entered === 'string') adopt(data.entered);
  else if (data?.wanted === true) void handOver();
});
if (mine) tabs.postMessage({ entered: mine });

/** The key that the page was sent with, if a link led here. Its code is taken out of the address, because it works only once. */
function given() {
  const meta = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="amplifier-key"]'));
  if (!meta) return null;
  meta.remove();
  history.replaceState(null, '', `/${location.hash}`);
  return meta.content;
}

/**
 * Takes over a new sign-in from another tab. The cookie is shared, so this page belongs to that user from now on.
 * @param {string} key
 */
function adopt(key) {
  if (key === mine) return;
  mine = key;
  doubt();
  // An unknown server does not become trusted by a leftover key.
  if (!isStrange) whenReplaced();
}

/** Gives the key to other tabs, if the server proves once more that it is the one that gave it: another program could have sent the page that asks. */
async function handOver() {
  if (!mine || isStrange) return;
  try {
    doubt();
    await prove();
  } catch {
    return;
  }
  tabs.postMessage({ handed: mine });
}

/**
 * The key that another tab has, if there is one.
 * @returns {Promise<string | null>}
 */
function fromOtherTab() {
  asking ??= new Promise((/** @type {(key: string | null) => void} */ resolve) => {
    const done = (/** @type {string | null} */ key) => {
      tabs.removeEventListener('message', hear);
      resolve(key);
    };
    const hear = (/** @type {MessageEvent} */ { data }) => {
      if (typeof data?.handed === 'string') done(data.handed);
    };
    tabs.addEventListener('message', hear);
    tabs.postMessage({ wanted: true });
    setTimeout(done, HANDOVER_MS, null);
  }).finally(() => {
    asking = null;
  });
  return asking;
}

/**
 * Rejects requests that another user began: nothing is sent or shown under a different name.
 * @param {string | null} key the one that it was begun with
 */
function stillTheSame(key) {
  if (key !== mine) throw replaced();
}

function replaced() {
  return new Refused(0, 'replaced', 'Another user has signed in to this browser.');
}

/**
 * Another tab may have signed in before this one is notified. The server rejects a key that does not belong to the cookie.
 * @param {string | null} key the one that the server does not take
 */
async function checkReplaced(key) {
  const other = await fromOtherTab();
  if (!other || other === key) return;
  adopt(other);
  throw replaced();
}

/** After a lost connection, no key is sent before the server has proven itself again. */
export function doubt() {
  isProven = false;
}

/** Makes the server at this address prove itself again. */
export function retryProof() {
  isStrange = false;
}

/** The protocols of a WebSocket. A page cannot set headers there, so the key is sent as another protocol. */
export function protocols() {
  return ['amplifier', `key.${mine ?? ''}`];
}

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function unknown() {
  mine = null;
  whenUnknown();
  return new Refused(401, 'unauthenticated', 'This browser is not signed in.');
}

/** Resolves when the server has proven that it knows the key of this browser, without receiving the key. */
async function prove() {
  if (isStrange) throw new Refused(0, 'stranger', 'Unknown server at this address.');
  if (isProven) return;
  proving ??= proof().finally(() => {
    proving = null;
  });
  await proving;
}

async function proof() {
  const handed = mine ?? await fromOtherTab();
  // Another tab may have signed in meanwhile.
  mine ??= handed;
  const key = mine;
  if (!key) throw unknown();
  // Without TLS, only a page of this machine can tell. Elsewhere everybody on the way reads the key anyway.
  if (globalThis.crypto?.subtle) {
    const challenge = base64url(crypto.getRandomValues(new Uint8Array(32)));
    const utf8 = new TextEncoder();
    const digest = await crypto.subtle.digest('SHA-256', utf8.encode(key));
    const hmac = await crypto.subtle.importKey('raw', digest, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
    const expected = base64url(new Uint8Array(await crypto.subtle.sign('HMAC', hmac, utf8.encode(`amplifier\n${location.origin}\n${challenge}`))));
    let response;
    let said;
    try {
      response = await fetch(`/proof?challenge=${challenge}`, { credentials: 'same-origin', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(10_000) });
      said = await response.text();
    } catch {
      throw new Refused(0, 'unreachable', 'The server is unreachable.');
    }
    stillTheSame(key);
    if (response.status === 401) {
      await checkReplaced(key);
      throw unknown();
    }
    if (response.status === 429 || response.status >= 500) throw new Refused(response.status, 'failed', `The server answered with status ${response.status}.`);
    let given;
    try {
      given = JSON.parse(said)?.proof;
    } catch {
      given = undefined;
    }
    if (!response.ok || given !== expected) {
      await checkReplaced(key);
      isStrange = true;
      whenStrange();
      throw new Refused(0, 'stranger', 'Unknown server at this address.');
    }
  }
  isProven = true;
}

/**
 * @param {string} path
 * @param {Record<string, string | number | undefined | null>} [query]
 * @returns {Promise<any>}
 */
export function get(path, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const tail = search.toString();
  return ask('GET', tail ? `${path}?${tail}` : path);
}

/** A number beyond all records. */
export const NEWEST = Number.MAX_SAFE_INTEGER;

/**
 * Records of the log before a number, the newest first. The server reads a part of the log at a time, so this gives what was found so far, until
 * there are enough or the log is at its beginning.
 * @param {Record<string, string | undefined>} filter
 * @param {number} before
 * @param {number} limit
 * @returns {AsyncGenerator<{records: import('./types.js').LogRecord[], next: number, isEnd: boolean, isDone: boolean}>}
 */
export async function* backwards(filter, before, limit) {
  /** @type {import('./types.js').LogRecord[]} */
  const records = [];
  for (let next = before; ;) {
    const page = await get('/api/audit/records', { ...filter, before: next, limit: Math.min(1_000, limit - records.length) });
    records.push(...page.records.reverse());
    const isEnd = page.cursor <= page.first || page.cursor >= next;
    next = page.cursor;
    const isDone = isEnd || records.length >= limit;
    yield { records, next, isEnd, isDone };
    if (isDone) return;
  }
}

/**
 * @param {string} path
 * @param {object} body
 * @returns {Promise<any>}
 */
export function post(path, body = {}) {
  return ask('POST', path, body);
}

/**
 * @param {string} path
 * @returns {Promise<any>}
 */
export function remove(path) {
  return ask('DELETE', path);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
async function ask(method, path, body) {
  const begun = mine;
  await prove();
  // A reloaded page receives its key from another tab only now.
  const key = mine;
  if (begun) stillTheSame(begun);
  /** @type {Record<string, string>} */
  const headers = { 'x-amplifier-key': key ?? '' };
  /** @type {RequestInit} */
  const request = { method, headers, credentials: 'same-origin', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(40_000) };
  if (body !== undefined) {
    headers['content-type'] = 'application/json';
    request.body = JSON.stringify(body);
  }
  let response;
  let text;
  try {
    response = await fetch(path, request);
    text = await response.text();
  } catch {
    doubt();
    throw new Refused(0, 'unreachable', 'The server is unreachable.');
  }
  stillTheSame(key);
  /** @type {any} */
  let said = null;
  try {
    said = text ? JSON.parse(text) : null;
  } catch {
    said = null;
  }
  if (response.ok) return said;
  if (response.status === 401) {
    await checkReplaced(key);
    unknown();
  }
  const error = said?.error;
  throw new Refused(response.status, error?.code ?? 'failed', error?.message ?? `The server answered with status ${response.status}.`, error?.by);
}

/** @param {unknown} error */
export function words(error) {
  return error instanceof Error ? error.message : String(error);
}
