//! `amplifier audit`: what people and programs see of a log.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use amplifier_audit::{FileAnchor, Log, LogOptions, SigningKey, Verifier};
use amplifier_core::{
    ActionKind, Actor, ApprovalDecision, ApprovalDecisionEntry, AuditEntry, AuditRecord, DecisionBasis, DecisionKind,
    EventEntry, EventName, HookReportEntry, IntentEntry, Level, MessageEntry, OutcomeEntry, TOOL_POST, TOOL_PRE, data,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here takes; a test that waits for it has failed.
const LIMIT: Duration = Duration::from_secs(90);

/// A folder for a log, its key, and what else a test needs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    fn options(&self) -> LogOptions {
        // Nothing is signed but at the end, so that the number of records does not depend on how long a test takes.
        Log::at(self.at("audit"), self.at("key")).checkpoint_after(Duration::from_secs(3600))
    }

    fn segment(&self) -> PathBuf {
        self.at("audit").join("seg-000001.jsonl")
    }

    fn public_key(&self) -> String {
        SigningKey::load(&self.at("key")).unwrap().public().to_string()
    }

    /// Runs `amplifier audit COMMAND FOLDER …`.
    fn audit(&self, command: &str, arguments: &[&str]) -> Ran {
        run(&[&["audit", command, &self.text("audit")], arguments].concat())
    }
}

struct Ran {
    code: i32,
    out: String,
    error: String,
}

