//! An approval request on the screen, until a key or something else ends it.

use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use amplifier_core::{ApprovalAnswer, ApprovalDecision, ApprovalError, ApprovalRequest};
use tokio::sync::oneshot;

use super::prompt_task::PromptTask;
use super::screen::Screen;

/// The terminal of a prompt.
#[derive(Clone, Debug)]
pub(crate) enum PromptTerminal {
    /// The terminal of the operation: Ctrl-C denies.
    Own,
    /// One that shows a list of requests: Ctrl-C leaves them open, and Esc shows the next one.
    List {
        /// The number of other open requests.
        others: Arc<AtomicUsize>,
    },
}

impl PromptTerminal {
    /// Returns the number of other open requests.
    pub(super) fn others(&self) -> usize {
        match self {
            Self::Own => 0,
            Self::List { others } => others.load(Ordering::Relaxed),
        }
    }
}

/// The key that ended a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PromptEnd {
    /// The key of an option.
    Answer(ApprovalAnswer),
    /// A denial, with a reason for the model.
    Denial(String),
    /// Esc in a list of requests.
    Next,
    /// Ctrl-C.
    Interrupt,
}

/// The reason for removing a prompt without an answer.
pub(crate) enum EndReason {
    OutOfTime,
    /// Answered in another channel.
    Elsewhere(ApprovalAnswer),
    /// Decided without this process.
    Decided(ApprovalDecision),
    Withdrawn,
}

/// A prompt on the screen. Dropping the guard removes the prompt and waits until the keyboard is released.
pub(super) struct PromptGuard {
    pub(super) ended: Arc<OnceLock<EndReason>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Drop for PromptGuard {
    fn drop(&mut self) {
        // The first reason stays.
        let _ = self.ended.set(EndReason::Withdrawn);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread already shows as a missing answer.
            let _ = thread.join();
        }
    }
}

/// An approval request on the screen. Dropping it removes the prompt and waits until the keyboard is released.
pub(crate) struct OpenPrompt {
    guard: PromptGuard,
    end: oneshot::Receiver<Result<PromptEnd, ApprovalError>>,
}

impl OpenPrompt {
    /// Shows a request. One prompt is on the screen at a time: tasks that share the screen hold its lock for prompts.
    ///
    /// # Errors
    /// If the prompt has no thread.
    pub(crate) fn show<R>(
        screen: &Screen,
        request: Arc<R>,
        deadline: Option<Instant>,
        terminal: PromptTerminal,
    ) -> io::Result<Self>
    where
        R: Deref<Target = ApprovalRequest> + Send + Sync + 'static,
    {
        let (send, end) = oneshot::channel();
        let ended = Arc::new(OnceLock::new());
        let (screen, is_ended) = (screen.clone(), ended.clone());
        // A dedicated thread starts at once, so joining it never waits for it to start.
        let thread = std::thread::Builder::new().name("question".into()).spawn(move || {
            let task = PromptTask { screen, request: &request, deadline, terminal, ended: is_ended };
            // The receiver is gone if the request was withdrawn.
            let _ = send.send(task.run());
        })?;
        Ok(Self { guard: PromptGuard { ended, thread: Some(thread) }, end })
    }

    /// Waits for the key that ends the prompt.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub(crate) async fn end(&mut self) -> Result<PromptEnd, ApprovalError> {
        (&mut self.end).await.unwrap_or(Err(ApprovalError::Closed))
    }

    /// Removes the prompt for another reason, which it shows.
    pub(crate) fn close(self, reason: EndReason) {
        let _ = self.guard.ended.set(reason);
    }
}
