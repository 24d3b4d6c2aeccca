//! Settings of clients: our hooks come and go, every other byte stays.

use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::settings;
use amplifier_guard::settings::{
    DaemonPlace, HookOptions, HookProgram, InstalledHook, Scope, SettingsError, codex_trust, codex_untrust,
    missing_events, problems, tool_event,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const PLACE: &str = "/home/ada/.local/share/amplifier/guard";

fn program() -> HookProgram {
    HookProgram::small(PathBuf::from("/opt/amplifier hook/amplifier-hook"))
}

fn install_at(client: Client, scope: Scope, settings: &str) -> Result<String, SettingsError> {
    let place = match scope {
        Scope::System => DaemonPlace::CallingUser(Path::new("/usr/local/bin/amplifier")),
        _ => DaemonPlace::Folder(Path::new(PLACE)),
    };
    let program = program();
    let options = HookOptions { program: &program, place, limit: Duration::from_secs(330), name: "hook-1" };
    settings::install(client, scope, settings, &options)
}

fn installed_in(client: Client, settings: &str) -> String {
    install_at(client, Scope::User, settings).unwrap()
}

fn installed(client: Client, settings: &str) -> Vec<InstalledHook> {
    settings::installed(client, Scope::User, settings).unwrap()
}

fn uninstalled(client: Client, settings: &str) -> String {
    settings::uninstall(client, Scope::User, settings).unwrap()
}

fn problems_of(client: Client, settings: &str) -> Vec<String> {
    problems(client, &installed(client, settings), &program(), DaemonPlace::Folder(Path::new(PLACE)))
}

/// Clients whose settings are JSON that belongs to the user.
const SHARED: [Client; 4] = [Client::Claude, Client::Codex, Client::Gemini, Client::Cursor];

const SETTINGS: [&str; 7] = [
    "{}",
    "{\"model\":\"opus\"}",
    "{\n  \"model\": \"opus\",\n  \"n\": 1.0e2\n}\n",
    "{\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint \\\"x\\\\\\\" ]}\"}]}\n\t\t]\n\t}\n}\n",
    "{ \"hooks\": { \"Stop\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"a\" } ] } ], \"Other\": 7 }, \"z\": [1,2] }",
    "{\n  \"a\": {\"hooks\": {\"PreToolUse\": []}},\n  \"text\": \"\\u00e9 { [ \\\" \"\n}",
    "{\"hooks\":{\"Notification\":[{\"hooks\":[]}]}}",
];

#[test]
fn to_install_and_uninstall_restores_every_byte() {
    for client in SHARED {
        for settings in SETTINGS {
            // The version that this client needs stays.
            let settings = &if client == Client::Cursor {
                settings.replacen('{', "{\"version\":1,", 1).replace(",}", "}")
            } else {
                settings.to_owned()
            };
            for settings in [settings.clone(), settings.replace('\n', "\r\n")] {
                let changed = installed_in(client, &settings);
                assert_ne!(changed, settings);
                assert_eq!(missing_events(client, &installed(client, &changed)), [""; 0]);
                assert_eq!(uninstalled(client, &changed), settings, "{changed}");
                // Installing again changes nothing.
                assert_eq!(installed_in(client, &changed), changed);
                assert_eq!(problems_of(client, &changed), [""; 0]);
            }
        }
    }
}

#[test]
fn hooks_of_others_stay_first_and_unchanged() {
    let changed: Value = serde_json::from_str(&installed_in(Client::Claude, SETTINGS[3])).unwrap();
    let groups = changed["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["hooks"][0]["command"]), (2, &json!("lint \"x\\\" ]}")));
    assert_eq!(groups[1]["matcher"], "*");
    assert_eq!(groups[1]["hooks"][0]["onFailure"], "block");
}