impl Ran {
    /// What it printed, if all went well.
    fn fine(self) -> String {
        assert_eq!((self.code, self.error.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    fn json(self) -> Value {
        serde_json::from_str(&self.fine()).unwrap()
    }
}

fn amplifier(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Ran {
    finished(&mut amplifier(arguments))
}

fn finished(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), error: text(output.stderr) }
}

fn record(second: u64, session: &str, event: EventName, entry: AuditEntry) -> AuditRecord {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    AuditRecord { at, session: Some(session.to_owned()), turn: 1, event, entry }
}

fn message(second: u64, session: &str, text: &str) -> AuditRecord {
    let entry = AuditEntry::Message(MessageEntry {
        shown: true,
        source: "hook:greeter".to_owned(),
        level: Level::Info,
        text: text.to_owned(),
    });
    record(second, session, TOOL_PRE.name(), entry)
}

fn report(second: u64, session: &str, hook: &str, answer: &str) -> AuditRecord {
    let answer = answer.parse().unwrap();
    let entry = AuditEntry::HookReport(HookReportEntry {
        hook: hook.to_owned(),
        answer,
        took: Duration::from_millis(2),
        reason: (answer == ActionKind::Deny).then(|| "no rm".to_owned()),
        error: None,
        suppressed_output: false,
    });
    record(second, session, TOOL_PRE.name(), entry)
}

fn event(second: u64, session: &str, decision: &str, denied_by: Option<&str>) -> AuditRecord {
    let decision = decision.parse().unwrap();
    let entry = AuditEntry::Event(EventEntry {
        data: data! { "tool_name": "Bash" }.into(),
        decision,
        denied_by: denied_by.map(str::to_owned),
        reason: denied_by.map(|_| "no rm".to_owned()),
    });
    record(second, session, TOOL_PRE.name(), entry)
}

/// Genesis and checkpoint, seven records of two sessions, a seal of the first, and a checkpoint.
fn sample() -> Place {
    let place = Place::new();
    let log = place.options().anchor(FileAnchor::new(place.at("anchored"))).open().unwrap();
    let intent = AuditEntry::Intent(IntentEntry { digest: None, tool_call_id: Some("call-1".to_owned()) });
    let outcome = AuditEntry::Outcome(OutcomeEntry { success: Some(true), tool_call_id: Some("call-1".to_owned()) });
    for record in [
        event(10, "s-1", "continue", None),
        report(11, "s-1", "guard", "continue"),
        record(12, "s-1", TOOL_PRE.name(), intent),
        record(13, "s-1", TOOL_POST.name(), outcome),
        event(14, "s-2", "deny", Some("guard")),
        report(15, "s-2", "guard", "deny"),
        message(16, "s-2", "red \u{1b}[31m, turned \u{202e}, and hidden \u{200b}"),
    ] {
        log.take(&record).unwrap();
    }
    log.seal_blocking("s-1", "complete").unwrap();
    log.close().unwrap();
    place
}

/// The numbers at the beginning of the lines.
fn numbers(rows: &str) -> Vec<u64> {
    rows.lines().map(|row| row.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn records_are_shown_in_columns() {
    let shown = sample().audit("show", &["--from", "2", "--until", "2000-01-01T00:00:00Z"]).fine();
    let expected = "     \
     2  1970-01-01T00:00:10.000000Z  s-1           1  tool:pre           event             continue; {\"tool_name\":\"Bash\"}
     3  1970-01-01T00:00:11.000000Z  s-1           1  tool:pre           hook_report       guard answered continue in 2.0ms
     4  1970-01-01T00:00:12.000000Z  s-1           1  tool:pre           intent            started: call-1
     5  1970-01-01T00:00:13.000000Z  s-1           1  tool:post          outcome           succeeded: call-1
     6  1970-01-01T00:00:14.000000Z  s-2           1  tool:pre           event             denied by guard: no rm; {\"tool_name\":\"Bash\"}
     7  1970-01-01T00:00:15.000000Z  s-2           1  tool:pre           hook_report       guard answered deny in 2.0ms: no rm
     8  1970-01-01T00:00:16.000000Z  s-2           1  tool:pre           message           info from hook:greeter: red ␛[31m, turned \\u{202e}, and hidden \\u{200b}
";
    assert_eq!(shown, expected);
}

#[test]
fn records_are_chosen_by_session_event_kind_hook_time_and_number() {
    let place = sample();
    for (arguments, expected) in [
        (&[][..], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..]),
        (&["--session", "s-2"], &[6, 7, 8]),
        (&["--event", "tool:post"], &[5]),
        (&["--event", "tool:*", "--session", "s-1"], &[2, 3, 4, 5]),
        (&["--event", "session:*"], &[]),
        (&["--kind", "intent"], &[4]),
        (&["--kind", "intent,outcome", "--kind", "seal"], &[4, 5, 9]),
        (&["--hook", "guard"], &[3, 6, 7]),
        (&["--hook", "greeter"], &[8]),
        (&["--since", "1970-01-01T00:00:15Z", "--until", "1970-01-01T01:00:16+01:00"], &[7]),
        (&["--from", "9"], &[9, 10]),
        (&["--last", "2"], &[9, 10]),
        (&["--last", "1", "--session", "s-1"], &[9]),
        // By the end of its id, and the one with the newest record.
        (&["--session", "2"], &[6, 7, 8]),
        (&["--session", "last", "--kind", "seal"], &[9]),
        (&["--last", "0"], &[]),
    ] {
        let found = numbers(&place.audit("show", arguments).fine());
        assert_eq!(found, expected, "{arguments:?}");
    }
}

#[test]
fn a_session_that_is_not_in_the_log_is_an_error() {
    let place = sample();
    for command in ["show", "tail", "export", "stats"] {
        let Ran { code, out, error } = place.audit(command, &["--session", "s-3"]);
        let expected = "amplifier: unknown session `s-3`; see `amplifier sessions list` and `amplifier audit stats`\n";
        assert_eq!((code, out.as_str(), error.as_str()), (1, "", expected), "{command}");
        let ambiguous = place.audit(command, &["--session", "s-"]).error;
        assert!(ambiguous.contains("ambiguous session id `s-`: 2 sessions match: `s-1`, `s-2`; give"), "{ambiguous}");
    }
}

#[test]
fn an_event_pattern_finds_the_records_that_a_hook_with_that_pattern_receives() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    for (second, name) in ["error:tool", "context:pre-compact", "prompt:submit"].into_iter().enumerate() {
        let entry = AuditEntry::Event(EventEntry {
            data: data! {}.into(),
            decision: DecisionKind::Continue,
            denied_by: None,
            reason: None,
        });
        log.take(&record(second as u64, "s-1", name.parse().unwrap(), entry)).unwrap();
    }
    log.close().unwrap();
    for (pattern, expected) in [
        ("tool:*", &[2][..]),
        ("tool:error", &[2]),
        ("error:*", &[2]),
        ("context:pre_*", &[3]),
        ("*:submit", &[4]),
        ("*", &[2, 3, 4]),
    ] {
        assert_eq!(numbers(&place.audit("show", &["--event", pattern]).fine()), expected, "{pattern}");
    }
}

#[test]
fn the_hook_that_denied_a_large_operation_is_found() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    for (second, by) in [(1, "guard"), (2, "other")] {
        let entry = AuditEntry::Event(EventEntry {
            data: data! { "tool_name": "Write", "tool_input": { "content": "x".repeat(100_000) } }.into(),
            decision: DecisionKind::Deny,
            denied_by: Some(by.to_owned()),
            reason: Some("too large".to_owned()),
        });
        log.take(&record(second, "s-1", TOOL_PRE.name(), entry)).unwrap();
    }
    log.close().unwrap();
    for command in ["show", "tail"] {
        assert_eq!(numbers(&place.audit(command, &["--hook", "guard"]).fine()), [2], "{command}");
        assert_eq!(numbers(&place.audit(command, &["--hook", "nobody"]).fine()), [0; 0], "{command}");
    }
    // A body that was erased names nobody, and is no reason to fail.
    fs::remove_dir_all(place.at("audit").join("blobs")).unwrap();
    assert_eq!(numbers(&place.audit("show", &["--hook", "guard"]).fine()), [0; 0]);
}

#[test]
fn wrong_usage_is_told_apart_and_says_what_there_is() {
    let place = sample();
    for (arguments, said) in [
        (&["--kind", "nonsense"][..], "approval_request"),
        (&["--since", "yesterday"], "yesterday"),
        (&["--event", "tool:{"], "tool:{"),
        (&["--event", "tool:{pre,post}"], "the only wildcard of a filter is `*`"),
        (&["--event", "tool:pr?"], "the only wildcard of a filter is `*`"),
    ] {
        let Ran { code, error, .. } = place.audit("show", arguments);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(place.audit("prove", &[]).code, 2);
    assert_eq!(place.audit("prove", &["--record", "1", "--from", "2"]).code, 2);
    assert_eq!(place.audit("verify", &["--key", "abc"]).code, 2);
}

#[test]
fn json_is_what_stands_in_the_log() {
    let place = sample();
    let log = fs::read_to_string(place.segment()).unwrap();
    assert_eq!(place.audit("show", &["--json"]).fine(), log);
    assert_eq!(place.audit("tail", &["--json"]).fine(), log);
    assert_eq!(place.audit("export", &[]).fine(), log);
}

#[test]
fn colours_are_for_terminals_and_a_log_has_none_of_its_own() {
    let place = sample();
    let plain = place.audit("show", &[]).fine();
    assert!(!plain.contains('\u{1b}'));
    let coloured = finished(amplifier(&["audit", "show", &place.text("audit")]).env("CLICOLOR_FORCE", "1")).fine();
    assert!(coloured.contains("\u{1b}[31mdenied by guard"), "{coloured}");
    assert!(coloured.contains("red ␛[31m"), "{coloured}");
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let place = Place::new();
    let commands = [
        &["show"][..],
        &["tail"],
        &["stats"],
        &["export"],
        &["verify"],
        &["prove", "--from", "1"],
        &["prove", "--record", "1"],
        &["rotate-key", "--key-file", "key"],
    ];
    for command in commands {
        let Ran { code, out, error } = place.audit(command[0], &command[1..]);
        assert_eq!((code, out.as_str()), (if command[0] == "verify" { 4 } else { 1 }, ""), "{command:?}");
        assert!(error.contains("no file `seg-….jsonl`"), "{error}");
        assert!(!place.at("audit").exists(), "looking makes nothing");
    }

    let place = sample();
    let whole = fs::read_to_string(place.segment()).unwrap();
    fs::write(place.segment(), whole.replace("call-1", "call-2")).unwrap();
    let Ran { code, out, error } = place.audit("show", &["--from", "2"]);
    assert_eq!((code, numbers(&out)), (1, vec![2, 3]), "what comes before is shown");
    let told = "amplifier: line 5 of `seg-000001.jsonl`; run `amplifier audit verify` for details: the bytes do not have the \
                recorded hash\n";
    assert_eq!(error, told);

    fs::write(place.segment(), format!("{whole}{{")).unwrap();
    let Ran { code, out, error } = place.audit("show", &[]);
    assert_eq!((code, numbers(&out).len()), (1, 11));
    assert!(error.contains("ends with an incomplete record"), "{error}");
}

#[test]
fn verifying_says_what_is_proved_and_what_is_not() {
    let place = sample();
    let said = place.audit("verify", &[]).fine();
    assert!(said.starts_with("sound: 11 records in 1 segment, log "), "{said}");
    for part in [
        "say which key",
        "compare with an anchor",
        "1 session sealed, 1 open",
        "that the last record was not exchanged or removed: no signature covers it yet",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let report = place
        .audit("verify", &["--key", &place.public_key(), "--checkpoints", &place.text("anchored"), "--json"])
        .json();
    assert_eq!((&report["verdict"], &report["trust"]), (&json!("sound"), &json!("key_known")));
    assert_eq!((&report["anchored"], &report["unanchored"]), (&json!(10), &json!(1)));
}

#[test]
fn one_is_not_told_as_many() {
    let place = Place::new();
    let log = place.options().blob_above(600).open().unwrap();
    log.take(&message(1, "s-1", &"x".repeat(600))).unwrap();
    log.seal_blocking("s-1", "complete").unwrap();
    log.rotate_key(SigningKey::generate().unwrap()).unwrap();
    log.close().unwrap();
    let rows = place.audit("show", &[]).fine();
    for part in ["covers 1 record\n", "complete, after 1 record\n", "covers 4 records\n"] {
        assert!(rows.contains(part), "{part}: {rows}");
    }
    let said = place.audit("verify", &[]).fine();
    for part in [
        "1 session sealed, 0 open\n",
        "1 rotation of keys\n",
        "1 large body is as it was written\n",
        "the last record was",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let text = fs::read_to_string(place.segment()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(place.segment(), [&lines[..2], &lines[3..]].concat().concat()).unwrap();
    let said = place.audit("verify", &[]).out;
    assert!(said.contains(": record 2 is missing\n"), "{said}");
    fs::write(place.segment(), lines[0]).unwrap();
    let said = place.audit("verify", &[]).out;
    assert!(said.contains(", but only 1 is there\n"), "{said}");
}

#[test]
fn the_own_log_is_compared_with_the_anchors_of_the_configuration() {
    let place = sample();
    fs::write(place.at("config.toml"), "anchors = [\"anchored\"]\n").unwrap();
    let verify = |arguments: &[&str]| {
        let output = amplifier(&[&["audit", "verify", "--json"], arguments].concat())
            .env("AMPLIFIER_HOME", place.at("."))
            .output()
            .unwrap();
        (output.status.code().unwrap(), serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default())
    };
    let (code, report) = verify(&[]);
    assert_eq!((code, &report["anchored"], &report["unanchored"]), (0, &json!(10), &json!(1)));
    // Another log has nothing to do with them.
    assert_ne!(verify(&[&place.text("audit")]).1["anchored"], json!(10));
    fs::remove_file(place.at("anchored")).unwrap();
    assert_eq!(verify(&[]).0, 4);
    // Nor is one taken for compared that has nothing to compare with.
    fs::write(place.at("anchored"), "").unwrap();
    assert_eq!(verify(&[]).0, 4);
}

#[test]
fn the_own_log_is_compared_with_the_anchors_of_another_configuration() {
    let place = sample();
    fs::write(place.at("other.toml"), "anchors = [\"anchored\"]\n").unwrap();
    let other = place.text("other.toml");
    let verify = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = amplifier(&[&["audit", "verify", "--json"], arguments].concat());
        command.env("AMPLIFIER_HOME", place.at(".")).env_remove("AMPLIFIER_CONFIG").envs(environment.iter().copied());
        finished(&mut command).json()["anchored"].clone()
    };
    assert_eq!(verify(&[], &[]), json!(null));
    assert_eq!(verify(&[], &[("AMPLIFIER_CONFIG", &other)]), json!(10));
    assert_eq!(verify(&["--config", &other], &[]), json!(10));
}

#[test]
fn exit_codes_tell_sound_unsound_and_unreadable_apart() {
    let place = sample();
    let whole = fs::read_to_string(place.segment()).unwrap();
    fs::write(place.segment(), whole.replace("call-1", "call-2")).unwrap();
    let Ran { code, out, .. } = place.audit("verify", &[]);
    assert_eq!(code, 1);
    assert!(
        out.starts_with("UNSOUND") && out.contains("seg-000001.jsonl:5: the bytes do not have the recorded hash"),
        "{out}"
    );

    // Whether or not anyone reads it.
    let mut child = amplifier(&["audit", "verify", &place.text("audit")]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));

    fs::write(place.segment(), format!("{whole}{{")).unwrap();
    let Ran { code, out, .. } = place.audit("verify", &[]);
    assert_eq!(code, 4);
    assert!(out.starts_with("UNREADABLE"), "{out}");

    // A log whose segments are gone is not one that never was.
    fs::remove_file(place.segment()).unwrap();
    let gone = place.audit("verify", &[]);
    let folder = place.text("audit");
    let told =
        format!("amplifier: `{folder}`: the audit log is damaged: all segments are missing, but checkpoints exist; ");
    assert!(gone.code == 4 && gone.error.starts_with(&told), "{}", gone.error);
    fs::remove_dir_all(place.at("audit")).unwrap();
    let none = place.audit("verify", &[]);
    let told = format!("amplifier: `{folder}`: audit log not found: no file `seg-….jsonl`\n");
    assert_eq!((none.code, none.error), (4, told));
}

#[test]
fn whoever_has_seen_enough_may_stop_reading() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    // More than fits into a pipe.
    for number in 0..2000 {
        log.take(&message(number, "s", &"long ".repeat(30))).unwrap();
    }
    log.close().unwrap();
    for command in ["show", "export"] {
        let mut child = amplifier(&["audit", command, &place.text("audit")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains("genesis"), "{first}");
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{command}");
    }
}

#[test]
fn statistics_count_what_there_is() {
    let place = sample();
    let mut numbers = place.audit("stats", &["--json"]).json();
    let size = |name: &str| fs::metadata(place.at("audit").join(name)).unwrap().len();
    assert_eq!(numbers["bytes"], size("seg-000001.jsonl") + size("checkpoints"));
    for varying in ["bytes", "first_time", "last_time"] {
        assert!(!numbers[varying].is_null());
        numbers.as_object_mut().unwrap().remove(varying);
    }
    let expected = json!({
        "records": 11,
        "segments": 1,
        "kinds": {
            "genesis": 1, "checkpoint": 2, "event": 2, "hook_report": 2, "intent": 1, "outcome": 1, "message": 1, "seal": 1,
        },
        "events": { "tool:pre": 6, "tool:post": 1 },
        "sessions": { "s-1": 5, "s-2": 3 },
        "hooks": { "guard": 2 },
        "decisions": { "allow": 1, "deny": 1, "asked": 0, "cancelled": 0 },
        "approvals": { "granted": 0, "refused": 0 },
        "denials": 1,
        "unsealed": ["s-2"],
    });
    assert_eq!(numbers, expected);

    let table = place.audit("stats", &["--session", "s-2"]).fine();
    for line in [
        "records    3 in 1 segment",
        "first      1970-01-01T00:00:14.000000Z",
        "last       1970-01-01T00:00:16.000000Z",
        "decisions  0 allow, 1 deny, 0 asked, 0 cancelled",
        "hook_report                                     1",
    ] {
        assert!(table.lines().any(|found| found == line), "{line}: {table}");
    }
}

#[test]
fn decisions_count_by_what_they_say_wherever_they_are_stored() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    let large = "x".repeat(100_000);
    let event = |name: &str, decision, by: Option<&str>| {
        let data = data! { "tool_name": "Write", "text": large.clone() };
        let denied_by = by.map(str::to_owned);
        (name.to_owned(), AuditEntry::Event(EventEntry { data: data.into(), decision, denied_by, reason: None }))
    };
    let decided = |hook: &str, granted| {
        let (hook, reason) = (hook.to_owned(), large.clone());
        (
            "tool:pre".to_owned(),
            AuditEntry::ApprovalDecision(ApprovalDecisionEntry {
                id: None,
                prompt: None,
                hook,
                decision: ApprovalDecision::new(granted, DecisionBasis::Rule, reason),
            }),
        )
    };
    let entries = [
        event("tool:pre", DecisionKind::Deny, Some("guard")),
        event("prompt:complete", DecisionKind::Deny, Some("guard")),
        event("tool:pre", DecisionKind::AskUser, None),
        decided("guard", true),
        event("tool:pre", DecisionKind::AskUser, None),
        decided("guard", false),
    ];
    for (second, (name, entry)) in entries.into_iter().enumerate() {
        log.take(&record(second as u64, "s-1", name.parse().unwrap(), entry)).unwrap();
    }
    log.close().unwrap();
    let numbers = place.audit("stats", &["--json"]).json();
    assert_eq!(numbers["decisions"], json!({ "allow": 1, "deny": 1, "asked": 2, "cancelled": 0 }));
    assert_eq!(numbers["approvals"], json!({ "granted": 1, "refused": 1 }));
    assert_eq!(numbers["denials"], 2);
}

#[test]
fn a_denial_at_an_event_that_only_observes_is_shown_as_too_late() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    let (data, denied_by) = (data! {}, Some("guard".to_owned()));
    let entry =
        AuditEntry::Event(EventEntry { data: data.into(), decision: DecisionKind::Deny, denied_by, reason: None });
    log.take(&record(1, "s-1", "prompt:complete".parse().unwrap(), entry)).unwrap();
    log.close().unwrap();
    let shown = place.audit("show", &["--kind", "event"]).fine();
    assert!(shown.contains("denied too late by guard"), "{shown}");
    assert_eq!(place.audit("stats", &["--json"]).json()["denials"], 0);
}

#[test]
fn a_record_can_be_proved_to_someone_who_has_only_the_key() {
    let place = sample();
    let proof = place.audit("prove", &["--record", "4"]).fine();
    let (key, other) = (place.public_key(), SigningKey::generate().unwrap().public().to_string());
    let check = |text: &str, keys: &[&str]| {
        fs::write(place.at("proof"), text).unwrap();
        let file = place.text("proof");
        let keys = keys.iter().flat_map(|key| ["--key", key]);
        run(&["audit", "prove", "--check", &file].into_iter().chain(keys).collect::<Vec<_>>())
    };
    let said = check(&proof, &[&key]).fine();
    assert!(said.starts_with("proved: record 4 is in the log "), "{said}");
    check(&proof, &[&other, &key]).fine();
    for (altered, keys, why) in [
        (proof.replace("call-1", "call-2"), &key, "the record was altered"),
        (proof.replacen("\"seq\":4", "\"seq\":3", 1), &key, "the record was altered"),
        (proof.clone(), &other, "the checkpoint is not signed with that key"),
    ] {
        let Ran { code, out, .. } = check(&altered, &[keys]);
        assert_eq!((code, out), (1, format!("NOT PROVED: {why}\n")));
    }
    assert_eq!(check("{}", &[&key]).code, 4);
    assert_eq!(check(&proof, &[]).code, 2, "a proof without a key proves nothing");

    let Ran { code, error, .. } = place.audit("prove", &["--record", "10"]);
    let told = "amplifier: record 10 not found, or not covered by a checkpoint yet\n";
    assert_eq!((code, error.as_str()), (1, told));
}

#[test]
fn a_log_can_be_proved_to_continue_an_earlier_one() {
    let place = sample();
    let log = place.options().open().unwrap();
    log.take(&message(20, "s-3", "later")).unwrap();
    log.close().unwrap();
    let proof = place.audit("prove", &["--from", "10"]).fine();
    let check = |text: &str| {
        fs::write(place.at("proof"), text).unwrap();
        run(&["audit", "prove", "--check", &place.text("proof"), "--key", &place.public_key(), "--json"])
    };
    let Ran { code, out, .. } = check(&proof);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["proved"]), (0, &json!(true)));
    let what = result["what"].as_str().unwrap();
    assert!(what.contains(" with 12 records ") && what.contains(" begins with the 10 records "), "{what}");

    let mut altered: Value = serde_json::from_str(&proof).unwrap();
    altered["path"].as_array_mut().unwrap().pop();
    let Ran { code, out, .. } = check(&altered.to_string());
    let problem = "the later log does not begin with the records of the earlier one";
    assert_eq!(
        (code, serde_json::from_str::<Value>(&out).unwrap()),
        (1, json!({ "proved": false, "problem": problem }))
    );

    let Ran { code, error, .. } = place.audit("prove", &["--from", "9"]);
    let told = "amplifier: no checkpoint covers exactly 9 records; the nearest covers 10\n";
    assert_eq!((code, error.as_str()), (1, told));
}

/// Runs a verifier in Python, and says whether it finds the log sound.
fn python(script: &str, arguments: &[&str]) -> bool {
    let script = format!("{}/../audit/tests/{script}", env!("CARGO_MANIFEST_DIR"));
    Command::new("python3").arg(script).args(arguments).output().unwrap().status.success()
}

#[test]
fn a_new_key_signs_after_a_rotation_and_the_old_one_is_gone() {
    let place = sample();
    let (old, line) = (place.public_key(), fs::read_to_string(place.at("key")).unwrap());
    let running = place.options().open().unwrap();
    let said = place.audit("rotate-key", &["--key-file", &place.text("key")]).fine();
    let new = place.public_key();
    let log = running.status().log;
    let expected = format!(
        "rotated: a new key signs the log {log} from now on; the old key is removed
old public key  {old}
new public key  {new}
verify with the new one: amplifier audit verify --key {new}
"
    );
    assert_eq!(said, expected);
    assert_ne!(old, new);
    let mut names: Vec<_> = fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["anchored", "audit", "key", "key.log"]);
    assert!(!fs::read_to_string(place.at("key")).unwrap().contains(line.trim_end()));

