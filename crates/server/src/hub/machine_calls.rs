//! The machine that starts sessions, keeps approval rules in files, tests bundles and tries events.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_link::{DryRun, DryRunReport, MachineCall, MachineMessage, MachineReply, MachineRequest, RuleList};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Hub, HubError, HubErrorCode, HubEvent, NoReply};

/// Time limits of the machine for file operations, and for requests that run programs: hooks of a new session, tests,
/// dry runs.
const FILES: Duration = Duration::from_secs(30);
const PROGRAMS: Duration = Duration::from_secs(600);

pub(super) struct ConnectedMachine {
    connection: u64,
    link: mpsc::Sender<MachineCall>,
}

impl Hub {
    /// Starts a session on the machine, and returns its id.
    ///
    /// # Errors
    /// If it cannot be started.
    pub async fn start_session(&self, workspace: Option<String>, prompt: Option<String>) -> Result<String, HubError> {
        match self.ask_machine(MachineRequest::StartSession { workspace, prompt }, PROGRAMS).await? {
            MachineReply::Started { session } => Ok(session),
            reply => Err(unexpected(reply)),
        }
    }

    /// Runs the tests of a bundle, given as text or as the one of the machine's folder. Returns what `amplifier hooks test --json` prints.
    ///
    /// # Errors
    /// If the bundle cannot be read.
    pub async fn test_bundle(&self, bundle: Option<String>) -> Result<Value, HubError> {
        match self.ask_machine(MachineRequest::TestBundle { bundle }, PROGRAMS).await? {
            MachineReply::Tested { results } => Ok(results),
            reply => Err(unexpected(reply)),
        }
    }

    /// Tries an event, and returns the report that `amplifier hooks try --json` prints.
    ///
    /// # Errors
    /// If the event is unknown, or a bundle cannot be read.
    pub async fn dry_run(&self, dry_run: DryRun) -> Result<DryRunReport, HubError> {
        match self.ask_machine(MachineRequest::DryRun(dry_run), PROGRAMS).await? {
            MachineReply::Tried { report } => Ok(*report),
            reply => Err(unexpected(reply)),
        }
    }

    /// Sends a request about approval rules in files.
    pub(super) async fn ask_about_rules(&self, request: MachineRequest) -> Result<MachineReply, HubError> {
        let invalid = |error: HubError| match error.code {
            HubErrorCode::Refused => HubError::new(HubErrorCode::InvalidRule, error.message),
            _ => error,
        };
        self.ask_machine(request, FILES).await.map_err(invalid)
    }

    pub(super) fn has_machine(&self) -> bool {
        self.machine().is_some()
    }

    async fn ask_machine(&self, request: MachineRequest, limit: Duration) -> Result<MachineReply, HubError> {
        let peer = self.machine().as_ref().map(|peer| (peer.connection, peer.link.clone()));
        let Some((connection, link)) = peer else {
            return Err(HubError::new(HubErrorCode::Offline, "no machine is connected to this server"));
        };
        let reference = self.state().next_reference();
        let call = MachineCall { reference, request };
        match self.shared.replies.ask(&link, connection, reference, call, limit).await {
            Ok(MachineReply::Invalid { error }) => Err(HubError::new(HubErrorCode::Refused, error)),
            Ok(MachineReply::Failed { error }) => Err(HubError::new(HubErrorCode::Failed, error)),
            Ok(reply) => Ok(reply),
            Err(NoReply::NotSent | NoReply::Disconnected) => {
                Err(HubError::new(HubErrorCode::Offline, "the connection to the machine was lost"))
            }
            Err(NoReply::TimedOut) => Err(HubError::new(HubErrorCode::TimedOut, "the machine did not reply in time")),
        }
    }

    /// Connects a machine and replaces the previous one. Requests are sent to `link`.
    pub(crate) fn join_machine(&self, link: mpsc::Sender<MachineCall>) -> u64 {
        let connection = self.state().next_reference();
        *self.machine() = Some(ConnectedMachine { connection, link });
        connection
    }

    pub(crate) fn receive_machine(&self, connection: u64, message: MachineMessage) {
        match message {
            MachineMessage::Reply { reference, reply } => self.shared.replies.complete(connection, reference, *reply),
            MachineMessage::Rules { rules } => self.take_rules(rules),
            MachineMessage::Hello { .. } => {}
        }
    }

    pub(crate) fn leave_machine(&self, connection: u64) {
        self.machine().take_if(|peer| peer.connection == connection);
        self.shared.replies.leave(connection);
    }

    /// Stores the approval rules in files, and announces a change.
    pub(super) fn take_rules(&self, rules: RuleList) {
        let before = self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner).replace(rules.clone());
        if before.is_some_and(|before| before != rules) {
            self.announce(vec![HubEvent::Rules]);
        }
    }

    fn machine(&self) -> MutexGuard<'_, Option<ConnectedMachine>> {
        self.shared.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn unexpected(reply: MachineReply) -> HubError {
    tracing::error!(?reply, "the machine replied to another request");
    HubError::new(HubErrorCode::Failed, "the machine replied to another request")
}
