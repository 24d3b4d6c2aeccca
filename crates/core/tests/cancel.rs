//! Cancellation: dropped emissions, approval requests without an answer, late answers.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::testing::{ManualClock, ScriptedAnswer, ScriptedApprovals};
use amplifier_core::{
    APPROVAL_REQUIRED, Approval, ApprovalAnswer, ApprovalClosed, ApprovalDecision, ApprovalDecisionEntry,
    ApprovalInbox, ApprovalRequestEntry, AuditEntry, Clock, Coordinator, EventEntry, HookError, HookRegistry,
    HookReportEntry, HookResult, LateAnswerEntry, Map, MemoryAudit, OnError, Outcome, PendingApproval, TOOL_PRE,
    ToolPre, Verdict, approval_channel, data,
};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

/// The events, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<&'static str>>>);

impl Notes {
    fn add(&self, note: &'static str) {
        self.0.lock().unwrap().push(note);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Makes a note when it is dropped.
    fn on_drop(&self, note: &'static str) -> impl Drop + Send + use<> {
        struct OnDrop(Notes, &'static str);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.add(self.1);
            }
        }
        OnDrop(self.clone(), note)
    }
}

/// A future that has begun and waits.
fn begun<'a, T>(future: impl Future<Output = T> + Send + 'a) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    let mut future: Pin<Box<dyn Future<Output = T> + Send + 'a>> = Box::pin(future);
    assert!((&mut future).now_or_never().is_none(), "it was to wait");
    future
}

/// A hook that makes a note and then waits forever.
fn waiting(hooks: &HookRegistry, notes: &Notes, observer: bool) -> amplifier_core::Registration {
    let notes = notes.clone();
    let builder = hooks.hook(TOOL_PRE).named("waiting");
    let builder = if observer { builder.observer() } else { builder };
    builder.run(move |_| {
        let notes = notes.clone();
        async move {
            notes.add("waiting");
            let _dropped = notes.on_drop("dropped");
            pending::<()>().await;
        }
    })
}

fn noting(hooks: &HookRegistry, notes: &Notes, note: &'static str) {
    let notes = notes.clone();
    hooks.hook(TOOL_PRE).named(note).run(move |_| notes.add(note));
}

// ---- emissions ---------------------------------------------------------------------------------------------------

#[test]
fn dropping_an_emission_drops_the_running_hook_and_calls_no_later_one() {
    let (hooks, notes) = (HookRegistry::builder().clock(ManualClock::new()).build(), Notes::default());
    noting(&hooks, &notes, "first");
    let registration = waiting(&hooks, &notes, false);
    noting(&hooks, &notes, "later");

    let emission = begun(hooks.emit(TOOL_PRE, tool_pre()));
    assert_eq!(notes.take(), ["first", "waiting"]);
    drop(emission);
    assert_eq!(notes.take(), ["dropped"]);

    registration.unregister();
    let outcome = hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    assert_eq!((outcome.reports().len(), notes.take()), (2, vec!["first", "later"]));
}

#[test]
fn dropping_an_emission_drops_all_observers_that_run_side_by_side() {
    let clock = Arc::new(ManualClock::new());
    let (hooks, notes) = (HookRegistry::builder().clock(clock).parallel_observers().build(), Notes::default());
    waiting(&hooks, &notes, true);
    waiting(&hooks, &notes, true);
    let emission = begun(hooks.emit(TOOL_PRE, tool_pre()));
    assert_eq!(notes.take(), ["waiting", "waiting"]);
    drop(emission);
    assert_eq!(notes.take(), ["dropped", "dropped"]);
}

#[test]
fn an_emission_that_is_never_awaited_calls_nobody() {
    let (hooks, notes) = (HookRegistry::new(), Notes::default());
    noting(&hooks, &notes, "first");
    drop(hooks.emit(TOOL_PRE, tool_pre()));
    assert_eq!(notes.take(), Vec::<&str>::new());
}

