//! The lists of what commands cannot change or read, and what the user's configuration makes of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::{bash, command, does, is_possible, place};
use crate::common::{Place, Running};

const READ_ONLY: [&str; 6] =
    [".bashrc", ".ssh/config", ".config/systemd/user/x.service", ".aws/credentials", ".gitconfig", ".netrc"];
const HIDDEN: [&str; 3] =
    [".mozilla/firefox/profile/cookies", ".config/chromium/Default/Cookies", "snap/firefox/common/cookies"];

fn with_files() -> Place {
    let place = place();
    for file in READ_ONLY.iter().chain(&HIDDEN).chain(&["secret"]) {
        let file = place.at("user").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "as it was\n").unwrap();
    }
    place
}

/// Appends to a file of the user, and says what it can read of it.
fn touch(place: &Place, file: &str) -> (&'static str, Value) {
    let file = place.at("user").join(file).display().to_string();
    bash(&format!("(echo x >> {file}) 2>/dev/null; cat {file} 2>/dev/null; true"))
}

#[test]
fn start_up_files_and_credentials_are_read_only_and_profiles_of_browsers_hidden() {
    if !is_possible(&[]) {
        return;
    }
    let place = with_files();
    let calls: Vec<_> = READ_ONLY.iter().chain(&HIDDEN).chain(&["secret"]).map(|file| touch(&place, file)).collect();
    let (said, _) = does(&place, &[], &calls);
    let (kept, rest) = said.split_at(READ_ONLY.len());
    assert!(kept.iter().all(|said| said == "as it was"), "{kept:?}");
    let (hidden, rest) = rest.split_at(HIDDEN.len());
    assert!(hidden.iter().all(|said| said == "(no output)"), "{hidden:?}");
    assert_eq!(rest, ["as it was\nx"]);
    for file in READ_ONLY.iter().chain(&HIDDEN) {
        assert_eq!(place.read(&format!("user/{file}")), "as it was\n", "{file}");
    }
}

#[test]
fn the_configuration_adds_to_the_lists_and_takes_from_them() {
    if !is_possible(&[]) {
        return;
    }
    let place = with_files();
    place.write("user/other", "as it was\n");
    let config = "[sandbox]\nread_only = ['~/other', '~/missing']\nhidden = ['~/secret', '~/.ssh']\nallow = ['~/.aws', '~/.mozilla']\n";
    place.write("home/config.toml", config);
    let files = ["other", "secret", ".ssh/config", ".aws/credentials", ".mozilla/firefox/profile/cookies"];
    let (said, _) = does(&place, &[], &files.map(|file| touch(&place, file)));
    assert_eq!(said, ["as it was", "(no output)", "(no output)", "as it was\nx", "as it was\nx"]);
}

#[test]
fn mistakes_in_the_sandbox_settings_are_told() {
    let place = place();
    let check = |settings: &str, problem: &str| {
        place.write("home/config.toml", &format!("[sandbox]\n{settings}\n"));
        let ran = Running::start(command(&place, &["run", "Try it"])).end();
        assert!(ran.code != 0 && ran.error.contains(problem), "{settings}: {ran:?}");
    };
    let invalid =
        "invalid path `x/y` in `hidden` of `[sandbox]`; expected an absolute path, or one that begins with `~/`";
    check("hidden = ['x/y']", invalid);
    check("writable = ['/x']", "unknown field `writable`");
    let home = place.at("home").display().to_string();
    for path in [format!("{home}/approvals.json"), home.clone(), "/".to_owned()] {
        check(
            &format!("allow = ['{path}']"),
            "decides what the agent may do, or records what it did; remove it from `allow`",
        );
    }
}

#[test]
fn a_bundle_cannot_change_the_lists() {
    let place = place();
    place.write("home/bundle.yaml", "session: { sandbox: { allow: [~/.ssh] } }\n");
    let ran = Running::start(command(&place, &["run", "Try it"])).end();
    assert!(ran.code == 1 && ran.error.contains("unknown key `sandbox`"), "{ran:?}");
}

/// Whoever replaces it decides about the next session.
#[test]
fn a_command_cannot_replace_the_program() {
    if !is_possible(&[]) {
        return;
    }
    let place = place();
    let program = place.at("user/bin/amplifier");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_amplifier"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let before = fs::metadata(&program).unwrap().len();
    let path = program.display();
    let ways = [
        format!("echo x > {path}"),
        format!("echo x > {path}.new && mv -f {path}.new {path}"),
        format!("rm -f {path}"),
        format!("mv {path} {path}.old"),
        format!("ln -sf /bin/true {path}"),
        format!("mv $(dirname {path}) {path}.d"),
    ];
    let calls = ways.iter().map(|way| json!({ "tools": [{ "name": "Bash", "input": { "command": way } }] }));
    place.answers(calls.chain([json!({ "text": "Done." })]).collect());
    let given = command(&place, &["run", "Try it"]);
    let mut run = Command::new(&program);
    run.args(given.get_args()).current_dir(place.at("workspace")).env_clear();
    run.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Running::start(run).end();
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{}", ran.error);
    assert_eq!(fs::symlink_metadata(&program).unwrap().len(), before);
    let said: Vec<_> = place.conversation().into_iter().filter(|(role, _)| role == "tool").collect();
    assert_eq!(said.len(), ways.len());
    assert!(said.iter().all(|(_, said)| said.starts_with("Error: ")), "{said:?}");
    // Other programs can be installed beside it.
    assert!(place.at("user/bin/amplifier.new").exists());
}

/// A file that is renamed over another, as editors and git do it, takes the mount away that lay over the other.
#[test]
fn the_folder_of_a_hook_is_protected_also_when_its_file_is_saved_meanwhile() {
    if !is_possible(&[]) {
        return;
    }
    let place = place();
    fs::create_dir(place.at("workspace/hooks")).unwrap();
    place.write("workspace/hooks/guard.sh", "echo as it was >&2; exit 2\n");
    place.write(
        "workspace/hooks/bundle.yaml",
        "hooks:\n  - command: sh guard.sh\n    name: guard\n    on: tool:pre\n    when: tool_name == 'Glob'\n",
    );
    ["began", "go"].iter().for_each(|pipe| place.make_pipe(&format!("workspace/{pipe}")));
    let (began, go) = (place.at("workspace/began"), place.at("workspace/go"));
    let (new, guard) = (place.at("workspace/hooks/new"), place.at("workspace/hooks/guard.sh"));
    let saving = std::thread::spawn(move || {
        fs::read(began).unwrap();
        fs::write(&new, "echo saved >&2; exit 2\n").unwrap();
        fs::rename(&new, &guard).unwrap();
        fs::write(go, "go").unwrap();
    });
    let attack = bash(
        "echo > began; cat go; echo 'exit 0' > hooks/guard.sh; echo 'exit 0' > hooks/other && mv -f hooks/other hooks/guard.sh; true",
    );
    let bundle = place.at("workspace/hooks/bundle.yaml").display().to_string();
    let (said, ran) = does(&place, &["--bundle", &bundle], &[attack, ("Glob", json!({ "pattern": "*" }))]);
    saving.join().unwrap();
    assert!(said[0].matches("Read-only file system").count() >= 2, "{said:?}");
    assert_eq!(said[1], "Denied by hook guard: saved");
    assert!(ran.error.contains("guard.sh` has changed; its new version is used from now on"), "{}", ran.error);
}
