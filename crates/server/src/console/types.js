// Generated from schema/openapi.json: UPDATE_SCHEMAS=1 cargo test -p amplifier-server --test all up_to_date

/**
 * The effect of an operation, described for the person who is asked before it runs. The code that will run the operation makes it; an operation that nobody describes is shown as data. Terminals, pages and programs only draw it. The texts may hold any characters: whoever draws them makes them safe to show.
 * @typedef {object} ActionPreview
 * @property {PreviewRow[]} [body] The operation line by line: a command, a diff, a task.
 * @property {ComparedWith | null} [compared_with] The file that the preview was compared with, if the operation changes one.
 * @property {PreviewField[]} [fields] Further settings of the operation: a time limit, a range.
 * @property {string | null} [summary] The effect in a few words: a new file, the number of lines that are added and removed.
 * @property {string | null} [target] The file, pattern or agent that it is about.
 * @property {string} title The kind of operation: the name of a tool, `prompt`, `agent`, or an event.
 * @property {boolean} [truncated] `true` if something is left out because it is too large. The first warning says so.
 * @property {string[]} [warnings] Facts that the person has to know before an answer.
 */
/**
 * The user who did something, and the channel.
 * @typedef {object} Actor
 * @property {string} name The name that the approval system knows the user by.
 * @property {string} via The channel: `terminal`, `console`, `api`, …
 */
/**
 * What came of it.
 * @typedef {object} AllReloaded
 * @property {SessionReloaded[]} results What came of it in each.
 * @property {number} sessions How many sessions are connected.
 */
/**
 * The option that an approver chose, and the approver's identity.
 * @typedef {object} ApprovalAnswer
 * @property {Actor | null} [by] The approver, where known. It is recorded.
 * @property {string} label The label of an option.
 */
/**
 * The decision on an approval request.
 * @typedef {object} ApprovalDecision
 * @property {DecisionBasis} basis The basis of the decision.
 * @property {Actor | null} [by] The approver, where known.
 * @property {boolean} granted `true` if the operation may run.
 * @property {string} reason The reason, in words.
 */
/**
 * An answer that is offered, and what it does.
 * @typedef {object} ApprovalOption
 * @property {Effect} effect What it does. The kernel decides by this, never by the label.
 * @property {string} label What the person reads and answers.
 */
/**
 * An approval that a hook requested, and the decision.
 * @typedef {object} ApprovalReport
 * @property {boolean} [changed_after_asking] `true` if another hook changed the data after this one asked, so that no allow given in advance counted.
 * @property {ComparedWith | null} [compared_with] The file that the approver was shown a change of.
 * @property {string | null} [created_at] The time of the request.
 * @property {string | null} [decided_at] The time of the decision.
 * @property {number | null} [decided_seq] The number of the record of the decision.
 * @property {ApprovalDecision | null} [decision] The decision; missing while the request is open.
 * @property {DefaultDecision | null} [default] The decision if there is no answer in time.
 * @property {string | null} [digest] The digest of the operation.
 * @property {boolean} [fallback] `true` if the approval is requested only when no other hook requests one.
 * @property {string} hook The hook.
 * @property {string | null} [id] The id of the request, `SESSION.RUN.N`; missing if nobody was asked.
 * @property {ApprovalAnswer[]} [late_answers] The answers that came when the request was no longer open.
 * @property {ApprovalOption[]} [options] The options of the approver.
 * @property {string | null} [prompt] The question.
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
 * @property {ApprovalOption[]} options The possible answers.
 * @property {ActionPreview} preview The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it, and nothing is run if the file has another one by then.
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
 * @property {string} pattern The prompts; `*` stands for any text.
 * @property {string | null} [project] The folder, if the scope is a project.
 * @property {RuleScope} scope The sessions that the rule is for.
 * @property {string | null} [session] The session, if the scope is one.
 */
/**
 * What is proven about the audit log.
 * @typedef {object} AuditStatus
 * @property {string[]} cannot_prove What it cannot prove.
 * @property {boolean} checking Whether it is being verified.
 * @property {CheckpointSeen | null} [checkpoint] The last checkpoint.
 * @property {number} exposed How many records are newer than the last checkpoint that is kept elsewhere; all if none is.
 * @property {string} log The id of the log.
 * @property {Problem[]} problems What is wrong.
 * @property {string[]} proves What verifying proves.
 * @property {number} size How many records there are.
 * @property {boolean} sound Whether nothing is wrong with them.
 * @property {number} verified_to Every record below this number is verified.
 */
