//! `amplifier fleet`: an organisation with a real server, an administrator and a machine.

#![cfg(all(unix, feature = "fleet"))]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{LIMIT, Place, Ran, Running, is_possible, with_input};
use crate::serve::Served;

const POLICY: &str = "session: { confirm: writes }
hooks:
  - rule: no-deploy
    on: tool:pre
    when: tool_name == \"Bash\" && tool_input.command.contains(\"deploy\")
    deny: people deploy
";

/// Waits for a value.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An organisation with one server.
struct Organisation {
    place: Place,
    program: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Organisation {
    /// Creates an organisation. `None` without a server program, which is then named.
    #[allow(clippy::print_stderr, reason = "whoever reads the output of the tests has to know")]
    fn new() -> Option<Self> {
        let Some(program) = std::env::var_os("NATS_SERVER") else {
            assert!(std::env::var_os("CI").is_none(), "CI needs `NATS_SERVER`");
            eprintln!("not run: set `NATS_SERVER` to a NATS server, for example with `.ci/nats-server`");
            return None;
        };
        let call = |command: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": command } }] });
        let place = Place::with(json!([call("touch deploy"), { "text": "Done." }]));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut organisation = Self { place, program: program.into(), port, server: None };
        let (server, store) = (format!("nats://127.0.0.1:{port}"), organisation.place.at("store"));
        let created = organisation.admin(&["init", "--server", &server, "--store", store.to_str().unwrap()]).fine();
        assert!(created.contains("nats-server --config nats-1.conf"), "{created}");
        organisation.start_server();
        let token = organisation.admin(&["add", "ann", "--role", "admin"]).fine();
        let joined = with_input(organisation.admin_command(&["join"]), &token).fine();
        assert!(joined.starts_with("Joined as ann, in the group all; no policy yet"), "{joined}");
        organisation.admin(&["streams", "--records", "1"]).fine();
        Some(organisation)
    }

    fn start_server(&mut self) {
        let folder = self.place.at("workspace/organisation/servers");
        let mut command = Command::new(&self.program);
        command.args(["--config", "nats-1.conf"]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.spawn().unwrap());
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(start.elapsed() < LIMIT, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    fn admin_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(&[&["fleet"], arguments].concat());
        command.env("AMPLIFIER_HOME", self.place.at("admin"));
        command
    }

    /// Runs a command as the administrator.
    fn admin(&self, arguments: &[&str]) -> Ran {
        Running::start(self.admin_command(arguments)).end()
    }

    /// Runs a command on the machine.
    fn machine(&self, arguments: &[&str]) -> Ran {
        self.place.amplifier(&[&["fleet"], arguments].concat())
    }

    /// Enrols the machine.
    fn enrol(&self) -> String {
        let token = self.admin(&["add", "m1"]).fine();
        with_input(self.place.command(&["fleet", "join"]), &token).fine()
    }

    fn publish(&self, name: &str, bundle: &str) -> Ran {
        let folder = self.place.at(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("bundle.yaml"), bundle).unwrap();
        self.admin(&["policy", "publish", folder.to_str().unwrap()])
    }

    /// `true` if the policy denies what the model does.
    fn denies(&self) -> bool {
        _ = fs::remove_file(self.place.at("workspace/deploy"));
        let ran = self.place.run(&["--confirm", "off", "--allow-denials", "Go on"]);
        assert_eq!(ran.code, 0, "{}", ran.error);
        let denied = ran.error.contains("people deploy");
        assert_eq!(self.place.at("workspace/deploy").exists(), !denied);
        denied
    }

    fn doctor(&self) -> Value {
        serde_json::from_str(&self.place.amplifier(&["doctor", "--json"]).out).unwrap()
    }

    fn fleet_check(&self) -> (bool, String) {
        let report = self.doctor();
        let check = report["findings"].as_array().unwrap().iter().find(|check| check["what"] == "fleet").unwrap();
        (check["ok"].as_bool().unwrap(), check["about"].as_str().unwrap().to_owned())
    }
}

impl Drop for Organisation {
    fn drop(&mut self) {
        self.stop_server();
    }
}

#[test]
fn a_machine_that_joins_has_the_policy_of_its_organisation_with_and_without_the_centre() {
    let Some(mut organisation) = Organisation::new() else { return };
    assert!(organisation.publish("policy", POLICY).fine().starts_with("all version 1, from "));
    let joined = organisation.enrol();
    assert_eq!(joined, "Joined as m1, in the group all; policy version 1 is active\n");
    let address = format!("nats://127.0.0.1:{}", organisation.port);
    assert_eq!(organisation.place.read("home/config.toml"), format!("fleet = \"{address}\"\n"));
    assert!(organisation.denies());
    // The user cannot switch it off.
    let off = "hooks:\n  - rule: no-deploy\n    on: tool:pre\n    enabled: false\n    deny: never\n";
    organisation.place.write("home/bundle.yaml", off);
    assert!(organisation.denies());
    let report = organisation.doctor();
    assert_eq!(report["hooks"][0]["level"], "fleet");
    assert_eq!(report["hooks"][1]["reason"], "`enabled: false`");
    let (is_well, about) = organisation.fleet_check();
    assert!(is_well && about.contains("m1 at") && about.ends_with("policy version 1"), "{about}");
    let machine: Value = serde_json::from_str(&organisation.admin(&["status", "--json"]).fine()).unwrap();
    assert_eq!((&machine["name"], &machine["version"]), (&json!("m1"), &json!(1)));
    // A machine sees no others.
    assert_ne!(organisation.machine(&["status"]).code, 0);
    organisation.stop_server();
    assert!(organisation.denies());
    let (is_well, about) = organisation.fleet_check();
    assert!(!is_well && about.contains("policy version 1; the centre"), "{about}");
}

#[test]
fn a_running_session_follows_a_new_version() {
    let Some(organisation) = Organisation::new() else { return };
    organisation.publish("empty", "hooks: []\n").fine();
    organisation.enrol();
    let place = &organisation.place;
    let call = |command: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": command } }] });
    let wait = "touch begun; until [ -e go ]; do sleep 0.05; done";
    place.answers(json!([call(wait), call("touch deploy"), { "text": "Done." }]));
    let session = Running::start(place.scripted(&["run", "--confirm", "off", "--allow-denials", "Go on"]));
    until("the session begins", || place.at("workspace/begun").exists().then_some(()));
    organisation.publish("policy", POLICY).fine();
    let follows = || place.read("home/fleet/policy/pointer").contains("\"version\":2").then_some(());
    until("the machine follows", follows);
    place.write("workspace/go", "");
    let ran = session.end();
    assert!(ran.code == 0 && ran.error.contains("people deploy"), "{}", ran.error);
    assert!(!place.at("workspace/deploy").exists());
}

#[test]
fn a_console_answers_a_machine_and_has_its_verified_records() {
    let Some(organisation) = Organisation::new() else { return };
    let (place, home) = (&organisation.place, organisation.place.at("console"));
    let at_console = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("AMPLIFIER_HOME", &home);
        command
    };
    // The policy has the keys of the console.
    let token = organisation.admin(&["add", "hq", "--role", "console", "--role", "collector"]).fine();
    organisation.publish("empty", "hooks: []\n").fine();
    with_input(at_console(&["fleet", "join"]), &token).fine();
    organisation.enrol();
    let served = Served::begin(at_console(&["serve", "--fleet", "--listen", "127.0.0.1:0", "--json"]));
    let ask = |method: &str, path: &str, body: &str| -> Value {
        let token = fs::read_to_string(home.join("server/token")).unwrap();
        let header = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
        let (status, answer) = served.ask(method, path, &header, body);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.rsplit("\r\n\r\n").next().unwrap()).unwrap()
    };

