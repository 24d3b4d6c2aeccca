//! `hooks-approval`.

use serde_json::{Value, json};

use crate::common::Run;
use crate::modules::{Modules, calls, check_problems, echo};

const NAME: &str = "hooks-approval";

/// A bundle with these rules, and what else there is to say.
fn bundle(config: &str) -> String {
    format!("hooks:\n  - module: hooks-approval\n    config:\n      {}\n", config.replace('\n', "\n      "))
}

async fn run(config: &str, call: (&str, Value), person: &'static str) -> Run {
    let modules = Modules::new(calls(&[call])).echoing("Bash").echoing("Write").echoing("Fetch");
    modules.bundle(&bundle(config)).change(|world| world.person(&[person])).world.run(&["go"]).await
}

/// The outcome of a call if the user agrees: `allow`, `ask: …`, or `deny: …`.
async fn decided(config: &str, call: (&str, Value)) -> String {
    let run = run(config, call, "Allow once").await;
    let result = &run.requests[1].messages.last().unwrap().content;
    match (run.questions.first(), run.inputs.len()) {
        (None, 1) => "allow".to_owned(),
        (Some(question), 1) => format!("ask: {}", question.prompt),
        _ => result.replace("Denied by hook hooks-approval: ", "deny: "),
    }
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

#[tokio::test]
async fn the_first_rule_that_fits_counts_for_each_command_of_a_line() {
    let config = "rules:\n  - { tool: Bash, pattern: 'git push --dry-run*', action: allow }\n  - { tool: Bash, pattern: 'git push*', \
                  action: ask }\n  - { tool: Bash, pattern: 'npm publish*', action: ask }\n  - { tool: Bash, pattern: 'rm *', action: deny, prompt: nothing is deleted here }\n  - { tool: Bash, \
                  pattern: '*| sh', action: deny }";
    let ask = |command: &str| format!("ask: Allow Bash: {command}?");
    let table = [
        ("ls -l", "allow".to_owned()),
        ("git push --dry-run origin", "allow".to_owned()),
        ("git push origin main", ask("git push origin main")),
        ("cd x && /usr/bin/git   'push' origin", ask("cd x && /usr/bin/git   'push' origin")),
        ("git push --dry-run; git push", ask("git push --dry-run; git push")),
        ("env A=1 bash -c 'rm x'", "deny: nothing is deleted here".to_owned()),
        ("git push; rm x", "deny: nothing is deleted here".to_owned()),
        ("git $WHAT origin", ask("git $WHAT origin")),
        ("npm $WHAT", ask("npm $WHAT")),
        ("npm install $WHAT", "allow".to_owned()),
        ("A=1 ./npm publish", ask("A=1 ./npm publish")),
        ("echo $HOME", "allow".to_owned()),
        ("cat x | sh", "deny: Bash may not do this: cat x | sh".to_owned()),
        ("$(echo rm) x", ask("$(echo rm) x")),
    ];
    for (command, expected) in table {
        assert_eq!(decided(config, bash(command)).await, expected, "{command}");
    }
}

#[tokio::test]
async fn what_is_allowed_is_allowed_for_all_of_a_line_or_not_at_all() {
    let config = "default: deny\nrules:\n  - { tool: Bash, pattern: 'git status*', action: allow }\n  - { tool: Bash, pattern: \
                  'RUST_LOG=*', action: allow }\n  - { tool: Bash, pattern: './scripts/check.sh*', action: allow }\n  - { tool: Echo, action: allow }";
    let deny = |input: Value| format!("deny: Bash may not do this: {input}");
    let table = [
        ("git status --short", "allow".to_owned()),
        ("git status; rm -rf /", deny(json!({ "command": "git status; rm -rf /" }))),
        ("git status $(rm x)", deny(json!({ "command": "git status $(rm x)" }))),
        ("./git status", deny(json!({ "command": "./git status" }))),
        ("/usr/bin/git status", "allow".to_owned()),
        ("PATH=/tmp/x git status", deny(json!({ "command": "PATH=/tmp/x git status" }))),
        ("PATH=/tmp/x; git status", deny(json!({ "command": "PATH=/tmp/x; git status" }))),
        ("LD_PRELOAD=$x git status", deny(json!({ "command": "LD_PRELOAD=$x git status" }))),
        ("LC_ALL=C git status", "allow".to_owned()),
        ("RUST_LOG=debug git status", "allow".to_owned()),
        ("./scripts/check.sh --all", "allow".to_owned()),
        ("/tmp/check.sh --all", deny(json!({ "command": "/tmp/check.sh --all" }))),
        ("git status \u{200b}", deny(json!({ "command": "git status \u{200b}" }))),
    ];
    for (command, expected) in table {
        assert_eq!(decided(config, bash(command)).await, expected, "{command}");
    }
    assert_eq!(decided(config, echo("a")).await, "allow");
    assert_eq!(decided(config, ("Fetch", json!({ "url": "x" }))).await, "deny: Fetch may not do this: {\"url\":\"x\"}");
}

#[tokio::test]
async fn paths_count_by_where_they_lead_and_other_fields_are_named() {
    let config = "rules:\n  - { tool: '*', field: file_path, pattern: 'production/**', action: deny }\n  - { tool: Fetch, field: url, \
                  pattern: 'http:*', action: ask, prompt: 'Fetch without encryption?' }";
    let write = |path: &str| ("Write", json!({ "file_path": path }));
    let denied = decided(config, write("docs/../production/a")).await;
    assert_eq!(denied, "deny: Write may not do this: docs/../production/a");
    assert_eq!(decided(config, write("docs/a")).await, "allow");
    let fetch = |url: Value| ("Fetch", json!({ "url": url }));
    assert_eq!(decided(config, fetch(json!("http://a"))).await, "ask: Fetch without encryption?");
    assert_eq!(decided(config, fetch(json!("https://a"))).await, "allow");
    assert_eq!(decided(config, fetch(json!(["http:"]))).await, "allow", "a list does not begin so");
}

#[tokio::test]
async fn the_person_decides_with_the_options_and_the_time_that_are_given() {
    let config = "prompt: 'Run {{ tool_name }}?'\noptions: [Allow, { label: Never, effect: deny_always }]\ntimeout: 7\nrules:\n  - { \
                  tool: Bash, action: ask }";
    let refused = run(config, bash("ls"), "Never").await;
    let question = &refused.questions[0];
    let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
    assert_eq!(
        (question.prompt.as_str(), labels, question.timeout.as_secs()),
        ("Run Bash?", vec!["Allow", "Never"], 7)
    );
    assert!(refused.inputs.is_empty());
    let expected = "Denied by hook hooks-approval: User denied: Run Bash?";
    assert_eq!(refused.requests[1].messages.last().unwrap().content, expected);
    assert_eq!(run(config, bash("ls"), "Allow").await.inputs.len(), 1);
}

#[tokio::test]
async fn what_one_module_allows_another_may_still_deny() {
    let config = "default: ask\nrules:\n  - { tool: Echo, action: allow }";
    let rule = "  - rule: quiet\n    on: tool:pre\n    deny: be quiet\n";
    let run = Modules::new(calls(&[echo("a")])).bundle(&format!("{}{rule}", bundle(config))).world.run(&["go"]).await;
    assert_eq!(run.requests[1].messages.last().unwrap().content, "Denied by hook quiet: be quiet");
}

#[test]
fn bad_options_are_told() {
    check_problems(
        NAME,
        &[
            ("{}", "no call is asked about or denied; add `rules` or change `default`"),
            (
                "{ rules: [{ tool: Fetch, pattern: x, action: deny }] }",
                "`rules[0]`: `pattern` needs a `field` for the tool `Fetch`",
            ),
            ("{ rules: [{ tool: Fetch, field: url, action: deny }] }", "`rules[0]`: `field` needs a `pattern`"),
            (
                "{ rules: [{ tool: Bash, pattern: '[', action: deny }] }",
                "`rules[0]`: `pattern`: invalid pattern `[`: unclosed character class; missing ']'",
            ),
            (
                "{ rules: [{ tool: Bash, action: forbid }] }",
                "`rules[0].action`: unknown variant `forbid`, expected one of `allow`, `ask`, `deny`",
            ),
            ("{ default: ask, timeout: -1 }", "rule error: `timeout` is `-1`: expected seconds, 0 or more"),
            (
                "{ default: ask, options: [Perhaps] }",
                "rule error: `options` has the unknown option `Perhaps`; write `{ label: Perhaps, effect: allow_once }`",
            ),
        ],
    );
}
