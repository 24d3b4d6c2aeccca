//! The session's end: puts questions to the server, and takes answers and commands.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amplifier_core::{
    Answer, Answerer, ApprovalError, ApprovalRequest, ApprovalRules, ApprovalSystem, Coordinator, DefaultDecision,
    Effect, Settled, StandingAnswer,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, BufWriter};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::door;
use super::fit::fit;
use super::protocol::{Hello, Lines, Outcome, Reception, ToServer, ToSession, VERSION, write};
use crate::hub::{Command, Hub, KeptRule, RuleBook, decision, explain};
use crate::wire::{Action, Approval, Choice, Rule, Scope};

/// How long is waited before the first attempt to connect again; twice as long before each further one, up to the last.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// How long the server may take to say welcome, and to take a line.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many messages wait for a server that does not listen. Beyond that, the connection is given up.
const UNHEARD: usize = 16_384;
/// How many commands wait for the session.
const COMMANDS: usize = 64;
/// How many closed questions are kept, and for how long, so that a late answer is recorded.
const KEPT: (usize, Duration) = (256, Duration::from_secs(3600));
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a participant needs to know.
pub struct ParticipantOptions {
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The name of the session.
    pub name: Option<String>,
    /// Whether it takes prompts from the server.
    pub takes_prompts: bool,
    /// Tells what will run from a question. It may block.
    pub show: Arc<dyn Fn(&ApprovalRequest) -> Action + Send + Sync>,
    /// The standing answers in files. Without, answers for the project are taken for once.
    pub book: Option<Arc<dyn RuleBook>>,
}

/// The part of a session that talks to a server: an approval system, and a source of commands. A handle: clones share the same state.
///
/// Questions wait for as long as the kernel lets them, whether a server is there or not. When one comes, or comes back, everything that is
/// still open is announced to it.
#[derive(Clone)]
pub struct Participant {
    shared: Arc<Shared>,
}

struct Shared {
    options: ParticipantOptions,
    workspace: String,
    begun_at: Timestamp,
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
    open: BTreeMap<u64, Question>,
    closed: VecDeque<Closed>,
    /// Standing answers for the session that were not given to a question.
    given: Vec<Given>,
    /// The way to the server, while there is one.
    link: Option<mpsc::Sender<ToServer>>,
    /// What the server was last told.
    told_rules: Vec<Rule>,
    told_hooks: Vec<Value>,
}

struct Question {
    request: Arc<ApprovalRequest>,
    approval: Approval,
    /// Takes the first answer to the kernel.
    answer: Option<oneshot::Sender<Answer>>,
    /// Whether the kernel's future has given it back.
    is_delivered: Arc<AtomicBool>,
}

struct Closed {
    request: Arc<ApprovalRequest>,
    settled: Settled,
    at: Instant,
}

#[derive(Clone)]
struct Given {
    hook: String,
    pattern: String,
    allows: bool,
    by: Answerer,
}

/// A connection to a server, kept up until it is dropped.
#[must_use = "the connection ends when it is dropped"]
pub struct Link {
    participant: Participant,
    task: JoinHandle<()>,
}

/// What to do with an answer.
enum Fate {
    /// The first one: it goes to the kernel.
    First(oneshot::Sender<Answer>, Arc<ApprovalRequest>, Arc<AtomicBool>),
    /// Another one came before.
    Second(Arc<ApprovalRequest>),
    /// The question is closed.
    Over(Arc<ApprovalRequest>, Settled),
    NotOffered,
    Unknown,
}

impl Participant {
    /// A participant that is connected to nothing yet, and what the server wants the session to do.
    pub fn new(options: ParticipantOptions) -> (Self, mpsc::Receiver<Command>) {
        let (commands, wanted) = mpsc::channel(COMMANDS);
        let workspace = options.workspace.canonicalize().unwrap_or_else(|_| options.workspace.clone());
        let shared = Shared {
            workspace: workspace.to_string_lossy().into_owned(),
            options,
            begun_at: Timestamp::now(),
            commands,
            session: watch::Sender::new(None),
            state: Mutex::default(),
        };
        (Self { shared: Arc::new(shared) }, wanted)
    }

