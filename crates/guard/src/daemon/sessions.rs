//! All sessions of the daemon, and the way of a call to its session.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_host::Home;
use amplifier_link::is_valid_id;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::once::{CallKey, Decisions};
use super::protect::CANARY_TOOL;
use super::request::Request;
use super::session::GuardSession;
use super::workspace::Policies;
use super::{LoadConfig, call_limit};
use crate::adapter;
use crate::answer::{GuardAnswer, HookOutput};
use crate::client::Client;
use crate::event::{ClientEvent, EventKind};

/// The sessions of all clients.
pub(super) struct Sessions {
    policies: Arc<Policies>,
    open: Mutex<HashMap<String, Arc<OnceCell<Arc<GuardSession>>>>>,
    decisions: Decisions,
}

impl Sessions {
    pub(super) fn new(home: Home, load: LoadConfig) -> Self {
        Self { policies: Arc::new(Policies::new(home, load)), open: Mutex::default(), decisions: Decisions::default() }
    }

    /// Answers a call. Every failure denies.
    pub(super) async fn answer(&self, request: &Request) -> HookOutput {
        let failure = |problem: &str| HookOutput::failure(&format!("amplifier guard: {problem}"));
        let told = match request.client.parse::<Client>() {
            Ok(told) => told,
            Err(error) => return failure(&error.to_string()),
        };
        let event = match adapter::parse(told, request.event.as_deref(), &request.payload) {
            Ok(event) => ClientEvent { version: event.version.or_else(|| request.version.clone()), ..event },
            Err(error) => return failure(&error.to_string()),
        };
        if event.kind == EventKind::Other {
            return adapter::answer(&event, &GuardAnswer::default()).output;
        }
        let session = match self.session(&event, request.folder.as_deref()).await {
            Ok(session) => session,
            Err(problem) => return failure(&problem),
        };
        if event.is_gate()
            && let Err(problem) = session.refresh().await
        {
            return failure(&problem);
        }
        let decide = call_limit::within(request.deadline, session.clone().decide(event.clone()));
        let answer = match CallKey::from_event(&event, &session_id(&event)) {
            Some(key) => self.decisions.decide(key, decide).await,
            None => decide.await,
        };
        let reply = adapter::answer(&event, &answer);
        session.record_losses(&event, &reply).await;
        // A canary is a session of one call.
        let is_canary = matches!(&event.kind, EventKind::ToolPre(tool) if tool.name == CANARY_TOOL)
            && event.session.starts_with("canary-");
        if is_canary || matches!(event.kind, EventKind::SessionEnd { .. }) {
            self.forget(&event);
            session.end("complete").await;
        }
        reply.output
    }

    /// Returns the session of an event, and starts it first if it is new here.
    async fn session(&self, event: &ClientEvent, folder: Option<&Path>) -> Result<Arc<GuardSession>, String> {
        let id = session_id(event);
        let cell = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.entry(id.clone()).or_default().clone()
        };
        let start = || async {
            let folder = event.folder.as_deref().or(folder).filter(|folder| folder.is_absolute());
            let folder = folder.ok_or("the payload names no folder")?;
            let policy = self.policies.find(folder).await;
            let policy = policy.map_err(|problem| format!("the policy of `{}`: {problem}", folder.display()))?;
            Ok(GuardSession::start(id.clone(), event, policy).await)
        };
        cell.get_or_try_init(start).await.cloned()
    }

    fn forget(&self, event: &ClientEvent) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&session_id(event));
    }

    /// Returns `true` if an audit log cannot be written any more.
    pub(super) fn has_failed(&self) -> bool {
        self.policies.all().iter().any(|policy| policy.policy.log().status().failure.is_some())
    }

    /// Closes the logs. Seals all sessions first, unless another daemon continues them.
    pub(super) async fn end(&self, is_sealed: bool) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for session in open.into_values().filter_map(|cell| cell.get().cloned()).filter(|_| is_sealed) {
            session.end("timeout").await;
        }
        for policy in self.policies.all() {
            let log = policy.policy.log().clone();
            // Closing blocks on the disk.
            if let Ok(Err(error)) = tokio::task::spawn_blocking(move || log.close()).await {
                tracing::error!(%error, "the audit log is not closed properly");
            }
        }
    }
}

/// Returns the id of the session in the audit log. That of the client, if it can be an id.
fn session_id(event: &ClientEvent) -> String {
    if is_valid_id(&event.session) {
        return event.session.clone();
    }
    let digest = Sha256::digest(&event.session);
    digest.iter().take(16).fold(format!("{}-", event.client), |id, byte| format!("{id}{byte:02x}"))
}
