//! Where things are kept.

use std::path::{Path, PathBuf};

use amplifier_agent::Store;
use amplifier_modules::trust::TrustStore;
use amplifier_process::HOME_VARIABLE;

use crate::environment::Environment;
use crate::error::{ErrorContext, Result};

/// The folders of this program: what it keeps, and what the person configures.
#[derive(Clone, Debug)]
pub struct Home {
    data: PathBuf,
    config: PathBuf,
    environment: Environment,
}

impl Home {
    /// `$AMPLIFIER_HOME` for everything, if it is set; else `$XDG_DATA_HOME/amplifier` and `$XDG_CONFIG_HOME/amplifier`.
    ///
    /// # Errors
    /// If there is no home folder either.
    pub fn find(environment: Environment) -> Result<Self> {
        if let Some(home) = environment.variable("AMPLIFIER_HOME") {
            let home = std::path::absolute(environment.current_dir().join(home));
            return Ok(Self::at(home.context("AMPLIFIER_HOME is no usable path")?).with(environment));
        }
        let variable = |name: &str| environment.path(name);
        let none = || format!("there is no home folder; please set {HOME_VARIABLE} or AMPLIFIER_HOME");
        let user = || variable(HOME_VARIABLE).with_context(none);
        let data = variable("XDG_DATA_HOME").map_or_else(|| user().map(|home| home.join(".local/share")), Ok)?;
        let config = variable("XDG_CONFIG_HOME").map_or_else(|| user().map(|home| home.join(".config")), Ok)?;
        Ok(Self { data: data.join("amplifier"), config: config.join("amplifier"), environment })
    }

    /// Everything in one folder, with an empty environment.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { data: folder.clone(), config: folder, environment: Environment::default() }
    }

    /// Sets the environment.
    #[must_use]
    pub fn with(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Returns the environment of the process.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// For commands that can do without a home: a folder that is never there.
    pub fn nonexistent() -> Self {
        Self::at("/nonexistent")
    }

    /// Where things are kept.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The audit log.
    pub fn audit_folder(&self) -> PathBuf {
        self.data.join("audit")
    }

    /// The key that signs the audit log.
    pub fn audit_key(&self) -> PathBuf {
        self.data.join("audit.key")
    }

    /// What the server keeps: its tokens, and where it is while it runs.
    pub fn server_folder(&self) -> PathBuf {
        self.data.join("server")
    }

    /// The stored sessions.
    pub fn sessions(&self) -> Store {
        Store::new(self.data.join("sessions"))
    }

    /// The lines typed in `chat`.
    pub fn line_history(&self) -> PathBuf {
        self.data.join("history")
    }

    /// The definitions of MCP tools that allows count for.
    pub fn mcp_tools(&self) -> PathBuf {
        self.data.join("mcp-tools.json")
    }

    /// Which bundles of projects the person has trusted.
    pub fn trust_file(&self) -> PathBuf {
        self.data.join("trust.json")
    }

    /// The same, to be read and changed.
    pub fn trust_store(&self) -> TrustStore {
        TrustStore::new(self.trust_file())
    }

    /// The person's own bundle, which every session has.
    pub fn user_bundle(&self) -> PathBuf {
        self.config.join("bundle.yaml")
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The person's standing answers.
    pub fn approval_rules(&self) -> PathBuf {
        self.config.join("approvals.json")
    }

    /// The person's standing answers for projects, each in a folder of its own.
    pub fn projects(&self) -> PathBuf {
        self.config.join("projects")
    }
}
