//! The questions of a session: announced, and answered once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use amplifier_core::{
    ActionPreview, Actor, ApprovalAnswer, ApprovalDecision, ApprovalRequest, DecisionBasis, RuleScope,
};
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::Shared;
use crate::approval::{Approval, Choice};
use crate::limits::fit;
use crate::message::{Reception, ToServer};

/// How many closed questions are kept, and for how long. A late answer to one of these the session records itself; beyond that, the
/// server finds in the record what became of it.
const KEPT: (usize, Duration) = (256, Duration::from_secs(3600));

/// A question that is open.
pub(super) struct Question {
    request: Arc<ApprovalRequest>,
    pub(super) approval: Approval,
    /// Takes the first answer to the kernel.
    answer: Option<oneshot::Sender<ApprovalAnswer>>,
    /// Whether the kernel's future has given it back.
    is_delivered: Arc<AtomicBool>,
}

/// One that was.
pub(super) struct Closed {
    request: Arc<ApprovalRequest>,
    settled: ApprovalDecision,
    at: Instant,
}

/// What to do with an answer.
enum Fate {
    /// The first one: it goes to the kernel.
    First(oneshot::Sender<ApprovalAnswer>, Arc<ApprovalRequest>, Arc<AtomicBool>),
    /// Another one came before.
    Second(Arc<ApprovalRequest>),
    /// The question is closed.
    Over(Arc<ApprovalRequest>, ApprovalDecision),
    NotOffered,
    Unknown,
}

impl Shared {
    /// Announces a question, and says when it is closed.
    pub(super) async fn keep(
        self: Arc<Self>,
        request: Arc<ApprovalRequest>,
        answer: oneshot::Sender<ApprovalAnswer>,
        is_delivered: Arc<AtomicBool>,
    ) {
        let asked_at = Timestamp::now();
        let mut action = (*request.preview).clone();
        action.warnings.splice(0..0, request.warning.clone());
        let approval = fit(self.approval(&request, asked_at, action));
        {
            let mut state = self.state();
            state.say(ToServer::Asked { approval: Box::new(approval.clone()) });
            let question = Question { request: request.clone(), approval, answer: Some(answer), is_delivered };
            state.open.insert(request.id, question);
        }
        let settled = request.closed().await;
        {
            let mut state = self.state();
            state.open.remove(&request.id);
            let session = self.sub_agent(&request);
            state.say(ToServer::Closed { id: request.id, session, outcome: settled.clone() });
            let now = Instant::now();
            state.closed.push_back(Closed { request, settled, at: now });
            let is_old = |closed: &Closed| now.duration_since(closed.at) > KEPT.1;
            while state.closed.len() > KEPT.0 || state.closed.front().is_some_and(is_old) {
                state.closed.pop_front();
            }
        }
        // It may be one that lasts.
        self.tell_rules();
    }

    fn approval(&self, request: &ApprovalRequest, asked_at: Timestamp, action: ActionPreview) -> Approval {
        let options = request.options.iter();
        let sub_agent = self.sub_agent(request);
        let session_name = self.options.name.clone().filter(|_| sub_agent.is_none());
        Approval {
            id: request.id.to_string(),
            session: sub_agent.unwrap_or_else(|| self.session.borrow().clone().unwrap_or_default()),
            // The server knows over which connection it comes.
            within: None,
            session_name,
            workspace: self.workspace.clone(),
            hook: request.hook.to_string(),
            event: request.event.to_string(),
            prompt: request.prompt.clone(),
            reason: request.reason.clone(),
            options: options
                .map(|option| Choice { label: option.label.clone(), effect: option.effect.to_string() })
                .collect(),
            asked_at,
            deadline: asked_at.checked_add(request.timeout).unwrap_or(Timestamp::MAX),
            timeout_s: request.timeout.as_secs_f64(),
            default: request.default.to_string(),
            digest: request.digest.to_string(),
            action,
            cut: false,
            nonce: String::new(),
        }
    }

    /// The session that asks, if it is a sub-agent of this one.
    fn sub_agent(&self, request: &ApprovalRequest) -> Option<String> {
        let asks = request.data.text("session_id")?;
        (self.session.borrow().as_deref() != Some(asks)).then(|| asks.to_owned())
    }

    /// The sub-agent that asked the question of that number, if it was one and that is still known.
    pub(super) fn asked_by(&self, id: u64) -> Option<String> {
        let state = self.state();
        let open = state.open.get(&id).map(|question| &question.request);
        let closed = || state.closed.iter().map(|closed| &closed.request).find(|request| request.id == id);
        self.sub_agent(open.or_else(closed)?)
    }

    /// Takes an answer to the kernel, and says what became of it.
    pub(super) async fn take(
        self: &Arc<Self>,
        id: u64,
        digest: &str,
        option: String,
        by: Actor,
        scope: Option<RuleScope>,
    ) -> (Reception, Option<ApprovalDecision>, Option<String>) {
        let answer = ApprovalAnswer { label: option.clone(), by: Some(by.clone()) };
        let (request, settled) = match self.fate(id, digest, &option, scope) {
            Fate::First(kernel, request, is_delivered) => {
                // If nobody takes it, somebody else was faster, and the question closes.
                let _ = kernel.send(answer.clone());
                let settled = request.closed().await;
                let is_delivered = is_delivered.load(Ordering::SeqCst);
                if is_delivered && settled.basis == DecisionBasis::Answer && settled.by.as_ref() == Some(&by) {
                    let note = match scope {
                        Some(RuleScope::Project) => self.keep_for_project(&request, &option, by).await,
                        _ => None,
                    };
                    return (Reception::Taken, Some(settled), note);
                }
                // What the kernel was given after the time limit, it has recorded itself.
                if !(is_delivered && settled.basis == DecisionBasis::Timeout) {
                    request.too_late(answer);
                }
                (request, settled)
            }
            Fate::Second(request) => {
                let settled = request.closed().await;
                request.too_late(answer);
                (request, settled)
            }
            Fate::Over(request, settled) => {
                request.too_late(answer);
                (request, settled)
            }
            Fate::NotOffered => return (Reception::NotOffered, None, None),
            Fate::Unknown => return (Reception::Closed, None, None),
        };
        tracing::debug!(hook.name = %request.hook, basis = settled.basis.as_str(), "an answer does not count");
        let result = match settled.basis {
            DecisionBasis::Timeout => Reception::Late,
            DecisionBasis::Answer | DecisionBasis::InvalidOption => Reception::Answered,
            _ => Reception::Closed,
        };
        (result, Some(settled), None)
    }

    fn fate(&self, id: u64, digest: &str, option: &str, scope: Option<RuleScope>) -> Fate {
        let mut state = self.state();
        let is_meant = |request: &ApprovalRequest| request.id == id && request.digest.to_string() == digest;
        if let Some(question) = state.open.get_mut(&id).filter(|question| is_meant(&question.request)) {
            let request = question.request.clone();
            if question.approval.refuses(option, scope).is_some() {
                return Fate::NotOffered;
            }
            return match question.answer.take() {
                Some(kernel) => Fate::First(kernel, request, question.is_delivered.clone()),
                None => Fate::Second(request),
            };
        }
        let closed = state.closed.iter().find(|closed| is_meant(&closed.request));
        closed.map_or(Fate::Unknown, |closed| Fate::Over(closed.request.clone(), closed.settled.clone()))
    }
}
