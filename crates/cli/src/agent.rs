//! Puts a session together from what is configured.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use amplifier_agent::provider::{Provider, Remote, RemoteOptions, Script, Scripted, Usage};
use amplifier_agent::tool::{McpServer, Workspace, standard};
use amplifier_agent::{Cancel, Session, SessionBuilder, Watch};
use amplifier_audit::Log;
use amplifier_core::{ApprovalRules, HookRegistry, SessionConfig, ToolCall};
use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::config::{Approvals, Config, Who};
use crate::guards;
use crate::home::Home;
use crate::terminal::{HeadlessApprovals, Screen, TerminalApprovals, TerminalDisplay, Working};

/// What the model is told unless something else is configured.
const SYSTEM: &str = "You are a careful agent that works in a folder with tools. Use them to find out what is there before you change it. \
What a hook tells you counts as much as what the person tells you: correct what it points out. If something is denied, do not try to get \
around it; say so, and go on with what is allowed.";

/// A session in the making, and what has to live as long as it.
pub struct Prepared {
    /// The session, to be started.
    pub builder: SessionBuilder,
    /// The audit log.
    pub log: Log,
    /// MCP servers. They end when this is dropped.
    pub servers: Vec<McpServer>,
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
) -> Result<Prepared> {
    let provider = provider(config)?;
    let workspace = Workspace::new(&config.workspace)
        .with_context(|| format!("the workspace `{}` cannot be used", config.workspace.display()))?;
    let mut tools = standard(&workspace);
    let mut servers = Vec::new();
    for (name, server) in &config.mcp {
        let server = McpServer::start(name, &server.command, &server.args, &server.env).await;
        let server = server.with_context(|| format!("the MCP server `{name}`"))?;
        tools.extend(server.tools());
        servers.push(server);
    }
    let log = open_log(config, home)?;
    guards::register(&hooks);
    let plan = json!({
        "workspace": config.workspace.to_string_lossy(),
        "approvals": match config.approvals { Approvals::Ask => "ask", Approvals::Deny => "deny" },
        "mcp": config.mcp.keys().collect::<Vec<_>>(),
    });
    let builder = Session::builder(provider)
        .hooks(hooks)
        .tools(tools)
        .system(config.system.as_deref().unwrap_or(SYSTEM))
        .approval_rules(rules(home)?)
        .display(TerminalDisplay::new(screen.clone()))
        .watch(Watcher::new(screen.clone()))
        .audit(log.clone())
        .config(SessionConfig { audit_required: true, forbid_default_allow: true, ..SessionConfig::default() })
        .orchestrator(config.orchestrator)
        .store(home.sessions())
        .cancel(cancel.clone())
        .mount_plan(plan.as_object().cloned().unwrap_or_default());
    let builder = match config.approvals {
        Approvals::Ask if screen.can_ask() => {
            builder.approvals(TerminalApprovals::new(screen.clone(), config.workspace.clone()))
        }
        Approvals::Ask | Approvals::Deny => builder.approvals(HeadlessApprovals),
    };
    Ok(Prepared { builder, log, servers })
}

/// Opens the audit log, which all sessions share.
fn open_log(config: &Config, home: &Home) -> Result<Log> {
    let log = Log::at(home.audit_folder(), home.audit_key()).durability(config.audit).open();
    log.with_context(|| format!("the audit log `{}`", home.audit_folder().display()))
}

/// The person's standing answers, if there are any.
///
/// # Errors
/// If they cannot be read.
pub fn rules(home: &Home) -> Result<ApprovalRules> {
    let file = home.approval_rules();
    if file.exists() { Ok(ApprovalRules::load(file)?) } else { Ok(ApprovalRules::default()) }
}

fn provider(config: &Config) -> Result<Arc<dyn Provider>> {
    match &config.who {
        Who::Nobody => bail!(NOBODY),
        Who::Script(file) => Ok(Arc::new(Scripted::new(Script::load(file)?))),
        Who::Remote { kind, model, base_url, key } => {
            if key.is_none() && base_url.is_none() {
                bail!("the provider `{kind}` needs a key: please set {}", kind.key_variable());
            }
            let options = RemoteOptions {
                key: key.clone(),
                base_url: base_url.clone(),
                ..RemoteOptions::new(*kind, model.as_str())
            };
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

/// Shows on a screen what a session does.
pub struct Watcher {
    screen: Screen,
    // A std lock: nothing awaits while it is held.
    working: Mutex<Option<Working>>,
}

impl Watcher {
    /// Shows it on that screen.
    pub fn new(screen: Screen) -> Self {
        Self { screen, working: Mutex::default() }
    }

    fn work(&self, what: Option<&str>) {
        let mut working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        // The old one ends before the new one begins.
        *working = None;
        *working = what.map(|what| self.screen.working(what));
    }
}

impl Watch for Watcher {
    fn thinking(&self) {
        self.work(Some("thinking"));
    }

    fn text(&self, text: &str) {
        self.work(None);
        self.screen.text(text);
    }

    fn answered(&self, _usage: &Usage) {
        self.work(None);
        // What went wrong with standard output is noticed when the program ends.
        let _ = self.screen.end_text();
    }

    fn tool_begins(&self, call: &ToolCall) {
        self.screen.tool(&call.name, &summary(call));
        self.work(Some(&format!("running {}", call.name)));
    }

    fn tool_ended(&self, call: &ToolCall, success: bool, output: &str) {
        self.work(None);
        if output.starts_with("Denied by hook") {
            self.screen.tool(&call.name, &summary(call));
        }
        self.screen.tool_done(success, &first_line(output));
    }

    fn note(&self, text: &str) {
        self.screen.note(text);
    }
}

/// What a tool call is about, in a few words.
fn summary(call: &ToolCall) -> String {
    let known = ["command", "file_path", "pattern", "task"].iter().find_map(|field| call.input.get(field)?.as_str());
    first_line(known.unwrap_or_default())
}

fn first_line(text: &str) -> String {
    const MOST: usize = 100;
    let mut lines = text.lines();
    let first: String = lines.next().unwrap_or_default().chars().take(MOST).collect();
    let is_cut = lines.next().is_some() || text.chars().nth(MOST).is_some();
    if is_cut { format!("{first} …") } else { first }
}
