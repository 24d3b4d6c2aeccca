// Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date

/**
 * The effect of an operation, described for the approver before it runs. The code that will run the operation makes it; other operations are shown as data. Terminals, pages and programs only draw it. The texts may contain any characters: the drawing code must escape them.
 * @typedef {object} ActionPreview
 * @property {PreviewRow[]} [body] The operation line by line: a command, a diff, a task.
 * @property {ComparedWith | null} [compared_with] The file that the preview was compared with, if the operation changes one.
 * @property {PreviewField[]} [fields] Further settings of the operation: a time limit, a range.
 * @property {string | null} [summary] The effect in a few words: a new file, the number of lines that are added and removed.
 * @property {string | null} [target] The file, pattern or agent.
 * @property {string} title The kind of operation: the name of a tool, `prompt`, `agent`, or an event.
 * @property {boolean} [truncated] `true` if a part is left out because it is too large. The first warning says so.
 * @property {string[]} [warnings] Warnings that the approver must read before the answer.
 */
/**
 * The activity of the last hours.
 * @typedef {object} Activity
 * @property {Cost[]} costs Costs in these hours by currency, as far as prices are known.
 * @property {HookDenials[]} denials_by_hook Denials in these hours by hook, the most first.
 * @property {ActivityHour[]} hours The hours, the oldest first; the last one is not over.
 */
/**
 * Counts of a period.
 * @typedef {object} ActivityCounts
 * @property {number} denials Number of denied operations.
 * @property {number} failed_sessions Number of sessions that ended after an error.
 * @property {number} hook_errors Number of failed hook calls.
 * @property {number} prompts Number of prompts.
 * @property {number} sessions Number of started sessions.
 * @property {number} tokens Number of tokens used.
 * @property {number} tool_calls Number of tool calls.
 */
/**
 * The counts of one hour.
 * @typedef {object} ActivityHour
 * @property {string} at Beginning of the hour.
 * @property {Cost[]} costs Costs by currency, as far as prices are known.
 * @property {number} denials Number of denied operations.
 * @property {number} failed_sessions Number of sessions that ended after an error.
 * @property {number} hook_errors Number of failed hook calls.
 * @property {number} prompts Number of prompts.
 * @property {number} sessions Number of started sessions.
 * @property {number} tokens Number of tokens used.
 * @property {number} tool_calls Number of tool calls.
 */
/**
 * The user who did something, and the channel.
 * @typedef {object} Actor
 * @property {string} name The name that the approval system knows the user by.
 * @property {string} via The channel: `terminal`, `console`, `api`, …
 */
/**
 * An answer to an approval request.
 * @typedef {object} AnswerBody
 * @property {string} nonce Nonce of the request.
 * @property {string} option Label of the chosen option.
 * @property {string | null} [reason] Reason for a denial, which the model reads; at most 2,000 characters. No effect if the option allows.
 * @property {ChosenRule | null} [rule] One of the request's `offers`, with an option that always allows: `operations` and `scope` as offered.
 * @property {AnswerScope} [scope] Scope of the answer.
 */
/**
 * The form of an answer link's page.
 * @typedef {object} AnswerForm
 * @property {LinkAnswer} answer The answer.
 * @property {string} code Secret of the link.
 * @property {string} digest Digest of the request that the page showed.
 * @property {string} nonce Nonce of the request that the page showed.
 * @property {string} [reason] Reason for a denial, which the model reads.
 */
/**
 * The option that an approver chose, and the approver's identity.
 * @typedef {object} ApprovalAnswer
 * @property {Actor | null} [by] The approver, where known. It is recorded.
 * @property {string} label The label of an option.
 * @property {string | null} [reason] The approver's reason for a denial, which the model reads: at most [`MAX_REASON_CHARS`](Self::MAX_REASON_CHARS) characters. No effect if the option allows.
 * @property {ChosenRule | null} [rule] One of the offered rules. Only an option that always allows can create one.
 */
/**
 * The decision on an approval request.
 * @typedef {object} ApprovalDecision
 * @property {DecisionBasis} basis The basis of the decision.
 * @property {Actor | null} [by] The approver, where known.
 * @property {boolean} granted `true` if the operation may run.
 * @property {string[]} [operations] The operations of the rules that decided, or of the rule that the approver created.
 * @property {string} reason The reason, in words.
 * @property {string | null} [rule] The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it.
 * @property {RuleScope | null} [scope] The scope of the rule that the approver created.
 */
