//! The open approval requests of a server, as its updates tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use amplifier_link::{ApprovalId, OpenApproval};
use amplifier_server::api_types::{Session, SessionClient};
use amplifier_server::client::ApprovalUpdate;
use jiff::Timestamp;

use crate::terminal::ListedRequest;

/// The open requests, the oldest first.
#[derive(Default)]
pub(super) struct OpenRequests {
    requests: Vec<Arc<OpenApproval>>,
    /// The agent programs of sessions, with their versions.
    agents: HashMap<String, String>,
}

impl OpenRequests {
    /// Applies an update, and returns the requests that it opens and closes.
    pub(super) fn apply(&mut self, update: ApprovalUpdate) -> Vec<ApprovalUpdate> {
        match update {
            ApprovalUpdate::Hello { approvals, sessions } => {
                sessions.into_iter().for_each(|session| self.set_agent(session));
                let gone = |known: &&Arc<OpenApproval>| !approvals.iter().any(|approval| approval.id == known.id);
                let closed =
                    |known: &Arc<OpenApproval>| ApprovalUpdate::ApprovalClosed { id: known.id.clone(), decided: None };
                let closed: Vec<ApprovalUpdate> = self.requests.iter().filter(gone).map(closed).collect();
                let opened = approvals.into_iter().map(|approval| ApprovalUpdate::ApprovalRequested { approval });
                closed.into_iter().chain(opened).flat_map(|update| self.apply(update)).collect()
            }
            ApprovalUpdate::Session { session } => {
                self.set_agent(session);
                Vec::new()
            }
            ApprovalUpdate::ApprovalRequested { approval } => {
                match self.requests.iter_mut().find(|known| known.id == approval.id) {
                    // Announced again, after missed updates.
                    Some(known) if known.nonce == approval.nonce => return Vec::new(),
                    // Another server has another nonce.
                    Some(known) => *known = Arc::new(approval.clone()),
                    None => self.requests.push(Arc::new(approval.clone())),
                }
                vec![ApprovalUpdate::ApprovalRequested { approval }]
            }
            ApprovalUpdate::ApprovalClosed { id, decided } => {
                let Some(at) = self.requests.iter().position(|known| known.id == id) else { return Vec::new() };
                self.requests.remove(at);
                vec![ApprovalUpdate::ApprovalClosed { id, decided }]
            }
            ApprovalUpdate::Other => Vec::new(),
        }
    }

    /// Removes a request that needs no answer any more.
    pub(super) fn remove(&mut self, id: &ApprovalId) {
        self.requests.retain(|known| known.id != *id);
    }

    /// Returns the requests with time left, and the position of the one to show: the next after the last one.
    pub(super) fn next(&self, last: Option<&OpenApproval>, now: Timestamp) -> Option<(Vec<ListedRequest>, usize)> {
        let listed: Vec<ListedRequest> = self.requests.iter().filter_map(|request| self.listed(request, now)).collect();
        let is_later = |one: &ListedRequest| {
            let order = |request: &OpenApproval| (request.created_at, request.id.clone());
            last.is_none_or(|last| order(&one.request) > order(last))
        };
        let next = listed.iter().position(is_later).unwrap_or_default();
        (!listed.is_empty()).then_some((listed, next))
    }

    fn listed(&self, request: &Arc<OpenApproval>, now: Timestamp) -> Option<ListedRequest> {
        let left = Duration::try_from(request.deadline.duration_since(now)).ok().filter(|left| !left.is_zero())?;
        let agent = self.agents.get(&request.session).or_else(|| self.agents.get(request.connected_session()));
        Some(ListedRequest { request: request.clone(), agent: agent.cloned(), left })
    }

    fn set_agent(&mut self, Session { id, client, .. }: Session) {
        if let Some(SessionClient { name, version }) = client {
            let version = version.map(|version| format!(" {version}")).unwrap_or_default();
            self.agents.insert(id, name + &version);
        }
    }
}
