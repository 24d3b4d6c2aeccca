//! Hooks from bundles, tried out with the command.

use crate::common::Place;
use serde_json::{Value, json};

const BUNDLE: &str = r#"
hooks:
  - rule: no-destructive-shell
    on: tool:pre
    when: tool_name == "Bash" && shell(tool_input.command).destructive
    deny: "{{ shell(tool_input.command).why }}"
tests:
  - name: deleting is denied
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: rm -rf build } }
    expect: { decision: deny, by: no-destructive-shell, says: recursively }
  - name: listing is not
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: ls } }
    expect: { decision: continue }
"#;

fn place(bundle: &str) -> (Place, String) {
    let place = Place::with(json!([
        { "text": "I clean up.", "tools": [{ "name": "Bash", "input": { "command": "rm -rf build" } }] },
        { "when": "Denied by hook no-destructive-shell: deletes recursively", "text": "Then not." },
        { "text": "Done." },
    ]));
    let file = place.at("bundle.yaml");
    std::fs::write(&file, bundle).unwrap();
    let file = file.display().to_string();
    (place, file)
}

#[test]
fn a_bundle_is_validated_listed_tested_and_tried_before_it_is_trusted() {
    let (place, file) = place(BUNDLE);
    let validated = place.amplifier(&["hooks", "validate", &file]).fine();
    assert_eq!(validated, format!("{file}: 1 hook in 1 file, no mistakes\n"));
    let listed = place.amplifier(&["hooks", "list", "--json", "--bundle", &file]).fine();
    let names: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone()).collect();
    assert_eq!(names, ["no-destructive-shell", "confirm", "session-bundles", "session-bundles"]);
    let tested = place.amplifier(&["hooks", "test", &file]).fine();
    assert_eq!(tested, "test deleting is denied ... ok\ntest listing is not ... ok\n\n2 passed; 0 failed\n");
    let data = r#"{"tool_name": "Bash", "tool_input": {"command": "rm -rf ."}}"#;
    let tried = place.amplifier(&["hooks", "try", "tool:pre", "--data", data, "--json", "--bundle", &file]).fine();
    let tried: Value = serde_json::from_str(&tried).unwrap();
    assert_eq!((&tried["decision"], &tried["denied_by"]), (&json!("deny"), &json!("no-destructive-shell")));
}

#[test]
fn a_test_that_does_not_hold_is_told_with_what_differs() {
    let (place, file) = place(&BUNDLE.replace("decision: continue", "decision: deny"));
    let ran = place.amplifier(&["hooks", "test", &file]);
    let expected = "\
test deleting is denied ... ok
test listing is not ... FAILED
    - expected
    + found
      {
    -   \"decision\": \"deny\"
    +   \"decision\": \"continue\"
      }

1 passed; 1 failed
";
    assert_eq!((ran.code, ran.out.as_str()), (1, expected));
    let ran = place.amplifier(&["hooks", "test", "--json", &file]);
    let mut lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[..2].iter_mut().for_each(|line| line["took_us"] = 0.into());
    let expected = [
        json!({ "test": "deleting is denied", "file": file, "event": "tool:pre", "passed": true, "took_us": 0 }),
        json!({
            "test": "listing is not", "file": file, "event": "tool:pre", "passed": false, "took_us": 0,
            "expected": { "decision": "deny" }, "found": { "decision": "continue" },
        }),
        json!({ "passed": 1, "failed": 1 }),
    ];
    assert_eq!((ran.code, lines.as_slice()), (1, &expected[..]));
}