    /// Talks to the server at a socket, whenever it is there.
    pub fn connect(&self, socket: impl Into<PathBuf>) -> Link {
        let (socket, shared) = (socket.into(), self.shared.clone());
        self.link(async move {
            let mut pause = BACK_OFF[0];
            loop {
                if let Ok(stream) = UnixStream::connect(&socket).await {
                    let (from, to) = stream.into_split();
                    let mut is_welcome = false;
                    let ended = shared.converse(from, to, &mut is_welcome).await;
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

    /// Talks to the server that the session runs in.
    pub fn join(&self, hub: &Hub) -> Link {
        let (shared, hub) = (self.shared.clone(), hub.clone());
        self.link(async move {
            while !shared.state().is_over {
                let (from, to) = tokio::io::split(door::join(&hub));
                let ended = shared.converse(from, to, &mut false).await;
                tracing::debug!(?ended, "the connection to the server has ended");
                if !shared.state().is_over {
                    tokio::time::sleep(BACK_OFF[0]).await;
                }
            }
        })
    }

    fn link(&self, keep_up: impl Future<Output = ()> + Send + 'static) -> Link {
        let mut session = self.shared.session.subscribe();
        let task = tokio::spawn(async move {
            // There is nothing to say before it is known who says it.
            if session.wait_for(Option::is_some).await.is_ok() {
                keep_up.await;
            }
        });
        Link { participant: self.clone(), task }
    }

    /// The session has begun. Before that, it is known by its first question.
    pub fn begin(&self, session: &str, coordinator: Coordinator) {
        self.shared.state().coordinator = Some(coordinator);
        self.shared.known(session);
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
            state.say(ToServer::Idle { idle });
        }
        self.refresh();
    }

    /// Tells the server which standing answers and which hooks the session has, if that has changed.
    pub fn refresh(&self) {
        self.shared.tell_rules();
        self.shared.tell_hooks();
    }
}

impl Link {
    /// Ends the connection: the server learns that the session has ended.
    pub async fn bye(mut self, reason: &str) {
        let is_connected = {
            let mut state = self.participant.shared.state();
            state.is_over = true;
            state.say(ToServer::Bye { reason: reason.to_owned() });
            // What was said so far is still heard.
            state.link.take().is_some()
        };
        if is_connected {
            let _ = tokio::time::timeout(FAREWELL, &mut self.task).await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
        let mut state = self.participant.shared.state();
        state.link = None;
        // The session's coordinator holds its approval system: without this, neither would ever end.
        state.coordinator = None;
    }
}

impl ApprovalSystem for Participant {
    /// # Cancel safety
    /// Dropping the future changes nothing for the server: it is told when the question is closed.
    async fn request_approval(&self, request: Arc<ApprovalRequest>) -> Result<Answer, ApprovalError> {
        if let Some(session) = request.data.text("session_id") {
            self.shared.known(session);
        }
        let (answer, answered) = oneshot::channel();
        let is_delivered = Arc::new(AtomicBool::new(false));
        tokio::spawn(self.shared.clone().keep(request.clone(), answer, is_delivered.clone()));
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

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the session is known. The first one stays: sub-agents ask through the session that delegated to them.
    fn known(&self, session: &str) {
        self.session.send_if_modified(|known| {
            let is_new = known.is_none();
            if is_new {
                *known = Some(session.to_owned());
            }
            is_new
        });
    }

    /// Announces a question, and says when it is closed.
    async fn keep(
        self: Arc<Self>,
        request: Arc<ApprovalRequest>,
        answer: oneshot::Sender<Answer>,
        is_delivered: Arc<AtomicBool>,
    ) {
        let asked_at = Timestamp::now();
        let (show, shown) = (self.options.show.clone(), request.clone());
        let action = tokio::task::spawn_blocking(move || show(&shown)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "what will run cannot be shown");
            let note = "what will run cannot be shown; do not allow what you have not seen".to_owned();
            Action { title: request.event.to_string(), notes: vec![note], ..Action::default() }
        });
        let approval = fit(self.approval(&request, asked_at, action));
        {
            let mut state = self.state();
            state.say(ToServer::Asked { approval: Box::new(approval.clone()) });
            let question = Question { request: request.clone(), approval, answer: Some(answer), is_delivered };
            state.open.insert(request.id, question);
        }
        let settled = request.closed().await;
        {
            let mut state = self.state();
            state.open.remove(&request.id);
            state.say(ToServer::Closed { id: request.id, outcome: outcome(&settled) });
            let now = Instant::now();
            state.closed.push_back(Closed { request, settled, at: now });
            let is_old = |closed: &Closed| now.duration_since(closed.at) > KEPT.1;
            while state.closed.len() > KEPT.0 || state.closed.front().is_some_and(is_old) {
                state.closed.pop_front();
            }
        }
        // It may be one that lasts.
        self.tell_rules();
    }

    fn approval(&self, request: &ApprovalRequest, asked_at: Timestamp, action: Action) -> Approval {
        let effect = |effect| match effect {
            Effect::AllowOnce => "allow_once",
            Effect::AllowAlways => "allow_always",
            Effect::Deny => "deny",
            Effect::DenyAlways => "deny_always",
        };
        let options = request.options.iter();
        Approval {
            id: request.id.to_string(),
            session: self.session.borrow().clone().unwrap_or_default(),
            session_name: self.options.name.clone(),
            workspace: self.workspace.clone(),
            hook: request.hook.to_string(),
            event: request.event.to_string(),
            prompt: request.prompt.clone(),
            reason: request.reason.clone(),
            options: options
                .map(|option| Choice { label: option.label.clone(), effect: effect(option.effect).to_owned() })
                .collect(),
            asked_at,
            deadline: asked_at.checked_add(request.timeout).unwrap_or(Timestamp::MAX),
            timeout_s: request.timeout.as_secs_f64(),
            default: decision(request.default == DefaultDecision::Allow).to_owned(),
            digest: request.digest.to_string(),
            action,
            nonce: String::new(),
        }
    }

    /// Talks to a server until the connection ends.
    async fn converse(
        self: &Arc<Self>,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
        is_welcome: &mut bool,
    ) -> io::Result<()> {
        let mut lines = Lines::new(BufReader::new(from));
        let mut to = BufWriter::new(to);
        let hello = ToServer::Hello(self.hello());
        tokio::time::timeout(PATIENCE, write(&mut to, &hello)).await??;
        match tokio::time::timeout(PATIENCE, lines.next()).await?? {
            Some(ToSession::Welcome { version: VERSION }) => *is_welcome = true,
            _ => return Err(io::Error::other("the server does not say welcome")),
        }
        let (open, mut said) = self.announce();
        let writing = async {
            for message in open {
                tokio::time::timeout(PATIENCE, write(&mut to, &message)).await??;
            }
            while let Some(message) = said.recv().await {
                tokio::time::timeout(PATIENCE, write(&mut to, &message)).await??;
            }
            io::Result::Ok(())
        };
        let reading = async {
            while let Some(message) = lines.next().await? {
                self.heard(message);
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

    fn hello(&self) -> Hello {
        Hello {
            version: VERSION,
            session: self.session.borrow().clone().unwrap_or_default(),
            name: self.options.name.clone(),
            pid: std::process::id(),
            workspace: self.workspace.clone(),
            takes_prompts: self.options.takes_prompts,
            idle: self.state().is_idle,
            begun_at: self.begun_at,
        }
    }

    /// Everything that a server has to know, and what is said from now on.
    fn announce(&self) -> (Vec<ToServer>, mpsc::Receiver<ToServer>) {
        let (link, said) = mpsc::channel(UNHEARD);
        let mut state = self.state();
        let mut open = vec![ToServer::Idle { idle: state.is_idle }];
        let asked = state.open.values().map(|question| Box::new(question.approval.clone()));
        open.extend(asked.map(|approval| ToServer::Asked { approval }));
        state.told_rules = state.rules();
        state.told_hooks = state.hooks();
        open.push(ToServer::Rules { rules: state.told_rules.clone() });
        open.push(ToServer::Hooks { hooks: state.told_hooks.clone() });
        // Under the same lock: nothing is said twice, and nothing is missed.
        state.link = Some(link);
        (open, said)
    }

    fn heard(self: &Arc<Self>, message: ToSession) {
        let command = match message {
            ToSession::Answer { id, reference, option, by, scope } => {
                let shared = self.clone();
                tokio::spawn(async move {
                    let (result, outcome, note) = shared.take(id, option, by, scope).await;
                    shared.state().say(ToServer::Answered { id, reference, result, outcome, note });
                });
                return;
            }
            ToSession::Rule { reference, hook, pattern, decision, by } => {
                let given = Given { hook, pattern, allows: decision == "allow", by };
                return self.change_rules(reference, move |shared| shared.give(given));
            }
            ToSession::Revoke { reference, rule, by } => {
                return self.change_rules(reference, move |shared| shared.revoke(&rule, &by));
            }
            ToSession::Reload => {
                let shared = self.clone();
                tokio::task::spawn_blocking(move || {
                    shared.put_in_force();
                    shared.tell_rules();
                    shared.tell_hooks();
                });
                Command::Reload
            }
            ToSession::Prompt { text } => Command::Prompt(text),
            ToSession::Interrupt => Command::Interrupt,
            ToSession::End => Command::End,
            ToSession::Welcome { .. } => return,
        };
        if self.commands.try_send(command).is_err() {
            tracing::warn!("a command of the server is lost, because the session takes none");
        }
    }

    /// Takes an answer to the kernel, and says what became of it.
    async fn take(
        self: &Arc<Self>,
        id: u64,
        option: String,
        by: Answerer,
        scope: Option<Scope>,
    ) -> (Reception, Option<Outcome>, Option<String>) {
        let answer = Answer { label: option.clone(), by: Some(by.clone()) };
        let (request, settled) = match self.fate(id, &option) {
            Fate::First(kernel, request, is_delivered) => {
                // If nobody takes it, somebody else was faster, and the question closes.
                let _ = kernel.send(answer.clone());
                let settled = request.closed().await;
                let is_delivered = is_delivered.load(Ordering::SeqCst);
                if is_delivered && settled.basis == "answer" && settled.by.as_ref() == Some(&by) {
                    let note = match scope {
                        Some(Scope::Project) => self.keep_for_project(&request, &option, by).await,
                        _ => None,
                    };
                    return (Reception::Taken, Some(outcome(&settled)), note);
                }
                // What the kernel was given after the time limit, it has recorded itself.
                if !(is_delivered && settled.basis == "timeout") {
                    request.too_late(answer);
                }
                (request, settled)
            }
            Fate::Second(request) => {
                let settled = request.closed().await;
                request.too_late(answer);
                (request, settled)
            }
            Fate::Over(request, settled) => {
                request.too_late(answer);
                (request, settled)
            }
            Fate::NotOffered => return (Reception::NotOffered, None, None),
            Fate::Unknown => return (Reception::Closed, None, None),
        };
        tracing::debug!(hook.name = %request.hook, basis = settled.basis, "an answer does not count");
        let result = match settled.basis {
            "timeout" => Reception::Late,
            "answer" | "not_offered" => Reception::Answered,
            _ => Reception::Closed,
        };
        (result, Some(outcome(&settled)), None)
    }

    fn fate(&self, id: u64, option: &str) -> Fate {
        let mut state = self.state();
        let is_offered = |request: &ApprovalRequest| request.options.iter().any(|offered| offered.label == option);
        if let Some(question) = state.open.get_mut(&id) {
            let request = question.request.clone();
            if !is_offered(&request) {
                return Fate::NotOffered;
            }
            return match question.answer.take() {
                Some(kernel) => Fate::First(kernel, request, question.is_delivered.clone()),
                None => Fate::Second(request),
            };
        }
        let closed = state.closed.iter().find(|closed| closed.request.id == id);
        closed.map_or(Fate::Unknown, |closed| Fate::Over(closed.request.clone(), closed.settled.clone()))
    }

    /// Keeps an answer for the project. What keeps it from being kept is given back: the answer counts all the same, for once.
    async fn keep_for_project(
        self: &Arc<Self>,
        request: &ApprovalRequest,
        option: &str,
        by: Answerer,
    ) -> Option<String> {
        let Some(book) = self.options.book.clone() else {
            return Some("it counts once, because this session keeps no rules".to_owned());
        };
        let allows = request.options.iter().any(|offered| offered.label == option && offered.effect.allows());
        let (hook, pattern) = (request.hook.to_string(), request.prompt.clone());
        // A `*` in the question would stand for any text in the rule, and a colon in the name would end it.
        if pattern.contains('*') || hook.contains([':', '*']) {
            return Some("it counts once, because a rule would stand for more than this question".to_owned());
        }
        let rule = KeptRule { project: Some(self.workspace.clone()), hook, pattern, allows };
        let shared = self.clone();
        let kept = tokio::task::spawn_blocking(move || {
            book.add(&rule, &by)?;
            shared.put_in_force();
            Ok::<_, String>(())
        });
        let kept = kept.await.unwrap_or_else(|error| Err(error.to_string()));
        kept.err().map(|error| format!("it counts once, because the rule cannot be kept: {error}"))
    }

    /// Changes a standing answer of the session, and says whether it is changed.
    fn change_rules(
        self: &Arc<Self>,
        reference: u64,
        change: impl FnOnce(&Self) -> Result<(), String> + Send + 'static,
    ) {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || {
            let error = change(&shared).err();
            // The list first: whoever waits for the change finds it there.
            shared.tell_rules();
            shared.state().say(ToServer::Ruled { reference, error });
        });
    }

    fn give(&self, given: Given) -> Result<(), String> {
        let Given { hook, pattern, allows, by } = &given;
        self.record(
            &json!({ "rule": format!("{hook}:{pattern}"), "decision": decision(*allows), "change": "added", "by": by }),
        )?;
        self.state().given.push(given);
        self.put_in_force();
        Ok(())
    }

    fn revoke(&self, id: &str, by: &Answerer) -> Result<(), String> {
        let (standing, given, coordinator) = {
            let state = self.state();
            let standing = state.standing().into_iter().find(|answer| standing_id(answer) == id);
            let given = state.given.iter().position(|given| given.id() == id);
            (standing, given, state.coordinator.clone())
        };
        let rule = match (&standing, given) {
            (Some(answer), _) => format!("{}:{}", answer.hook, answer.prompt),
            (None, Some(place)) => {
                let state = self.state();
                state.given.get(place).map(|given| format!("{}:{}", given.hook, given.pattern)).unwrap_or_default()
            }
            (None, None) => return Err("the session has no such rule".to_owned()),
        };
        self.record(&json!({ "rule": rule, "change": "revoked", "by": by }))?;
        if let (Some(answer), Some(coordinator)) = (&standing, coordinator) {
            coordinator.forget_answer(answer);
        }
        self.state().given.retain(|given| given.id() != id);
        self.put_in_force();
        Ok(())
    }

    /// Records a change of the session's rules before it counts.
    fn record(&self, change: &Value) -> Result<(), String> {
        let Some(book) = &self.options.book else { return Ok(()) };
        let session = self.session.borrow().clone();
        book.record(&json!({ "session": session, "approval_rule": change }))
    }

    /// Puts the rules in force as they stand in the files now, with those of the session. Where the files cannot be read, what was in force
    /// stays.
    fn put_in_force(&self) {
        let kept = match &self.options.book {
            Some(book) => book.in_force(Path::new(&self.workspace)),
            None => Ok(ApprovalRules::default()),
        };
        let state = self.state();
        let given = state.given.iter().try_fold(ApprovalRules::default(), |rules, given| {
            let Given { hook, pattern, allows, .. } = given;
            let rule = json!({ format!("{hook}:{pattern}"): decision(*allows) });
            Ok(rules.and(ApprovalRules::from_json(&rule.to_string()).map_err(|error| error.to_string())?))
        });
        match (kept, given, &state.coordinator) {
            (Ok(kept), Ok(given), Some(coordinator)) => coordinator.set_approval_rules(kept.and(given)),
            (Err(error), ..) | (_, Err(error), _) => {
                tracing::warn!(%error, "the approval rules cannot be read; those in force stay");
            }
            (Ok(_), Ok(_), None) => {}
        }
    }

    fn tell_rules(&self) {
        let mut state = self.state();
        let rules = state.rules();
        if rules != state.told_rules {
            state.told_rules.clone_from(&rules);
            state.say(ToServer::Rules { rules });
        }
    }

    fn tell_hooks(&self) {
        let mut state = self.state();
        let hooks = state.hooks();
        if hooks != state.told_hooks {
            state.told_hooks.clone_from(&hooks);
            state.say(ToServer::Hooks { hooks });
        }
    }
}

impl State {
    /// Says something to the server, if it is there. If it does not listen, the connection is given up; when it is back, it is told all.
    fn say(&mut self, message: ToServer) {
        if self.link.as_ref().is_some_and(|link| link.try_send(message).is_err()) {
            self.link = None;
        }
    }

    fn standing(&self) -> Vec<StandingAnswer> {
        self.coordinator.as_ref().map(Coordinator::standing_answers).unwrap_or_default()
    }

    /// The standing answers of the session. The server says whose they are.
    fn rules(&self) -> Vec<Rule> {
        const HERE: &str = "until this session ends";
        let rule = |id, hook: &str, pattern: &str, allows, by, explanation| Rule {
            id,
            scope: Scope::Session,
            session: None,
            project: None,
            hook: hook.to_owned(),
            pattern: pattern.to_owned(),
            decision: decision(allows).to_owned(),
            by,
            explanation,
        };
        let standing = self.standing().into_iter().map(|answer| {
            let StandingAnswer { hook, event, prompt, granted, by } = &answer;
            let word = if *granted { "allowed" } else { "denied" };
            let explanation =
                format!("When hook `{hook}` asks `{prompt}` at `{event}`, it is {word} without asking, {HERE}.");
            rule(standing_id(&answer), hook, prompt, *granted, by.clone(), explanation)
        });
        let given = self.given.iter().map(|given| {
            let Given { hook, pattern, allows, by } = given;
            rule(given.id(), hook, pattern, *allows, Some(by.clone()), explain(hook, pattern, *allows, HERE))
        });
        standing.chain(given).collect()
    }

    fn hooks(&self) -> Vec<Value> {
        let Some(coordinator) = &self.coordinator else { return Vec::new() };
        let hooks = coordinator.hooks().list_handlers();
        hooks.iter().filter_map(|hook| serde_json::to_value(hook).ok()).collect()
    }
}

impl Given {
    fn id(&self) -> String {
        format!("rule-{}", short([&self.hook, &self.pattern, decision(self.allows)]))
    }
}

fn standing_id(answer: &StandingAnswer) -> String {
    format!("answer-{}", short([&answer.hook, answer.event.as_str(), &answer.prompt]))
}

fn short(parts: [&str; 3]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

fn outcome(Settled { granted, basis, reason, by }: &Settled) -> Outcome {
    Outcome { granted: *granted, basis: (*basis).to_owned(), reason: reason.clone(), by: by.clone() }
}