#[test]
fn each_client_gets_its_own_units_and_form() {
    let hooks = |client| serde_json::from_str::<Value>(&installed_in(client, "")).unwrap()["hooks"].clone();
    let claude = hooks(Client::Claude);
    assert_eq!(claude["PreToolUse"][0]["hooks"][0]["timeout"], 330);
    // Nobody is asked there.
    assert_eq!(claude["Stop"][0]["hooks"][0]["timeout"], 10);
    let codex = hooks(Client::Codex);
    assert_eq!(codex["PreToolUse"][0]["hooks"][0]["timeout"], 330);
    assert_eq!(codex["PreToolUse"][0]["hooks"][0].get("onFailure"), None);
    let gemini = &hooks(Client::Gemini)["BeforeTool"][0];
    assert_eq!((&gemini["hooks"][0]["timeout"], &gemini["hooks"][0]["name"]), (&json!(330_000), &json!("hook-1")));
    let copilot = serde_json::from_str::<Value>(&installed_in(Client::Copilot, "")).unwrap();
    assert_eq!((&copilot["version"], &copilot["hooks"]["preToolUse"][0]["timeoutSec"]), (&json!(1), &json!(330)));
    assert_eq!(copilot["hooks"]["preToolUse"][0].get("matcher"), None);
    let cursor = serde_json::from_str::<Value>(&installed_in(Client::Cursor, "")).unwrap();
    let gate = &cursor["hooks"]["preToolUse"][0];
    assert_eq!((&cursor["version"], &gate["timeout"], &gate["failClosed"]), (&json!(1), &json!(330), &json!(true)));
    assert_eq!(cursor["hooks"]["stop"][0].get("failClosed"), None);
}

