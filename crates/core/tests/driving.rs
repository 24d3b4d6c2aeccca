//! Emissions over other types of data, as drivers in other languages use them, and their routing.

use std::sync::{Arc, Mutex};

use amplifier_core::driving::{contain, is_timestamp, rfc3339};
use amplifier_core::{
    Conversation, Coordinator, Data, DataChange, Digest, Emission, EventData, HookRegistry, HookResult, Injection,
    MemoryAudit, OverBudget, SessionConfig, TOOL_PRE, Verdict, data,
};

/// Data of another kind: a number.
struct Count(i64);

impl Data for Count {
    type Object = i64;

    fn apply(&mut self, change: DataChange<i64>) {
        self.0 = self.changed(change);
    }

    fn changed(&self, change: DataChange<i64>) -> i64 {
        match change {
            DataChange::Replace(count) => count,
            DataChange::Set(..) => self.0,
        }
    }

    fn object(&self) -> i64 {
        self.0
    }

    fn digest(&self) -> Option<Digest> {
        data! { "count": self.0 }.digest().ok()
    }
}

fn emission(hooks: &HookRegistry) -> Emission<Count> {
    hooks.hook(TOOL_PRE).named("first").run(|_| ());
    hooks.hook(TOOL_PRE).named("second").run(|_| ());
    Emission::new(hooks.listeners(TOOL_PRE), Count(1))
}

fn inject(text: &str) -> HookResult<i64> {
    HookResult {
        action: amplifier_core::Action::InjectContext(Box::new(Injection::new(text))),
        ..HookResult::default()
    }
}

#[tokio::test]
async fn an_emission_over_other_data_is_routed_like_any_other() {
    let (hooks, conversation, audit) = (HookRegistry::new(), Conversation::new(), MemoryAudit::new());
    let mut emission = emission(&hooks);
    let session = Coordinator::builder(hooks).context(conversation.clone()).audit(audit.clone()).build();
    assert_eq!(emission.next_hook(), Some(0));
    emission.answer_continue(0);
    assert_eq!(emission.next_hook(), Some(1));
    emission.answer(1, Ok(inject("mind it, please")));
    let outcome = emission.finish();
    assert!(session.has_to_route(&outcome));

    let verdict = session.route_outcome_of(&outcome, data! { "count": 1 }, Some("call-1".to_owned())).await;
    assert_eq!(verdict, Verdict::Proceed(data! { "count": 1 }));
    assert_eq!(conversation.history()[0].content, "mind it, please");
    assert_eq!(session.injected_tokens(), 3);
    session.begin_turn();
    assert_eq!(session.injected_tokens(), 0);
    let kinds: Vec<_> = audit.records().iter().map(|record| record.entry.kind()).collect();
    assert_eq!(kinds, ["event", "hook_report", "hook_report", "injection", "intent"]);
}

#[test]
fn an_emission_that_is_given_up_is_recorded() {
    let (hooks, audit) = (HookRegistry::new(), MemoryAudit::new());
    let mut emission = emission(&hooks);
    let session = Coordinator::builder(hooks).audit(audit.clone()).build();
    emission.next_hook();
    emission.answer_continue(0);
    session.record_given_up(&emission, &EventData::new());
    let kinds: Vec<_> = audit.records().iter().map(|record| record.entry.kind()).collect();
    assert_eq!(kinds, ["event", "hook_report"]);
}

#[test]
fn silence_is_not_routed_unless_it_is_recorded() {
    let hooks = HookRegistry::new();
    let outcome = Emission::new(hooks.listeners(TOOL_PRE), Count(1)).finish();
    assert!(!Coordinator::builder(hooks.clone()).build().has_to_route(&outcome));
    assert!(Coordinator::builder(hooks.clone()).audit(MemoryAudit::new()).build().has_to_route(&outcome));
    let required = SessionConfig { audit_required: true, ..SessionConfig::default() };
    assert!(Coordinator::builder(hooks).config(required).build().has_to_route(&outcome));
}

#[test]
fn an_injection_is_checked_without_using_the_budget() {
    let config =
        SessionConfig { injection_size_limit: Some(5), over_budget: OverBudget::Drop, ..SessionConfig::default() };
    let session = Coordinator::builder(HookRegistry::new()).config(config).build();
    assert_eq!(session.check_injection("linter", &Injection::new("12345")), Ok(()));
    let refused = session.check_injection("linter", &Injection::new("123456")).unwrap_err();
    assert_eq!((refused.size, refused.limit, session.injected_tokens()), (6, 5, 0));
}

#[test]
fn endless_nesting_is_contained() {
    fn nest(depths: &Arc<Mutex<u32>>) {
        *depths.lock().unwrap() += 1;
        let _ = contain(|| nest(depths));
    }
    let depths = Arc::default();
    nest(&depths);
    assert_eq!(*depths.lock().unwrap(), 17);
    assert_eq!(contain(|| 5), Ok(5));
}

#[test]
fn timestamps_are_utc() {
    assert!(is_timestamp(&rfc3339(std::time::SystemTime::now())));
    for other in ["", "yesterday", "2024-01-01T10:00:00+02:00", "2024-01-01"] {
        assert!(!is_timestamp(other), "{other}");
    }
}
