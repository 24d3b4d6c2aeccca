//! Ports that fail, panic or hang never take the agent down.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::testing::CollectingDisplay;
use amplifier_core::{
    ApprovalError, ApprovalRequest, ApprovalSystem, AuditEntry, AuditLog, AuditRecord, ContextManager, Coordinator,
    CoordinatorBuilder, Display, DisplayMessage, EventData, HookRegistry, HookResult, InjectedMessage, Level, Map,
    MemoryAudit, PortError, SESSION_END, SessionConfig, TOOL_PRE, ToolPre, Verdict,
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

    /// What is said about it.
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
    fn record(&self, _: AuditRecord) -> Result<(), PortError> {
        Ok(())
    }

    fn flush(&self) -> impl Future<Output = Result<(), PortError>> + Send {
        self.act()
    }
}

impl ApprovalSystem for Broken {
    fn request_approval(&self, _: Arc<ApprovalRequest>) -> impl Future<Output = Result<String, ApprovalError>> + Send {
        let acting = self.act();
        async { acting.await.map_err(|error: PortError| ApprovalError::Failed(error.to_string())) }
    }
}

fn failures(audit: &MemoryAudit) -> Vec<(&'static str, String)> {
    let failed = audit.records().into_iter().filter_map(|record| match record.entry {
        AuditEntry::Failure { part, error } => Some((part, error)),
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
        fn record(&self, _: AuditRecord) -> Result<(), PortError> {
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