/**
 * A browser that is in.
 * @typedef {object} Browser
 * @property {string} name The name that its answers are recorded under.
 * @property {Role} role What it may do.
 * @property {string} seen When it last asked for something.
 * @property {string} since When it came in.
 */
/**
 * The browsers that are in.
 * @typedef {object} Browsers
 * @property {Browser[]} browsers They.
 */
/**
 * Too many questions in a short time.
 * @typedef {object} Busy
 * @property {number} asked How many were asked.
 * @property {string} hook By which hook.
 * @property {string} pattern A rule that would answer them.
 * @property {number} seconds In how many seconds.
 */
/**
 * A signed checkpoint.
 * @typedef {object} CheckpointSeen
 * @property {string} at When it was signed.
 * @property {number} size How many records it covers.
 */
/**
 * The file that a preview was compared with.
 * @typedef {object} ComparedWith
 * @property {string} path The path, with links followed.
 * @property {string} version The version of its content: `sha256:` and the digest, `missing`, `unreadable`, or `outside` of the workspace.
 */
/**
 * An approval request that was decided.
 * @typedef {object} DecidedApproval
 * @property {DecisionBasis} basis The basis of the decision.
 * @property {Actor | null} [by] The approver, where known.
 * @property {string | null} [created_at] The time of the request.
 * @property {string} decided_at The time of the decision.
 * @property {string} event The event at which it asked.
 * @property {boolean} granted `true` if the operation may run.
 * @property {string} hook The hook that asked.
 * @property {string | null} [id] `SESSION.RUN.NUMBER`; missing if no approver had to be asked.
 * @property {string} prompt The text of the request.
 * @property {string} reason The reason, in words.
 * @property {number} [seq] The number of the record of the decision; 0 if it is not read yet.
 * @property {string} session The session.
 */
/**
 * Decisions.
 * @typedef {object} Decisions
 * @property {DecidedApproval[]} decisions They, the newest first.
 */
/**
 * An event whose outcome is to be tried. Approvals are not requested, and nothing runs but the hooks.
 * @typedef {object} DryRun
 * @property {string | null} [bundle] A bundle as text, whose hooks alone are tried.
 * @property {{ [key: string]: any }} [data] Its data.
 * @property {string} event The event.
 * @property {string | null} [workspace] The folder whose hooks are tried, as a session there would have them; the server's own if missing.
 */
/**
 * The report of an event that was tried.
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
 * @property {OutputReport[]} outputs The output of hooks, as far as they did not suppress it. It is not recorded.
 * @property {string | null} [reason] The reason of the denial.
 * @property {OperationResult | null} [result] The result of the operation that ended before the event.
 * @property {number} unreadable The number of further records of the emission whose content is erased or withheld.
 * @property {string | null} [warning] The reason why hooks of a project may be missing: it is not trusted.
 */
/**
 * The outcome of an emission as JSON, built from the outcome itself or from the records of a log. A field that the source does not know is missing.
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
 * @property {OutputReport[]} outputs The output of hooks, as far as they did not suppress it. It is not recorded.
 * @property {string | null} [reason] The reason of the denial.
 * @property {OperationResult | null} [result] The result of the operation that ended before the event.
 * @property {number} unreadable The number of further records of the emission whose content is erased or withheld.
 */
/**
 * How many browsers are out now.
 * @typedef {object} Ended
 * @property {number} ended So many.
 */
/**
 * What went wrong.
 * @typedef {object} Explained
 * @property {Actor | null} [by] Who was faster, if somebody else has answered.
 * @property {string} code A word for programs.
 * @property {string} message What is wrong, and what to do.
 */
/**
 * Something went wrong.
 * @typedef {object} Failure
 * @property {Explained} error What.
 */
/**
 * A part of the system that failed.
 * @typedef {object} FailureReport
 * @property {string} error The error.
 * @property {string} part The part.
 */
/**
 * An answer.
 * @typedef {object} Given
 * @property {string} nonce The nonce of the question.
 * @property {string} option The label of an option.
 * @property {AnswerScope} [scope] For what it holds.
 */
/**
 * That the server works.
 * @typedef {object} Health
 * @property {string} status `ok`.
 * @property {string} version The version of the server.
 */
/**
 * The answer of a hook, or its failure.
 * @typedef {object} HookReport
 * @property {ActionKind} answer The action, or the kind of failure.
 * @property {number} duration_ns The time that it took, in nanoseconds.
 * @property {string | null} [error] The error of a hook that failed.
 * @property {string} hook The hook.
 * @property {string | null} [reason] The reason that it gave.
 * @property {boolean} [suppressed_output] `true` if it kept its output out of the transcript.
 */