/**
 * A report about too many approval requests in a short time.
 * @typedef {object} ApprovalFlood
 * @property {number} asked Number of requests.
 * @property {string} hook The hook.
 * @property {string} pattern Pattern of a rule that would answer them.
 * @property {number} seconds Period in seconds.
 */
/**
 * A possible answer, with its effect.
 * @typedef {object} ApprovalOption
 * @property {Effect} effect The effect. The kernel decides by the effect, never by the label.
 * @property {string} label The text of the option.
 */
/**
 * An approval that a hook requested, and the decision.
 * @typedef {object} ApprovalReport
 * @property {boolean} [changed_after_asking] `true` if another hook changed the data after the request, so that no allow given in advance counted.
 * @property {ComparedWith | null} [compared_with] The file whose change the approver was shown.
 * @property {string | null} [created_at] The time of the request.
 * @property {string | null} [decided_at] The time of the decision.
 * @property {number | null} [decided_seq] The number of the record of the decision.
 * @property {ApprovalDecision | null} [decision] The decision; missing while the request is open.
 * @property {DefaultDecision | null} [default] The decision if there is no answer in time.
 * @property {string | null} [digest] The digest of the operation.
 * @property {boolean} [fallback] `true` if the approval is requested only when no other hook requests one.
 * @property {string} hook The hook.
 * @property {string | null} [id] The id of the request, `SESSION.RUN.N`; missing if the decision needed no request.
 * @property {ApprovalAnswer[]} [late_answers] The answers that arrived after the request was closed.
 * @property {ApprovalOption[]} [options] The options of the approver.
 * @property {string | null} [prompt] The prompt of the request.
 * @property {number | null} [timeout_s] The time limit in seconds.
 * @property {number | null} [waited_ms] The time from the request to the decision, in milliseconds.
 */
/**
 * A hook's request to a user to allow an operation.
 * @typedef {object} ApprovalRequest
 * @property {string} created_at The time of the request.
 * @property {DefaultDecision} default The decision when the time is up.
 * @property {string} digest The digest of the data that will run.
 * @property {string} event The event at which it asks.
 * @property {string} hook The hook that asks.
 * @property {number} number The number of the request in its session. Sub-agents count with the session that they work for.
 * @property {RuleOffer[]} [offers] The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them.
 * @property {ApprovalOption[]} options The possible answers.
 * @property {ActionPreview} preview The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version; the operation does not run if the file has changed since.
 * @property {string} prompt The text of the request.
 * @property {string | null} [reason] The reason that the hook gives.
 * @property {number} timeout_s The time that the kernel waits for an answer, in seconds.
 * @property {string | null} [warning] The kernel's own warning to the approver.
 */
/**
 * An answer given in advance: for a session, a project or a user.
 * @typedef {object} ApprovalRule
 * @property {Actor | null} [by] The user who gave it, where known.
 * @property {string | null} [created_at] The time at which it was given, where known.
 * @property {DefaultDecision} decision The answer.
 * @property {string | null} [event] The event of the request that the answer was given to. The pattern is then its exact prompt.
 * @property {string} hook The hook whose requests the rule answers.
 * @property {string | null} [operation] The operation, by the name that its description has: `write src/**`. It is compared letter by letter.
 * @property {string} [pattern] The prompts; `*` stands for any text. Empty if the rule is about an operation.
 * @property {string | null} [project] The folder, if the scope is a project.
 * @property {RuleScope} scope The sessions that the rule is for.
 * @property {string | null} [session] The session, if the scope is one.
 */
/**
 * Approval rules, and rule files that could not be read.
 * @typedef {object} ApprovalRules
 * @property {ListedRule[]} rules The rules.
 * @property {UnreadableFile[]} unreadable Files that cannot be read. While there are some, no rule allows anything.
 */
/**
 * Verification status of the audit log.
 * @typedef {object} AuditStatus
 * @property {string[]} cannot_prove Properties that it cannot prove.
 * @property {boolean} checking `true` while a verification runs.
 * @property {CheckpointStatus | null} [checkpoint] Last checkpoint.
 * @property {number} exposed Number of records since the last anchored checkpoint; all records without one.
 * @property {string} log Log id.
 * @property {Problem[]} problems The problems.
 * @property {string[]} proves Properties that the verification proves.
 * @property {number} size Number of records.
 * @property {boolean} sound `true` if no problem was found.
 * @property {number} verified_to Records below this number are verified.
 */
