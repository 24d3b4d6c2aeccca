//! `amplifier guard test --live`: with clients that behave as the installed ones, well and badly.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Guarded, text};

/// A client that asks its model, runs the hook before a tool, and then the tool. Its prompt is the argument after `exec`'s options.
const CLIENT: &str = r#"#!/usr/bin/env python3
import json, os, subprocess, sys, urllib.request
sys.stdin.close()
if "--version" in sys.argv: sys.exit(print("claude 2.1.325"))
WITH_HOOKS, WITH_MODEL = "no-hooks" not in os.environ["MODE"], "no-model" not in os.environ["MODE"]
if not WITH_MODEL: sys.exit(print("no credit left"))
messages = [{"role": "user", "content": sys.argv[sys.argv.index("-p") + 1]}]
def ask():
    body = {"model": "m", "stream": False, "tools": [{"name": "Bash"}], "messages": messages}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))
answer = ask()
call = answer["content"][0]
hooks = json.load(open(os.environ["HOME"] + "/.claude/settings.json"))["hooks"]["PreToolUse"][0]["hooks"] if WITH_HOOKS else []
payload = {"session_id": "live-1", "prompt_id": "p", "cwd": os.getcwd(), "hook_event_name": "PreToolUse",
           "tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"]}
ended = [subprocess.run(["/bin/sh", "-c", hook["command"]], input=json.dumps(payload).encode(), capture_output=True) for hook in hooks]
denied = [one.stderr.decode() for one in ended if one.returncode == 2]
if not denied: subprocess.run(["/bin/bash", "-c", call["input"]["command"]], capture_output=True)
messages += [{"role": "assistant", "content": answer["content"]},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "".join(denied)}]}]
print(ask()["content"][0]["text"])
"#;

#[test]
fn a_live_test_passes_only_if_the_client_calls_the_hook_and_the_log_has_the_denial() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    fs::create_dir(guarded.place.at("bin")).unwrap();
    fs::write(guarded.place.at("bin/claude"), CLIENT).unwrap();
    fs::set_permissions(guarded.place.at("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |mode: &str| {
        let path = format!("{}:{}", guarded.place.at("bin").display(), std::env::var("PATH").unwrap());
        let mut command = guarded.place.command(&["guard", "test", "claude", "--live"]);
        command.env("HOME", guarded.place.at("user")).env("PATH", path).env("MODE", mode).output().unwrap()
    };
    let tested = run("");
    let both = "claude (user): denied and recorded\nclaude (live): denied and recorded\n";
    assert_eq!((tested.status.code(), text(&tested).as_str()), (Some(0), both));
    for (mode, expected) in [
        ("no-hooks", "claude (live): the tool ran: claude does not wait for the hook"),
        (
            "no-model",
            "claude (live): claude did not ask the scripted model; its settings may name another one: no credit left",
        ),
    ] {
        let tested = run(mode);
        assert_eq!(tested.status.code(), Some(1));
        assert!(text(&tested).contains(expected), "{}", text(&tested));
    }
    // A client that is not installed.
    let missing = guarded.guard(&["test", "claude", "--live"]);
    assert!(text(&missing).contains("claude (live): `claude` cannot be started"), "{}", text(&missing));
}
