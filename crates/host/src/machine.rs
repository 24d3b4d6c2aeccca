//! The machine as a server sees it: starts sessions, stores approval rules, tests bundles and tries events.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::{Cancel, Session};
use amplifier_audit::Log;
use amplifier_core::{Actor, ApprovalRule, RuleScope};
use amplifier_link::{MachineReply, MachineRequest, PipeConnector, RuleList, serve_machine};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::BoxFuture;
use crate::approval_rule_store::ApprovalRuleStore;
use crate::config::Config;
use crate::error::{Error, ErrorContext, Result, bail, reasons};
use crate::home::Home;
use crate::server_link::{LinkTarget, ServerLink, SessionCommands, run_remotely};
use crate::session::{SessionBuilder, SessionParts};

/// The interval at which rule files are checked for changes by other programs.
const RULE_POLL_INTERVAL: Duration = Duration::from_secs(1);
const END_TIMEOUT: Duration = Duration::from_secs(5);
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

type Handler = Box<dyn Fn(MachineRequest) -> BoxFuture<'static, MachineReply> + Send + Sync>;
type LoadConfig = Box<dyn Fn(Option<PathBuf>) -> Result<Config> + Send + Sync>;

/// A machine on which a server starts sessions. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Machine {
    state: Arc<MachineState>,
}

struct MachineState {
    home: Home,
    rules: ApprovalRuleStore,
    load: LoadConfig,
    other: Handler,
    running: watch::Sender<usize>,
    ending: watch::Sender<bool>,
}

/// The link of a machine to a server. Dropping it disconnects.
#[must_use = "the machine leaves the server when this is dropped"]
pub struct MachineHandle {
    machine: Machine,
    tasks: [JoinHandle<()>; 2],
}

impl Machine {
    /// A machine with the configurations that `load` returns for workspaces. Rule changes are recorded in the log; `other` handles the remaining
    /// requests.
    pub fn new(
        home: &Home,
        log: &Log,
        load: impl Fn(Option<PathBuf>) -> Result<Config> + Send + Sync + 'static,
        other: Handler,
    ) -> Self {
        let rules = ApprovalRuleStore::new(home.clone(), log.clone());
        let (running, ending) = (watch::Sender::new(0), watch::Sender::new(false));
        Self {
            state: Arc::new(MachineState { home: home.clone(), rules, load: Box::new(load), other, running, ending }),
        }
    }

