//! The supported services.

use std::net::IpAddr;

use amplifier_core::words;
use reqwest::Url;

words! {
    /// A service, named after its wire format.
    pub enum Kind("provider") {
        /// Anthropic Messages.
        Anthropic = "anthropic",
        /// OpenAI Chat Completions, which Ollama, vLLM and llama.cpp speak too.
        OpenAi = "openai",
        /// Gemini `streamGenerateContent`.
        Gemini = "gemini",
    }
}

impl Kind {
    /// Returns the environment variable with the key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    pub(super) fn context_limit(self, base_url: Option<&str>) -> usize {
        match self {
            Self::Anthropic => 200_000,
            // Another address is usually a model on a local machine.
            Self::OpenAi if base_url.is_some() => 32_768,
            Self::OpenAi => 128_000,
            Self::Gemini => 1_048_576,
        }
    }

    pub(super) fn url(self, model: &str, base_url: Option<&str>) -> Result<Url, String> {
        let base_url = base_url.unwrap_or(match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        });
        let advice = "give an address such as `http://localhost:11434/v1`";
        let mut url = Url::parse(base_url).map_err(|error| format!("base URL `{base_url}`: {error}; {advice}"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(format!("base URL `{base_url}` does not begin with `http://` or `https://`; {advice}"));
        }
        let version = match (url.path().trim_end_matches('/'), self) {
            ("", Self::Anthropic | Self::OpenAi) => "/v1",
            ("", Self::Gemini) => "/v1beta",
            (path, _) => path,
        };
        let path = match self {
            Self::Anthropic => format!("{version}/messages"),
            Self::OpenAi => format!("{version}/chat/completions"),
            Self::Gemini => format!("{version}/models/{model}:streamGenerateContent"),
        };
        url.set_path(&path);
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(url)
    }

    pub(super) fn headers(self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| match self {
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::OpenAi => ("authorization", format!("Bearer {key}")),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        });
        let version = (self == Self::Anthropic).then(|| ("anthropic-version", "2023-06-01".to_owned()));
        key.into_iter().chain(version).collect()
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}
