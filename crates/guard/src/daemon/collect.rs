//! Context, messages and questions of hooks, collected for the call that caused them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{
    ApprovalAnswer, ApprovalError, ApprovalSystem, ContextManager, Display, DisplayMessage, InjectedMessage,
    OpenRequest, PortError,
};
use serde_json::Value;

tokio::task_local! {
    /// The collection of the current call. Calls of one session run at the same time, so the session cannot hold it.
    static CURRENT: Collection;
}

/// The texts that hooks added during one call, and the answers that approvers gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Collection(Arc<Mutex<CollectedTexts>>, Arc<Mutex<Vec<GivenAnswer>>>);

/// The texts of a [`Collection`].
#[derive(Debug, Default)]
pub(super) struct CollectedTexts {
    pub(super) context: Vec<String>,
    pub(super) messages: Vec<String>,
    /// Questions for the client's own dialog.
    pub(super) questions: Vec<String>,
}

/// An answer of an approver, with the hook that asked and the input that it asked about.
#[derive(Clone, Debug)]
struct GivenAnswer {
    hook: String,
    input: Option<Value>,
    answer: ApprovalAnswer,
}

impl Collection {
    /// Runs a call, and collects during it.
    pub(super) async fn during<T>(&self, call: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), call).await
    }

    /// Returns the texts so far.
    pub(super) fn take(&self) -> CollectedTexts {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, add: impl FnOnce(&mut CollectedTexts)) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Adds a question to the current call; returns `false` outside of a call.
pub(super) fn add_question(question: String) -> bool {
    CURRENT.try_with(|current| current.add(|texts| texts.questions.push(question))).is_ok()
}

/// The conversation and the screen of a guarded client: both reach it with the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientPorts;

impl ContextManager for ClientPorts {
    async fn add_message(&self, message: InjectedMessage) -> Result<(), PortError> {
        Ok(CURRENT.try_with(|current| current.add(|texts| texts.context.push(message.content)))?)
    }
}

impl Display for ClientPorts {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        Ok(CURRENT.try_with(|current| current.add(|texts| texts.messages.push(message.text.clone())))?)
    }
}

/// Asks once about a call: the same hook asks again for each possible name of a tool, with the same input.
pub(super) struct OneAnswerPerCall<A>(pub(super) A);

impl<A: ApprovalSystem> ApprovalSystem for OneAnswerPerCall<A> {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let given = CURRENT.try_with(|current| current.1.clone()).unwrap_or_default();
        let (hook, input) = (request.hook.clone(), request.data.get("tool_input").cloned());
        let is_same = |one: &&GivenAnswer| one.hook == hook && one.input == input && input.is_some();
        let earlier = {
            let given = given.lock().unwrap_or_else(PoisonError::into_inner);
            given.iter().find(is_same).map(|one| one.answer.clone())
        };
        if let Some(answer) = earlier {
            // A rule is made only once, for the name that the approver saw.
            return Ok(ApprovalAnswer { rule: None, ..answer });
        }
        let answer = self.0.request_approval(request).await?;
        let one = GivenAnswer { hook, input, answer: answer.clone() };
        given.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        Ok(answer)
    }
}
