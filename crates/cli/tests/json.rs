//! `--json` and exit codes: the same for all commands.

use serde_json::{Value, json};

use crate::common::{Place, Ran, Running, with_input};

/// The commands that have no data for a program: a conversation, a demonstration, and texts for other programs.
const WITHOUT_JSON: [&str; 6] = [
    "amplifier demo",
    "amplifier chat",
    "amplifier sessions resume",
    "amplifier sessions fork",
    "amplifier completions",
    "amplifier man",
];

/// The commands without subcommands, each with the text of its reference.
fn commands(place: &Place) -> Vec<(String, String)> {
    let reference = place.amplifier(&["man", "--markdown"]).fine();
    let sections = reference.split("\n## ").map(|section| section.trim_start_matches("## "));
    let all: Vec<(String, String)> = sections
        .filter_map(|section| section.split_once('\n'))
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    // A list of subcommands that also does something by itself has options.
    let is_command = |text: &str| !text.contains("| command | purpose |") || text.contains("--json");
    let found: Vec<_> = all.into_iter().filter(|(_, text)| is_command(text)).collect();
    assert!(found.len() > 35, "{}", found.len());
    found
}

#[test]
fn every_command_with_data_has_json() {
    let place = Place::with(json!([]));
    let without: Vec<String> =
        commands(&place).into_iter().filter(|(_, text)| !text.contains("`--json`")).map(|(name, _)| name).collect();
    assert_eq!(without, WITHOUT_JSON);
}

/// Runs a command with `--json`, and checks that each line is an object.
fn objects(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let Ran { code, out, error } = place.amplifier(&[arguments, &["--json"]].concat());
    assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}: {out}");
    let line = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{arguments:?}: {line}"));
    let lines: Vec<Value> = out.lines().map(line).collect();
    assert!(lines.iter().all(Value::is_object), "{arguments:?}: {out}");
    lines
}

#[test]
fn json_is_one_object_per_line() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    place.run(&["Greet me"]).fine();
    place.rules(json!({ "confirm:Run `a`?": "allow", "confirm:Run `b`?": "deny" }));
    let tests = "tests: [{ name: n, event: 'tool:pre', data: {}, expect: { decision: continue } }]";
    place.write("bundle.yaml", &format!("hooks: [{{ rule: r, on: 'tool:pre', message: Hello }}]\n{tests}\n"));
    let bundle = place.at("bundle.yaml").display().to_string();
    let (starter, log) = (place.at("starter").display().to_string(), place.at("home/audit").display().to_string());
    let more = [
        (&["sessions", "list"][..], 1),
        (&["sessions", "show", "last"], 2),
        (&["sessions", "export", "last"], 2),
        (&["serve", "token", "add", "ci"], 1),
        (&["serve", "token", "list"], 1),
        (&["serve", "token", "revoke", "ci"], 1),
        (&["hooks", "list", "--bundle", &bundle], 1),
        (&["hooks", "test", &bundle], 2),
        (&["hooks", "try", "tool:pre", "--bundle", &bundle], 1),
        (&["hooks", "trace", "last"], 2),
        (&["hooks", "replay", "--bundle", &bundle], 1),
        (&["hooks", "modules"], 2),
        (&["hooks", "schema"], 1),
        (&["hooks", "new", "rule", &starter], 1),
        (&["init"], 1),
        (&["hooks", "trust", "--yes"], 1),
        (&["hooks", "trusted"], 1),
        (&["hooks", "untrust"], 1),
        (&["events"], 2),
        (&["events", "tool:pre"], 1),
        (&["tools"], 2),
        (&["tools", "Write"], 1),
        (&["approvals", "list"], 2),
        (&["approvals", "add", "allow", "confirm:Run `c`?"], 1),
        (&["approvals", "explain", "1"], 1),
        (&["approvals", "revoke", "1"], 1),
        (&["audit", "show"], 2),
        (&["audit", "tail"], 2),
        (&["audit", "verify"], 1),
        (&["audit", "stats"], 1),
        (&["audit", "export"], 2),
        (&["audit", "prove", "--record", "1", &log], 1),
        (&["audit", "rotate-key"], 1),
    ];
    for (arguments, most) in more {
        let lines = objects(&place, arguments).len();
        // Two stand for several.
        assert!(if most == 1 { lines >= 1 } else { lines >= 2 }, "{arguments:?}: {lines}");
    }
    assert_eq!(objects(&place, &["hooks", "validate", &bundle]).len(), 0);
    let doctor = Running::start(place.scripted(&["doctor", "--json"])).end();
    assert!(serde_json::from_str::<Value>(&doctor.out).unwrap().is_object());
}

