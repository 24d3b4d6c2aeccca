//! The daemon, through its socket, as the hook program calls it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_guard::daemon::{Daemon, DaemonOptions, GuardFolder};
use amplifier_guard::{CANARY_TOOL, HookOutput};
use amplifier_host::{Config, Environment, Home, Overrides, ProjectBundle, ProjectTrust};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

const RULES: &str = r#"
hooks:
  - rule: no-force-push
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.contains("push --force")
    deny: ask before you overwrite history
  - rule: no-secrets
    on: tool:pre
    when: tool_name == "Write" && tool_input.file_path.endsWith(".env")
    deny: secrets are not written
  - rule: ask-deploy
    on: tool:pre
    when: tool_name == "Deploy"
    ask: Deploy?
    options: [Allow once, Deny]
  - rule: no-secret-prompts
    on: prompt:submit
    when: prompt.contains("hunter2")
    deny: the prompt contains a password
  - rule: no-agents
    on: agent:spawn
    when: task.contains("delete")
    deny: agents delete nothing
"#;

pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) daemon: Option<JoinHandle<()>>,
}

impl Place {
    pub(crate) fn new(rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("home")).unwrap();
        fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        fs::create_dir_all(folder.path().join("repo/sub")).unwrap();
        fs::write(folder.path().join("home/bundle.yaml"), rules).unwrap();
        Self { folder, daemon: None }
    }

    pub(crate) async fn started(rules: &str) -> Self {
        let mut place = Self::new(rules);
        place.start(Duration::from_secs(600)).await;
        place
    }

    pub(crate) fn home(&self) -> Home {
        Home::at(self.folder.path().join("home")).with(Environment::default())
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo").canonicalize().unwrap()
    }

    pub(crate) fn options(&self, idle: Duration) -> DaemonOptions {
        let (home, config_home) = (self.home(), self.home());
        let load = move |workspace: &std::path::Path| {
            let overrides = Overrides { workspace: Some(workspace.to_owned()), ..Overrides::default() };
            Config::load(&overrides, &config_home)
        };
        let folder = GuardFolder::new(self.folder.path().join("guard"));
        DaemonOptions { folder, home, load: Box::new(load), idle, program: None }
    }

    pub(crate) async fn start(&mut self, idle: Duration) {
        let daemon = Daemon::open(self.options(idle)).await.unwrap().unwrap();
        self.daemon = Some(tokio::spawn(daemon.run()));
    }

    /// Trusts the bundle of a project.
    pub(crate) fn trust(&self, bundle: PathBuf) {
        let store = self.home().trust_store();
        let ProjectBundle { state: ProjectTrust::Untrusted(_, pins, _), .. } = ProjectBundle::find(bundle, &store)
        else {
            panic!("the bundle is trusted already");
        };
        store.trust(&pins).unwrap();
    }

    /// Lists files in a session and a folder of their own.
    pub(crate) async fn list_in(&self, session: &str, folder: PathBuf) -> HookOutput {
        let fields = json!({
            "session_id": session, "cwd": folder, "tool_name": "Bash", "tool_input": { "command": "ls" },
        });
        self.call("PreToolUse", fields).await
    }

    pub(crate) async fn send(&self, client: &str, event: &str, deadline: u64, payload: &[u8]) -> UnixStream {
        let mut stream = UnixStream::connect(self.folder.path().join("guard/socket")).await.unwrap();
        let header = format!(
            "amplifier-guard 1\nclient {client}\nevent {event}\ndeadline {deadline}\nnonce 0f\nfolder 2f746d70\nlength {}\n\n",
            payload.len()
        );
        stream.write_all(header.as_bytes()).await.unwrap();
        stream.write_all(payload).await.unwrap();
        stream
    }

    pub(crate) async fn bytes(&self, payload: &[u8]) -> HookOutput {
        receive(self.send("claude", "PreToolUse", 20_000, payload).await).await.unwrap()
    }

    /// Calls the hook of Claude Code.
    pub(crate) async fn call(&self, event: &str, fields: Value) -> HookOutput {
        let payload = self.payload(event, fields).to_string();
        receive(self.send("claude", event, 20_000, payload.as_bytes()).await).await.unwrap()
    }

    pub(crate) fn payload(&self, event: &str, fields: Value) -> Value {
        let mut payload =
            json!({ "session_id": "session-1", "prompt_id": "p-1", "cwd": self.repo(), "hook_event_name": event });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        payload
    }

    pub(crate) async fn tool(&self, id: &str, name: &str, input: Value) -> HookOutput {
        self.call("PreToolUse", json!({ "tool_name": name, "tool_input": input, "tool_use_id": id })).await
    }

    /// The lines of the audit log that contain all of these texts.
    pub(crate) fn records(&self, texts: &[&str]) -> usize {
        let folder = self.home().audit_folder();
        let text: String =
            fs::read_dir(folder).unwrap().filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok()).collect();
        text.lines().filter(|line| texts.iter().all(|text| line.contains(text))).count()
    }
}

