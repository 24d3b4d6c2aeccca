//! The clients in Python and TypeScript, as programs use them: against `amplifier serve` with a session in it that asks.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Place, Ran, Running, send_signal};
use serde_json::{Value, json};

/// A server, in a place where the model makes a file, and somebody who may only look.
struct Served {
    place: Place,
    child: Child,
    url: String,
    viewer: String,
}

impl Served {
    fn new() -> Self {
        let place = Place::with(json!([
            { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
            { "text": "Done." },
        ]));
        // Rules of a project that cannot be read, because nothing says which it is.
        fs::create_dir_all(place.at("home/projects").join("0".repeat(32))).unwrap();
        let mut command = place.scripted(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command.env("USER", "ada").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let began: Value = serde_json::from_str(&line).unwrap();
        let viewer = place.amplifier(&["serve", "token", "add", "watcher"]).out.trim().to_owned();
        Self { place, child, url: began["url"].as_str().unwrap().to_owned(), viewer }
    }

    /// Runs a program to its end, and checks that it found all as it should be.
    fn check(mut self, mut program: Command) {
        program.env("AMPLIFIER_HOME", self.place.at("home"));
        let Ran { code, out, error } = Running::start(program).end();
        assert_eq!((code, out.as_str()), (0, "All of it held.\n"), "{error}");
        assert!(self.place.at("workspace/made").exists());
        send_signal("TERM", self.child.id());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let decisions = self.place.amplifier(&["audit", "export", "--kind", "approval_decision"]).fine();
        assert!(decisions.contains("\"ada\"") && decisions.contains("\"api\""), "{decisions}");
        let late = self.place.amplifier(&["audit", "export", "--kind", "late_answer"]).fine();
        assert!(late.contains("\"ada\""), "{late}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn tour(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Runs a tool that has to be there, and checks that it succeeds.
fn tool(command: &mut Command) {
    let name = command.get_program().display().to_string();
    let done = command.output().unwrap_or_else(|error| panic!("`{name}` is missing ({error}): `./test` installs it"));
    let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{command:?}: {}{}", said(&done.stdout), said(&done.stderr));
}

#[test]
fn the_python_client_does_what_it_says() {
    let client = root().join("clients/python");
    let lines = fs::read_to_string(client.join("amplifier_client.py")).unwrap().lines().count();
    assert!(lines < 200, "it is meant to be read: {lines} lines");
    let served = Served::new();
    let mut python = Command::new("python3");
    python.arg(tour("tour.py")).arg(served.place.at("workspace")).args([&served.url, &served.viewer]);
    python.env("PYTHONPATH", client).env("PYTHONDONTWRITEBYTECODE", "1");
    // It sends its token to nobody else.
    python.env("http_proxy", "http://127.0.0.1:9");
    served.check(python);
}

#[test]
fn the_typescript_client_does_what_it_says() {
    let client = root().join("clients/typescript");
    let text = fs::read_to_string(client.join("amplifier.ts")).unwrap();
    assert!(text.lines().count() < 200, "it is meant to be read: {} lines", text.lines().count());
    tool(Command::new("node").arg("--version"));
    // Kept, because it is fetched. `npm ci` takes exactly what the lock file says.
    let kept = root().join("target/clients");
    fs::create_dir_all(&kept).unwrap();
    let lock = fs::read_to_string(client.join("package-lock.json")).unwrap();
    if fs::read_to_string(kept.join("installed")).ok() != Some(lock.clone()) {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(client.join(file), kept.join(file)).unwrap();
        }
        tool(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&kept));
        fs::write(kept.join("installed"), lock).unwrap();
    }
    let served = Served::new();
    let built = served.place.at("built");
    fs::create_dir(&built).unwrap();
    fs::copy(client.join("package.json"), built.join("package.json")).unwrap();
    fs::write(built.join("amplifier.ts"), text).unwrap();
    fs::copy(client.join("types.ts"), built.join("types.ts")).unwrap();
    fs::copy(tour("tour.ts"), built.join("tour.ts")).unwrap();
    let options = ["--strict", "--noUncheckedIndexedAccess", "--noUnusedLocals", "--exactOptionalPropertyTypes"];
    let target = ["--target", "es2023", "--module", "es2022", "--moduleResolution", "bundler", "--types", ""];
    let libraries = ["--lib", "es2023,dom,dom.iterable", "tour.ts"];
    tool(
        Command::new(kept.join("node_modules/.bin/tsc")).args(options).args(target).args(libraries).current_dir(&built),
    );
    let token = served.place.read("home/server/token");
    let mut node = Command::new("node");
    node.arg(built.join("tour.js")).arg(served.place.at("workspace"));
    node.args([&served.url, token.trim(), &served.viewer]);
    served.check(node);
}
