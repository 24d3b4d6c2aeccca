//! Attempts to change what is protected.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{Running, World, bash, is_possible};

/// Ways that work in a shell that is not confined. Each is run in the workspace.
const WAYS: [&str; 32] = [
    "echo x > ../outer/home/trust.json",
    "echo x >> \"$PWD/../outer/home/approvals.json\"",
    "echo x > trust",
    "cat < /dev/null > ../outer/home/audit.key",
    "cp src/main.rs ../outer/home/trust.json",
    "mv -f src/main.rs ../outer/home/trust.json",
    "rm -f ../outer/home/config.toml",
    "sed -i s/false/true/ ../outer/home/trust.json; sed -i '1i x' .amplifier/bundle.yaml",
    "python3 -c 'open(\"../outer/home/trust.json\", \"w\").write(\"x\")'",
    "f=../out; f+=er/home; cd $f && tee approvals.json <<< x",
    "ln -f src/main.rs ../outer/home/trust.json",
    "ln ../outer/home/approvals.json src/other && echo x > src/other",
    "ln -sf /dev/null ../outer/home/trust.json; ln -sfn src .amplifier/bundle.yaml",
    "mv ../outer/home ../outer/old && mkdir ../outer/home && echo x > ../outer/home/trust.json",
    "mv ../outer ../old && mkdir -p ../outer/home && echo x > ../outer/home/trust.json",
    "mv .amplifier old && mkdir .amplifier && echo x > .amplifier/bundle.yaml",
    "rm -rf .amplifier; echo x > .amplifier",
    "echo 'hooks: []' > hooks/bundle.yaml",
    "echo 'exit 1' > hooks/check.sh",
    "mv hooks old && mkdir hooks && echo 'hooks: []' > hooks/bundle.yaml",
    "cp src/main.rs hooks/new && mv -f hooks/new hooks/check.sh",
    "mv ../workspace ../old; mkdir -p ../workspace/hooks; echo x > ../workspace/hooks/bundle.yaml",
    "mount -o remount,rw,bind ../outer/home; umount ../outer/home; echo x > ../outer/home/trust.json",
    "unshare -U sh -c 'echo x > ../outer/home/trust.json' || echo x > ../outer/home/trust.json",
    "unshare -Urm sh -c 'umount -l ../outer/home; mount -o remount,bind,rw ../outer/home; echo x > ../outer/home/trust.json'; \
     echo x > ../outer/home/trust.json",
    "echo x > /proc/self/root/$PWD/../outer/home/trust.json",
    "echo x > /proc/self/cwd/../outer/home/trust.json",
    "for p in 1 $PPID $$; do echo x > /proc/$p/root/$PWD/../outer/home/trust.json; done",
    "for p in 1 $PPID $$; do echo x > /proc/$p/cwd/../outer/home/trust.json; done",
    "exec 3< ../outer/home/trust.json; echo x > /proc/self/fd/3",
    "cd ../outer/home; truncate -s 0 trust.json; dd if=/dev/zero of=approvals.json count=1",
    "(setsid sh -c 'echo x > ../outer/home/trust.json') & wait; chmod 777 ../outer/home/trust.json; echo x > ../outer/home/trust.json",
];

#[test]
fn each_way_works_in_a_shell_that_is_not_confined() {
    for way in WAYS {
        let world = World::new();
        world.0.write("outer/home/audit.key", "a key");
        let before = world.protected();
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(way).current_dir(world.0.at("workspace")).output().unwrap();
        assert_ne!(before, world.protected(), "{way}");
    }
}

#[test]
fn no_command_changes_what_is_protected() {
    if !is_possible(&[]) {
        return;
    }
    let world = World::new();
    world.does(&[bash("true")]);
    let (before, names) = (world.protected(), world.names());
    let results = world.does(&WAYS.map(bash));
    for (way, result) in WAYS.iter().zip(&results) {
        let refused = ["Read-only file system", "Device or resource busy", "cross-device", "ermission denied"];
        assert!(refused.iter().any(|refused| result.contains(refused)), "{way}: {result}");
    }
    assert_eq!(results.len(), WAYS.len());
    assert_eq!(before, world.protected());
    assert_eq!(names, world.names());
    world.check_sound();
}

