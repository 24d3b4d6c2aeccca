//! One session of a client: its events pass the hooks of the policy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amplifier_core::{
    AGENT_SPAWN, ApprovalAnswer, ApprovalError, ApprovalSystem, CONTEXT_PRE_COMPACT, ContextPreCompact, Coordinator,
    Effect, EventData, EventName, ORCHESTRATOR_COMPLETE, OpenRequest, OrchestratorComplete, PROMPT_SUBMIT,
    PromptSubmit, SESSION_END, SESSION_START, SessionEnd, SessionStart, TOOL_PRE, Verdict, data,
};
use amplifier_host::{ApprovalChannel, Home, LinkOptions, LinkTarget, Notices, ServerLink};
use amplifier_link::{Command, LinkClient, is_open};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::call_limit;
use super::collect::{ClientPorts, CollectedTexts, Collection, OneAnswerPerCall, add_question};
use super::installation::InstallationCheck;
use super::running_calls::RunningCalls;
use super::session_facts::FactStore;
use super::waiting_texts::WaitingTexts;
use super::workspace::GuardPolicy;
use crate::answer::{Change, GuardAnswer, Loss, Reply};
use crate::canary::is_canary;
use crate::client::Client;
use crate::event::{ClientEvent, EventKind};

/// The event that records an answer which the client cannot express.
const LOSS: &str = "guard:loss";
/// The event that records a guard which no longer decides about its client.
const DISABLED: &str = "guard:disabled";

/// A session of a client.
pub(super) struct GuardSession {
    pub(super) id: String,
    pub(super) coordinator: Coordinator,
    pub(super) policy: Arc<GuardPolicy>,
    started: Instant,
    turns: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) running: RunningCalls,
    facts: FactStore,
    // Std locks: nothing awaits while they are held.
    state: Arc<Mutex<GuardState>>,
    installation: Mutex<InstallationCheck>,
    link: Mutex<Option<(ServerLink, JoinHandle<()>)>>,
}

#[derive(Default)]
pub(super) struct GuardState {
    /// The reason why nothing of the session is allowed.
    denied: Option<String>,
    texts: WaitingTexts,
    /// Agents that passed with the call of their tool, by the id of the call, with their task.
    pub(super) spawned: HashMap<String, String>,
    /// The time of the last event.
    last: Option<Instant>,
}

impl GuardSession {
    /// Starts a session. A session that hooks do not allow exists, and denies everything.
    ///
    /// # Errors
    /// If the facts about an earlier part of the session cannot be read, or the new ones cannot be written.
    pub(super) async fn start(
        id: String,
        event: &ClientEvent,
        policy: Arc<GuardPolicy>,
        facts: FactStore,
    ) -> Result<Arc<Self>, String> {
        let known = facts.load(&id)?;
        let state = Arc::new(Mutex::new(GuardState { denied: known.denied, ..GuardState::default() }));
        let environment = policy.policy.home().environment();
        let known_start = known.installation.filter(|_| !begins(event));
        let installation =
            InstallationCheck::new(event.client, environment, settings_folders(event, &policy), known_start);
        facts.update(&id, |facts| facts.installation = Some(installation.start().clone()))?;
        // Without a server, only an approval request is worth a message: it is denied.
        let options = LinkOptions { notices: Notices::none(), ..policy.policy.link_options() };
        let mut link = ServerLink::open(options, &LINK, false);
        let approvals = GuardApprovals {
            channel: policy.policy.config().approvals,
            client: event.client,
            link: link.client.clone(),
            home: policy.policy.home().clone(),
        };
        let coordinator =
            policy.policy.coordinator(&id, OneAnswerPerCall(approvals)).context(ClientPorts).display(ClientPorts);
        let coordinator = coordinator.previews(policy.policy.workspace().clone()).build();
        // A canary is no session of an agent, so the server does not show it.
        if !is_canary(event) {
            link.client.begin(&id, coordinator.clone());
        }
        link.client.set_mode(policy.policy.mode().current().as_str());
        let commands = std::mem::replace(&mut link.commands, tokio::sync::mpsc::channel(1).1);
        let commands = tokio::spawn(obey(commands, state.clone(), facts.clone(), id.clone()));
        let session = Arc::new(Self {
            id,
            coordinator,
            policy,
            started: Instant::now(),
            turns: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            running: RunningCalls::new(),
            facts,
            state,
            installation: Mutex::new(installation),
            link: Mutex::new(Some((link, commands))),
        });
        session.emit_start(event).await;
        Ok(session)
    }

