//! The plugin for opencode, run by Node.js as opencode runs it.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{Guarded, text};

/// Loads the plugin, calls one of its hooks, and prints what it left behind.
const RUNNER: &str = "const { AmplifierGuard } = await import(process.argv[1]);
const [event, input, output] = process.argv.slice(2).map((text, at) => (at ? JSON.parse(text) : text));
const args = output.args;
const hooks = await AmplifierGuard({ directory: process.cwd() });
try {
  await hooks[event](input, output);
  console.log(JSON.stringify({ output, same: args === output.args }));
} catch (error) {
  console.log(JSON.stringify({ thrown: error.message }));
}";

fn call(guarded: &Guarded, event: &str, input: &Value, output: &Value) -> Output {
    let plugin = guarded.place.at("user/.config/opencode/plugin/amplifier-guard.js");
    let module = guarded.place.at("plugin.mjs");
    std::fs::copy(plugin, &module).unwrap();
    Command::new("node")
        .args(["--input-type=module", "-e", RUNNER])
        .arg(module)
        .args([event, &input.to_string(), &output.to_string()])
        .current_dir(guarded.place.at("workspace"))
        .output()
        .unwrap()
}

fn result(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

fn bash(id: &str, command: &str) -> (Value, Value) {
    let input = json!({ "tool": "bash", "sessionID": "ses_1", "callID": id });
    (input, json!({ "args": { "command": command, "description": "scripted" } }))
}

const RULES: &str = "hooks:
  - rule: no-force-push
    on: tool:pre
    when: tool_name == \"Bash\" && tool_input.command.contains(\"push --force\")
    deny: ask before you overwrite history
  - rule: dry
    on: tool:pre
    when: tool_name == \"Bash\" && tool_input.command == \"deploy\"
    modify: { set: { /tool_input/command: deploy --dry-run } }
  - rule: no-passwords
    on: prompt:submit
    when: prompt.contains(\"hunter2\")
    deny: the prompt contains a password
  - rule: remind
    on: tool:post
    inject: run the tests
";

#[test]
fn the_plugin_throws_on_everything_except_a_clear_answer() {
    let guarded = Guarded::new();
    guarded.place.write("home/bundle.yaml", RULES);
    let installed = guarded.guard(&["install", "opencode"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let pre = |id: &str, command: &str| {
        let (input, output) = bash(id, command);
        result(&call(&guarded, "tool.execute.before", &input, &output))
    };
    let allowed = pre("c-1", "ls");
    assert_eq!(allowed, json!({ "output": { "args": { "command": "ls", "description": "scripted" } }, "same": true }));
    let denied = pre("c-2", "git push --force");
    assert_eq!(denied["thrown"], "Denied by hook no-force-push: ask before you overwrite history");
    // The client ignores another object, so the same one changes.
    let changed = pre("c-3", "deploy");
    assert_eq!((&changed["output"]["args"]["command"], &changed["same"]), (&json!("deploy --dry-run"), &json!(true)));

    let (mut input, _) = bash("c-1", "ls");
    input["args"] = json!({ "command": "ls" });
    let after = json!({ "title": "ls", "output": "a\n", "metadata": {} });
    let after = result(&call(&guarded, "tool.execute.after", &input, &after));
    assert_eq!(after["output"]["output"], "a\n\n\nrun the tests");

    let message = json!({ "message": { "id": "m" }, "parts": [{ "type": "text", "text": "use hunter2" }] });
    let prompt = result(&call(&guarded, "chat.message", &json!({ "sessionID": "ses_1" }), &message));
    assert_eq!(prompt["thrown"], "Denied by hook no-passwords: the prompt contains a password");

    // A daemon that cannot start.
    guarded.kill_daemons();
    guarded.place.write("home/guard/start", "program=/nonexistent\n");
    let failed = pre("c-4", "ls");
    assert!(failed["thrown"].as_str().unwrap().contains("cannot be started"), "{failed}");
}

#[test]
fn the_plugin_denies_at_its_own_time_limit_and_after_every_other_answer() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "opencode"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let file = "user/.config/opencode/plugin/amplifier-guard.js";
    let plugin = guarded.place.read(file);
    let line = plugin.lines().find(|line| line.starts_with("const hooks = ")).unwrap().to_owned();
    let answer = |script: &str, limit: u64| {
        let hooks = json!({ "tool.execute.before": { "line": script, "limit": limit } });
        guarded.place.write(file, &plugin.replace(&line, &format!("const hooks = {hooks};")));
        let (input, output) = bash("c-1", "ls");
        result(&call(&guarded, "tool.execute.before", &input, &output))
    };
    for (script, expected) in [
        ("sleep 60", "no decision within the time limit"),
        // A child that keeps the output open.
        ("sleep 60 & echo '{\"decision\":\"proceed\"}'", "no decision within the time limit"),
        ("exit 0", "this call is denied"),
        ("echo '{\"decision\":\"proceed\"}'; exit 1", "this call is denied"),
        ("echo '{\"decision\":\"PROCEED\"}'", "this call is denied"),
        ("echo '{\"decision\":\"proceed\"} more'", "this call is denied"),
        ("echo proceed", "this call is denied"),
        ("echo null", "this call is denied"),
        ("kill -9 $$", "this call is denied"),
        ("echo why >&2; exit 2", "why"),
    ] {
        let answer = answer(script, 1000);
        assert!(answer["thrown"].as_str().is_some_and(|thrown| thrown.contains(expected)), "{script}: {answer}");
    }
    assert_eq!(answer("echo '{\"decision\":\"proceed\"}'", 60_000)["same"], true);
}

#[test]
fn a_plugin_of_somebody_else_is_left_alone() {
    let guarded = Guarded::new();
    let folder = guarded.place.at("user/.config/opencode/plugin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("amplifier-guard.js"), "export const Mine = async () => ({});\n").unwrap();
    let refused = guarded.guard(&["install", "opencode"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("it was not written by the guard, so nothing was changed"), "{}", text(&refused));
}