#[test]
fn json_of_a_change_says_what_was_changed() {
    let place = Place::with(json!([]));
    let one = |arguments: &[&str]| objects(&place, arguments).remove(0);
    let workspace = place.at("workspace").canonicalize().unwrap();
    let file = workspace.join(".amplifier/bundle.yaml").display().to_string();
    assert_eq!(one(&["init"]), json!({ "file": file, "scope": "project" }));
    let trusted = one(&["hooks", "trust", "--yes"]);
    assert_eq!((&trusted["bundle"], &trusted["status"]), (&json!(file), &json!("trusted")));
    assert_eq!(one(&["hooks", "trust"])["status"], "already_trusted");
    assert_eq!(one(&["hooks", "untrust"]), json!({ "bundle": file, "status": "revoked" }));

    let rule = json!({ "rule": "confirm:*", "decision": "deny", "scope": "user", "project": null });
    let with = |mut line: Value, more: Value| {
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let explanation = "All requests of hook `confirm` are denied without an approver, in every session.";
    let added = one(&["approvals", "add", "deny", "confirm:*"]);
    assert_eq!(added, with(rule.clone(), json!({ "added": true, "explanation": explanation })));
    assert_eq!(one(&["approvals", "add", "deny", "confirm:*"])["added"], false);
    let explained = one(&["approvals", "explain", "1"]);
    assert_eq!(explained, with(rule.clone(), json!({ "exists": true, "explanation": explanation })));
    let possible = one(&["approvals", "explain", "write src/**"]);
    assert_eq!((&possible["exists"], &possible["operation"]), (&json!(false), &json!("write src/**")));
    assert_eq!(one(&["approvals", "revoke", "1"]), with(rule, json!({ "revoked": true })));

    let token = one(&["serve", "token", "add", "ci", "--role", "approver"]);
    assert_eq!((&token["name"], &token["role"]), (&json!("ci"), &json!("approver")));
    assert!(token["token"].as_str().is_some_and(|token| token.len() > 20));
    assert_eq!(one(&["serve", "token", "revoke", "ci"]), json!({ "name": "ci", "token": true, "browsers": 0 }));
}

/// One case per group of commands and meaning.
#[test]
fn exit_codes_mean_the_same_in_all_groups() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    place.run(&["Greet me"]).fine();
    place.write("sound.yaml", "hooks: [{ rule: r, on: 'tool:pre', deny: no }]\n");
    let tests = "tests: [{ name: n, event: 'tool:pre', data: {}, expect: { decision: deny } }]";
    place.write("failing.yaml", &format!("hooks: []\n{tests}\n"));
    place.write("wrong.yaml", "hooks: [{ rule: r }]\n");
    place.write("proof", "{}");
    let path = |name: &str| place.at(name).display().to_string();
    let (sound, failing, wrong, proof) = (path("sound.yaml"), path("failing.yaml"), path("wrong.yaml"), path("proof"));
    let stats: Value = serde_json::from_str(&place.amplifier(&["audit", "rotate-key", "--json"]).fine()).unwrap();
    let key = stats["public_key"].as_str().unwrap().to_owned();
    let check = |code: i32, cases: &[&[&str]]| {
        for arguments in cases {
            let ran = place.amplifier(arguments);
            assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        }
    };
    check(
        0,
        &[
            &["sessions", "list"],
            &["hooks", "validate", &sound],
            &["hooks", "test", &sound],
            &["audit", "verify"],
            &["approvals", "list"],
            &["serve", "token", "list"],
            &["events", "tool:pre"],
        ],
    );
    // Failed, or a check found something.
    check(
        1,
        &[
            &["sessions", "show", "nope"],
            &["hooks", "validate", &wrong],
            &["hooks", "test", &failing],
            &["hooks", "trace", "nope"],
            &["hooks", "untrust"],
            &["audit", "show", "/nonexistent"],
            &["audit", "prove", "--record", "999"],
            &["approvals", "revoke", "nope"],
            &["serve", "token", "revoke", "nope"],
            &["events", "nope"],
            &["tools", "nope"],
            &["doctor"],
            &["run", "no model"],
        ],
    );
    check(
        2,
        &[
            &["run", ""],
            &["run", "--mode", "nope", "Go"],
            &["sessions", "fork", "last", "--turn", "-1"],
            &["hooks", "list", "--confinement", "nope"],
            &["hooks", "test", &sound, "--confinement", "nope"],
            &["hooks", "replay", "--bundle", &sound, "--limit", "many"],
            &["hooks", "trust", &sound],
            &["audit", "show", "--last", "-1"],
            &["audit", "tail", "-n", "some"],
            &["audit", "verify", "--key", "nope"],
            &["approvals", "add", "perhaps", "confirm:*"],
            &["serve", "--listen", "7879"],
            &["doctor", "--approvals", "nope"],
            &["init", "--nope"],
        ],
    );
    // Denied: `init` has made a bundle that nobody trusts; without a terminal, that is wrong usage.
    place.rules(json!({ "confirm:*": "deny" }));
    place.answers(json!([{ "tools": [{ "name": "Bash", "input": { "command": "ls" } }] }, { "text": "Done." }]));
    assert_eq!(place.run(&["List"]).code, 3);
    // A check that could not be made.
    check(
        4,
        &[
            &["hooks", "test", &wrong],
            &["hooks", "test", "nowhere.yaml"],
            &["hooks", "replay", "--bundle", "nowhere.yaml"],
            &["hooks", "validate"],
            &["audit", "verify", "/nonexistent"],
            &["audit", "prove", "--check", &proof, "--key", &key],
        ],
    );
    place.write("home/config.toml", "approvals = 3\n");
    check(4, &[&["doctor"], &["hooks", "test", &sound]]);
}

