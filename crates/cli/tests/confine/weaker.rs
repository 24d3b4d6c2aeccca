//! Where the system allows no namespaces.

use std::process::Command;

use serde_json::{Value, json};

use super::{World, bash, is_possible};
use crate::common::{Place, Ran, Running};

/// Starts a program where no user namespaces can be made.
fn without_namespaces(program: Command) -> Command {
    if !is_possible(&[]) {
        return program;
    }
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\""]);
    command.arg(program.get_program()).args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

const NOTE: &str = "commands are not confined here (this system allows no user namespaces: ";

#[test]
fn commands_that_seem_to_change_what_is_protected_are_denied() {
    let world = World::new();
    let before = world.protected();
    let home = world.0.at("outer/home").canonicalize().unwrap();
    let home = home.display();
    let denied = [
        "echo x > ../outer/home/trust.json".to_owned(),
        "cp src/main.rs \"../outer\"/home/trust.json".to_owned(),
        "echo x > trust".to_owned(),
        "sed -i s/a/b/ .amplifier/bundle.yaml".to_owned(),
        "rm -r hooks".to_owned(),
        format!("python3 -c 'open(\"{home}/trust.json\", \"w\")'"),
        "mv .amplifier old".to_owned(),
        "cd .amplifier && echo x > bundle.yaml".to_owned(),
        "tee ~/home/approvals.json < /dev/null".to_owned(),
        "eval $(echo cp src/main.rs .ampl\"ifier\"/bundle.yaml)".to_owned(),
    ];
    let mut calls: Vec<_> = denied.iter().map(|command| bash(command)).collect();
    calls.extend(["cat .amplifier/bundle.yaml", "echo fine > src/fine && cat src/fine"].map(bash));
    let (results, Ran { error, .. }) = world.does_with(&calls, without_namespaces);
    // Where there is Landlock, that is the second choice.
    assert!(error.contains(NOTE) || error.contains("are confined by Landlock"), "{error}");
    let (denials, rest) = results.split_at(denied.len());
    for (command, denial) in denied.iter().zip(denials) {
        assert!(denial.contains("Denied by hook protect: tools cannot change `"), "{command}: {denial}");
    }
    assert_eq!(rest, ["hooks: []", "fine"]);
    for (file, content) in world.protected() {
        assert!(file.ends_with("audit.key") || content == before[file], "{file}");
    }
}

#[test]
fn a_person_can_switch_confinement_off_and_the_rest_stays() {
    let world = World::new();
    let calls = [bash("grep NoNewPrivs /proc/self/status"), bash("echo x > .amplifier/bundle.yaml")];
    let (confined, _) = world.does_with(&calls[..1], |program| program);
    assert_eq!(confined, ["NoNewPrivs:\t1"]);
    let (results, Ran { error, .. }) = world.does_with(&calls, |mut program| {
        program.env("AMPLIFIER_CONFINEMENT", "off");
        program
    });
    assert!(error.contains("commands are not confined here (`confinement` is `off`)"), "{error}");
    assert_eq!(results[0], "NoNewPrivs:\t0");
    assert!(results[1].contains("Denied by hook protect"), "{results:?}");
}

#[test]
fn a_hook_that_cannot_be_confined_is_not_loaded() {
    let place = Place::with(json!([]));
    place.write("bundle.yaml", "hooks:\n  - command: \"true\"\n    on: tool:pre\n    confine: {}\n");
    let file = place.at("bundle.yaml").display().to_string();
    let ran = Running::start(without_namespaces(place.command(&["hooks", "validate", &file]))).end();
    assert_eq!(ran.code, 1);
    let begin = format!("error: {file}:2:5: it cannot be confined: this system allows no user namespaces: ");
    assert!(ran.error.starts_with(&begin), "{}", ran.error);
}

/// Listing hooks starts none of their programs, so it looks for no sandbox.
#[test]
fn a_hook_that_cannot_be_confined_is_still_listed() {
    let place = Place::with(json!([]));
    place
        .write("home/bundle.yaml", "hooks:\n  - name: own\n    command: \"true\"\n    on: tool:pre\n    confine: {}\n");
    let listed = Running::start(without_namespaces(place.command(&["hooks", "list", "tool:pre"]))).end().fine();
    assert!(listed.lines().any(|line| line.contains("own") && line.ends_with("user")), "{listed}");
}

#[test]
fn the_doctor_says_whether_commands_are_confined() {
    let place = Place::with(json!([]));
    if is_possible(&[]) {
        let told = place.amplifier(&["doctor"]).out;
        assert!(told.contains("  ✓ sandbox        namespaces: "), "{told}");
    }
    let told = Running::start(without_namespaces(place.command(&["doctor"]))).end().out;
    let levels = ["analysis of commands only, which is weaker: ", "landlock, which is weaker than namespaces: "];
    assert!(levels.iter().any(|level| told.contains(&format!("✗ sandbox        {level}"))), "{told}");
    assert!(told.contains("this system allows no user namespaces: "), "{told}");
    assert!(told.contains("to allow them: sudo sysctl -w user.max_user_namespaces=15000"), "{told}");
}