/**
 * A signed-in browser.
 * @typedef {object} Browser
 * @property {string} name Name in records of its answers.
 * @property {Role} role Role.
 * @property {string} seen Time of the last request.
 * @property {string} since Sign-in time.
 */
/**
 * The signed-in browsers.
 * @typedef {object} Browsers
 * @property {Browser[]} browsers The browsers.
 */
/**
 * A signed checkpoint.
 * @typedef {object} CheckpointStatus
 * @property {string} at Signing time.
 * @property {number} size Number of records covered.
 */
/**
 * The rule that an approver chose, by the values of its [`RuleOffer`].
 * @typedef {object} ChosenRule
 * @property {string[]} operations The names of the allowed operations, as offered.
 * @property {RuleScope} scope The sessions that the rule is for.
 */
/**
 * The file that a preview was compared with.
 * @typedef {object} ComparedWith
 * @property {string} path The path, with links followed.
 * @property {string} version The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace.
 */
/**
 * A sum of money, as `hooks-cost` counted it.
 * @typedef {object} Cost
 * @property {number} amount Amount.
 * @property {string} currency Currency, such as `USD`.
 * @property {boolean} incomplete `true` if the price of some calls is unknown, so that the cost is higher.
 */
/**
 * An approval request that was decided.
 * @typedef {object} DecidedApproval
 * @property {DecisionBasis} basis The basis of the decision.
 * @property {Actor | null} [by] The approver, where known.
 * @property {string | null} [created_at] The time of the request.
 * @property {string} decided_at The time of the decision.
 * @property {string} event The event of the request.
 * @property {boolean} granted `true` if the operation may run.
 * @property {string} hook The hook of the request.
 * @property {string | null} [id] `SESSION.RUN.NUMBER`; missing if no approver was asked.
 * @property {string[]} [operations] The operations of the rules that decided, or of the rule that the approver created.
 * @property {string} prompt The text of the request.
 * @property {string} reason The reason, in words.
 * @property {string | null} [rule] The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it.
 * @property {RuleScope | null} [scope] The scope of the rule that the approver created.
 * @property {number} [seq] The sequence number of the decision record; 0 until read.
 * @property {string} session The session.
 */
/**
 * Decisions.
 * @typedef {object} Decisions
 * @property {DecidedApproval[]} decisions The decisions, the newest first.
 */
/**
 * A subscription to push messages, as the browser made it.
 * @typedef {object} DeviceSubscription
 * @property {boolean} [answers] `true` if notifications may open their request without signing in. For approvers only.
 * @property {string} auth Authentication secret of the device, as base64url.
 * @property {string} endpoint Address of the push service for this device.
 * @property {string} p256dh Public key of the device, as base64url.
 */
/**
 * An event to try. Only hooks run, and no approvals are requested.
 * @typedef {object} DryRun
 * @property {string | null} [bundle] A bundle as text, if only its hooks are to be tried.
 * @property {{ [key: string]: any }} [data] The data.
 * @property {string} event The event.
 * @property {string | null} [workspace] The workspace of the hooks; that of the server if missing.
 */
/**
 * The report of a tried event.
 * @typedef {object} DryRunReport
 * @property {ApprovalReport[]} approvals The approvals that hooks requested.
 * @property {{ [key: string]: any } | null} [data] The data as the hooks left it; missing if it was erased or withheld.
 * @property {DataStatus} data_status The state of the data.
 * @property {DecisionKind | null} [decision] The decision of the hooks; missing if it was erased.
 * @property {string | null} [denied_by] The hook that denied the event.
 * @property {string} event The event.
 * @property {FailureReport[]} failures The parts of the system that failed.
 * @property {HookReport[]} hooks The hooks that were called, in running order.
 * @property {InjectionReport[]} injections The texts for the agent.
 * @property {IntentReport | null} [intent] The operation that may begin after the event.
 * @property {MessageReport[]} messages The messages for the user.
 * @property {OutputReport[]} outputs The output of hooks, unless suppressed. It is not recorded.
 * @property {string | null} [reason] The reason of the denial.
 * @property {OperationResult | null} [result] The result of the operation that ended before the event.
 * @property {number} unreadable The number of further records of the emission whose content is erased or withheld.
 * @property {string | null} [warning] The reason why hooks may be missing: the project is not trusted.
 */
