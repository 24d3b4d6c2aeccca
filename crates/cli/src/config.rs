//! What is configured: by flags, else by the environment, else by the file, else by default.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use amplifier_agent::provider::Kind;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Deserialize;

use crate::home::Home;

/// The flags that all commands with an agent share. Each may also stand in the environment and in the configuration file.
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
    /// The folder the agent works in and is confined to [default: the current one]
    #[arg(long, env = "AMPLIFIER_WORKSPACE", value_name = "FOLDER")]
    pub workspace: Option<PathBuf>,
    /// What becomes of questions: `ask` puts them to the person, `deny` refuses them
    #[arg(long, env = "AMPLIFIER_APPROVALS", value_name = "MODE")]
    pub approvals: Option<String>,
    /// How answers are told: `loop-streaming` or `loop-basic`
    #[arg(long, env = "AMPLIFIER_ORCHESTRATOR", value_name = "NAME")]
    pub orchestrator: Option<String>,
    /// How safely the audit log is kept: `async`, `group` or `record`
    #[arg(long, env = "AMPLIFIER_AUDIT", value_name = "LEVEL")]
    pub audit: Option<String>,
    /// Another configuration file
    #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What stands in the configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    provider: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    script: Option<PathBuf>,
    workspace: Option<PathBuf>,
    approvals: Option<String>,
    orchestrator: Option<String>,
    audit: Option<String>,
    system: Option<String>,
    mcp: BTreeMap<String, McpCommand>,
}

/// An MCP server to start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What is added to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Who {
    /// A model behind a network.
    Remote {
        /// Whose.
        kind: Kind,
        /// Which.
        model: String,
        /// Where, if not at the usual place.
        base_url: Option<String>,
        /// The key, if there is one.
        key: Option<String>,
    },
    /// A file.
    Script(PathBuf),
    /// Nobody: nothing is configured.
    Nobody,
}

/// What becomes of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approvals {
    /// A person is asked.
    Ask,
    /// They are refused.
    Deny,
}

/// A setting, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag, or the environment variable in its place.
    Given,
    /// The configuration file.
    File,
    /// Nowhere.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "flag or environment",
            Self::File => "configuration file",
            Self::Default => "default",
        })
    }
}

/// Everything that is configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who answers.
    pub who: Who,
    /// The folder the agent works in.
    pub workspace: PathBuf,
    /// What becomes of questions.
    pub approvals: Approvals,
    /// How answers are told.
    pub orchestrator: amplifier_agent::Orchestrator,
    /// How safely the audit log is kept.
    pub audit: amplifier_audit::Durability,
    /// What the model is told before everything else.
    pub system: Option<String>,
    /// MCP servers, by name.
    pub mcp: BTreeMap<String, McpCommand>,
    /// All of it, for people.
    pub settings: Vec<Setting>,
}

impl Config {
    /// Puts the flags, the environment and the file together.
    ///
    /// # Errors
    /// If the file cannot be read, or a value is none of those there are.
    pub fn load(flags: &Flags, home: &Home) -> Result<Self> {
        let file = read(flags.config.as_deref(), home)?;
        let mut settings = Vec::new();
        let mut choose = |name, given: Option<&str>, file: Option<&str>, default: &str| {
            let (value, source) = match (given, file) {
                (Some(given), _) => (given, Source::Given),
                (None, Some(file)) => (file, Source::File),
                (None, None) => (default, Source::Default),
            };
            settings.push(Setting { name, value: value.to_owned(), source });
            value.to_owned()
        };
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        let provider = choose("provider", flags.provider.as_deref(), file.provider.as_deref(), "");
        let model = choose("model", flags.model.as_deref(), file.model.as_deref(), "");
        let base_url = choose("base_url", flags.base_url.as_deref(), file.base_url.as_deref(), "");
        let script = choose("script", path(&flags.script).as_deref(), path(&file.script).as_deref(), "");
        let workspace = choose("workspace", path(&flags.workspace).as_deref(), path(&file.workspace).as_deref(), ".");
        let approvals = choose("approvals", flags.approvals.as_deref(), file.approvals.as_deref(), "ask");
        let orchestrator =
            choose("orchestrator", flags.orchestrator.as_deref(), file.orchestrator.as_deref(), "loop-streaming");
        let audit = choose("audit", flags.audit.as_deref(), file.audit.as_deref(), "group");

        Ok(Self {
            who: who(&provider, &model, &base_url, &script)?,
            workspace: std::path::absolute(&workspace).with_context(|| format!("the workspace `{workspace}`"))?,
            approvals: match approvals.as_str() {
                "ask" => Approvals::Ask,
                "deny" => Approvals::Deny,
                other => bail!("approvals are `ask` or `deny`, not `{other}`; nothing is ever allowed silently"),
            },
            orchestrator: match orchestrator.as_str() {
                "loop-streaming" => amplifier_agent::Orchestrator::Streaming,
                "loop-basic" => amplifier_agent::Orchestrator::Basic,
                other => bail!("the orchestrator is `loop-streaming` or `loop-basic`, not `{other}`"),
            },
            audit: match audit.as_str() {
                "async" => amplifier_audit::Durability::Async,
                "group" => amplifier_audit::Durability::Group,
                "record" => amplifier_audit::Durability::Record,
                other => bail!("the audit log is kept `async`, `group` or `record`, not `{other}`"),
            },
            system: file.system,
            mcp: file.mcp,
            settings,
        })
    }
}

fn read(given: Option<&Path>, home: &Home) -> Result<File> {
    let path = given.map_or_else(|| home.config_file(), Path::to_owned);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // Without a file there is nothing in it; but one that was named has to be there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && given.is_none() => return Ok(File::default()),
        Err(error) => return Err(anyhow!(error).context(format!("the configuration `{}`", path.display()))),
    };
    toml::from_str(&text).with_context(|| format!("the configuration `{}` is not as expected", path.display()))
}

fn who(provider: &str, model: &str, base_url: &str, script: &str) -> Result<Who> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let key_of = |kind: Kind| std::env::var(kind.key_variable()).ok().filter(|key| !key.is_empty());
    if provider == "scripted" || (provider.is_empty() && !script.is_empty()) {
        let script = some(script).context("the provider `scripted` needs a file to play: --script FILE")?;
        return Ok(Who::Script(script.into()));
    }
    let kind = match provider {
        // A key says whom to ask.
        "" => [Kind::Anthropic, Kind::OpenAi, Kind::Gemini].into_iter().find(|kind| key_of(*kind).is_some()),
        word => Some(word.parse::<Kind>().map_err(|_| {
            anyhow!("there is no provider `{word}`; there are `anthropic`, `openai`, `gemini` and `scripted`")
        })?),
    };
    let Some(kind) = kind else { return Ok(Who::Nobody) };
    let default_model = match kind {
        Kind::Anthropic => "claude-sonnet-4-5",
        Kind::OpenAi => "gpt-5",
        Kind::Gemini => "gemini-2.5-pro",
    };
    let model = some(model).unwrap_or_else(|| default_model.to_owned());
    Ok(Who::Remote { kind, model, base_url: some(base_url), key: key_of(kind) })
}
