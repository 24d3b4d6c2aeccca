//! The captured payloads of real clients.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use amplifier_guard::{Client, ClientEvent, EventKind, parse};
use serde_json::{Value, json};

/// A captured payload.
pub(crate) struct Sample {
    pub(crate) client: Client,
    /// The name of the event, which the command line of the hook has.
    pub(crate) event: String,
    pub(crate) label: String,
    pub(crate) payload: Value,
}

impl Sample {
    pub(crate) fn parse(&self) -> ClientEvent {
        let parsed = parse(self.client, Some(&self.event), self.payload.to_string().as_bytes());
        parsed.unwrap_or_else(|error| panic!("{}/{} {}: {error}", self.client, self.event, self.label))
    }
}

/// All captured payloads, and payloads of Cursor as its documentation describes them.
pub(crate) fn all() -> Vec<Sample> {
    let mut samples = Vec::new();
    for client in Client::ALL {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/payloads").join(client.as_str());
        let Ok(files) = fs::read_dir(folder) else { continue };
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let content: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            for sample in content["samples"].as_array().unwrap() {
                // One program is not a hook: its JSON is an argument.
                let Some(payload) = sample.get("stdin") else { continue };
                samples.push(Sample {
                    client,
                    event: content["event"].as_str().unwrap().to_owned(),
                    label: sample["label"].as_str().unwrap_or("-").to_owned(),
                    payload: payload.clone(),
                });
            }
        }
    }
    let cursor = |event: &str, label: &str, fields: Value| {
        let mut payload = json!({
            "conversation_id": "c-1", "generation_id": "g-1", "hook_event_name": event, "cursor_version": "3.9.0",
            "workspace_roots": ["/repo"], "cwd": "",
        });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Sample { client: Client::Cursor, event: event.to_owned(), label: label.to_owned(), payload }
    };
    let tool = |name: &str, input: Value| json!({ "tool_name": name, "tool_input": input, "tool_use_id": "t-1" });
    let shell =
        json!({ "tool_name": "Shell", "tool_input": { "command": "ls" }, "tool_output": "a", "tool_use_id": "t-1" });
    samples.extend([
        cursor("sessionStart", "-", json!({})),
        cursor("beforeSubmitPrompt", "-", json!({ "prompt": "Do the scripted work." })),
        cursor("preToolUse", "Shell", tool("Shell", json!({ "command": "echo hi" }))),
        cursor("preToolUse", "Write", tool("Write", json!({ "file_path": "/repo/new.txt", "content": "one\n" }))),
        cursor("postToolUse", "Shell", shell),
        cursor("subagentStart", "-", json!({ "subagent_type": "explore", "task": "look", "tool_call_id": "t-2" })),
        cursor("stop", "-", json!({})),
    ]);
    // The plugin of the guard makes these from events without a decision.
    for event in ["session.created", "session.idle"] {
        let payload =
            json!({ "hook_event_name": event, "cwd": "/repo", "input": { "sessionID": "s-1" }, "output": {} });
        samples.push(Sample { client: Client::Opencode, event: event.to_owned(), label: "-".to_owned(), payload });
    }
    samples
}

/// The events that a client waits for.
pub(crate) fn gates() -> &'static [ClientEvent] {
    static GATES: LazyLock<Vec<ClientEvent>> =
        LazyLock::new(|| all().iter().map(Sample::parse).filter(ClientEvent::is_gate).collect());
    &GATES
}

/// One payload for each client and kind of event.
pub(crate) fn one_of_each() -> Vec<(String, Sample)> {
    let mut found: Vec<(String, Sample)> = Vec::new();
    for sample in all() {
        let event = sample.parse();
        let kind = match &event.kind {
            EventKind::SessionStart { .. } => "session:start",
            EventKind::Prompt { .. } => "prompt:submit",
            EventKind::ToolPre(tool) if tool.name == "apply_patch" => "tool:pre of a patch",
            EventKind::ToolPre(_) => "tool:pre",
            EventKind::Spawn { .. } => "agent:spawn",
            EventKind::ToolPost { success: true, .. } => "tool:post",
            EventKind::ToolPost { .. } => "tool:post of a failure",
            EventKind::Complete { .. } => "orchestrator:complete",
            _ => continue,
        };
        let title = format!("{} {:?} {kind}", event.client, event.dialect);
        if !found.iter().any(|(known, _)| *known == title) {
            found.push((title, sample));
        }
    }
    found
}
