//! What the server gets from the command: sessions that run in it, the tests of bundles, and trials of hooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::{Cancel, Session};
use amplifier_audit::Log;
use amplifier_core::HookRegistry;
use amplifier_host::{ApprovalRuleStore, Config, Home, SessionParts, bundles};
use amplifier_modules::bundle::{Loaded, load};
use amplifier_server::hub::Command;
use amplifier_server::trial::{Trial, Tried};
use amplifier_server::{BoxFuture, Host, Hub};
use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::agent::{self, Prepared, Watcher};
use crate::commands::hooks::{self, Registered};
use crate::errors::reasons;
use crate::flags::Flags;
use crate::rules::RuleFiles;
use crate::serving::{Reach, Serving};
use crate::terminal::{Look, Screen};

/// Knows how sessions and bundles are configured.
pub struct Hosting {
    flags: Flags,
    home: Home,
    sessions: HostedSessions,
}

/// The sessions that run in the server, which end with it.
#[derive(Clone)]
pub struct HostedSessions {
    running: Arc<watch::Sender<usize>>,
    ending: Arc<watch::Sender<bool>>,
}

/// One of them, until it is dropped.
struct Hosted {
    sessions: HostedSessions,
    ending: watch::Receiver<bool>,
}

impl HostedSessions {
    /// How long sessions may take to end.
    const GRACE: Duration = Duration::from_secs(5);

    fn new() -> Self {
        Self { running: Arc::new(watch::Sender::new(0)), ending: Arc::new(watch::Sender::new(false)) }
    }

    fn enter(&self) -> Hosted {
        self.running.send_modify(|running| *running += 1);
        Hosted { sessions: self.clone(), ending: self.ending.subscribe() }
    }

    /// Ends all sessions, and waits until they have an end in the audit log, for five seconds at most.
    pub async fn end(self) {
        self.ending.send_replace(true);
        let mut running = self.running.subscribe();
        if timeout(Self::GRACE, running.wait_for(|running| *running == 0)).await.is_err() {
            tracing::warn!("sessions in the server did not end in time");
        }
    }
}

impl Hosted {
    /// The next command for the session. When the server ends, that is to end.
    async fn command(&mut self, serving: &mut Serving) -> Command {
        tokio::select! {
            command = serving.commands.recv() => command.unwrap_or(Command::End),
            _ = self.ending.wait_for(|ending| *ending) => Command::End,
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.sessions.running.send_modify(|running| *running -= 1);
    }
}

impl Hosting {
    /// With these flags for all sessions, and what else is configured.
    pub fn new(flags: Flags, home: Home) -> Self {
        Self { flags, home, sessions: HostedSessions::new() }
    }

    /// The sessions that it starts.
    pub fn sessions(&self) -> HostedSessions {
        self.sessions.clone()
    }

    /// A hub that knows the standing answers in the person's files. Changes of them are recorded in the log.
    pub fn hub(&self, log: &Log) -> Hub {
        let hub = Hub::new();
        hub.keep_rules(Arc::new(RuleFiles(ApprovalRuleStore::new(self.home.clone(), log.clone()))));
        hub
    }

    fn config(&self, workspace: Option<String>) -> Result<Config> {
        let mut flags = self.flags.clone();
        flags.workspace = workspace.map(PathBuf::from).or(flags.workspace);
        if let Some(folder) = flags.workspace.as_ref().filter(|folder| !folder.is_absolute() || !folder.is_dir()) {
            bail!("the workspace `{}` is no folder; please give its whole path", folder.display());
        }
        flags.load(&self.home)
    }

