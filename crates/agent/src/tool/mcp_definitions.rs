//! The definitions of MCP tools, which can change.

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

/// The definition of a tool by its server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpDefinition {
    /// The description that the model reads.
    pub description: String,
    /// The schema of the input.
    pub input_schema: Value,
}

impl McpDefinition {
    pub(super) fn from_tool(tool: &rmcp::model::Tool) -> Self {
        let description = tool.description.as_deref().unwrap_or_default().to_owned();
        Self { description, input_schema: Value::Object((*tool.input_schema).clone()) }
    }

    /// Returns the digest of the definition. The order of keys in the schema does not matter.
    pub fn digest(&self) -> String {
        let Self { description, input_schema } = self;
        match (data! { "description": description, "input_schema": input_schema }).digest() {
            Ok(digest) => format!("sha256:{digest}"),
            // The schema is too deep for a JSON digest.
            Err(_) => version_of(format!("{description}\n{input_schema}").as_bytes()),
        }
    }
}

/// A tool of a server with its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct McpToolDefinition {
    /// The server.
    pub server: String,
    /// The name at the server.
    pub tool: String,
    /// The name for the model.
    pub name: String,
    /// The current definition.
    pub definition: McpDefinition,
}

type OnChange = Arc<dyn Fn(McpToolDefinition) + Send + Sync>;

/// The definitions of a server's tools. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub(super) struct McpDefinitions {
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By the name at the server.
    tools: BTreeMap<String, McpToolDefinition>,
    /// The number of announced changes.
    announced: u64,
    /// The number of announcements that the definitions include.
    listed: u64,
    on_change: Option<OnChange>,
}

impl McpDefinitions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, tool: McpToolDefinition) {
        self.state().tools.insert(tool.tool.clone(), tool);
    }

    pub(super) fn all(&self) -> Vec<McpToolDefinition> {
        self.state().tools.values().cloned().collect()
    }

    pub(super) fn get(&self, tool: &str) -> Option<McpDefinition> {
        self.state().tools.get(tool).map(|known| known.definition.clone())
    }

    /// Returns the digest of a definition. While an announced change is not listed yet, returns a digest that no user has accepted.
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

    /// Applies the list that follows an announcement.
    fn update(&self, announced: u64, tools: &[rmcp::model::Tool]) {
        let mut state = self.state();
        if announced <= state.listed {
            return;
        }
        state.listed = announced;
        let mut changes = Vec::new();
        for tool in tools {
            let definition = McpDefinition::from_tool(tool);
            // New tools are not part of the session.
            if let Some(known) = state.tools.get_mut(&*tool.name).filter(|known| known.definition != definition) {
                known.definition = definition;
                changes.push(known.clone());
            }
        }
        let notify = state.on_change.clone();
        // The callback may read definitions.
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

/// The MCP client. Lists the tools again when the server announces a change.
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
            // Earlier approvals do not apply until the server has listed the tools.
            Ok(Err(error)) => tracing::warn!(%error, "tools that have changed cannot be listed"),
            Err(_) => tracing::warn!("tools that have changed were not listed within {HANDSHAKE_TIMEOUT:?}"),
        }
    }
}
