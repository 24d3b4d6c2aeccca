//! The approval requests of other machines in a server, whose answers go back to the centre.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::time::Duration;

use amplifier_core::ApprovalAnswer;
use amplifier_link::{
    AnswerStatus, ApprovalId, LineReader, OpenApproval, PipeConnector, ServerMessage, SessionHello, SessionMessage,
    VERSION, write,
};
use jiff::Timestamp;
use tokio::io::{BufReader, BufWriter};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::console::{Console, ConsoleEvent};
use super::console_state::AnswerError;
use crate::FleetName;

/// The time in which the machine usually confirms an answer. It is shorter than the server's time limit for a reply.
const CONFIRMATION: Duration = Duration::from_secs(4);

/// The time limit for a message of the server, and the pause before a refused session is tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval of the checks that end sessions without open requests.
const LINGER: Duration = Duration::from_secs(60);

const QUEUE: usize = 1024;

/// Shows the requests of all machines in a server, until it is dropped. Each asking session is a session of the server, with the name of its machine.
#[derive(Debug)]
pub struct ServerBridge(JoinHandle<()>);

impl ServerBridge {
    /// Starts to send requests over pipes for sessions of other machines.
    pub fn start(console: Console, server: PipeConnector) -> Self {
        Self(tokio::spawn(run(console, server)))
    }
}

impl Drop for ServerBridge {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A run of a session on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RemoteSession {
    machine: FleetName,
    session: String,
    run: String,
}

impl RemoteSession {
    fn new(machine: &FleetName, id: &ApprovalId) -> Self {
        Self { machine: machine.clone(), session: id.session.clone(), run: id.run.clone() }
    }
}

async fn run(console: Console, server: PipeConnector) {
    let mut sessions: HashMap<RemoteSession, mpsc::Sender<SessionMessage>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut events = console.subscribe();
    let mut current = console.open_requests();
    let mut ticks = tokio::time::interval(LINGER);
    loop {
        for approval in std::mem::take(&mut current) {
            let Some(remote) = remote_session(&approval) else { continue };
            // A session whose requests were refused has ended.
            sessions.retain(|_, session| !session.is_closed());
            let session = sessions.entry(remote).or_insert_with_key(|remote| {
                let (send, messages) = mpsc::channel(QUEUE);
                let bridge = SessionBridge::new(console.clone(), remote, &approval);
                let server = server.clone();
                tasks.spawn(async move { bridge.run(&server, messages).await });
                send
            });
            let message = SessionMessage::ApprovalRequested { approval: Box::new(OpenApproval::clone(&approval)) };
            if session.send(message).await.is_err() {
                // It ended just now.
                current.push(approval);
            }
        }
        if !current.is_empty() {
            continue;
        }
        while tasks.try_join_next().is_some() {}
        tokio::select! {
            event = events.recv() => match event {
                Ok(ConsoleEvent::Opened(approval)) => current.push(approval),
                Ok(ConsoleEvent::Closed { machine, id, decision }) => {
                    if let Some(session) = sessions.get(&RemoteSession::new(&machine, &id)) {
                        // A session that has ended shows no requests.
                        let _ = session.send(SessionMessage::ApprovalClosed { id, decision }).await;
                    }
                }
                Err(RecvError::Lagged(_)) => current = console.open_requests(),
                Err(RecvError::Closed) => return,
            },
            _ = ticks.tick() => {
                let open: HashSet<RemoteSession> = console.open_requests().iter().filter_map(|open| remote_session(open)).collect();
                sessions.retain(|remote, _| open.contains(remote));
            }
        }
    }
}

/// Returns the session that sent a request of a console.
fn remote_session(approval: &OpenApproval) -> Option<RemoteSession> {
    Some(RemoteSession::new(&approval.machine.as_deref()?.parse().ok()?, &approval.id))
}

/// One session of another machine, as a session of the server.
struct SessionBridge {
    console: Console,
    machine: FleetName,
    hello: SessionHello,
    open: BTreeMap<u64, Box<OpenApproval>>,
}

impl SessionBridge {
    fn new(console: Console, remote: &RemoteSession, approval: &OpenApproval) -> Self {
        let hello = SessionHello {
            version: VERSION,
            session: remote.session.clone(),
            run: remote.run.clone(),
            name: approval.session_name.clone(),
            pid: 0,
            workspace: approval.workspace.clone(),
            machine: Some(remote.machine.to_string()),
            takes_prompts: false,
            idle: false,
            started_at: approval.created_at,
        };
        Self { console, machine: remote.machine.clone(), hello, open: BTreeMap::new() }
    }

