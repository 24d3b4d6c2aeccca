//! Every example runs unattended, succeeds, and shows what it promises.

use std::path::PathBuf;
use std::process::Command;

/// Cargo builds the examples for every `cargo test`, next to the directory of the test's own executable.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

fn run(name: &str) -> String {
    let output = Command::new(example(name))
        .output()
        .unwrap_or_else(|error| panic!("`{name}` cannot be run ({error}); build it with `cargo build --examples`"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "`{name}` ended with {}\n{stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// Returns `true` if a line is the expected one, in which `…` matches text that differs between runs.
fn matches(expected: &str, line: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else {
        return line == expected;
    };
    let Some(line) = line.strip_prefix(start) else {
        return false;
    };
    line.char_indices().any(|(at, _)| matches(rest, &line[at..])) || rest.is_empty()
}

/// Checks the whole output, line by line.
fn check(name: &str, expected: &[&str]) {
    let stdout = run(name);
    let lines: Vec<_> = stdout.lines().collect();
    let is_right = lines.len() == expected.len() && expected.iter().zip(&lines).all(|(one, line)| matches(one, line));
    assert!(is_right, "`{name}` printed\n{stdout}\ninstead of\n{}", expected.join("\n"));
}

#[test]
fn the_tour_shows_all_six_capabilities() {
    check(
        "tour",
        &[
            "",
            "Control output: one clean line instead of a hook's chatter",
            "  person  says: tidy up and ship it",
            "  person  sees: info [hook:greeter] the prompt was checked",
            "",
            "Block: a guard refuses, and the model reads why",
            r#"  model   calls Bash with {"command":"rm -rf build"}"#,
            "  model   reads: Denied by hook guard: deleting recursively is not allowed",
            "",
            "Modify: a secret is redacted before anyone sees it",
            r#"  model   calls Bash with {"command":"cat .token"}"#,
            "  model   reads: [redacted]",
            "",
            "Inject: the model learns what a linter found",
            r#"  model   calls Write with {"content":"import os \n","file_path":"app.py"}"#,
            "  person  sees: warning [hook:linter] the linter found a problem",
            "  model   reads: written",
            r#"  model   reads, injected by "linter": app.py line 1: trailing white space"#,
            "",
            "Ask: a person decides",
            r#"  model   calls Write with {"content":"import os\n","file_path":"production/app.py"}"#,
            r#"  person  is asked by production-guard: Write to production/app.py? ["Allow once", "Allow always", "Deny"]"#,
            "  person  answers: Allow once",
            "  model   reads: written",
            "",
            "Observe: everything was seen and recorded",
            "  meter   saw 11 events and changed none",
            "  record  holds  1 approval_decision",
            "  record  holds  1 approval_request",
            "  record  holds 11 event",
            "  record  holds 25 hook_report",
            "  record  holds  1 injection",
            "  record  holds  3 intent",
            "  record  holds  2 message",
            "  record  holds  3 outcome",
            "",
            "Next: read examples/production_guard.rs, or write a hook of your own (README.md).",
        ],
    );
}

#[test]
fn own_events_are_heard_by_type_and_by_pattern() {
    check(
        "own_events",
        &[
            r#"heard build:done for "app""#,
            "3 warnings: published",
            "42 warnings: Denied by hook strict: 42 warnings in app",
        ],
    );
}

#[test]
fn own_ports_deny_without_a_terminal_and_record_it() {
    check(
        "own_ports",
        &[
            "warning [hook:careful] this tool has not been used before",
            "Denied by hook careful: Approval failed (the connection to the approver is closed): Run Bash?",
            "8 lines of record, the last one:",
            r#"{"at":"…Z","session":null,"turn":0,"event":"tool:pre","kind":"message",…}"#,
        ],
    );
}

#[test]
fn audit_logger_sees_every_call_and_also_a_denied_one() {
    check(
        "audit_logger",
        &[
            "…Z audit: List starts",
            "…Z audit: List succeeded after … ms",
            r#"the model reads "listed""#,
            "…Z audit: List starts",
            "…Z audit: List failed after … ms",
            "the model reads …",
            "…Z audit: List starts",
            "/secrets was not listed: Denied by hook no-secrets: private",
        ],
    );
}

#[test]
fn path_guard_is_fooled_neither_by_detours_nor_by_similar_names() {
    check(
        "path_guard",
        &[
            r#"Write {"file_path":"src/main.rs"}"#,
            "  Proceed",
            r#"Write {"file_path":"/etc/passwd"}"#,
            "  Denied by hook path-guard: /etc/passwd is in a protected directory",
            r#"Write {"file_path":"/tmp/../etc/passwd"}"#,
            "  Denied by hook path-guard: /etc/passwd is in a protected directory",
            r#"Write {"file_path":"/srv/ada/.ssh/authorized_keys"}"#,
            "  Denied by hook path-guard: /srv/ada/.ssh/authorized_keys is in a protected directory",
            r#"Write {"file_path":"/etcetera/notes.txt"}"#,
            "  Proceed",
            r#"Write {"path":"/etc/passwd"}"#,
            "  Denied by hook path-guard: …a write without `file_path`",
        ],
    );
}

#[test]
fn sanitizer_takes_card_numbers_out_before_anyone_sees_them() {
    let cleaned = [
        r#"{"body":"Please charge [card number], order 2024-17.","to":"shop@example.com"}"#,
        r#"{"cards":["[card number]","[card number] (old)","[card number]"],"to":"me@example.com"}"#,
        r#"{"body":"Lunch at 12?","to":"ada@example.com"}"#,
    ];
    let lines = cleaned.map(|input| [format!("a later hook sees {input}"), format!("the tool runs with {input}")]);
    check("sanitizer", &lines.iter().flatten().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn linter_feedback_reaches_the_model_after_the_result_until_the_file_is_right() {
    check(
        "linter_feedback",
        &[
            "the person sees: greet.py does not pass the linter (warning)",
            "the model sees:",
            "User: Write greet.py.",
            "Assistant: I write def greet(name)",
            "Tool: written",
            "System: The linter found a problem in greet.py:",
            r#"  File "greet.py", line 1"#,
            "    def greet(name)",
            "…^",
            "SyntaxError: …",
            "Assistant: I write def greet(name):",
            "Tool: written",
        ],
    );
}

#[test]
fn todo_reminder_is_in_the_next_call_and_not_in_the_history() {
    check(
        "todo_reminder",
        &[
            "the next call to the model:",
            "  User: Build me a parser.",
            "  Assistant: I read grammar.txt.",
            "  Tool: (what is in grammar.txt)",
            "  System: Still to do:",
            "    - write the parser",
            "    - test the parser",
            "the next call to the model:",
            "  User: Build me a parser.",
            "  Assistant: I read grammar.txt.",
            "  Tool: (what is in grammar.txt)",
            "  Assistant: I read parser.rs.",
            "  Tool: (what is in parser.rs)",
            "  System: Still to do:",
            "    - test the parser",
            "the history:",
            "  User: Build me a parser.",
            "  Assistant: I read grammar.txt.",
            "  Tool: (what is in grammar.txt)",
            "  Assistant: I read parser.rs.",
            "  Tool: (what is in parser.rs)",
        ],
    );
}

#[test]
fn production_guard_asks_until_the_person_says_always_and_heeds_a_no() {
    check(
        "production_guard",
        &[
            "Write /srv/staging/app.toml",
            "  Proceed",
            "Write /srv/production/app.toml",
            "  asked: Write to production: /srv/production/app.toml?",
            "  answered: Allow once",
            "  Proceed",
            "Write /srv/production/app.toml",
            "  asked: Write to production: /srv/production/app.toml?",
            "  answered: Allow always",
            "  Proceed",
            "Write /srv/staging/../production/app.toml",
            "  Proceed",
            "Write /srv/staging/.env",
            "  asked: Write to production: /srv/staging/.env?",
            "  answered: Deny",
            "  Denied by hook production-guard: User denied: Write to production: /srv/staging/.env?",
        ],
    );
}

#[test]
fn progress_keeps_its_chatter_out_of_the_transcript_and_its_message_on_the_screen() {
    check(
        "progress",
        &[
            "with its output:",
            "  message    | 3 files processed",
            r#"  transcript | counted "a.rs""#,
            r#"  transcript | counted "b.rs""#,
            r#"  transcript | counted "c.rs""#,
            "  the model reads the tool's whole result",
            "with `suppress_output`:",
            "  message    | 3 files processed",
            "  the model reads the tool's whole result",
        ],
    );
}

#[test]
fn session_logger_names_the_real_session_and_counts_its_tools() {
    check(
        "session_logger",
        &[
            r#"{"event":"session:start","session":"session-7","source":"startup"}"#,
            r#"{"event":"session:end","messages":6,"reason":"complete","session":"session-7","took_ms":…,"tools":2}"#,
        ],
    );
}

#[test]
fn date_and_time_stands_before_the_prompt() {
    check("date_and_time", &["the model sees:", "System: It is … UTC.", "User: Which day is the day after tomorrow?"]);
}

#[test]
fn bash_validator_tells_the_model_why_a_command_does_not_run() {
    check(
        "bash_validator",
        &[
            "$ ls -la",
            "  (runs)",
            "$ rm -rf ./build",
            "  (runs)",
            "$ rm -rf /",
            "  the model reads: Denied by hook bash-validator: dangerous command: it deletes everything",
            "$ cd /tmp && sudo /bin/rm -fr  /*",
            "  the model reads: Denied by hook bash-validator: dangerous command: it deletes everything",
            "$ sudo reboot",
            "  the model reads: Denied by hook bash-validator: dangerous command: it stops the machine",
        ],
    );
}

#[test]
fn completion_notice_says_how_it_went() {
    check(
        "completion_notice",
        &[
            "info [hook:completion-notice] Done after 3 turns, 12.3 s",
            "warning [hook:completion-notice] Interrupted after 1 turn, 0.8 s",
            "error [hook:completion-notice] Failed after 2 turns, 4.1 s",
        ],
    );
}

#[test]
fn desktop_notification_lets_the_agent_go_on_with_and_without_a_desktop() {
    check(
        "desktop_notification",
        &["approval_required: May I deploy?", "  …", "awaiting_input: Which branch?", "  …", "the agent goes on"],
    );
}

#[test]
fn git_status_stands_before_the_first_prompt() {
    check(
        "git_status",
        &[
            "the model sees:",
            "System: Git status:",
            "A  README.md",
            "?? notes.txt",
            "User: What did I forget to commit?",
        ],
    );
}

#[test]
fn tool_resolution_weighs_the_answers_and_leaves_out_who_gave_none() {
    check(
        "tool_resolution",
        &[
            "What is 6 * 7?",
            r#"  current-choice says "search" (0.5)"#,
            r#"  calculator says "calculator" (0.9)"#,
            r#"  chosen: "calculator""#,
            "Who was Ada Lovelace?",
            r#"  current-choice says "search" (0.5)"#,
            r#"  chosen: "search""#,
        ],
    );
}

#[test]
fn contribution_channel_skips_a_failing_contributor_and_reports_it() {
    check(
        "contribution_channel",
        &[
            "capabilities:",
            r#"  search: ["web","code"]"#,
            r#"  editor: {"languages":["rust","python"]}"#,
            "  plugin was left out: plugin.json is missing",
            "after search was unloaded:",
            r#"  editor: {"languages":["rust","python"]}"#,
            "  plugin was left out: plugin.json is missing",
        ],
    );
}
