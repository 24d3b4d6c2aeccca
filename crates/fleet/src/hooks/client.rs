//! Requests of hooks to services.

use std::time::Duration;

use amplifier_core::HookError;
use amplifier_core::text::truncate_chars;
use amplifier_modules::transport::RemoteHooks;
use async_nats::connection::State;
use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};

use super::ERROR;
use crate::{Connection, FleetError, FleetName, subjects};

/// The longest error of a service, in characters.
const MAX_ERROR_CHARS: usize = 1000;

/// The services of a fleet, for the hooks of bundles.
#[derive(Clone)]
pub struct FleetHooks {
    connection: Connection,
}

impl FleetHooks {
    /// Creates a client of all services.
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Sends a request to one instance, and in half of the time limit to all. The first answer counts.
    async fn request(
        &self,
        service: &FleetName,
        event: &str,
        request: Bytes,
        limit: Duration,
    ) -> Result<Message, FleetError> {
        let send = |subject: String, limit: Duration| {
            let request = request.clone();
            async move { self.connection.request_within(limit, &subject, HeaderMap::new(), request).await }
        };
        let mut first = Box::pin(send(subjects::hook(service, event), limit));
        match tokio::time::timeout(limit / 2, &mut first).await {
            Ok(answered) => answered,
            // A service that hangs keeps its place in the group, so another request to the group could reach it again.
            Err(_) => {
                let second = Box::pin(send(subjects::hook_all(service, event), limit / 2));
                match select(first, second).await {
                    Either::Left((answered, _)) | Either::Right((answered, _)) => answered,
                }
            }
        }
    }
}

impl RemoteHooks for FleetHooks {
    fn call<'a>(
        &'a self,
        service: &'a str,
        event: &'a str,
        request: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, HookError>> {
        async move {
            let name: FleetName = service.parse().map_err(|error| HookError::failed(format!("{error}")))?;
            // The client keeps requests for a later connection, and the operation would wait for its time limit.
            if self.connection.client().connection_state() != State::Connected {
                return Err(HookError::failed(format!(
                    "the service `{service}` cannot be reached, because there is no connection to the centre"
                )));
            }
            match self.request(&name, event, request.into(), limit).await {
                Ok(reply) => read_reply(reply),
                Err(FleetError::NoResponders { .. }) => Err(HookError::failed(format!(
                    "the service `{service}` is not running, or this machine may not use it"
                ))),
                Err(FleetError::TimedOut { .. }) => Err(HookError::TimedOut(limit)),
                Err(error) => Err(HookError::failed(error.to_string())),
            }
        }
        .boxed()
    }
}

fn read_reply(reply: Message) -> Result<Vec<u8>, HookError> {
    let error = reply.headers.as_ref().and_then(|headers| headers.get(ERROR));
    match error {
        Some(error) => {
            let error: String = error.as_str().chars().filter(|c| !c.is_control()).collect();
            Err(HookError::failed(truncate_chars(&error, MAX_ERROR_CHARS)))
        }
        None => Ok(reply.payload.into()),
    }
}
