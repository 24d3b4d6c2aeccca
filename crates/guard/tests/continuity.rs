//! Sessions whose guard is switched off, whose daemon is killed, and whose agents have sub-agents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use amplifier_guard::daemon::{Daemon, DaemonOptions};
use amplifier_guard::settings::{ClientFolders, DaemonPlace, HookOptions, HookProgram, Scope, install, settings_file};
use amplifier_guard::{Client, HookOutput};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::daemon::{Place, check_denied, receive};

impl Place {
    /// Kills the daemon, and starts another.
    pub(crate) async fn restart(&mut self) {
        let daemon = self.daemon.take().unwrap();
        daemon.abort();
        assert!(daemon.await.unwrap_err().is_cancelled());
        self.start(Duration::from_secs(600)).await;
    }

    /// Installs the guard in the settings of the project.
    fn install(&self, client: Client) -> std::path::PathBuf {
        let file = settings_file(client, Scope::Project, &ClientFolders::new("/", self.repo())).unwrap();
        let program = HookProgram::small("/opt/amplifier-hook".into());
        let place = DaemonPlace::Folder(Path::new("/g"));
        let options = HookOptions { program: &program, place, limit: Duration::from_secs(60), name: "n" };
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, install(client, Scope::Project, "", &options).unwrap()).unwrap();
        file
    }

    async fn payload_of(&self, client: &str, event: &str, payload: &Value) -> HookOutput {
        receive(self.send(client, event, 20_000, payload.to_string().as_bytes()).await).await.unwrap()
    }

    /// Runs a command in a session of Copilot, whose sub-agents have sessions of their own.
    async fn copilot(&self, session: &str, parent: Option<&str>, command: &str) -> HookOutput {
        let mut payload = json!({
            "sessionId": session, "cwd": self.repo(), "toolName": "bash", "toolArgs": { "command": command },
        });
        if let Some(parent) = parent {
            payload["agentId"] = session.into();
            payload["parentAgentId"] = parent.into();
        }
        self.payload_of("copilot", "preToolUse", &payload).await
    }

    /// Sends a call of Gemini CLI, which has no ids of calls.
    async fn gemini(&self, event: &str, agent: Option<&str>, name: &str) -> HookOutput {
        let mut payload = json!({
            "session_id": "s-gm", "cwd": self.repo(), "hook_event_name": event, "tool_name": name, "tool_input": {},
            "reason": "exit",
        });
        if event == "AfterTool" {
            payload["tool_response"] = json!({ "llmContent": "x" });
        }
        if let Some(agent) = agent {
            payload["agent_id"] = agent.into();
        }
        self.payload_of("gemini", event, &payload).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_is_switched_off_or_removed_during_a_session_denies_and_is_recorded() {
    let mut place = Place::started("hooks: []\n").await;
    let settings = place.install(Client::Claude);
    let installed = fs::read_to_string(&settings).unwrap();
    let (repo, sub) = (place.repo(), place.repo().join("sub"));
    assert_eq!(place.list_in("session-1", repo.clone()).await.code, 0);
    for (file, text, expected) in [
        (repo.join(".claude/settings.local.json"), "{\"disableAllHooks\": true}", "switched off during the session"),
        (settings.clone(), "{}", "the guard was removed from"),
        (settings.clone(), &installed.replace("\"*\"", "\"Nothing\""), "the guard was removed from"),
    ] {
        let before = fs::read_to_string(&file).ok();
        fs::write(&file, text).unwrap();
        for _ in 0..2 {
            check_denied(&place.list_in("session-1", repo.clone()).await, expected);
            check_denied(&place.list_in("session-1", sub.clone()).await, expected);
        }
        // The state at the start of the session outlives the daemon.
        place.restart().await;
        check_denied(&place.list_in("session-1", repo.clone()).await, expected);
        // A session that starts now is called by its client in spite of it.
        let start = json!({ "session_id": "session-2", "source": "startup" });
        assert_eq!(place.call("SessionStart", start).await.code, 0);
        assert_eq!(place.list_in("session-2", repo.clone()).await.code, 0);
        match before {
            Some(before) => fs::write(&file, before).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        assert_eq!(place.list_in("session-1", repo.clone()).await.code, 0);
    }
    // Once for each cause and daemon.
    assert_eq!(place.records(&["session-1", "guard:disabled", "\"event\""]), 6);
    // Settings in another folder count for an agent that started there.
    let sub = repo.join("sub");
    assert_eq!(place.list_in("session-3", sub.clone()).await.code, 0);
    fs::create_dir(sub.join(".claude")).unwrap();
    fs::write(sub.join(".claude/settings.json"), "{\"disableAllHooks\": true}").unwrap();
    check_denied(&place.list_in("session-3", sub.clone()).await, "switched off during the session");
    check_denied(&place.list_in("session-3", repo).await, "switched off during the session");
    assert_eq!(place.list_in("session-1", sub).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switches_of_every_client_deny() {
    let place = Place::started("hooks: []\n").await;
    let call = |client, id: &str| {
        let (event, mut payload) = match client {
            Client::Copilot => ("preToolUse", json!({ "toolName": "bash", "toolArgs": { "command": "ls" } })),
            Client::Gemini => ("BeforeTool", json!({ "hook_event_name": "BeforeTool", "tool_name": "list" })),
            _ => ("PreToolUse", json!({ "turn_id": "t", "tool_name": "Bash", "tool_input": { "command": "ls" } })),
        };
        payload["tool_input"] = json!({ "command": "ls" });
        payload[if client == Client::Copilot { "sessionId" } else { "session_id" }] = id.into();
        payload["cwd"] = json!(place.repo());
        (event, payload)
    };
    for (client, file, text) in [
        (Client::Codex, ".codex/config.toml", "[features]\nhooks = false\n"),
        (Client::Gemini, ".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}"),
        (Client::Copilot, ".github/copilot/settings.json", "{\"disableAllHooks\": true}"),
    ] {
        let (event, payload) = call(client, client.as_str());
        assert_eq!(place.payload_of(client.as_str(), event, &payload).await.code, 0, "{client}");
        let file = place.repo().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        let output = place.payload_of(client.as_str(), event, &payload).await;
        check_denied(&output, "the guard was switched off during the session");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_belongs_to_its_session_after_a_killed_daemon_and_after_the_end() {
    let rules = "hooks:\n  - rule: closed\n    on: session:start\n    when: source == \"resume\" && session_id != \"root\"\n    deny: another session\n";
    let mut place = Place::started(rules).await;
    let sessions = || place.records(&["session:start", "\"event\""]);
    let start = json!({ "sessionId": "root", "cwd": place.repo(), "source": "new" });
    assert_eq!(place.payload_of("copilot", "sessionStart", &start).await.code, 0);
    let before = sessions();
    for (session, parent) in [("child", "root"), ("grandchild", "child")] {
        let output = place.copilot(session, Some(parent), &format!("ls {session}-1")).await;
        assert_eq!(output.code, 0, "{output:?}");
        assert!(place.records(&["\"root\"", &format!("ls {session}-1")]) > 0);
    }
    assert_eq!(sessions(), before);
    place.restart().await;
    // The payload of a later event need not name the parent.
    for (session, parent) in [("grandchild", Some("child")), ("child", None), ("greatgrandchild", Some("grandchild"))] {
        assert_eq!(place.copilot(session, parent, &format!("ls {session}-2")).await.code, 0);
        assert!(place.records(&["\"root\"", &format!("ls {session}-2")]) > 0);
    }
    let end = json!({ "sessionId": "root", "cwd": place.repo(), "reason": "complete" });
    assert_eq!(place.payload_of("copilot", "sessionEnd", &end).await.code, 0);
    assert_eq!(place.copilot("grandchild", None, "ls late").await.code, 0);
    assert!(place.records(&["\"root\"", "ls late"]) > 0);
    assert_eq!(place.records(&["\"session_id\":\"child\""]) + place.records(&["\"session_id\":\"grandchild\""]), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_without_ids_get_ids_that_no_earlier_daemon_gave() {
    let mut place = Place::started("hooks: []\n").await;
    for _ in 0..3 {
        assert_eq!(place.gemini("BeforeTool", None, "one").await.code, 0);
        assert_eq!(place.gemini("AfterTool", None, "one").await.code, 0);
        assert_eq!(place.gemini("AfterTool", None, "unknown").await.code, 0);
        place.restart().await;
    }
    let folder = place.home().audit_folder();
    let text: String =
        fs::read_dir(folder).unwrap().filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok()).collect();
    let ids: BTreeSet<&str> =
        text.split("\"tool_call_id\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_same_hook_brings_again_is_decided_again() {
    let mut place = Place::started("hooks: []\n").await;
    let decided = |place: &Place| place.records(&["npm publish", "\"event\"", "tool:pre"]);
    let input = json!({ "command": "npm publish" });
    assert_eq!(place.tool("call_0", "Bash", input.clone()).await.code, 0);
    let one = decided(&place);
    assert_eq!(place.tool("call_0", "Bash", input.clone()).await.code, 0);
    assert_eq!(decided(&place), 2 * one);
    place.restart().await;
    assert_eq!(place.tool("call_0", "Bash", input).await.code, 0);
    assert_eq!(decided(&place), 3 * one);
    let other = json!({ "command": "git push --force" });
    fs::write(
        place.folder.path().join("home/bundle.yaml"),
        "hooks:\n  - rule: no\n    on: tool:pre\n    when: 'true'\n    deny: no\n",
    )
    .unwrap();
    check_denied(&place.tool("call_0", "Bash", other).await, "Denied by hook no");
}

const CONTEXT: &str =
    "hooks:\n  - rule: hint\n    on: tool:pre\n    when: tool_name == \"one\"\n    inject: for the main agent\n";

#[tokio::test(flavor = "multi_thread")]
async fn context_reaches_the_agent_for_which_it_was_meant() {
    let place = Place::started(CONTEXT).await;
    assert_eq!(place.gemini("BeforeTool", None, "one").await.code, 0);
    let other = place.gemini("AfterTool", Some("agent-1"), "two").await;
    assert!(!other.stdout.contains("for the main agent"), "{other:?}");
    let own = place.gemini("AfterTool", None, "one").await;
    assert!(own.stdout.contains("for the main agent"), "{own:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn context_that_no_agent_takes_any_more_is_recorded_as_lost() {
    let place = Place::started(CONTEXT).await;
    assert_eq!(place.gemini("BeforeTool", Some("agent-1"), "one").await.code, 0);
    assert_eq!(place.gemini("SessionEnd", None, "").await.code, 0);
    assert!(place.records(&["guard:loss", "inject_context", "dropped", "agent-1"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn context_that_is_cut_is_recorded_as_lost() {
    let text = "x".repeat(5000);
    let rule = |name: &str| format!("  - {{ rule: {name}, on: tool:pre, when: 'true', inject: {text} }}\n");
    let place = Place::started(&format!("hooks:\n{}{}", rule("one"), rule("two"))).await;
    let output = place.tool("t-1", "Bash", json!({ "command": "ls" })).await;
    assert_eq!((output.code, output.stdout.matches('x').count() / 1000), (0, 8));
    assert_eq!(place.records(&["guard:loss", "inject_context", "cut after 8 KB", "\"event\""]), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_another_version_is_answered_with_that() {
    let place = Place::started("hooks: []\n").await;
    let mut stream = UnixStream::connect(place.folder.path().join("guard/socket")).await.unwrap();
    stream.write_all(b"amplifier-guard 2\nanything\n\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "amplifier-guard 1 version\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_runs_code_in_the_hooks_of_the_agent_denies() {
    let place = Place::started("hooks: []\n").await;
    let fields = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } });
    let payload = place.payload("PreToolUse", fields).to_string();
    let mut stream = UnixStream::connect(place.folder.path().join("guard/socket")).await.unwrap();
    let header = format!(
        "amplifier-guard 1\nclient claude\nevent PreToolUse\ndeadline 20000\nnonce 0f\nfolder 2f746d70\nvariable BASH_ENV=2f78\nlength {}\n\n",
        payload.len()
    );
    stream.write_all(header.as_bytes()).await.unwrap();
    stream.write_all(payload.as_bytes()).await.unwrap();
    check_denied(&receive(stream).await.unwrap(), "the variable `BASH_ENV` of the agent runs other code");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_panics_does_not_count_as_running() {
    let place = Place::new("hooks: []\n");
    let options = place.options(Duration::from_millis(300));
    let options = DaemonOptions { load: Box::new(|_| panic!("a defect")), ..options };
    let daemon = tokio::spawn(Daemon::open(options).await.unwrap().unwrap().run());
    let payload = place.payload("UserPromptSubmit", json!({ "prompt": "hello" })).to_string();
    let stream = place.send("claude", "UserPromptSubmit", 20_000, payload.as_bytes()).await;
    assert_eq!(receive(stream).await, None);
    tokio::time::timeout(Duration::from_secs(60), daemon).await.expect("the daemon goes on").unwrap();
}
