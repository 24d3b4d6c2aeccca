// Hooks of the program itself, such as the one that reloads bundles. They are folded, because they say nothing about a user's policy.

/** The names, as in `amplifier hooks list` with the source `built in`. */
const NAMES = new Set(['session-bundles', 'session-count', 'session-wait', 'accept-edits', 'json']);

/**
 * `true` for a hook of the program itself that did nothing but continue. One that did more is shown, whatever its name.
 * @param {{hook: string, denials: number, asks: number, modifies: number, injects: number, errors: number}} one
 */
export function isBuiltIn(one) {
  return NAMES.has(one.hook) && one.denials + one.asks + one.modifies + one.injects + one.errors === 0;
}

/**
 * The same for a single result.
 * @param {{hook: string, answer: string, error?: string | null}} one
 */
export function isQuietBuiltIn(one) {
  return NAMES.has(one.hook) && one.answer === 'continue' && !one.error;
}
