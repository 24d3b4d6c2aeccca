//! Conversion of errors of genai, without the key.

use std::error::Error;
use std::time::Duration;

use amplifier_core::text::{truncate_chars, visible_line};
use genai::BoxError;
use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::provider::ProviderError;

pub(super) const KEY_PLACEHOLDER: &str = "[key]";

const MAX_MESSAGE_CHARS: usize = 500;

/// Converts errors of a provider, and redacts its key.
pub(super) struct ErrorMapper {
    key: Option<String>,
    idle_timeout: Duration,
}

impl ErrorMapper {
    pub(super) fn new(key: Option<String>, idle_timeout: Duration) -> Self {
        Self { key: key.filter(|key| !key.is_empty()), idle_timeout }
    }

    /// Returns the text without the key, in one line, and truncated.
    pub(super) fn redact(&self, text: &str) -> String {
        // Redacted before truncating, because half a key would not be found.
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| text.replace(key.as_str(), KEY_PLACEHOLDER));
        truncate_chars(&visible_line(&text), MAX_MESSAGE_CHARS - 1).into_owned()
    }

    pub(super) fn read(&self, error: genai::Error) -> ProviderError {
        match error {
            genai::Error::HttpError { status, body, headers, .. } => self.status(status, &headers, &body),
            genai::Error::WebStream { error, .. } => self.stream_error(error),
            genai::Error::ChatResponse { body, .. } => self.response_error(&body),
            genai::Error::StreamParse { serde_error, .. } if serde_error.is_eof() => ProviderError::Truncated,
            genai::Error::StreamParse { serde_error, .. } => {
                ProviderError::Malformed(self.redact(&serde_error.to_string()))
            }
            genai::Error::JsonValueExt(error) => ProviderError::Malformed(self.redact(&error.to_string())),
            error => ProviderError::Rejected(self.redact(&error.to_string())),
        }
    }

    fn status(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ProviderError {
        let json = serde_json::from_str(body).unwrap_or(Value::Null);
        let detail = self.redact(message(&json).unwrap_or(body));
        let text =
            if detail.is_empty() { format!("HTTP {status}") } else { format!("HTTP {}: {detail}", status.as_u16()) };
        // Gemini reports an invalid key as a bad request.
        let code = if body.contains("API_KEY_INVALID") { 401 } else { status.as_u16() };
        from_status(code, text, retry_after(headers).or_else(|| retry_delay(&json)))
    }

    fn response_error(&self, body: &Value) -> ProviderError {
        let Some(message) = message(body) else {
            return ProviderError::Malformed("a chunk of the response is empty".to_owned());
        };
        let error = details(body);
        let number = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
        let word =
            || ["type", "status", "code"].into_iter().find_map(|field| error[field].as_str().and_then(status_of_code));
        // Unknown errors count as temporary failures of the service.
        from_status(number.or_else(word).unwrap_or(500), self.redact(message), retry_delay(body))
    }

    fn stream_error(&self, error: BoxError) -> ProviderError {
        let error = match error.downcast::<genai::Error>() {
            Ok(error) => return self.read(*error),
            Err(error) => error,
        };
        match error.downcast::<reqwest::Error>() {
            Ok(error) if error.is_builder() => ProviderError::Rejected(self.chain(&error.without_url())),
            Ok(error) if error.is_timeout() && !error.is_connect() => ProviderError::TimedOut(self.idle_timeout),
            Ok(error) => ProviderError::Connection(self.chain(&error.without_url())),
            Err(error) => ProviderError::Malformed(self.redact(&error.to_string())),
        }
    }

    /// Joins an error with its causes, because `reqwest` alone says little.
    fn chain(&self, error: &dyn Error) -> String {
        let mut texts = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            texts.push(error.to_string());
            cause = error.source();
        }
        texts.dedup();
        self.redact(&texts.join(": "))
    }
}

fn from_status(status: u16, text: String, retry_after: Option<Duration>) -> ProviderError {
    match status {
        429 => ProviderError::Throttled { message: text, retry_after },
        401 | 403 => ProviderError::Unauthorized(text),
        408 | 500.. => ProviderError::Unavailable(text),
        _ => ProviderError::Rejected(text),
    }
}

fn status_of_code(name: &str) -> Option<u16> {
    match name {
        "invalid_request_error" | "not_found_error" | "request_too_large" | "billing_error" => Some(400),
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "NOT_FOUND" => Some(400),
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => Some(401),
        "permission_error" | "PERMISSION_DENIED" => Some(403),
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => Some(429),
        "overloaded_error" | "UNAVAILABLE" => Some(503),
        _ => None,
    }
}

/// Returns the object that describes an error: `{"error": {…}}`, `[{"error": {…}}]`, or the whole body.
fn details(body: &Value) -> &Value {
    let body = body.get(0).unwrap_or(body);
    body.get("error").filter(|error| error.is_object()).unwrap_or(body)
}

fn message(body: &Value) -> Option<&str> {
    let error = details(body);
    ["message", "error", "detail"].into_iter().find_map(|field| error[field].as_str())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = header("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let text = header(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(Timestamp::now())).unwrap_or_default())
}

/// Returns the requested delay from the body, where Gemini puts it: `"retryDelay": "34s"`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let seconds = details(body)["details"].as_array()?.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    Duration::try_from_secs_f64(seconds.trim_end_matches('s').parse().ok()?).ok()
}