#[test]
fn all_that_hooks_would_say_and_change_is_shown() {
    let (place, file) = place(
        r#"
hooks:
  - { rule: shorten, on: tool:pre, modify: { set: { /tool_input/command: ls } } }
  - { rule: tell, on: tool:pre, inject: "Mind\nthe gap.", message: "It runs.", level: warning }
"#,
    );
    let data = r#"{"tool_name": "Bash", "tool_input": {"command": "ls -l", "timeout": 5}}"#;
    let tried = place.amplifier(&["hooks", "try", "tool:pre", "--data", data, "--bundle", &file]).fine();
    let (reports, rest) = tried.split_once("\n\n").unwrap();
    let reports: Vec<Vec<&str>> = reports.lines().map(|row| row.split_whitespace().take(2).collect()).collect();
    assert_eq!(reports, [["shorten", "modify"], ["tell", "inject_context"], ["confirm", "ask_user"]]);
    let expected = "\
confirm asks: Run `ls`? [Allow once / Allow always / Deny]
    Bash
      ls

tell adds context (as system, 13 bytes):
    Mind
    the gap.

tell sends a message (warning): It runs.

The data becomes:
        \"tool_name\": \"Bash\",
        \"tool_input\": {
    -     \"command\": \"ls -l\",
    +     \"command\": \"ls\",
          \"timeout\": 5
        }

ask_user by confirm: Run `ls`?
";
    assert_eq!(rest, expected);
}

/// A session asks once: `confirm` is a fallback for rules that ask.
#[test]
fn a_rule_that_asks_is_shown_as_the_only_one_that_asks() {
    let (place, file) = place("hooks: [{ rule: mind, on: tool:pre, priority: 2000, ask: 'Run it?' }]");
    let data = r#"{"tool_name": "Bash", "tool_input": {"command": "make"}}"#;
    let tried = place.amplifier(&["hooks", "try", "tool:pre", "--data", data, "--bundle", &file]).fine();
    let (_, rest) = tried.split_once("\n\n").unwrap();
    let expected = "\
confirm does not ask: another hook asks already

mind asks: Run it? [Allow / Deny]
    Bash
      make

ask_user by mind: Run it?
";
    assert_eq!(rest, expected);
}

#[test]
fn a_field_that_a_session_would_supply_is_named_when_it_is_missing() {
    let (place, file) = place("hooks: [{ rule: told, on: tool:post, when: success, inject: 'It worked.' }]");
    let tried = |data: &str| place.amplifier(&["hooks", "try", "tool:post", "--data", data, "--bundle", &file]);
    let ran = tried(r#"{"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_result": {}}"#);
    let expected = "warning: the data lacks `success`, `duration_ms`, which `tool:post` has in a session; conditions read a missing \
                    field as null\n";
    assert_eq!((ran.code, ran.error.as_str(), ran.out.ends_with("\ncontinue\n")), (0, expected, true), "{}", ran.out);
    let ran = tried(
        r#"{"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_result": {}, "success": true, "duration_ms": 9}"#,
    );
    assert_eq!(
        (ran.error.as_str(), ran.out.ends_with("inject_context by told: It worked.\n")),
        ("", true),
        "{}",
        ran.out
    );
    let json = place.amplifier(&["hooks", "try", "tool:post", "--json", "--bundle", &file]).fine();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["warning"].as_str().unwrap().starts_with("the data lacks `tool_name`, "), "{json}");
}

#[test]
fn a_rule_that_asks_about_a_denied_operation_is_shown_as_one_that_does_not_ask() {
    let (place, file) = place(
        "hooks: [{ rule: mind, on: tool:pre, ask: 'Run it?' }, { rule: never, on: tool:pre, priority: 5, deny: 'Not today.' }]",
    );
    let data = r#"{"tool_name": "Bash", "tool_input": {"command": "make"}}"#;
    let tried = place.amplifier(&["hooks", "try", "tool:pre", "--data", data, "--bundle", &file]).fine();
    let (_, rest) = tried.split_once("\n\n").unwrap();
    assert_eq!(rest, "mind does not ask: the operation is denied\n\ndeny by never: Not today.\n");
}