#[test]
fn a_hook_that_panics_while_its_emission_is_dropped_does_not_reach_the_agent() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("bomb");
        }
    }
    let hooks = HookRegistry::builder().clock(ManualClock::new()).build();
    hooks.on(TOOL_PRE, |_| async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    let emission = begun(hooks.emit(TOOL_PRE, tool_pre()));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(emission))).is_ok());
}

/// The records of emissions, as text.
fn emissions(audit: &MemoryAudit) -> Vec<String> {
    let said = audit.records().into_iter().filter_map(|record| match record.entry {
        AuditEntry::Event(EventEntry { data, decision, .. }) => {
            let n = data.to_map().unwrap().remove("n").unwrap_or_default();
            Some(format!("{} {decision}, n = {n}", record.event))
        }
        AuditEntry::HookReport(HookReportEntry { hook, answer, .. }) => Some(format!("{hook}: {answer}")),
        _ => None,
    });
    said.collect()
}

/// Begins an event of a session in which two hooks answer and a third waits, drops it, and gives the record.
fn record_of_dropped(event: &str, observer: bool) -> Vec<String> {
    let (hooks, audit) = (HookRegistry::builder().clock(ManualClock::new()).build(), MemoryAudit::new());
    hooks.hook(event).named("quiet").run(|_| ()).unwrap();
    hooks.hook(event).named("editor").run(|_| HookResult::set("n", 2)).unwrap();
    let waiting = hooks.hook(event).named("waiting");
    let waiting = if observer { waiting.observer() } else { waiting };
    waiting.run(|_| pending::<()>()).unwrap();
    hooks.hook(event).named("later").observer().run(|_| ()).unwrap();
    let session = Coordinator::builder(hooks).audit(audit.clone()).build();
    let emission = begun(session.emit(event, data! { "n": 1 }));
    assert_eq!(emissions(&audit), Vec::<String>::new());
    drop(emission);
    emissions(&audit)
}

#[test]
fn an_emission_that_is_dropped_while_a_hook_runs_is_on_the_record() {
    for observer in [false, true] {
        let record = record_of_dropped("deploy:begin", observer);
        assert_eq!(record, ["deploy:begin cancelled, n = 2", "quiet: continue", "editor: modify"]);
    }
}

#[test]
fn a_dropped_emission_that_is_only_observed_is_on_the_record_as_it_was_emitted() {
    let record = record_of_dropped("session:end", false);
    assert_eq!(record, ["session:end cancelled, n = 1", "quiet: continue", "editor: modify"]);
}

#[test]
fn an_emission_that_is_dropped_while_a_person_is_asked_is_on_the_record_once() {
    let mut asking = Asking::new();
    let (operation, _question) = asking.ask();
    drop(operation);
    let record = emissions(&asking.audit);
    let expected = [
        "tool:pre ask_user, n = null",
        "asker: ask_user",
        "approval:required continue, n = null",
        "user:notification continue, n = null",
    ];
    assert_eq!(record, expected);
}

#[test]
fn hooks_that_are_given_up_have_failed_and_their_on_error_decides() {
    let (hooks, notes) = (HookRegistry::builder().clock(ManualClock::new()).build(), Notes::default());
    waiting(&hooks, &notes, false);
    noting(&hooks, &notes, "later");
    let mut emission = begun(hooks.emit(TOOL_PRE, tool_pre()));
    hooks.give_up();
    let outcome = (&mut emission).now_or_never().unwrap();
    assert_eq!((notes.take(), outcome.denial()), (vec!["waiting", "dropped", "later"], None));
    let error = outcome.reports().next().unwrap().error.cloned();
    assert_eq!(error, Some(HookError::failed("was cancelled, because the program is ending")));

    // It holds for what comes later, too.
    hooks.hook(TOOL_PRE).named("guard").on_error(OnError::Deny).run(|_| pending::<()>());
    let outcome = hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    assert_eq!(outcome.denial().map(|denial| &*denial.by), Some("guard"));
}

// ---- questions ---------------------------------------------------------------------------------------------------

