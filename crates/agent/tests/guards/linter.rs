use amplifier_agent::TurnEnd;
use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::{Level, Speaker};
use serde_json::json;

use super::{Setup, again, check_problems, program, told};

/// `./test` puts it there; a person may have it anyway.
fn ruff() -> String {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/ruff");
    if std::path::Path::new(installed).exists() { installed.to_owned() } else { "ruff".to_owned() }
}

fn with(linters: &str) -> Setup {
    Setup::new(&format!("hooks:\n  - module: hooks-linter\n    config: {{ linters: [{linters}] }}\n"))
}

/// The text for the model after it has written a file, and the message for the user.
async fn after_writing(setup: &Setup, file: &str) -> (Vec<String>, Vec<String>) {
    let (run, _) = setup.call(&[], "Write", json!({ "file_path": file, "content": "a\nb\n" })).await;
    let injected = run.requests[1].messages.iter().filter(|message| message.role == Speaker::System);
    let injected = injected.map(|message| message.content.clone()).collect();
    assert!(run.messages.iter().all(|message| message.level == Level::Warning));
    (injected, told(&run).into_iter().map(str::to_owned).collect())
}

#[tokio::test]
async fn the_agent_corrects_itself_within_the_turn() {
    let setup = Setup::new(&format!(
        "
        hooks:
          - module: hooks-linter
            config:
              linters:
                - name: ruff
                  files: '*.py'
                  command: ['{}', check, --isolated, --no-cache, --quiet, --output-format, concise, '{{file}}']
        ",
        ruff()
    ));
    let bad = "import os\n\n\ndef greet(name):\n    print(nmae)\n";
    let script = Script::new([
        ScriptedResponse::text("I write it.").calling("Write", json!({ "file_path": "src/greet.py", "content": bad })),
        ScriptedResponse {
            when: Some("F821".to_owned()),
            ..ScriptedResponse::text("The linter is right.").calling(
                "MultiEdit",
                json!({ "file_path": "src/greet.py", "edits": [
                    { "old_string": "import os\n\n\n", "new_string": "" },
                    { "old_string": "nmae", "new_string": "name" },
                ] }),
            )
        },
        ScriptedResponse::text("It is clean now."),
    ]);
    let run = setup.world(script).run(&["Write greet.py"]).await;
    assert_eq!(run.ends, [TurnEnd::Answered("It is clean now.".to_owned())]);
    assert_eq!(
        run.requests[1].messages.last().unwrap().content,
        "ruff about src/greet.py:\n\
         src/greet.py:1:8: F401 [*] `os` imported but unused\n\
         src/greet.py:5:11: F821 Undefined name `nmae`"
    );
    assert_eq!(run.requests[2].messages.last().unwrap().content, "made 2 edits in `src/greet.py`");
    assert_eq!(told(&run), ["`ruff` found something in `src/greet.py`"]);
    assert_eq!(setup.read("src/greet.py").unwrap(), "def greet(name):\n    print(name)\n");
}

#[tokio::test]
async fn what_a_linter_says_is_clean_found_or_broken() {
    let found = |text: &str| vec![format!("x about a.txt:\n{text}")];
    let notice = || vec!["`x` found something in `a.txt`".to_owned()];
    let broke = |why: &str| vec![format!("the linter `x` failed: {why}")];
    let table = [
        ("true", vec![], vec![]),
        ("echo chatter >&2", vec![], vec![]),
        ("cat \"$0\"", found("a\nb"), notice()),
        ("echo 'line 1'; exit 1", found("line 1"), notice()),
        ("echo 'line 1' >&2; exit 1", found("line 1"), notice()),
        ("exit 1", vec![], broke("ended with exit code 1 without output")),
        ("echo 'bad options' >&2; exit 2", vec![], broke("ended with exit code 2: bad options")),
        ("kill -9 $$", vec![], broke("was ended by signal 9")),
        ("sleep 60", vec![], broke("time limit of 500ms exceeded; the linter was stopped")),
        ("yes", vec![], broke("output limit exceeded; the linter was stopped")),
    ];
    for (line, injected, said) in table {
        let timeout = if line == "sleep 60" { 0.5 } else { 20.0 };
        let line = line.replace('\'', "''");
        let setup = with(&format!(
            "{{ name: x, files: '*.txt', command: [sh, -c, '{line}', '{{file}}'], timeout: {timeout} }}"
        ));
        assert_eq!(after_writing(&setup, "a.txt").await, (injected, said), "{line}");
    }
}

#[tokio::test]
async fn a_linter_that_is_missing_is_told_once_and_never_to_the_agent() {
    let setup = with("{ files: '*.txt', command: [no-such-linter, '{file}'] }");
    let write =
        |name: &str| ScriptedResponse::text("I write.").calling("Write", json!({ "file_path": name, "content": "x" }));
    let script = Script::new([write("a.txt"), write("b.txt"), ScriptedResponse::text("Done.")]);
    let run = setup.world(script).run(&["Write"]).await;
    assert_eq!(
        told(&run),
        ["the linter `no-such-linter` failed: `no-such-linter` cannot be started: No such file or directory \
          (os error 2); check that program and folder exist"]
    );
    assert!(run.history.iter().all(|message| message.role != Speaker::System), "{:?}", run.history);
}