pub(crate) async fn receive(mut stream: UnixStream) -> Option<HookOutput> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).unwrap().strip_prefix("amplifier-guard 1 0f ").unwrap();
    let numbers: Vec<usize> = line.split(' ').map(|number| number.parse().unwrap()).collect();
    let rest = &bytes[end + 1..];
    assert_eq!(rest.len(), numbers[1] + numbers[2]);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Some(HookOutput {
        stdout: text(&rest[..numbers[1]]),
        stderr: text(&rest[numbers[1]..]),
        code: numbers[0].try_into().unwrap(),
    })
}

#[track_caller]
pub(crate) fn check_denied(output: &HookOutput, expected: &str) {
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains(expected), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_the_user_decide_about_every_client() {
    let place = Place::started(RULES).await;
    let command = "git push --force origin main";
    check_denied(
        &place.tool("t-1", "Bash", json!({ "command": command })).await,
        "Denied by hook no-force-push: ask before you overwrite history",
    );
    assert_eq!(place.tool("t-2", "Bash", json!({ "command": "git status" })).await, HookOutput::default());
    let repo = place.repo();
    for (client, event, payload) in [
        (
            "codex",
            "PreToolUse",
            json!({ "session_id": "s-cx", "turn_id": "t", "cwd": repo, "model": "m", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": "c" }),
        ),
        (
            "gemini",
            "BeforeTool",
            json!({ "session_id": "s-gm", "cwd": repo, "hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": { "command": command } }),
        ),
        (
            "copilot",
            "preToolUse",
            json!({ "sessionId": "s-cp", "cwd": repo, "toolName": "bash", "toolArgs": { "command": command } }),
        ),
        (
            "opencode",
            "tool.execute.before",
            json!({ "cwd": repo, "input": { "tool": "bash", "sessionID": "s-oc", "callID": "c" }, "output": { "args": { "command": command } } }),
        ),
    ] {
        let output = receive(place.send(client, event, 20_000, payload.to_string().as_bytes()).await).await.unwrap();
        check_denied(&output, "Denied by hook no-force-push");
    }
    let cursor = json!({ "conversation_id": "s-cu", "cursor_version": "3.9", "workspace_roots": [repo], "hook_event_name": "preToolUse", "tool_name": "Shell", "tool_input": { "command": command }, "tool_use_id": "c" });
    let output =
        receive(place.send("cursor", "preToolUse", 20_000, cursor.to_string().as_bytes()).await).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&output.stdout).unwrap()["permission"], "deny");
    for session in ["session-1", "s-cx", "s-gm", "s-cp", "s-oc", "s-cu"] {
        assert!(place.records(&[session, "no-force-push"]) > 0, "{session}");
    }
    assert!(place.records(&["s-cx", "session:start", "codex"]) > 0);
    assert!(place.records(&["s-cu", "session:start", "3.9"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_agents_and_files_of_patches_pass_the_rules() {
    let place = Place::started(RULES).await;
    check_denied(&place.call("UserPromptSubmit", json!({ "prompt": "use hunter2" })).await, "contains a password");
    assert_eq!(place.call("UserPromptSubmit", json!({ "prompt": "hello" })).await.code, 0);
    check_denied(
        &place.tool("t-1", "Agent", json!({ "prompt": "delete all", "subagent_type": "general" })).await,
        "agents delete nothing",
    );
    assert_eq!(place.tool("t-2", "Agent", json!({ "prompt": "read all", "subagent_type": "general" })).await.code, 0);
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Add File: prod/.env\n+KEY=1\n*** End Patch\n";
    let payload = json!({ "session_id": "s", "turn_id": "t", "cwd": place.repo(), "hook_event_name": "PreToolUse", "tool_name": "apply_patch", "tool_input": { "command": patch }, "tool_use_id": "c" });
    let output =
        receive(place.send("codex", "PreToolUse", 20_000, payload.to_string().as_bytes()).await).await.unwrap();
    check_denied(&output, "secrets are not written");
    // The first file was allowed, and does not change either.
    assert!(place.records(&["c#1", "not run"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_understood_is_denied() {
    let place = Place::started(RULES).await;
    check_denied(&place.bytes(b"").await, "not a JSON object");
    check_denied(&place.bytes(b"{\"session_id\":\"s\xff\"}").await, "not a JSON object");
    check_denied(
        &place.bytes(br#"{"session_id":"s","tool_name":"Bash","tool_input":{},"cwd":"x"}"#).await,
        "names no folder",
    );
    check_denied(
        &place.bytes(br#"{"session_id":"s","tool_name":"Bash","tool_input":{},"cwd":"/nonexistent/x"}"#).await,
        "the workspace `/nonexistent/x` cannot be used",
    );
    let output = receive(place.send("emacs", "PreToolUse", 20_000, b"{}").await).await.unwrap();
    check_denied(&output, "unknown client `emacs`");
    // Not a request: no answer, so the hook program denies.
    let mut stream = UnixStream::connect(place.folder.path().join("guard/socket")).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\n\n").await.unwrap();
    assert_eq!(receive(stream).await, None);
    let large = json!({ "file_path": "large.txt", "content": "x".repeat(11 << 20) });
    assert_eq!(place.tool("t-1", "Write", large).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_loaded_denies_and_says_why() {
    let place = Place::started("hooks: [").await;
    check_denied(&place.tool("t-1", "Bash", json!({ "command": "ls" })).await, "bundle.yaml");
    // The next call finds the repaired file.
    fs::write(place.folder.path().join("home/bundle.yaml"), RULES).unwrap();
    assert_eq!(place.tool("t-2", "Bash", json!({ "command": "ls" })).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_request_without_a_server_denies() {
    let place = Place::started(RULES).await;
    check_denied(&place.tool("t-1", "Deploy", json!({})).await, "nobody can be asked; run `amplifier approvals watch`");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_takes_too_long_is_a_denial() {
    let mut place = Place::new("");
    let pipe = place.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Nobody writes to the pipe.
    let rules = format!("hooks:\n  - command: cat {}\n    name: slow\n    on: tool:pre\n", pipe.display());
    fs::write(place.folder.path().join("home/bundle.yaml"), rules).unwrap();
    place.start(Duration::from_secs(600)).await;
    let fields = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "t-1" });
    let payload = place.payload("PreToolUse", fields).to_string();
    let output = receive(place.send("claude", "PreToolUse", 700, payload.as_bytes()).await).await.unwrap();
    check_denied(&output, "no decision within the time limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_the_client_in_its_words() {
    let rules = "hooks:\n  - rule: safe-list\n    on: tool:pre\n    when: tool_name == \"Bash\"\n    modify: { set: { /tool_input/command: ls -l } }\n";
    let place = Place::started(rules).await;
    let output = place.tool("t-1", "Bash", json!({ "command": "ls" })).await;
    let stdout: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(stdout["hookSpecificOutput"]["updatedInput"], json!({ "command": "ls -l" }));
    assert_eq!(stdout["hookSpecificOutput"].get("permissionDecision"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_two_hooks_of_a_client_bring_is_decided_once() {
    let place = Arc::new(Place::started(RULES).await);
    let call = |command: &str, told: &'static str, event: &'static str| {
        let payload = json!({
            "conversation_id": "s-cu", "cursor_version": "3.9", "workspace_roots": [place.repo()], "hook_event_name": event,
            "tool_name": "Shell", "tool_input": { "command": command }, "tool_use_id": "t-1",
        });
        let place = place.clone();
        tokio::spawn(async move {
            receive(place.send(told, event, 20_000, payload.to_string().as_bytes()).await).await.unwrap()
        })
    };
    // Cursor also runs the hooks of Claude Code.
    let arrivals = |command| [call(command, "cursor", "preToolUse"), call(command, "claude", "PreToolUse")];
    for call in futures::future::join_all(arrivals("echo unique-command")).await {
        assert!(call.unwrap().stdout.contains("allow"));
    }
    assert_eq!((place.records(&["t-1", "\"intent\""]), place.records(&["unique-command", "\"event\""])), (1, 1));
    // Other content with the same id is another call.
    for call in futures::future::join_all(arrivals("git push --force")).await {
        assert!(call.unwrap().stdout.contains("no-force-push"));
    }
}

impl Place {
    /// Calls a hook of Cursor, with a name of Cursor or of Claude.
    async fn cursor(&self, event: &str, fields: Value) -> Value {
        let mut payload = json!({
            "conversation_id": "c-1", "generation_id": "g-1", "cursor_version": "3.9.0", "hook_event_name": event,
            "workspace_roots": [self.repo()], "cwd": "",
        });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let client = if event.starts_with(char::is_uppercase) { "claude" } else { "cursor" };
        let output = receive(self.send(client, event, 20_000, payload.to_string().as_bytes()).await).await.unwrap();
        serde_json::from_str(&output.stdout).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_arrives_through_the_hooks_of_two_clients_is_recorded_once() {
    let place = Place::started(RULES).await;
    let tool = json!({ "tool_name": "Shell", "tool_input": { "command": "echo twice" }, "tool_use_id": "t-1" });
    let prompt = json!({ "prompt": "prompt twice" });
    for (events, fields) in [(["preToolUse", "PreToolUse"], tool), (["beforeSubmitPrompt", "UserPromptSubmit"], prompt)]
    {
        let answers = futures::future::join_all(events.map(|event| place.cursor(event, fields.clone()))).await;
        assert_eq!(answers[0], answers[1]);
    }
    assert_eq!(place.records(&["echo twice", "\"event\"", "tool:pre"]), 1);
    assert_eq!(place.records(&["prompt twice", "\"kind\":\"event\""]), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_of_an_agent_is_decided_once_and_by_its_own_event_if_no_tool_started_it() {
    let place = Place::started(RULES).await;
    let spawn = |id: &str, task: &str| json!({ "subagent_type": "explore", "task": task, "tool_call_id": id });
    let task = json!({ "tool_name": "Task", "tool_input": { "prompt": "look around" }, "tool_use_id": "t-1" });
    assert_eq!(place.cursor("preToolUse", task).await["permission"], "allow");
    assert_eq!(place.cursor("subagentStart", spawn("t-1", "look around")).await["permission"], "allow");
    assert_eq!(place.records(&["look around", "\"kind\":\"event\"", "agent:spawn"]), 1);
    for id in ["t-1", "t-2", ""] {
        let denied = place.cursor("subagentStart", spawn(id, "delete everything")).await;
        assert_eq!(denied["permission"], "deny");
        assert_eq!(denied["user_message"], "Denied by hook no-agents: agents delete nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_dialog_asks_there_if_the_configuration_says_so() {
    let mut place = Place::new(RULES);
    fs::write(place.folder.path().join("home/config.toml"), "approvals = \"client\"\n").unwrap();
    place.start(Duration::from_secs(600)).await;
    let asked = place.tool("t-1", "Deploy", json!({ "target": "eu" })).await;
    let answer: Value = serde_json::from_str(&asked.stdout).unwrap();
    let nested = &answer["hookSpecificOutput"];
    assert_eq!((asked.code, &nested["permissionDecision"]), (0, &json!("ask")));
    assert_eq!(nested["permissionDecisionReason"], "Deploy?");
    assert_eq!(place.records(&["guard:loss", "asked in the agent's dialog", "\"ask_user\""]), 1);
    assert_eq!(place.records(&["\"approval_decision\"", "\"via\":\"dialog\"", "\"claude\""]), 1);
    // A denial wins, and what nobody asks about passes silently.
    check_denied(&place.tool("t-2", "Bash", json!({ "command": "git push --force" })).await, "no-force-push");
    assert_eq!(place.tool("t-3", "Bash", json!({ "command": "ls" })).await, HookOutput::default());
    // Clients without a dialog deny.
    let payload = json!({
        "session_id": "s-cx", "turn_id": "t", "cwd": place.repo(), "hook_event_name": "PreToolUse", "tool_name": "Deploy",
        "tool_input": { "target": "eu" }, "tool_use_id": "c",
    });
    let output = place.send("codex", "PreToolUse", 20_000, payload.to_string().as_bytes()).await;
    check_denied(&receive(output).await.unwrap(), "codex has no dialog for this");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_the_id_of_an_earlier_one_is_decided_again() {
    let place = Place::started("hooks: []\n").await;
    let input = json!({ "command": "npm publish" });
    let intents = || place.records(&["npm publish", "\"event\"", "tool:pre"]);
    assert_eq!(place.tool("call_0", "Bash", input.clone()).await.code, 0);
    let before = intents();
    assert!(before > 0);
    // It has run.
    let result = json!({ "stdout": "", "stderr": "", "interrupted": false, "isImage": false });
    let post = json!({ "tool_name": "Bash", "tool_input": input, "tool_response": result, "tool_use_id": "call_0" });
    assert_eq!(place.call("PostToolUse", post).await.code, 0);
    assert_eq!(place.tool("call_0", "Bash", input.clone()).await.code, 0);
    assert_eq!(intents(), 2 * before);
    // Another agent and another folder call for themselves.
    for (more, fields) in [(3, json!({ "agent_id": "agent-2" })), (4, json!({ "cwd": place.repo().join("sub") }))] {
        let mut call = json!({ "tool_name": "Bash", "tool_input": input, "tool_use_id": "call_0" });
        call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(place.call("PreToolUse", call).await.code, 0);
        assert_eq!(intents(), more * before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_cannot_change_the_files_that_decide_about_the_guard() {
    let place = Place::started("hooks: []\n").await;
    let home = place.folder.path().join("home");
    for (name, input) in [
        ("Write", json!({ "file_path": ".claude/settings.json", "content": "{}" })),
        (
            "Edit",
            json!({ "file_path": place.repo().join(".claude/settings.local.json"), "old_string": "a", "new_string": "b" }),
        ),
        ("Write", json!({ "file_path": home.join("bundle.yaml"), "content": "hooks: []" })),
        ("NotebookEdit", json!({ "notebook_path": place.repo().join(".gemini/settings.json") })),
        ("move_file", json!({ "source_path": place.repo().join(".codex/hooks.json"), "target": "x" })),
        ("Read", json!({ "file_path": home.join("audit.key") })),
    ] {
        check_denied(&place.tool("t-1", name, input).await, "Denied by hook protect-files");
    }
    for command in ["echo {} > .claude/settings.json", "rm -rf .gemini/settings.json"] {
        check_denied(&place.tool("t-1", "Bash", json!({ "command": command })).await, "Denied by hook protect");
    }
    assert_eq!(place.tool("t-2", "Write", json!({ "file_path": "src/a.rs", "content": "" })).await.code, 0);
    assert_eq!(place.tool("t-3", "list_directory", json!({ "dir_path": place.repo() })).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_cannot_administer_the_policy_or_name_its_files() {
    let place = Place::started("hooks: []\n").await;
    let home = place.folder.path().join("home");
    let key = home.join("audit.key").display().to_string();
    for command in [
        "amplifier guard uninstall claude",
        "/usr/bin/amplifier hooks trust --yes",
        "ls; amplifier approvals add x",
        "amplifier audit rotate-key",
        "env A=1 amplifier hooks trust",
        "$(echo nothing) && amplifier hooks trust",
        "amplifier",
        "amplifier-hook --client claude",
        "pkill -f \"guard daemon\"",
        "killall amplifier",
    ] {
        check_denied(&place.tool("t-1", "Bash", json!({ "command": command })).await, "Denied by hook protect-policy");
    }
    for command in [
        format!("cat {key}"),
        format!("cat {}", home.join("server/token").display()),
        "cat ../home/audit.key".to_owned(),
        "cat .claude/settings.json".to_owned(),
    ] {
        check_denied(&place.tool("t-2", "Bash", json!({ "command": command })).await, "Denied by hook protect");
    }
    for command in [
        "amplifier --help",
        "amplifier doctor",
        "amplifier guard status",
        "cargo build -p amplifier",
        "grep amplifier README.md",
        "ls .",
        "ls ..",
        "git status",
    ] {
        let output = place.tool("t-3", "Bash", json!({ "command": command })).await;
        assert_eq!(output.code, 0, "{command}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_relative_to_the_folder_of_the_agent() {
    let place = Place::started("hooks: []\n").await;
    let sub = place.repo().join("sub");
    let fields = json!({ "cwd": sub, "tool_name": "Write", "tool_use_id": "t", "tool_input": { "file_path": "../.claude/settings.json", "content": "" } });
    check_denied(&place.call("PreToolUse", fields).await, "Denied by hook protect-files");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_canary_is_denied_and_recorded() {
    let place = Place::started("hooks: []\n").await;
    check_denied(&place.tool("t-1", CANARY_TOOL, json!({ "nonce": "n-4711" })).await, "the guard is active: n-4711");
    assert!(place.records(&["n-4711", "canary"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_does_not_start() {
    let place = Place::started("hooks: []\n").await;
    assert!(Daemon::open(place.options(Duration::from_secs(600))).await.unwrap().is_none());
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "ls" })).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_left_over_is_replaced() {
    let mut place = Place::new("hooks: []\n");
    let folder = place.folder.path().join("guard");
    fs::create_dir(&folder).unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap());
    place.start(Duration::from_secs(600)).await;
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "ls" })).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_daemon_ends_and_seals_its_sessions() {
    let mut place = Place::new("hooks: []\n");
    place.start(Duration::from_millis(500)).await;
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "ls" })).await.code, 0);
    place.daemon.take().unwrap().await.unwrap();
    assert!(place.records(&["session-1", "seal", "timeout"]) > 0);
    assert!(!place.folder.path().join("guard/socket").exists());
    // The session continues with the next daemon.
    place.start(Duration::from_secs(600)).await;
    assert_eq!(place.tool("t-2", "Bash", json!({ "command": "ls" })).await.code, 0);
    assert!(place.records(&["session-1", "session:start", "resume"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_hooks_do_not_allow_denies_its_prompts_and_tools() {
    let rules = "hooks:\n  - rule: closed\n    on: session:start\n    when: 'true'\n    deny: not today\n";
    let place = Place::started(rules).await;
    assert_eq!(place.call("SessionStart", json!({ "source": "startup" })).await.code, 0);
    check_denied(&place.call("UserPromptSubmit", json!({ "prompt": "hello" })).await, "not today");
    check_denied(&place.tool("t-1", "Read", json!({ "file_path": "a" })).await, "not today");
    assert!(place.records(&["guard:loss", "denied at the first prompt or tool"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_a_seal() {
    let place = Place::started("hooks: []\n").await;
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "ls" })).await.code, 0);
    let result = json!({ "stdout": "a", "stderr": "", "interrupted": false, "isImage": false });
    let post = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_response": result, "tool_use_id": "t-1", "duration_ms": 5 });
    assert_eq!(place.call("PostToolUse", post).await, HookOutput::default());
    assert_eq!(place.call("SessionEnd", json!({ "reason": "other" })).await.code, 0);
    assert!(place.records(&["session-1", "seal", "complete"]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_counts_for_the_next_session() {
    let place = Place::started("hooks: []\n").await;
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "touch a" })).await.code, 0);
    fs::write(place.folder.path().join("home/config.toml"), "confirm = \"all\"\n").unwrap();
    assert_eq!(place.tool("t-2", "Bash", json!({ "command": "touch a" })).await.code, 0);
    let fields = json!({ "session_id": "session-2", "tool_name": "Bash", "tool_input": { "command": "touch a" }, "tool_use_id": "t-3" });
    check_denied(&place.call("PreToolUse", fields).await, "nobody can be asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bundle_of_a_project_counts_only_if_it_is_trusted_and_the_user_is_told() {
    let place = Place::started("hooks: []\n").await;
    fs::create_dir(place.repo().join(".amplifier")).unwrap();
    let bundle = place.repo().join(".amplifier/bundle.yaml");
    fs::write(&bundle, "hooks:\n  - rule: closed\n    on: tool:pre\n    when: 'true'\n    deny: closed\n").unwrap();
    let output = place.tool("t-1", "Bash", json!({ "command": "ls" })).await;
    assert_eq!(output.code, 0);
    let stdout: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(stdout["systemMessage"].as_str().unwrap().contains("bundle.yaml"), "{output:?}");
    place.trust(bundle);
    // Also in a folder below the project.
    let fields = json!({
        "session_id": "session-2", "cwd": place.repo().join("sub"), "tool_name": "Bash", "tool_input": { "command": "ls" },
        "tool_use_id": "t-2",
    });
    check_denied(&place.call("PreToolUse", fields).await, "Denied by hook closed");
}

const CLOSED: &str = "hooks:\n  - rule: closed\n    on: tool:pre\n    when: 'true'\n    deny: closed\n";
const OPEN: &str = "hooks:\n  - rule: open\n    on: tool:pre\n    when: 'false'\n    deny: never\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_bundle_counts_for_the_next_call_of_every_session() {
    let place = Place::started("hooks: []\n").await;
    let bundle = place.folder.path().join("home/bundle.yaml");
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 0);
    fs::write(&bundle, CLOSED).unwrap();
    check_denied(&place.list_in("session-1", place.repo()).await, "Denied by hook closed");
    check_denied(&place.list_in("session-2", place.repo()).await, "Denied by hook closed");
    fs::write(&bundle, OPEN).unwrap();
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 0);
    // The last good version no longer counts.
    fs::write(&bundle, "hooks: [").unwrap();
    for session in ["session-1", "session-2", "session-3"] {
        check_denied(&place.list_in(session, place.repo()).await, "bundle.yaml");
    }
    fs::write(&bundle, OPEN).unwrap();
    for session in ["session-1", "session-2", "session-3"] {
        assert_eq!(place.list_in(session, place.repo()).await.code, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_bundle_does_not_hide_a_trusted_one_above() {
    let place = Place::started("hooks: []\n").await;
    for (folder, rules) in [("repo", CLOSED), ("repo/sub", OPEN)] {
        let folder = place.folder.path().join(folder).join(".amplifier");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("bundle.yaml"), rules).unwrap();
    }
    place.trust(place.repo().join(".amplifier/bundle.yaml"));
    check_denied(&place.list_in("session-1", place.repo().join("sub")).await, "Denied by hook closed");
    place.trust(place.repo().join("sub/.amplifier/bundle.yaml"));
    assert_eq!(place.list_in("session-2", place.repo().join("sub")).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_bundle_that_is_changed_or_gone_denies_until_it_is_trusted_again() {
    let place = Place::started("hooks: []\n").await;
    fs::create_dir(place.repo().join(".amplifier")).unwrap();
    let bundle = place.repo().join(".amplifier/bundle.yaml");
    fs::write(&bundle, OPEN).unwrap();
    place.trust(bundle.clone());
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 0);
    fs::write(&bundle, format!("{OPEN}\n")).unwrap();
    for session in ["session-1", "session-2"] {
        check_denied(&place.list_in(session, place.repo().join("sub")).await, "amplifier hooks trust");
    }
    place.trust(bundle.clone());
    for session in ["session-1", "session-2"] {
        assert_eq!(place.list_in(session, place.repo()).await.code, 0);
    }
    fs::remove_file(&bundle).unwrap();
    check_denied(&place.list_in("session-1", place.repo()).await, "bundle.yaml");
    check_denied(&place.list_in("session-3", place.repo()).await, "is gone");
    place.home().trust_store().untrust(&bundle).unwrap();
    assert_eq!(place.list_in("session-3", place.repo()).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_whose_log_has_failed_makes_room_for_the_next_one() {
    let mut place = Place::started("hooks: []\n").await;
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 0);
    let (log, aside) = (place.home().audit_folder(), place.folder.path().join("aside"));
    fs::rename(&log, &aside).unwrap();
    fs::write(&log, "no folder").unwrap();
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 2);
    let ended = place.daemon.take().unwrap();
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the daemon goes on").unwrap();
    fs::remove_file(&log).unwrap();
    fs::rename(&aside, &log).unwrap();
    place.start(Duration::from_secs(600)).await;
    assert_eq!(place.list_in("session-1", place.repo()).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_whose_program_was_replaced_makes_room_for_the_new_one() {
    let mut place = Place::new("hooks: []\n");
    let program = place.folder.path().join("program");
    fs::write(&program, "old").unwrap();
    let options = DaemonOptions { program: Some(program.clone()), ..place.options(Duration::from_secs(600)) };
    let old = tokio::spawn(Daemon::open(options).await.unwrap().unwrap().run());
    // Before the first call: after it, the daemon looks at its program once more, and could be gone before the next call.
    fs::write(&program, "new version").unwrap();
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "ls" })).await.code, 0);
    old.await.unwrap();
    place.start(Duration::from_secs(600)).await;
    assert_eq!(place.tool("t-2", "Bash", json!({ "command": "ls" })).await.code, 0);
    // The session goes on.
    assert_eq!(place.records(&["session-1", "\"seal\""]), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_whose_guard_was_installed_again_makes_room_for_the_new_one() {
    let mut place = Place::new("hooks: []\n");
    let folder = GuardFolder::new(place.folder.path().join("guard"));
    let program = place.folder.path().join("program");
    folder.write_start(&program, &[]).unwrap();
    place.start(Duration::from_secs(600)).await;
    assert_eq!(place.tool("t-1", "Bash", json!({ "command": "ls" })).await.code, 0);
    folder.write_start(&program, &[("BASH_ENV".to_owned(), "/x".to_owned())]).unwrap();
    // The daemon ends after the first call, and answers all that have found its socket.
    let payload = place.payload("PreToolUse", json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
    let payload = payload.to_string();
    let socket = folder.socket();
    let connected = futures::future::join_all((0..32).map(|_| UnixStream::connect(&socket))).await;
    let connected: Vec<UnixStream> = connected.into_iter().filter_map(Result::ok).collect();
    assert!(!connected.is_empty());
    let header = "amplifier-guard 1\nclient claude\nevent PreToolUse\ndeadline 20000\nnonce 0f\nfolder 2f746d70\n";
    for mut stream in connected {
        let request = format!("{header}length {}\n\n{payload}", payload.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(receive(stream).await.unwrap().code, 0);
    }
    place.daemon.take().unwrap().await.unwrap();
    place.start(Duration::from_secs(600)).await;
    assert_eq!(place.tool("t-3", "Bash", json!({ "command": "ls" })).await.code, 0);
    assert_eq!(place.records(&["session-1", "\"seal\""]), 0);
}