/// What the session tells programs and people about its sandbox: `mount_plan.sandbox` of `session:start`, and what is on standard error.
fn told_by_session(place: &Place, start: impl Fn(Command) -> Command) -> (String, String) {
    let ran = Running::start(start(place.scripted(&["run", "--json", "Hello"]))).end();
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let started: Vec<Value> = lines.filter(|line| line["event"] == "session:start").collect();
    assert_eq!(started.len(), 1, "{}", ran.error);
    let level = started[0]["data"]["mount_plan"]["sandbox"].as_str().unwrap().to_owned();
    // The record says the same.
    let recorded = place.amplifier(&["audit", "show", "--json", "--event", "session:start", "--kind", "event"]).fine();
    let recorded: Value = serde_json::from_str(recorded.lines().last().unwrap()).unwrap();
    assert_eq!(recorded["body"]["data"]["mount_plan"]["sandbox"], level.as_str(), "{recorded}");
    (level, ran.error)
}

/// `sandbox` of `doctor --json`, and the finding about it.
fn told_by_doctor(place: &Place, start: impl Fn(Command) -> Command) -> (Value, Value) {
    let ran = Running::start(start(place.scripted(&["doctor", "--json"]))).end();
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let finding = findings.clone().find(|finding| finding["what"] == "sandbox").unwrap();
    assert_eq!(report["ok"], findings.clone().all(|finding| finding["ok"] == true));
    assert_eq!(ran.code, if report["ok"] == true { 0 } else { 1 });
    (report["sandbox"].clone(), finding.clone())
}

/// The level of the sandbox where namespaces cannot be used.
fn second_choice() -> &'static str {
    if is_possible(&["--landlock"]) { "landlock" } else { "analysis" }
}

#[test]
fn programs_are_told_which_sandbox_a_session_has_and_what_it_protects() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::with(json!([{ "text": "Hello." }]));
    place.write(
        "home/config.toml",
        "[sandbox]\nread_only = [\"/etc\", \"/no/such/file\"]\nhidden = [\"/no/such/key\"]\n",
    );
    let (level, warnings) = told_by_session(&place, |program| program);
    assert_eq!((level.as_str(), warnings.contains("confined")), ("namespaces", false), "{warnings}");
    let (sandbox, finding) = told_by_doctor(&place, |program| program);
    let paths = |key: &str| -> Vec<&str> {
        sandbox[key].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect()
    };
    assert_eq!(
        (&sandbox["level"], &sandbox["reason"], &sandbox["advice"]),
        (&json!("namespaces"), &Value::Null, &Value::Null)
    );
    let home = place.at("home").canonicalize().unwrap();
    assert!(["/etc", home.to_str().unwrap()].iter().all(|path| paths("read_only").contains(path)), "{sandbox}");
    assert!(
        ["/no/such/key", home.join("audit.key").to_str().unwrap()].iter().all(|path| paths("hidden").contains(path))
    );
    assert_eq!(paths("missing"), ["/no/such/file", "/no/such/key"]);
    assert_eq!(finding["ok"], true, "{finding}");
}

#[test]
fn programs_are_told_why_a_sandbox_is_weaker_and_what_to_do() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::with(json!([{ "text": "Hello." }]));
    let (level, warnings) = told_by_session(&place, without_namespaces);
    assert_eq!(level, second_choice());
    assert!(warnings.contains("(this system allows no user namespaces: "), "{warnings}");
    let (sandbox, finding) = told_by_doctor(&place, without_namespaces);
    assert_eq!(sandbox["level"], second_choice());
    assert!(sandbox["reason"].as_str().unwrap().starts_with("this system allows no user namespaces: "), "{sandbox}");
    assert_eq!(sandbox["advice"], "to allow them: sudo sysctl -w user.max_user_namespaces=15000");
    assert_eq!(finding["ok"], false, "{finding}");
    let switched_off = |mut program: Command| {
        program.env("AMPLIFIER_CONFINEMENT", "off");
        program
    };
    assert_eq!(told_by_session(&place, switched_off).0, "analysis");
    let (sandbox, _) = told_by_doctor(&place, switched_off);
    let off = (&json!("analysis"), &json!("`confinement` is `off`"), &Value::Null);
    assert_eq!((&sandbox["level"], &sandbox["reason"], &sandbox["advice"]), off);
}

/// The sandbox mounts terminals of its own after it has made files read-only, so this protection cannot hold, which only the check at the end finds.
#[test]
fn a_protection_that_did_not_take_effect_is_told_by_the_session_and_the_doctor() {
    if !is_possible(&["--read-only", "/dev"]) {
        return;
    }
    let place = Place::with(json!([{ "text": "Hello." }]));
    place.write("home/config.toml", "[sandbox]\nread_only = [\"/dev/pts\"]\n");
    let reason = "`/dev/pts` can still be written to, though it was made read-only";
    let (level, warnings) = told_by_session(&place, |program| program);
    assert_eq!(level, second_choice());
    let warning = match level.as_str() {
        "landlock" => "commands and hooks are confined by Landlock, because namespaces are not available",
        _ => "commands are not confined here",
    };
    assert!(warnings.contains(&format!("{warning} ({reason}")), "{warnings}");
    let (sandbox, finding) = told_by_doctor(&place, |program| program);
    assert_eq!(sandbox["level"], second_choice());
    assert!(sandbox["reason"].as_str().unwrap().starts_with(reason), "{sandbox}");
    assert_eq!(finding["ok"], false, "{finding}");
    assert!(finding["about"].as_str().unwrap().contains(reason), "{finding}");
}
