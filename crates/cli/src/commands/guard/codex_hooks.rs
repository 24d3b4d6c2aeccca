//! The hooks of Codex as it reports them itself: it skips hooks silently that it does not trust.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use amplifier_guard::settings::InstalledHook;
use serde_json::{Value, json};

/// The time for the answer of the client.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns the installed hooks that Codex does not run in a folder; none if it is not in `PATH`, or cannot report hooks.
pub(super) fn unused(hooks: &[InstalledHook], folder: &Path) -> Option<Vec<String>> {
    let listed = list(folder)?;
    let entries = listed.pointer("/data/0/hooks")?.as_array()?;
    let runs = |hook: &&InstalledHook| {
        let is_same = |entry: &&Value| entry["command"] == hook.command.as_str();
        let is_used = |entry: &Value| {
            entry["enabled"] == true
                && ["trusted", "managed"].contains(&entry["trustStatus"].as_str().unwrap_or_default())
        };
        entries.iter().filter(is_same).any(is_used)
    };
    let unused = hooks.iter().filter(|hook| !runs(hook));
    Some(unused.map(|hook| format!("codex reports that it does not run the hook at {}", hook.event)).collect())
}

/// Asks the client for its hooks in a folder.
fn list(folder: &Path) -> Option<Value> {
    let mut command = Command::new("codex");
    command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let answer = exchange(&mut child, folder);
    // Its answer is all that is needed.
    _ = child.kill();
    _ = child.wait();
    answer
}

fn exchange(child: &mut Child, folder: &Path) -> Option<Value> {
    let lines = lines(child)?;
    // It ends with its input, so the input stays open until the answer.
    let mut input = child.stdin.take()?;
    let start = json!({ "clientInfo": { "name": "amplifier", "version": env!("CARGO_PKG_VERSION") } });
    for message in [
        json!({ "method": "initialize", "id": 1, "params": start }),
        json!({ "method": "initialized" }),
        json!({ "method": "hooks/list", "id": 2, "params": { "cwds": [folder] } }),
    ] {
        writeln!(input, "{message}").ok()?;
    }
    input.flush().ok()?;
    let end = Instant::now() + LIMIT;
    loop {
        let line = lines.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if message["id"] == 2 {
            return message.get("result").cloned();
        }
    }
}

fn lines(child: &mut Child) -> Option<Receiver<String>> {
    let output = child.stdout.take()?;
    let (send, receive) = channel();
    thread::spawn(move || {
        // Ends with the client.
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    Some(receive)
}
