//! The link of a session to a server: approval requests go there, and commands come from there.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_agent::{Cancel, Session};
use amplifier_audit::Log;
use amplifier_link::{
    Command, LinkClient, LinkClientOptions, LinkHandle, PipeConnector, ReloadResult, SOCKET, is_open,
};
use tokio::sync::{mpsc, watch};

use crate::approval_rule_store::ApprovalRuleStore;
use crate::error::reasons;
use crate::home::Home;
use crate::notices::Notices;

/// The server of a session.
#[derive(Clone, Debug)]
pub enum LinkTarget {
    /// The server at the socket in the user's folder, whenever there is one.
    Socket {
        /// `true` if the session takes prompts from the server.
        takes_prompts: bool,
    },
    /// The server in the same process.
    Pipe(PipeConnector),
}

/// The parts of a session that its link needs; see [`Policy::link_options`](crate::Policy::link_options).
pub struct LinkOptions {
    /// The user's folders, one of which contains the server's socket.
    pub home: Home,
    /// The workspace.
    pub workspace: PathBuf,
    /// The audit log. Rule changes are recorded there before they take effect.
    pub log: Log,
    /// The receiver of messages for the user.
    pub notices: Notices,
    /// Reloads the bundles, and may block. None if the session has no bundles.
    pub reload: Option<Arc<dyn Fn() -> ReloadResult + Send + Sync>>,
}

/// The link of a session to its server.
pub struct ServerLink {
    /// The client, an approval system.
    pub client: LinkClient,
    /// The commands of the server.
    pub commands: mpsc::Receiver<Command>,
    link: LinkHandle,
}

impl ServerLink {
    /// Connects to the server. If none is running, sends a notice; a server started later is found. `asks_here` is `true` if this process also shows
    /// approval requests.
    pub fn open(options: LinkOptions, target: &LinkTarget, asks_here: bool) -> Self {
        let LinkOptions { home, workspace, log, notices, reload } = options;
        let store = ApprovalRuleStore::new(home.clone(), log.clone());
        let (client, commands) = LinkClient::new(LinkClientOptions {
            workspace,
            run: log.writer().to_owned(),
            name: None,
            takes_prompts: matches!(target, LinkTarget::Pipe(_) | LinkTarget::Socket { takes_prompts: true }),
            record: Some(Arc::new(move |change| store.record(change).map_err(|error| reasons(&error)))),
            reload,
        });
        let link = match target {
            LinkTarget::Pipe(server) => client.join(server),
            LinkTarget::Socket { .. } => {
                let folder = home.server_folder();
                if !is_open(&folder) {
                    let meanwhile = match asks_here {
                        true => "approval requests appear only here",
                        false => "approval requests wait for one within their time limit",
                    };
                    notices.note(format!("no server is running, so {meanwhile}; to start one: amplifier serve"));
                }
                client.connect(folder.join(SOCKET))
            }
        };
        Self { client, commands, link }
    }

    /// Announces a session that has started.
    pub fn started(&self, session: &Session) {
        self.client.begin(session.id(), session.coordinator().clone());
    }

    /// Applies the commands of the server until [`RemoteControl::close`], and forwards each to `received`.
    pub fn control(self, cancel: &Cancel, received: impl Fn(Command) + Send + 'static) -> RemoteControl {
        let Self { client, mut commands, link } = self;
        let cancel = cancel.clone();
        let task = tokio::spawn(async move {
            while let Some(command) = commands.recv().await {
                apply_command(&command, &cancel);
                received(command);
            }
        });
        RemoteControl { client, link, task }
    }

    /// Ends the link after the session.
    pub async fn close(self, reason: &str) {
        self.link.close(reason).await;
    }
}

/// Stops the running turn if the command requires that.
fn apply_command(command: &Command, cancel: &Cancel) {
    match command {
        Command::Interrupt => _ = cancel.request(),
        Command::End => {
            // The second request stops at once.
            cancel.request();
            cancel.request();
        }
        Command::Prompt(_) => {}
    }
}

/// A session that its server controls.
pub struct RemoteControl {
    client: LinkClient,
    link: LinkHandle,
    task: tokio::task::JoinHandle<()>,
}

impl RemoteControl {
    /// Announces a session that has started.
    pub fn started(&self, session: &Session) {
        self.client.begin(session.id(), session.coordinator().clone());
    }

    /// Ends the link after the session.
    pub async fn close(self, reason: &str) {
        self.task.abort();
        self.link.close(reason).await;
    }
}

/// The commands for a session in a server. The end of the server ends the session.
pub(crate) struct SessionCommands<'a> {
    pub(crate) commands: &'a mut mpsc::Receiver<Command>,
    pub(crate) ending: &'a mut watch::Receiver<bool>,
}

impl SessionCommands<'_> {
    async fn next(&mut self) -> Command {
        tokio::select! {
            command = self.commands.recv() => command.unwrap_or(Command::End),
            _ = self.ending.wait_for(|ending| *ending) => Command::End,
        }
    }
}

/// Runs a session on prompts of its server, until told to end.
pub(crate) async fn run_remotely(
    session: &Session,
    client: &LinkClient,
    commands: &mut SessionCommands<'_>,
    cancel: &Cancel,
    prompt: Option<String>,
) {
    let mut next = prompt;
    let mut is_over = false;
    while !is_over {
        let Some(prompt) = next.take() else {
            client.set_idle(true);
            match commands.next().await {
                Command::Prompt(text) => next = Some(text),
                Command::End => is_over = true,
                // No turn is running.
                Command::Interrupt => {}
            }
            continue;
        };
        client.set_idle(false);
        let mut turn = std::pin::pin!(session.prompt(&prompt));
        loop {
            tokio::select! {
                end = &mut turn => {
                    tracing::debug!(status = end.status(), "a turn has ended");
                    break;
                }
                command = commands.next(), if !is_over => {
                    apply_command(&command, cancel);
                    match command {
                        // The server sends no prompt to a busy session; one that was already under way comes next.
                        Command::Prompt(text) => next = Some(text),
                        Command::End => is_over = true,
                        Command::Interrupt => {}
                    }
                }
            }
        }
    }
}
