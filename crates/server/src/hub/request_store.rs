//! The approval requests of all sessions: the open ones, and the last that were closed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use amplifier_core::ApprovalDecision;
use amplifier_link::{ApprovalId, DecidedApproval, OpenApproval};
use jiff::Timestamp;

use super::connected_sessions::Process;

/// Limits of closed requests in number and bytes. They are stored so that a late approver learns the decision.
const CLOSED: usize = 10_000;
const CLOSED_BYTES: usize = 32 << 20;

#[derive(Default)]
pub(super) struct RequestStore {
    open: HashMap<ApprovalId, StoredRequest>,
    /// The oldest first.
    order: BTreeMap<Position, ApprovalId>,
    closed: HashMap<ApprovalId, ClosedApproval>,
    /// The order in which closed requests are dropped.
    oldest_closed: BTreeMap<u64, ApprovalId>,
    open_bytes: usize,
    closed_bytes: usize,
    next: u64,
}

type Position = (Timestamp, u64);

struct StoredRequest {
    approval: Arc<OpenApproval>,
    position: Position,
}

pub(super) struct ClosedApproval {
    /// The request, without its preview.
    pub(super) request: OpenApproval,
    pub(super) process: Process,
    pub(super) decided: DecidedApproval,
    position: u64,
}

impl ClosedApproval {
    fn weight(&self) -> usize {
        // The prompt is stored twice.
        self.request.weight() + self.decided.prompt.len()
    }
}

impl RequestStore {
    pub(super) fn open(&self, id: &ApprovalId) -> Option<&Arc<OpenApproval>> {
        self.open.get(id).map(|entry| &entry.approval)
    }

    pub(super) fn closed(&self, id: &ApprovalId) -> Option<&ClosedApproval> {
        self.closed.get(id)
    }

    /// Returns a request, open or closed.
    pub(super) fn request(&self, id: &ApprovalId) -> Option<&OpenApproval> {
        self.open(id).map(|approval| &**approval).or_else(|| self.closed(id).map(|closed| &closed.request))
    }

    /// Returns the open requests, the oldest first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Arc<OpenApproval>> {
        self.order.values().filter_map(|id| self.open(id))
    }

    pub(super) fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    pub(super) fn insert(&mut self, approval: Arc<OpenApproval>) {
        self.next += 1;
        let (id, position) = (approval.id.clone(), (approval.created_at, self.next));
        self.open_bytes += approval.weight();
        self.order.insert(position, id.clone());
        self.open.insert(id, StoredRequest { approval, position });
    }

    /// Closes a request, and returns it with its decision.
    pub(super) fn close(
        &mut self,
        id: &ApprovalId,
        process: Process,
        decision: ApprovalDecision,
        now: Timestamp,
    ) -> Option<(Arc<OpenApproval>, DecidedApproval)> {
        let StoredRequest { approval, position } = self.open.remove(id)?;
        self.open_bytes = self.open_bytes.saturating_sub(approval.weight());
        self.order.remove(&position);
        let decided = DecidedApproval {
            id: Some(id.clone()),
            session: approval.session.clone(),
            hook: approval.hook.clone(),
            event: approval.event.to_string(),
            prompt: approval.prompt.clone(),
            decision,
            created_at: Some(approval.created_at.to_string()),
            decided_at: now.to_string(),
            seq: 0,
        };
        self.next += 1;
        let request = approval.without_preview();
        let closed = ClosedApproval { request, process, decided: decided.clone(), position: self.next };
        self.closed_bytes += closed.weight();
        self.closed.insert(id.clone(), closed);
        self.oldest_closed.insert(self.next, id.clone());
        while self.closed.len() > CLOSED || self.closed_bytes > CLOSED_BYTES {
            let Some(oldest) = self.oldest_closed.first_key_value().map(|(_, id)| id.clone()) else { break };
            self.forget(&oldest);
        }
        Some((approval, decided))
    }

    pub(super) fn forget(&mut self, id: &ApprovalId) {
        if let Some(closed) = self.closed.remove(id) {
            self.oldest_closed.remove(&closed.position);
            self.closed_bytes = self.closed_bytes.saturating_sub(closed.weight());
        }
    }
}
