//! Flags of commands that run an agent.

use std::path::PathBuf;

use amplifier_host::{ApprovalMode, Config, Home, Overrides};
use anyhow::Result;
use clap::{Arg, Args};

use crate::errors::usage;

/// Flags that all commands with an agent share. Each can also be set in the environment and in the configuration file.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Who answers: `anthropic`, `openai` (and everything compatible, with --base-url), `gemini`, or `scripted`
    #[arg(long, env = "AMPLIFIER_PROVIDER", value_name = "NAME")]
    pub provider: Option<String>,
    /// The model
    #[arg(long, env = "AMPLIFIER_MODEL", value_name = "NAME")]
    pub model: Option<String>,
    /// Where the provider is, if not at its usual place: Ollama, vLLM, llama.cpp, a proxy
    #[arg(long, env = "AMPLIFIER_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// The file that the provider `scripted` plays
    #[arg(long, env = "AMPLIFIER_SCRIPT", value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// The folder the agent works in, which its file tools do not leave [default: the current one]
    #[arg(long, env = "AMPLIFIER_WORKSPACE", value_name = "FOLDER")]
    pub workspace: Option<PathBuf>,
    /// A bundle: more hooks, from a YAML file
    #[arg(long, env = "AMPLIFIER_BUNDLE", value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// What becomes of questions: `ask` puts them to the person, `server` to the server as well, `deny` refuses them
    #[arg(long, env = "AMPLIFIER_APPROVALS", value_name = "MODE")]
    pub approvals: Option<String>,
    /// Be seen by the server (`amplifier serve`): it is asked as well, and commands are taken from it; short for `--approvals server`
    #[arg(long)]
    pub serve: bool,
    /// How long a question waits for an answer before it is denied
    #[arg(long, env = "AMPLIFIER_APPROVAL_TIMEOUT", value_name = "SECONDS")]
    pub approval_timeout: Option<String>,
    /// How answers are told: `loop-streaming` or `loop-basic`
    #[arg(long, env = "AMPLIFIER_ORCHESTRATOR", value_name = "NAME")]
    pub orchestrator: Option<String>,
    /// How safely the audit log is kept: `async`, `group` or `record`
    #[arg(long, env = "AMPLIFIER_AUDIT", value_name = "LEVEL")]
    pub audit: Option<String>,
    /// Whether commands run where they cannot change bundles, keys or the audit log: `on`, or `off` (for `sudo` and the like)
    #[arg(long, env = "AMPLIFIER_CONFINEMENT", value_name = "MODE")]
    pub confinement: Option<String>,
    /// Another configuration file
    #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Flags {
    /// Hides the flags that do not affect bundles from the help of commands without an agent. The flags still work.
    pub fn hide_agent_flags(arg: Arg) -> Arg {
        const AGENT_FLAGS: [&str; 9] = [
            "provider",
            "model",
            "base_url",
            "script",
            "approvals",
            "serve",
            "approval_timeout",
            "orchestrator",
            "audit",
        ];
        let is_hidden = AGENT_FLAGS.contains(&arg.get_id().as_str());
        arg.hide(is_hidden)
    }

    /// Loads the configuration and applies these flags.
    ///
    /// # Errors
    /// If the file cannot be read or a value is invalid.
    pub fn load(&self, home: &Home) -> Result<Config> {
        let approvals = match (self.serve, self.approvals.as_deref()) {
            (true, Some(mode)) if mode == ApprovalMode::Deny.as_str() => {
                return Err(usage("with `--approvals deny`, nobody is asked: leave out `--serve`"));
            }
            (true, _) => Some(ApprovalMode::Server.as_str().to_owned()),
            (false, _) => self.approvals.clone(),
        };
        let overrides = Overrides {
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            script: self.script.clone(),
            workspace: self.workspace.clone(),
            bundle: self.bundle.clone(),
            approvals,
            approval_timeout: self.approval_timeout.clone(),
            orchestrator: self.orchestrator.clone(),
            audit: self.audit.clone(),
            confinement: self.confinement.clone(),
            config: self.config.clone(),
        };
        Ok(Config::load(&overrides, home)?)
    }
}