/**
 * What a hook has done so far.
 * @typedef {object} HookStats
 * @property {number} asks How often it asked a person.
 * @property {number} calls How often it was called.
 * @property {number} denials How often it denied.
 * @property {number} errors How often it failed.
 * @property {string[]} events The events at which it was called.
 * @property {string} hook Its name.
 * @property {number} injects How often it told the agent something.
 * @property {number[]} latency How many calls took up to 1 µs, 2 µs, 4 µs, …, and longer: 16 counts.
 * @property {number} max_ns The slowest call.
 * @property {number} modifies How often it changed data.
 * @property {number} p50_ns Half of the calls were as fast as that, in nanoseconds.
 * @property {number} p95_ns 95 of 100 calls were as fast as that.
 * @property {number[]} recent Calls in each of the last 30 minutes, the oldest first.
 */
/**
 * The hooks of a session.
 * @typedef {object} HooksOf
 * @property {{ [key: string]: any }[]} hooks They, in running order.
 */
/**
 * Hooks, by name.
 * @typedef {object} HooksSeen
 * @property {HookStats[]} hooks What each has done so far.
 */
/**
 * A text that a hook adds to the conversation of the agent.
 * @typedef {object} InjectionReport
 * @property {number} bytes The size of the text.
 * @property {string} hook The hook.
 * @property {Placement} placement The place in the conversation.
 * @property {MessageRole} role The role of the message.
 * @property {InjectionStatus | null} [status] The status; missing if no session applied its limits.
 * @property {string} text The text.
 * @property {number | null} [tokens] The number of tokens of the text; missing if it was not counted.
 */
/**
 * A gated operation that may begin.
 * @typedef {object} IntentReport
 * @property {string | null} [digest] The digest of the operation; missing if the data is too deep to have one.
 * @property {number} seq The number of its record.
 * @property {string | null} [tool_call_id] The call that it is paired with its result by.
 * @property {boolean} unresolved `true` if the log has no result of it: it runs, or it is unknown how it ended.
 */
/**
 * A link that lets one browser in, once.
 * @typedef {object} Link
 * @property {string} expires_at Until when.
 * @property {string} url To be opened in a browser.
 */
/**
 * A link that is wanted.
 * @typedef {object} LinkWanted
 * @property {string} name The name that answers given through it are recorded under.
 * @property {string} role What it allows: `viewer`, `approver`, `admin`.
 */
/**
 * One record of the audit log.
 * @typedef {object} LogRecord
 * @property {string} at When.
 * @property {any} body What it says.
 * @property {string | null} [event] At which event.
 * @property {string} hash Its hash, in hexadecimal.
 * @property {string} kind What kind of record it is.
 * @property {number} seq Its number: the cursor of streams.
 * @property {string | null} [session] In which session.
 * @property {number | null} [turn] In which turn of it.
 * @property {string} writer Who wrote it.
 */
/**
 * Who is asking the server.
 * @typedef {object} Me
 * @property {string} name The name.
 * @property {string} role What they may do: `viewer`, `approver`, `admin`.
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
 * A session that is to be.
 * @typedef {object} NewSession
 * @property {string | null} [prompt] What it works on first.
 * @property {string | null} [workspace] The folder that it works in; that of the server unless given.
 */
/**
 * An approval request that waits for an answer, and the session that made it.
 * @typedef {object} OpenApproval
 * @property {string} created_at The time of the request.
 * @property {string} deadline The time at which the kernel stops waiting.
 * @property {DefaultDecision} default The decision when the time is up.
 * @property {string} digest The digest of the data that will run.
 * @property {string} event The event at which it asks.
 * @property {string} hook The hook that asks.
 * @property {string} id `SESSION.RUN.NUMBER`.
 * @property {string} [nonce] Returned with the answer, so that only what was shown can be answered. Empty for viewers, who cannot answer, and on the link: the server makes it.
 * @property {number} number The number of the request in its session. Sub-agents count with the session that they work for.
 * @property {ApprovalOption[]} options The possible answers.
 * @property {string | null} [parent_session] If the session is a sub-agent: the connected session that it works for.
 * @property {ActionPreview} preview The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it, and nothing is run if the file has another one by then.
 * @property {string} prompt The text of the request.
 * @property {string | null} [reason] The reason that the hook gives.
 * @property {string} session The session that asks.
 * @property {string | null} [session_name] The name of the session.
 * @property {number} timeout_s The time that the kernel waits for an answer, in seconds.
 * @property {boolean} [truncated] `true` if the lines of the preview are left out here, because there are many: `GET /api/approvals/{id}` has them.
 * @property {string | null} [warning] The kernel's own warning to the approver.
 * @property {string} workspace The folder that the session works in.
 */
