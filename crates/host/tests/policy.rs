//! Policies of several workspaces in one process, without an agent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use std::fs;
use std::sync::Arc;

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, Map, OpenRequest, TOOL_PRE, ToolPre, Verdict};
use amplifier_host::{Config, DenyAllApprovals, Home, Overrides, Policy};
use amplifier_link::{ReloadResult, ReloadStatus};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

const DENY: &str =
    "hooks:\n  - rule: no-deploy\n    on: tool:pre\n    when: tool_name == \"Deploy\"\n    deny: people deploy\n";
const ASK: &str = "hooks:\n  - rule: ask-deploy\n    on: tool:pre\n    when: tool_name == \"Deploy\"\n    ask: Deploy?\n    options: [Allow once, Deny]\n";

struct Machine {
    folder: TempDir,
    home: Home,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        Self { folder, home }
    }

    /// Loads the policy of a workspace with a bundle.
    async fn policy(&self, workspace: &str, bundle: &str) -> Policy {
        let folder = self.folder.path().join(workspace);
        fs::create_dir(&folder).unwrap();
        self.write(workspace, bundle);
        let bundle = Some(self.bundle(workspace));
        let overrides = Overrides { workspace: Some(folder), bundle, ..Overrides::default() };
        let config = Config::load(&overrides, &self.home).unwrap();
        Policy::builder(&config, &self.home).load().await.unwrap()
    }

    fn bundle(&self, workspace: &str) -> std::path::PathBuf {
        self.folder.path().join(format!("{workspace}.yaml"))
    }

    fn write(&self, workspace: &str, bundle: &str) {
        fs::write(self.bundle(workspace), bundle).unwrap();
    }
}

/// Sends every request, with a way to answer it, to whoever holds the other end.
struct Channel(mpsc::Sender<(Arc<OpenRequest>, oneshot::Sender<ApprovalAnswer>)>);

impl ApprovalSystem for Channel {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let (answer, answered) = oneshot::channel();
        self.0.send((request, answer)).await.map_err(|error| ApprovalError::Failed(error.to_string()))?;
        answered.await.map_err(|error| ApprovalError::Failed(error.to_string()))
    }
}

fn deploy() -> ToolPre {
    ToolPre::new("Deploy", Map::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workspaces_have_policies_of_their_own_without_an_agent() {
    let machine = Machine::new();
    let (strict, asking) = (machine.policy("strict", DENY).await, machine.policy("asking", ASK).await);
    let (send, mut requests) = mpsc::channel(1);
    let first = strict.coordinator("session-1", DenyAllApprovals).build();
    let second = asking.coordinator("session-2", Channel(send)).build();

    let denied = first.emit(TOOL_PRE, deploy()).await;
    assert_eq!(denied.to_string(), "Denied by hook no-deploy: people deploy");

    let person = tokio::spawn(async move {
        let (request, answer) = requests.recv().await.unwrap();
        answer.send(ApprovalAnswer::by("Allow once", "ada", "channel")).unwrap();
        (request.hook.to_string(), request.prompt.clone())
    });
    assert!(matches!(second.emit(TOOL_PRE, deploy()).await, Verdict::Proceed(_)));
    assert_eq!(person.await.unwrap(), ("ask-deploy".to_owned(), "Deploy?".to_owned()));

    // A reload of one leaves the other as it is.
    machine.write("strict", "hooks: []\n# nothing is denied any more\n");
    assert_eq!(asking.reload().result, ReloadStatus::Unchanged);
    assert_eq!(strict.reload().result, ReloadStatus::Changed);
    assert!(first.emit(TOOL_PRE, deploy()).await.is_proceed());
    machine.write("strict", "hooks: [");
    let ReloadResult { result: status, message } = strict.reload();
    assert_eq!((status, message.is_some()), (ReloadStatus::Refused, true));
    assert!(first.emit(TOOL_PRE, deploy()).await.is_proceed());

    drop((first, second));
    strict.close().await.unwrap();
    asking.close().await.unwrap();
    let log = machine.home.audit_folder();
    let text: String =
        fs::read_dir(log).unwrap().filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok()).collect();
    let has = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(&["session-1", "no-deploy", "people deploy"]), "{text}");
    assert!(has(&["session-2", "approval_request", "ask-deploy"]), "{text}");
    assert!(has(&["session-2", "approval_decision", "ada"]), "{text}");
    assert!(has(&["policy_change", "strict.yaml"]), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_shows_the_change_also_of_a_tool_of_amplifier() {
    let machine = Machine::new();
    let policy = machine.policy("shown", "hooks:\n  - rule: ask\n    on: tool:pre\n    ask: Write?\n").await;
    for tool in ["Write", "write_file"] {
        let (send, mut requests) = mpsc::channel(1);
        let coordinator = policy.coordinator("session-1", Channel(send)).build();
        let input = serde_json::json!({ "file_path": "new.txt", "content": "hello\n" });
        let data = amplifier_core::data! { "tool_name": tool, "tool_input": input };
        let (verdict, ()) = tokio::join!(coordinator.emit(TOOL_PRE, data), async {
            let (request, answer) = requests.recv().await.unwrap();
            let preview = &request.preview;
            assert_eq!(
                (preview.summary.as_deref(), preview.body[0].text.as_str()),
                (Some("new file"), "hello"),
                "{tool}"
            );
            answer.send("Deny".into()).unwrap();
        });
        assert!(!verdict.is_proceed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_nobody_answers_is_denied() {
    let machine = Machine::new();
    let policy = machine.policy("asking", ASK).await;
    let (send, requests) = mpsc::channel(1);
    drop(requests);
    let coordinator = policy.coordinator("session-1", Channel(send)).build();
    assert!(!coordinator.emit(TOOL_PRE, deploy()).await.is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_read_at_each_request() {
    let machine = Machine::new();
    let policy = machine.policy("asking", ASK).await;
    let coordinator = policy.coordinator("session-1", DenyAllApprovals).build();
    assert!(!coordinator.emit(TOOL_PRE, deploy()).await.is_proceed());
    fs::write(machine.home.approval_rule_file(), "{ \"ask-deploy:*\": \"allow\" }").unwrap();
    assert!(coordinator.emit(TOOL_PRE, deploy()).await.is_proceed());
    fs::write(machine.home.approval_rule_file(), "{}").unwrap();
    assert!(!coordinator.emit(TOOL_PRE, deploy()).await.is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_would_change_the_policy_are_denied_without_a_sandbox() {
    let machine = Machine::new();
    let policy = machine.policy("plain", "hooks: []\n").await;
    assert_eq!(policy.sandbox().level.as_str(), "analysis");
    let coordinator = policy.coordinator("session-1", DenyAllApprovals).build();
    let command = format!("echo >> {}", machine.bundle("plain").display());
    let input = Map::from_iter([("command".to_owned(), command.into())]);
    let denied = coordinator.emit(TOOL_PRE, ToolPre::new("Bash", input)).await;
    assert!(denied.to_string().starts_with("Denied by hook protect: tools cannot change"), "{denied}");
}
