//! Puts a session together from what is configured.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_agent::provider::{Provider, Remote, RemoteOptions, Script, Scripted, Usage};
use amplifier_agent::tool::{McpServer, Workspace, standard};
use amplifier_agent::{Cancel, Session, SessionBuilder, Store, Watch};
use amplifier_audit::{AnchorState, Log};
use amplifier_core::{Display, HookRegistry, Level, SessionConfig, ToolCall};
use amplifier_modules::Host;
use amplifier_modules::bundle::McpServer as McpProgram;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bundles::{self, Bundles};
use crate::config::{Approvals, Config, Who, audit_word};
use crate::confine::{ActiveSandbox, Protection, SandboxLevel};
use crate::definitions::Definitions;
use crate::guards::{self, NobodyIsAsked};
use crate::home::Home;
use crate::rules::InForce;
use crate::serving::{Reach, Serving, Several};
use crate::terminal::{HeadlessApprovals, Screen, TerminalApprovals, TerminalDisplay, Working};
use crate::trust::{self, Asked};

/// What the model is told unless something else is configured.
const SYSTEM: &str = "You are a careful agent that works in a folder with tools. Use them to find out what is there before you change it. \
What a hook tells you counts as much as what the person tells you: correct what it points out. If something is denied, do not try to get \
around it; say so, and go on with what is allowed.";

/// A session in the making, and what has to live as long as it.
pub struct Prepared {
    /// The session, to be started.
    pub builder: SessionBuilder,
    /// What the person sees of it.
    pub watcher: Watcher,
    /// The audit log.
    pub log: Log,
    /// MCP servers. They end when this is dropped.
    pub servers: Vec<McpServer>,
    /// How programs are kept from what is protected.
    pub sandbox: SandboxLevel,
    /// The connection to a server that sees the session, if one is configured.
    pub serving: Option<Serving>,
}

impl Prepared {
    /// The same with another display for the messages of hooks.
    pub fn shown_on(self, display: impl Display) -> Self {
        Self { builder: self.builder.display(display), ..self }
    }
}