#[tokio::test]
async fn every_linter_that_matches_is_run_and_long_findings_are_cut() {
    let setup = Setup::new(
        "
        hooks:
          - module: hooks-linter
            config:
              longest: 60
              linters:
                - { name: one, files: ['docs/*.txt', '*.md'], command: [sh, -c, 'seq 100; exit 1'] }
                - { name: two, files: '*.txt', command: [sh, -c, 'echo two; exit 7'], exit_codes: [7] }
                - { name: three, files: '*.py', command: [echo, three] }
        ",
    );
    let (injected, told) = after_writing(&setup, "docs/a.txt").await;
    assert_eq!(injected.len(), 1);
    assert!(injected[0].starts_with("one about docs/a.txt:\n1\n2\n"), "{injected:?}");
    assert!(injected[0].ends_with("\n… and 88 more lines"), "{injected:?}");
    assert_eq!(told, ["`one` found something in `docs/a.txt`; `two` found something in `docs/a.txt`"]);
    let (injected, _) = after_writing(&setup, "other/a.txt").await;
    assert_eq!(injected, ["two about other/a.txt:\ntwo"]);
}

#[tokio::test]
async fn only_files_that_were_written_are_looked_at() {
    let setup = with("{ name: x, files: '*', command: [echo, found] }");
    setup.write("a.txt", "hello");
    let failing = json!({ "file_path": "a.txt", "old_string": "nothing like it", "new_string": "x" });
    for (tool, input) in [
        ("Edit", failing),
        ("Read", json!({ "file_path": "a.txt" })),
        ("Write", json!({ "file_path": "../outside.txt", "content": "x" })),
    ] {
        let (run, _) = setup.call(&[], tool, input).await;
        assert_eq!(told(&run), [""; 0], "{tool}");
    }
}

#[tokio::test]
async fn a_file_is_never_taken_for_an_option() {
    let setup = with("{ name: x, files: '*', command: [cat, '{file}'] }");
    assert_eq!(after_writing(&setup, "-n").await.0, ["x about -n:\na\nb"]);
}

/// Runs itself in an environment in which a well-known linter is there.
#[tokio::test]
async fn well_known_linters_are_used_where_they_are_found() {
    let name = "guards::linter::well_known_linters_are_used_where_they_are_found";
    if std::env::var_os("AGAIN").is_none() {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "shellcheck", "#!/bin/sh\necho \"$@\"\nexit 1\n");
        let output = again(name, &[], folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let setup = Setup::new("hooks:\n  - module: hooks-linter\n");
    let (injected, _) = after_writing(&setup, "bin/go.sh").await;
    assert_eq!(injected, ["shellcheck about bin/go.sh:\n--color=never --format=gcc -- bin/go.sh"]);
    assert_eq!(after_writing(&setup, "go.c").await.0, [""; 0]);
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-linter",
        &[
            ("{ linters: [] }", "`linters` is empty: name at least one"),
            ("{ tools: [] }", "`tools` is empty: name at least one"),
            ("{ tools: ['*'] }", "invalid name `*` in `tools`: patterns are not supported; write each name"),
            ("{ longest: 20000 }", "`longest` is 20000: give a number of characters from 1 to 10000"),
            ("{ linters: [{ files: a, command: [] }] }", "`linters[0]`: `command` is empty: name a program"),
            ("{ linters: [{ files: [], command: [x] }] }", "`linters[0]`: `files` is empty: name at least one"),
            ("{ linters: [{ command: [x] }] }", "`linters[0]`: missing field `files`"),
            (
                "{ linters: [{ files: a, command: [x], timeout: 0 }] }",
                "`linters[0]`: `timeout` is 0: give a number of seconds above zero",
            ),
            (
                "{ linters: [{ files: a, command: [x], exit_codes: [0] }] }",
                "`linters[0]`: `exit_codes` has 0: an exit code for findings is between 1 and 255",
            ),
            (
                "{ linters: [{ files: '[', command: [x] }] }",
                "`linters[0]`: `files`: invalid path pattern `**/[`: unclosed character class; missing ']'",
            ),
        ],
    );
}

#[tokio::test]
async fn an_absolute_pattern_matches_files_of_the_workspace() {
    let setup = with("{ name: strict, files: '/**/src/*.txt', command: [sh, -c, 'echo no; exit 1', '{file}'] }");
    let (findings, _) = after_writing(&setup, "src/a.txt").await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    let (findings, _) = after_writing(&setup, "other/a.txt").await;
    assert!(findings.is_empty(), "{findings:?}");
}
