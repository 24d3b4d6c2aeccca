//! The approval system of a machine: its requests go to the consoles of the centre.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, OpenRequest};
use amplifier_link::{ApprovalAsker, OpenApproval, is_valid_id, truncate_request};
use tokio::sync::{Semaphore, oneshot, watch};

use super::answer_reader::AnswerReader;
use super::signed_answer::ConsoleKeys;
use crate::{Connection, FleetError, FleetName};

/// The number of closed requests whose late answers are still recorded.
const LATE_WATCHES: usize = 256;

/// The share of the largest message that is kept free for the rest of the message.
const ENVELOPE_BYTES: usize = 16 << 10;

/// Options of [`FleetApprovals`].
#[derive(Clone, Debug)]
pub struct FleetApprovalsOptions {
    /// The run of the session. Equals the writer of its records, so that the record of a request is found by id.
    pub run: FleetName,
    /// The name of the session.
    pub name: Option<String>,
    /// The workspace.
    pub workspace: PathBuf,
    /// The keys of the consoles, which may change.
    pub consoles: watch::Receiver<ConsoleKeys>,
}

/// The approval system of a machine: any console of the centre can answer. Cheap to clone; clones share state.
///
/// The kernel decides, within its time limit: without the centre, requests wait for it until then.
#[derive(Clone)]
pub struct FleetApprovals {
    pub(super) shared: Arc<AskerState>,
}

pub(super) struct AskerState {
    pub(super) connection: Connection,
    pub(super) options: FleetApprovalsOptions,
    pub(super) answers: AnswerReader,
    /// The session of the first request. Others are its sub-agents.
    session: OnceLock<String>,
    pub(super) late_watches: Semaphore,
    /// The number of requests whose last state is not stored yet.
    pub(super) unstored: watch::Sender<usize>,
}

impl FleetApprovals {
    /// Starts to receive answers for one run.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn start(connection: Connection, options: FleetApprovalsOptions) -> Result<Self, FleetError> {
        let answers = AnswerReader::start(connection.clone(), connection.name(), &options.run).await?;
        let shared = AskerState {
            connection,
            options,
            answers,
            session: OnceLock::new(),
            late_watches: Semaphore::new(LATE_WATCHES),
            unstored: watch::Sender::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Waits until the decisions on all requests are stored at the centre, for a limited time.
    pub async fn close(&self, limit: Duration) {
        let mut unstored = self.shared.unstored.subscribe();
        // The consoles see the time limit of a request whose decision is not stored.
        let _ = tokio::time::timeout(limit, unstored.wait_for(|count| *count == 0)).await;
    }
}

impl ApprovalSystem for FleetApprovals {
    /// # Cancel safety
    /// Dropping the future changes nothing for the consoles, which are notified when the request closes.
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let (kernel, answered) = oneshot::channel();
        let is_delivered = Arc::new(AtomicBool::new(false));
        tokio::spawn(self.shared.clone().ask(request.clone(), kernel, is_delivered.clone()));
        tokio::select! {
            biased;
            Ok(answer) = answered => {
                is_delivered.store(true, Ordering::SeqCst);
                Ok(answer)
            }
            _ = request.closed() => Err(ApprovalError::TimedOut),
        }
    }
}

impl AskerState {
    /// Returns a request as consoles see it, as large as the centre permits.
    pub(super) fn approval(&self, request: &OpenRequest) -> OpenApproval {
        let FleetApprovalsOptions { run, name, workspace, .. } = &self.options;
        let named = request.data.text("session_id").filter(|session| is_valid_id(session));
        let session = self.session.get_or_init(|| named.unwrap_or(run).to_owned());
        let workspace = workspace.to_string_lossy();
        let asker = ApprovalAsker { session, name: name.as_deref(), run, workspace: &workspace };
        let most = self.connection.client().max_payload().saturating_sub(ENVELOPE_BYTES);
        truncate_request(OpenApproval::from_request(request, &asker), most)
    }
}