/// Puts a session together.
///
/// # Errors
/// If something that is configured cannot be had.
pub async fn prepare(
    config: &Config,
    home: &Home,
    hooks: HookRegistry,
    screen: &Screen,
    cancel: &Cancel,
    reach: &Reach,
) -> Result<Prepared> {
    let mut bundles = Bundles::find(config, home)?;
    let levels = bundles.levels();
    let provider = provider(config.who(&levels)?)?;
    // What holds until it is settled whether the project's bundle counts.
    let settled = config.under(&levels);
    let workspace = Workspace::new(&config.workspace)
        .with_context(|| format!("the workspace `{}` cannot be used", config.workspace.display()))?;
    let log = open_log(&settled, home)?;
    if let Some(what) = log.status().breach {
        let hint = "`amplifier audit verify` says what can still be believed";
        let text = format!("it was tampered with, or its disk is broken: {what}; {hint}");
        screen.message(Level::Error, "audit log", &text);
    }
    let mut limits = SessionConfig { audit_required: true, forbid_default_allow: true, ..SessionConfig::default() };
    if let Some(project) = &mut bundles.project {
        let asked = match settled.approvals {
            Approvals::Ask | Approvals::Server if screen.can_ask() => Asked::Person(screen, settled.approval_timeout),
            _ => Asked::Nobody(screen),
        };
        trust::settle(project, &home.trust_store(), &log, asked, cancel).await?;
    }
    let levels = bundles.levels();
    let config = &config.under(&levels);
    // A project that was trusted just now may want the record kept more safely.
    let log = match config.audit == settled.audit {
        true => log,
        false => {
            log.close().context("the audit log")?;
            open_log(config, home)?
        }
    };
    let protection = Protection::new(config, home, workspace.root(), &levels)?;
    let sandbox = ActiveSandbox::find(config, &protection);
    let host = bundles::host(&config.workspace, protection.clone(), sandbox.clone())?;
    let ActiveSandbox { sandbox, level } = sandbox;
    let host = naming(host, home.sessions(), screen.clone());
    let followed = bundles.follow(config, home, &hooks, host, &log, &protection)?;
    levels.apply(&mut limits);
    let workspace = protection.of_files(workspace);
    // For the first command, while the session starts.
    sandbox.prepare();
    let workspace = workspace.sandboxed(sandbox.clone());
    if let Some(warning) = level.warning() {
        screen.note(&warning);
    }
    // Landlock knows files by their folders, so a second name of a file elsewhere leads around it.
    if level != SandboxLevel::Namespaces {
        guards::protect(&hooks, workspace.clone());
    }
    let mut tools = standard(&workspace);
    let mut servers = Vec::new();
    for (name, server) in &config.mcp {
        let McpProgram { command, args, env } = server;
        let server = McpServer::start_in(&sandbox, name, command, args, env).await?;
        Definitions::new(home).follow(&server, screen)?;
        tools.extend(server.tools());
        servers.push(server);
    }
    let root = workspace.root().to_owned();
    guards::register(&hooks, config.approval_timeout, workspace);
    let watcher = Watcher::new(screen.clone());
    let is_served = matches!(reach, Reach::Within(_)) || config.approvals == Approvals::Server;
    let plan = json!({
        "workspace": config.workspace.to_string_lossy(),
        "approvals": config.approvals.as_str(),
        "served": is_served,
        "sandbox": level.as_str(),
        "audit": audit_word(config.audit),
        "mcp": config.mcp.keys().collect::<Vec<_>>(),
    });
    let builder = Session::builder(provider)
        .hooks(hooks)
        .tools(tools)
        .system(config.system.as_deref().unwrap_or(SYSTEM))
        .approval_rules(InForce::at(home, &config.workspace)?)
        .display(TerminalDisplay::new(screen.clone()))
        .watch(watcher.clone())
        .audit(log.clone())
        .config(limits)
        .orchestrator(config.orchestrator)
        .store(home.sessions())
        .cancel(cancel.clone())
        .mount_plan(plan.as_object().cloned().unwrap_or_default());
    let builder = match &config.only {
        Some(only) => builder.only(only.clone()),
        None => builder,
    };
    let serving = is_served.then(|| Serving::begin(&root, home, &log, screen, reach, followed));
    let terminal = screen.can_ask().then(|| {
        let cancel = cancel.clone();
        TerminalApprovals::new(screen.clone()).stopping(move || _ = cancel.request())
    });
    let participant = serving.as_ref().map(|serving| serving.participant.clone());
    let builder = match (config.approvals, participant, terminal) {
        (Approvals::Deny, ..) => builder.approvals(NobodyIsAsked),
        (_, Some(participant), Some(terminal)) => builder.approvals(Several::new(terminal, participant)),
        (_, Some(participant), None) => builder.approvals(participant),
        (_, None, Some(terminal)) => builder.approvals(terminal),
        (_, None, None) => builder.approvals(HeadlessApprovals),
    };
    Ok(Prepared { builder, watcher, log, servers, sandbox: level, serving })
}

/// The names of the tools that there are without a server.
pub fn tool_names(workspace: &Workspace) -> Vec<String> {
    standard(workspace).iter().map(|tool| tool.spec().name).chain([TASK.to_owned()]).collect()
}

/// The tool with which an agent delegates: it is part of every session.
const TASK: &str = "Task";

/// Keeps the names that hooks give to sessions. A session whose name cannot be kept is a session all the same.
fn naming(host: Host, sessions: Store, screen: Screen) -> Host {
    host.name_session(move |id, name| {
        if let Err(error) = sessions.name(id, name) {
            screen.note(&format!("the name of the session is not kept: {error}"));
        }
    })
}

/// Opens the audit log, which all sessions share.
///
/// # Errors
/// If it cannot be written to.
pub fn open_log(config: &Config, home: &Home) -> Result<Log> {
    let options = Log::at(home.audit_folder(), home.audit_key()).durability(config.audit);
    let options = config.anchors.iter().try_fold(options, |options, anchor| anchor.add_to(options))?;
    options.open().with_context(|| format!("the audit log `{}`", home.audit_folder().display()))
}

/// Closes the audit log. The person is told, once, where its checkpoints are not kept as well: that does not undo what was done.
///
/// # Errors
/// If something could not be kept.
pub fn close_log(log: Log, screen: &Screen) -> Result<()> {
    let closed = log.clone();
    log.close().context("the audit log")?;
    for AnchorState { name, failure, .. } in closed.status().anchors {
        if let Some(failure) = failure {
            let text = format!("the anchor `{name}` does not have its newest checkpoint: {failure}");
            screen.message(Level::Warning, "audit log", &text);
        }
    }
    Ok(())
}

