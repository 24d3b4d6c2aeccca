//! The setting `confirm`: operations that need approval.

use serde_json::{Value, json};

use crate::common::{Place, Ran, Running};

/// A place where the model reads with a command, writes with a command, and writes a file.
fn place() -> Place {
    let call = |name: &str, input: Value| json!({ "tools": [{ "name": name, "input": input }] });
    let place = Place::with(json!([
        call("Bash", json!({ "command": "cat notes" })),
        call("Bash", json!({ "command": "touch made" })),
        call("Write", json!({ "file_path": "written", "content": "x" })),
        { "text": "Done." }
    ]));
    place.write("workspace/notes", "milk");
    place
}

/// Runs the task, and returns the operations that needed approval. Nobody can give it, so they were denied.
fn asked(place: &Place, arguments: &[&str]) -> Vec<&'static str> {
    for file in ["made", "written"] {
        let _ = std::fs::remove_file(place.at("workspace").join(file));
    }
    let Ran { code, out, error } = place.run(&[arguments, &["--allow-denials", "Go on"]].concat());
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{error}");
    let asked = |text: &str| error.contains(text);
    let all = [
        ("read", asked("Run `cat notes`?")),
        ("command", asked("Run `touch made`?")),
        ("write", asked("Write to `written`?")),
    ];
    assert_eq!([all[1].1, all[2].1], ["made", "written"].map(|file| !place.at("workspace").join(file).exists()));
    all.into_iter().filter(|(_, asked)| *asked).map(|(operation, _)| operation).collect()
}

#[test]
fn the_setting_chooses_the_operations_that_need_approval() {
    let place = place();
    assert_eq!(asked(&place, &[]), ["read", "command", "write"]);
    for (value, operations) in [
        ("all", &["read", "command", "write"][..]),
        ("writes", &["command", "write"]),
        ("commands", &["command"]),
        ("off", &[]),
    ] {
        assert_eq!(asked(&place, &["--confirm", value]), operations, "{value}");
    }
    let listed = |value| place.amplifier(&["hooks", "list", "--confirm", value]).fine().contains("confirm");
    assert!(listed("commands") && !listed("off"));
    let wrong = "amplifier: `confirm`: unknown value of `confirm` `none`; expected one of: off, commands, writes, all";
    place.run(&["--confirm", "none", "Go on"]).check_usage(wrong);
}

#[test]
fn only_the_users_own_configuration_relaxes_it() {
    let place = place();
    let write = |file: &str, value: &str| place.write(file, &format!("session: {{ confirm: {value} }}\n"));
    std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    let trust = || assert_eq!(place.amplifier(&["hooks", "trust", "--yes"]).code, 0);

    // A project does not relax the default.
    write("workspace/.amplifier/bundle.yaml", "off");
    trust();
    assert_eq!(asked(&place, &[]), ["read", "command", "write"]);
    // The user's bundle does, and the project makes it stricter.
    write("home/bundle.yaml", "off");
    assert!(asked(&place, &[]).is_empty());
    write("workspace/.amplifier/bundle.yaml", "commands");
    trust();
    assert_eq!(asked(&place, &[]), ["command"]);
    // Of the user's own values, the stricter one counts.
    place.write("home/config.toml", "confirm = \"writes\"\n");
    assert_eq!(asked(&place, &[]), ["command", "write"]);
    // A flag is the user's last word, and so is the environment.
    assert!(asked(&place, &["--confirm", "off"]).is_empty());
    let mut command = place.command(&["doctor", "--json"]);
    command.env("AMPLIFIER_CONFIRM", "off");
    let report: Value = serde_json::from_str(&Running::start(command).end().out).unwrap();
    let setting = report["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == "confirm").unwrap();
    assert_eq!((&setting["value"], &setting["source"]), (&json!("off"), &json!("flag or environment")));
}

#[test]
fn a_guard_of_the_bundle_asks_even_if_it_is_off() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "rm -rf notes" } }] },
        { "when": "hook hooks-bash-guard", "text": "It was denied." },
        { "text": "Done." }
    ]));
    place.write("workspace/notes", "milk");
    place.write("home/bundle.yaml", "hooks:\n  - module: hooks-bash-guard\nsession: { confirm: off }\n");
    let Ran { out, error, .. } = place.run(&["Go on"]);
    assert_eq!(out, "It was denied.\n", "{error}");
    assert!(place.at("workspace/notes").exists());
}