/**
 * The outcome of an emission as JSON, built from the outcome itself or from the records of a log. Fields that are unknown to the source are missing.
 * @typedef {object} EmissionReport
 * @property {ApprovalReport[]} approvals The approvals that hooks requested.
 * @property {{ [key: string]: any } | null} [data] The data as the hooks left it; missing if it was erased or withheld.
 * @property {DataStatus} data_status The state of the data.
 * @property {DecisionKind | null} [decision] The decision of the hooks; missing if it was erased.
 * @property {string | null} [denied_by] The hook that denied the event.
 * @property {string} event The event.
 * @property {FailureReport[]} failures The parts of the system that failed.
 * @property {HookReport[]} hooks The hooks that were called, in running order.
 * @property {InjectionReport[]} injections The texts for the agent.
 * @property {IntentReport | null} [intent] The operation that may begin after the event.
 * @property {MessageReport[]} messages The messages for the user.
 * @property {OutputReport[]} outputs The output of hooks, unless suppressed. It is not recorded.
 * @property {string | null} [reason] The reason of the denial.
 * @property {OperationResult | null} [result] The result of the operation that ended before the event.
 * @property {number} unreadable The number of further records of the emission whose content is erased or withheld.
 */
/**
 * An error.
 * @typedef {object} ErrorDetails
 * @property {Actor | null} [by] The approver who was faster.
 * @property {string} code Error code for programs.
 * @property {string} message The problem, and what to do.
 */
/**
 * The body of every error response.
 * @typedef {object} ErrorResponse
 * @property {ErrorDetails} error The error.
 */
/**
 * A part of the system that failed.
 * @typedef {object} FailureReport
 * @property {string} error The error.
 * @property {string} part The part.
 */
/**
 * Health check response.
 * @typedef {object} Health
 * @property {string} status `ok`.
 * @property {string} version Server version.
 */
/**
 * The denials of a hook.
 * @typedef {object} HookDenials
 * @property {number} denials Number of denied operations.
 * @property {string} hook Hook name.
 */
/**
 * The answer of a hook, or its failure.
 * @typedef {object} HookReport
 * @property {ActionKind} answer The action, or the kind of failure.
 * @property {number} duration_ns The time that it took, in nanoseconds.
 * @property {string | null} [error] The error of a hook that failed.
 * @property {string} hook The hook.
 * @property {string | null} [reason] The reason that it gave.
 * @property {boolean} [suppressed_output] `true` if its output is left out of the transcript.
 */
/**
 * Statistics of a hook.
 * @typedef {object} HookStats
 * @property {number} asks Number of approval requests.
 * @property {number} calls Number of calls.
 * @property {number} denials Number of denials.
 * @property {number} errors Number of failures.
 * @property {string[]} events Events of its calls.
 * @property {string} hook Hook name.
 * @property {number} injects Number of injections.
 * @property {number[]} latency Histogram of durations up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts.
 * @property {number} max_ns Longest duration, in nanoseconds.
 * @property {number} modifies Number of modifications.
 * @property {number} p50_ns Median duration, in nanoseconds.
 * @property {number} p95_ns 95th percentile of the duration, in nanoseconds.
 * @property {number[]} recent Calls in each of the last 30 minutes, the oldest first.
 */
/**
 * Statistics of hooks, by name.
 * @typedef {object} HookStatsList
 * @property {HookStats[]} hooks The statistics.
 */
/**
 * A text that a hook adds to the conversation of the agent.
 * @typedef {object} InjectionReport
 * @property {number} bytes The size of the text.
 * @property {string} hook The hook.
 * @property {Placement} placement The position in the conversation.
 * @property {MessageRole} role The role of the message.
 * @property {InjectionStatus | null} [status] The status; missing if no session applied its limits.
 * @property {string} text The text.
 * @property {number | null} [tokens] The number of tokens of the text; missing if it was not counted.
 */
/**
 * A gated operation that may begin.
 * @typedef {object} IntentReport
 * @property {string | null} [digest] The digest of the operation; missing if the data is nested too deeply.
 * @property {number} seq The number of its record.
 * @property {string | null} [tool_call_id] The tool call, which pairs the intent with its result.
 * @property {boolean} unresolved `true` if the log has no result for it: it is running, or its end is unknown.
 */
/**
 * A proof that the server knows the key of a browser.
 * @typedef {object} KeyProof
 * @property {string} proof The proof.
 */
