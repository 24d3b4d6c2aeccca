//! The client of the link: sends approval requests to the server, and receives answers and commands.
//!
//! `connection.rs` maintains the connection, `announced_requests.rs` announces requests and delivers answers, `approval_rules.rs` manages the approval rules.

mod announced_requests;
mod approval_rules;
mod connection;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalRule, ApprovalSystem, Coordinator, OpenRequest};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use self::announced_requests::{ClosedRequest, PendingRequest};
pub use self::connection::LinkHandle;
use crate::session_message::{ReloadResult, SessionMessage};

const COMMAND_QUEUE: usize = 64;

/// Records a change, or fails with a reason.
pub type RecordChange = Arc<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// Options of a [`LinkClient`].
pub struct LinkClientOptions {
    /// The workspace.
    pub workspace: PathBuf,
    /// The run of the session, in letters, digits, `-` and `_`. Equals the writer of its records, so that the record of a request is found by id.
    pub run: String,
    /// The name of the session.
    pub name: Option<String>,
    /// `true` if the session takes prompts from the server.
    pub takes_prompts: bool,
    /// Records a change of approval rules before it takes effect. It may block.
    pub record: Option<RecordChange>,
    /// Reloads the bundles, and may block. None if the session has no bundles.
    pub reload: Option<Arc<dyn Fn() -> ReloadResult + Send + Sync>>,
}

/// A command for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Run this prompt.
    Prompt(String),
    /// Stop the running turn: first gracefully, the second time at once.
    Interrupt,
    /// End the session.
    End,
}

/// The client of a session: an approval system, and a source of commands. Cheap to clone; clones share state.
///
/// Requests wait within the time limit of the kernel, even without a server. A server that connects gets all open requests.
#[derive(Clone)]
pub struct LinkClient {
    shared: Arc<ClientState>,
}

struct ClientState {
    options: LinkClientOptions,
    workspace: String,
    started_at: Timestamp,
    commands: mpsc::Sender<Command>,
    session: watch::Sender<Option<String>>,
    // A std lock: nothing awaits while it is held.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    coordinator: Option<Coordinator>,
    is_idle: bool,
    /// The approval mode, if the session has one.
    mode: Option<String>,
    is_over: bool,
    open: BTreeMap<u64, PendingRequest>,
    closed: VecDeque<ClosedRequest>,
    /// Rules that were added without an approval request.
    added_rules: Vec<ApprovalRule>,
    link: Option<mpsc::Sender<SessionMessage>>,
    /// The state that the server knows.
    sent_rules: Vec<ApprovalRule>,
    sent_hooks: Vec<Value>,
}

impl LinkClient {
    /// A client without a connection, and the receiver of commands.
    pub fn new(options: LinkClientOptions) -> (Self, mpsc::Receiver<Command>) {
        let (commands, receiver) = mpsc::channel(COMMAND_QUEUE);
        let workspace = options.workspace.canonicalize().unwrap_or_else(|_| options.workspace.clone());
        let shared = ClientState {
            workspace: workspace.to_string_lossy().into_owned(),
            options,
            started_at: Timestamp::now(),
            commands,
            session: watch::Sender::new(None),
            state: Mutex::default(),
        };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Sets the session after its start. Before, the first approval request reveals the id.
    pub fn begin(&self, session: &str, coordinator: Coordinator) {
        self.shared.state().coordinator = Some(coordinator);
        self.shared.apply_session_rules();
        self.shared.set_session_id(session);
        self.refresh();
    }

    /// Waits for the id of the session.
    pub async fn session(&self) -> String {
        let mut session = self.shared.session.subscribe();
        let known = session.wait_for(Option::is_some).await.map(|known| known.clone());
        known.ok().flatten().unwrap_or_default()
    }

    /// Reports if the session waits for a prompt.
    pub fn set_idle(&self, idle: bool) {
        {
            let mut state = self.shared.state();
            state.is_idle = idle;
            state.send(SessionMessage::Idle { idle });
        }
        self.refresh();
    }

    /// Reports the approval mode of the session.
    pub fn set_mode(&self, mode: &str) {
        {
            let mut state = self.shared.state();
            state.mode = Some(mode.to_owned());
            state.send(SessionMessage::Mode { mode: mode.to_owned() });
        }
        // A mode can register hooks.
        self.refresh();
    }

    /// Sends changed rules and hooks to the server.
    pub fn refresh(&self) {
        self.shared.send_rules();
        self.shared.send_hooks();
    }
}

impl ApprovalSystem for LinkClient {
    /// # Cancel safety
    /// Dropping the future changes nothing for the server, which is notified when the request closes.
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        if let Some(session) = request.data.text("session_id") {
            self.shared.set_session_id(session);
        }
        let (answer, answered) = oneshot::channel();
        let is_delivered = Arc::new(AtomicBool::new(false));
        tokio::spawn(self.shared.clone().announce_request(request.clone(), answer, is_delivered.clone()));
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

impl ClientState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the id, unless it is set: sub-agents use the connection of their parent.
    fn set_session_id(&self, session: &str) {
        self.session.send_if_modified(|known| {
            let is_new = known.is_none();
            if is_new {
                *known = Some(session.to_owned());
            }
            is_new
        });
    }
}

impl State {
    /// Queues a message, if connected. If the queue is full, the connection is dropped; a new connection starts with the full state.
    fn send(&mut self, message: SessionMessage) {
        if self.link.as_ref().is_some_and(|link| link.try_send(message).is_err()) {
            self.link = None;
        }
    }
}