    // Whoever had it open goes on, and so does whoever opens it.
    for (number, log) in [running, place.options().open().unwrap()].into_iter().enumerate() {
        log.take(&message(number as u64, "s-3", "after it")).unwrap();
        log.close().unwrap();
    }
    let folder = place.text("audit");
    let third = place.audit("rotate-key", &["--key-file", &place.text("key"), "--json"]).json();
    assert_eq!(third, json!({ "log": log, "old_public_key": new, "public_key": place.public_key() }));
    for key in [&old, &new, &place.public_key()] {
        let report = place.audit("verify", &["--key", key, "--checkpoints", &place.text("anchored"), "--json"]).json();
        assert_eq!((&report["verdict"], &report["rotations"]), (&json!("sound"), &json!(2)));
        assert!(python("verify.py", &[&folder, &place.text("anchored"), key]));
    }
    assert!(python("chain.py", &[&folder]));
    let keys = place.audit("show", &["--kind", "key_rotation"]).fine();
    assert_eq!(keys.lines().count(), 2);
    assert!(keys.contains(&format!("public key {new}")), "{keys}");
    assert_eq!(place.audit("verify", &["--key", &SigningKey::generate().unwrap().public().to_string()]).code, 1);
}

#[test]
fn the_own_log_has_its_key_rotated_and_that_is_anchored() {
    let place = Place::new();
    let home = |arguments: &[&str]| finished(amplifier(arguments).env("AMPLIFIER_HOME", place.at(".")));
    let log = Log::at(place.at("audit"), place.at("audit.key")).open().unwrap();
    log.take(&message(1, "s", "one")).unwrap();
    log.close().unwrap();
    fs::write(place.at("config.toml"), "anchors = [\"anchored\"]\n").unwrap();
    let key = home(&["audit", "rotate-key", "--json"]).json()["public_key"].clone();
    let report = home(&["audit", "verify", "--key", key.as_str().unwrap(), "--json"]).json();
    assert_eq!((&report["verdict"], &report["unanchored"]), (&json!("sound"), &json!(1)));
}