fn provider(who: Who) -> Result<Arc<dyn Provider>> {
    match who {
        Who::Nobody => bail!(NOBODY),
        Who::Script(file) => Ok(Arc::new(Scripted::new(Script::load(&file)?))),
        Who::Remote { kind, model, base_url, key } => {
            if key.is_none() && base_url.is_none() {
                bail!("the provider `{kind}` needs a key: please set {}", kind.key_variable());
            }
            let options = RemoteOptions { key, base_url, ..RemoteOptions::new(kind, model) };
            Ok(Arc::new(Remote::new(options)?))
        }
    }
}

/// What a person reads who has configured no model.
pub const NOBODY: &str = "\
no model is configured

  To see what this is about, without a key and without a network:
      amplifier demo

  To work with a model, set the key of its maker:
      export ANTHROPIC_API_KEY=…     or OPENAI_API_KEY, or GEMINI_API_KEY

  Or use a model on this machine (Ollama, vLLM, llama.cpp):
      amplifier run --provider openai --base-url http://localhost:11434/v1/ --model llama3.2 \"…\"

  `amplifier doctor` says what is configured and what is missing";

/// Shows on a screen what a session does. A handle: clones share the same state.
#[derive(Clone)]
pub struct Watcher {
    screen: Screen,
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<State>>,
}

/// What goes on.
#[derive(Default)]
struct State {
    thinking: Option<Working>,
    /// The tools that run, by the id of the call.
    tools: HashMap<String, Working>,
    failure: Option<io::Error>,
}

impl Watcher {
    /// Shows it on that screen.
    pub fn new(screen: Screen) -> Self {
        Self { screen, state: Arc::default() }
    }

    /// Ends what is still shown of a turn that has ended, however it ended.
    ///
    /// # Errors
    /// If a part of an answer could not be written.
    pub fn end_turn(&self) -> io::Result<()> {
        let mut state = self.state();
        state.thinking = None;
        state.tools.clear();
        let ended = self.screen.end_text();
        state.failure.take().map_or(ended, Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Watcher {
    fn thinking(&self) {
        let mut state = self.state();
        // The old one ends before the new one begins.
        state.thinking = None;
        state.thinking = Some(self.screen.working("thinking"));
    }

    fn text(&self, text: &str) {
        self.state().thinking = None;
        self.screen.text(text);
    }

    fn answered(&self, _usage: &Usage) {
        let mut state = self.state();
        state.thinking = None;
        // The agent goes on; `end_turn` tells what is wrong with standard output.
        if let Err(error) = self.screen.end_text() {
            state.failure.get_or_insert(error);
        }
    }

    fn tool_begins(&self, call: &ToolCall) {
        self.screen.tool(&call.name, &summary(call));
        let working = self.screen.working(&format!("running {}", call.name));
        self.state().tools.insert(call.id.clone(), working);
    }

    fn tool_ended(&self, call: &ToolCall, success: bool, output: &str) {
        let has_begun = self.state().tools.remove(&call.id).is_some();
        if has_begun {
            self.screen.tool_done(success, &excerpt(output));
        } else {
            // It was not allowed to run. Why is shown in full: it may say what to do about it.
            self.screen.tool(&call.name, &summary(call));
            self.screen.tool_done(success, output);
        }
    }

    fn note(&self, text: &str) {
        self.screen.note(text);
    }
}

/// What a tool call is about, in a few words.
fn summary(call: &ToolCall) -> String {
    about(&call.input).unwrap_or_default()
}

/// What the input of a tool is about, in a few words, if it is one that is known.
pub(crate) fn about(input: &Value) -> Option<String> {
    ["command", "file_path", "pattern", "task"].iter().find_map(|field| input.get(field)?.as_str()).map(excerpt)
}

/// The beginning of the first line.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 100;
    let mut lines = text.lines();
    let first: String = lines.next().unwrap_or_default().chars().take(MOST).collect();
    let is_cut = lines.next().is_some() || text.chars().nth(MOST).is_some();
    if is_cut { format!("{first} …") } else { first }
}
