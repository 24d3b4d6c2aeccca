//! Ports that fail, panic or hang never take the agent down.

use std::future::{Future, pending};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::testing::{CollectingDisplay, ScriptedApprovals};
use amplifier_core::{
    ApprovalAnswer, ApprovalError, ApprovalRuleSource, ApprovalRules, ApprovalSystem, AuditEntry, AuditLog,
    AuditRecord, ContextManager, Coordinator, CoordinatorBuilder, Display, DisplayMessage, EventData, FailureEntry,
    HookRegistry, HookResult, InjectedMessage, Level, Map, MemoryAudit, OpenRequest, PortError, Receipt, SESSION_END,
    SessionConfig, TOOL_PRE, ToolPre, Verdict,
};
use futures::FutureExt;

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

/// A session with one hook before every tool, that answers so.
fn answering(answer: impl Into<HookResult>) -> CoordinatorBuilder {
    let (hooks, answer) = (HookRegistry::new(), answer.into());
    hooks.hook(TOOL_PRE).named("hook").run(move |_| answer.clone());
    Coordinator::builder(hooks)
}

/// A part of the system that fails in this way.
#[derive(Clone, Copy, Debug)]
enum Broken {
    Failing,
    Panicking,
    /// Panics before there is a future.
    PanickingEarly,
    Hanging,
    /// Hangs, and panics when it is given up.
    HangingThenPanicking,
}

impl Broken {
    fn act<T: Send>(self) -> impl Future<Output = Result<T, PortError>> + Send + use<T> {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("boom");
            }
        }
        if let Self::PanickingEarly = self {
            panic!("boom");
        }
        async move {
            match self {
                Self::Failing => Err("out of order".into()),
                Self::Panicking | Self::PanickingEarly => panic!("boom"),
                Self::Hanging => pending().await,
                Self::HangingThenPanicking => {
                    let _bomb = Bomb;
                    pending().await
                }
            }
        }
    }

    /// The expected error.
    fn problem(self) -> &'static str {
        match self {
            Self::Failing => "out of order",
            Self::Panicking | Self::PanickingEarly => "panicked: boom",
            Self::Hanging | Self::HangingThenPanicking => "gave no answer within 30s",
        }
    }
}

impl Display for Broken {
    fn show_message(&self, _: &DisplayMessage) -> impl Future<Output = Result<(), PortError>> + Send {
        self.act()
    }
}

impl ContextManager for Broken {
    fn add_message(&self, _: InjectedMessage) -> impl Future<Output = Result<(), PortError>> + Send {
        self.act()
    }
}

impl AuditLog for Broken {
    fn record(&self, _: AuditRecord) -> Result<Receipt, PortError> {
        Ok(Receipt::default())
    }

    fn flush(&self, _: Receipt) -> impl Future<Output = Result<(), PortError>> + Send {
        self.act()
    }
}

impl ApprovalSystem for Broken {
    fn request_approval(
        &self,
        _: Arc<OpenRequest>,
    ) -> impl Future<Output = Result<ApprovalAnswer, ApprovalError>> + Send {
        let acting = self.act();
        async {
            let label: Result<String, PortError> = acting.await;
            label.map(ApprovalAnswer::from).map_err(|error| ApprovalError::Failed(error.to_string()))
        }
    }
}

impl ApprovalRuleSource for Broken {
    fn active_rules(&self) -> impl Future<Output = Result<ApprovalRules, PortError>> + Send {
        self.act()
    }
}

fn failures(audit: &MemoryAudit) -> Vec<(&'static str, String)> {
    let failed = audit.records().into_iter().filter_map(|record| match record.entry {
        AuditEntry::Failure(FailureEntry { part: std::borrow::Cow::Borrowed(part), error }) => Some((part, error)),
        _ => None,
    });
    failed.collect()
}