/// A program may give the fields back in any order, which changes nothing; and what it prints is part of what would happen.
#[test]
fn what_a_program_prints_and_changes_is_shown() {
    let answer =
        r#"{"action": "modify", "data": {"tool_input": {"timeout": 5, "command": "ls"}, "tool_name": "Bash"}}"#;
    let (place, file) = place(&format!(
        "hooks:\n  - command: |\n      echo looked >&2; echo '{answer}'\n    name: look\n    on: tool:pre\n"
    ));
    let data = r#"{"tool_name": "Bash", "tool_input": {"command": "ls -l", "timeout": 5}}"#;
    let tried = place.amplifier(&["hooks", "try", "tool:pre", "--data", data, "--bundle", &file]).fine();
    let expected = "
look prints:
    looked

The data becomes:
        \"tool_name\": \"Bash\",
        \"tool_input\": {
    -     \"command\": \"ls -l\",
    +     \"command\": \"ls\",
          \"timeout\": 5
        }
";
    assert!(tried.contains(expected), "{tried}");
    let json = place.amplifier(&["hooks", "try", "tool:pre", "--json", "--data", data, "--bundle", &file]).fine();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["outputs"], json!([{ "hook": "look", "text": "looked" }]));
}

/// Who tries whether a notification arrives sees it arrive.
#[test]
fn what_a_hook_does_beside_the_agent_is_done_when_it_was_tried() {
    let (place, file) = place(
        "hooks:\n  - module: hooks-notify\n    config: { desktop: false, events: ['*'], command: 'cat > told' }\n",
    );
    let data = r#"{"message": "Look here", "notification_type": "info"}"#;
    place.amplifier(&["hooks", "try", "user:notification", "--data", data, "--bundle", &file]).fine();
    assert_eq!(serde_json::from_str::<Value>(&place.read("told")).unwrap()["message"], "Look here");
    let listed = place.amplifier(&["hooks", "list", "session:end", "--bundle", &file]).fine();
    let rows: Vec<Vec<&str>> = listed.lines().skip(1).map(|row| row.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows, [["*", "hooks-notify", "0"], ["session:end", "hooks-notify", "100"]]);
}

#[test]
fn what_will_not_work_later_is_warned_about() {
    let (place, file) = place(
        "hooks:\n  - command: ./check.sh\n    on: tool:pre\n  - rule: later\n    enabled: false\n    on: tool:pre\n    when: nobody\n    deny: no\n",
    );
    place.write("check.sh", "#!/bin/sh\n");
    let ran = place.amplifier(&["hooks", "validate", &file]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.ends_with("2 hooks in 1 file, no mistakes, 2 warnings\n"), "{}", ran.out);
    let programs = ":2:5: program `./check.sh` is not executable; run `chmod +x`, or name its interpreter first\n";
    let dormant = ":7:11: the hook is disabled and has a mistake: unknown name `nobody`";
    assert!(ran.error.contains(programs) && ran.error.contains(dormant), "{}", ran.error);
}

#[test]
fn a_mistake_is_pointed_at_and_nothing_runs_with_it() {
    let (place, file) = place(&BUNDLE.replace("when:", "wen:"));
    let ran = place.run(&["Clean up", "--bundle", &file]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.error.contains("bundle.yaml:5:5: unknown key `wen`; did you mean `when`?"), "{}", ran.error);
}

#[test]
fn what_a_rule_denies_does_not_run() {
    let (place, file) = place(BUNDLE);
    std::fs::create_dir(place.at("workspace/build")).unwrap();
    let ran = place.run(&["Clean up", "--bundle", &file]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "I clean up.\nThen not.\n"));
    assert!(place.at("workspace/build").exists());
}

#[test]
fn hooks_to_begin_with_work_at_once_and_are_never_written_over_others() {
    let (place, _) = place(BUNDLE);
    for (kind, tests) in [("rule", 3), ("command", 2), ("worker", 2)] {
        let folder = place.at(kind).display().to_string();
        let written = place.amplifier(&["hooks", "new", kind, &folder]).fine();
        assert!(written.contains(&format!("amplifier hooks test {folder}/bundle.yaml")), "{written}");
        let tested = place.amplifier(&["hooks", "test", &format!("{folder}/bundle.yaml")]).fine();
        assert!(tested.ends_with(&format!("\n{tests} passed; 0 failed\n")), "{tested}");
        let again = place.amplifier(&["hooks", "new", kind, &folder]);
        let taken = format!("amplifier: `{folder}/bundle.yaml` already exists; choose another folder");
        again.check_failed(&taken);
    }
}

