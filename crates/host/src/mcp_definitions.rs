//! The accepted definitions of MCP tools.
//!
//! The definition of a tool determines what the model does with it. A user who always allows a tool knows only the definition at that time, so a tool
//! with a changed description or input schema needs approval again, despite rules.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use amplifier_agent::tool::{McpDefinition, McpServer, McpToolDefinition};
use amplifier_core::{Level, ToolDefinition};
use amplifier_process::files::{Durability, write_atomic};
use amplifier_process::locks::FileLock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::reasons;
use crate::error::{ErrorContext, Result};
use crate::home::Home;
use crate::notices::Notices;

/// A file of accepted definitions.
#[derive(Clone, Debug)]
pub struct McpDefinitionStore {
    file: PathBuf,
}

/// A tool, by its name for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownDefinition {
    accepted: String,
    /// The digests of the last seen parts, so that a change is reported once.
    description: String,
    input_schema: String,
}

type Tools = BTreeMap<String, KnownDefinition>;

impl McpDefinitionStore {
    /// The store of a user.
    pub fn new(home: &Home) -> Self {
        Self { file: home.mcp_tools() }
    }

    /// Compares the definitions of a server with the known ones, now and at every change, and notifies the user of changes. New tools are accepted.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn follow(&self, server: &McpServer, notices: &Notices) -> Result<()> {
        let (store, receiver) = (self.clone(), notices.clone());
        server.on_definition_change(move |tool| {
            if let Err(error) = store.record_seen(&tool, &receiver) {
                receiver.message(Level::Error, "mcp", reasons(&error));
            }
        });
        server.definitions().iter().try_for_each(|tool| self.record_seen(tool, notices))
    }

    /// Records a definition, and notifies the user if it has changed since the last time.
    fn record_seen(&self, tool: &McpToolDefinition, notices: &Notices) -> Result<()> {
        let McpToolDefinition { server, tool, name, definition } = tool;
        let McpDefinition { description, input_schema } = definition.clone();
        let description = McpDefinition { description, input_schema: Value::Null }.digest();
        let input_schema = McpDefinition { description: String::new(), input_schema }.digest();
        let mut changed = Vec::new();
        self.change(|tools| {
            let accepted = definition.digest();
            let known = tools.entry(name.clone()).or_insert_with(|| KnownDefinition {
                accepted: accepted.clone(),
                description: description.clone(),
                input_schema: input_schema.clone(),
            });
            let is_accepted = known.accepted == accepted;
            if known.description != description && !is_accepted {
                changed.push("description");
            }
            if known.input_schema != input_schema && !is_accepted {
                changed.push("input schema");
            }
            (known.description, known.input_schema) = (description, input_schema);
        })?;
        if !changed.is_empty() {
            let parts = changed.join(" and the ");
            notices.message(
                Level::Warning,
                "mcp",
                format!(
                    "the MCP server `{server}` has changed the {parts} of its tool `{tool}`; earlier rules for `{name}` \
                     do not apply until you always allow the tool again"
                ),
            );
        }
        Ok(())
    }

    /// Returns `true` if rules that allow apply to a tool with this definition.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn covers(&self, tool: &ToolDefinition) -> Result<bool> {
        Ok(self.read()?.get(&tool.tool).is_some_and(|known| known.accepted == tool.digest))
    }

    /// Accepts the definition of a tool, because the user always allows the tool.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn accept(&self, tool: &ToolDefinition) -> Result<()> {
        self.change(|tools| {
            if let Some(known) = tools.get_mut(&tool.tool) {
                known.accepted.clone_from(&tool.digest);
            }
        })
    }

    fn read(&self) -> Result<Tools> {
        match fs::read(&self.file) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!("`{}` is damaged; remove the file to accept all tools as they are", self.file.display())
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Tools::new()),
            Err(error) => Err(error).with_context(|| format!("`{}`", self.file.display())),
        }
    }

    /// Changes the file atomically, under a lock.
    fn change(&self, change: impl FnOnce(&mut Tools)) -> Result<()> {
        let failed = || format!("`{}`", self.file.display());
        let folder = self.file.parent().context("the data has no folder")?;
        fs::create_dir_all(folder).with_context(failed)?;
        let _lock = FileLock::wait(&self.file.with_extension("lock")).with_context(failed)?;
        let before = self.read()?;
        let mut tools = before.clone();
        change(&mut tools);
        if tools == before {
            return Ok(());
        }
        write_atomic(&self.file, &serde_json::to_vec_pretty(&tools)?, Durability::Synced).with_context(failed)
    }
}