    // Nobody can be asked at the machine.
    let session = Running::start(place.scripted(&["run", "Go on"]));
    let request = until("the console shows the request", || {
        ask("GET", "/api/approvals?machine=m1", "")["approvals"].get(0).cloned()
    });
    assert_eq!((&request["machine"], &request["prompt"]), (&json!("m1"), &json!("Run `touch deploy`?")));
    let answer = json!({ "option": "Allow once", "nonce": request["nonce"] }).to_string();
    let path = format!("/api/approvals/{}/answer", request["id"].as_str().unwrap());
    assert_eq!(ask("POST", &path, &answer)["granted"], true);
    let ran = session.end();
    assert_eq!(ran.code, 0, "{}", ran.error);
    assert!(place.at("workspace/deploy").exists() && !ran.error.contains("has not received"), "{}", ran.error);

    // The session has waited for the receipt of its last records.
    let reports = Running::start(at_console(&["fleet", "verify", "--json"])).end().fine();
    let report: Value = serde_json::from_str(&reports).unwrap();
    let local: Value = serde_json::from_str(&place.amplifier(&["audit", "verify", "--json"]).fine()).unwrap();
    assert_eq!((&report["machine"], &report["sound"]), (&json!("m1"), &json!(true)));
    assert_eq!(report["size"], local["size"]);
    // The last record may be the checkpoint itself.
    assert!(report["receipts"][0]["size"].as_u64().unwrap() + 1 >= local["size"].as_u64().unwrap(), "{report}");
    let granted = ["fleet", "query", "--machine", "m1", "--decision", "granted", "--json"];
    let granted = Running::start(at_console(&granted)).end().fine();
    let granted: Value = serde_json::from_str(&granted).unwrap();
    assert_eq!((&granted["machine"], &granted["record"]["kind"]), (&json!("m1"), &json!("approval_decision")));
    served.end("TERM");

    // A mirror that was changed is not sound.
    let log = report["log"].as_str().unwrap();
    let segment = home.join(format!("mirrors/m1/{log}/seg-000001.jsonl"));
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("touch deploy", "touch deploi", 1)).unwrap();
    let changed = Running::start(at_console(&["fleet", "verify"])).end();
    assert_eq!(changed.code, 1, "{}", changed.out);
}