#[test]
fn the_audit_log_is_protected_from_commands() {
    if !is_possible(&[]) {
        return;
    }
    let world = World::new();
    let ways = [
        "rm -r ../outer/home/audit",
        "for f in ../outer/home/audit/*; do echo x >> $f; done",
        "mv ../outer/home/audit .",
    ];
    for result in world.does(&ways.map(bash)) {
        assert!(result.contains("Read-only file system"), "{result}");
    }
    world.check_sound();
}

#[test]
fn no_file_tool_changes_what_is_protected() {
    let world = World::new();
    world.does(&[bash("true")]);
    // The whole home within the workspace, as it is for whoever works in their home folder.
    fs::rename(world.0.at("outer"), world.0.at("workspace/outer")).unwrap();
    fs::remove_file(world.0.at("workspace/trust")).unwrap();
    std::os::unix::fs::symlink("outer/home/trust.json", world.0.at("workspace/trust")).unwrap();
    std::os::unix::fs::symlink("workspace/outer", world.0.at("outer")).unwrap();
    let before = world.protected();
    let absolute = world.0.at("outer/home/approvals.json").display().to_string();
    let paths = [
        "trust",
        "second-name",
        absolute.as_str(),
        "src/../outer/home/trust.json",
        "outer/home/new.json",
        "outer/home/audit/x",
        ".amplifier/bundle.yaml",
        ".amplifier/new/bundle.yaml",
        "hooks/bundle.yaml",
        "./hooks//check.sh",
        "/proc/self/root/../proc/self/cwd/.amplifier/bundle.yaml",
    ];
    let write = |path: &&str| ("Write", json!({ "file_path": path, "content": "x" }));
    let mut calls: Vec<(&str, Value)> = paths.iter().map(write).collect();
    let existing = [
        (absolute.as_str(), "allow"),
        (".amplifier/bundle.yaml", "hooks"),
        ("hooks/bundle.yaml", "hooks"),
        ("hooks/check.sh", "exit"),
    ];
    for (path, old) in existing {
        let edits = json!([{ "old_string": old, "new_string": "x", "replace_all": true }]);
        calls.push(("MultiEdit", json!({ "file_path": path, "edits": edits })));
        calls.push(("Edit", json!({ "file_path": path, "old_string": old, "new_string": "x", "replace_all": true })));
    }
    let results = world.does(&calls);
    for ((tool, input), result) in calls.iter().zip(&results) {
        assert!(
            result.contains("tools cannot change") || result.contains("outside the workspace"),
            "{tool} {input}: {result}"
        );
    }
    assert_eq!(results.len(), calls.len());
    assert_eq!(before, world.protected());
    assert!(!world.0.at("outer/home/new.json").exists() && !world.0.at("workspace/.amplifier/new").exists());
    let place = world.0.at("workspace/.amplifier").canonicalize().unwrap();
    let expected = format!(
        "Error: `.amplifier/bundle.yaml` cannot be written: tools cannot change `{}`, which decides what they may do or records what they \
         did; if it has to change, ask the person to do it",
        place.display()
    );
    assert_eq!(results[6], expected);
    world.check_sound();
}

#[test]
fn no_tool_reads_the_key() {
    let world = World::new();
    world.does(&[bash("true")]);
    fs::rename(world.0.at("outer"), world.0.at("workspace/outer")).unwrap();
    std::os::unix::fs::symlink("workspace/outer", world.0.at("outer")).unwrap();
    fs::hard_link(world.0.at("outer/home/audit.key"), world.0.at("workspace/other-key")).unwrap();
    let key = world.0.read("outer/home/audit.key");
    let key = key.trim();
    let mut calls = vec![
        ("Read", json!({ "file_path": "outer/home/audit.key" })),
        ("Read", json!({ "file_path": "other-key" })),
        ("Grep", json!({ "pattern": ".", "path": "outer/home/audit.key" })),
        ("Grep", json!({ "pattern": "^.{20,}$", "glob": "*key*" })),
        ("Edit", json!({ "file_path": "other-key", "old_string": "a", "new_string": "b" })),
    ];
    if is_possible(&[]) {
        calls.push(bash("cat outer/home/audit.key; cat outer/home/trust.json"));
    }
    let results = world.does(&calls);
    assert!(results.iter().all(|result| !result.contains(key)), "{results:?}");
    assert_eq!(results[0], "Error: `outer/home/audit.key` cannot be read: hidden from tools");
    if let Some(result) = results.get(5) {
        assert_eq!(result, "cat: outer/home/audit.key: Permission denied\n{}");
    }
    // The rest may be read.
    assert_eq!(world.does(&[("Read", json!({ "file_path": "outer/home/trust.json" }))]), ["     1\t{}\n"]);
}

