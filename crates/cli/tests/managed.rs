//! The managed bundle: `/etc/amplifier/bundle.yaml`, above user and project, which neither can switch off or loosen.

#![cfg(unix)]

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::common::{Place, is_possible};

/// A policy of an organisation.
const POLICY: &str = "session: { confirm: writes, mode: ask, approval_timeout: 60, audit: record }
hooks:
  - rule: no-deploy
    on: tool:pre
    when: tool_name == \"Bash\" && tool_input.command.contains(\"deploy\")
    deny: people deploy
";

/// A machine with its own `/etc`, in which the user is the administrator.
struct Managed {
    place: Place,
}

impl Managed {
    /// The model deploys, and writes a file with a command.
    fn new(policy: &str) -> Self {
        let call = |command: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": command } }] });
        let place = Place::with(json!([call("touch deploy"), call("touch made"), { "text": "Done." }]));
        place.write("policy.yaml", policy);
        fs::create_dir(place.at("workspace/.amplifier")).unwrap();
        Self { place }
    }

    /// Runs a script. `None` if this system has no namespaces.
    fn run(&self, script: &str) -> Option<Output> {
        if !is_possible(&[]) {
            return None;
        }
        let start = "mount -t tmpfs -o mode=755 tmpfs /etc; mkdir /etc/amplifier; umask 022
            echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd; cp $POLICY /etc/amplifier/bundle.yaml\n";
        let mut command = Command::new("unshare");
        command.args(["-Urmpf", "--mount-proc", "bash", "-uc", &format!("{start}{script}")]).env_clear();
        command.current_dir(self.place.at("workspace")).env("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier"));
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("AMPLIFIER_HOME", self.place.at("home"));
        command.env("POLICY", self.place.at("policy.yaml")).env("AMPLIFIER_SCRIPT", self.place.at("script.json"));
        Some(command.output().unwrap())
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn all(output: &Output) -> String {
    out(output) + &String::from_utf8_lossy(&output.stderr)
}

/// The settings and the hooks that `doctor` reports.
fn doctor(output: &Output) -> Value {
    serde_json::from_str(
        out(output).lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{}", all(output))),
    )
    .unwrap()
}

fn setting<'a>(report: &'a Value, name: &str) -> (&'a str, &'a str) {
    let settings = report["settings"].as_array().unwrap();
    let setting = settings.iter().find(|setting| setting["name"] == name).unwrap();
    (setting["value"].as_str().unwrap(), setting["source"].as_str().unwrap())
}

#[test]
fn its_hooks_run_whatever_user_project_and_flags_say() {
    let managed = Managed::new(POLICY);
    let place = &managed.place;
    // Each tries to switch the hook off by its name.
    let disable = "hooks:\n  - rule: no-deploy\n    on: tool:pre\n    enabled: false\n    deny: never\n";
    place.write("home/bundle.yaml", disable);
    place.write("workspace/.amplifier/bundle.yaml", disable);
    place.write("named.yaml", disable);
    let script = "$AMPLIFIER hooks trust --yes >/dev/null
        AMPLIFIER_CONFIG= $AMPLIFIER run --confirm off --bundle ../named.yaml --allow-denials 'Go on'; ls deploy
        $AMPLIFIER hooks list --bundle ../named.yaml | grep no-deploy";
    let Some(output) = managed.run(script) else { return };
    let shown = all(&output);
    assert!(shown.contains("people deploy") && !place.at("workspace/deploy").exists(), "{shown}");
    assert_eq!(shown.matches("no-deploy ").count(), 1, "{shown}");
    assert!(shown.contains("managed"), "{shown}");
}

#[test]
fn its_settings_hold_against_files_variables_and_flags() {
    let managed = Managed::new(POLICY);
    let place = &managed.place;
    place.write(
        "home/config.toml",
        "confirm = \"off\"\nmode = \"accept-edits\"\napproval_timeout = 900\naudit = \"async\"\n",
    );
    place.write("home/bundle.yaml", "session: { confirm: off, approval_timeout: 900, audit: async }\n");
    let Some(output) = managed.run("$AMPLIFIER doctor --json") else { return };
    let report = doctor(&output);
    assert_eq!(setting(&report, "confirm").0, "writes");
    assert_eq!(setting(&report, "mode").0, "ask");
    assert_eq!(setting(&report, "approval_timeout").0, "60");
    assert_eq!(setting(&report, "audit").0, "record");
    let script = "AMPLIFIER_CONFIRM=off AMPLIFIER_AUDIT=async $AMPLIFIER doctor --json --approval-timeout 900";
    let report = doctor(&managed.run(script).unwrap());
    assert_eq!(setting(&report, "confirm"), ("writes", "managed bundle"));
    assert_eq!(setting(&report, "approval_timeout"), ("60", "managed bundle"));
    assert_eq!(setting(&report, "audit"), ("record", "managed bundle"));
    // Without an answer, the write is denied.
    let script = "$AMPLIFIER run --confirm off --allow-denials 'Go on'; ls made";
    assert!(!managed.run(script).unwrap().status.success());
    let refused = managed.run("$AMPLIFIER run --mode accept-edits 'Go on'; echo code $?").unwrap();
    assert!(
        all(&refused).contains("`accept-edits` is forbidden") && out(&refused).contains("code 2"),
        "{}",
        all(&refused)
    );
    // A stricter value of the user counts.
    let report =
        doctor(&managed.run("$AMPLIFIER doctor --json --confirm all --mode plan --approval-timeout 5").unwrap());
    assert_eq!((setting(&report, "confirm").0, setting(&report, "mode").0), ("all", "plan"));
    assert_eq!(setting(&report, "approval_timeout").0, "5");
}

