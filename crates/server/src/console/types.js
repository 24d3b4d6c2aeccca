// The forms of the API, for the type checker. There is nothing in here to run.

/** @typedef {'viewer' | 'approver' | 'admin'} Role */
/** @typedef {{name: string, role: Role}} Me */
/** @typedef {{name: string, via: string}} Person */
/** @typedef {'running' | 'waiting' | 'idle' | 'away' | 'ended' | 'gone'} State */
/**
 * @typedef {object} Session
 * @property {string} id
 * @property {string} [name]
 * @property {string} [workspace]
 * @property {State} state
 * @property {boolean} connected
 * @property {boolean} takes_prompts
 * @property {'server' | 'process' | null} [place]
 * @property {number} [pid]
 * @property {string} begun_at
 * @property {string} last_at
 * @property {number} turns
 * @property {number} tool_calls
 * @property {number} denials
 * @property {number} errors
 * @property {number} pending
 * @property {number} tokens
 * @property {string} [prompt]
 * @property {string} [ended]
 * @property {string} [parent]
 */
/**
 * @typedef {object} LogRecord
 * @property {number} seq
 * @property {string} at
 * @property {string} [session]
 * @property {number} [turn]
 * @property {string} [event]
 * @property {string} kind
 * @property {any} body
 * @property {string} writer
 * @property {string} hash
 */
/** @typedef {{hook: string, answer: string, took_ns: number, reason?: string | null, error?: string | null}} HookAnswer */
/** @typedef {{hook: string, role?: string, placement?: string, bytes?: number, tokens?: number, fate?: string, text?: string}} Injection */
/** @typedef {{source: string, level: string, text: string, shown?: boolean}} Message */
/**
 * @typedef {object} TimelineItem
 * @property {number} seq
 * @property {string} at
 * @property {number | null} [turn]
 * @property {string} event
 * @property {any} data
 * @property {string} [decision]
 * @property {string | null} [denied_by]
 * @property {string | null} [reason]
 * @property {HookAnswer[]} [hooks]
 * @property {Injection[]} [injections]
 * @property {Message[]} [messages]
 * @property {Decided[]} [approvals]
 * @property {{id?: string, hook: string, prompt?: string}[]} [open] questions that wait
 * @property {string[]} [failures]
 * @property {{success?: boolean | null, took_ms?: number | null} | null} [outcome]
 */
/** @typedef {{label: string, effect: string}} Choice */
/** @typedef {'plain' | 'context' | 'added' | 'removed' | 'gap'} RowKind */
/** @typedef {{kind: RowKind, text: string, old?: number, new?: number}} Row */
/** @typedef {{title: string, target?: string, notes: string[], body: Row[], fields: {name: string, value: string}[]}} Action */
/**
 * @typedef {object} Approval
 * @property {string} id
 * @property {string} session
 * @property {string} [session_name]
 * @property {string} workspace
 * @property {string} hook
 * @property {string} event
 * @property {string} prompt
 * @property {string} [reason]
 * @property {Choice[]} options
 * @property {string} asked_at
 * @property {string} deadline
 * @property {number} timeout_s
 * @property {string} default
 * @property {string} digest
 * @property {Action} action
 * @property {string} [nonce] only for those who may answer
 */
/**
 * @typedef {object} Decided
 * @property {string} [id]
 * @property {string} session
 * @property {string} hook
 * @property {string} event
 * @property {string} prompt
 * @property {boolean} granted
 * @property {string} basis
 * @property {string} reason
 * @property {Person} [by]
 * @property {string} [asked_at]
 * @property {string} decided_at
 * @property {number} seq
 */
/**
 * @typedef {object} Rule
 * @property {string} id
 * @property {'session' | 'project' | 'person'} scope
 * @property {string} [session]
 * @property {string} [project]
 * @property {string} hook
 * @property {string} pattern
 * @property {'allow' | 'deny'} decision
 * @property {Person} [by]
 * @property {string} [since]
 * @property {string} explanation
 */
/** @typedef {{session: string, result: string, message?: string}} Reloaded what came of reading a bundle again */
/** @typedef {{test: string, event: string, passed: boolean, took_us: number, expected?: Record<string, unknown>, found?: Record<string, unknown>}} Tested */
/** @typedef {{asked: number, seconds: number, hook: string, pattern: string}} Busy */
/**
 * @typedef {object} HookStats
 * @property {string} hook
 * @property {string[]} events
 * @property {number} calls
 * @property {number} denials
 * @property {number} asks
 * @property {number} modifies
 * @property {number} injects
 * @property {number} errors
 * @property {number} p50_ns
 * @property {number} p95_ns
 * @property {number} max_ns
 * @property {number[]} latency
 * @property {number[]} recent
 */
/**
 * @typedef {object} AuditStatus
 * @property {string} log
 * @property {number} size
 * @property {number} verified_to
 * @property {boolean} sound
 * @property {{seq?: number, text: string}[]} problems
 * @property {{size: number, at: string}} [checkpoint]
 * @property {number} exposed
 * @property {boolean} checking
 * @property {string[]} proves
 * @property {string[]} cannot_prove
 */
/**
 * A view: it draws itself into the page once, and takes itself down.
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} root
 * @property {() => void} [close]
 */

export {};