/// A session in which the hook `asker` asks "Go?" before every tool.
struct Asking {
    session: Coordinator,
    inbox: ApprovalInbox,
    audit: MemoryAudit,
    clock: ManualClock,
}

impl Asking {
    fn new() -> Self {
        let clock = ManualClock::new();
        let hooks = HookRegistry::builder().clock(clock.clone()).build();
        let approval = Approval::new("Go?").options(["Allow", "Allow always", "Deny"]);
        let asker = hooks.hook(TOOL_PRE).named("asker").timeout(Duration::from_secs(1));
        asker.run(move |_| HookResult::ask(approval.clone()));
        let (approvals, inbox) = approval_channel();
        let audit = MemoryAudit::new();
        let session = Coordinator::builder(hooks).approvals(approvals).audit(audit.clone()).build();
        Self { session, inbox, audit, clock }
    }

    /// An operation that waits for the person, and the question.
    fn ask(&mut self) -> (Pin<Box<dyn Future<Output = Verdict> + Send>>, PendingApproval) {
        let session = self.session.clone();
        let operation = begun(async move { session.emit(TOOL_PRE, tool_pre()).await });
        (operation, self.inbox.next().now_or_never().unwrap().unwrap())
    }

    /// The records of approvals and operations, as text.
    fn record(&self) -> Vec<String> {
        let said = self.audit.records().into_iter().filter_map(|record| match record.entry {
            AuditEntry::ApprovalRequest(ApprovalRequestEntry { id, hook, .. }) => Some(format!("{hook} asks {id}")),
            AuditEntry::ApprovalDecision(ApprovalDecisionEntry { id, decision, .. }) => {
                let ApprovalDecision { granted, basis, reason, .. } = decision;
                let id = id.map_or("none".to_owned(), |id| id.to_string());
                Some(format!("{id} {} by {basis}: {reason}", if granted { "granted" } else { "refused" }))
            }
            AuditEntry::LateAnswer(LateAnswerEntry { id, answer, .. }) => Some(format!("{id} late: {answer}")),
            AuditEntry::Intent(_) => Some("intent".to_owned()),
            _ => None,
        });
        said.collect()
    }
}

#[test]
fn an_answer_that_is_told_after_the_question_is_closed_is_recorded() {
    let mut asking = Asking::new();
    let (mut operation, question) = asking.ask();
    let request = question.request.clone();
    question.answer("Deny").unwrap();
    assert_eq!((&mut operation).now_or_never(), Some(denied("User denied: Go?")));
    request.record_late_answer(ApprovalAnswer::by("Allow", "ann", "console"));
    assert_eq!(asking.record(), ["asker asks 1", "1 refused by answer: User denied: Go?", "1 late: Allow"]);
}

fn denied(reason: &str) -> Verdict {
    Verdict::Denied { by: "asker".into(), reason: reason.to_owned() }
}

fn is_closed(question: &PendingApproval) -> bool {
    question.request.closed().now_or_never().is_some()
}

/// Lets the tasks that are ready do what they have to.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_answered_question_is_closed() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    let request = question.request.clone();
    assert!(!is_closed(&question));
    question.answer("Allow").unwrap();
    assert!(operation.now_or_never().unwrap().is_proceed());
    assert!(request.closed().now_or_never().is_some());
    assert_eq!(asking.record(), ["asker asks 1", "1 granted by answer: User allowed: Go?", "intent"]);
}

#[test]
fn dropping_an_operation_withdraws_its_question() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    assert!(!is_closed(&question));
    drop(operation);
    assert!(is_closed(&question));
    assert_eq!(question.answer("Allow always"), Err(ApprovalClosed));
    assert_eq!(asking.record(), ["asker asks 1", "1 refused by cancelled: Cancelled: Go?"]);

    // The next operation is asked about anew.
    let (operation, question) = asking.ask();
    question.answer("Allow").unwrap();
    assert!(operation.now_or_never().unwrap().is_proceed());
}