#[test]
fn no_session_starts_if_others_can_change_it() {
    let managed = Managed::new(&format!("{POLICY}  - command: ./check.sh\n    on: tool:pre\n"));
    let start = "$AMPLIFIER run --allow-denials 'Go on'; echo code $?";
    let install = "printf '#!/bin/sh\\ntrue\\n' >/etc/amplifier/check.sh; chmod 755 /etc/amplifier/check.sh";
    let Some(output) = managed.run(&format!("{install}; {start}")) else { return };
    assert!(out(&output).contains("code 0"), "{}", all(&output));
    for (change, path) in [
        ("chmod g+w /etc/amplifier/bundle.yaml", "/etc/amplifier/bundle.yaml"),
        ("chmod o+w /etc/amplifier", "/etc/amplifier"),
        ("chmod o+w /etc/amplifier/check.sh", "/etc/amplifier/check.sh"),
        ("chmod o+w /etc", "/etc"),
        (
            "mkdir -m 777 /etc/open; mv /etc/amplifier/bundle.yaml /etc/open; ln -s /etc/open/bundle.yaml /etc/amplifier",
            "/etc/open",
        ),
    ] {
        let output = managed.run(&format!("{install}; {change}; {start}")).unwrap();
        let expected = format!("no session starts: `{path}` can be changed by another user than the administrator");
        assert!(all(&output).contains(&expected) && !out(&output).contains("code 0"), "{change}: {}", all(&output));
    }
    for change in [
        "echo nonsense: 1 >>/etc/amplifier/bundle.yaml",
        "rm /etc/amplifier/bundle.yaml; mkdir /etc/amplifier/bundle.yaml",
    ] {
        let output = managed.run(&format!("{install}; {change}; {start}; $AMPLIFIER doctor")).unwrap();
        assert!(!out(&output).contains("code 0"), "{change}: {}", all(&output));
        assert!(out(&output).contains("✗ bundles"), "{change}: {}", all(&output));
    }
}

#[test]
fn doctor_says_why_each_hook_is_active_or_not() {
    let managed = Managed::new(POLICY);
    let place = &managed.place;
    let rule = |name: &str, more: &str| format!("  - rule: {name}\n    on: tool:pre\n    deny: no\n{more}");
    let off = "    enabled: false\n";
    place.write(
        "home/bundle.yaml",
        &format!("hooks:\n{}{}{}", rule("no-deploy", ""), rule("own", ""), rule("unused", off)),
    );
    place.write("workspace/.amplifier/bundle.yaml", &format!("hooks:\n{}", rule("of-project", "")));
    let Some(output) = managed.run("$AMPLIFIER doctor --json; $AMPLIFIER doctor") else { return };
    let report = doctor(&output);
    let hooks: Vec<_> = report["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| {
            let text = |key: &str| hook[key].as_str().unwrap();
            (
                text("name"),
                text("level"),
                hook["line"].as_u64().unwrap(),
                hook["active"].as_bool().unwrap(),
                text("reason"),
            )
        })
        .collect();
    assert_eq!(
        hooks,
        [
            ("no-deploy", "managed", 3, true, "active"),
            (
                "no-deploy",
                "user",
                2,
                true,
                "active as `no-deploy (user)`, because the managed bundle has a hook `no-deploy`"
            ),
            ("own", "user", 5, true, "active"),
            ("unused", "user", 8, false, "`enabled: false`"),
            ("of-project", "project", 2, false, "the bundle is not trusted; run `amplifier hooks trust`"),
        ]
    );
    let line = format!("✗ unused (user, {}:8): `enabled: false`", place.at("home/bundle.yaml").display());
    assert!(out(&output).contains(&line), "{}", out(&output));
}