#[test]
fn a_new_version_counts_from_the_next_session_and_is_rolled_back() {
    let Some(organisation) = Organisation::new() else { return };
    organisation.publish("policy", POLICY).fine();
    organisation.enrol();
    assert!(organisation.denies());
    organisation.publish("empty", "hooks: []\n").fine();
    assert_eq!(organisation.machine(&["sync"]).fine(), "policy version 2 is active\n");
    assert!(!organisation.denies());
    assert!(organisation.admin(&["policy", "rollback", "all", "1"]).fine().starts_with("all version 3, "));
    organisation.machine(&["sync"]).fine();
    assert!(organisation.denies());
    assert_eq!(organisation.admin(&["policy", "list"]).fine().lines().count(), 3);
    // A bundle with a mistake is not published.
    assert!(organisation.publish("bad", "nonsense: 1\n").error.contains("unknown key `nonsense`"));
}

#[test]
fn users_cannot_leave_a_fleet_that_their_machine_belongs_to() {
    let Some(organisation) = Organisation::new() else { return };
    organisation.publish("policy", POLICY).fine();
    if !is_possible(&[]) {
        return;
    }
    // The user is the administrator of a namespace with its own `/etc`, also of what `sudo` would do.
    let script = "mount -t tmpfs -o mode=755 tmpfs /etc; umask 022; echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd
        joined=$($AMPLIFIER fleet join --system); echo \"$joined\"; stat -c '%a %n' /etc/amplifier/fleet/*
        go() { $AMPLIFIER run --confirm off --allow-denials 'Go on' 2>&1 | grep -oE 'people deploy|policy of the organisation is missing'; }
        echo first; go
        $AMPLIFIER fleet leave || echo code $?
        echo second; go
        rm -r $AMPLIFIER_HOME/fleet; echo removed; go
        export AMPLIFIER_HOME=$PWD/../elsewhere; echo elsewhere; go; $AMPLIFIER fleet sync; go
        chmod o+w /etc/amplifier/fleet/member.json; $AMPLIFIER run 'Go on' || echo code $?; chmod o-w /etc/amplifier/fleet/member.json
        $AMPLIFIER fleet leave --system >/dev/null; echo left; go";
    let mut command = Command::new("unshare");
    command.args(["-Urmpf", "--mount-proc", "bash", "-uc", script]).env_clear();
    command.current_dir(organisation.place.at("workspace")).env("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier"));
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("AMPLIFIER_HOME", organisation.place.at("home"));
    command.env("AMPLIFIER_SCRIPT", organisation.place.at("script.json"));
    let token = organisation.admin(&["add", "m1"]).fine();
    let Ran { out, error, .. } = with_input(command, &token);
    let expected = "Joined as m1, in the group all; policy version 1 is active
644 /etc/amplifier/fleet/member.json
first\npeople deploy
code 1
second\npeople deploy
removed\npolicy of the organisation is missing
elsewhere\npolicy of the organisation is missing
policy version 1 is active\npeople deploy
code 1
left
";
    assert_eq!(out, expected, "{error}");
    assert!(error.contains("`/etc/amplifier/fleet/member.json` can be changed by another user"), "{error}");
}

#[test]
fn no_session_starts_with_a_changed_policy() {
    let Some(organisation) = Organisation::new() else { return };
    organisation.publish("policy", POLICY).fine();
    organisation.enrol();
    let pointer = organisation.place.read("home/fleet/policy/pointer");
    let hash = pointer.split("\"bundle\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    organisation.place.write(&format!("home/fleet/policy/{hash}/bundle.yaml"), "hooks: []\n");
    let refused = organisation.place.run(&["Go on"]);
    assert!(refused.code != 0 && refused.error.contains("its files differ from those that were signed"), "{refused:?}");
    // The centre repairs it.
    assert_eq!(organisation.machine(&["sync"]).fine(), "policy version 1 is active\n");
    assert!(organisation.denies());
}

#[test]
fn a_machine_that_was_revoked_or_left_is_gone() {
    let Some(organisation) = Organisation::new() else { return };
    organisation.enrol();
    assert!(organisation.admin(&["list"]).fine().contains("m1"));
    let revoked = organisation.admin(&["revoke", "m1"]).fine();
    assert!(revoked.contains("nats-server --signal reload"), "{revoked}");
    organisation
        .admin(&["revoke", "m1"])
        .check_failed("amplifier: unknown name `m1`; `amplifier fleet list` shows all names");
    let server = organisation.server.as_ref().unwrap().id();
    assert!(Command::new("kill").args(["-HUP", &server.to_string()]).status().unwrap().success());
    let start = Instant::now();
    while organisation.machine(&["sync"]).code == 0 {
        assert!(start.elapsed() < LIMIT, "the machine can still connect");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(organisation.machine(&["leave"]).fine(), "Left; revoke the identity, too: amplifier fleet revoke m1\n");
    assert_eq!(organisation.place.read("home/config.toml"), "");
    organisation.machine(&["sync"]).check_usage("amplifier: this machine has not joined; run `amplifier fleet join`");
    organisation.place.write("home/config.toml", "fleet = \"tls://nats.example\"\n");
    assert!(organisation.place.run(&["Go on"]).error.contains("`fleet` is set, but this machine has not joined"));
}