/**
 * A gated operation that has ended.
 * @typedef {object} OperationResult
 * @property {boolean | null} [success] `true` if it succeeded, where that is known.
 * @property {string | null} [tool_call_id] The call that it is paired with its intent by.
 */
/**
 * The output of a hook.
 * @typedef {object} OutputReport
 * @property {string} hook The hook.
 * @property {string} text The text.
 */
/**
 * Some records, and where to go on.
 * @typedef {object} Page
 * @property {number} cursor What to ask for next: records from this number on, or before it if `before` was asked for. There may be more even if there are fewer here than were asked for.
 * @property {number} first The number of the first record that is still there.
 * @property {LogRecord[]} records The records, the oldest first.
 */
/**
 * What waits for an answer.
 * @typedef {object} Pending
 * @property {OpenApproval[]} approvals The questions, the oldest first, and long ones without the lines of their actions.
 * @property {Busy | null} [busy] Whether there are too many in a short time.
 * @property {number} pending How many there are, listed or not.
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
 * Something that is wrong with the audit log.
 * @typedef {object} Problem
 * @property {number | null} [seq] At which record, where that is known.
 * @property {string} text What.
 */
/**
 * A prompt.
 * @typedef {object} Prompt
 * @property {string} text It.
 */
/**
 * A proof that the server knows the key of a browser.
 * @typedef {object} Proof
 * @property {string} proof It.
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
 * @property {OutputReport[]} outputs The output of hooks, as far as they did not suppress it. It is not recorded.
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
 * An approval rule as the API lists it.
 * @typedef {object} Rule
 * @property {Actor | null} [by] The user who gave it, where known.
 * @property {string | null} [created_at] The time at which it was given, where known.
 * @property {DefaultDecision} decision The answer.
 * @property {string | null} [event] The event of the request that the answer was given to. The pattern is then its exact prompt.
 * @property {string} explanation The requests that it answers, in a sentence.
 * @property {string} hook The hook whose requests the rule answers.
 * @property {string} id Identifies the rule when it is revoked.
 * @property {string} pattern The prompts; `*` stands for any text.
 * @property {string | null} [project] The folder, if the scope is a project.
 * @property {RuleScope} scope The sessions that the rule is for.
 * @property {string | null} [session] The session, if the scope is one.
 */
/**
 * Standing answers.
 * @typedef {object} Rules
 * @property {Rule[]} rules They.
 * @property {UnreadableFile[]} unreadable The files that cannot be read, so that what stands in them is missing here. While that is so, none of them allows anything.
 */
/**
 * A session, as far as it is known.
 * @typedef {object} Session
 * @property {boolean} connected Whether it is connected, so that it can be answered, stopped and prompted from here.
 * @property {number} denials How many operations were denied.
 * @property {string | null} [ended] Why it ended, if it has.
 * @property {number} errors How many hooks failed.
 * @property {string} id Its id.
 * @property {string | null} [name] The name that a hook or a person gave it.
 * @property {string | null} [parent] The session that delegated to it.
 * @property {number} pending How many questions are open.
 * @property {number | null} [pid] The process that it runs in, if it is connected.
 * @property {string | null} [prompt] The last prompt, or its beginning.
 * @property {Place | null} [runs_in] Where it runs, if it is connected.
 * @property {string} started_at When it was first heard of.
 * @property {State} state What it does at the moment.
 * @property {boolean} takes_prompts Whether it takes prompts from here.
 * @property {number} tokens How many tokens were used.
 * @property {number} tool_calls How many tools were called.
 * @property {number} turns How many turns it has had.
 * @property {string} updated_at When it was last heard of.
 * @property {string | null} [workspace] The folder that it works in.
 */
/**
 * What came of it in one session.
 * @typedef {object} SessionReloaded
 * @property {string | null} [message] The problem, or what to do about it.
 * @property {ReloadStatus} result The outcome.
 * @property {string} session Which.
 */
/**
 * Sessions.
 * @typedef {object} Sessions
 * @property {Session[]} sessions They, the newest first.
 */
/**
 * Which bundle is tested.
 * @typedef {object} TestBody
 * @property {string | null} [bundle] The bundle as text; that of the server's folder if none is given.
 */