/// A session and a test run a command with the same setting.
#[test]
fn a_command_finds_the_file_of_its_event_in_a_session_and_in_a_test() {
    let input = json!({ "file_path": "src/a.txt", "content": "one\n\ttwo\n" });
    let place = Place::with(json!([
        { "tools": [{ "name": "Write", "input": input }] },
        { "when": "Tabs in lines: 2", "text": "I correct it." },
        { "text": "Done." }
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    let folder = place.at("lint").display().to_string();
    place.amplifier(&["hooks", "new", "command", &folder]).fine();
    let bundle = format!("{folder}/bundle.yaml");
    assert!(place.amplifier(&["hooks", "test", &bundle]).fine().ends_with("\n2 passed; 0 failed\n"));
    let ran = place.run(&["Write it", "--bundle", &bundle]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I correct it.\n"), "{}", ran.error);
    // The context of a hook is announced in one line.
    let said = ran.error.lines().find(|line| line.starts_with("↳ check added context (")).unwrap_or(&ran.error);
    assert!(said.ends_with(" tokens)"), "{}", ran.error);
}

#[test]
fn a_test_shows_what_a_session_would_show() {
    let (place, file) = place(
        "hooks:\n  - { rule: tell, on: tool:pre, inject: \"Mind\\nthe gap.\", message: It runs., level: warning }\n\
         tests:\n  - { name: told, event: tool:pre, data: {}, expect: { decision: inject_context } }\n",
    );
    let expected = "test told ... ok\n    warning tell: It runs.\n    ↳ tell added context (13 bytes): Mind…\n";
    assert_eq!(place.amplifier(&["hooks", "test", &file]).fine(), format!("{expected}\n1 passed; 0 failed\n"));
    let json = place.amplifier(&["hooks", "test", &file, "--json"]).fine();
    let line: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["injections"][0]["text"], &line["messages"][0]["text"]),
        (&json!("Mind\nthe gap."), &json!("It runs."))
    );
}

#[test]
fn a_test_with_files_has_a_workspace_of_its_own() {
    let bundle = |files: &str| {
        format!(
            "hooks:\n  - command: 'cat \"$AMPLIFIER_PATH\" >&2; exit 2'\n    name: cat\n    on: tool:pre\n\
             tests:\n  - name: it is read\n    event: tool:pre\n    files: {files}\n    \
             data: {{ tool_name: Read, tool_input: {{ file_path: b/a.txt }} }}\n    \
             expect: {{ decision: deny, by: cat, says: hello }}\n"
        )
    };
    let (place, file) = place(&bundle("{ b/a.txt: hello }"));
    assert!(place.amplifier(&["hooks", "test", &file]).fine().ends_with("\n1 passed; 0 failed\n"));
    assert!(!place.at("workspace/b").exists());
    place.write("bundle.yaml", &bundle("{ ../a.txt: hello }"));
    let ran = place.amplifier(&["hooks", "test", &file]);
    let why =
        "amplifier: the file `../a.txt` of the test `it is read`: expected a path within the workspace, without `..`";
    ran.check_unchecked(why);
}

#[test]
fn a_component_to_begin_with_says_how_it_is_built() {
    let (place, _) = place(BUNDLE);
    let folder = place.at("wasm").display().to_string();
    let bundle = format!("{folder}/bundle.yaml");
    let written = place.amplifier(&["hooks", "new", "wasm", &folder]).fine();
    let build = format!("cargo build --release --target wasm32-wasip2 --manifest-path {folder}/Cargo.toml");
    assert!(written.contains(&build), "{written}");
    let early = place.amplifier(&["hooks", "test", &bundle]);
    let expected = match cfg!(feature = "wasm") {
        true => "guard.wasm` of hook `guard`: the file cannot be read: No such file or directory",
        false => "this program was built without `wasm` hooks; rebuild with `--features wasm`",
    };
    assert_eq!(early.code, 4);
    assert!(early.error.contains(expected), "{}", early.error);
}

#[test]
fn a_test_says_what_has_happened_before_and_has_a_session_of_its_own() {
    let bundle = r#"
hooks:
  - rule: enough
    on: tool:pre
    when: session_count("tool:pre", "Bash") > 20
    ask: "Bash was used {{ session_count('tool:pre', 'Bash') }} times. Go on?"
tests:
  - name: twenty commands are fine
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: ls } }
    before: [{ event: tool:pre, data: { tool_name: Bash, tool_input: { command: ls } }, times: 19 }]
    expect: { decision: continue }
  - name: the next one is asked about
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: ls } }
    before:
      - { event: tool:pre, data: { tool_name: Bash, tool_input: { command: ls } }, times: 20 }
      - { event: tool:pre, data: { tool_name: Read, tool_input: {} } }
    expect: { decision: ask_user, says: Bash was used 21 times }
