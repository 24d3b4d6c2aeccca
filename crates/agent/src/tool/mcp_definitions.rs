//! What MCP servers say about their tools, while that may change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::data;
use rmcp::model::ClientConfig;
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::time::timeout;

use super::mcp::HANDSHAKE_TIMEOUT;
use super::preview::version_of;

/// What a server says about one of its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct McpDefinition {
    /// The description that the model reads.
    pub description: String,
    /// The schema of its input.
    pub input_schema: Value,
}

impl McpDefinition {
    pub(super) fn from_tool(tool: &rmcp::model::Tool) -> Self {
        let description = tool.description.as_deref().unwrap_or_default().to_owned();
        Self { description, input_schema: Value::Object((*tool.input_schema).clone()) }
    }

    /// The digest of all of it. The order of keys in the schema does not matter.
    pub fn digest(&self) -> String {
        let Self { description, input_schema } = self;
        match (data! { "description": description, "input_schema": input_schema }).digest() {
            Ok(digest) => format!("sha256:{digest}"),
            // Too deep for a digest of JSON.
            Err(_) => version_of(format!("{description}\n{input_schema}").as_bytes()),
        }
    }
}

/// A tool of a server, with what the server says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct McpToolDefinition {
    /// The server.
    pub server: String,
    /// What the server calls the tool.
    pub tool: String,
    /// The name of the tool for the model.
    pub name: String,
    /// What the server says about it now.
    pub definition: McpDefinition,
}

type OnChange = Arc<dyn Fn(McpToolDefinition) + Send + Sync>;

/// The definitions of a server's tools. A handle: clones share them.
#[derive(Clone, Default)]
pub(super) struct McpDefinitions {
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By what the server calls the tool.
    tools: BTreeMap<String, McpToolDefinition>,
    /// How often the server said that its tools have changed.
    announced: u64,
    /// How many of these announcements the definitions here are newer than.
    listed: u64,
    on_change: Option<OnChange>,
}

impl McpDefinitions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a tool when the session begins.
    pub(super) fn add(&self, tool: McpToolDefinition) {
        self.state().tools.insert(tool.tool.clone(), tool);
    }

    pub(super) fn all(&self) -> Vec<McpToolDefinition> {
        self.state().tools.values().cloned().collect()
    }

    pub(super) fn get(&self, tool: &str) -> Option<McpDefinition> {
        self.state().tools.get(tool).map(|known| known.definition.clone())
    }

    /// The digest of a tool's definition. While it is not known, because the server said that its tools have changed and has not listed them again, this
    /// is one that nobody has accepted.
    pub(super) fn digest(&self, tool: &str) -> String {
        let state = self.state();
        match state.tools.get(tool) {
            Some(known) if state.announced == state.listed => known.definition.digest(),
            _ => format!("unknown:{}", state.announced),
        }
    }

    pub(super) fn on_change(&self, notify: impl Fn(McpToolDefinition) + Send + Sync + 'static) {
        self.state().on_change = Some(Arc::new(notify));
    }

    fn announce(&self) -> u64 {
        let mut state = self.state();
        state.announced += 1;
        state.announced
    }

    /// Takes what the server lists after an announcement.
    fn update(&self, announced: u64, tools: &[rmcp::model::Tool]) {
        let mut state = self.state();
        if announced <= state.listed {
            return;
        }
        state.listed = announced;
        let mut changes = Vec::new();
        for tool in tools {
            let definition = McpDefinition::from_tool(tool);
            // Tools that are new are not part of the session.
            if let Some(known) = state.tools.get_mut(&*tool.name).filter(|known| known.definition != definition) {
                known.definition = definition;
                changes.push(known.clone());
            }
        }
        let notify = state.on_change.clone();
        // Whoever is told may ask for definitions.
        drop(state);
        if let Some(notify) = notify {
            changes.into_iter().for_each(|change| notify(change));
        }
    }
}

impl std::fmt::Debug for McpDefinitions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Definitions").finish_non_exhaustive()
    }
}

/// This program, as a server sees it. It lists the tools again when the server says that they have changed.
#[derive(Debug)]
pub(super) struct McpClient {
    pub(super) config: ClientConfig,
    pub(super) definitions: McpDefinitions,
}

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        let announced = self.definitions.announce();
        match timeout(HANDSHAKE_TIMEOUT, context.peer.list_all_tools()).await {
            Ok(Ok(tools)) => self.definitions.update(announced, &tools),
            // Nothing that was accepted before counts until it has listed them.
            Ok(Err(error)) => tracing::warn!(%error, "tools that have changed cannot be listed"),
            Err(_) => tracing::warn!("tools that have changed were not listed within {HANDSHAKE_TIMEOUT:?}"),
        }
    }
}