/**
 * The course of a session.
 * @typedef {object} Timeline
 * @property {number} cursor Where to go on. Fewer items than were asked for are all there are; those of them that may still change come again, and one with the same `seq` takes the place of the one before.
 * @property {TimelineItem[]} items What happened, the oldest first.
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
 * @property {string} kind `event`, or the kind of a record that belongs to no emission: `seal`, `gap`. Its kind stands in `event`, too, and its body in `data`.
 * @property {MessageReport[]} messages The messages for the user.
 * @property {OutputReport[]} outputs The output of hooks, as far as they did not suppress it. It is not recorded.
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
 * @property {string} file The file, or the folder that it should be in.
 * @property {string} reason The reason.
 */
/**
 * A standing answer that is to be.
 * @typedef {object} Wanted
 * @property {DefaultDecision} decision What it answers.
 * @property {string} hook The hook whose questions it answers.
 * @property {string} pattern The questions: `*` stands for any text.
 * @property {string | null} [project] The folder, if it holds for one.
 * @property {RuleScope} scope For what it holds.
 * @property {string | null} [session] The session, if it holds for one.
 */
/** @typedef {'continue' | 'respond' | 'deny' | 'modify' | 'inject_context' | 'ask_user' | 'failed' | 'panicked' | 'timed_out' | 'unreadable'} ActionKind The action of a hook without its payload, or the kind of its failure. */
/** @typedef {'once' | 'project'} AnswerScope The requests that an answer is for. */
/** @typedef {'whole' | 'redacted' | 'erased' | 'withheld'} DataStatus The state of the data of an event. */
/** @typedef {'answer' | 'rule' | 'remembered' | 'timeout' | 'not_offered' | 'no_system' | 'failed' | 'cancelled' | 'disconnected'} DecisionBasis The basis of a decision. */
/** @typedef {'continue' | 'modify' | 'inject_context' | 'ask_user' | 'deny' | 'cancelled'} DecisionKind The decision of an emission, in a word. */
/** @typedef {'allow' | 'deny'} DefaultDecision An answer that counts without an approver: after the time limit, or by a rule. */
/** @typedef {'allow_once' | 'allow_always' | 'deny' | 'deny_always'} Effect The effect of an option. */
/** @typedef {'injected' | 'over_budget' | 'truncated' | 'dropped' | 'refused' | 'no_context'} InjectionStatus The status of an injection after the session's limits were applied. */
/** @typedef {'info' | 'warning' | 'error'} MessageLevel How urgent a message is. */
/** @typedef {'system' | 'user' | 'assistant'} MessageRole As whom a message speaks. */
/** @typedef {{ [key: string]: any }} Nothing Nothing. */
/** @typedef {'server' | 'process'} Place Where a session runs. */
/** @typedef {'history' | 'next_call' | 'last_tool_result'} Placement Where an injection lands, and how long it stays. */
/** @typedef {'plain' | 'context' | 'added' | 'removed' | 'gap' | 'note'} PreviewRowKind The kind of a line of a preview. */
/** @typedef {OpenApproval | DecidedApproval} Question A question: open, or decided. */
/** @typedef {{ [key: string]: any }} ReloadBody Nothing has to be said. */
/** @typedef {'unchanged' | 'changed' | 'refused' | 'not_trusted' | 'no_answer'} ReloadStatus The outcome of a reload. */
/** @typedef {'viewer' | 'approver' | 'admin'} Role What somebody may do. Each role may do what those before it may. */
/** @typedef {'session' | 'project' | 'user'} RuleScope The sessions that a rule is for. */
/** @typedef {'running' | 'waiting' | 'idle' | 'away' | 'ended' | 'gone'} State What a session does. */
/** @typedef {{ approvals: OpenApproval[]; audit: AuditStatus; busy?: Busy | null; cursor: number; known: number; me: Me; now: string; pending: number; sessions: Session[]; type: 'hello' } | { session: Session; type: 'session' } | { approval: OpenApproval; type: 'approval_requested' } | { decided: DecidedApproval; id: string; type: 'approval_closed' } | { busy?: Busy | null; type: 'approval_flood' } | { type: 'rules' } | { audit: AuditStatus; type: 'audit' } | { error?: Explained | null; id: string; ok: boolean; type: 'answered' } | { cursor: number; records: LogRecord[]; type: 'records' }} StreamMessage What the server sends. */
/** @typedef {{ [key: string]: any }} VerifyBody Nothing has to be said. */

export {};
