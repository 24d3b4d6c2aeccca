//! What the agent's tools cannot change, however they try, and what confined hooks cannot do.
//!
//! Where the system allows no namespaces, this is said, and what is left is tested: commands are denied by what is seen of them.

#![cfg(target_os = "linux")]

mod attacks;
mod hooks;
mod weaker;
mod work;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Place, Ran, Running, is_possible};
use serde_json::{Value, json};

/// A place with everything that is to be protected. The home is two folders deep, so that those above it can be renamed.
struct World(Place);

const PROTECTED: [&str; 7] = [
    "outer/home/trust.json",
    "outer/home/approvals.json",
    "outer/home/config.toml",
    "outer/home/audit.key",
    "workspace/hooks/bundle.yaml",
    "workspace/hooks/check.sh",
    "workspace/.amplifier/bundle.yaml",
];

impl World {
    fn new() -> Self {
        let world = Self(Place::with(json!([{ "text": "Hello." }])));
        for folder in ["outer/home", "workspace/hooks", "workspace/.amplifier", "workspace/src"] {
            fs::create_dir_all(world.0.at(folder)).unwrap();
        }
        world.0.write("outer/home/trust.json", "{}");
        world.0.write("outer/home/approvals.json", &json!({ "confirm:*": "allow" }).to_string());
        world.0.write("outer/home/config.toml", "");
        world.0.write("workspace/hooks/check.sh", "exit 0\n");
        world.0.write(
            "workspace/hooks/bundle.yaml",
            "hooks:\n  - command: sh check.sh\n    on: tool:pre\n    when: tool_name == \"Todo\"\n",
        );
        world.0.write("workspace/.amplifier/bundle.yaml", "hooks: []\n");
        world.0.write("workspace/src/main.rs", "fn main() {}\n");
        std::os::unix::fs::symlink("../outer/home/trust.json", world.0.at("workspace/trust")).unwrap();
        fs::hard_link(world.0.at("outer/home/trust.json"), world.0.at("workspace/second-name")).unwrap();
        world
    }

    /// The program, with the script.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.scripted(arguments);
        command.env("AMPLIFIER_HOME", self.0.at("outer/home")).env("HOME", self.0.at("outer"));
        command
    }

    /// Lets the agent use tools, one after the other, and gives what came of each.
    fn does(&self, calls: &[(&str, Value)]) -> Vec<String> {
        self.does_with(calls, |command| command).0
    }

    /// The same, with the program started in another way.
    fn does_with(&self, calls: &[(&str, Value)], start: impl FnOnce(Command) -> Command) -> (Vec<String>, Ran) {
        let calls = calls.iter().map(|(name, input)| json!({ "tools": [{ "name": name, "input": input }] }));
        let answers = calls.chain([json!({ "text": "Done." })]);
        self.0.answers(answers.collect());
        let bundle = self.0.at("workspace/hooks/bundle.yaml").display().to_string();
        let ran = Running::start(start(self.command(&["run", "--allow-denials", "--bundle", &bundle, "Try it"]))).end();
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.error);
        let exported = Running::start(self.command(&["sessions", "export", "last", "--format", "jsonl"])).end().fine();
        let lines =
            exported.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].clone());
        let results = lines.filter(|message| message["role"] == "tool");
        (results.map(|message| message["content"].as_str().unwrap().to_owned()).collect(), ran)
    }

    /// What is in the protected files.
    fn protected(&self) -> BTreeMap<&'static str, Option<Vec<u8>>> {
        PROTECTED.iter().map(|file| (*file, fs::read(self.0.at(file)).ok())).collect()
    }

    /// The names in the folders that are protected as a whole.
    fn names(&self) -> Vec<String> {
        ["outer/home", "workspace/.amplifier", "outer"].iter().flat_map(|folder| names(&self.0.at(folder))).collect()
    }

    /// Checks the audit log.
    fn check_sound(&self) {
        let report = Running::start(self.command(&["audit", "verify"])).end().fine();
        assert!(report.starts_with("sound: "), "{report}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().path().display().to_string()).collect();
    names.sort();
    names
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}
