//! Ids of running calls. Clients without ids get one, which the end of the same call finds by its content.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use crate::event::{ClientEvent, ClientTool};

/// The calls of a session that run.
#[derive(Debug)]
pub(super) struct RunningCalls {
    // A std lock: nothing awaits while it is held.
    running: Mutex<HashMap<String, VecDeque<String>>>,
    next: AtomicU64,
    /// Part of each id. An id of an earlier daemon is in the log already.
    start: String,
}

impl RunningCalls {
    pub(super) fn new() -> Self {
        let start = format!("{:08x}", RandomState::new().build_hasher().finish() >> 32);
        Self { running: Mutex::default(), next: AtomicU64::new(0), start }
    }

    /// Begins a call. Unless it is allowed, it does not run, whatever ends the decision.
    pub(super) fn begin<'a>(&'a self, event: &ClientEvent, tool: &ClientTool) -> RunningCall<'a> {
        if let Some(id) = &event.call {
            return RunningCall { id: id.clone(), content: None, calls: self };
        }
        let (id, content) = (self.new_id(event), content(event, tool));
        self.lock().entry(content.clone()).or_default().push_back(id.clone());
        RunningCall { id, content: Some(content), calls: self }
    }

    /// Ends a call, and returns its id.
    pub(super) fn end(&self, event: &ClientEvent, tool: &ClientTool) -> String {
        if let Some(id) = &event.call {
            return id.clone();
        }
        let first = self.remove(&content(event, tool), |ids| ids.pop_front());
        first.unwrap_or_else(|| self.new_id(event))
    }

    fn remove(&self, content: &str, take: impl FnOnce(&mut VecDeque<String>) -> Option<String>) -> Option<String> {
        let mut running = self.lock();
        let ids = running.get_mut(content)?;
        let id = take(ids);
        if ids.is_empty() {
            running.remove(content);
        }
        id
    }

    fn new_id(&self, event: &ClientEvent) -> String {
        format!("{}-{}-{}", event.client, self.start, self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, VecDeque<String>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose decision is open. Dropping it means that the call does not run.
#[derive(Debug)]
pub(super) struct RunningCall<'a> {
    pub(super) id: String,
    content: Option<String>,
    calls: &'a RunningCalls,
}

impl RunningCall<'_> {
    /// Leaves the call running: it is allowed.
    pub(super) fn allow(mut self) {
        self.content = None;
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        if let Some(content) = self.content.take() {
            let own =
                |ids: &mut VecDeque<String>| ids.iter().position(|id| *id == self.id).and_then(|at| ids.remove(at));
            self.calls.remove(&content, own);
        }
    }
}

fn content(event: &ClientEvent, tool: &ClientTool) -> String {
    json!([event.agent, tool.name, tool.input]).to_string()
}