#[test]
fn the_command_line_denies_before_the_limit_and_if_the_program_is_missing() {
    let changed = installed_in(Client::Claude, "");
    let hooks = installed(Client::Claude, &changed);
    let line = |event: &str| hooks.iter().find(|hook| hook.event == event).unwrap().command.clone();
    assert_eq!(
        line("PreToolUse"),
        "exec /bin/sh -c 'trap : HUP INT PIPE QUIT TERM; \"/opt/amplifier hook/amplifier-hook\" --client claude \
         --event PreToolUse --deadline 325000 \
         --folder \"/home/ada/.local/share/amplifier/guard\"; [ $? = 0 ] || \
         { echo \"amplifier guard: this call is denied\" >&2; exit 2; }' amplifier-guard"
    );
    for (event, code) in
        [("PreToolUse", 2), ("UserPromptSubmit", 2), ("PostToolUse", 2), ("Stop", 0), ("SessionEnd", 0)]
    {
        let output = std::process::Command::new("/bin/sh").arg("-c").arg(line(event)).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{event}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

/// The settings as an earlier version wrote them.
fn as_before(settings: &str) -> String {
    settings.replace("exec /bin/sh -c 'trap : HUP INT PIPE QUIT TERM; ", "/bin/sh -c '")
}

#[test]
fn lines_of_an_earlier_version_decide_and_can_be_replaced_and_removed() {
    let (program, place) = (program(), DaemonPlace::Folder(Path::new(PLACE)));
    for client in SHARED {
        let now = installed_in(client, "{\"version\":1}");
        let before = as_before(&now);
        let hooks = installed(client, &before);
        assert_eq!(problems_of(client, &before), [""; 0], "{client}");
        assert_eq!(settings::outdated_events(client, &hooks, &program, place).len(), hooks.len());
        assert_eq!(settings::outdated_events(client, &installed(client, &now), &program, place), [""; 0]);
        assert_eq!(installed_in(client, &before), now);
        assert_eq!(installed(client, &uninstalled(client, &before)), []);
    }
    let system = as_before(&install_at(Client::Claude, Scope::System, "").unwrap());
    let hooks = settings::installed(Client::Claude, Scope::System, &system).unwrap();
    let named = HookProgram::from_system_line(&hooks[0].command).unwrap();
    assert_eq!(named, (program, PathBuf::from("/usr/local/bin/amplifier")));
}

#[test]
fn unusable_settings_and_paths_are_refused() {
    for (client, settings, expected) in [
        (Client::Claude, "{ // comment\n}", "it is not JSON, so nothing was changed"),
        (Client::Gemini, "{ /* no end", "it is not JSON, so nothing was changed"),
        (Client::Gemini, "{\"a\": 1, // last\n}", "it is not JSON, so nothing was changed"),
        (Client::Claude, "[]", "`the file` is not an object"),
        (Client::Claude, "{\"hooks\":[]}", "`hooks` is not an object"),
        (Client::Claude, "{\"hooks\":null}", "`hooks` is not an object"),
        (Client::Claude, "{\"hooks\":{\"PreToolUse\":{}}}", "`PreToolUse` is not a list"),
        (Client::Claude, "{\"hooks\":{},\"hooks\":{}}", "the key `hooks` exists twice"),
        (Client::Opencode, "export const Mine = async () => ({});\n", "it was not written by the guard"),
    ] {
        let error = install_at(client, Scope::User, settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for path in ["/opt/it's/hook", "/opt/$HOME/hook", "hook", "/a\"b", "/a\nb"] {
        let program = HookProgram::small(path.into());
        let place = DaemonPlace::Folder(Path::new("/g"));
        let options = HookOptions { program: &program, place, limit: Duration::from_secs(60), name: "n" };
        let error = settings::install(Client::Claude, Scope::User, "", &options).unwrap_err().to_string();
        assert!(error.contains("cannot be in a command line"), "{error}");
    }
}

#[test]
fn line_ends_of_the_file_are_kept() {
    let changed = installed_in(Client::Claude, "{\r\n  \"model\": \"opus\"\r\n}\r\n");
    assert_eq!(changed.matches('\n').count(), changed.matches("\r\n").count());
    assert!(changed.starts_with("{\r\n  \"model\": \"opus\",\r\n  \"hooks\": {\r\n"), "{changed}");
}

#[test]
fn comments_are_kept_in_settings_of_the_client_that_accepts_them() {
    for (settings, comments) in [
        (
            "{\n  // mine: { [ \" é\n  \"model\": \"a // b\" /* last, */\n}\n",
            ["// mine: { [ \" é\n", "\"a // b\"", "/* last, */"],
        ),
        ("{ // nothing yet\n}\n", ["{ // nothing yet\n"; 3]),
        (
            "// head\n{\n  \"hooks\": { /* none */ },\n  \"x\": \"\\\" // no comment\"\n}",
            ["// head\n{", "{ /* none */", "\"\\\" // no comment\""],
        ),
        (
            "{\n  \"hooks\": {\n    \"BeforeTool\": [\n      // lint\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]} // end\n    ]\n  }\n}\n",
            ["// lint\n      {", "\"lint\"}]}", "// end\n"],
        ),
    ] {
        let changed = installed_in(Client::Gemini, settings);
        for comment in comments {
            assert!(changed.contains(comment), "{changed}");
        }
        assert_eq!(missing_events(Client::Gemini, &installed(Client::Gemini, &changed)), [""; 0], "{changed}");
        let restored = uninstalled(Client::Gemini, &changed);
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(plain(&restored), plain(settings), "{restored}");
    }
}

#[test]
fn a_file_of_the_guard_alone_is_empty_after_its_removal() {
    for (client, scope) in [
        (Client::Copilot, Scope::User),
        (Client::Copilot, Scope::System),
        (Client::Claude, Scope::System),
        (Client::Opencode, Scope::User),
        (Client::Codex, Scope::System),
    ] {
        let changed = install_at(client, scope, "").unwrap();
        assert_eq!(missing_events(client, &settings::installed(client, scope, &changed).unwrap()), [""; 0]);
        assert_eq!(install_at(client, scope, &changed).unwrap(), changed);
        assert_eq!(settings::uninstall(client, scope, &changed).unwrap(), "", "{client}");
    }
}

#[test]
fn changes_that_keep_a_hook_from_deciding_are_named() {
    for (client, key, value, expected) in [
        (Client::Claude, "async", json!(true), "at PreToolUse, `async` is true"),
        (Client::Claude, "if", json!("Bash(git *)"), "at PreToolUse, `if` is \"Bash(git *)\""),
        (Client::Claude, "type", json!("prompt"), "at PreToolUse, `type` is \"prompt\""),
        (Client::Claude, "timeout", json!(9), "the time limit 9 ends before the hook denies"),
        (
            Client::Claude,
            "onFailure",
            json!("allow"),
            "`onFailure` is not \"block\", so a failure of the hook does not deny",
        ),
        (Client::Codex, "async", json!(true), "`async` is true"),
        (Client::Gemini, "timeout", json!(330), "the time limit 330 ends before the hook denies"),
        (Client::Copilot, "matcher", json!("bash"), "`matcher` is \"bash\", so it is not called for other tools"),
        (Client::Copilot, "cwd", json!("/elsewhere"), "`cwd` is \"/elsewhere\", which the guard does not write"),
        (
            Client::Cursor,
            "failClosed",
            json!(false),
            "`failClosed` is not true, so a failure of the hook does not deny",
        ),
    ] {
        let mut settings: Value = serde_json::from_str(&installed_in(client, "")).unwrap();
        let entry = &mut settings["hooks"][tool_event(client)][0];
        let handler = if entry.get("hooks").is_some() { &mut entry["hooks"][0] } else { entry };
        handler[key] = value;
        let found = problems_of(client, &settings.to_string());
        assert!(found.iter().any(|problem| problem.contains(expected)), "{client} {key}: {found:?}");
    }
    let narrow = installed_in(Client::Claude, "").replacen("\"matcher\": \"*\"", "\"matcher\": \"Bash\"", 1);
    assert!(problems_of(Client::Claude, &narrow)[0].contains("`matcher` is \"Bash\""));
    let plugin = installed_in(Client::Opencode, "").replace("reject(new Error(reason))", "resolve({})");
    assert!(problems_of(Client::Opencode, &plugin)[0].contains("the plugin differs from that of this version"));
}

#[test]
fn requirements_of_codex_keep_other_tables_and_switch_hooks_on() {
    for before in [
        "",
        "allowed_sandbox_modes = [\"read-only\"] # mine\n",
        "[features] # mine\nother = true\n\n[mcp_servers.one]\nx = 1\n",
        "[features]\nhooks = true\n",
        "[hooks]\nmanaged_dir = \"/opt/hooks\"\n\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"lint\"\n",
        "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"lint\"\n",
    ] {
        let after = install_at(Client::Codex, Scope::System, before).unwrap();
        let parsed: toml::Table = after.parse().unwrap();
        assert_eq!(parsed["features"]["hooks"].as_bool(), Some(true), "{after}");
        let folder = if before.contains("managed_dir") { "/opt/hooks" } else { "/etc/codex" };
        assert_eq!(parsed["hooks"]["managed_dir"].as_str(), Some(folder));
        let hooks = settings::installed(Client::Codex, Scope::System, &after).unwrap();
        let place = DaemonPlace::CallingUser(Path::new("/usr/local/bin/amplifier"));
        assert_eq!(problems(Client::Codex, &hooks, &program(), place), [""; 0], "{after}");
        assert!(
            hooks[0].command.contains("--program \"/usr/local/bin/amplifier\"; [ $? = 0 ]"),
            "{}",
            hooks[0].command
        );
        assert_eq!(install_at(Client::Codex, Scope::System, &after).unwrap(), after);
        assert_eq!(settings::uninstall(Client::Codex, Scope::System, &after).unwrap(), before);
    }
    for (before, expected) in [
        ("[features]\nhooks = false\n", "`features.hooks` is not true"),
        ("features = { other = true }\n", "it would not be TOML"),
        ("[features\n", "it would not be TOML"),
    ] {
        let error = install_at(Client::Codex, Scope::System, before).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn settings_of_the_system_switch_the_hooks_of_gemini_on() {
    let enabled = |settings: &str| serde_json::from_str::<Value>(settings).unwrap()["hooksConfig"]["enabled"].clone();
    for before in [
        "",
        "{\"hooksConfig\": {}}",
        "{\"hooksConfig\": {\"notifications\": false}}",
        "{\"hooksConfig\": {\"enabled\": true}}",
    ] {
        assert_eq!(enabled(&install_at(Client::Gemini, Scope::System, before).unwrap()), json!(true));
    }
    let error = install_at(Client::Gemini, Scope::System, "{\"hooksConfig\":{\"enabled\":false}}").unwrap_err();
    assert!(error.to_string().starts_with("`hooksConfig.enabled` is not true, so nothing was changed"), "{error}");
    assert_eq!(serde_json::from_str::<Value>(&installed_in(Client::Gemini, "")).unwrap().get("hooksConfig"), None);
}

#[test]
fn codex_trusts_our_hooks_at_their_position() {
    let settings = "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"a\"}]}]}}";
    let hooks = installed(Client::Codex, &installed_in(Client::Codex, settings));
    let file = Path::new("/home/ada/.codex/hooks.json");
    let before = "model = \"gpt\" # mine\n\n[features]\nhooks = true\n";
    let config = codex_trust(before, file, &hooks).unwrap();
    let parsed: toml::Table = config.parse().unwrap();
    let state = parsed["hooks"]["state"].as_table().unwrap();
    assert_eq!(state.len(), hooks.len());
    assert!(state.contains_key("/home/ada/.codex/hooks.json:pre_tool_use:1:0"), "{config}");
    assert!(state.contains_key("/home/ada/.codex/hooks.json:user_prompt_submit:0:0"), "{config}");
    assert_eq!(codex_trust(&config, file, &hooks).unwrap(), config);
    assert_eq!(codex_untrust(&config, file, &hooks).unwrap(), before);
    assert!(codex_trust("hooks = 1\n", file, &hooks).is_err());
    assert!(codex_trust("not toml", file, &hooks).is_err());
}

#[test]
fn comments_of_the_user_behind_our_trust_stay() {
    let hooks = installed(Client::Codex, &installed_in(Client::Codex, ""));
    let file = Path::new("/home/ada/.codex/hooks.json");
    let config = codex_trust("model = \"gpt\"\n", file, &hooks).unwrap();
    let config = config + "\n# my servers\n# one\n\n[mcp_servers.one]\ncommand = \"one\"\n";
    let after = codex_untrust(&config, file, &hooks).unwrap();
    assert_eq!(after, "model = \"gpt\"\n# my servers\n# one\n\n[mcp_servers.one]\ncommand = \"one\"\n");
}

#[test]
fn a_hook_in_a_group_with_another_one_is_found_and_removed_alone() {
    for client in [Client::Claude, Client::Codex, Client::Gemini] {
        let mut settings: Value = serde_json::from_str(&installed_in(client, "")).unwrap();
        let event = tool_event(client);
        let other = json!({ "type": "command", "command": "lint" });
        settings["hooks"][event][0]["hooks"].as_array_mut().unwrap().insert(0, other.clone());
        let settings = settings.to_string();
        let hooks = installed(client, &settings);
        assert_eq!(missing_events(client, &hooks), [""; 0]);
        let found = hooks.iter().find(|hook| hook.event == event).unwrap();
        assert_eq!((found.group, found.handler), (0, 1));
        let removed = uninstalled(client, &settings);
        assert_eq!(installed(client, &removed), []);
        let removed: Value = serde_json::from_str(&removed).unwrap();
        assert_eq!(removed["hooks"][event][0]["hooks"], json!([other]));
        if client == Client::Codex {
            let config = codex_trust("", Path::new("/h.json"), &hooks).unwrap();
            assert!(config.contains("[hooks.state.\"/h.json:pre_tool_use:0:1\"]"), "{config}");
        }
    }
}

#[test]
fn the_trust_of_codex_is_the_hash_of_the_sorted_definition() {
    // From the definition that the client hashes, computed by another program.
    let hook = InstalledHook {
        event: "PreToolUse".to_owned(),
        group: 0,
        handler: 0,
        command: "/bin/true".to_owned(),
        timeout: 60,
        matcher: Some("*".to_owned()),
        problems: Vec::new(),
    };
    let config = codex_trust("", Path::new("/c/hooks.json"), &[hook]).unwrap();
    assert!(config.contains("sha256:b7252c14ed4d35df685699f7ddd54da12bc4c6f8ae96b5ee973e08c52373e9b5"), "{config}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_survive_an_installation(keys in prop::collection::btree_map("[a-z]{1,4}", "[ -~é\"\\\\]{0,9}", 1..5), is_pretty in any::<bool>()) {
        let settings = if is_pretty { serde_json::to_string_pretty(&keys) } else { serde_json::to_string(&keys) }.unwrap();
        let changed = installed_in(Client::Gemini, &settings);
        let parsed: Value = serde_json::from_str(&changed).unwrap();
        for (key, value) in &keys {
            prop_assert_eq!(parsed[key].as_str(), Some(value.as_str()));
        }
        prop_assert_eq!(uninstalled(Client::Gemini, &changed), settings);
    }
}
