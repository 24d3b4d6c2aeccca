//! The connection of a session to a server, and its messages.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{ApprovalRule, RuleScope};
use amplifier_process::sockets;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, BufWriter};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{ClientState, Command, LinkClient, State};
use crate::session_message::{ReloadResult, ReloadStatus, ServerMessage, SessionHello, SessionMessage, VERSION};
use crate::transport::{LineReader, PipeConnector, write};

/// The delay before the first reconnect, doubled up to the second value.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// The time limit for the welcome, and for sending a line.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of queued messages for a slow server. Beyond that, the connection is dropped.
const MESSAGE_QUEUE: usize = 16_384;
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to a server, maintained until dropped.
#[must_use = "the connection ends when it is dropped"]
pub struct LinkHandle {
    client: LinkClient,
    task: JoinHandle<()>,
}

impl LinkClient {
    /// Connects to the server at a socket, whenever there is one.
    pub fn connect(&self, socket: impl Into<PathBuf>) -> LinkHandle {
        let (socket, shared) = (socket.into(), self.shared.clone());
        self.link(async move {
            let mut pause = BACK_OFF[0];
            loop {
                if let Ok((from, to)) = sockets::connect(&socket).await {
                    let mut is_welcome = false;
                    let ended = shared.exchange_messages(from, to, &mut is_welcome).await;
                    tracing::debug!(?ended, "the connection to the server has ended");
                    if is_welcome {
                        pause = BACK_OFF[0];
                    }
                }
                if shared.state().is_over {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(BACK_OFF[1]);
            }
        })
    }

    /// Connects to the server in the same process.
    pub fn join(&self, server: &PipeConnector) -> LinkHandle {
        let (shared, server) = (self.shared.clone(), server.clone());
        self.link(async move {
            while !shared.state().is_over {
                let (from, to) = tokio::io::split(server.open());
                let ended = shared.exchange_messages(from, to, &mut false).await;
                tracing::debug!(?ended, "the connection to the server has ended");
                if !shared.state().is_over {
                    tokio::time::sleep(BACK_OFF[0]).await;
                }
            }
        })
    }

    fn link(&self, connection: impl Future<Output = ()> + Send + 'static) -> LinkHandle {
        let mut session = self.shared.session.subscribe();
        let task = tokio::spawn(async move {
            // The hello needs the id of the session.
            if session.wait_for(Option::is_some).await.is_ok() {
                connection.await;
            }
        });
        LinkHandle { client: self.clone(), task }
    }
}

impl LinkHandle {
    /// Ends the connection, and informs the server that the session has ended.
    pub async fn close(mut self, reason: &str) {
        let is_connected = {
            let mut state = self.client.shared.state();
            state.is_over = true;
            state.send(SessionMessage::Bye { reason: reason.to_owned() });
            // Queued messages are still sent.
            state.link.take().is_some()
        };
        if is_connected {
            let _ = tokio::time::timeout(GOODBYE_TIMEOUT, &mut self.task).await;
        }
    }
}

impl Drop for LinkHandle {
    fn drop(&mut self) {
        self.task.abort();
        let mut state = self.client.shared.state();
        state.link = None;
        // The coordinator of the session owns the approval system: this breaks the reference cycle.
        state.coordinator = None;
    }
}

impl ClientState {
    async fn exchange_messages(
        self: &Arc<Self>,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
        is_welcome: &mut bool,
    ) -> io::Result<()> {
        let mut lines = LineReader::new(BufReader::new(from));
        let mut to = BufWriter::new(to);
        let hello = SessionMessage::Hello(self.hello());
        tokio::time::timeout(SERVER_TIMEOUT, write(&mut to, &hello)).await??;
        match tokio::time::timeout(SERVER_TIMEOUT, lines.next()).await?? {
            Some(ServerMessage::Welcome { version: VERSION }) => *is_welcome = true,
            _ => return Err(io::Error::other("the server did not send a welcome")),
        }
        let (open, mut messages) = self.connect_queue();
        let writing = async {
            for message in open {
                tokio::time::timeout(SERVER_TIMEOUT, write(&mut to, &message)).await??;
            }
            while let Some(message) = messages.recv().await {
                tokio::time::timeout(SERVER_TIMEOUT, write(&mut to, &message)).await??;
            }
            io::Result::Ok(())
        };
        let reading = async {
            while let Some(message) = lines.next().await? {
                self.receive(message);
            }
            io::Result::Ok(())
        };
        let ended = tokio::select! {
            ended = writing => ended,
            ended = reading => ended,
        };
        self.state().link = None;
        ended
    }