    /// Serves a server in the same process. `machine` and `sessions` connect to the server's endpoints.
    pub fn connect(&self, machine: PipeConnector, sessions: PipeConnector) -> MachineHandle {
        let (changes, rules) = watch::channel(RuleList::default());
        let handler = self.clone();
        let serving = tokio::spawn(async move {
            loop {
                let (machine_of_call, sessions) = (handler.clone(), sessions.clone());
                let handle = move |request| machine_of_call.clone().handle(request, sessions.clone());
                let ended = serve_machine(machine.open(), rules.clone(), handle).await;
                tracing::debug!(?ended, "the link of the machine has ended");
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
        });
        let watched = self.clone();
        let watching = tokio::spawn(async move {
            loop {
                let machine = watched.clone();
                let list = tokio::task::spawn_blocking(move || machine.state.rules.list()).await;
                if let Ok(list) = list {
                    changes.send_if_modified(|known| std::mem::replace(known, list.clone()) != list);
                }
                tokio::time::sleep(RULE_POLL_INTERVAL).await;
            }
        });
        MachineHandle { machine: self.clone(), tasks: [serving, watching] }
    }

    async fn handle(self, request: MachineRequest, sessions: PipeConnector) -> MachineReply {
        let reply = match request {
            MachineRequest::StartSession { workspace, prompt } => {
                let started = self.start_session(sessions, workspace, prompt).await;
                // The client that requested the session gets the reason.
                return match started {
                    Ok(session) => MachineReply::Started { session },
                    Err(error) => MachineReply::Invalid { error: reasons(&error) },
                };
            }
            MachineRequest::ListRules => self.in_files(|rules| Ok(MachineReply::Rules(rules.list()))).await,
            MachineRequest::AddRule { rule } => self.in_files(move |rules| add_rule(rules, rule)).await,
            MachineRequest::RevokeRule { rule, by } => self.in_files(move |rules| revoke_rule(rules, &rule, &by)).await,
            request => Ok((self.state.other)(request).await),
        };
        reply.unwrap_or_else(|error| MachineReply::Failed { error: reasons(&error) })
    }

    /// Runs blocking access to rule files.
    async fn in_files(
        &self,
        work: impl FnOnce(&ApprovalRuleStore) -> Result<MachineReply> + Send + 'static,
    ) -> Result<MachineReply> {
        let machine = self.clone();
        tokio::task::spawn_blocking(move || work(&machine.state.rules)).await.map_err(Error::other)?
    }

    fn config(&self, workspace: Option<String>) -> Result<Config> {
        (self.state.load)(workspace_folder(workspace)?)
    }

    /// Starts a session that takes its prompts from the server, and returns its id.
    async fn start_session(
        &self,
        server: PipeConnector,
        workspace: Option<String>,
        prompt: Option<String>,
    ) -> Result<String> {
        let config = self.config(workspace)?;
        let cancel = Cancel::default();
        let parts = SessionBuilder::new(&config, &self.state.home).cancel(&cancel).in_server(true).build().await?;
        let link = ServerLink::open(parts.policy.link_options(), &LinkTarget::Pipe(server), false);
        let client = link.client.clone();
        client.set_mode(parts.policy.mode().current().as_str());
        let SessionParts { builder, policy, servers, .. } = parts.approvals(client.clone());
        let (report, started) = oneshot::channel();
        let mut running = RunningSession::enter(&self.state);
        tokio::spawn(async move {
            let session = match builder.start().await {
                Ok(session) => session,
                Err(error) => {
                    // If a hook requested an approval, the client has the id already, and the record has the reason.
                    let _ = report.send(Err(Error::other(error)));
                    return link.close("error").await;
                }
            };
            let _ = report.send(Ok(session.id().to_owned()));
            link.started(&session);
            let ended = run(session, link, &mut running, &cancel, prompt).await;
            drop(servers);
            let closed = policy.close().await;
            if ended.is_err() || closed.is_err() {
                tracing::error!(?ended, ?closed, "a session in the server has no proper end in the audit log");
            }
        });
        tokio::select! {
            biased;
            started = started => started.ok().context("the session did not start")?,
            // A hook can request approval before the start; the client needs the id to find that request.
            id = client.session() => Ok(id),
        }
    }
}

async fn run(
    session: Session,
    mut link: ServerLink,
    running: &mut RunningSession,
    cancel: &Cancel,
    prompt: Option<String>,
) -> Result<()> {
    let client = link.client.clone();
    let mut commands = SessionCommands { commands: &mut link.commands, ending: &mut running.ending };
    run_remotely(&session, &client, &mut commands, cancel, prompt).await;
    link.close("user_exit").await;
    session.end("user_exit").await.map_err(Error::other)
}

struct RunningSession {
    machine: Arc<MachineState>,
    ending: watch::Receiver<bool>,
}

impl RunningSession {
    fn enter(machine: &Arc<MachineState>) -> Self {
        machine.running.send_modify(|running| *running += 1);
        Self { machine: machine.clone(), ending: machine.ending.subscribe() }
    }
}

impl Drop for RunningSession {
    fn drop(&mut self) {
        self.machine.running.send_modify(|running| *running -= 1);
    }
}

impl MachineHandle {
    /// Ends all sessions, and waits at most five seconds for their seals.
    pub async fn end(self) {
        let state = &self.machine.state;
        state.ending.send_replace(true);
        let mut running = state.running.subscribe();
        if timeout(END_TIMEOUT, running.wait_for(|running| *running == 0)).await.is_err() {
            tracing::warn!("sessions in the server did not end in time");
        }
    }
}

impl Drop for MachineHandle {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Returns the workspace that a request names.
///
/// # Errors
/// If the workspace is not the absolute path of a folder.
pub fn workspace_folder(named: Option<String>) -> Result<Option<PathBuf>> {
    let workspace = named.map(PathBuf::from);
    if let Some(folder) = workspace.as_ref().filter(|folder| !folder.is_absolute() || !folder.is_dir()) {
        bail!("the workspace `{}` is not a folder; give an absolute path", folder.display());
    }
    Ok(workspace)
}

fn add_rule(rules: &ApprovalRuleStore, rule: ApprovalRule) -> Result<MachineReply> {
    let project = match (rule.scope, rule.project.as_deref()) {
        (RuleScope::Project, None) => {
            return Ok(MachineReply::Invalid { error: "missing `project`: the folder of the rule".to_owned() });
        }
        (RuleScope::Project, Some(project)) => match project_folder(project) {
            Ok(project) => Some(project),
            Err(reason) => {
                return Ok(MachineReply::Invalid { error: format!("`{project}` cannot be a project: {reason}") });
            }
        },
        _ => None,
    };
    let rule = ApprovalRule { project, session: None, ..rule };
    rules.add(&rule)?;
    Ok(MachineReply::RuleAdded { rule, list: rules.list() })
}

fn project_folder(named: &str) -> Result<String, String> {
    let found = Path::new(named).canonicalize().map_err(|error| error.to_string())?;
    if !found.is_dir() || !Path::new(named).is_absolute() {
        return Err("expected the absolute path of a folder".to_owned());
    }
    found.into_os_string().into_string().map_err(|_| "the path is not text".to_owned())
}

fn revoke_rule(rules: &ApprovalRuleStore, id: &str, by: &Actor) -> Result<MachineReply> {
    let rule = rules.list().rules.into_iter().find(|rule| rule.id() == id);
    let found = rule.map_or(Ok(false), |rule| rules.revoke(&rule, by))?;
    Ok(MachineReply::RuleRevoked { found, list: rules.list() })
}