"#;
    let (place, file) = place(bundle);
    let tested = place.amplifier(&["hooks", "test", &file]).fine();
    assert!(tested.ends_with("2 passed; 0 failed\n"), "{tested}");
    std::fs::write(&file, bundle.replace("times: 19", "times: 1001")).unwrap();
    let ran = place.amplifier(&["hooks", "validate", &file]);
    assert!(ran.code == 1 && ran.error.contains("invalid `times` `1001`: expected 1 to 1,000"), "{ran:?}");
}

#[test]
fn a_tool_that_is_not_there_is_a_mistake() {
    let (place, file) = place("tools:\n  only: [Read, Grpe]\n");
    let ran = place.amplifier(&["hooks", "validate", &file]);
    let expected = format!(
        "error: {file}:2:16: unknown tool `Grpe`; did you mean `Grep`?\n 2 |   only: [Read, Grpe]\n   |                ^\n"
    );
    assert_eq!((ran.code, ran.error), (1, expected));
    std::fs::write(&file, "tools:\n  only: [Read, Task, mcp__files__list]\n").unwrap();
    place.amplifier(&["hooks", "validate", &file]).fine();
}

#[test]
fn labels_that_yaml_takes_for_booleans_are_told_with_what_to_write() {
    let (place, file) = place("hooks:\n  - rule: ask\n    on: tool:pre\n    ask: Go on?\n    options: [Yes, No]\n");
    let ran = place.amplifier(&["hooks", "validate", &file]);
    assert_eq!(ran.code, 1);
    assert!(ran.error.contains(r#"in YAML, yes and no need quotes to be labels: "Yes", "No""#), "{}", ran.error);
}

#[test]
fn an_answer_for_want_of_another_that_does_not_count_is_pointed_out() {
    let (place, file) = place("hooks:\n  - rule: ask\n    on: tool:pre\n    ask: Go on?\n    default: allow\n");
    let ran = place.amplifier(&["hooks", "validate", &file]);
    assert_eq!((ran.code, ran.out), (0, format!("{file}: 1 hook in 1 file, no mistakes, 1 warning\n")));
    assert!(ran.error.contains(":5:5: `amplifier` ignores `default: allow`"), "{}", ran.error);
}

#[test]
fn a_test_shows_why_a_hook_failed_and_does_not_pass_by_its_failure() {
    let bundle = "\
hooks:
  - rule: broken
    on: tool:pre
    when: tool_input.command > 5
    deny: too long
tests:
  - name: denied by accident
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: ls } }
    expect: { decision: deny }
  - name: the failure itself is expected
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: ls } }
    expect: { decision: deny, says: cannot be evaluated }
";
    let (place, file) = place(bundle);
    let ran = place.amplifier(&["hooks", "test", &file]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("test denied by accident ... FAILED\n    hook `broken` failed: "), "{ran:?}");
    assert!(ran.out.contains("test the failure itself is expected ... ok\n"), "{ran:?}");
    let ran = place.amplifier(&["hooks", "test", "--json", &file]);
    let line: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&line["passed"], &line["failures"][0]["hook"]), (&json!(false), &json!("broken")));
}

