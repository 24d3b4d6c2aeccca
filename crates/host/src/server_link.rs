//! Sessions that a server sees: approval requests go there, and commands come from there.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_agent::{Cancel, Session};
use amplifier_audit::Log;
use amplifier_link::{
    Command, LinkClient, LinkClientOptions, LinkHandle, PipeConnector, ReloadResult, SOCKET, is_open,
};
use tokio::sync::{mpsc, watch};

use crate::error::reasons;
use crate::home::Home;
use crate::notices::Notices;
use crate::rule_store::ApprovalRuleStore;

/// The server of a session.
#[derive(Clone, Debug)]
pub enum LinkTarget {
    /// The one that listens on the socket in the user's folder, whenever there is one.
    Socket {
        /// `true` if the session takes prompts from there.
        takes_prompts: bool,
    },
    /// The one in the same process.
    Pipe(PipeConnector),
}

/// What the link needs of a session. [`Policy::link_options`](crate::Policy::link_options) has that of a session from configuration.
pub struct LinkOptions {
    /// The folders of the user, one of which has the server's socket.
    pub home: Home,
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The audit log of the session. Changes of its approval rules are recorded there before they count.
    pub log: Log,
    /// The receiver of messages for the user.
    pub notices: Notices,
    /// Reloads the bundles of the session. It may block. Without it, there are none that could change.
    pub reload: Option<Arc<dyn Fn() -> ReloadResult + Send + Sync>>,
}

/// The link of a session to its server.
pub struct ServerLink {
    /// The client, which is an approval system.
    pub client: LinkClient,
    /// The server's commands for the session.
    pub commands: mpsc::Receiver<Command>,
    link: LinkHandle,
}

impl ServerLink {
    /// Connects to the server. If none runs, a notice says so; one that is started later is found. `asks_here` is `true` if requests are shown to the user of
    /// this process, too.
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
                        true => "questions are asked here until there is one",
                        false => "questions wait for one until their time is up",
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

    /// Obeys the commands of the server until [`RemoteControl::close`], and passes each on.
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

/// Stops the running turn if the command says so.
fn apply_command(command: &Command, cancel: &Cancel) {
    match command {
        Command::Interrupt => _ = cancel.request(),
        Command::End => {
            // The second request is for at once.
            cancel.request();
            cancel.request();
        }
        Command::Prompt(_) => {}
    }
}

/// A session that obeys its server.
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

/// The commands for a session that runs in a server. When the server ends, so does the session.
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

/// Runs a session on the prompts of its server until it is told to end.
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
                // No turn runs.
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
                        // The server sends no prompt to a session that is busy; one that crossed its path comes next.
                        Command::Prompt(text) => next = Some(text),
                        Command::End => is_over = true,
                        Command::Interrupt => {}
                    }
                }
            }
        }
    }
}
