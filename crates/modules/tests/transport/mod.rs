//! What the tests of transports share.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use amplifier_core::{Approval, DefaultDecision, EventData, Hook, HookError, HookResult, Injection, Map, Role, data};
use serde_json::{Value, json};

/// Longer than anything here takes; a test that waits for it has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The data of an ordinary event.
pub(crate) fn call() -> EventData {
    data! { "tool_name": "Bash", "tool_input": { "command": "rm -rf /" } }
}

/// Data that does not fit into a pipe.
pub(crate) fn large() -> EventData {
    data! { "text": "x".repeat(1_000_000) }
}

pub(crate) async fn ask(hook: &impl Hook) -> Result<HookResult, HookError> {
    hook.handle("tool:pre", &call()).await
}

/// Answers on the wire, and what they mean: one of each action.
pub(crate) fn answers() -> Vec<(Value, HookResult)> {
    let changed: Map = [("tool_name".to_owned(), json!("Read"))].into_iter().collect();
    vec![
        (json!({}), HookResult::proceed()),
        (Value::Null, HookResult::proceed()),
        (json!({"action": "continue", "data": {"tool_name": "Read"}}), HookResult::respond(changed.clone())),
        (json!({"action": "deny", "reason": "no rm"}), HookResult::deny("no rm")),
        (json!({"action": "modify", "data": {"tool_name": "Read"}}), HookResult::modify(changed)),
        (
            json!({"action": "inject_context", "context_injection": "ünïcode ✓", "context_injection_role": "user", "ephemeral": true}),
            HookResult::inject(Injection::new("ünïcode ✓").role(Role::User).ephemeral()),
        ),
        (
            json!({"action": "ask_user", "approval_prompt": "Sure?", "approval_options": ["Allow", "Deny"], "approval_timeout": 5.0, "approval_default": "allow", "approval_fallback": true}),
            HookResult::ask(Approval {
                prompt: "Sure?".into(),
                options: vec!["Allow".into(), "Deny".into()],
                timeout: Duration::from_secs(5),
                default: DefaultDecision::Allow,
                fallback: true,
            }),
        ),
        (
            json!({"user_message": "look", "user_message_level": "warning", "suppress_output": true}),
            HookResult::proceed().warning("look").suppress_output(),
        ),
    ]
}

/// The text of an error.
pub(crate) fn failure(answer: Result<HookResult, HookError>) -> String {
    answer.expect_err("the hook should have failed").to_string()
}

/// Waits for something that is about to be.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "{what} did not come to be");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Tries with a time limit that is twice as long each time, until it was long enough: how fast programs start is not what is tested.
pub(crate) async fn patiently<T>(mut attempt: impl AsyncFnMut(Duration) -> Option<T>) -> T {
    let mut limit = Duration::from_millis(300);
    loop {
        if let Some(found) = attempt(limit).await {
            return found;
        }
        limit *= 2;
        assert!(limit < LIMIT, "it does not come about");
    }
}

/// A file to which hooks write their ids, each on a line of its own.
pub(crate) struct Pids {
    folder: tempfile::TempDir,
}

impl Pids {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("pids")
    }

    pub(crate) fn read(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        // A line without its end is still being written.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| line.trim().parse().unwrap())
            .collect()
    }

    /// Waits until that many have written.
    pub(crate) async fn written(&self, count: usize) -> Vec<u32> {
        eventually("the process", || Some(self.read()).filter(|pids| pids.len() >= count)).await
    }

    /// Asserts that nothing of their process groups is left.
    pub(crate) async fn all_gone(&self) {
        for group in self.read() {
            eventually(&format!("the end of group {group}"), || members(group).is_empty().then_some(())).await;
        }
    }
}

/// The processes of a group that have not ended.
pub(crate) fn members(group: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| is_member(Path::new("/proc").join(id.to_string()).join("stat"), group)).collect()
}

fn is_member(stat: PathBuf, group: u32) -> bool {
    let stat = std::fs::read_to_string(stat).unwrap_or_default();
    // After the name, which may hold anything: the state, the parent, the group.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let fields: Vec<&str> = rest.split(' ').collect();
    fields[0] != "Z" && fields[2] == group.to_string()
}