#[test]
fn dropping_an_operation_before_the_person_sees_its_question_is_recorded_too() {
    let asking = Asking::new();
    asking.session.hooks().on(APPROVAL_REQUIRED, |_| pending::<()>());
    let session = asking.session.clone();
    drop(begun(session.emit(TOOL_PRE, tool_pre())));
    assert_eq!(asking.record(), ["asker asks 1", "1 refused by cancelled: Cancelled: Go?"]);
}

#[test]
fn a_dropped_inbox_denies() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    drop((question, asking.inbox));
    let reason = "Approval failed (the connection to the approver is closed): Go?";
    assert_eq!(operation.now_or_never().unwrap(), denied(reason), "the question that was open");
    let next = asking.session.emit(TOOL_PRE, tool_pre()).now_or_never();
    assert_eq!(next.unwrap(), denied(reason), "and the ones after it");
}

#[test]
fn a_dropped_question_denies() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    drop(question);
    let reason = "Approval failed (the connection to the approver is closed): Go?";
    assert_eq!(operation.now_or_never().unwrap(), denied(reason));
    let refused = "1 refused by failed: Approval failed (the connection to the approver is closed): Go?";
    assert_eq!(asking.record(), ["asker asks 1", refused]);
}

#[test]
fn an_inbox_ends_with_its_session() {
    let Asking { session, mut inbox, .. } = Asking::new();
    drop(session);
    assert!(inbox.next().now_or_never().unwrap().is_none());
}

#[tokio::test]
async fn an_inbox_ends_with_its_session_also_after_a_question_ran_out_of_time() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    asking.clock.advance(Duration::from_secs(300));
    assert!(!operation.await.is_proceed());
    settle().await;
    let Asking { session, mut inbox, .. } = asking;
    assert!(inbox.next().now_or_never().is_none(), "the session is still there");
    drop(session);
    settle().await;
    assert!(inbox.next().now_or_never().expect("the inbox ends").is_none());
    assert_eq!(question.answer("Allow"), Err(ApprovalClosed));
}

#[tokio::test]
async fn a_question_is_open_exactly_as_long_as_its_time_limit() {
    let mut asking = Asking::new();
    let (mut operation, question) = asking.ask();
    asking.clock.advance(Duration::from_secs(299));
    assert!((&mut operation).now_or_never().is_none());
    asking.clock.advance(Duration::from_secs(1));
    assert_eq!(operation.await, denied("Approval timed out, denied by default: Go?"));
    assert!(is_closed(&question));
}

#[tokio::test]
async fn a_late_answer_is_recorded_and_changes_nothing() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    asking.clock.advance(Duration::from_secs(300));
    assert!(!operation.await.is_proceed());
    question.answer("Allow always").unwrap();
    settle().await;
    assert_eq!(
        asking.record(),
        ["asker asks 1", "1 refused by timeout: Approval timed out, denied by default: Go?", "1 late: Allow always"]
    );

    let (_operation, question) = asking.ask();
    assert_eq!(question.request.number, 2, "asked again: nothing was remembered");
}

#[tokio::test]
async fn an_answer_is_late_also_where_the_thread_was_blocked_until_it_came() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    // Nobody looks meanwhile, as when the person is asked by a function that blocks.
    asking.clock.advance(Duration::from_secs(301));
    question.answer("Allow").unwrap();
    let refused = "Approval timed out, denied by default: Go?";
    assert_eq!(operation.await, denied(refused));
    settle().await;
    assert_eq!(asking.record(), ["asker asks 1", &format!("1 refused by timeout: {refused}"), "1 late: Allow"]);
}

#[tokio::test]
async fn nobody_waits_for_a_late_answer_forever() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    asking.clock.advance(Duration::from_secs(300));
    assert!(!operation.await.is_proceed());
    settle().await;
    asking.clock.advance(Duration::from_secs(3600));
    settle().await;
    assert_eq!(question.answer("Allow"), Err(ApprovalClosed));
    assert_eq!(asking.record().len(), 2);
}

