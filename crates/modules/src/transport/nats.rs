//! Hooks that send every event to a service of the fleet.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::protocol::{self, HookRequest};
use super::{MAX_OUTPUT, TIMEOUT, TransportError, runtime};

/// The longest name of a service, in bytes.
const MAX_SERVICE: usize = 128;

/// Sends requests of hooks to services of the fleet.
pub trait RemoteHooks: Send + Sync + 'static {
    /// Sends a request about an event to a service, and returns the first answer. `limit` is the time for all attempts.
    fn call<'a>(
        &'a self,
        service: &'a str,
        event: &'a str,
        request: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, HookError>>;
}

/// Options of a [`NatsHook`].
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// Name of the service.
    pub service: String,
    /// Workspace of the agent, for requests; none by default.
    pub workspace: Option<PathBuf>,
    /// Time limit of one call with all attempts; 30 seconds by default.
    pub timeout: Duration,
    /// Maximum size of an answer in bytes; 1 MiB by default.
    pub most_output: usize,
}

impl NatsOptions {
    /// Creates options with default limits.
    pub fn new(name: impl Into<String>, service: impl Into<String>) -> Self {
        let (timeout, most_output) = (TIMEOUT, MAX_OUTPUT);
        Self { name: name.into(), service: service.into(), workspace: None, timeout, most_output }
    }
}

/// A hook that sends every event to a service of the fleet. Any instance of the service can answer.
///
/// An empty answer means `continue`. A service that is not running is a failure at once, to which the hook's `on_error` applies.
pub struct NatsHook {
    options: NatsOptions,
    services: Arc<dyn RemoteHooks>,
}

impl fmt::Debug for NatsHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NatsHook").field("options", &self.options).finish_non_exhaustive()
    }
}

impl NatsHook {
    /// Creates a hook without sending anything.
    ///
    /// # Errors
    /// If the name of the service is invalid.
    pub fn new(options: NatsOptions, services: Arc<dyn RemoteHooks>) -> Result<Self, TransportError> {
        let NatsOptions { name, service, .. } = &options;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if !(1..=MAX_SERVICE).contains(&service.len()) || !service.chars().all(is_plain) {
            return Err(TransportError::Service { hook: name.clone(), service: service.clone() });
        }
        Ok(Self { options, services })
    }
}

impl Hook for NatsHook {
    /// # Cancel safety
    /// Dropping the future abandons the request, which a service may have read already.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        runtime()?;
        let NatsOptions { name, service, workspace, timeout: limit, most_output } = &self.options;
        let request = HookRequest::new(name, event, data, workspace.as_deref()).to_json()?;
        let call = self.services.call(service, event, request, *limit);
        let answer = timeout(*limit, call).await.unwrap_or(Err(HookError::TimedOut(*limit)))?;
        if answer.len() > *most_output {
            return Err(HookError::Failed(format!("the service answered with more than {most_output} bytes")));
        }
        protocol::read(&answer)
    }
}