#[test]
fn a_bad_number_or_address_is_answered_with_what_to_write() {
    let place = Place::with(json!([]));
    let says = |arguments: &[&str], expected: &str| {
        let ran = place.amplifier(arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.error.contains(expected), "{arguments:?}: {}", ran.error);
    };
    says(&["serve", "--listen", "7879"], "missing address; write `127.0.0.1:7879`");
    says(&["serve", "--listen", "localhost:7999"], "expected an IP address, not `localhost`");
    says(&["serve", "--listen", ":99999"], "invalid port `99999`; expected 0 to 65535");
    says(&["run", "--approval-timeout", "-5", "Go"], "invalid approval timeout `-5`; expected seconds above 0");
    says(&["audit", "show", "--last", "-1"], "expected a whole number from 0, such as `20`");
    says(&["audit", "tail", "-n", "x"], "expected a whole number from 0, such as `20`");
    says(&["sessions", "fork", "last", "--turn", "1.5"], "expected a whole number from 0, such as `20`");
}

#[test]
fn an_error_of_a_task_from_standard_input_is_json_too() {
    let place = Place::with(json!([]));
    let ran = with_input(place.scripted(&["run", "--json", "-"]), " ");
    assert_eq!(ran.code, 2);
    let expected = json!({ "error": "empty task; give one: amplifier run \"…\"", "exit_code": 2 });
    assert_eq!(serde_json::from_str::<Value>(&ran.error).unwrap(), expected);
}

#[test]
fn a_wrong_turn_or_folder_is_named_before_anything_else() {
    let place = Place::with(json!([{ "text": "Good morning." }]));
    place.run(&["Greet me"]).fine();
    let fork = place.amplifier(&["sessions", "fork", "last", "--turn", "99"]);
    assert!(fork.code == 1 && fork.error.ends_with(" has 1 turns, not 99\n"), "{fork:?}");
    let resume = place.amplifier(&["sessions", "resume", "nope"]);
    assert!(resume.error.starts_with("amplifier: unknown session `nope`; "), "{resume:?}");
    let chat = place.amplifier(&["sessions", "resume", "last"]);
    assert!(chat.error.contains("needs a terminal"), "{chat:?}");
    let export = place.amplifier(&["audit", "export", "--output", "/nope/x"]);
    let why = "amplifier: `/nope/x` cannot be written: folder `/nope` not found; create the folder first";
    export.check_failed(why);
}
