//! An approver with scripted answers.

use std::sync::Arc;
use std::time::Duration;

use crate::approval::{ApprovalAnswer, ApprovalError, ChosenRule, OpenRequest};
use crate::ports::approval::ApprovalSystem;
use crate::ports::clock::{Clock, SystemClock};
use crate::sync::{Mutex, lock};

/// The scripted reaction to one approval request.
#[derive(Clone, Debug)]
pub enum ScriptedAnswer {
    /// Answers at once.
    Answer(String),
    /// Answers after a delay.
    After(Duration, String),
    /// Answers at once, and creates an offered rule.
    Rule(String, ChosenRule),
    /// Never answers.
    Silence,
    /// Fails.
    Error(ApprovalError),
}

impl From<&str> for ScriptedAnswer {
    fn from(answer: &str) -> Self {
        Self::Answer(answer.to_owned())
    }
}

/// An approval system that follows a script, one entry for each request; the last one repeats. It stores the requests.
///
/// ```
/// use amplifier_core::{testing::ScriptedApprovals, Coordinator, HookRegistry, HookResult, Map, ToolPre, TOOL_PRE};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let approver = ScriptedApprovals::new(["Allow", "Deny"]);
/// let hooks = HookRegistry::new();
/// hooks.on(TOOL_PRE, |_| HookResult::ask("Really?"));
/// let session = Coordinator::builder(hooks).approvals(approver.clone()).build();
///
/// assert!(session.emit(TOOL_PRE, ToolPre::new("Bash", Map::new())).await.is_proceed());
/// assert!(!session.emit(TOOL_PRE, ToolPre::new("Bash", Map::new())).await.is_proceed());
/// assert_eq!(approver.requests().len(), 2);
/// # }
/// ```
#[derive(Clone)]
pub struct ScriptedApprovals {
    script: Arc<[ScriptedAnswer]>,
    requests: Arc<Mutex<Vec<Arc<OpenRequest>>>>,
    clock: Arc<dyn Clock>,
}

impl ScriptedApprovals {
    /// Creates a system with this script. An empty one never answers.
    pub fn new(script: impl IntoIterator<Item = impl Into<ScriptedAnswer>>) -> Self {
        Self {
            script: script.into_iter().map(Into::into).collect(),
            requests: Arc::default(),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// Uses another clock for delays.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<Arc<OpenRequest>> {
        lock(&self.requests).clone()
    }
}

impl ApprovalSystem for ScriptedApprovals {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let asked = {
            let mut requests = lock(&self.requests);
            requests.push(request);
            requests.len()
        };
        let entry = self.script.get(asked - 1).or(self.script.last());
        match entry.cloned().unwrap_or(ScriptedAnswer::Silence) {
            ScriptedAnswer::Answer(answer) => Ok(answer.into()),
            ScriptedAnswer::After(delay, answer) => {
                self.clock.sleep(delay).await;
                Ok(answer.into())
            }
            ScriptedAnswer::Rule(answer, rule) => Ok(ApprovalAnswer::from(answer).with_rule(rule)),
            ScriptedAnswer::Silence => std::future::pending().await,
            ScriptedAnswer::Error(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for ScriptedApprovals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedApprovals").field("script", &self.script).finish_non_exhaustive()
    }
}
