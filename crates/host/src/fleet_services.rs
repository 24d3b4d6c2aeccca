//! The services of the centre for a session: its records go there, consoles answer its requests, and services answer its hooks.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, HookError, Level, OpenRequest};
use amplifier_fleet::records::{Shipper, ShipperOptions};
use amplifier_fleet::{Connection, ConsoleKeys, FleetApprovals, FleetApprovalsOptions, FleetHooks};
use amplifier_modules::transport::RemoteHooks;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{OnceCell, watch};

use crate::notices::Notices;

/// The longest wait for receipts and decisions at the end of a session.
const END: Duration = Duration::from_secs(10);

/// The connection to the centre, once there is one.
pub(crate) type ConnectionSlot = watch::Receiver<Option<Connection>>;

/// The services of the centre. Dropping them stops the shipper.
pub(crate) struct FleetServices {
    shipper: Shipper,
    asker: FleetAsker,
    hooks: Arc<dyn RemoteHooks>,
}

impl FleetServices {
    /// Starts the services, which wait for the connection.
    pub(crate) fn start(connection: ConnectionSlot, records: ShipperOptions, approvals: FleetApprovalsOptions) -> Self {
        let asker = FleetAsker { connection: connection.clone(), options: approvals, started: Arc::default() };
        let hooks = Arc::new(FleetHooksSlot(connection.clone()));
        Self { shipper: Shipper::start(connected(connection), records), asker, hooks }
    }

    /// Returns the approval system of the consoles.
    pub(crate) fn asker(&self) -> FleetAsker {
        self.asker.clone()
    }

    /// Returns the services that answer hooks.
    pub(crate) fn hooks(&self) -> Arc<dyn RemoteHooks> {
        self.hooks.clone()
    }

    /// Waits for the receipts of the closed log, for a limited time. Without the centre, the records stay here, and are sent later.
    pub(crate) async fn close(self, notices: &Notices) {
        if self.asker.connection.borrow().is_none() {
            return;
        }
        if let Some(approvals) = self.asker.started.get() {
            approvals.close(END).await;
        }
        if let Err(error) = self.shipper.close(END).await {
            notices.message(Level::Warning, "fleet", error.to_string());
        }
    }
}

/// Returns the connection when there is one.
async fn connected(mut slot: ConnectionSlot) -> Connection {
    match slot.wait_for(Option::is_some).await.map(|connection| connection.clone()) {
        Ok(Some(connection)) => connection,
        // The work for the fleet has ended.
        _ => std::future::pending().await,
    }
}

/// The approval system of the consoles, also before the centre is connected: requests wait for it within their time limit.
#[derive(Clone)]
pub(crate) struct FleetAsker {
    connection: ConnectionSlot,
    options: FleetApprovalsOptions,
    started: Arc<OnceCell<FleetApprovals>>,
}

impl ApprovalSystem for FleetAsker {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let start =
            || async { FleetApprovals::start(connected(self.connection.clone()).await, self.options.clone()).await };
        let approvals = self.started.get_or_try_init(start).await;
        approvals.map_err(|error| ApprovalError::Failed(error.to_string()))?.request_approval(request).await
    }
}

/// The services that answer hooks. Without a connection, a hook fails at once.
struct FleetHooksSlot(ConnectionSlot);

/// Returns services that are never connected.
pub(crate) fn unconnected_hooks() -> Option<Arc<dyn RemoteHooks>> {
    Some(Arc::new(FleetHooksSlot(watch::channel(None).1)))
}

impl RemoteHooks for FleetHooksSlot {
    fn call<'a>(
        &'a self,
        service: &'a str,
        event: &'a str,
        request: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, HookError>> {
        let connection = self.0.borrow().clone();
        async move {
            match connection {
                Some(connection) => FleetHooks::new(connection).call(service, event, request, limit).await,
                None => Err(HookError::failed(format!(
                    "the service `{service}` cannot be reached, because there is no connection to the centre"
                ))),
            }
        }
        .boxed()
    }
}

/// Returns the keys of the consoles in a policy.
pub(crate) fn console_keys(pointer: Option<&amplifier_fleet::policies::PolicyPointer>) -> ConsoleKeys {
    pointer.into_iter().flat_map(|pointer| pointer.consoles.clone()).collect()
}