#[test]
fn a_rotation_says_what_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    let place = sample();
    let file = place.text("key");
    let rotate = || place.audit("rotate-key", &["--key-file", &file]);
    // Without the file, it would be the key of another log.
    assert_eq!(place.audit("rotate-key", &[]).code, 2);
    assert_eq!(run(&["audit", "rotate-key", "--key-file", &file]).code, 2);

    let before = place.public_key();
    let size = || fs::metadata(place.segment()).unwrap().len();
    let unchanged = size();
    fs::set_permissions(place.at("key"), fs::Permissions::from_mode(0o644)).unwrap();
    let Ran { code, out, error } = rotate();
    let told = format!(
        "amplifier: the audit log `{}`: other users can read or write the signing key `{file}` (mode 644); run `chmod 600 {file}`, and then \
         `amplifier audit rotate-key` if others may have read the key\n",
        place.text("audit")
    );
    assert_eq!((code, out.as_str(), error), (1, "", told));
    fs::set_permissions(place.at("key"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!((place.public_key(), size()), (before.clone(), unchanged));

    let away = place.at("away");
    fs::rename(place.at("key"), &away).unwrap();
    let Ran { code, error, .. } = rotate();
    assert_eq!(code, 1);
    assert!(error.contains("signing key `") && !place.at("key").exists(), "{error}");
    fs::rename(&away, place.at("key")).unwrap();

    // It is no less needed for a log that somebody was at.
    let whole = fs::read_to_string(place.segment()).unwrap();
    fs::write(place.segment(), whole.replace("call-1", "call-2")).unwrap();
    let Ran { code, out, error } = rotate();
    assert_eq!(code, 1);
    assert!(out.starts_with("rotated: ") && place.public_key() != before, "{out}");
    assert!(error.starts_with("amplifier: the audit log was tampered with, or its disk is broken: "), "{error}");
}

#[test]
fn records_are_exported_as_csv() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    log.take(&message(1, "=cmd()", "a, \"b\"")).unwrap();
    log.close().unwrap();
    let csv = place.audit("export", &["--format", "csv", "--kind", "message"]).fine();
    let mut lines = csv.split("\r\n");
    assert_eq!(lines.next(), Some("seq,time,writer,session,turn,event,kind,digest,body,h"));
    let line = lines.next().unwrap();
    let body = r#""{""shown"":true,""source"":""hook:greeter"",""level"":""info"",""text"":""a, \""b\""""}""#;
    assert!(line.starts_with("2,1970-01-01T00:00:01.000000Z,"), "{line}");
    assert!(line.contains(&format!(",'=cmd(),1,tool:pre,message,,{body},")), "{line}");
    assert_eq!((lines.next(), lines.next()), (Some(""), None));
}

