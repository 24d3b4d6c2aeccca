//! The exact output for each client, event and kind of answer.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use amplifier_guard::{Change, ClientEvent, EventKind, GuardAnswer, HookOutput, Reply, answer};
use serde_json::{Value, json};

use crate::samples;

fn answers(event: &ClientEvent) -> Vec<(&'static str, GuardAnswer)> {
    let context = || vec!["use spaces".to_owned()];
    let messages = || vec!["found tabs".to_owned()];
    let mut answers = vec![
        ("continue", GuardAnswer::default()),
        ("deny", GuardAnswer { context: context(), ..GuardAnswer::deny("Denied by hook guard: no") }),
        ("inject", GuardAnswer { context: context(), messages: messages(), ..GuardAnswer::default() }),
    ];
    if event.is_gate() {
        answers.push(("ask", GuardAnswer { question: Some("Deploy?".to_owned()), ..GuardAnswer::default() }));
    }
    let change = match &event.kind {
        EventKind::ToolPre(tool) => {
            let mut input = tool.input.clone();
            match &mut input {
                Value::Object(fields) => _ = fields.insert("command".to_owned(), json!("true")),
                other => *other = json!("*** Begin Patch\n"),
            }
            Some(Change::Input(input))
        }
        EventKind::ToolPost { result, .. } => Some(Change::Result(blank(result))),
        EventKind::Prompt { .. } => Some(Change::Prompt("another prompt".to_owned())),
        _ => None,
    };
    answers.extend(change.map(|change| ("modify", GuardAnswer { change: Some(change), ..GuardAnswer::default() })));
    answers
}

/// The result with other texts.
fn blank(result: &Value) -> Value {
    match result {
        Value::String(_) => json!("[redacted]"),
        Value::Array(values) => values.iter().map(blank).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), blank(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn answers_are_as_recorded_for_each_client() {
    let mut text = String::new();
    for (title, sample) in samples::one_of_each() {
        let event = sample.parse();
        writeln!(text, "## {title}: {} {}", event.name, sample.label).unwrap();
        for (kind, given) in answers(&event) {
            let reply = answer(&event, &given);
            let HookOutput { stdout, stderr, code } = reply.output;
            writeln!(text, "{kind}: exit {code}").unwrap();
            for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
                if !output.is_empty() {
                    writeln!(text, "  {name} {}", output.trim_end()).unwrap();
                }
            }
            for loss in reply.losses {
                writeln!(text, "  lost {}: {}", loss.part, loss.instead).unwrap();
            }
            if !reply.deferred.is_empty() {
                writeln!(text, "  later {:?}", reply.deferred).unwrap();
            }
        }
        text.push('\n');
    }
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/answers.txt");
    if std::env::var_os("UPDATE_ANSWERS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(
        text,
        fs::read_to_string(&file).unwrap(),
        "after a change, run with UPDATE_ANSWERS=1 and read the difference"
    );
}

#[test]
fn context_that_does_not_arrive_whole_is_lost() {
    for sample in samples::all() {
        let event = sample.parse();
        for (length, denial) in
            [(5, None), (9 << 10, None), (5, Some("no".to_owned())), (9 << 10, Some("no".to_owned()))]
        {
            let given = GuardAnswer { context: vec!["x".repeat(length)], denial, ..GuardAnswer::default() };
            let Reply { output, losses, deferred } = answer(&event, &given);
            let lost: Vec<&str> =
                losses.iter().filter(|loss| loss.part == "inject_context").map(|loss| loss.instead).collect();
            let expected: &[&str] = match output.stdout.matches('x').count() {
                _ if !deferred.is_empty() => &[],
                count if count >= length => &[],
                count if count >= 8000 => &["cut after 8 KB"],
                _ => &["dropped"],
            };
            assert_eq!(lost, expected, "{} {}: {output:?}", event.client, event.name);
        }
    }
}

#[test]
fn to_continue_prints_nothing_where_nothing_continues() {
    for sample in samples::all() {
        let event = sample.parse();
        let output = answer(&event, &GuardAnswer::default()).output;
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        let speaks = ["opencode", "cursor"].contains(&event.client.as_str());
        assert_eq!(output.stdout.is_empty(), !speaks, "{} {}", event.client, event.name);
    }
}
