//! A service that answers requests of hooks.

use std::sync::Arc;

use amplifier_core::{HookError, HookResult, Map};
use async_nats::{HeaderMap, Message, Subscriber};
use futures::StreamExt;
use futures::stream::select;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::{ERROR, ERROR_CODE, FAILED};
use crate::{Connection, FleetError, FleetName, subjects};

/// The number of requests that one instance answers at a time.
const MAX_CALLS: usize = 1024;

/// A request of a hook, as its machine sends it.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct HookCall {
    /// The version of the protocol: 1.
    pub protocol: u32,
    /// The name under which the hook is registered.
    pub hook: String,
    /// The event.
    pub event: String,
    /// The workspace, if the agent has one.
    pub workspace: Option<String>,
    /// The data of the event.
    pub data: Map,
}

/// An instance of a service. It answers requests until it is dropped.
///
/// An instance can get a request that another one answers, too: when that one is slow, all instances get it.
#[derive(Debug)]
pub struct HookService(JoinHandle<()>);

impl HookService {
    /// Starts to answer the requests of a service with a function. Its errors are failures of the hook.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn start<F, A>(connection: &Connection, service: &FleetName, answer: F) -> Result<Self, FleetError>
    where
        F: Fn(HookCall) -> A + Send + Sync + 'static,
        A: Future<Output = Result<HookResult, HookError>> + Send + 'static,
    {
        let client = connection.client().clone();
        let (one, all) = (subjects::hook(service, ">"), subjects::hook_all(service, ">"));
        let unusable = |subject: &str, error: async_nats::SubscribeError| FleetError::Invalid {
            subject: subject.to_owned(),
            cause: error.to_string(),
        };
        let shared = client.queue_subscribe(one.clone(), subjects::HOOK_QUEUE.to_owned()).await;
        let shared = shared.map_err(|error| unusable(&one, error))?;
        let direct = client.subscribe(all.clone()).await.map_err(|error| unusable(&all, error))?;
        // The service gets the next request once this returns.
        client.flush().await.map_err(|error| FleetError::Invalid { subject: one, cause: error.to_string() })?;
        Ok(Self(tokio::spawn(serve(client, shared, direct, Arc::new(answer)))))
    }
}

impl Drop for HookService {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve<F, A>(client: async_nats::Client, shared: Subscriber, direct: Subscriber, answer: Arc<F>)
where
    F: Fn(HookCall) -> A + Send + Sync + 'static,
    A: Future<Output = Result<HookResult, HookError>> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(MAX_CALLS));
    let mut requests = select(shared, direct);
    let mut calls = JoinSet::new();
    while let Some(request) = requests.next().await {
        while calls.try_join_next().is_some() {}
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let (client, answer) = (client.clone(), answer.clone());
        calls.spawn(async move {
            respond(&client, request, &*answer).await;
            drop(slot);
        });
    }
}

async fn respond<F, A>(client: &async_nats::Client, request: Message, answer: &F)
where
    F: Fn(HookCall) -> A,
    A: Future<Output = Result<HookResult, HookError>>,
{
    let Some(inbox) = request.reply else { return };
    let result = match serde_json::from_slice(&request.payload) {
        Ok(call) => answer(call).await,
        Err(error) => Err(HookError::failed(format!("the request is invalid: {error}"))),
    };
    let result = result.and_then(|result| Ok(serde_json::to_vec(&result)?));
    let sent = match result {
        Ok(payload) => client.publish(inbox, payload.into()).await,
        Err(error) => {
            let mut headers = HeaderMap::new();
            headers.insert(ERROR_CODE, FAILED);
            // A line break would end the header.
            headers.insert(ERROR, error.to_string().replace(['\r', '\n'], " ").as_str());
            client.publish_with_headers(inbox, headers, bytes::Bytes::new()).await
        }
    };
    if let Err(error) = sent {
        tracing::warn!(%error, "the answer to a hook cannot be sent");
    }
}