    async fn emit_start(&self, event: &ClientEvent) {
        let source = match &event.kind {
            EventKind::SessionStart { source } => source.as_str(),
            // The daemon was started in the middle of a session.
            _ => "resume",
        };
        let workspace = self.policy.policy.workspace().root().display().to_string();
        let plan = data! {
            "client": { "name": event.client.as_str(), "version": event.version }, "model": event.model, "workspace": workspace,
            "orchestrator": event.client.as_str(), "served": true, "canary": is_canary(event),
        };
        let collection = Collection::default();
        let start = self.coordinator.emit(SESSION_START, SessionStart::new(plan.into_map(), source));
        let verdict = collection.during(start).await;
        let CollectedTexts { context, messages, .. } = collection.take();
        let mut state = self.state();
        state.texts.add(context, messages);
        if let Verdict::Denied { .. } = verdict {
            state.denied = Some(format!("the session must not start: {verdict}"));
        }
    }

    /// Notes that an event has come.
    pub(super) fn touch(&self) {
        self.state().last = Some(Instant::now());
    }

    /// Returns the time since the last event.
    pub(super) fn idle(&self) -> Duration {
        self.state().last.unwrap_or(self.started).elapsed()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads changed bundles. The error is a denial.
    pub(super) async fn refresh(&self) -> Result<(), String> {
        self.policy.refresh().await
    }

    /// Checks the installation of the guard. The error is a denial, which is recorded once.
    pub(super) async fn check_installation(&self, event: &ClientEvent) -> Result<(), String> {
        let (problem, start) = {
            let mut installation = self.installation.lock().unwrap_or_else(PoisonError::into_inner);
            if begins(event) {
                installation.restart(settings_folders(event, &self.policy));
            }
            (installation.problem(), begins(event).then(|| installation.start().clone()))
        };
        if let Some(start) = start {
            self.facts.update(&self.id, |facts| facts.installation = Some(start))?;
        }
        let Some((problem, is_new)) = problem else { return Ok(()) };
        if is_new {
            let data = data! { "client": event.client.as_str(), "reason": problem.as_str() };
            self.record(DISABLED, data).await;
        }
        Err(problem)
    }

    /// Records an event of the guard itself.
    async fn record(&self, name: &str, data: EventData) {
        let Ok(name) = name.parse::<EventName>() else { return };
        _ = Collection::default().during(self.coordinator.emit(name, data)).await;
    }

    /// Decides about an event.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws an open approval request. The client gets no answer, so the hook program denies.
    pub(super) async fn decide(self: Arc<Self>, event: ClientEvent) -> GuardAnswer {
        let collection = Collection::default();
        let decided = collection.during(self.emit(&event)).await;
        let CollectedTexts { context, messages, questions } = collection.take();
        let mut answer = decided.unwrap_or_else(GuardAnswer::deny);
        answer.question = (!questions.is_empty()).then(|| questions.join("\n\n"));
        let mut state = self.state();
        if let Some(reason) = state.denied.clone()
            && (event.is_gate() || matches!(event.kind, EventKind::SessionStart { .. }))
        {
            answer = GuardAnswer::deny(reason);
        }
        state.texts.take(&event, &mut answer);
        answer.context.extend(context);
        answer.messages.extend(self.policy.take_notices().into_iter().chain(messages));
        answer
    }

    /// Emits the events of a call. The error is a denial.
    async fn emit(&self, event: &ClientEvent) -> Result<GuardAnswer, String> {
        if event.is_gate()
            && let Some(reason) = self.state().denied.clone()
        {
            return Err(reason);
        }
        match &event.kind {
            EventKind::Prompt { text } => {
                self.turns.fetch_add(1, Ordering::Relaxed);
                self.coordinator.begin_turn();
                let data = allowed(self.coordinator.emit(PROMPT_SUBMIT, PromptSubmit::new(text.as_str())).await)?;
                let changed = data.text("prompt").ok_or("a hook removed the prompt")?;
                let change = (changed != text).then(|| Change::Prompt(changed.to_owned()));
                Ok(GuardAnswer { change, ..GuardAnswer::default() })
            }
            EventKind::ToolPre(tool) => self.tool_pre(event, tool).await,
            EventKind::ToolPost { tool, result, success, milliseconds } => {
                self.tool_post(event, tool, result, *success, *milliseconds).await
            }
            EventKind::Spawn { agent, task } => self.spawn(event, agent, task).await,
            EventKind::Compact { trigger } => {
                let compact = ContextPreCompact::new(trigger.as_str(), 0, 0, 0);
                self.observe(self.coordinator.emit(CONTEXT_PRE_COMPACT, compact).await)
            }
            EventKind::Complete { message } => {
                let turns = self.turns.load(Ordering::Relaxed);
                let complete = OrchestratorComplete::new(event.client.as_str(), turns, 0, "success");
                let complete = match message {
                    Some(text) => complete.with("final_message", json!({ "role": "assistant", "content": text })),
                    None => complete,
                };
                self.observe(self.coordinator.emit(ORCHESTRATOR_COMPLETE, complete).await)
            }
            EventKind::SessionEnd { reason } => {
                let stats = data! {
                    "total_messages": self.turns.load(Ordering::Relaxed), "tool_invocations": self.calls.load(Ordering::Relaxed),
                    "total_tokens": 0,
                };
                let milliseconds = self.started.elapsed().as_millis() as u64;
                let end = SessionEnd::new(reason.as_str(), milliseconds, stats.into_map());
                self.observe(self.coordinator.emit(SESSION_END, end).await)
            }
            EventKind::SessionStart { .. } | EventKind::Other => Ok(GuardAnswer::default()),
        }
    }

    /// Ignores the verdict of an event whose denial has no effect in clients.
    fn observe(&self, verdict: Verdict) -> Result<GuardAnswer, String> {
        if let Verdict::Denied { by, .. } = &verdict {
            tracing::debug!(%by, "a denial without effect");
        }
        Ok(GuardAnswer::default())
    }

    /// Records the parts of an answer that the client cannot express, and keeps context that it accepts later.
    pub(super) async fn record_losses(&self, event: &ClientEvent, reply: &Reply) {
        self.state().texts.defer(event.agent.as_ref(), &reply.deferred);
        for loss in &reply.losses {
            self.record_loss(event, &event.agent, *loss).await;
            if let (true, EventKind::ToolPre(tool)) = (loss.denies(), &event.kind) {
                let call = self.running.end(event, tool);
                let reason = "the client cannot apply the change";
                self.record_none_run(tool, tool.operations.len(), &call, reason).await;
            }
        }
        if let EventKind::SessionEnd { .. } = event.kind {
            let lost = self.state().texts.lose();
            for agent in lost {
                self.record_loss(event, &agent, Loss::CONTEXT).await;
            }
        }
    }

    async fn record_loss(&self, event: &ClientEvent, agent: &Option<String>, loss: Loss) {
        let data = data! {
            "client": event.client.as_str(), "event": event.name.as_str(), "agent_id": agent, "part": loss.part,
            "instead": loss.instead,
        };
        self.record(LOSS, data).await;
    }

    /// Seals the session, and leaves the server.
    pub(super) async fn end(&self, reason: &str) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((link, commands)) = link {
            commands.abort();
            link.close(reason).await;
        }
        if let Err(error) = self.policy.policy.log().seal(&self.id, reason).await {
            tracing::error!(%error, "a session is not sealed");
        }
    }

