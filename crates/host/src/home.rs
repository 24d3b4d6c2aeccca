//! The data folder.

use std::path::{Path, PathBuf};

use amplifier_agent::Store;
use amplifier_modules::trust::TrustStore;
use amplifier_process::HOME_VARIABLE;

use crate::environment::Environment;
use crate::error::{ErrorContext, Result};
use crate::managed::MANAGED_BUNDLE;

/// The data and configuration folders of the user.
#[derive(Clone, Debug)]
pub struct Home {
    data: PathBuf,
    config: PathBuf,
    managed: PathBuf,
    environment: Environment,
    is_nonexistent: bool,
}

impl Home {
    /// Finds the folders: `$AMPLIFIER_HOME` for everything if set; otherwise `$XDG_DATA_HOME/amplifier` and `$XDG_CONFIG_HOME/amplifier`.
    ///
    /// # Errors
    /// If there is no home folder.
    pub fn find(environment: Environment) -> Result<Self> {
        if let Some(home) = environment.variable("AMPLIFIER_HOME") {
            let home = std::path::absolute(environment.current_dir().join(home));
            return Ok(Self::at(home.context("AMPLIFIER_HOME is not a usable path")?).with(environment));
        }
        let variable = |name: &str| environment.path(name);
        let none = || format!("no home folder found; set {HOME_VARIABLE} or AMPLIFIER_HOME");
        let user = || variable(HOME_VARIABLE).with_context(none);
        let data = variable("XDG_DATA_HOME").map_or_else(|| user().map(|home| home.join(".local/share")), Ok)?;
        let config = variable("XDG_CONFIG_HOME").map_or_else(|| user().map(|home| home.join(".config")), Ok)?;
        Ok(Self { data: data.join("amplifier"), config: config.join("amplifier"), ..Self::at("") }.with(environment))
    }

    /// Uses one folder for everything, with an empty environment.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let managed = PathBuf::from(MANAGED_BUNDLE);
        Self {
            data: folder.clone(),
            config: folder,
            managed,
            environment: Environment::default(),
            is_nonexistent: false,
        }
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

    /// Returns folders that never exist, for commands that need none. They are not created, also not by root.
    pub fn nonexistent() -> Self {
        Self { is_nonexistent: true, ..Self::at("/nonexistent") }
    }

    /// Returns `true` for folders that never exist.
    pub fn is_nonexistent(&self) -> bool {
        self.is_nonexistent
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the folder of the audit log.
    pub fn audit_folder(&self) -> PathBuf {
        self.data.join("audit")
    }

    /// Returns the key that signs the audit log.
    pub fn audit_key(&self) -> PathBuf {
        self.data.join("audit.key")
    }

    /// Returns the folder of the server, with its tokens and its socket.
    pub fn server_folder(&self) -> PathBuf {
        self.data.join("server")
    }

    /// Returns the folder with the mirrors of the logs of a fleet, on a collector.
    pub fn mirror_folder(&self) -> PathBuf {
        self.data.join("mirrors")
    }

    /// Returns the folder with the membership in a fleet, and with its policy.
    pub fn fleet_folder(&self) -> PathBuf {
        self.data.join("fleet")
    }

    /// Returns the folder with the membership of all users of the machine, which only the administrator can change.
    pub fn system_fleet_folder(&self) -> PathBuf {
        self.managed.with_file_name("fleet")
    }

    /// Returns the store of sessions.
    pub fn sessions(&self) -> Store {
        Store::new(self.data.join("sessions"))
    }

    /// Returns the input history of `chat`.
    pub fn line_history(&self) -> PathBuf {
        self.data.join("history")
    }

    /// Returns the file of accepted MCP tool definitions.
    pub fn mcp_tools(&self) -> PathBuf {
        self.data.join("mcp-tools.json")
    }

    /// Returns the file of trusted project bundles.
    pub fn trust_file(&self) -> PathBuf {
        self.data.join("trust.json")
    }

    /// Returns the store of trusted project bundles.
    pub fn trust_store(&self) -> TrustStore {
        TrustStore::new(self.trust_file())
    }

    /// Returns the user's bundle.
    pub fn user_bundle(&self) -> PathBuf {
        self.config.join("bundle.yaml")
    }

    /// Returns the bundle of the machine's administrator. No variable and no flag changes its path.
    pub fn managed_bundle(&self) -> &Path {
        &self.managed
    }

    /// Returns the configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the user's approval rules.
    pub fn approval_rule_file(&self) -> PathBuf {
        self.config.join("approvals.json")
    }

    /// Returns the folder with the approval rules for projects.
    pub fn projects(&self) -> PathBuf {
        self.config.join("projects")
    }
}
