//! A session with an agent, on top of a policy.

use std::sync::Arc;

use amplifier_agent::provider::Provider;
use amplifier_agent::tool::{McpServer, Tool, standard};
use amplifier_agent::{Cancel, Session};
use amplifier_core::{ApprovalSystem, HookRegistry};
use amplifier_modules::bundle::McpServer as McpProgram;
use serde_json::json;

use crate::bundles::Bundles;
use crate::config::{ApprovalChannel, Config};
use crate::error::{Error, Result};
use crate::home::Home;
use crate::mcp_definitions::McpDefinitionStore;
use crate::notices::Notices;
use crate::policy::Policy;
use crate::trust_prompt::TrustPrompt;

/// The name of the program in `mount_plan.client` of `session:start`.
const CLIENT: &str = "amplifier";

const DEFAULT_SYSTEM_PROMPT: &str = "You are a careful agent that works in a folder with tools. Use them to find out what is there before you change it. \
What a hook tells you counts as much as what the person tells you: correct what it points out. If something is denied, do not try to get \
around it; say so, and go on with what is allowed.";

/// Builds a session from configuration, in phases: model, policy (bundles, log, trust, protection), tools, session.
#[must_use = "call `build` to build the session"]
pub struct SessionBuilder<'a> {
    config: &'a Config,
    home: &'a Home,
    hooks: HookRegistry,
    notices: Notices,
    prompt: Option<Arc<dyn TrustPrompt>>,
    cancel: Cancel,
    is_in_server: bool,
}

/// A session that is ready to start, and the objects that must outlive it. The caller adds a display and an approval system.
pub struct SessionParts {
    /// The session.
    pub builder: amplifier_agent::SessionBuilder,
    /// The policy.
    pub policy: Policy,
    /// The MCP servers, which end when dropped.
    pub servers: Vec<McpServer>,
    /// `true` if a server sees the session.
    pub is_served: bool,
}

impl<'a> SessionBuilder<'a> {
    /// A builder for a configuration without the settings of bundles.
    pub fn new(config: &'a Config, home: &'a Home) -> Self {
        let (hooks, notices) = (HookRegistry::new(), Notices::none());
        Self { config, home, hooks, notices, prompt: None, cancel: Cancel::default(), is_in_server: false }
    }

    /// Sets the registry for hooks; existing hooks stay.
    pub fn hooks(mut self, hooks: HookRegistry) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the receiver of messages for the user.
    pub fn notices(mut self, notices: Notices) -> Self {
        self.notices = notices;
        self
    }

    /// Sets the prompt for untrusted project bundles.
    pub fn trust_prompt(mut self, prompt: Option<Arc<dyn TrustPrompt>>) -> Self {
        self.prompt = prompt;
        self
    }

    /// Sets the handle that stops turns.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Shows the session in the server that it runs in, regardless of `approvals`.
    pub fn in_server(mut self, is_in_server: bool) -> Self {
        self.is_in_server = is_in_server;
        self
    }

    /// Builds the session.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub async fn build(self) -> Result<SessionParts> {
        let bundles = Bundles::find(self.config, self.home)?;
        let provider = self.config.model(&bundles.levels(), self.home.environment())?.provider()?;
        let policy = Policy::builder(self.config, self.home)
            .bundles(bundles)
            .hooks(self.hooks.clone())
            .notices(self.notices.clone());
        let policy = match self.prompt.clone() {
            Some(prompt) => policy.trust_prompt(prompt),
            None => policy,
        };
        let policy = policy.load().await?;
        let (tools, servers) = tools(&policy).await?;
        policy.confirm_changes();
        Ok(self.session(policy, provider, tools, servers))
    }

    fn session(
        self,
        policy: Policy,
        provider: Arc<dyn Provider>,
        tools: Vec<Arc<dyn Tool>>,
        servers: Vec<McpServer>,
    ) -> SessionParts {
        let config = policy.config();
        let is_served = self.is_in_server || config.approvals == ApprovalChannel::Server;
        let plan = json!({
            "client": { "name": CLIENT, "version": env!("CARGO_PKG_VERSION") },
            "workspace": config.workspace.to_string_lossy(),
            "approvals": config.approvals.as_str(),
            "mode": config.mode.as_str(),
            "served": is_served,
            "sandbox": policy.sandbox().level.as_str(),
            "audit": config.audit,
            "mcp": config.mcp.keys().collect::<Vec<_>>(),
        });
        let builder = Session::builder(provider)
            .hooks(policy.hooks().clone())
            .tools(tools)
            .system(config.system.as_deref().unwrap_or(DEFAULT_SYSTEM_PROMPT))
            .approval_rules(policy.rules().clone())
            .operations(policy.operations())
            .audit(policy.log().clone())
            .config(policy.limits().clone())
            .orchestrator(config.orchestrator)
            .store(self.home.sessions())
            .cancel(self.cancel)
            .mount_plan(plan.as_object().cloned().unwrap_or_default());
        let builder = match &config.only {
            Some(only) => builder.only(only.clone()),
            None => builder,
        };
        SessionParts { builder, policy, servers, is_served }
    }
}

impl SessionParts {
    /// Sets the approval system, which gets no requests in the mode `deny`.
    #[must_use]
    pub fn approvals(mut self, approvals: impl ApprovalSystem) -> Self {
        self.builder = self.builder.approvals(self.policy.approvals(approvals));
        self
    }
}

/// Starts the MCP servers, and returns all tools.
async fn tools(policy: &Policy) -> Result<(Vec<Arc<dyn Tool>>, Vec<McpServer>)> {
    let mut tools = standard(policy.workspace());
    let mut servers = Vec::new();
    for (name, server) in &policy.config().mcp {
        let McpProgram { command, args, env } = server;
        let server = McpServer::start_in(&policy.sandbox().sandbox, name, command, args, env).await;
        let server = server.map_err(Error::other)?;
        McpDefinitionStore::new(policy.home()).follow(&server, policy.notices())?;
        tools.extend(server.tools());
        servers.push(server);
    }
    Ok((tools, servers))
}
