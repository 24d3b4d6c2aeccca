//! Tools of MCP servers, which are programs with a protocol on standard input and output.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::Map;
use amplifier_process::Receiver;
use amplifier_process::sandbox::Sandbox;
use amplifier_process::{Command, Environment, RunningProcess};
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock, ErrorCode,
    Implementation, ResourceContents,
};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{Peer, RoleClient, ServiceError, ServiceExt};
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::mcp_definitions::{McpClient, McpDefinition, McpDefinitions, McpToolDefinition};
use super::{Tool, ToolError, ToolOutput};
use crate::provider::ToolSpec;

/// The time limit for starting, for the handshake and for listing tools.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

const CALL_TIMEOUT: Duration = Duration::from_secs(120);

const MAX_TEXT_BYTES: usize = 100 << 10;

const MAX_LOGGED_BYTES: usize = 1 << 20;

/// A running MCP server. Dropping it kills its process with all descendants; its tools fail from then on.
#[derive(Debug)]
pub struct McpServer {
    name: Arc<str>,
    // Dropped before the connection, so that a server that ignores the end of input does not delay it.
    _process: ServerProcess,
    client: RunningService<RoleClient, McpClient>,
    definitions: McpDefinitions,
    tools: Vec<rmcp::model::Tool>,
    call_limit: Duration,
}

/// The reason why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The name is invalid.
    #[error(
        "`{server}` cannot be the name of an MCP server: use letters, digits, `-` and `_`, but no two `_` in a row"
    )]
    Name {
        /// The name.
        server: String,
    },
    /// The program could not be started.
    #[error("the MCP server `{server}` cannot be started: `{command}`: {error}")]
    Start {
        /// The server.
        server: String,
        /// The program.
        command: String,
        /// The system error.
        error: io::Error,
    },
    /// The handshake failed.
    #[error(
        "the MCP server `{server}` failed the handshake: {problem}; see its standard error in the log at level `debug`"
    )]
    Handshake {
        /// The server.
        server: String,
        /// The problem.
        problem: String,
    },
}

impl McpServer {
    /// Starts a server, and lists its tools. The server gets `env` and the basic environment.
    ///
    /// # Errors
    /// If the server cannot be started, or the handshake takes more than 30 seconds.
    ///
    /// # Cancel safety
    /// Dropping the future kills the process.
    pub async fn start(
        name: &str,
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
    ) -> Result<Self, McpError> {
        Self::start_in(&Sandbox::default(), name, command, args, env).await
    }

    /// Starts a server in a sandbox.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    pub async fn start_in(
        sandbox: &Sandbox,
        name: &str,
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
    ) -> Result<Self, McpError> {
        let server = || name.to_owned();
        let not_started = |error| McpError::Start { server: server(), command: command.to_owned(), error };
        if !is_valid_name(name) {
            return Err(McpError::Name { server: server() });
        }
        // The launcher always starts, so a missing program is detected here.
        if !sandbox.is_none() && !program_exists(command) {
            let problem = if command.contains('/') { "no such file" } else { "not found in `PATH`" };
            return Err(not_started(io::Error::new(io::ErrorKind::NotFound, problem)));
        }
        let started = Command::new(command, Environment::Basic).args(args).sandbox(sandbox);
        let started = env.iter().fold(started, |started, (name, value)| started.variable(name, value));
        let (running, input, output, errors) = started.start().map_err(not_started)?.into_parts();
        let log = errors.map(|errors| tokio::spawn(log(name.to_owned(), errors)));
        let process = ServerProcess { _running: running, log };
        let definitions = McpDefinitions::default();
        let handshake = timeout(HANDSHAKE_TIMEOUT, async {
            let input = input.ok_or("no standard input")?;
            let this = Implementation::new("amplifier", env!("CARGO_PKG_VERSION"));
            let config = ClientConfig::new(ClientCapabilities::default(), this);
            let client = McpClient { config, definitions: definitions.clone() }.serve((output, input)).await;
            let client = client.map_err(|error| match error {
                ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                    "the process has ended".to_owned()
                }
                error => truncate(error.to_string()),
            })?;
            let tools = client.list_all_tools().await.map_err(|error| match error {
                ServiceError::TransportClosed | ServiceError::TransportSend(_) => "the process has ended".to_owned(),
                error => truncate(format!("the tools cannot be listed: {error}")),
            })?;
            Ok((client, tools))
        });
        let handshake = handshake.await.unwrap_or_else(|_| Err(format!("no reply within {HANDSHAKE_TIMEOUT:?}")));
        let (client, tools) = handshake.map_err(|problem| McpError::Handshake { server: server(), problem })?;
        let server =
            Self { name: name.into(), _process: process, client, definitions, tools, call_limit: CALL_TIMEOUT };
        for (tool, name) in server.listed_tools() {
            server.definitions.add(McpToolDefinition {
                server: server.name.to_string(),
                tool: tool.name.to_string(),
                name,
                definition: McpDefinition::from_tool(tool),
            });
        }
        Ok(server)
    }

    /// Sets the time limit of calls; 120 seconds by default.
    #[must_use]
    pub fn call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// Registers a function that is called when the server changes the definition of a tool. The tool continues with the new definition.
    pub fn on_definition_change(&self, tell: impl Fn(McpToolDefinition) + Send + Sync + 'static) {
        self.definitions.on_change(tell);
    }

    /// Returns the current definitions of the tools.
    pub fn definitions(&self) -> Vec<McpToolDefinition> {
        self.definitions.all()
    }

    /// Returns the tools, named `mcp__<server>__<tool>`.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |(tool, name): (&rmcp::model::Tool, String)| {
            Arc::new(McpTool {
                server: self.name.clone(),
                tool: tool.name.to_string(),
                name,
                definitions: self.definitions.clone(),
                // Not the server itself, so that a tool does not keep the process alive.
                peer: self.client.peer().clone(),
                limit: self.call_limit,
            }) as Arc<dyn Tool>
        };
        self.listed_tools().into_iter().map(tool).collect()
    }

    /// Returns the initially listed tools, with their names for the model.
    fn listed_tools(&self) -> Vec<(&rmcp::model::Tool, String)> {
        let mut names = HashSet::new();
        let mut tools = Vec::new();
        for tool in &self.tools {
            let name = format!("mcp__{}__{}", self.name, sanitize_name(&tool.name));
            if names.insert(name.clone()) {
                tools.push((tool, name));
            } else {
                tracing::warn!(server = %self.name, tool = name, "two tools have the same name; the second is left out");
            }
        }
        tools
    }
}