#[test]
fn a_file_is_replaced_only_by_force_and_only_as_a_whole() {
    let place = sample();
    let whole = fs::read_to_string(place.segment()).unwrap();
    let file = place.text("exported");
    place.audit("export", &["--output", &file]).fine();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);

    let Ran { code, error, .. } = place.audit("export", &["--output", &file, "--kind", "seal"]);
    let told = format!("amplifier: `{file}` already exists; use `--force` to replace it\n");
    assert_eq!((code, error), (1, told));

    fs::write(place.segment(), format!("{whole}{{")).unwrap();
    assert_eq!(place.audit("export", &["--output", &file, "--force", "--kind", "seal"]).code, 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);

    fs::write(place.segment(), &whole).unwrap();
    place.audit("export", &["--output", &file, "--force", "--kind", "seal"]).fine();
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    let left: Vec<_> = fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".tmp")), "{left:?}");
}

/// `amplifier audit tail --follow`, and the lines that it prints.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn of(place: &Place, arguments: &[&str]) -> Self {
        let mut child = amplifier(&[&["audit", "tail", "--follow", &place.text("audit")], arguments].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(LIMIT).unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn the_end_is_shown_from_as_many_segments_as_needed() {
    let place = Place::new();
    let log = place.options().segment_bytes(2000).open().unwrap();
    for number in 0..30 {
        log.take(&message(number, "s", &format!("number {number}"))).unwrap();
        log.flush_blocking(Default::default()).unwrap();
    }
    log.close().unwrap();
    assert!(Verifier::new().folder(place.at("audit")).unwrap().segments > 3);
    let texts = |arguments: &[&str]| {
        let rows = place.audit("tail", &[&["--kind", "message"], arguments].concat()).fine();
        rows.lines().map(|row| row.split_whitespace().last().unwrap().parse().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!(texts(&[]), (10..30).collect::<Vec<_>>());
    assert_eq!(texts(&["--last", "3"]), [27, 28, 29]);
    assert_eq!(texts(&["-n", "100"]), (0..30).collect::<Vec<_>>());
    assert_eq!(texts(&["-n", "0"]), Vec::<u64>::new());
}

#[test]
fn new_records_are_shown_as_they_come_in_new_segments_too_until_ctrl_c() {
    let place = Place::new();
    let log = place.options().segment_bytes(2000).open().unwrap();
    log.take(&message(0, "s", "number 0")).unwrap();
    log.flush_blocking(Default::default()).unwrap();
    let mut follower = Follower::of(&place, &["--kind", "message"]);
    assert!(follower.next().ends_with("number 0"));
    for number in 1..30 {
        log.take(&message(number, "s", &format!("number {number}"))).unwrap();
        log.flush_blocking(Default::default()).unwrap();
    }
    for number in 1..30 {
        let line = follower.next();
        assert!(line.ends_with(&format!("number {number}")), "{line}");
    }
    assert!(place.at("audit").join("seg-000003.jsonl").exists());

    let interrupted = Command::new("kill").args(["-INT", &follower.child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(follower.child.wait().unwrap().code(), Some(0));
    assert!(follower.lines.recv_timeout(LIMIT).is_err(), "nothing comes after that");
}

#[test]
fn what_is_too_large_for_the_log_is_exported_and_what_was_erased_is_said_to_be() {
    let place = Place::new();
    let log = place.options().open().unwrap();
    let question = "x".repeat(20_000);
    let decision = AuditEntry::ApprovalDecision(ApprovalDecisionEntry {
        id: Some(7),
        prompt: None,
        hook: "guard".to_owned(),
        decision: ApprovalDecision {
            by: Some(Actor::new("ann", "console")),
            ..ApprovalDecision::new(true, DecisionBasis::Answer, format!("User allowed: {question}"))
        },
    });
    log.take(&record(1, "s-1", TOOL_PRE.name(), decision)).unwrap();
    log.close().unwrap();
    let export =
        |arguments: &[&str]| place.audit("export", &[&["--kind", "approval_decision"], arguments].concat()).fine();
    let line = export(&[]);
    let exported: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(exported["content"]["by"], json!({ "name": "ann", "via": "console" }));
    // But for that, it is what stands in the log.
    let (as_it_stands, _) = line.split_once(",\"content\":").unwrap();
    assert!(fs::read_to_string(place.segment()).unwrap().contains(&format!("{as_it_stands}}}\n")));
    let csv = export(&["--format", "csv"]);
    assert!(csv.contains(r#"""by"":{""name"":""ann"",""via"":""console""}"#), "{csv}");

    fs::remove_dir_all(place.at("audit/blobs")).unwrap();
    let erased: Value = serde_json::from_str(&export(&[])).unwrap();
    assert_eq!((&erased["content"], &erased["erased"]), (&Value::Null, &json!(true)));
    assert!(export(&["--format", "csv"]).contains(r#""erased"":true}"#));
}
