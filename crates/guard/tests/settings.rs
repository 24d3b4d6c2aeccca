//! Settings of clients: our hooks come and go, every other byte stays.

use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::settings::{
    HookOptions, HookProgram, SettingsError, codex_trust, codex_untrust, install, installed, missing_events, supported,
    uninstall,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn with_options<T>(run: impl FnOnce(&HookOptions<'_>) -> T) -> T {
    let program = HookProgram::small(PathBuf::from("/opt/amplifier hook/amplifier-hook"));
    run(&HookOptions {
        program: &program,
        folder: Path::new("/home/ada/.local/share/amplifier/guard"),
        limit: Duration::from_secs(330),
        name: "n-1",
    })
}

fn installed_in(client: Client, settings: &str) -> String {
    with_options(|options| install(client, settings, options)).unwrap()
}

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
    for client in supported().filter(|client| *client != Client::Copilot) {
        for settings in SETTINGS {
            let changed = installed_in(client, settings);
            assert_ne!(changed, settings);
            assert_eq!(missing_events(client, &installed(&changed).unwrap()), [""; 0]);
            assert_eq!(uninstall(client, &changed).unwrap(), settings, "{changed}");
            // Installing again changes nothing.
            assert_eq!(installed_in(client, &changed), changed);
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
    assert_eq!((&gemini["hooks"][0]["timeout"], &gemini["hooks"][0]["name"]), (&json!(330_000), &json!("n-1")));
    let copilot = serde_json::from_str::<Value>(&installed_in(Client::Copilot, "")).unwrap();
    assert_eq!((&copilot["version"], &copilot["hooks"]["preToolUse"][0]["timeoutSec"]), (&json!(1), &json!(330)));
    assert_eq!(copilot["hooks"]["preToolUse"][0].get("matcher"), None);
}

#[test]
fn the_command_line_denies_before_the_limit_and_if_the_program_is_missing() {
    let changed = installed_in(Client::Claude, "");
    let hooks = installed(&changed).unwrap();
    let line = |event: &str| hooks.iter().find(|hook| hook.event == event).unwrap().command.clone();
    assert_eq!(
        line("PreToolUse"),
        "/bin/sh -c '\"/opt/amplifier hook/amplifier-hook\" --client claude --event PreToolUse --deadline 325000 \
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

#[test]
fn unusable_settings_and_paths_are_refused() {
    with_options(|options| {
        for (settings, expected) in [
            ("{ // comment\n}", "it is not JSON, so nothing was changed"),
            ("[]", "`the file` is not an object"),
            ("{\"hooks\":[]}", "`hooks` is not an object"),
            ("{\"hooks\":{\"PreToolUse\":{}}}", "`PreToolUse` is not a list"),
            ("{\"hooks\":{},\"hooks\":{}}", "the key `hooks` exists twice"),
        ] {
            let error = install(Client::Claude, settings, options).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(install(Client::Cursor, "", options), Err(SettingsError::Unsupported(Client::Cursor)));
    });
    for path in ["/opt/it's/hook", "/opt/$HOME/hook", "hook", "/a\"b", "/a\nb"] {
        let program = HookProgram::small(path.into());
        let options =
            HookOptions { program: &program, folder: Path::new("/g"), limit: Duration::from_secs(60), name: "n" };
        assert!(install(Client::Claude, "", &options).unwrap_err().to_string().contains("cannot be in a command line"));
    }
}

#[test]
fn codex_trusts_our_hooks_at_their_position() {
    let settings = "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"a\"}]}]}}";
    let hooks = installed(&installed_in(Client::Codex, settings)).unwrap();
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
    let hooks = installed(&installed_in(Client::Codex, "")).unwrap();
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
        let event = amplifier_guard::settings::tool_event(client).unwrap();
        let other = json!({ "type": "command", "command": "lint" });
        settings["hooks"][event][0]["hooks"].as_array_mut().unwrap().insert(0, other.clone());
        let settings = settings.to_string();
        let hooks = installed(&settings).unwrap();
        assert_eq!(missing_events(client, &hooks), [""; 0]);
        let found = hooks.iter().find(|hook| hook.event == event).unwrap();
        assert_eq!((found.group, found.handler), (0, 1));
        let removed = uninstall(client, &settings).unwrap();
        assert_eq!(installed(&removed).unwrap(), []);
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
    let hook = amplifier_guard::settings::InstalledHook {
        event: "PreToolUse".to_owned(),
        group: 0,
        handler: 0,
        command: "/bin/true".to_owned(),
        timeout: 60,
        matcher: Some("*".to_owned()),
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
        prop_assert_eq!(uninstall(Client::Gemini, &changed).unwrap(), settings);
    }
}
