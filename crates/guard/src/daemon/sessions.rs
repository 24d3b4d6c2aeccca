//! All sessions of the daemon, and the way of a call to its session.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_host::Home;
use amplifier_link::is_valid_id;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::once::{Arrival, CallKey, Decisions};
use super::request::Request;
use super::session::GuardSession;
use super::session_facts::FactStore;
use super::workspace::Policies;
use super::{GuardFolder, LoadConfig, call_limit, limits};
use crate::adapter;
use crate::answer::{GuardAnswer, HookOutput};
use crate::canary::is_canary;
use crate::client::Client;
use crate::event::{ClientEvent, EventKind};

/// The time without an event after which a session is ended. It continues at its next event.
const IDLE_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);
/// The most sub-agents whose sessions are remembered here. All of them are remembered by their facts.
const MAX_AGENTS: usize = 4096;

/// The sessions of all clients.
pub(super) struct Sessions {
    folder: GuardFolder,
    policies: Arc<Policies>,
    facts: FactStore,
    // Std locks: nothing awaits while they are held.
    open: Mutex<HashMap<String, Arc<OnceCell<Arc<GuardSession>>>>>,
    /// The sessions of the log to which the sessions of sub-agents belong.
    agents: Mutex<HashMap<String, String>>,
    decisions: Decisions,
}

impl Sessions {
    /// `programs` are those of the guard, and `folder` is that of the daemon.
    pub(super) fn new(
        home: Home,
        load: LoadConfig,
        programs: Vec<PathBuf>,
        folder: GuardFolder,
        facts: FactStore,
    ) -> Self {
        let policies = Arc::new(Policies::new(home, load, programs, folder.path().to_owned()));
        Self {
            folder,
            policies,
            facts,
            open: Mutex::default(),
            agents: Mutex::default(),
            decisions: Decisions::default(),
        }
    }

    /// Answers a call. Every failure denies.
    pub(super) async fn answer(&self, request: &Request) -> HookOutput {
        let failure = |problem: &str| HookOutput::failure(&format!("amplifier guard: {problem}"));
        let told = match request.client.parse::<Client>() {
            Ok(told) => told,
            Err(error) => return failure(&error.to_string()),
        };
        let mut event = match adapter::parse(told, request.event.as_deref(), &request.payload) {
            Ok(event) => ClientEvent { version: event.version.or_else(|| request.version.clone()), ..event },
            Err(error) => return failure(&error.to_string()),
        };
        if event.kind == EventKind::Other {
            return adapter::answer(&event, &GuardAnswer::default()).output;
        }
        if event.is_gate()
            && let Some(name) = self.foreign_variable(request)
        {
            return failure(&format!(
                "the variable `{name}` of the agent runs other code in its hooks; start the agent without it, or run \
                 `amplifier guard install` with it"
            ));
        }
        if let Err(problem) = limits::check(&event).and_then(|()| self.find_root(&mut event)) {
            return failure(&problem);
        }
        let session = match self.session(&event, request.folder.as_deref()).await {
            Ok(session) => session,
            Err(problem) => return failure(&problem),
        };
        let problem = session.check_installation(&event).await.err();
        if event.is_gate() {
            let problem = match problem {
                None => session.refresh().await.err(),
                problem => problem,
            };
            if let Some(problem) = problem {
                return failure(&problem);
            }
        }
        let decide = call_limit::within(request.deadline, session.clone().decide(event.clone()));
        let arrival = Arrival { client: told, event: event.name.clone() };
        let answer = match CallKey::from_event(&event, &event.session) {
            Some(key) => self.decisions.decide(key, arrival, decide).await,
            None => decide.await,
        };
        let reply = adapter::answer(&event, &answer);
        session.record_losses(&event, &reply).await;
        // A canary is a session of one call.
        if is_canary(&event) || matches!(event.kind, EventKind::SessionEnd { .. }) {
            lock(&self.open).remove(&event.session);
            session.end("complete").await;
            session.forget_facts();
        }
        reply.output
    }