fn program_exists(command: &str) -> bool {
    if command.contains('/') {
        return Path::new(command).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(command).is_file())
}

/// Returns `true` if the name keeps the names of tools unambiguous.
fn is_valid_name(name: &str) -> bool {
    let has_ends = !name.is_empty() && !name.starts_with('_') && !name.ends_with('_');
    has_ends && sanitize_name(name) == name && !name.contains("__")
}

/// Replaces characters that models do not accept in names.
fn sanitize_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// The process of a server, and the task that logs its standard error.
#[derive(Debug)]
struct ServerProcess {
    _running: RunningProcess,
    log: Option<JoinHandle<()>>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.abort();
        }
    }
}

/// Logs standard error. Reading continues beyond the limit, because the server would block otherwise.
async fn log(server: String, mut errors: Receiver) {
    let mut logged = 0;
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        if logged > MAX_LOGGED_BYTES {
            continue;
        }
        logged += read;
        for line in String::from_utf8_lossy(&buffer[..read]).lines().filter(|line| !line.is_empty()) {
            tracing::debug!(server, stderr = ?line);
        }
        if logged > MAX_LOGGED_BYTES {
            tracing::debug!(server, "more of its standard error is not logged");
        }
    }
}

struct McpTool {
    server: Arc<str>,
    tool: String,
    name: String,
    definitions: McpDefinitions,
    peer: Peer<RoleClient>,
    limit: Duration,
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        let definition = self.definitions.get(&self.tool);
        let (description, input_schema) =
            definition.map(|known| (truncate(known.description), known.input_schema)).unwrap_or_default();
        ToolSpec { name: self.name.clone(), description, input_schema }
    }

    fn definition(&self) -> Option<String> {
        Some(self.definitions.digest(&self.tool))
    }

    /// # Cancel safety
    /// Dropping the future cancels the call at the server, which may ignore that.
    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let call = CallToolRequestParams::new(self.tool.clone()).with_arguments(input);
            let failed = |problem: String| ToolError::Failed(format!("the MCP server `{}` {problem}", self.server));
            let response = timeout(self.limit, self.peer.call_tool_once(call));
            match response.await.map_err(|_| failed(format!("gave no answer within {:?}", self.limit)))? {
                Ok(CallToolResponse::Complete(result)) => to_output(result),
                Ok(_) => Err(failed("asks the user for input (elicitation), which is not supported".to_owned())),
                Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS => {
                    Err(ToolError::Input { tool: self.name.clone(), problem: truncate(error.message.into()) })
                }
                Err(ServiceError::McpError(error)) => Err(failed(truncate(format!("refused: {}", error.message)))),
                Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                    Err(failed("has ended; start the server again to use its tools".to_owned()))
                }
                Err(error) => Err(failed(truncate(format!("sent a malformed reply: {error}")))),
            }
        })
    }
}

fn to_output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut blocks: Vec<String> = result.content.iter().map(block_text).collect();
    if let (true, Some(value)) = (blocks.is_empty(), &result.structured_content) {
        blocks.push(value.to_string());
    }
    let text = truncate(blocks.join("\n"));
    if result.is_error == Some(true) {
        return Err(ToolError::Failed(if text.is_empty() { "failed without a reason".to_owned() } else { text }));
    }
    Ok(ToolOutput::text(text))
}

/// Returns a text block unchanged, and describes the others.
fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image {}, {} bytes]", image.mime_type, decoded_length(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {} bytes]", audio.mime_type, decoded_length(&audio.data)),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!("[resource {uri}, {} bytes]", decoded_length(blob))
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}]", link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn truncate(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{left} more bytes were left out]"));
    }
    text
}
