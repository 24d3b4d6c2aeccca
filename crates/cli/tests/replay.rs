//! Recorded sessions, judged again by other bundles.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::common::{Place, Ran};
use amplifier_audit::Log;
use amplifier_core::{ActionKind, AuditEntry, AuditRecord, EventEntry, HookReportEntry, TOOL_PRE, data};
use serde_json::{Value, json};

const BUNDLE: &str = r#"
hooks:
  - rule: no-destructive-shell
    on: tool:pre
    when: tool_name == "Bash" && shell(tool_input.command).destructive
    deny: "{{ shell(tool_input.command).why }}"
  - rule: polite
    on: tool:pre
    when: tool_name == "Write" && tool_input.content == "rude"
    modify: { set: { /tool_input/content: polite } }
"#;

/// A session in which one command was denied, one allowed, and a file was written with another content.
fn session(bundle: &str) -> Place {
    let place = Place::with(json!([
        { "text": "One.", "tools": [{ "name": "Bash", "input": { "command": "rm -rf build" } }] },
        { "text": "Two.", "tools": [{ "name": "Bash", "input": { "command": "echo hello" } }] },
        { "text": "Three.", "tools": [{ "name": "Write", "input": { "file_path": "a.txt", "content": "rude" } }] },
        { "text": "Done." },
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    place.write("recorded.yaml", bundle);
    let ran = place.run(&["Do it", "--allow-denials", "--bundle", "../recorded.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "One.\nTwo.\nThree.\nDone.\n"), "{}", ran.error);
    place
}

fn replay(place: &Place, candidate: &str, arguments: &[&str]) -> Ran {
    place.write("candidate.yaml", candidate);
    place.amplifier(&[&["hooks", "replay", "--bundle", "../candidate.yaml"], arguments].concat())
}

/// What would change, without when and where.
fn changes(ran: &Ran) -> Vec<String> {
    let place = |line: &str| line.splitn(3, "  ").nth(2).unwrap().to_owned();
    let listed = ran.out.split("\n\n").next().unwrap().lines();
    listed.map(|line| if line.starts_with(' ') { line.to_owned() } else { place(line) }).collect()
}

fn summary(ran: &Ran) -> String {
    let at = ran.out.rfind(" events, ").unwrap();
    ran.out[ran.out[..at].rfind('\n').map_or(0, |line| line + 1)..].to_owned()
}

#[test]
fn the_same_policy_changes_nothing() {
    let place = session(BUNDLE);
    let ran = replay(&place, BUNDLE, &["--event", "tool:*"]);
    let expected = "5 events, 0 decisions would change\n";
    assert_eq!(ran, Ran { code: 0, out: expected.to_owned(), error: String::new() });
}

#[test]
fn whatever_would_be_decided_otherwise_is_listed_with_what_people_said_then() {
    let place = session(BUNDLE);
    let candidate = r#"
hooks:
  - rule: no-echo
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.startsWith("echo")
    deny: "nothing is said here"
  - rule: mind-writes
    on: tool:pre
    when: tool_name == "Write"
    ask: "Write {{ tool_input.file_path }}?"
  - rule: no-answers
    on: prompt:submit
    modify: { set: { /prompt: Do nothing } }
"#;
    let ran = replay(&place, candidate, &[]);
    let expected = [
        "prompt:submit  Do it",
        "    continue → modify by no-answers",
        "    /prompt becomes \"Do nothing\"",
        "tool:pre  Bash rm -rf build",
        "    deny by no-destructive-shell → ask_user by confirm",
        "    Run `rm -rf build`?",
        "tool:pre  Bash echo hello",
        "    ask_user by confirm → deny by no-echo",
        "    nothing is said here",
        "    at the time: allowed (rule)",
        "tool:pre  Write a.txt",
        "    ask_user by confirm → ask_user by mind-writes",
        "    Write a.txt?",
        "    at the time: allowed (rule)",
    ];
    assert_eq!((ran.code, changes(&ran), ran.error.as_str()), (1, expected.map(str::to_owned).to_vec(), ""));
    let expected = "\
26 events, 4 decisions would change
  ask_user → ask_user                     1
  ask_user → deny                         1
  continue → modify                       1
  deny → ask_user                         1
";
    assert_eq!(summary(&ran), expected);
    let few = replay(&place, candidate, &["--limit", "1", "--event", "tool:*"]);
    assert_eq!((few.code, changes(&few).len()), (1, 3));
    assert!(few.out.contains("\n\nOnly the first 1 are listed.\n5 events, 3 decisions would"), "{}", few.out);
}

/// A session asks once: `confirm` is a fallback for rules that ask.
#[test]
fn a_rule_that_asked_alone_asks_alone_in_a_replay_whatever_the_answer_was() {
    let asking = "hooks: [{ rule: mind-echo, on: tool:pre, when: tool_name == 'Bash', ask: 'Echo?' }]";
    for (rules, code, answer) in
        [(json!({}), 3, "denied (no_system)"), (json!({ "mind-echo:*": "allow" }), 0, "allowed (rule)")]
    {
        let place = Place::with(json!([
            { "text": "One.", "tools": [{ "name": "Bash", "input": { "command": "echo hello" } }] },
            { "text": "Done." },
        ]));
        place.rules(rules);
        place.write("recorded.yaml", asking);
        assert_eq!(place.run(&["Do it", "--bundle", "../recorded.yaml"]).code, code);
        let ran = replay(&place, asking, &["--event", "tool:pre"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "1 event, 0 decisions would change\n"), "{}", ran.error);
        let ran = replay(&place, "hooks: []", &["--event", "tool:pre"]);
        let expected = [
            "tool:pre  Bash echo hello",
            "    ask_user by mind-echo → ask_user by confirm",
            "    Run `echo hello`?",
            &format!("    at the time: {answer}"),
        ];
        assert_eq!((ran.code, changes(&ran)), (1, expected.map(str::to_owned).to_vec()), "{}", ran.error);
    }
}

#[test]
fn confirm_is_that_of_the_bundle_the_configuration_or_the_flag() {
    let place = Place::with(json!([
        { "text": "One.", "tools": [{ "name": "Bash", "input": { "command": "touch a" } }] },
        { "text": "Done." },
    ]));
    assert_eq!(place.run(&["Do it", "--confirm", "off"]).code, 0);
    let none = "hooks: []";
    let asked = replay(&place, none, &["--event", "tool:pre"]);
    assert!(asked.code == 1 && asked.out.contains("continue → ask_user by confirm"), "{}", asked.out);
    let is_same = |ran: Ran| assert!(ran.code == 0 && ran.out.contains(", 0 decisions would change"), "{}", ran.out);
    let off = replay(&place, none, &["--event", "tool:pre", "--confirm", "off"]);
    is_same(off);
    let bundle = replay(&place, "session: { confirm: off }\nhooks: []", &["--event", "tool:pre"]);
    is_same(bundle);
    place.write("home/config.toml", "confirm = \"off\"\n");
    let configured = replay(&place, none, &["--event", "tool:pre"]);
    is_same(configured);
}

#[test]
fn a_marker_of_the_log_is_not_judged_as_one_of_the_agent() {
    let content = format!("key: {}{}", concat!("gh", "p_"), "a1B2".repeat(9));
    let place = Place::with(json!([
        { "text": "One.", "tools": [{ "name": "Write", "input": { "file_path": "a.txt", "content": content } }] },
        { "text": "Done." },
    ]));
    assert_eq!(place.run(&["Do it", "--confirm", "off"]).code, 0);
    let candidate = "hooks: [{ module: hooks-redaction }]";
    let ran = replay(&place, candidate, &["--event", "tool:pre", "--confirm", "off"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains("not compared: 1, because the log has a marker in place of a secret"), "{}", ran.out);
}

#[test]
fn json_has_all_of_it() {
    let place = session(BUNDLE);
    let candidate = "hooks: [{ rule: no-echo, on: tool:pre, when: tool_name == 'Bash' && tool_input.command.startsWith('echo'), deny: no }]";
    let ran = replay(&place, candidate, &["--json", "--event", "tool:pre"]);
    let mut lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines[..2] {
        for field in ["seq", "time", "session"] {
            line[field] = "…".into();
        }
    }
    for field in ["decided_at", "decided_seq"] {
        lines[1]["approvals"][0][field] = "…".into();
    }
    let expected = [
        json!({
            "kind": "change", "seq": "…", "time": "…", "session": "…", "event": "tool:pre", "subject": "Bash rm -rf build",
            "was": {
                "decision": "deny", "decided_by": ["no-destructive-shell"], "reason": "deletes recursively (`rm -rf build`)", "fields": {},
            },
            "would_be": { "decision": "ask_user", "decided_by": ["confirm"], "reason": "Run `rm -rf build`?", "fields": {} },
            "approvals": [], "redacted": false,
        }),
        json!({
            "kind": "change", "seq": "…", "time": "…", "session": "…", "event": "tool:pre", "subject": "Bash echo hello",
            "was": { "decision": "ask_user", "decided_by": ["confirm"], "reason": "Run `echo hello`?", "fields": {} },
            "would_be": { "decision": "deny", "decided_by": ["no-echo"], "reason": "no", "fields": {} },
            "approvals": [{
                "hook": "confirm", "prompt": "Run `echo hello`?", "options": [],
                "decision": {
                    "granted": true, "basis": "rule", "reason": "Allowed by rule: Run `echo hello`?", "rule": "confirm:*",
                },
                "decided_at": "…", "decided_seq": "…",
            }],
            "redacted": false,
        }),
        json!({
            "kind": "summary", "events": 3, "changed": 2, "changes": { "ask_user -> deny": 1, "deny -> ask_user": 1 },
            "uncompared": {}, "redacted": 0, "skipped_hooks": [], "verified": true,
        }),
    ];
    assert_eq!((ran.code, lines.as_slice()), (1, &expected[..]));
}

#[test]
fn two_bundles_are_compared_on_the_same_events_with_what_they_change() {
    let place = session("");
    let set = |content: &str| BUNDLE.replace("content: polite", &format!("content: {content}"));
    place.write("other.yaml", &set("kind"));
    let ran = replay(&place, &set("friendly"), &["--against", "../other.yaml"]);
    let expected = [
        "tool:pre  Write a.txt",
        "    ask_user by confirm → ask_user by confirm",
        "    Write to `a.txt`?",
        "    /tool_input/content becomes \"friendly\"",
        "    at the time: allowed (rule)",
    ];
    assert_eq!((ran.code, changes(&ran)), (1, expected.map(str::to_owned).to_vec()), "{}", ran.error);
    assert_eq!(replay(&place, &set("kind"), &["--against", "../other.yaml"]).code, 0);
}

#[test]
fn programs_do_not_run_unless_they_are_told_to_and_are_named() {
    let program = "hooks: [{ command: 'touch ran; echo no >&2; exit 2', name: checker, on: tool:pre }]";
    let place = Place::with(json!([
        { "text": "One.", "tools": [{ "name": "Bash", "input": { "command": "echo hello" } }] },
        { "text": "Done." },
    ]));
    place.write("recorded.yaml", program);
    assert_eq!(place.run(&["Do it", "--bundle", "../recorded.yaml"]).code, 3);
    fs::remove_file(place.at("workspace/ran")).unwrap();
    let ran = replay(&place, program, &["--event", "tool:pre"]);
    let expected = "\
1 event, 0 decisions would change
not compared: 1, because the deciding hook is not run here
not run: checker (command); use `--run-programs` to run them
";
    assert_eq!((ran.code, ran.out.as_str(), place.at("workspace/ran").exists()), (0, expected, false), "{}", ran.error);
    let ran = replay(&place, program, &["--event", "tool:pre", "--run-programs"]);
    let expected = "1 event, 0 decisions would change\n";
    assert_eq!((ran.code, ran.out.as_str(), place.at("workspace/ran").exists()), (0, expected, true), "{}", ran.error);
}

fn segment(place: &Place) -> PathBuf {
    place.at("home/audit/seg-000001.jsonl")
}

#[test]
fn nothing_follows_from_a_log_that_someone_was_at() {
    let place = session(BUNDLE);
    let text = fs::read_to_string(segment(&place)).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("\"kind\":\"hook_report\"")).collect();
    fs::write(segment(&place), without.join("\n") + "\n").unwrap();
    let ran = replay(&place, BUNDLE, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (4, ""));
    assert!(ran.error.contains("/home/audit` was changed: "), "{}", ran.error);
    let ran = replay(&place, "hooks: []", &["--no-verify", "--event", "prompt:*"]);
    let expected = "2 events, 0 decisions would change\nnot verified: the integrity of the log\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, expected), "{}", ran.error);
    fs::write(segment(&place), text.replace("rm -rf build", "rm -rf bUild")).unwrap();
    let ran = replay(&place, BUNDLE, &["--no-verify"]);
    assert_eq!((ran.code, ran.error.contains("the bytes do not have the recorded hash")), (4, true), "{}", ran.error);
}

#[test]
fn data_that_is_not_whole_is_counted_and_data_in_blobs_is_read() {
    let large = "x".repeat(20_000);
    let place = Place::with(json!([
        { "text": "One.", "tools": [{ "name": "Bash", "input": { "command": "login --password=hunter2hunter2" } }] },
        { "text": "Two.", "tools": [{ "name": "Write", "input": { "file_path": "a.txt", "content": large } }] },
        { "text": "Done." },
    ]));
    assert_eq!(place.run(&["Do it"]).code, 3);
    let candidate = r#"
hooks:
  - { rule: no-login, on: tool:pre, when: tool_name == "Bash" && tool_input.command.startsWith("login"), deny: "no login" }
  - { rule: no-bulk, on: tool:pre, when: tool_name == "Write" && size(tool_input.content) > 10000, deny: "too much" }
"#;
    let ran = replay(&place, candidate, &["--event", "tool:pre"]);
    let refused = "    at the time: denied (no_system)";
    let login: Vec<String> = [
        "    ask_user by confirm → deny by no-login",
        "    no login",
        refused,
        "    its data is redacted: a rule may have seen other values",
    ]
    .map(str::to_owned)
    .to_vec();
    let listed = changes(&ran);
    assert!(listed[0].starts_with("tool:pre  Bash login --password=[redacted kind=password"), "{listed:?}");
    assert_eq!(listed[1..5], login, "{listed:?}");
    let bulk = ["tool:pre  Write a.txt", "    ask_user by confirm → deny by no-bulk", "    too much", refused];
    assert_eq!((ran.code, &listed[5..]), (1, &bulk.map(str::to_owned)[..]));
    fs::remove_dir_all(place.at("home/audit/blobs")).unwrap();
    let ran = replay(&place, candidate, &["--event", "tool:pre"]);
    let expected = "\
2 events, 1 decision would change
  ask_user → deny                         1
not compared: 1, because the data was erased
redacted: 1 event; a rule may have seen other values there
";
    assert_eq!((ran.code, summary(&ran).as_str()), (1, expected), "{}", ran.error);
}

fn call(second: u64, session: &str, command: &str, decision: &str) -> AuditRecord {
    let decision = decision.parse().unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    let data = data! { "tool_name": "Read", "tool_input": { "file_path": command } };
    let entry = AuditEntry::Event(EventEntry { data: data.into(), decision, denied_by: None, reason: None });
    AuditRecord { at, session: Some(session.to_owned()), turn: 1, event: TOOL_PRE.name(), entry }
}

/// A log with these records.
fn log(records: &[AuditRecord]) -> Place {
    let place = Place::with(json!([]));
    let log = Log::at(place.at("home/audit"), place.at("home/audit.key")).open().unwrap();
    records.iter().for_each(|record| _ = log.take(record).unwrap());
    log.close().unwrap();
    place
}

#[test]
fn rules_see_the_time_of_the_record() {
    let hour = 3600;
    let place = log(&[call(3 * hour, "s-1", "night", "continue"), call(15 * hour, "s-2", "day", "continue")]);
    let candidate = "hooks: [{ rule: sleep, on: tool:pre, when: hour() < 6, deny: 'it is {{ hour() }} o''clock' }]";
    place.write("candidate.yaml", candidate);
    for (arguments, expected) in [
        (&[][..], &["tool:pre  Read night", "    continue → deny by sleep", "    it is 3 o'clock"][..]),
        (
            &["--session", "s-1", "../home/audit/seg-000001.jsonl"],
            &["tool:pre  Read night", "    continue → deny by sleep", "    it is 3 o'clock"],
        ),
        (&["--session", "s-2"], &["1 event, 0 decisions would change"]),
        (&["--since", "1970-01-01T10:00:00Z"], &["1 event, 0 decisions would change"]),
        (&["--since", "1970-01-02"], &["0 events, 0 decisions would change"]),
        (&["--since", "7d"], &["0 events, 0 decisions would change"]),
    ] {
        let command = [&["hooks", "replay", "--bundle", "../candidate.yaml"], arguments].concat();
        let output = place.command(&command).env("TZ", "UTC").output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().unwrap();
        let ran = Ran { code, out, error: String::from_utf8(output.stderr).unwrap() };
        assert_eq!((ran.code, ran.error.as_str()), (i32::from(expected.len() > 1), ""), "{arguments:?}");
        let listed = if code == 1 { changes(&ran) } else { ran.out.lines().map(str::to_owned).collect() };
        assert_eq!(listed, expected, "{arguments:?}");
    }
}

#[test]
fn what_was_changed_or_given_up_before_it_was_recorded_is_not_compared() {
    let report = AuditEntry::HookReport(HookReportEntry {
        hook: "tidy".to_owned(),
        answer: ActionKind::Modify,
        took: Duration::ZERO,
        reason: None,
        error: None,
        suppressed_output: false,
    });
    let place = log(&[
        call(1, "s-1", "given up", "cancelled"),
        call(2, "s-1", "changed", "modify"),
        AuditRecord { entry: report, ..call(2, "s-1", "", "modify") },
        call(3, "s-1", "denied", "continue"),
    ]);
    let candidate = "hooks: [{ rule: no, on: tool:pre, when: tool_input.file_path == 'denied', deny: no }]";
    let ran = replay(&place, candidate, &[]);
    let expected = "\
3 events, 1 decision would change
  continue → deny                         1
not compared: 1, because the operation was cancelled before a decision
not compared: 1, because hooks had changed the data before it was recorded
";
    assert_eq!((ran.code, summary(&ran).as_str()), (1, expected));
}

#[test]
fn an_empty_log_changes_nothing_and_what_cannot_be_done_is_told_apart() {
    let place = log(&[]);
    let empty = replay(&place, BUNDLE, &[]);
    let expected = "0 events, 0 decisions would change\n";
    assert_eq!((empty.code, empty.out.as_str(), empty.error.as_str()), (0, expected, ""));
    for (arguments, code, said) in [
        (&["--session", "nobody"][..], 4, "unknown session `nobody`"),
        (&["../nowhere"], 4, "no audit log in `../nowhere`"),
        (&["../candidate.yaml"], 4, "`../candidate.yaml` is not a log segment"),
        (&["--against", "../nowhere.yaml"], 4, "../nowhere.yaml"),
        (&["--since", "yesterday"], 2, "yesterday"),
        (&["--event", "tool:{"], 2, "tool:{"),
    ] {
        let ran = replay(&place, BUNDLE, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{}", ran.error);
        assert!(ran.error.contains(said), "{}", ran.error);
    }
    let mistake = replay(&place, &BUNDLE.replace("when:", "wen:"), &[]);
    assert_eq!(mistake.code, 4);
    assert!(mistake.error.contains("unknown key `wen`; did you mean `when`?"), "{}", mistake.error);
    assert_eq!(place.amplifier(&["hooks", "replay"]).code, 2);
}

#[test]
fn what_came_before_in_the_session_counts_also_where_it_is_not_compared() {
    let place = session(BUNDLE);
    let candidate = r#"
hooks:
  - rule: one-command
    on: tool:pre
    when: tool_name == "Bash" && session_count("tool:pre", "Bash") > 1 && turn() == 1
    deny: "one command is enough"
  - rule: after-the-first
    on: tool:post
    when: session_count("tool:pre") > 2
    deny: "no more"
"#;
    let expected = ["tool:pre  Bash echo hello", "    ask_user by confirm → deny by one-command"];
    for arguments in [&["--event", "tool:pre"][..], &["--event", "tool:p*"]] {
        let ran = replay(&place, candidate, arguments);
        let changed = changes(&ran);
        let at = changed.iter().position(|line| line == expected[0]).unwrap();
        assert_eq!(changed[at + 1], expected[1]);
        assert_eq!(changed.iter().filter(|line| line.contains("one-command")).count(), 1, "{changed:?}");
    }
    // The events that were counted are not compared: the third call alone is told about.
    let ran = replay(&place, candidate, &["--event", "tool:post"]);
    let changed = changes(&ran);
    assert_eq!(changed.iter().filter(|line| line.contains("after-the-first")).count(), 1, "{changed:?}");
    assert!(changed.iter().all(|line| !line.starts_with("tool:pre")), "{changed:?}");
}

#[test]
fn what_goes_wrong_is_said_as_everywhere_else() {
    let place = Place::with(json!([]));
    let ran = replay(&place, BUNDLE, &["nowhere"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, ""));
    assert!(ran.error.starts_with("amplifier: "), "{}", ran.error);
}

#[test]
fn requests_to_the_model_are_judged_and_shown_as_a_whole_although_they_are_kept_as_what_they_add() {
    let read =
        |n: u32| json!({ "text": format!("Look {n}."), "tools": [{ "name": "Glob", "input": { "pattern": "*" } }] });
    let mut answers: Vec<Value> = (1..=6).map(read).collect();
    answers.push(json!({ "text": "Done." }));
    let place = Place::with(json!(answers));
    let long = r#"
hooks:
  - rule: no-long-conversations
    on: provider:request
    when: messages.size() >= 9 && messages.exists(m, m.content.startsWith("The needle"))
    deny: it is long enough
"#;
    place.write("recorded.yaml", long);
    let prompt = format!("The needle is in here. {}", "Be careful. ".repeat(100));
    let ran = place.run(&[&prompt, "--bundle", "../recorded.yaml"]);
    assert!(ran.error.contains("it is long enough"), "{}", ran.error);
    let log = place.read("home/audit/seg-000001.jsonl");
    let requests = log.lines().filter(|line| line.contains(r#""event":"provider:request","kind":"event""#));
    let requests: Vec<&str> = requests.collect();
    assert!(requests.len() >= 4, "{}", requests.len());
    assert_eq!(requests.iter().filter(|line| line.contains("The needle")).count(), 1, "{requests:#?}");
    // The same rule decides the same, and a rule about the first message finds it in all of them.
    let same = replay(&place, long, &["--event", "provider:request"]);
    let expected = format!("{} events, 0 decisions would change\n", requests.len());
    assert_eq!((same.code, same.out, same.error.as_str()), (0, expected, ""));
    let all = "hooks: [{ rule: none, on: provider:request, when: 'messages[0].content.contains(\"needle\") || messages[1].content.contains(\"needle\")', deny: no }]";
    let all = replay(&place, all, &["--event", "provider:request"]);
    let expected = format!("{0} events, {0} decisions would change\n", requests.len());
    assert!(all.out.contains(&expected), "{}", all.out);
    // Whoever reads the log sees whole requests.
    for command in [&["audit", "export"][..], &["audit", "show", "--json"], &["audit", "tail", "--json", "-n", "1000"]]
    {
        let filter = ["--event", "provider:request", "--kind", "event"];
        let shown = place.amplifier(&[command, &filter[..]].concat()).fine();
        let shown: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(shown.len(), requests.len(), "{command:?}");
        let mut sizes = Vec::new();
        for record in &shown {
            let body = record.get("content").unwrap_or(&record["body"]);
            assert!(body["data"]["messages"].to_string().contains("The needle"), "{command:?}: {record}");
            sizes.push(body["data"]["messages"].as_array().unwrap().len());
        }
        assert!(sizes.is_sorted() && sizes[0] + 2 < *sizes.last().unwrap(), "{command:?}: {sizes:?}");
    }
    let rows = place.amplifier(&["audit", "show", "--event", "provider:request", "--kind", "event", "--last", "1"]);
    assert!(rows.fine().contains("no-long-conversations"));
    place.check_sealed(1);
}