    /// Forgets the facts about the session, which has ended.
    pub(super) fn forget_facts(&self) {
        self.facts.end(&self.id);
    }
}

const LINK: LinkTarget = LinkTarget::Socket { takes_prompts: false };

/// Ends the session at the command of the server: everything after it is denied. Clients take no other command.
async fn obey(
    mut commands: tokio::sync::mpsc::Receiver<Command>,
    state: Arc<Mutex<GuardState>>,
    facts: FactStore,
    id: String,
) {
    while let Some(command) = commands.recv().await {
        if command == Command::End {
            let reason = "the session was ended in the console";
            state.lock().unwrap_or_else(PoisonError::into_inner).denied = Some(reason.to_owned());
            // Another daemon denies, too.
            if let Err(problem) = facts.update(&id, |facts| facts.denied = Some(reason.to_owned())) {
                tracing::error!(problem, "the end of a session is not saved");
            }
        }
    }
}

/// Returns `true` if a client starts, and reads its settings. It goes on after its conversation was shortened.
fn begins(event: &ClientEvent) -> bool {
    matches!(&event.kind, EventKind::SessionStart { source } if source != "compact")
}

/// Returns the folders whose settings count for an agent that starts: its own, and those above in the workspace.
fn settings_folders(event: &ClientEvent, policy: &GuardPolicy) -> Vec<PathBuf> {
    let root = policy.policy.workspace().root();
    let folder = event.folder.as_deref().unwrap_or(root);
    match folder.starts_with(root) {
        true => folder.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect(),
        false => vec![folder.to_owned(), root.to_owned()],
    }
}