    /// Connects until no more messages can come, or the server does not take the session.
    async fn run(mut self, server: &PipeConnector, mut messages: mpsc::Receiver<SessionMessage>) {
        loop {
            match self.exchange(server, &mut messages).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%error, machine = %self.machine, "a session of another machine is not shown")
                }
            }
            let pause = tokio::time::sleep(PATIENCE);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    message = messages.recv() => match message {
                        Some(message) => self.apply(&message),
                        None => return,
                    },
                    () = &mut pause => break,
                }
            }
            let now = Timestamp::now();
            self.open.retain(|_, approval| approval.deadline > now);
            if self.open.is_empty() {
                return;
            }
        }
    }

    /// Shows the requests and delivers answers, until there is nothing to show, or the connection fails.
    async fn exchange(
        &mut self,
        server: &PipeConnector,
        messages: &mut mpsc::Receiver<SessionMessage>,
    ) -> io::Result<()> {
        let (from, to) = tokio::io::split(server.open());
        let (mut lines, mut to) = (LineReader::new(BufReader::new(from)), BufWriter::new(to));
        write(&mut to, &SessionMessage::Hello(self.hello.clone())).await?;
        match tokio::time::timeout(PATIENCE, lines.next()).await?? {
            Some(ServerMessage::Welcome { version: VERSION }) => {}
            _ => return Err(io::Error::other("the server refuses the session")),
        }
        for approval in self.open.values() {
            write(&mut to, &SessionMessage::ApprovalRequested { approval: approval.clone() }).await?;
        }
        let mut answers = JoinSet::new();
        loop {
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else {
                        let bye = SessionMessage::Bye { reason: "no open requests".to_owned() };
                        return write(&mut to, &bye).await;
                    };
                    self.apply(&message);
                    write(&mut to, &message).await?;
                }
                message = lines.next() => match message? {
                    Some(ServerMessage::Answer { reference, id, answer, .. }) => {
                        let (console, machine) = (self.console.clone(), self.machine.clone());
                        answers.spawn(async move {
                            deliver(&console, &machine, reference, id, answer).await
                        });
                    }
                    // Other commands are for sessions of this machine.
                    Some(_) => {}
                    None => return Err(io::Error::other("the server has closed the connection")),
                },
                Some(Ok(answered)) = answers.join_next() => write(&mut to, &answered).await?,
            }
        }
    }

    fn apply(&mut self, message: &SessionMessage) {
        match message {
            SessionMessage::ApprovalRequested { approval } => {
                _ = self.open.insert(approval.id.number, approval.clone())
            }
            SessionMessage::ApprovalClosed { id, .. } => _ = self.open.remove(&id.number),
            _ => {}
        }
    }
}

/// Sends an answer to the centre, and returns the reply to the server.
async fn deliver(
    console: &Console,
    machine: &FleetName,
    reference: u64,
    id: ApprovalId,
    answer: ApprovalAnswer,
) -> SessionMessage {
    let own = answer.by.clone();
    let (status, decision, by) = match console.answer(machine, &id, answer).await {
        Ok(()) => {
            let (status, decision) = console.status(machine, &id, own.as_ref(), CONFIRMATION).await;
            (status, decision, None)
        }
        Err(AnswerError::Answered(by)) => (AnswerStatus::Answered, None, by),
        Err(AnswerError::Closed(decision)) => (AnswerStatus::of_ignored_answer(&decision), Some(decision), None),
        Err(AnswerError::NotOffered(_)) => (AnswerStatus::NotOffered, None, None),
        Err(AnswerError::Unknown { .. }) => (AnswerStatus::Closed, None, None),
        Err(AnswerError::Fleet(error)) => {
            tracing::warn!(%error, "an answer for another machine is not confirmed");
            (AnswerStatus::Sent, None, None)
        }
    };
    SessionMessage::Answered { reference, id, status, decision, by }
}