    fn hello(&self) -> SessionHello {
        SessionHello {
            version: VERSION,
            session: self.session.borrow().clone().unwrap_or_default(),
            run: self.options.run.clone(),
            name: self.options.name.clone(),
            pid: std::process::id(),
            workspace: self.workspace.clone(),
            machine: None,
            takes_prompts: self.options.takes_prompts,
            idle: self.state().is_idle,
            started_at: self.started_at,
        }
    }

    /// Returns the current state as messages, and the queue of later ones.
    fn connect_queue(&self) -> (Vec<SessionMessage>, mpsc::Receiver<SessionMessage>) {
        let (link, messages) = mpsc::channel(MESSAGE_QUEUE);
        let mut state = self.state();
        let mut open = vec![SessionMessage::Idle { idle: state.is_idle }];
        open.extend(state.mode.clone().map(|mode| SessionMessage::Mode { mode }));
        let request = state.open.values().map(|pending| Box::new(pending.approval.clone()));
        open.extend(request.map(|approval| SessionMessage::ApprovalRequested { approval }));
        state.sent_rules = state.rules();
        state.sent_hooks = state.hooks();
        open.push(SessionMessage::Rules { rules: state.sent_rules.clone() });
        open.push(SessionMessage::Hooks { hooks: state.sent_hooks.clone() });
        // Under the same lock, so that no message is lost or sent twice.
        state.link = Some(link);
        (open, messages)
    }

    fn receive(self: &Arc<Self>, message: ServerMessage) {
        let command = match message {
            ServerMessage::Answer { reference, id, digest, answer } => {
                let shared = self.clone();
                tokio::spawn(async move {
                    let (status, decision) = shared.deliver_answer(&id, digest, answer).await;
                    shared.state().send(SessionMessage::Answered { reference, id, status, decision, by: None });
                });
                return;
            }
            ServerMessage::AddRule { reference, rule } => {
                let rule = ApprovalRule { scope: RuleScope::Session, ..*rule };
                return self.change_rules(reference, move |shared| shared.add_rule(rule));
            }
            ServerMessage::RevokeRule { reference, rule, by } => {
                return self.change_rules(reference, move |shared| shared.revoke(&rule, &by));
            }
            ServerMessage::Reload { reference } => return self.reload_bundles(reference),
            ServerMessage::Prompt { text } => Command::Prompt(text),
            ServerMessage::Interrupt => Command::Interrupt,
            ServerMessage::End => Command::End,
            ServerMessage::Welcome { .. } => return,
        };
        if self.commands.try_send(command).is_err() {
            tracing::warn!("a command of the server is lost, because the session takes none");
        }
    }

    fn reload_bundles(self: &Arc<Self>, reference: u64) {
        let shared = self.clone();
        tokio::spawn(async move {
            let state = shared.clone();
            let reload = tokio::task::spawn_blocking(move || {
                let result = state.options.reload.as_ref().map(|reload| reload());
                // The list first, so that the requester finds it when the reply arrives.
                state.send_hooks();
                result.unwrap_or(ReloadResult { result: ReloadStatus::Unchanged, message: None })
            });
            let reload = reload.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the bundles cannot be reloaded");
                ReloadResult {
                    result: ReloadStatus::Refused,
                    message: Some("the reload of the bundles failed".to_owned()),
                }
            });
            shared.state().send(SessionMessage::Reloaded { reference, reload });
        });
    }

    pub(super) fn send_hooks(&self) {
        let mut state = self.state();
        let hooks = state.hooks();
        if hooks != state.sent_hooks {
            state.sent_hooks.clone_from(&hooks);
            state.send(SessionMessage::Hooks { hooks });
        }
    }
}

impl State {
    fn hooks(&self) -> Vec<Value> {
        let Some(coordinator) = &self.coordinator else { return Vec::new() };
        let hooks = coordinator.hooks().list_handlers();
        hooks.iter().filter_map(|hook| serde_json::to_value(hook).ok()).collect()
    }
}
