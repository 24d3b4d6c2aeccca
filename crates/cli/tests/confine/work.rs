//! What commands can still do.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{World, bash, is_possible};
use crate::common::{Ran, Running};

#[test]
fn ordinary_work_goes_on() {
    let world = World::new();
    let identity = "-c user.name=a -c user.email=b@c";
    let results = world.does(&[
        bash(&format!("git init -q . && git add src && git {identity} commit -qm first && git log --format=%s")),
        bash("echo made > src/made && mv src/made src/moved && cat src/moved && rm src/moved"),
        bash("mkdir -p target/a && cp src/main.rs target/a && ln target/a/main.rs target/b && rm -r target && echo linked"),
        bash("f=$(mktemp) && echo temporary > $f && cat $f && rm $f"),
        bash("cat ../outer/home/trust.json hooks/check.sh"),
        bash("yes | head -1"),
        bash("id -u > src/who && test -O src/who && rm src/who && echo mine"),
        bash("sleep 1000 & kill $! && wait $!; echo ended by $?"),
        bash("cat << END\n$(seq 3)\nEND"),
        bash("echo before; exit 7"),
        bash("kill -TERM $$"),
        ("Bash", json!({ "command": "echo begun; sleep 1000", "timeout": 5 })),
        bash("no-such-program"),
    ]);
    let expected = [
        "first",
        "made",
        "linked",
        "temporary",
        "{}exit 0",
        "y",
        "mine",
        "ended by 143",
        "1\n2\n3",
        "Error: before\nexit code 7",
        "Error: ended by signal 15",
        "Error: begun\nended after 5 s: time limit exceeded",
        "Error: bash: line 1: no-such-program: command not found\nexit code 127",
    ];
    assert_eq!(results, expected);
}

/// Which files are open in a shell.
const OPEN: &str = "ls /proc/$$/fd; true";

#[test]
fn a_command_has_no_rights_no_files_of_the_agent_and_no_way_to_its_secrets() {
    if !is_possible(&[]) {
        return;
    }
    let world = World::new();
    let results = world.does(&[
        bash("grep -E 'CapPrm|CapEff|CapInh|NoNewPrivs' /proc/self/status | tr -s '\\t\\n' ' '"),
        bash(OPEN),
        bash("cat /proc/$PPID/environ"),
        bash("ps -o args= -p $$ | head -c 7"),
    ]);
    assert_eq!(
        results[0].trim(),
        "CapInh: 0000000000000000 CapPrm: 0000000000000000 CapEff: 0000000000000000 NoNewPrivs: 1"
    );
    assert_eq!(results[1], "0\n1\n2");
    assert!(results[2].contains("Permission denied"), "{}", results[2]);
    assert_eq!(results[3], "bash -c");
}

#[test]
fn a_stop_ends_a_confined_command_and_all_it_began() {
    let world = World::new();
    let command = "exec 3> alive; sleep 1000 & sh -c 'sleep 1000' & echo runs >&3; wait";
    world.0.answers(
        json!([{ "tools": [{ "name": "Bash", "input": { "command": command } }] }, { "text": "Never said." }]),
    );
    let alive = world.0.pipe("workspace/alive");
    let mut running = Running::start(world.command(&["run", "Begin"]));
    assert_eq!(alive.line(), "runs");
    running.signal("INT");
    running.until("Ctrl-C again stops it now");
    running.signal("INT");
    assert_eq!(running.end().code, 130);
    alive.check_closes();
}

/// A server whose tool tries to write to two files.
const SERVER: &str = r#"
import json, sys

def tried(file):
    try:
        open(file, "w").close()
        return "written"
    except OSError as error:
        return error.strerror

for line in sys.stdin:
    request = json.loads(line)
    tools = [{"name": "try", "inputSchema": {"type": "object"}}]
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}},
        "tools/list": {"tools": tools},
        "tools/call": {"content": [{"type": "text", "text": tried("../outer/home/trust.json") + ", " + tried("src/new")}]},
    }
    if request.get("method") in results:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}), flush=True)
"#;

#[test]
fn an_mcp_server_is_confined_as_commands_are() {
    if !is_possible(&[]) {
        return;
    }
    let world = World::new();
    world.0.write("server.py", SERVER);
    let file = world.0.at("server.py").display().to_string();
    world.0.write("outer/home/config.toml", &format!("[mcp.test]\ncommand = \"python3\"\nargs = [\"{file}\"]\n"));
    assert_eq!(world.does(&[("mcp__test__try", json!({}))]), ["Read-only file system, written"]);
}

#[test]
fn no_tool_changes_the_program_of_an_mcp_server() {
    let world = World::new();
    world.0.write("workspace/server.py", SERVER);
    world.0.write("workspace/hooks/own.sh", "#!/bin/sh\nexec python3 server.py\n");
    fs::set_permissions(world.0.at("workspace/hooks/own.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    world.0.write("workspace/hooks/bundle.yaml", "tools: { mcp: { own: { command: ./own.sh } } }\n");
    world.0.write("outer/home/config.toml", "[mcp.test]\ncommand = \"python3\"\nargs = [\"server.py\"]\n");
    for file in ["server.py", "hooks/own.sh"] {
        let results = world.does(&[
            ("Write", json!({ "file_path": file, "content": "x" })),
            bash(&format!("echo x > {file} || echo kept")),
        ]);
        assert!(results[0].contains("tools cannot change"), "{file}: {}", results[0]);
        // Where commands cannot be confined, they are judged by what is seen of them.
        assert!(results[1].contains(if is_possible(&[]) { "kept" } else { "Denied" }), "{file}: {}", results[1]);
    }
}

#[test]
fn an_mcp_server_that_is_not_there_is_named() {
    let world = World::new();
    world.0.write("outer/home/config.toml", "[mcp.test]\ncommand = \"no-such-program\"\n");
    let ran = Running::start(world.command(&["run", "Begin"])).end();
    assert_eq!(ran.code, 1);
    assert!(ran.error.contains("the MCP server `test`") && ran.error.contains("`no-such-program`"), "{}", ran.error);
}

#[test]
fn a_link_that_commands_could_turn_is_pointed_out() {
    if !is_possible(&[]) {
        return;
    }
    let world = World::new();
    let note = "is a link that commands can redirect; name the target instead: `";
    let (_, Ran { error, .. }) = world.does_with(&[], |program| program);
    assert!(!error.contains(note), "{error}");
    std::os::unix::fs::symlink("hooks/check.sh", world.0.at("workspace/linked.sh")).unwrap();
    world.0.write(
        "workspace/hooks/bundle.yaml",
        "events: [my:event]\nhooks:\n  - command: ../linked.sh\n    on: my:event\n",
    );
    let (_, Ran { error, .. }) = world.does_with(&[], |program| program);
    assert!(error.contains("workspace/linked.sh` ") && error.contains(note), "{error}");
}