    /// Returns a variable that runs other code in the hook program, unless the guard was installed with the same value.
    fn foreign_variable<'a>(&self, request: &'a Request) -> Option<&'a str> {
        let is_own =
            |name: &str, value: &OsStr| value.to_str().is_some_and(|value| self.folder.is_started_with(name, value));
        let is_foreign = |(name, value): &&(String, OsString)| !is_own(name, value);
        request.code_variables.iter().find(is_foreign).map(|(name, _)| name.as_str())
    }

    /// Gives an event the id of its session in the log. The session of a sub-agent is a part of that for which it works, also after the end of either.
    fn find_root(&self, event: &mut ClientEvent) -> Result<(), String> {
        let own = session_id(event.client, &event.session);
        let parent = event.parent.as_deref().map(|parent| session_id(event.client, parent));
        let root = match parent.filter(|parent| *parent != own) {
            None => self.known_root(&own)?,
            Some(parent) => Some(self.known_root(&parent)?.unwrap_or(parent)),
        };
        let Some(root) = root.filter(|root| *root != own) else {
            event.session = own;
            return Ok(());
        };
        if lock(&self.agents).get(&own) != Some(&root) {
            self.facts.update(&own, |facts| facts.root = Some(root.clone()))?;
            let mut agents = lock(&self.agents);
            if agents.len() >= MAX_AGENTS {
                agents.clear();
            }
            agents.insert(own.clone(), root.clone());
        }
        event.agent.get_or_insert(own);
        event.session = root;
        // The session of the log goes on.
        if let EventKind::SessionEnd { .. } = event.kind {
            event.kind = EventKind::Complete { message: None };
        }
        Ok(())
    }

    /// Returns the session of the log to which the session of a sub-agent belongs; none for any other session.
    fn known_root(&self, id: &str) -> Result<Option<String>, String> {
        if let Some(root) = lock(&self.agents).get(id) {
            return Ok(Some(root.clone()));
        }
        // A session that is open here belongs to itself.
        if lock(&self.open).contains_key(id) {
            return Ok(None);
        }
        Ok(self.facts.load(id)?.root)
    }

    /// Returns the session of an event, and starts it first if it is new here.
    async fn session(&self, event: &ClientEvent, folder: Option<&Path>) -> Result<Arc<GuardSession>, String> {
        let id = &event.session;
        let cell = lock(&self.open).entry(id.clone()).or_default().clone();
        if !cell.initialized() {
            self.end_idle().await;
        }
        let start = || async {
            let folder = event.folder.as_deref().or(folder).filter(|folder| folder.is_absolute());
            let folder = folder.ok_or("the payload names no folder")?;
            let policy = self.policies.find(folder).await;
            let policy = policy.map_err(|problem| format!("the policy of `{}`: {problem}", folder.display()))?;
            GuardSession::start(id.clone(), event, policy, self.facts.clone()).await
        };
        let session = cell.get_or_try_init(start).await.cloned();
        match &session {
            Ok(session) => session.touch(),
            // Nothing is left of a session that could not start, unless another call starts it.
            Err(_) => {
                let mut open = lock(&self.open);
                if open.get(id).is_some_and(|one| Arc::ptr_eq(one, &cell) && !one.initialized()) {
                    open.remove(id);
                }
            }
        }
        session
    }

    /// Ends sessions without events: not every client tells of the end.
    async fn end_idle(&self) {
        let is_idle =
            |cell: &OnceCell<Arc<GuardSession>>| cell.get().is_some_and(|session| session.idle() > IDLE_LIMIT);
        let idle: Vec<_> = lock(&self.open).extract_if(|_, cell| is_idle(cell)).collect();
        for session in idle.into_iter().filter_map(|(_, cell)| cell.get().cloned()) {
            session.end("timeout").await;
        }
    }

    /// Returns `true` if an audit log cannot be written any more.
    pub(super) fn has_failed(&self) -> bool {
        self.policies.all().iter().any(|policy| policy.policy.log().status().failure.is_some())
    }

    /// Closes the logs. Seals all sessions first, unless another daemon continues them.
    pub(super) async fn end(&self, is_sealed: bool) {
        let open = std::mem::take(&mut *lock(&self.open));
        for session in open.into_values().filter_map(|cell| cell.get().cloned()).filter(|_| is_sealed) {
            session.end("timeout").await;
        }
        for policy in self.policies.all() {
            let log = policy.policy.log().clone();
            // Closing blocks on the disk.
            if let Ok(Err(error)) = tokio::task::spawn_blocking(move || log.close()).await {
                tracing::error!(%error, "the audit log is not closed properly");
            }
        }
    }
}

/// Returns the id of a session in the audit log: that of the client, if it can be an id.
fn session_id(client: Client, id: &str) -> String {
    if is_valid_id(id) {
        return id.to_owned();
    }
    let digest = Sha256::digest(id);
    digest.iter().take(16).fold(format!("{client}-"), |id, byte| format!("{id}{byte:02x}"))
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
