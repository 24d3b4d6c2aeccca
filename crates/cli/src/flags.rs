//! Flags of commands that run an agent.

use std::path::PathBuf;

use amplifier_host::{ApprovalChannel, Config, Home, Overrides};
use anyhow::Result;
use clap::{Arg, Args};

/// Flags that all commands with an agent share. Each can also be set in the environment and in the configuration file.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Model provider [possible values: anthropic, openai (also compatible APIs, with --base-url), gemini, scripted]
    #[arg(long, env = "AMPLIFIER_PROVIDER", value_name = "NAME")]
    pub provider: Option<String>,
    /// Model name
    #[arg(long, env = "AMPLIFIER_MODEL", value_name = "NAME")]
    pub model: Option<String>,
    /// Base URL of the provider, for Ollama, vLLM, llama.cpp or a proxy
    #[arg(long, env = "AMPLIFIER_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// Script file for the provider `scripted`
    #[arg(long, env = "AMPLIFIER_SCRIPT", value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Working folder of the agent; its file tools cannot leave this folder [default: the current one]
    #[arg(long, env = "AMPLIFIER_WORKSPACE", value_name = "FOLDER")]
    pub workspace: Option<PathBuf>,
    /// Bundle (YAML file) with additional hooks
    #[arg(long, env = "AMPLIFIER_BUNDLE", value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Approval mode [possible values: ask, accept-edits (no approval for writes that git can undo), plan (nothing changes), deny (deny all requests)]
    #[arg(long, env = "AMPLIFIER_MODE", value_name = "MODE")]
    pub mode: Option<String>,
    /// Place where approval requests are answered [possible values: terminal, server (also in the console)]
    #[arg(long, env = "AMPLIFIER_APPROVALS", value_name = "PLACE")]
    pub approvals: Option<String>,
    /// Connect to the server, which can then watch and stop this session and answer its approval requests; same as `--approvals server`
    #[arg(long)]
    pub serve: bool,
    /// Operations that need approval [possible values: all (commands and changes), writes (not commands that only read), commands (nor writes to files), off]
    #[arg(long, env = "AMPLIFIER_CONFIRM", value_name = "WHAT")]
    pub confirm: Option<String>,
    /// Time limit for an answer, after which the request is denied
    #[arg(long, env = "AMPLIFIER_APPROVAL_TIMEOUT", value_name = "SECONDS", allow_negative_numbers = true)]
    pub approval_timeout: Option<String>,
    /// Output mode [possible values: loop-streaming (while the model answers), loop-basic (when the answer is complete)]
    #[arg(long, env = "AMPLIFIER_ORCHESTRATOR", value_name = "NAME")]
    pub orchestrator: Option<String>,
    /// Audit durability [possible values: async (does not wait for the disk), group (records share a sync), record (a sync for each record)]
    #[arg(long, env = "AMPLIFIER_AUDIT", value_name = "LEVEL")]
    pub audit: Option<String>,
    /// Sandbox that protects bundles, keys and the audit log from commands [possible values: on, off (if commands need `sudo` or similar)]
    #[arg(long, env = "AMPLIFIER_CONFINEMENT", value_name = "MODE")]
    pub confinement: Option<String>,
    /// Configuration file
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

    /// Hides all shared flags but the workspace and the configuration file.
    pub fn hide_all_but_workspace(arg: Arg) -> Arg {
        const POLICY_FLAGS: [&str; 4] = ["bundle", "mode", "confirm", "confinement"];
        let arg = Self::hide_agent_flags(arg);
        if POLICY_FLAGS.contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg }
    }

    /// Loads the configuration and applies these flags.
    ///
    /// # Errors
    /// If the file cannot be read or a value is invalid.
    pub fn load(&self, home: &Home) -> Result<Config> {
        let approvals = match self.serve {
            true => Some(ApprovalChannel::Server.as_str().to_owned()),
            false => self.approvals.clone(),
        };
        let overrides = Overrides {
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            script: self.script.clone(),
            workspace: self.workspace.clone(),
            bundle: self.bundle.clone(),
            approvals,
            mode: self.mode.clone(),
            confirm: self.confirm.clone(),
            approval_timeout: self.approval_timeout.clone(),
            orchestrator: self.orchestrator.clone(),
            audit: self.audit.clone(),
            confinement: self.confinement.clone(),
            config: self.config.clone(),
        };
        Ok(Config::load(&overrides, home)?)
    }
}
