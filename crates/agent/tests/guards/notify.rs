use std::time::{Duration, Instant};

use amplifier_agent::TurnEnd;
use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::SESSION_END;
use serde_json::{Value, json};

use super::server::Server;
use super::{Setup, again, check_problems, program, told};

/// Everything that a command wrote down, without the time and the session.
fn notes(setup: &Setup) -> Vec<Value> {
    let text = std::fs::read_to_string(setup.folder.path().join("notes")).unwrap_or_default();
    let mut notes: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for note in &mut notes {
        let note = note.as_object_mut().unwrap();
        assert!(note.remove("timestamp").unwrap().is_string() && note.remove("session_id").unwrap().is_string());
    }
    notes
}

const NOTING: &str = "
    hooks:
      - module: hooks-bash-guard
      - module: hooks-notify
        config: { desktop: false, after: 0, command: 'cat >> notes; echo >> notes' }
    ";

#[tokio::test]
async fn a_command_is_told_about_questions_errors_and_answers() {
    let setup = Setup::new(NOTING);
    let script = Script::new([
        ScriptedResponse::text("I delete.").calling("Bash", json!({ "command": "rm -rf x" })),
        ScriptedResponse::text("Done."),
    ]);
    let run = setup.world(script).person(&["Deny"]).run(&["Delete", "More"]).await;
    assert!(matches!(run.ends[1], TurnEnd::Failed(_)), "{:?}", run.ends);
    let note = |event: &str, title: &str, message: &str| json!({ "event": event, "title": title, "message": message });
    let failure = run.ends[1].text();
    assert_eq!(
        notes(&setup),
        [
            note(
                "approval:required",
                "Amplifier requests approval",
                "Run `rm -rf x`? deletes recursively (`rm -rf x`)"
            ),
            note("prompt:complete", "Amplifier has answered after 0 s", "Done."),
            note("user:notification", "Amplifier: error", &failure),
            note("prompt:complete", "Amplifier has answered after 0 s", &failure),
        ]
    );
}