#[tokio::test]
async fn two_questions_are_open_at_once_without_disturbing_each_other() {
    let mut asking = Asking::new();
    let (first, first_question) = asking.ask();
    let (second, second_question) = asking.ask();
    second_question.answer("Deny").unwrap();
    assert_eq!(second.await, denied("User denied: Go?"));
    assert!(!is_closed(&first_question));
    first_question.answer("Allow").unwrap();
    assert!(first.await.is_proceed());
}

// ---- time --------------------------------------------------------------------------------------------------------

#[test]
fn the_time_limit_of_a_hook_does_not_count_waiting_for_the_person_it_asks() {
    let mut asking = Asking::new();
    let (operation, question) = asking.ask();
    asking.clock.advance(Duration::from_secs(200));
    question.answer("Allow").unwrap();
    assert!(operation.now_or_never().unwrap().is_proceed());
}

#[test]
fn the_time_limit_of_a_hook_does_not_count_waiting_for_a_person_inside_of_it() {
    let mut asking = Asking::new();
    let session = asking.session.clone();
    let outer = asking.session.hooks().hook("deploy:begin").named("outer").timeout(Duration::from_secs(1));
    let registered = outer.run(move |_| {
        let session = session.clone();
        async move { drop(session.emit(TOOL_PRE, tool_pre()).await) }
    });
    registered.unwrap();

    let hooks = asking.session.hooks().clone();
    let mut operation = begun(hooks.emit("deploy:begin", amplifier_core::EventData::new()));
    let question = asking.inbox.next().now_or_never().unwrap().unwrap();
    asking.clock.advance(Duration::from_secs(200));
    assert!((&mut operation).now_or_never().is_none(), "the person is still being asked");
    question.answer("Allow").unwrap();
    let outcome: Outcome = operation.now_or_never().unwrap().unwrap();
    assert_eq!(outcome.reports().map(|report| report.error).collect::<Vec<_>>(), [None]);
}

/// A hook with 30 seconds works, waits for a person (100 seconds) beside a timer that ticks, and works again. Gives how
/// it failed, and after how long.
async fn working_around_a_question(before: u64, after: u64) -> (Option<HookError>, u64) {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask("Go?"));
    let person = ScriptedApprovals::new([ScriptedAnswer::After(Duration::from_secs(100), "Allow".to_owned())]);
    let session = Coordinator::builder(hooks.clone()).approvals(person).build();
    let outer = hooks.hook("deploy:begin").named("outer").timeout(Duration::from_secs(30));
    let registered = outer.run(move |_| {
        let session = session.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(before)).await;
            let ticking = async {
                for _ in 0..9 {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                }
                true
            };
            let asking = async { session.emit(TOOL_PRE, tool_pre()).await.is_proceed() };
            let both: FuturesUnordered<_> = [asking.boxed(), ticking.boxed()].into_iter().collect();
            assert_eq!(both.collect::<Vec<_>>().await, [true, true]);
            tokio::time::sleep(Duration::from_secs(after)).await;
        }
    });
    registered.unwrap();
    let begun = tokio::time::Instant::now();
    let outcome = hooks.emit("deploy:begin", data! {}).await.unwrap();
    (outcome.reports().next().unwrap().error.cloned(), begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_does_other_things_while_a_person_is_asked_pays_for_its_own_time_only() {
    let timed_out = Some(HookError::TimedOut(Duration::from_secs(30)));
    assert_eq!(working_around_a_question(5, 5).await, (None, 110));
    assert_eq!(working_around_a_question(14, 14).await, (None, 128));
    assert_eq!(working_around_a_question(20, 15).await, (timed_out.clone(), 130), "10 seconds were left");
    assert_eq!(working_around_a_question(40, 0).await, (timed_out, 30), "nobody was asked yet");
}

#[test]
fn a_test_clock_forgets_those_who_stopped_waiting() {
    let clock = ManualClock::new();
    drop(begun(clock.sleep(Duration::from_secs(1))));
    let nobody = clock.advance_when_waiting(Duration::from_secs(1)).now_or_never();
    assert_eq!(nobody, None, "nobody waits any more");
}