/**
 * An approval rule as the API lists it.
 * @typedef {object} ListedRule
 * @property {Actor | null} [by] The user who gave it, where known.
 * @property {string | null} [created_at] The time at which it was given, where known.
 * @property {DefaultDecision} decision The answer.
 * @property {string | null} [event] The event of the request that the answer was given to. The pattern is then its exact prompt.
 * @property {string} explanation The requests that it answers, in a sentence.
 * @property {string} hook The hook whose requests the rule answers.
 * @property {string} id Identifies the rule when it is revoked.
 * @property {string | null} [operation] The operation, by the name that its description has: `write src/**`. It is compared letter by letter.
 * @property {string} [pattern] The prompts; `*` stands for any text. Empty if the rule is about an operation.
 * @property {string | null} [project] The folder, if the scope is a project.
 * @property {RuleScope} scope The sessions that the rule is for.
 * @property {string | null} [session] The session, if the scope is one.
 */
/**
 * One record of the audit log.
 * @typedef {object} LogRecord
 * @property {string} at Time.
 * @property {any} body Body.
 * @property {string | null} [event] Event name.
 * @property {string} hash Hash, in hexadecimal.
 * @property {string} kind Kind of record.
 * @property {number} seq Record number, the cursor of streams.
 * @property {string | null} [session] Session id.
 * @property {number | null} [turn] Turn number.
 * @property {string} writer The writer: the run of a session, or the server.
 */
/**
 * The authenticated user.
 * @typedef {object} Me
 * @property {string} name Name.
 * @property {string} role Role: `viewer`, `approver` or `admin`.
 */
/**
 * A message for the user.
 * @typedef {object} MessageReport
 * @property {MessageLevel} level The urgency.
 * @property {boolean | null} [shown] `true` if there was a display to show it; missing if no session had to.
 * @property {string} source The source: `hook:NAME`, or a part of the system.
 * @property {string} text The text.
 */
/**
 * An approval rule to add.
 * @typedef {object} NewRule
 * @property {DefaultDecision} decision The decision.
 * @property {string} hook The hook whose approval requests the rule answers.
 * @property {string | null} [operation] Operation, such as `run cargo test *` or `write src/**`, compared letter by letter.
 * @property {string} [pattern] Pattern of prompts; `*` matches any text. Missing if the rule is about an operation.
 * @property {string | null} [project] The folder, for scope `project`.
 * @property {RuleScope} scope Scope of the rule.
 * @property {string | null} [session] The session, for scope `session`.
 */
/**
 * A session to start.
 * @typedef {object} NewSession
 * @property {string | null} [prompt] First prompt.
 * @property {string | null} [workspace] Working folder; the server's by default.
 */
/**
 * An open approval request with its session.
 * @typedef {object} OpenApproval
 * @property {string} created_at The time of the request.
 * @property {string} deadline The time limit for an answer.
 * @property {DefaultDecision} default The decision when the time is up.
 * @property {string} digest The digest of the data that will run.
 * @property {string} event The event at which it asks.
 * @property {string} hook The hook that asks.
 * @property {string} id `SESSION.RUN.NUMBER`.
 * @property {string | null} [machine] The machine of the session, if it is another one than the server's. The server sets it.
 * @property {string} [nonce] Must be returned with the answer, so that only a shown request can be answered. Empty for viewers, who cannot answer, and on the link: the server sets it.
 * @property {number} number The number of the request in its session. Sub-agents count with the session that they work for.
 * @property {RuleOffer[]} [offers] The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them.
 * @property {ApprovalOption[]} options The possible answers.
 * @property {string | null} [parent_session] The connected session, if the request comes from its sub-agent.
 * @property {ActionPreview} preview The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version; the operation does not run if the file has changed since.
 * @property {string} prompt The text of the request.
 * @property {string | null} [reason] The reason that the hook gives.
 * @property {string} session The session of the request.
 * @property {string | null} [session_name] The name of the session.
 * @property {number} timeout_s The time that the kernel waits for an answer, in seconds.
 * @property {boolean} [truncated] `true` if a long preview is omitted here: `GET /api/approvals/{id}` returns the whole request.
 * @property {string | null} [warning] The kernel's own warning to the approver.
 * @property {string} workspace The workspace.
 */
/**
 * A gated operation that has ended.
 * @typedef {object} OperationResult
 * @property {boolean | null} [success] `true` if it succeeded, where that is known.
 * @property {string | null} [tool_call_id] The tool call, which pairs the outcome with its intent.
 */
/**
 * The output of a hook.
 * @typedef {object} OutputReport
 * @property {string} hook The hook.
 * @property {string} text The text.
 */
