//! The session's end: puts questions to the server, and takes answers and commands.
//!
//! `connection.rs` keeps up the connection, `approvals.rs` takes answers to the kernel, `rules.rs` keeps the answers that last.

mod approvals;
mod connection;
mod rules;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalRule, ApprovalSystem, Coordinator, OpenRequest};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use self::approvals::{ClosedRequest, PendingRequest};
pub use self::connection::LinkHandle;
use crate::message::{ReloadResult, SessionMessage};

/// How many commands wait for the session.
const COMMAND_QUEUE: usize = 64;

/// Records a change, or fails with a reason.
pub type RecordChange = Arc<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// Options of a [`LinkClient`].
pub struct LinkClientOptions {
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The run of the session, in letters, digits, `-` and `_`: the writer of its records, so that the record of an approval request is found by its
    /// id.
    pub run: String,
    /// The name of the session.
    pub name: Option<String>,
    /// `true` if the session takes prompts from the server.
    pub takes_prompts: bool,
    /// Records a change of the session's approval rules, before it counts. It may block.
    pub record: Option<RecordChange>,
    /// Reloads the bundles of the session. It may block. Without it, there are none that could change.
    pub reload: Option<Arc<dyn Fn() -> ReloadResult + Send + Sync>>,
}

/// What a session can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// To work on this.
    Prompt(String),
    /// To stop the running turn: the first time when the running tool has finished, then at once.
    Interrupt,
    /// To end.
    End,
}

/// The part of a session that talks to a server: an approval system, and a source of commands. A handle: clones share the same state.
///
/// Questions wait for as long as the kernel lets them, whether a server is there or not. When one comes, or comes back, everything that is
/// still open is announced to it.
#[derive(Clone)]
pub struct LinkClient {
    shared: Arc<ClientState>,
}

struct ClientState {
    options: LinkClientOptions,
    workspace: String,
    started_at: Timestamp,
    commands: mpsc::Sender<Command>,
    /// The id of the session, once it is known.
    session: watch::Sender<Option<String>>,
    // A std lock: nothing awaits while it is held.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    coordinator: Option<Coordinator>,
    is_idle: bool,
    is_over: bool,
    open: BTreeMap<u64, PendingRequest>,
    closed: VecDeque<ClosedRequest>,
    /// Standing answers for the session that were not given to a question.
    added_rules: Vec<ApprovalRule>,
    /// The way to the server, while there is one.
    link: Option<mpsc::Sender<SessionMessage>>,
    /// What the server was last told.
    sent_rules: Vec<ApprovalRule>,
    sent_hooks: Vec<Value>,
}

impl LinkClient {
    /// A participant that is connected to nothing yet, and what the server wants the session to do.
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

    /// The session has begun. Before that, it is known by its first question.
    pub fn begin(&self, session: &str, coordinator: Coordinator) {
        self.shared.state().coordinator = Some(coordinator);
        self.shared.apply_session_rules();
        self.shared.set_session_id(session);
        self.refresh();
    }

    /// Returns when the id of the session is known, with the id.
    pub async fn session(&self) -> String {
        let mut session = self.shared.session.subscribe();
        let known = session.wait_for(Option::is_some).await.map(|known| known.clone());
        known.ok().flatten().unwrap_or_default()
    }

    /// Says whether the session waits for a prompt.
    pub fn set_idle(&self, idle: bool) {
        {
            let mut state = self.shared.state();
            state.is_idle = idle;
            state.send(SessionMessage::Idle { idle });
        }
        self.refresh();
    }

    /// Tells the server which standing answers and which hooks the session has, if that has changed.
    pub fn refresh(&self) {
        self.shared.send_rules();
        self.shared.send_hooks();
    }
}

impl ApprovalSystem for LinkClient {
    /// # Cancel safety
    /// Dropping the future changes nothing for the server: it is told when the question is closed.
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        if let Some(session) = request.data.text("session_id") {
            self.shared.set_session_id(session);
        }
        let (answer, answered) = oneshot::channel();
        let is_delivered = Arc::new(AtomicBool::new(false));
        tokio::spawn(self.shared.clone().track_request(request.clone(), answer, is_delivered.clone()));
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

    /// The id of the session is known. The first one stays: sub-agents ask through the session that delegated to them.
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
    /// Says something to the server, if it is there. If it does not listen, the connection is given up; when it is back, it is told all.
    fn send(&mut self, message: SessionMessage) {
        if self.link.as_ref().is_some_and(|link| link.try_send(message).is_err()) {
            self.link = None;
        }
    }
}
