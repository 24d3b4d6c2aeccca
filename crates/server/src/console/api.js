// Requests to the server.

/** A request that the server refused, or that did not reach it (`status` 0). */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {import('./types.js').Person} [by]
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

/** @param {() => void} tell what to do when the server does not know this browser (any more) */
export function onUnknown(tell) {
  whenUnknown = tell;
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
  /** @type {RequestInit} */
  const request = { method, credentials: 'same-origin', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(40_000) };
  if (body !== undefined) {
    request.headers = { 'content-type': 'application/json' };
    request.body = JSON.stringify(body);
  }
  let response;
  let text;
  try {
    response = await fetch(path, request);
    text = await response.text();
  } catch {
    throw new Refused(0, 'unreachable', 'The server cannot be reached.');
  }
  /** @type {any} */
  let said = null;
  try {
    said = text ? JSON.parse(text) : null;
  } catch {
    said = null;
  }
  if (response.ok) return said;
  if (response.status === 401) whenUnknown();
  const error = said?.error;
  throw new Refused(response.status, error?.code ?? 'failed', error?.message ?? `The server answered with status ${response.status}.`, error?.by);
}

/** @param {unknown} error */
export function words(error) {
  return error instanceof Error ? error.message : String(error);
}