    async fn start(&self, hub: Hub, workspace: Option<String>, prompt: Option<String>) -> Result<String> {
        let config = self.config(workspace)?;
        let cancel = Cancel::default();
        // Nobody looks: what happens is in the audit log, and questions go to the server.
        let screen = Screen::to(std::io::sink(), std::io::sink(), Look::plain());
        let reach = Reach::Within(hub.pipes());
        let prepared = agent::prepare(&config, &self.home, HookRegistry::new(), &screen, &cancel, &reach).await?;
        let Prepared { parts, watcher, serving } = prepared;
        let SessionParts { builder, policy, servers, .. } = parts;
        let serving = serving.context("a session in the server is connected to it")?;
        let participant = serving.participant.clone();
        let (tell, told) = tokio::sync::oneshot::channel();
        let mut hosted = self.sessions.enter();
        tokio::spawn(async move {
            let session = match builder.start().await {
                Ok(session) => session,
                Err(error) => {
                    // Whoever asked has an id already if a hook has put a question; then the record says why.
                    let _ = tell.send(Err(error));
                    return serving.bye("error").await;
                }
            };
            let _ = tell.send(Ok(session.id().to_owned()));
            serving.started(&session);
            let ended = live(session, serving, &mut hosted, &watcher, &cancel, prompt).await;
            drop(servers);
            // Closing waits for the disk.
            let closed = tokio::task::spawn_blocking(move || policy.close()).await;
            if ended.is_err() || !matches!(closed, Ok(Ok(()))) {
                tracing::error!(?ended, ?closed, "a session in the server has no proper end in the audit log");
            }
        });
        tokio::select! {
            biased;
            started = told => started.context("the session did not start")?.map_err(Into::into),
            // A hook asks before it begins: whoever started it has to know which question is its own.
            id = participant.session() => Ok(id),
        }
    }

    async fn test(&self, bundle: Option<String>) -> Result<serde_json::Value> {
        let config = self.config(None)?;
        let Some(text) = bundle else {
            return hooks::tested(&hooks::chosen(None, &config, &self.home)?, &config, &self.home).await;
        };
        let (_folder, bundle) = written(&text)?;
        hooks::tested(&bundle, &config, &self.home).await
    }

    async fn try_out(&self, trial: Trial) -> Result<Tried> {
        let Trial { event, data, workspace, bundle } = trial;
        let config = self.config(workspace)?;
        let Some(text) = bundle else {
            let Registered { hooks, host, warning, .. } = hooks::registered(&config, &self.home)?;
            return Ok(Tried { warning, ..hooks::tried(&hooks, &host, &event, data).await? });
        };
        let (_folder, bundle) = written(&text)?;
        let hooks = HookRegistry::new();
        let host = bundles::register_alone(&bundle, &config, &self.home, &hooks)?;
        hooks::tried(&hooks, &host, &event, data).await
    }
}

/// A bundle from its text, and the folder that it stands in, which is gone when that is dropped.
fn written(text: &str) -> Result<(TempDir, Loaded)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.yaml");
    std::fs::write(&file, text)?;
    let bundle = load(&file)?;
    Ok((folder, bundle))
}

/// Takes prompts until the session is told to end.
async fn live(
    session: Session,
    mut serving: Serving,
    hosted: &mut Hosted,
    watcher: &Watcher,
    cancel: &Cancel,
    prompt: Option<String>,
) -> Result<()> {
    let mut next = prompt;
    let mut is_over = false;
    while !is_over {
        let Some(prompt) = next.take() else {
            serving.participant.set_idle(true);
            match hosted.command(&mut serving).await {
                Command::Prompt(text) => next = Some(text),
                Command::End => is_over = true,
                // Nothing runs.
                Command::Interrupt => {}
            }
            continue;
        };
        serving.participant.set_idle(false);
        let mut turn = std::pin::pin!(session.prompt(&prompt));
        loop {
            tokio::select! {
                end = &mut turn => {
                    tracing::debug!(status = end.status(), "a turn has ended");
                    break;
                }
                command = hosted.command(&mut serving), if !is_over => match command {
                    Command::Interrupt => _ = cancel.request(),
                    Command::End => {
                        is_over = true;
                        cancel.request();
                        cancel.request();
                    }
                    // The server sends no prompt to a session that is busy; one that crossed its path comes next.
                    Command::Prompt(text) => next = Some(text),
                },
            }
        }
        // Nothing is written anywhere.
        let _ = watcher.end_turn();
    }
    serving.bye("user_exit").await;
    session.end("user_exit").await?;
    Ok(())
}

impl Host for Hosting {
    fn start_session(
        &self,
        hub: Hub,
        workspace: Option<String>,
        prompt: Option<String>,
    ) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { self.start(hub, workspace, prompt).await.map_err(|error| reasons(&error)) })
    }

    fn test_bundle(&self, bundle: Option<String>) -> BoxFuture<'_, Result<serde_json::Value, String>> {
        Box::pin(async move { self.test(bundle).await.map_err(|error| reasons(&error)) })
    }

    fn try_event(&self, trial: Trial) -> BoxFuture<'_, Result<Tried, String>> {
        Box::pin(async move { self.try_out(trial).await.map_err(|error| reasons(&error)) })
    }
}