pub(super) fn allowed(verdict: Verdict) -> Result<EventData, String> {
    match verdict {
        Verdict::Proceed(data) => Ok(data),
        denied @ Verdict::Denied { .. } => Err(denied.to_string()),
    }
}

/// Sends approval requests to the client's own dialog, if the configuration says so, else to the server: there is no terminal of ours.
struct GuardApprovals {
    channel: ApprovalChannel,
    client: Client,
    link: LinkClient,
    home: Home,
}

impl ApprovalSystem for GuardApprovals {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        if self.channel == ApprovalChannel::Client {
            return self.ask_in_client(&request);
        }
        if !is_open(&self.home.server_folder()) {
            let problem =
                "nobody can be asked; run `amplifier approvals watch` in another terminal, or `amplifier serve`";
            return Err(ApprovalError::Failed(problem.into()));
        }
        // The client would run the tool after its own limit.
        let answer = timeout(call_limit::left_for_user(), self.link.request_approval(request)).await;
        answer.unwrap_or_else(|_| {
            let problem = "no answer within the time limit of the hook; for a longer one, set `approval_timeout` and install the guard again";
            Err(ApprovalError::Failed(problem.into()))
        })
    }
}

impl GuardApprovals {
    /// Leaves the decision to the client's own dialog: the call passes here, with a question in its answer.
    fn ask_in_client(&self, request: &OpenRequest) -> Result<ApprovalAnswer, ApprovalError> {
        let failed = |text: String| Err(ApprovalError::Failed(text));
        let is_tool = [TOOL_PRE.name(), AGENT_SPAWN.name()].contains(&request.event);
        if !self.client.has_dialog() || !is_tool {
            return failed(format!(
                "{} has no dialog for this; set `approvals = \"server\"` in the configuration, and run `amplifier approvals watch` or `amplifier serve`",
                self.client
            ));
        }
        let Some(option) = request.options.iter().find(|option| option.effect == Effect::AllowOnce) else {
            return failed(format!("the dialog of {} allows a call once, which is no option here", self.client));
        };
        match add_question(request.prompt.clone()) {
            true => Ok(ApprovalAnswer::by(option.label.as_str(), self.client.as_str(), "dialog")),
            false => failed("the request belongs to no call".to_owned()),
        }
    }
}
