//! Counting of events.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use amplifier_core::EventData;

use super::store::{Metric, Store};
use crate::builtin::shared::settings::lock;

#[derive(Default)]
pub(super) struct Counter {
    // Std locks: nothing awaits while one is held.
    pub(super) store: Arc<Mutex<Store>>,
    open: Mutex<HashMap<String, OpenOperations>>,
}

#[derive(Default)]
struct OpenOperations {
    request: Option<ModelRequest>,
    /// The tool calls that hooks have checked.
    calls: HashSet<String>,
}

struct ModelRequest {
    since: u64,
    provider: String,
    model: String,
}

impl Counter {
    pub(super) fn count(&self, event: &str, data: &EventData, now: u64) {
        let mut store = lock(&self.store);
        store.add(Metric::Events, &[("event", event)], 1);
        let text = |field: &str| data.text(field).unwrap_or("unknown");
        match event {
            "tool:post" => {
                let success = if data["success"] == true { "true" } else { "false" };
                let tool = text("tool_name");
                store.add(Metric::ToolCalls, &[("tool", tool), ("success", success)], 1);
                let seconds = data["duration_ms"].as_u64().unwrap_or_default() as f64 / 1_000.0;
                store.observe(Metric::ToolDuration, &[("tool", tool)], seconds);
            }
            "provider:response" => {
                for (kind, field) in [("input", "/usage/input_tokens"), ("output", "/usage/output_tokens")] {
                    let tokens = data.pointer(field).and_then(serde_json::Value::as_u64).unwrap_or_default();
                    store.add(Metric::Tokens, &[("model", text("model")), ("kind", kind)], tokens);
                }
            }
            "approval:granted" => store.add(Metric::Approvals, &[("decision", "granted")], 1),
            "approval:denied" => store.add(Metric::Approvals, &[("decision", "denied")], 1),
            _ => {}
        }
        self.pair(&mut store, event, data, now);
    }

    /// Matches ends of operations with their starts. An operation without an end was denied: no event reports a denial.
    fn pair(&self, store: &mut Store, event: &str, data: &EventData, now: u64) {
        let session = data.session_id().unwrap_or_default();
        let mut all = lock(&self.open);
        let call = || data.text("tool_call_id").map(str::to_owned);
        match event {
            "provider:request" => {
                let open = all.entry(session.to_owned()).or_default();
                open.deny(store);
                let name = |field: &str| data.text(field).unwrap_or("unknown").to_owned();
                open.request = Some(ModelRequest { since: now, provider: name("provider"), model: name("model") });
            }
            "provider:response" | "error:provider" => {
                let Some(request) = all.get_mut(session).and_then(|open| open.request.take()) else { return };
                let (provider, model) = (request.provider.as_str(), request.model.as_str());
                let success = if event == "provider:response" { "true" } else { "false" };
                let labels = [("provider", provider), ("model", model), ("success", success)];
                store.add(Metric::ModelCalls, &labels, 1);
                let seconds = now.saturating_sub(request.since) as f64 / 1e9;
                store.observe(Metric::ModelDuration, &labels[..2], seconds);
            }
            "tool:pre" => all.entry(session.to_owned()).or_default().calls.extend(call()),
            "tool:post" => {
                if let Some((open, call)) = all.get_mut(session).zip(call()) {
                    open.calls.remove(&call);
                }
            }
            "execution:complete" => {
                let Some(mut open) = all.remove(session) else { return };
                // An interrupted operation was not denied.
                if data.text("status") != Some("interrupted") {
                    open.deny(store);
                }
            }
            "session:end" => _ = all.remove(session),
            _ => {}
        }
    }
}

impl OpenOperations {
    fn deny(&mut self, store: &mut Store) {
        if self.request.take().is_some() {
            store.add(Metric::Denials, &[("event", "provider:request")], 1);
        }
        let calls = std::mem::take(&mut self.calls).len();
        if calls > 0 {
            store.add(Metric::Denials, &[("event", "tool:pre")], calls as u64);
        }
    }
}