#[test]
fn a_failed_test_names_the_deciding_hook_and_what_programs_printed() {
    let (place, file) = place(
        "hooks:\n  - { rule: guard, on: tool:pre, deny: Not here. }\n  - { command: 'echo looked >&2', name: look, on: tool:pre, priority: -1 }\n\
         tests:\n  - { name: fine, event: tool:pre, data: {}, expect: { decision: continue } }\n",
    );
    let ran = place.amplifier(&["hooks", "test", &file]);
    assert!(
        ran.out.contains("\n    deny by guard: Not here.\n    look prints: looked\n    - expected\n"),
        "{}",
        ran.out
    );
}

#[test]
fn a_test_without_a_field_that_conditions_need_is_warned_about() {
    let bundle = |success: &str| {
        format!(
            "hooks:\n  - {{ rule: a, on: tool:post, when: success, inject: it ran }}\n\
             tests:\n  - {{ name: ran, event: tool:post, data: {{ tool_name: Bash{success} }}, expect: {{ decision: continue }} }}\n"
        )
    };
    let (place, file) = place(&bundle(""));
    let warning =
        "the data lacks `success`, which `tool:post` has in a session; conditions read a missing field as null";
    let told = place.amplifier(&["hooks", "test", &file]).fine();
    assert!(told.starts_with(&format!("test ran ... ok\n    warning: {warning}\n")), "{told}");
    let json = place.amplifier(&["hooks", "test", "--json", &file]).fine();
    let line: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(line["warning"], warning);
    place.write("bundle.yaml", &bundle(", success: false"));
    assert_eq!(place.amplifier(&["hooks", "test", &file]).fine(), "test ran ... ok\n\n1 passed; 0 failed\n");
}

#[test]
fn tests_write_no_log_and_name_the_hook_that_changes_data() {
    let secret = format!("key = {}IOSFODNN7EXAMPLQ", concat!("AK", "IA"));
    let bundle = format!(
        "\
hooks:
  - module: hooks-logging
    config: {{ path: events.jsonl }}
  - module: hooks-redaction
tests:
  - name: a key does not reach the model
    event: tool:post
    data: {{ tool_name: Read, tool_input: {{ file_path: a }}, tool_result: {{ output: \"{secret}\" }}, success: true }}
    expect:
      decision: modify
      by: hooks-redaction
      data:
        /tool_result/output: key = [redacted kind=aws_access_key_id len=20 hmac=*]
"
    );
    let (place, file) = place(&bundle);
    let told = place.amplifier(&["hooks", "test", &file]).fine();
    assert_eq!(told, "test a key does not reach the model ... ok\n\n1 passed; 0 failed\n");
    assert!(!place.at("events.jsonl").exists(), "a test wrote to the log of sessions");
    let (place, file) = self::place(&bundle.replace("aws_access_key_id", "github_token"));
    assert_eq!(place.amplifier(&["hooks", "test", &file]).code, 1);
}

#[test]
fn the_kinds_of_redaction_are_listed_and_documented() {
    let place = Place::with(json!([]));
    let told = place.amplifier(&["hooks", "modules", "hooks-redaction"]).fine();
    let page = include_str!("../../../docs/reference/modules.md");
    let kinds = told.split("Kinds of data\n").nth(1).unwrap().lines().map(str::trim);
    let missing: Vec<&str> = kinds.filter(|kind| !page.contains(&format!("`{kind}`"))).collect();
    assert_eq!(missing, Vec::<&str>::new(), "docs/reference/modules.md does not name these kinds");
    for kind in ["google_api_key", "azure_client_secret", "azure_storage_key", "email"] {
        assert!(told.contains(&format!("\n  {kind}\n")), "{told}");
    }
    let json = place.amplifier(&["hooks", "modules", "hooks-redaction", "--json"]).fine();
    assert!(serde_json::from_str::<Value>(&json).unwrap()["kinds"].as_array().unwrap().len() > 30);
}