async fn check_display(broken: Broken) {
    let audit = MemoryAudit::new();
    let session = answering(HookResult::proceed().info("hi")).display(broken).audit(audit.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    assert_eq!(failures(&audit), [("display", broken.problem().to_owned())], "{broken:?}");
}

async fn check_context(broken: Broken) {
    let (audit, display) = (MemoryAudit::new(), CollectingDisplay::new());
    let builder = answering(HookResult::inject("note")).context(broken).audit(audit.clone());
    let session = builder.display(display.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    let text = format!("the injection was lost: {}", broken.problem());
    assert_eq!(display.messages(), [DisplayMessage { text, level: Level::Error, source: "hook:hook".to_owned() }]);
    assert_eq!(failures(&audit), [("context", broken.problem().to_owned())], "{broken:?}");
}

async fn check_audit(broken: Broken) {
    for audit_required in [false, true] {
        let (hooks, display) = (HookRegistry::new(), CollectingDisplay::new());
        let config = SessionConfig { audit_required, ..SessionConfig::default() };
        let session = Coordinator::builder(hooks).audit(broken).display(display.clone()).config(config).build();
        let verdict = session.emit(TOOL_PRE, tool_pre()).await;
        let text = format!("the audit log failed: {}", broken.problem());
        if audit_required {
            assert_eq!(verdict, Verdict::Denied { by: "audit".into(), reason: text.clone() }, "{broken:?}");
        } else {
            assert!(verdict.is_proceed(), "{broken:?}");
        }
        let message = DisplayMessage { text, level: Level::Error, source: "kernel".to_owned() };
        assert_eq!(display.messages(), [message]);
    }
}

async fn check_approvals(broken: Broken, reason: &str) {
    let session = answering(HookResult::ask("Go?")).approvals(broken).build();
    let verdict = session.emit(TOOL_PRE, tool_pre()).await;
    assert_eq!(verdict, Verdict::Denied { by: "hook".into(), reason: reason.to_owned() }, "{broken:?}");
}

async fn check_rules(broken: Broken) {
    let (audit, display, person) = (MemoryAudit::new(), CollectingDisplay::new(), ScriptedApprovals::new(["Allow"]));
    let builder = answering(HookResult::ask("Go?")).approval_rules(broken).approvals(person.clone());
    let session = builder.audit(audit.clone()).display(display.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    assert_eq!(person.requests().len(), 1, "{broken:?}");
    let text = format!("approval rules cannot be read, so rules that allow are ignored: {}", broken.problem());
    assert_eq!(display.messages(), [DisplayMessage { text, level: Level::Error, source: "kernel".to_owned() }]);
    assert_eq!(failures(&audit), [("approval_rules", broken.problem().to_owned())], "{broken:?}");
}

const USUAL: [Broken; 3] = [Broken::Failing, Broken::Panicking, Broken::Hanging];

#[tokio::test(start_paused = true)]
async fn a_broken_display_does_not_take_the_agent_down() {
    for broken in USUAL {
        check_display(broken).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_context_does_not_take_the_agent_down() {
    for broken in USUAL {
        check_context(broken).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_audit_log_denies_only_where_it_is_required() {
    for broken in USUAL {
        check_audit(broken).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_approval_system_denies() {
    check_approvals(Broken::Failing, "Approval failed (out of order): Go?").await;
    check_approvals(Broken::Panicking, "Approval failed (panicked: boom): Go?").await;
    check_approvals(Broken::PanickingEarly, "Approval failed (panicked: boom): Go?").await;
    check_approvals(Broken::Hanging, "Approval timed out, denied by default: Go?").await;
}

#[tokio::test(start_paused = true)]
async fn where_rules_cannot_be_read_the_person_is_asked() {
    for broken in USUAL.into_iter().chain([Broken::PanickingEarly]) {
        check_rules(broken).await;
    }
}

#[tokio::test]
async fn a_display_that_panics_before_it_gives_a_future_does_not_take_the_agent_down() {
    check_display(Broken::PanickingEarly).await;
}

#[tokio::test]
async fn a_context_that_panics_before_it_gives_a_future_does_not_take_the_agent_down() {
    check_context(Broken::PanickingEarly).await;
}

#[tokio::test]
async fn an_audit_log_that_panics_before_it_gives_a_future_does_not_take_the_agent_down() {
    check_audit(Broken::PanickingEarly).await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_panics_while_it_is_given_up_does_not_take_the_agent_down() {
    let session = answering(HookResult::proceed().info("hi")).display(Broken::HangingThenPanicking).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
}

#[test]
fn an_audit_log_that_panics_when_it_takes_a_record_has_failed() {
    struct Panicking;
    impl AuditLog for Panicking {
        fn record(&self, _: AuditRecord) -> Result<Receipt, PortError> {
            panic!("boom");
        }
    }
    let config = SessionConfig { audit_required: true, ..SessionConfig::default() };
    let session = Coordinator::builder(HookRegistry::new()).audit(Panicking).config(config).build();
    let verdict = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    assert_eq!(verdict.to_string(), "Denied by hook audit: the audit log failed: panicked: boom");
    let observed = session.emit(SESSION_END, EventData::new()).now_or_never().unwrap();
    assert!(observed.is_proceed(), "what happened, happened");
}

#[test]
fn where_an_audit_is_required_a_session_without_one_denies() {
    let config = SessionConfig { audit_required: true, ..SessionConfig::default() };
    let session = Coordinator::builder(HookRegistry::new()).config(config).build();
    assert!(!session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
}

#[tokio::test(start_paused = true)]
async fn a_slow_port_is_waited_for() {
    struct Slow(CollectingDisplay);
    impl Display for Slow {
        async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
            tokio::time::sleep(Duration::from_secs(29)).await;
            self.0.show_message(message).await
        }
    }
    let display = CollectingDisplay::new();
    let session = answering(HookResult::proceed().info("hi")).display(Slow(display.clone())).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    assert_eq!(display.messages().len(), 1);
}

// ---- what goes on although something failed ------------------------------------------------------------------------

/// Refuses the first record, takes the others, and counts how often it is flushed.
#[derive(Clone, Default)]
struct Choosy {
    asked: Arc<AtomicUsize>,
    taken: MemoryAudit,
    flushed: Arc<AtomicUsize>,
}

impl AuditLog for Choosy {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err("too large".into());
        }
        self.taken.record(record)
    }

    async fn flush(&self, _: Receipt) -> Result<(), PortError> {
        self.flushed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_log_that_refuses_one_record_is_given_the_others_and_flushed() {
    let log = Choosy::default();
    let config = SessionConfig { audit_required: true, ..SessionConfig::default() };
    let session = answering(HookResult::proceed()).audit(log.clone()).config(config).build();
    let verdict = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    assert_eq!(verdict.to_string(), "Denied by hook audit: the audit log failed: too large");
    let kinds: Vec<_> = log.taken.records().iter().map(|record| record.entry.kind()).collect();
    assert_eq!((kinds, log.flushed.load(Ordering::Relaxed)), (vec!["hook_report", "intent"], 1));

    let next = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    assert!(next.is_proceed(), "the next record is taken");
    assert_eq!(log.flushed.load(Ordering::Relaxed), 2);
}

#[test]
fn a_log_is_asked_about_the_records_of_the_operation_and_no_older_ones() {
    #[derive(Clone, Default)]
    struct Numbering {
        taken: MemoryAudit,
        asked: Arc<Mutex<Vec<u64>>>,
    }
    impl AuditLog for Numbering {
        fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
            self.taken.record(record)
        }

        async fn flush(&self, since: Receipt) -> Result<(), PortError> {
            self.asked.lock().unwrap().push(since.0);
            Ok(())
        }
    }
    let log = Numbering::default();
    let session = answering(HookResult::proceed()).audit(log.clone()).build();
    for _ in 0..2 {
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    }
    assert_eq!(log.taken.records().len(), 6);
    assert_eq!(*log.asked.lock().unwrap(), [1, 4]);
}

/// Returns the time that an operation waits for a hanging display with messages of twenty hooks.
async fn waited_for_display(audit: impl AuditLog) -> Duration {
    let hooks = HookRegistry::new();
    for _ in 0..10 {
        hooks.on(TOOL_PRE, |_| HookResult::proceed().info("hi"));
        hooks.on(TOOL_PRE, |_| HookResult::proceed().with_output("printed"));
    }
    let session = Coordinator::builder(hooks).display(Broken::Hanging).audit(audit).build();
    let begun = tokio::time::Instant::now();
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    begun.elapsed()
}

const ABOUT_ONCE: std::ops::Range<Duration> = Duration::from_secs(30)..Duration::from_secs(31);

#[tokio::test(start_paused = true)]
async fn a_display_that_hangs_is_waited_for_once() {
    let audit = MemoryAudit::new();
    let waited = waited_for_display(audit.clone()).await;
    assert!(ABOUT_ONCE.contains(&waited), "{waited:?}");
    let failures = failures(&audit);
    assert_eq!((failures.len(), failures[0].1.as_str()), (20, "gave no answer within 30s"), "each is on the record");
}

#[tokio::test(start_paused = true)]
async fn a_display_that_hangs_is_not_waited_for_again_when_the_audit_log_fails_too() {
    let waited = waited_for_display(Broken::Failing).await;
    assert!(ABOUT_ONCE.contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_display_that_hung_is_asked_again_at_the_next_event() {
    let audit = MemoryAudit::new();
    let session = answering(HookResult::proceed().info("hi")).display(Broken::Hanging).audit(audit.clone()).build();
    for _ in 0..2 {
        assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    }
    let hung = ("display", Broken::Hanging.problem().to_owned());
    assert_eq!(failures(&audit), [hung.clone(), hung]);
}