/**
 * A page of records.
 * @typedef {object} Page
 * @property {number} cursor Next cursor: records from this number on, or before it for requests with `before`. There may be more records although the page is short.
 * @property {number} first Number of the first record in the log.
 * @property {LogRecord[]} records The records, the oldest first.
 */
/**
 * Open approval requests.
 * @typedef {object} PendingApprovals
 * @property {OpenApproval[]} approvals The requests, the oldest first. Long previews are omitted.
 * @property {ApprovalFlood | null} [busy] Report about too many requests in a short time.
 * @property {number} pending Number of all open requests.
 */
/**
 * A named value of a preview.
 * @typedef {object} PreviewField
 * @property {string} name The name.
 * @property {string} value The value as JSON.
 */
/**
 * One line of a preview.
 * @typedef {object} PreviewRow
 * @property {PreviewRowKind} kind The kind of line.
 * @property {number | null} [new] Its line number after the change.
 * @property {number | null} [old] Its line number before the change.
 * @property {string} text The text, without its line feed.
 */
/**
 * A problem of the audit log.
 * @typedef {object} Problem
 * @property {number | null} [seq] Record number, if known.
 * @property {string} text Description.
 */
/**
 * A prompt for a session.
 * @typedef {object} Prompt
 * @property {string} text The text.
 */
/**
 * A device that receives push messages.
 * @typedef {object} PushDevice
 * @property {boolean} answers `true` if its notifications open their request without signing in.
 * @property {string} id Identifies the device: the first 16 bytes of the SHA-256 of its endpoint, as base64url.
 */
/**
 * The server's key for push messages, and the devices of the user.
 * @typedef {object} PushStatus
 * @property {PushDevice[]} devices The devices.
 * @property {string} key The public key that a browser subscribes with (`applicationServerKey`), as base64url.
 */
/**
 * The report of an emission that is in a log.
 * @typedef {object} RecordedEmission
 * @property {ApprovalReport[]} approvals The approvals that hooks requested.
 * @property {{ [key: string]: any } | null} [data] The data as the hooks left it; missing if it was erased or withheld.
 * @property {DataStatus} data_status The state of the data.
 * @property {DecisionKind | null} [decision] The decision of the hooks; missing if it was erased.
 * @property {string | null} [denied_by] The hook that denied the event.
 * @property {string} event The event.
 * @property {FailureReport[]} failures The parts of the system that failed.
 * @property {HookReport[]} hooks The hooks that were called, in running order.
 * @property {InjectionReport[]} injections The texts for the agent.
 * @property {IntentReport | null} [intent] The operation that may begin after the event.
 * @property {MessageReport[]} messages The messages for the user.
 * @property {OutputReport[]} outputs The output of hooks, unless suppressed. It is not recorded.
 * @property {string | null} [reason] The reason of the denial.
 * @property {OperationResult | null} [result] The result of the operation that ended before the event.
 * @property {string} run The run of the session.
 * @property {number} seq The number of its first record.
 * @property {string | null} [session] The session.
 * @property {string} time The time of that record.
 * @property {number | null} [turn] The turn of the session.
 * @property {number} unreadable The number of further records of the emission whose content is erased or withheld.
 */
/**
 * The result of a reload of the bundles of a session.
 * @typedef {object} ReloadResult
 * @property {string | null} [message] The problem, or what to do about it.
 * @property {ReloadStatus} result The outcome.
 */
/**
 * The results of a reload.
 * @typedef {object} ReloadResults
 * @property {SessionReload[]} results The result of each session.
 * @property {number} sessions Number of connected sessions.
 */
/**
 * A rule that an approver may create with an answer: it allows the operation of the request, and others like it.
 * @typedef {object} RuleOffer
 * @property {string} explanation A sentence about the requests that the rule would answer.
 * @property {string} label The allowed operations in a few words.
 * @property {string[]} operations The names of the allowed operations, one for each part of this one.
 * @property {RuleScope} scope The sessions that the rule would be for.
 */
/**
 * A record that a search found.
 * @typedef {object} SearchMatch
 * @property {string} at Time.
 * @property {string} event Event name.
 * @property {string} excerpt The text around the first word.
 * @property {SearchPart} part The searched part of the record.
 * @property {number} seq Record number.
 * @property {string} session Session id.
 */
/**
 * The matches in a part of the log.
 * @typedef {object} SearchResults
 * @property {string | null} [cursor] Continues the search with older records. Missing at the end.
 * @property {SearchMatch[]} matches The matches, the newest first.
 * @property {string | null} [searched_since] Time of the oldest record that was searched; missing if there was none.
 */
