//! Sessions that a server sees: their questions are put there as well, and commands come from there.

use std::sync::Arc;

use amplifier_agent::{Cancel, Session};
use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalRequest, ApprovalSystem};
use amplifier_host::{ApprovalRuleStore, Policy, ReloadResult, ReloadStatus};
use amplifier_link::{Link, Participant, ParticipantOptions, PipeConnector, SOCKET, is_open};
use amplifier_server::hub::Command;
use amplifier_server::wire;
use tokio::sync::mpsc;

use crate::rules::RuleFiles;
use crate::terminal::{Screen, TerminalApprovals};

/// How a session reaches a server.
#[derive(Clone, Debug)]
pub enum Reach {
    /// By the socket in the person's folder, if a server is configured.
    Socket {
        /// Whether it takes prompts from there.
        takes_prompts: bool,
    },
    /// It runs within the server.
    Within(PipeConnector),
}

/// What a session that a server sees has to keep.
pub struct Serving {
    /// Its end of the connection.
    pub participant: Participant,
    /// What the server wants it to do.
    pub commands: mpsc::Receiver<Command>,
    link: Link,
}

impl Serving {
    /// Begins to talk to the server. If none runs, that is said: one that is started later is found.
    pub fn begin(policy: &Policy, screen: &Screen, reach: &Reach) -> Self {
        let (home, log, bundles) = (policy.home(), policy.log(), policy.reloader());
        let workspace = policy.workspace().root().to_owned();
        let told = screen.clone();
        let (participant, commands) = Participant::new(ParticipantOptions {
            workspace,
            run: log.writer().to_owned(),
            name: None,
            takes_prompts: matches!(reach, Reach::Within(_) | Reach::Socket { takes_prompts: true }),
            book: Some(Arc::new(RuleFiles(ApprovalRuleStore::new(home.clone(), log.clone())))),
            reload: Some(Arc::new(move || {
                let ReloadResult { status, news, message } = bundles.reload();
                if let Some(news) = news {
                    told.note(&news);
                }
                let result = match status {
                    ReloadStatus::Unchanged => wire::Reload::Unchanged,
                    ReloadStatus::Changed => wire::Reload::Changed,
                    ReloadStatus::Refused => wire::Reload::Refused,
                    ReloadStatus::NotTrusted => wire::Reload::NotTrusted,
                };
                wire::Reloaded { result, message }
            })),
        });
        let link = match reach {
            Reach::Within(server) => participant.join(server),
            Reach::Socket { .. } => {
                let folder = home.server_folder();
                if !is_open(&folder) {
                    let meanwhile = match screen.can_ask() {
                        true => "questions are asked here until there is one",
                        false => "questions wait for one until their time is up",
                    };
                    screen.note(&format!("no server is running, so {meanwhile}; to start one: amplifier serve"));
                }
                participant.connect(folder.join(SOCKET))
            }
        };
        Self { participant, commands, link }
    }

    /// The session has started.
    pub fn started(&self, session: &Session) {
        self.participant.begin(session.id(), session.coordinator().clone());
    }

    /// Does what the server wants of a session, until it says goodbye.
    pub fn obey(self, cancel: &Cancel) -> Obeying {
        self.obey_with(cancel, |_| ())
    }

    /// The same, and tells of each command.
    pub fn obey_with(self, cancel: &Cancel, heard: impl Fn(Command) + Send + 'static) -> Obeying {
        let Self { participant, mut commands, link } = self;
        let cancel = cancel.clone();
        let task = tokio::spawn(async move {
            while let Some(command) = commands.recv().await {
                match &command {
                    Command::Interrupt => _ = cancel.request(),
                    Command::End => {
                        // The second time is at once.
                        cancel.request();
                        cancel.request();
                    }
                    Command::Prompt(_) => {}
                }
                heard(command);
            }
        });
        Obeying { participant, link, task }
    }

    /// The session has ended.
    pub async fn bye(self, reason: &str) {
        self.link.bye(reason).await;
    }
}

/// A session that does what the server wants.
pub struct Obeying {
    participant: Participant,
    link: Link,
    task: tokio::task::JoinHandle<()>,
}

impl Obeying {
    /// The session has started.
    pub fn started(&self, session: &Session) {
        self.participant.begin(session.id(), session.coordinator().clone());
    }

    /// The session has ended.
    pub async fn bye(self, reason: &str) {
        self.task.abort();
        self.link.bye(reason).await;
    }
}

/// Asks at the terminal and at the server at once. The first answer counts.
pub struct Several {
    terminal: TerminalApprovals,
    participant: Participant,
}

impl Several {
    /// Asks both.
    pub fn new(terminal: TerminalApprovals, participant: Participant) -> Self {
        Self { terminal, participant }
    }
}

impl ApprovalSystem for Several {
    /// # Cancel safety
    /// As that of the terminal.
    async fn request_approval(&self, request: Arc<ApprovalRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let elsewhere = async {
            match self.participant.request_approval(request.clone()).await {
                Ok(answer) => answer,
                // The question is closed, which the terminal sees for itself.
                Err(_) => std::future::pending().await,
            }
        };
        self.terminal.ask_beside(request.clone(), elsewhere).await
    }
}
