//! Where the system allows no namespaces.

use std::process::Command;

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
    let place = Place::with(serde_json::json!([]));
    place.write("bundle.yaml", "hooks:\n  - command: \"true\"\n    on: tool:pre\n    confine: {}\n");
    let file = place.at("bundle.yaml").display().to_string();
    let ran = Running::start(without_namespaces(place.command(&["hooks", "validate", &file]))).end();
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    let begin = format!("amplifier: {file}:2:5: it cannot be confined: this system allows no user namespaces: ");
    assert!(ran.error.starts_with(&begin), "{}", ran.error);
}

#[test]
fn the_doctor_says_whether_commands_are_confined() {
    let place = Place::with(serde_json::json!([]));
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
