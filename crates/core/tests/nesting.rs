//! Hooks and ports may emit, register and ask while they run; what never stops is stopped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use amplifier_core::{
    ActionKind, ApprovalAnswer, ApprovalDecisionEntry, ApprovalError, ApprovalSystem, AuditEntry, Coordinator, Display,
    DisplayMessage, EventData, HookRegistry, HookReportEntry, HookResult, Map, MemoryAudit, OnError, OpenRequest,
    Outcome, PortError, TOOL_PRE, ToolPre, Verdict,
};
use futures::FutureExt;

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

fn reports(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.reports().map(|report| (report.hook, report.answer_or_failure().as_str())).collect()
}

// ---- hooks ---------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_hook_that_emits_what_it_listens_to_is_stopped() {
    let hooks = HookRegistry::new();
    let (registry, calls) = (hooks.clone(), Arc::new(AtomicUsize::new(0)));
    let count = calls.clone();
    hooks.hook(TOOL_PRE).named("echo").run(move |event| {
        let (registry, count) = (registry.clone(), count.clone());
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            let outcome = registry.emit(TOOL_PRE, event.data).await;
            assert_eq!(outcome.reports().len(), 1);
        }
    });
    for _ in 0..2 {
        calls.store(0, Ordering::Relaxed);
        assert_eq!(reports(&hooks.emit(TOOL_PRE, tool_pre()).await), [("echo", "continue")]);
        assert!((2..=1000).contains(&calls.load(Ordering::Relaxed)), "{calls:?}");
    }
}

#[test]
fn a_guard_that_emits_what_it_guards_denies_what_is_too_deep() {
    let hooks = HookRegistry::new();
    let registry = hooks.clone();
    hooks.hook(TOOL_PRE).named("echo").on_error(OnError::Deny).run(move |event| {
        let inner = registry.emit(TOOL_PRE, event.data).now_or_never().unwrap();
        inner.denial().map(|denial| HookResult::deny(denial.reason()))
    });
    let outcome = hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    let reason = "the hook failed: called from inside 16 other hooks";
    assert_eq!(outcome.denial().unwrap().reason(), reason);
}

#[tokio::test]
async fn hooks_that_emit_each_others_event_are_stopped() {
    let hooks = HookRegistry::new();
    let session = Coordinator::builder(hooks.clone()).audit(MemoryAudit::new()).build();
    for (hears, says) in [("ping:sent", "pong:sent"), ("pong:sent", "ping:sent")] {
        let session = session.clone();
        let answer = move |_| {
            let session = session.clone();
            async move { drop(session.emit(says, EventData::new()).await) }
        };
        hooks.hook(hears).named(hears).run(answer).unwrap();
    }
    let (verdict, outcome) = session.emit_with_outcome("ping:sent", EventData::new()).await.unwrap();
    assert!(verdict.is_proceed());
    assert_eq!(reports(&outcome), [("ping:sent", "continue")]);
}

#[test]
fn a_hook_that_registers_at_every_call_does_not_hold_up_an_emission() {
    let hooks = HookRegistry::new();
    let registry = hooks.clone();
    hooks.hook(TOOL_PRE).named("breeder").run(move |_| {
        registry.hook(TOOL_PRE).named("offspring").run(|_| ());
    });
    for emission in 1..=100 {
        assert_eq!(hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().reports().len(), emission);
    }
}

// ---- ports ---------------------------------------------------------------------------------------------------------

/// A port that uses the session it belongs to.
#[derive(Clone, Default)]
struct Inside {
    session: Arc<OnceLock<Coordinator>>,
    calls: Arc<AtomicUsize>,
    /// `true` if it lets others run first.
    yields: bool,
}

impl Inside {
    async fn emit(&self) -> Verdict {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.yields {
            tokio::task::yield_now().await;
        }
        self.session.get().unwrap().emit(TOOL_PRE, tool_pre()).await
    }
}

impl Display for Inside {
    async fn show_message(&self, _: &DisplayMessage) -> Result<(), PortError> {
        assert!(self.emit().await.is_proceed());
        Ok(())
    }
}

impl ApprovalSystem for Inside {
    async fn request_approval(&self, _: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let inner = self.emit().await;
        Ok(if inner.is_proceed() { "Allow" } else { "Deny" }.into())
    }
}

/// A session with one hook before every tool, that answers so. Its display and its approval system emit what it guards.
async fn check_inside(answer: HookResult, on_error: OnError, yields: bool) -> (Verdict, MemoryAudit) {
    let (hooks, audit, inside) = (HookRegistry::new(), MemoryAudit::new(), Inside { yields, ..Inside::default() });
    hooks.hook(TOOL_PRE).named("hook").on_error(on_error).run(move |_| answer.clone());
    let builder = Coordinator::builder(hooks).display(inside.clone()).approvals(inside.clone());
    let session = builder.audit(audit.clone()).build();
    inside.session.set(session.clone()).unwrap();
    let verdict = session.emit(TOOL_PRE, tool_pre()).await;
    let calls = inside.calls.load(Ordering::Relaxed);
    assert!((2..=1000).contains(&calls), "{calls}");
    let stopped = |entry: &AuditEntry| {
        matches!(entry, AuditEntry::HookReport(HookReportEntry { answer: ActionKind::Failed, .. }))
    };
    assert_eq!(audit.records().iter().filter(|record| stopped(&record.entry)).count(), 1, "that is on the record");
    (verdict, audit)
}

#[tokio::test]
async fn a_display_that_emits_what_shows_a_message_is_stopped() {
    for yields in [false, true] {
        let (verdict, _) = check_inside(HookResult::proceed().info("hi"), OnError::Continue, yields).await;
        assert!(verdict.is_proceed());
    }
}

#[tokio::test]
async fn an_approval_system_that_emits_what_has_to_be_approved_is_stopped() {
    for yields in [false, true] {
        let (verdict, audit) = check_inside(HookResult::ask("Go?"), OnError::Deny, yields).await;
        assert_eq!(verdict, Verdict::Denied { by: "hook".into(), reason: "User denied: Go?".to_owned() });
        let granted = |entry: &AuditEntry| matches!(entry, AuditEntry::ApprovalDecision(ApprovalDecisionEntry { decision, .. }) if decision.granted);
        assert!(!audit.records().iter().any(|record| granted(&record.entry) || record.entry.kind() == "intent"));
        // Where a hook that fails lets go on, that holds for the innermost operation, too.
        let _ = check_inside(HookResult::ask("Go?"), OnError::Continue, yields).await;
    }
}