/// What hides the key lies over its file.
#[test]
fn a_command_that_runs_does_not_read_a_key_that_is_rotated_meanwhile() {
    if !is_possible(&[]) {
        return;
    }
    let world = World::new();
    world.does(&[bash("true")]);
    ["began", "go"].iter().for_each(|pipe| world.0.make_pipe(&format!("workspace/{pipe}")));
    let began = world.0.at("workspace/began");
    let rotation = {
        let mut rotate = world.command(&["audit", "rotate-key"]);
        let go = world.0.at("workspace/go");
        std::thread::spawn(move || {
            fs::read(began).unwrap();
            let rotated = rotate.output().unwrap();
            fs::write(go, "go").unwrap();
            rotated
        })
    };
    let results = world.does(&[bash("echo > began; cat go; cat ../outer/home/audit.key*; ls ../outer/home")]);
    let rotated = rotation.join().unwrap();
    assert!(rotated.status.success(), "{rotated:?}");
    assert!(results[0].starts_with("gocat: ../outer/home/audit.key: Permission denied\n"), "{results:?}");
    let key = world.0.read("outer/home/audit.key");
    assert!(!results[0].contains(key.trim()), "{results:?}");
    assert!(!results[0].contains("audit.key.old"), "{results:?}");
    world.check_sound();
}

/// Who has the server's token can answer the questions about their own commands.
#[test]
fn no_tool_reads_the_secrets_of_the_server() {
    let world = World::new();
    world.does(&[bash("true")]);
    let token = Running::start(world.command(&["serve", "token", "add", "ci"])).end();
    assert_eq!(token.code, 0, "{token:?}");
    for name in ["token", "open.html"] {
        world.0.write(&format!("outer/home/server/{name}"), "a secret");
    }
    fs::rename(world.0.at("outer"), world.0.at("workspace/outer")).unwrap();
    std::os::unix::fs::symlink("workspace/outer", world.0.at("outer")).unwrap();
    let mut calls = vec![
        ("Read", json!({ "file_path": "outer/home/server/token" })),
        ("Read", json!({ "file_path": "outer/home/server/open.html" })),
        ("Grep", json!({ "pattern": "a s.cret", "path": "outer/home/server/token" })),
        ("Grep", json!({ "pattern": "sha2.6", "path": "outer/home/server" })),
    ];
    if is_possible(&[]) {
        calls.push(bash(
            "ls -A outer/home/server | wc -l; cat outer/home/server/* /proc/self/root/$PWD/outer/home/server/token",
        ));
    }
    let results = world.does(&calls);
    assert_eq!(results[0], "Error: `outer/home/server/token` cannot be read: hidden from tools");
    assert!(results.iter().all(|result| !result.contains("a secret") && !result.contains("sha256")), "{results:?}");
    if let Some(result) = results.get(4) {
        assert!(result.starts_with("Error: 0\n") && result.matches("No such file").count() == 2, "{result}");
    }
}

#[test]
fn a_workspace_within_what_is_protected_is_refused() {
    let world = World::new();
    let run = world.command(&["run", "--workspace", &world.0.at("outer/home").display().to_string(), "Try it"]);
    let ran = super::Running::start(run).end();
    let home = world.0.at("outer/home").canonicalize().unwrap();
    let home = home.display();
    let expected = format!(
        "amplifier: the workspace `{home}` is in `{home}`, which tools cannot change; choose another workspace"
    );
    ran.check_failed(&expected);
}
