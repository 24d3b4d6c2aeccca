//! `hooks-logging`.

use std::os::unix::fs::symlink;
use std::path::Path;

use amplifier_core::{HookRegistry, data};
use serde_json::{Value, json};

use crate::modules::{Modules, calls, check_problems, echo, host, register, shown};

const NAME: &str = "hooks-logging";

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn chosen_events_are_written_once_each_with_their_data_and_without_secrets() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let bundle = "hooks:\n  - module: hooks-logging\n    config: { path: logs/mine.jsonl, events: ['tool:*', '*:post', 'session:*'], \
                  except: ['session:start'] }\n";
    let modules = Modules::new(calls(&[echo(&format!("token {key}"))])).bundle(bundle);
    let run = modules.world.run(&["go"]).await;
    let log = lines(&modules.workspace.path().join("logs/mine.jsonl"));
    assert_eq!(events(&log), ["tool:pre", "tool:post", "session:end"]);
    let pre = run.events("tool:pre")[0];
    let text = log[0]["data"]["tool_input"]["text"].as_str().unwrap();
    assert!(text.starts_with("token [redacted kind=github_token len=40 hmac="), "{text}");
    let expected = json!({
        "timestamp": pre.timestamp(),
        "session_id": run.session,
        "event": "tool:pre",
        "data": { "tool_name": "Echo", "tool_input": { "text": text }, "tool_call_id": "call-1" },
    });
    assert_eq!(log[0], expected);
    assert_eq!(shown(&run), [""; 0]);
}

#[tokio::test]
async fn unless_told_otherwise_everything_but_the_pieces_of_answers_is_written() {
    let modules = Modules::new(calls(&[])).bundle("hooks:\n  - module: hooks-logging\n");
    let run = modules.world.run(&["go"]).await;
    let log = lines(&modules.workspace.path().join("events.jsonl"));
    let names: Vec<&str> = run.events.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"content_block:delta"));
    let expected: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("content_block:")).collect();
    assert_eq!(events(&log), expected);
}

#[tokio::test]
async fn an_event_is_known_by_its_other_name_too() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = HookRegistry::new();
    let text = "hooks:\n  - module: hooks-logging\n    config: { events: ['tool:error'] }\n";
    register(folder.path(), text, &hooks, &host(folder.path(), &Default::default())).unwrap();
    hooks.emit("error:tool", data! { "tool_name": "Bash", "error": {} }).await.unwrap();
    hooks.emit("error:provider", data! { "provider": "none", "error": {} }).await.unwrap();
    assert_eq!(events(&lines(&folder.path().join("events.jsonl"))), ["error:tool"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told_once_and_stops_nothing() {
    let modules =
        Modules::new(calls(&[echo("a")])).bundle("hooks:\n  - module: hooks-logging\n    config: { path: log }\n");
    let log = modules.workspace.path().join("log");
    // The agent could have put a link there that leads to something else.
    let elsewhere = modules.workspace.path().join("elsewhere");
    symlink(&elsewhere, &log).unwrap();
    let mended = log.clone();
    modules.world.hooks.hook("tool:post").run(move |_| _ = std::fs::remove_file(&mended)).unwrap();
    let run = modules.world.run(&["go"]).await;
    assert_eq!(run.saw("").ends, ["answered: Done."]);
    let before = run.events.iter().position(|(name, _)| name == "tool:post").unwrap();
    let missing = run.events[..before].iter().filter(|(name, _)| !name.starts_with("content_block:")).count();
    let [failed, again] = &shown(&run)[..] else { panic!("{:?}", run.messages) };
    assert!(failed.starts_with(&format!("warning [hook:{NAME}] events cannot be written to `{}`: ", log.display())));
    let expected = format!("info [hook:{NAME}] events are written to `{}` again; {missing} are missing", log.display());
    assert_eq!(*again, expected);
    assert_eq!(events(&lines(&log))[0], "tool:post");
    assert!(!elsewhere.exists());
}

#[tokio::test]
async fn half_a_line_does_not_spoil_the_next_one() {
    let modules =
        Modules::new(calls(&[])).bundle("hooks:\n  - module: hooks-logging\n    config: { events: ['session:*'] }\n");
    let log = modules.workspace.path().join("events.jsonl");
    std::fs::write(&log, "{\"event\": \"to").unwrap();
    modules.world.run(&["go"]).await;
    let text = std::fs::read_to_string(&log).unwrap();
    let whole: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events(&whole), ["session:start", "session:end"]);
}

/// Two registries are as strange to one another as two processes: each opens the file for itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lines_of_several_writers_are_whole_and_none_is_lost_when_files_are_full() {
    let folder = tempfile::tempdir().unwrap();
    let text = "hooks:\n  - module: hooks-logging\n    config: { max_bytes: 20000, keep: 1000, events: ['build:*'] }\n";
    let writers = (0..4).map(|writer| {
        let hooks = HookRegistry::new();
        register(folder.path(), text, &hooks, &host(folder.path(), &Default::default())).unwrap();
        tokio::spawn(async move {
            for number in 0..250 {
                let line = data! { "writer": writer, "number": number, "text": "x".repeat(number) };
                let outcome = hooks.emit("build:done", line).await.unwrap();
                // Says why, if a line could not be written.
                assert!(outcome.messages().is_empty(), "{:?}", outcome.messages());
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let mut seen = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("events.jsonl") {
            files += 1;
            seen.extend(
                lines(&path)
                    .iter()
                    .map(|line| (line["data"]["writer"].as_u64().unwrap(), line["data"]["number"].as_u64().unwrap())),
            );
        }
    }
    seen.sort_unstable();
    let expected: Vec<(u64, u64)> = (0..4).flat_map(|writer| (0..250).map(move |number| (writer, number))).collect();
    assert_eq!(seen, expected);
    assert!(files > 5, "{files}");
}

#[tokio::test]
async fn old_files_go() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = HookRegistry::new();
    let text = "hooks:\n  - module: hooks-logging\n    config: { max_bytes: 1024, keep: 2 }\n";
    register(folder.path(), text, &hooks, &host(folder.path(), &Default::default())).unwrap();
    for number in 0..5 {
        hooks.emit("build:done", data! { "number": number, "text": "x".repeat(900) }).await.unwrap();
    }
    let kept = ["events.jsonl", "events.jsonl.1", "events.jsonl.2"].map(|file| {
        let lines = lines(&folder.path().join(file));
        (lines.len(), lines[0]["data"]["number"].as_u64().unwrap())
    });
    assert_eq!(kept, [(1, 4), (1, 3), (1, 2)]);
    assert!(!folder.path().join("events.jsonl.3").exists());
}

#[test]
fn bad_options_are_told() {
    check_problems(
        NAME,
        &[
            ("{ events: [] }", "`events` is empty; name at least one event"),
            (
                "{ events: [tool] }",
                "`events`: invalid event name `tool`: no colon; expected the form `tool:pre`; `amplifier events` lists all events",
            ),
            ("{ max_bytes: 10 }", "`max_bytes` is 10: give it 1024 or more"),
            ("{ keep: 5000 }", "`keep` is 5000: give it 1000 or less"),
            ("{ path: logs/ }", "invalid `path` `logs/`; give the path of a file"),
        ],
    );
}
