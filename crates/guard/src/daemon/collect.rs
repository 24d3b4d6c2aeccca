//! Context and messages of hooks, collected for the call that caused them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{ContextManager, Display, DisplayMessage, InjectedMessage, PortError};

tokio::task_local! {
    /// The collection of the current call. Calls of one session run at the same time, so the session cannot hold it.
    static CURRENT: Collection;
}

/// The texts that hooks added during one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Collection(Arc<Mutex<(Vec<String>, Vec<String>)>>);

impl Collection {
    /// Runs a call, and collects during it.
    pub(super) async fn during<T>(&self, call: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), call).await
    }

    /// Returns the context and the messages so far.
    pub(super) fn take(&self) -> (Vec<String>, Vec<String>) {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, add: impl FnOnce(&mut (Vec<String>, Vec<String>))) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The conversation and the screen of a guarded client: both reach it with the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientPorts;

impl ContextManager for ClientPorts {
    async fn add_message(&self, message: InjectedMessage) -> Result<(), PortError> {
        Ok(CURRENT.try_with(|current| current.add(|(context, _)| context.push(message.content)))?)
    }
}

impl Display for ClientPorts {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        Ok(CURRENT.try_with(|current| current.add(|(_, messages)| messages.push(message.text.clone())))?)
    }
}