#[tokio::test]
async fn quick_answers_and_those_of_sub_agents_are_not_told() {
    let setup = Setup::new(NOTING);
    let mut script = Script::new([
        ScriptedResponse::text("I delegate.").calling("Task", json!({ "task": "help", "agent_name": "helper" })),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert("helper".to_owned(), vec![ScriptedResponse::text("I helped.")]);
    setup.world(script).run(&["Work"]).await;
    assert_eq!(notes(&setup).iter().map(|note| note["message"].clone()).collect::<Vec<_>>(), ["Done."]);

    let setup = Setup::new(&NOTING.replace("after: 0", "after: 30"));
    setup.world(Script::new([ScriptedResponse::text("Done.")])).run(&["Work"]).await;
    assert_eq!(notes(&setup), [Value::Null; 0]);
}

#[tokio::test]
async fn a_server_is_told_without_secrets_and_without_end() {
    let server = Server::start(200).await;
    let setup = Setup::new(&format!(
        "
        hooks:
          - module: hooks-notify
            config:
              desktop: false
              events: [prompt:complete, 'tool:*']
              after: 0
              webhook: {}
              headers: {{ x-team: agents }}
        ",
        server.url
    ));
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let long = format!("The token is {secret}. {}", "x".repeat(1_000));
    let script = Script::new([
        ScriptedResponse::text("I call.").calling("Echo", json!({ "text": "a" })),
        ScriptedResponse::text(long),
    ]);
    setup.world(script).run(&["Tell"]).await;
    let taken = server.taken();
    let events: Vec<&Value> = taken.iter().map(|(_, body)| &body["event"]).collect();
    assert_eq!(events, ["tool:pre", "tool:post", "prompt:complete"]);
    assert_eq!((&taken[0].1["title"], &taken[0].1["message"]), (&json!("Amplifier: tool:pre"), &json!("Echo")));
    let (head, last) = &taken[2];
    assert!(head.starts_with("post /take http/1.1\r\n") && head.contains("\r\nx-team: agents\r\n"), "{head}");
    let message = last["message"].as_str().unwrap();
    assert!(message.starts_with("The token is ") && message.ends_with("xxx…"), "{message}");
    assert!(!message.contains(secret) && message.chars().count() == 501, "{message}");
}

#[tokio::test]
async fn the_end_of_a_session_can_be_told() {
    let setup = Setup::new(&NOTING.replace("after: 0", "events: [session:end]"));
    setup.world(Script::new([ScriptedResponse::text("Done.")])).run(&["Work"]).await;
    assert_eq!(
        notes(&setup),
        [json!({ "event": "session:end", "title": "Amplifier: session:end", "message": "complete" })]
    );
}

/// A notification under way when the bundle changes belongs to the version before.
#[tokio::test]
async fn the_end_of_a_session_waits_for_what_an_earlier_version_of_the_bundle_sends() {
    // It is under way when the session ends, and slower than the end.
    let waits = NOTING.replace("cat >>", "until [ -e over ]; do sleep 0.01; done; sleep 0.1; cat >>");
    for changed in [waits.replace("after: 0", "after: 30"), "hooks: []\n".to_owned()] {
        let setup = Setup::new(&waits);
        let world = setup.followed(Script::new([ScriptedResponse::text("First."), ScriptedResponse::text("Second.")]));
        let over = setup.folder.path().join("over");
        world.hooks.hook(SESSION_END).run(move |_| std::fs::write(&over, "").unwrap());
        let run = world.run_by(async |session| {
            let first = session.prompt("One").await;
            setup.rewrite(&changed);
            vec![first, session.prompt("Two").await]
        });
        let run = run.await;
        assert_eq!(told(&run), ["a bundle has changed: its hooks are active from now on"]);
        let told: Vec<Value> = notes(&setup).iter().map(|note| note["message"].clone()).collect();
        assert_eq!(told, ["First."], "{changed}");
    }
}

#[tokio::test]
async fn nothing_that_is_slow_or_broken_holds_up_the_agent() {
    let server = Server::start(500).await;
    let setup = Setup::new(&format!(
        "
        hooks:
          - module: hooks-notify
            config: {{ events: ['*'], command: [sleep, '600'], webhook: '{}', timeout: 600 }}
          - module: hooks-notify
            config: {{ events: ['*'], command: [no-such-program], webhook: 'http://127.0.0.1:1/' }}
        ",
        server.url
    ));
    let begun = Instant::now();
    let run = setup.world(Script::new([ScriptedResponse::text("Done.")])).run(&["Work"]).await;
    assert_eq!(run.ends, [TurnEnd::Answered("Done.".to_owned())]);
    assert_eq!(run.messages, []);
    assert!(begun.elapsed() < Duration::from_secs(90), "only the end of the session waits, and not for long");
}

/// Runs itself in an environment in which there is a desktop.
#[tokio::test]
async fn the_desktop_shows_it_where_there_is_one() {
    let name = "guards::notify::the_desktop_shows_it_where_there_is_one";
    if let Some(folder) = std::env::var_os("AGAIN") {
        let setup = Setup::new("hooks:\n  - module: hooks-notify\n    config: { after: 0 }\n");
        setup.world(Script::new([ScriptedResponse::text("Is 1 < 2?")])).run(&["Work"]).await;
        let shown = std::fs::read_to_string(std::path::Path::new(&folder).join("shown")).unwrap();
        // The duration of the turn depends on the machine.
        let (before, after) = shown.split_once(" after ").unwrap();
        assert_eq!(before, "--app-name=Amplifier|--|Amplifier has answered");
        assert_eq!(after.trim_start_matches(|c: char| c.is_ascii_digit()), " s|Is 1 &lt; 2?|");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shows = format!("#!/bin/sh\nprintf '%s|' \"$@\" > '{}/shown'\n", folder.path().display());
    program(folder.path(), "notify-send", &shows);
    let output = again(name, &[], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Runs itself in a terminal.
#[tokio::test]
async fn the_terminal_rings() {
    let name = "guards::notify::the_terminal_rings";
    if std::env::var_os("AGAIN").is_some() {
        let setup =
            Setup::new("hooks:\n  - module: hooks-notify\n    config: { desktop: false, bell: true, after: 0 }\n");
        setup.world(Script::new([ScriptedResponse::text("Done.")])).run(&["Work"]).await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let output = again(name, &["python3", "-c", terminal], folder.path());
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.contains(&7), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-notify",
        &[
            (
                "{ desktop: false }",
                "no channel is enabled; enable `desktop` or `bell`, or give a `command` or a `webhook`",
            ),
            ("{ events: [] }", "`events` is empty: name at least one"),
            ("{ after: -1 }", "`after` is -1: give a number of seconds, 0 or more"),
            ("{ timeout: 0 }", "`timeout` is 0: give a number of seconds above zero"),
            ("{ command: [] }", "`command` is empty: name a program"),
            ("{ headers: { a: b } }", "`headers` needs a `webhook`"),
            (
                "{ webhook: 'ftp://x/' }",
                "`webhook`: invalid address of hook `hooks-notify`: `ftp` is neither `http` nor `https`; \
                 expected `https://HOST/PATH`",
            ),
        ],
    );
}
