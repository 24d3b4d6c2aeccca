//! The model of a session.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_agent::provider::{Kind, Provider, RemoteOptions, RemoteProvider, Script, ScriptedProvider};

use crate::environment::Environment;
use crate::error::usage;
use crate::error::{Error, Result, bail};

/// The model of a session.
#[derive(Clone, PartialEq)]
pub enum ModelChoice {
    /// A remote model.
    Remote {
        /// The service.
        kind: Kind,
        /// The name of the model.
        model: String,
        /// The address, if not the usual one.
        base_url: Option<String>,
        /// The key.
        key: Option<String>,
    },
    /// A script for the scripted provider.
    Script(PathBuf),
    /// No model is configured.
    Unconfigured,
}

/// Omits the key.
impl fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote { kind, model, base_url, key } => {
                let key = key.as_ref().map(|_| "[key]");
                write!(f, "Remote {{ kind: {kind}, model: {model:?}, base_url: {base_url:?}, key: {key:?} }}")
            }
            Self::Script(file) => f.debug_tuple("Script").field(file).finish(),
            Self::Unconfigured => f.write_str("Unconfigured"),
        }
    }
}

impl ModelChoice {
    /// Chooses a model; an empty text means no choice. Without a provider, the first one with a key in the environment is used, or, with only a
    /// base URL, `openai`, whose API most servers have.
    ///
    /// # Errors
    /// If the provider is unknown, or `scripted` has no script.
    pub fn find(
        provider: &str,
        model: &str,
        base_url: &str,
        script: PathBuf,
        environment: &Environment,
    ) -> Result<Self> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let key_of = |kind: Kind| environment.variable(kind.key_variable())?.to_str().map(str::to_owned);
        let has_script = !script.as_os_str().is_empty();
        match provider {
            "scripted" if !has_script => {
                return Err(usage("missing script for the provider `scripted`; add --script FILE"));
            }
            "scripted" | "" if has_script => return Ok(Self::Script(script)),
            _ => {}
        }
        let kind = match provider {
            // A key implies its service.
            "" => [Kind::Anthropic, Kind::OpenAi, Kind::Gemini]
                .into_iter()
                .find(|kind| key_of(*kind).is_some())
                .or_else(|| some(base_url).map(|_| Kind::OpenAi)),
            word => Some(word.parse::<Kind>().map_err(|_| {
                usage(format!("unknown provider `{word}`; expected `anthropic`, `openai`, `gemini` or `scripted`"))
            })?),
        };
        let Some(kind) = kind else { return Ok(Self::Unconfigured) };
        let default_model = match kind {
            Kind::Anthropic => "claude-sonnet-4-5",
            Kind::OpenAi => "gpt-5",
            Kind::Gemini => "gemini-2.5-pro",
        };
        let model = some(model).unwrap_or_else(|| default_model.to_owned());
        Ok(Self::Remote { kind, model, base_url: some(base_url), key: key_of(kind) })
    }

    /// Describes the choice: provider, model and address.
    pub fn describe(&self) -> String {
        match self {
            Self::Unconfigured => "no model".to_owned(),
            Self::Script(file) => format!("script `{}`", file.display()),
            Self::Remote { kind, model, base_url: Some(url), .. } => format!("{kind}, {model}, at {url}"),
            Self::Remote { kind, model, base_url: None, .. } => format!("{kind}, {model}"),
        }
    }

    /// Connects to the model, or loads the script.
    ///
    /// # Errors
    /// If no model is configured, its key is missing, or the script cannot be read.
    pub fn provider(self) -> Result<Arc<dyn Provider>> {
        match self {
            Self::Unconfigured => bail!("{NO_MODEL}"),
            Self::Script(file) => Ok(Arc::new(ScriptedProvider::new(Script::load(&file).map_err(Error::other)?))),
            Self::Remote { kind, model, base_url, key } => {
                if key.is_none() && base_url.is_none() {
                    bail!("missing key for the provider `{kind}`; set {}", kind.key_variable());
                }
                let options = RemoteOptions { key, base_url, ..RemoteOptions::new(kind, model) };
                Ok(Arc::new(RemoteProvider::new(options).map_err(Error::other)?))
            }
        }
    }
}

/// The error if no model is configured, for a user of the command.
pub const NO_MODEL: &str = "\
no model is configured

  For a demonstration without a key and without a network:
      amplifier demo

  To work with a model, set the key of its maker:
      export ANTHROPIC_API_KEY=…     or OPENAI_API_KEY, or GEMINI_API_KEY

  Or use a model on this machine (Ollama, vLLM, llama.cpp):
      amplifier run --base-url http://localhost:11434/v1/ --model llama3.2 \"…\"

  `amplifier doctor` shows the configuration and its problems";
