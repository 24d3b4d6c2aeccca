//! The sessions: each emits at a steady rate, and has questions open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use amplifier_audit::Log;
use amplifier_core::{
    Approval, ApprovalAnswer, ApprovalError, ApprovalSystem, Coordinator, DecisionBasis, HookRegistry, HookResult,
    OpenRequest, TOOL_PRE, data,
};
use amplifier_link::{LinkClient, LinkClientOptions, LinkHandle, SOCKET};
use futures::future::join_all;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::figures::Spread;
use crate::{Load, Result};

/// All sessions.
pub(crate) struct Crowd {
    emitting: Vec<JoinHandle<Vec<Duration>>>,
    asking: Vec<JoinHandle<bool>>,
    timed_out: mpsc::UnboundedReceiver<i64>,
    is_over: Arc<AtomicBool>,
    links: Vec<LinkHandle>,
}

/// What came of them.
pub(crate) struct Tally {
    /// Events, without those that asked.
    pub(crate) emitted: u64,
    /// Events of each session.
    pub(crate) each: Vec<u64>,
    pub(crate) took: Spread,
    /// How far from their deadlines questions timed out.
    pub(crate) off: Spread,
    /// The most that one did before.
    pub(crate) earliest: Duration,
    pub(crate) answered: usize,
}

impl Crowd {
    pub(crate) fn start(load: Load, log: &Log, folder: &Path, begun: Instant) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (off, timed_out) = mpsc::unbounded_channel();
        let mut crowd =
            Self { emitting: Vec::new(), asking: Vec::new(), timed_out, is_over: is_over.clone(), links: Vec::new() };
        let pause = Duration::from_secs_f64(load.sessions as f64 / load.rate as f64);
        for number in 0..load.sessions {
            let id = name(number);
            let (participant, _) = LinkClient::new(LinkClientOptions {
                workspace: folder.to_owned(),
                run: log.writer().to_owned(),
                name: None,
                takes_prompts: false,
                record: None,
                reload: None,
            });
            let hooks = HookRegistry::new();
            hooks.hook(TOOL_PRE).named("guard").run(|event| match event.data.get("ask").and_then(|ask| ask.as_u64()) {
                None => HookResult::proceed(),
                Some(limit) => {
                    let prompt = format!("Run `{}`?", event.text_at("/tool_input/command").unwrap_or_default());
                    HookResult::ask(Approval::new(prompt).timeout(Duration::from_millis(limit)))
                }
            });
            let timed = Timed { participant: participant.clone(), off: off.clone() };
            let session = Coordinator::builder(hooks).session_id(&id).audit(log.clone()).approvals(timed).build();
            crowd.links.push(participant.connect(folder.join("server").join(SOCKET)));
            participant.begin(&id, session.clone());
            for question in (number..load.questions).step_by(load.sessions) {
                let session = session.clone();
                let [first, last] = load.limits.map(|limit| limit.as_millis() as usize);
                let limit = first + question * (last - first) / load.questions;
                let data = data! {
                    "tool_name": "Bash", "tool_input": { "command": format!("cargo test {question}") }, "ask": limit,
                };
                crowd.asking.push(tokio::spawn(async move { session.emit(TOOL_PRE, data).await.is_proceed() }));
            }
            let offset = pause.mul_f64(number as f64 / load.sessions as f64);
            crowd.emitting.push(tokio::spawn(emit(session, begun, offset, pause, is_over.clone())));
        }
        Ok(crowd)
    }

    /// Waits until no question is open, and ends the sessions.
    pub(crate) async fn finish(mut self) -> Result<Tally> {
        let mut answered = 0;
        for asked in join_all(self.asking).await {
            answered += usize::from(asked?);
        }
        self.is_over.store(true, Ordering::Relaxed);
        let (mut each, mut took) = (Vec::new(), Vec::new());
        for emitted in join_all(self.emitting).await {
            let emitted = emitted?;
            each.push(emitted.len() as u64);
            took.extend(emitted);
        }
        drop(self.links);
        let (mut off, mut earliest) = (Vec::new(), Duration::ZERO);
        while let Ok(micros) = self.timed_out.try_recv() {
            let time = Duration::from_micros(micros.unsigned_abs());
            if micros < 0 {
                earliest = earliest.max(time);
            }
            off.push(time);
        }
        let (took, off) = (Spread::of(took), Spread::of(off));
        Ok(Tally { emitted: each.iter().sum(), each, took, off, earliest, answered })
    }
}

/// The id of a session.
pub(crate) fn name(number: usize) -> String {
    format!("session-{number}")
}

/// Emits until it is over; says how long each took.
async fn emit(
    session: Coordinator,
    begun: Instant,
    offset: Duration,
    pause: Duration,
    is_over: Arc<AtomicBool>,
) -> Vec<Duration> {
    let mut ticks = interval_at(tokio::time::Instant::now() + offset, pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut took = Vec::new();
    loop {
        ticks.tick().await;
        if is_over.load(Ordering::Relaxed) {
            return took;
        }
        let now = Instant::now();
        let data = data! {
            "tool_name": "Read", "tool_input": { "file_path": "src/main.rs" },
            "number": took.len(), "sent": now.duration_since(begun).as_micros() as u64,
        };
        let _ = session.emit(TOOL_PRE, data).await;
        took.push(now.elapsed());
    }
}

/// Asks through the participant, and sees when questions time out.
struct Timed {
    participant: LinkClient,
    /// How far from the deadline, in microseconds.
    off: mpsc::UnboundedSender<i64>,
}

impl ApprovalSystem for Timed {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> std::result::Result<ApprovalAnswer, ApprovalError> {
        let deadline = Instant::now() + request.timeout;
        let (off, question) = (self.off.clone(), request.clone());
        tokio::spawn(async move {
            if question.closed().await.basis == DecisionBasis::Timeout {
                let (late, early) = (deadline.elapsed(), deadline.saturating_duration_since(Instant::now()));
                let _ = off.send(late.as_micros() as i64 - early.as_micros() as i64);
            }
        });
        self.participant.request_approval(request).await
    }
}