/**
 * A session.
 * @typedef {object} Session
 * @property {SessionClient | null} [client] The agent program.
 * @property {boolean} connected `true` if the session is connected, and accepts answers and commands.
 * @property {Cost | null} [cost] Cost of the model calls with a known price; missing without one.
 * @property {number} denials Number of denied operations.
 * @property {string | null} [ended] The reason of the end.
 * @property {number} errors Number of failed hook calls.
 * @property {string} id Session id.
 * @property {string | null} [last_message] The model's last text, possibly truncated.
 * @property {string | null} [machine] The machine of a connected session on another one.
 * @property {string | null} [mode] Approval mode of a connected session: `ask`, `accept-edits`, `plan` or `deny`.
 * @property {string | null} [model] The model of the last call, as far as the agent program names it.
 * @property {string | null} [name] Name given by a hook or a user.
 * @property {string | null} [parent] Parent session.
 * @property {number} pending Number of open approval requests.
 * @property {number | null} [pid] Process id of a connected session.
 * @property {string | null} [prompt] The last prompt, possibly truncated.
 * @property {SessionHost | null} [runs_in] Location of a connected session.
 * @property {string} started_at Time of the first activity.
 * @property {SessionState} state Current state.
 * @property {boolean} takes_prompts `true` if the session accepts prompts from the server.
 * @property {number} tokens Number of tokens used.
 * @property {number} tool_calls Number of tool calls.
 * @property {number} turns Number of turns.
 * @property {string} updated_at Time of the last activity.
 * @property {string | null} [workspace] Working folder.
 */
/**
 * The agent program of a session.
 * @typedef {object} SessionClient
 * @property {string} name Name, such as `amplifier`.
 * @property {string | null} [version] Version.
 */
/**
 * The hooks of a session.
 * @typedef {object} SessionHooks
 * @property {{ [key: string]: any }[]} hooks The hooks, in running order.
 */
/**
 * Sessions.
 * @typedef {object} SessionList
 * @property {Session[]} sessions The sessions, the newest first.
 */
/**
 * The result of a reload in one session.
 * @typedef {object} SessionReload
 * @property {string | null} [message] The problem, or what to do about it.
 * @property {ReloadStatus} result The outcome.
 * @property {string} session The session.
 */
/**
 * A one-time sign-in link.
 * @typedef {object} SignInLink
 * @property {string} expires_at Expiry time.
 * @property {string} url URL for a browser.
 */
/**
 * A request for a sign-in link.
 * @typedef {object} SignInLinkRequest
 * @property {string} name Name for records of answers.
 * @property {string} role Role: `viewer`, `approver` or `admin`.
 */
/**
 * The result of signing browsers out.
 * @typedef {object} SignedOutBrowsers
 * @property {number} ended Number of browsers.
 */
/**
 * The bundle to test.
 * @typedef {object} TestBody
 * @property {string | null} [bundle] The bundle as text; by default, the bundle of the server's folder.
 */
/**
 * The timeline of a session.
 * @typedef {object} Timeline
 * @property {number} cursor Next cursor. Fewer items than requested means the end; items that may still change come again, and replace those with the same `seq`.
 * @property {TimelineItem[]} items The items, the oldest first.
 */
/**
 * An event of a session with the report of its emission, or a record that belongs to none.
 * @typedef {object} TimelineItem
 * @property {ApprovalReport[]} approvals The approvals that hooks requested.
 * @property {{ [key: string]: any } | null} [data] The data as the hooks left it; missing if it was erased or withheld.
 * @property {DataStatus} data_status The state of the data.
 * @property {DecisionKind | null} [decision] The decision of the hooks; missing if it was erased.
 * @property {boolean} denied `true` if the operation does not run: a hook denied it, or an approval was denied.
 * @property {string | null} [denied_by] The hook that denied the event.
 * @property {string} event The event.
 * @property {FailureReport[]} failures The parts of the system that failed.
 * @property {HookReport[]} hooks The hooks that were called, in running order.
 * @property {InjectionReport[]} injections The texts for the agent.
 * @property {IntentReport | null} [intent] The operation that may begin after the event.
 * @property {string} kind `event`, or the kind of a record without an emission: `seal`, `gap`. The kind is repeated in `event`, and the body is in `data`.
 * @property {MessageReport[]} messages The messages for the user.
 * @property {OutputReport[]} outputs The output of hooks, unless suppressed. It is not recorded.
 * @property {string | null} [reason] The reason of the denial.
 * @property {OperationResult | null} [result] The result of the operation that ended before the event.
 * @property {string} run The run of the session.
 * @property {number} seq The number of its first record.
 * @property {string | null} [session] The session.
 * @property {string} time The time of that record.
 * @property {boolean} truncated `true` if long texts or lists are shortened.
 * @property {number | null} [turn] The turn of the session.
 * @property {number} unreadable The number of further records of the emission whose content is erased or withheld.
 */
