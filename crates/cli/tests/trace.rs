//! What happened in a session, traced through its audit log.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::common::Place;
use amplifier_audit::Log;
use amplifier_core::{
    Actor, ApprovalDecision, ApprovalDecisionEntry, ApprovalOption, ApprovalRequestEntry, AuditEntry, AuditRecord,
    DecisionBasis, DefaultDecision, EventEntry, EventName, HookReportEntry, IntentEntry, LateAnswerEntry, OutcomeEntry,
    TOOL_POST, TOOL_PRE, data,
};
use serde_json::{Value, json};

const BUNDLE: &str = r#"
hooks:
  - rule: no-destructive-shell
    on: tool:pre
    when: tool_name == "Bash" && shell(tool_input.command).destructive
    deny: "{{ shell(tool_input.command).why }}"
  - rule: reminder
    on: tool:post
    when: tool_name == "Bash"
    inject: "Mind the time."
    message: "A command has run."
"#;

/// A session in which one command was denied, one allowed by a standing answer, and one could not be asked about.
fn session() -> Place {
    let place = Place::with(json!([
        { "text": "I clean up.", "tools": [{ "name": "Bash", "input": { "command": "rm -rf build" } }] },
        { "text": "I look.", "tools": [{ "name": "Bash", "input": { "command": "echo hello" } }] },
        { "text": "I write.", "tools": [{ "name": "Write", "input": { "file_path": "a.txt", "content": "x" } }] },
        { "text": "Done." },
    ]));
    place.rules(json!({ "confirm:Run `echo *`?": "allow" }));
    place.write("bundle.yaml", BUNDLE);
    let ran = place.run(&["Clean up", "--bundle", "../bundle.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "I clean up.\nI look.\nI write.\nDone.\n"), "{}", ran.error);
    place
}

fn trace(place: &Place, arguments: &[&str]) -> String {
    place.amplifier(&[&["hooks", "trace"], arguments].concat()).fine()
}

/// The text without times: what is when differs, and how long it took.
fn timeless(text: &str) -> String {
    let is_duration = |row: &str| match row.chars().skip(48).take(2).collect::<Vec<_>>()[..] {
        [unit, 's'] => unit.is_ascii_digit() || "mµn".contains(unit),
        _ => false,
    };
    let row = |line: &str| match line.strip_prefix("    ") {
        // The column of the times is the third; a hook's row is the only one that has it.
        Some(row) if row.is_char_boundary(41) && is_duration(row) => {
            let rest: String = row.chars().skip(50).collect();
            format!("    {}{rest}", row[..41].trim_end())
        }
        Some(_) => line.to_owned(),
        None => line.get(25..).unwrap_or_default().to_owned(),
    };
    text.lines().map(|line| row(line) + "\n").collect()
}

#[test]
fn what_happened_is_shown_event_by_event() {
    let place = session();
    let shown = trace(&place, &["last", "--event", "tool:*"]);
    let id = shown.lines().next().unwrap().strip_prefix("session ").unwrap();
    assert_eq!(id.len(), 36);
    let expected = format!(
        "\
{}
tool:pre             deny            Bash rm -rf build
    no-destructive-shell     deny  deletes recursively (`rm -rf build`)
    denied by no-destructive-shell: deletes recursively (`rm -rf build`)
tool:pre             ask: allowed    Bash echo hello
    no-destructive-shell     continue
    confirm                  ask_user
    confirm wants to ask: Run `echo hello`?
      allowed by the approval rule `confirm:Run `echo *`?`
tool:post            inject_context  Bash echo hello
    reminder                 inject_context
    reminder added context (14 bytes, 3 tokens, injected): Mind the time.
    hook:reminder sent a message (info): A command has run.
    succeeded
tool:pre             ask: denied     Write a.txt
    no-destructive-shell     continue
    confirm                  ask_user
    confirm asks: Write to `a.txt`?
      denied because no approver is available
",
        id.get(17..).unwrap()
    );
    assert_eq!(timeless(&shown), expected);
    let denied = trace(&place, &[&id[..30], "--denied"]);
    assert_eq!(denied.lines().filter(|line| line.contains("  tool:pre  ")).count(), 2, "{denied}");
    assert!(!denied.contains("echo hello"), "{denied}");
    let told = trace(&place, &[id, "--hook", "reminder"]);
    assert_eq!(told.lines().filter(|line| !line.starts_with(' ')).count(), 2, "{told}");
    assert!(
        trace(&place, &["last"]).lines().last().unwrap().ends_with("session              seal            complete")
    );
}

#[test]
fn one_event_is_one_line_of_json() {
    let place = session();
    let lines = trace(&place, &["last", "--json", "--event", "tool:pre", "--hook", "confirm"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let mut first = lines[0].clone();
    for pointer in [
        "/time",
        "/session",
        "/run",
        "/approvals/0/decided_at",
        "/data/session_id",
        "/data/timestamp",
        "/intent/digest",
    ] {
        *first.pointer_mut(pointer).unwrap() = "…".into();
    }
    for pointer in ["/hooks/0/duration_ns", "/hooks/1/duration_ns", "/approvals/0/decided_seq", "/seq", "/intent/seq"] {
        *first.pointer_mut(pointer).unwrap() = 0.into();
    }
    let report = |hook: &str, answer: &str| json!({ "hook": hook, "answer": answer, "duration_ns": 0, "suppressed_output": false });
    let expected = json!({
        "seq": 0, "time": "…", "session": "…", "run": "…", "turn": 1, "event": "tool:pre", "data_status": "whole",
        "data": {
            "session_id": "…", "timestamp": "…", "tool_name": "Bash", "tool_input": { "command": "echo hello" },
            "tool_call_id": "call-2",
        },
        "decision": "ask_user",
        "hooks": [report("no-destructive-shell", "continue"), report("confirm", "ask_user")],
        "approvals": [{
            "hook": "confirm", "prompt": "Run `echo hello`?", "options": [],
            "decision": {
                "granted": true, "basis": "rule", "reason": "Allowed by rule: Run `echo hello`?", "rule": "confirm:Run `echo *`?",
            },
            "decided_at": "…", "decided_seq": 0,
        }],
        "injections": [], "messages": [], "outputs": [],
        "intent": { "seq": 0, "digest": "…", "tool_call_id": "call-2", "unresolved": false },
        "failures": [], "unreadable": 0,
    });
    assert_eq!(first, expected);
}

#[test]
fn sessions_are_found_that_only_the_log_knows_and_others_are_not() {
    let place = session();
    let whole = trace(&place, &["last"]);
    fs::remove_dir_all(place.at("home/sessions")).unwrap();
    assert_eq!(trace(&place, &["last"]), whole);
    assert_eq!(trace(&place, &["last", "--log", "../home/audit"]), whole);
    let unknown = "unknown session `nobody`; see `amplifier sessions list` and `amplifier audit stats`";
    place.amplifier(&["hooks", "trace", "nobody"]).check_failed(&format!("amplifier: {unknown}"));
    assert_eq!(place.run(&["Again", "--bundle", "../bundle.yaml"]).code, 3);
    let ambiguous = place.amplifier(&["hooks", "trace", "0"]).error;
    assert!(ambiguous.starts_with("amplifier: ambiguous session id `0`: 2 sessions match: `0"), "{ambiguous}");
    // The other way round: stored, and not in the log.
    fs::rename(place.at("home/audit"), place.at("home/moved")).unwrap();
    let none = place.amplifier(&["hooks", "trace", "last"]);
    assert!(none.error.contains("no audit log in"), "{none:?}");
}

fn record(second: u64, event: EventName, entry: AuditEntry) -> AuditRecord {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    AuditRecord { at, session: Some("s-1".to_owned()), turn: 1, event, entry }
}

fn call(second: u64, id: &str, command: &str, decision: &str) -> AuditRecord {
    let decision = decision.parse().unwrap();
    let data = data! { "tool_name": "Bash", "tool_input": { "command": command }, "tool_call_id": id };
    record(
        second,
        TOOL_PRE.name(),
        AuditEntry::Event(EventEntry { data: data.into(), decision, denied_by: None, reason: None }),
    )
}

fn report(second: u64, hook: &str, answer: &str) -> AuditRecord {
    let answer = answer.parse().unwrap();
    let (took, reason, error) = (Duration::from_millis(2), None, None);
    let hook = hook.to_owned();
    record(
        second,
        TOOL_PRE.name(),
        AuditEntry::HookReport(HookReportEntry { hook, answer, took, reason, error, suppressed_output: false }),
    )
}

fn intent(second: u64, id: &str) -> AuditRecord {
    record(second, TOOL_PRE.name(), AuditEntry::Intent(IntentEntry { digest: None, tool_call_id: Some(id.to_owned()) }))
}

#[test]
fn calls_side_by_side_late_answers_and_doubts_are_told_apart() {
    let place = Place::with(json!([]));
    let log = Log::at(place.at("home/audit"), place.at("home/audit.key")).open().unwrap();
    let digest = data! { "a": 1 }.digest().unwrap();
    let request = AuditEntry::ApprovalRequest(ApprovalRequestEntry {
        id: 7,
        hook: "guard".to_owned(),
        prompt: "Sure\u{202e}?".to_owned(),
        options: vec![ApprovalOption::from("Allow once")],
        timeout: Duration::from_secs(60),
        default: DefaultDecision::Deny,
        digest,
        changed_after_asking: false,
        compared_with: None,
    });
    let decision = AuditEntry::ApprovalDecision(ApprovalDecisionEntry {
        id: Some(7),
        prompt: None,
        hook: "guard".to_owned(),
        decision: ApprovalDecision::new(
            false,
            DecisionBasis::Timeout,
            "Approval timed out, denied by default: Sure\u{202e}?",
        ),
    });
    let late = AuditEntry::LateAnswer(LateAnswerEntry {
        id: 7,
        hook: "guard".to_owned(),
        answer: "Allow once".to_owned(),
        by: None,
    });
    let later = AuditEntry::LateAnswer(LateAnswerEntry {
        id: 7,
        hook: "guard".to_owned(),
        answer: "Deny".to_owned(),
        by: Some(Actor::new("ann", "console")),
    });
    let outcome = AuditEntry::Outcome(OutcomeEntry { success: Some(true), tool_call_id: Some("b".to_owned()) });
    for record in [
        call(10, "a", "first \u{1b}[31m", "ask_user"),
        report(10, "guard", "ask_user"),
        record(11, TOOL_PRE.name(), request),
        call(12, "b", "second", "continue"),
        report(12, "guard", "continue"),
        call(13, "c", "third", "continue"),
        intent(14, "b"),
        intent(14, "c"),
        record(15, TOOL_POST.name(), outcome),
        record(71, TOOL_PRE.name(), decision),
        record(80, TOOL_PRE.name(), late),
        record(81, TOOL_PRE.name(), later),
    ] {
        log.take(&record).unwrap();
    }
    log.close().unwrap();
    let expected = "\
session s-1
1970-01-01 00:00:15.000  tool:post            outcome         {\"success\":true,\"tool_call_id\":\"b\"}
1970-01-01 00:00:10.000  tool:pre             ask: denied     Bash first ␛[31m
    guard                    ask_user            2.0ms
    guard asks: Sure\\u{202e}?
      denied because no answer came in time, after 60.0s; late answer `Allow once`; late answer `Deny` of ann by console
1970-01-01 00:00:12.000  tool:pre             continue        Bash second
    guard                    continue            2.0ms
1970-01-01 00:00:13.000  tool:pre             continue        Bash third
    UNRESOLVED: may have run; no result is recorded
";
    assert_eq!(trace(&place, &["s-"]), expected);
    let coloured = place.command(&["hooks", "trace", "s-1", "--denied"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    let coloured = String::from_utf8(coloured.stdout).unwrap();
    assert!(coloured.contains("\u{1b}[31mask: denied\u{1b}[0m"), "{coloured}");
    assert!(!coloured.contains("third") && coloured.contains("first ␛[31m"), "{coloured}");
}
