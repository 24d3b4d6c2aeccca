//! Variables of the environment that make programs run other code.

use std::fs;

use super::{bash, does, is_possible, place};
use crate::common::Running;

const VARIABLES: [&str; 8] =
    ["LD_LIBRARY_PATH", "NODE_OPTIONS", "BASH_ENV", "PS4", "PYTHONPATH", "PERL5OPT", "RUBYLIB", "GIT_SSH_COMMAND"];

/// Prints what is set of the variables.
const SHOW: &str = "env | grep -E '^(LD_|NODE_OPTIONS|BASH_|PS4|PYTHON|PERL|RUBY|GIT_)' | sort | tr '\\n' ' '";

#[test]
fn commands_and_hooks_do_not_inherit_what_makes_other_code_run() {
    let place = place();
    place.write("home/bundle.yaml", &format!("hooks:\n  - command: \"{SHOW} >&2; exit 2\"\n    name: show\n    on: tool:pre\n    when: tool_name == 'Glob'\n"));
    place.answers(serde_json::json!([
        { "tools": [{ "name": "Bash", "input": { "command": SHOW } }] },
        { "tools": [{ "name": "Glob", "input": { "pattern": "*" } }] },
        { "text": "Done." },
    ]));
    let mut run = super::command(&place, &["run", "--allow-denials", "Look"]);
    for variable in VARIABLES {
        run.env(variable, "/nowhere");
    }
    run.env("BASH_FUNC_env%%", "() { echo replaced; }");
    assert_eq!(Running::start(run).end().code, 0);
    let said: Vec<String> =
        place.conversation().into_iter().filter(|(role, _)| role == "tool").map(|(_, text)| text).collect();
    assert_eq!(said[0].trim(), "GIT_SSH_COMMAND=/nowhere PERL5OPT=/nowhere PYTHONPATH=/nowhere RUBYLIB=/nowhere");
    let home = place.at("home").canonicalize().unwrap();
    let path = if is_possible(&[]) { format!("PYTHONPATH={} ", home.display()) } else { String::new() };
    assert_eq!(said[1].trim(), format!("Denied by hook show: PYTHONNOUSERSITE=1 {path}PYTHONSAFEPATH=1"));
}

#[test]
fn variables_that_a_hook_is_given_by_name_count_and_do_not_reach_the_launcher() {
    let place = place();
    let bundle = "hooks:\n  - command: \"echo $PYTHONNOUSERSITE-$LD_PRELOAD-$PERL5LIB >&2; exit 2\"\n    name: show\n    on: tool:pre\n    \
                  env: { PYTHONNOUSERSITE: '', LD_PRELOAD: /nowhere/own.so, PERL5LIB: own }\n";
    place.write("home/bundle.yaml", bundle);
    let (said, ran) = does(&place, &[], &[("Glob", serde_json::json!({ "pattern": "*" }))]);
    // Nothing stands before the first dash: the variable is empty.
    assert!(said[0].lines().any(|line| line.ends_with("-/nowhere/own.so-own")), "{said:?}");
    // The loader complains for each program that it cannot load it into; the launcher is none of them.
    assert!(!said[0].contains("amplifier"), "{said:?} {ran:?}");
}

#[test]
fn a_script_that_the_shell_would_read_first_does_not_run() {
    let place = place();
    place.write("workspace/first.sh", "echo first\n");
    let mut run = super::command(&place, &["run", "--allow-denials", "Look"]);
    place.answers(serde_json::json!([{ "tools": [{ "name": "Bash", "input": { "command": "echo second" } }] }, { "text": "Done." }]));
    run.env("BASH_ENV", place.at("workspace/first.sh"));
    assert_eq!(Running::start(run).end().code, 0);
    assert!(place.conversation().contains(&("tool".to_owned(), "second".to_owned())));
    fs::remove_file(place.at("workspace/first.sh")).unwrap();
    assert_eq!(does(&place, &[], &[bash("echo third")]).0, ["third"]);
}