/**
 * A file of approval rules that cannot be read.
 * @typedef {object} UnreadableFile
 * @property {string} file The file, or the folder of a missing file.
 * @property {string} reason The reason.
 */
/** @typedef {'continue' | 'respond' | 'deny' | 'modify' | 'inject_context' | 'ask_user' | 'failed' | 'panicked' | 'timed_out' | 'unreadable'} ActionKind The action of a hook without its payload, or the kind of its failure. */
/** @typedef {'once' | 'project'} AnswerScope The scope of an answer. */
/** @typedef {OpenApproval | DecidedApproval} ApprovalLookup An approval request: open, or decided. */
/** @typedef {'whole' | 'redacted' | 'erased' | 'withheld'} DataStatus The state of the data of an event. */
/** @typedef {'answer' | 'rule' | 'remembered' | 'timeout' | 'not_offered' | 'no_system' | 'failed' | 'cancelled' | 'disconnected'} DecisionBasis The basis of a decision. */
/** @typedef {'continue' | 'modify' | 'inject_context' | 'ask_user' | 'deny' | 'cancelled'} DecisionKind The decision of an emission without its denial. */
/** @typedef {'allow' | 'deny'} DefaultDecision A decision without an approver: after the time limit, or by a rule. */
/** @typedef {'allow_once' | 'allow_always' | 'deny' | 'deny_always'} Effect The effect of an option. */
/** @typedef {{ [key: string]: any }} EmptyBody An empty object. */
/** @typedef {'injected' | 'over_budget' | 'truncated' | 'dropped' | 'refused' | 'no_context'} InjectionStatus The status of an injection after the session's limits were applied. */
/** @typedef {'allow_once' | 'deny'} LinkAnswer An answer by a link. None of them lasts. */
/** @typedef {'info' | 'warning' | 'error'} MessageLevel The urgency of a message. */
/** @typedef {'system' | 'user' | 'assistant'} MessageRole The role of a message. */
/** @typedef {'history' | 'next_call' | 'last_tool_result'} Placement The position and lifetime of an injection. */
/** @typedef {'plain' | 'context' | 'added' | 'removed' | 'gap' | 'note'} PreviewRowKind The kind of a line of a preview. */
/** @typedef {{ [key: string]: any }} ReloadBody Request body without fields. */
/** @typedef {'unchanged' | 'changed' | 'refused' | 'not_trusted' | 'no_answer'} ReloadStatus The outcome of a reload. */
/** @typedef {'viewer' | 'approver' | 'admin'} Role Permissions of a user. Each role includes those before it. */
/** @typedef {'session' | 'project' | 'user'} RuleScope The sessions that a rule is for. */
/** @typedef {'prompt' | 'input' | 'reason' | 'approval'} SearchPart A part of a record that is searched. */
/** @typedef {'server' | 'process' | 'machine'} SessionHost The location of a session. */
/** @typedef {'running' | 'waiting' | 'idle' | 'away' | 'ended' | 'failed' | 'gone'} SessionState The state of a session. */
/** @typedef {{ approvals: OpenApproval[]; audit: AuditStatus; busy?: ApprovalFlood | null; cursor: number; known: number; me: Me; now: string; pending: number; sessions: Session[]; type: 'hello' } | { session: Session; type: 'session' } | { approval: OpenApproval; type: 'approval_requested' } | { decided: DecidedApproval; id: string; type: 'approval_closed' } | { busy?: ApprovalFlood | null; type: 'approval_flood' } | { type: 'rules' } | { audit: AuditStatus; type: 'audit' } | { error?: ErrorDetails | null; id: string; ok: boolean; type: 'answered' } | { cursor: number; records: LogRecord[]; type: 'records' }} StreamMessage A message of the server. */
/** @typedef {{ [key: string]: any }} VerifyBody Request body without fields. */

export {};
