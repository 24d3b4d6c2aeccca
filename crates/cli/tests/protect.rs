//! What a session protects, and from whom: from commands of the agent, and from hooks that run what commands have written.

#![cfg(target_os = "linux")]

mod dumps;
mod environment;
mod hooks;
mod pins;
mod places;

use std::fs;
use std::process::Command;

use crate::common::{Place, Ran, Running, is_possible};
use serde_json::{Value, json};

/// A place whose user has the folder `user` as home, and has allowed everything.
fn place() -> Place {
    let place = Place::with(json!([]));
    fs::create_dir(place.at("user")).unwrap();
    place.rules(json!({ "confirm:*": "allow" }));
    place
}

/// The program, with the script and the home of the user.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.scripted(arguments);
    command.env("HOME", place.at("user"));
    command
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

/// Lets the agent use tools one after the other, and gives the result of each, with the whole run.
fn does(place: &Place, arguments: &[&str], calls: &[(&str, Value)]) -> (Vec<String>, Ran) {
    let answers = calls.iter().map(|(name, input)| json!({ "tools": [{ "name": name, "input": input }] }));
    place.answers(answers.chain([json!({ "text": "Done." })]).collect());
    let ran = Running::start(command(place, &[&["run", "--allow-denials", "Try it"], arguments].concat())).end();
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.error);
    let said = place.conversation().into_iter();
    (said.filter(|(role, _)| role == "tool").map(|(_, text)| text).collect(), ran)
}
