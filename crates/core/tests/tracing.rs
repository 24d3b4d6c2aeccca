//! Spans and events for `tracing`: names and sizes, properly nested, and never the contents of events.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::testing::{CollectingDisplay, ScriptedApprovals};
use amplifier_core::{
    ApprovalError, Conversation, Coordinator, Display, DisplayMessage, EventData, HookError, HookRegistry, HookResult,
    Map, MemoryAudit, PortError, TOOL_PRE, ToolPre, data,
};
use futures::FutureExt;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// A span or an event: its name or message, the span around it, and its fields.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    name: String,
    inside: Option<String>,
    fields: Fields,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

#[derive(Clone, Default)]
struct Watcher {
    spans: Arc<Mutex<Vec<(Id, Seen)>>>,
    events: Arc<Mutex<Vec<Seen>>>,
}

/// Spans are told apart by name, and hooks and events also by their own.
fn title(seen: &Seen) -> String {
    match seen.fields.0.get("otel.name") {
        Some(name) => format!("{} {name}", seen.name),
        None => seen.name.clone(),
    }
}

impl Watcher {
    fn title_of(&self, id: &Id) -> Option<String> {
        self.spans.lock().unwrap().iter().rfind(|(other, _)| other == id).map(|(_, seen)| title(seen))
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Watcher {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
        let inside = parent.and_then(|parent| self.title_of(&parent));
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = attributes.metadata().name().to_owned();
        self.spans.lock().unwrap().push((id.clone(), Seen { name, inside, fields }));
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.spans.lock().unwrap();
        let (_, seen) = spans.iter_mut().rfind(|(other, _)| other == id).unwrap();
        record.record(&mut seen.fields);
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let inside = context.event_span(event).and_then(|span| self.title_of(&span.id()));
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let name = format!("{} {message}", event.metadata().level());
        self.events.lock().unwrap().push(Seen { name, inside, fields });
    }
}

/// Everything that is seen while this runs: spans in the order in which they begin, and events.
fn watch(run: impl FnOnce()) -> (Vec<Seen>, Vec<Seen>) {
    watch_at(LevelFilter::TRACE, run)
}

/// The spans and events from this level on.
fn watch_at(level: LevelFilter, run: impl FnOnce()) -> (Vec<Seen>, Vec<Seen>) {
    let watcher = Watcher::default();
    tracing::subscriber::with_default(Registry::default().with(watcher.clone()).with(level), run);
    let spans = std::mem::take(&mut *watcher.spans.lock().unwrap());
    let events = std::mem::take(&mut *watcher.events.lock().unwrap());
    (spans.into_iter().map(|(_, seen)| seen).collect(), events)
}

fn seen(name: &str, inside: Option<&str>, fields: &[(&str, &str)]) -> Seen {
    let fields = fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Seen { name: name.to_owned(), inside: inside.map(str::to_owned), fields: Fields(fields) }
}

/// The span of an emission, with these fields beside its name.
fn emission(event: &str, inside: Option<&str>, more: &[(&str, &str)]) -> Seen {
    seen("hook.emission", inside, &[&[("otel.name", event), ("hook.event", event)], more].concat())
}

/// The span of a call, with these fields beside its name.
fn call(hook: &str, inside: &str, more: &[(&str, &str)]) -> Seen {
    seen("hook.call", Some(inside), &[&[("otel.name", hook), ("hook.name", hook)], more].concat())
}

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

fn emit(hooks: &HookRegistry) {
    let _ = hooks.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
}

// ---- emissions -----------------------------------------------------------------------------------------------------

#[test]
fn an_emission_is_a_span_with_one_for_each_hook_in_it() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("quiet").run(|_| ());
    hooks.hook(TOOL_PRE).named("editor").run(|_| HookResult::set("n", 1));
    hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::deny("no"));
    hooks.hook(TOOL_PRE).named("skipped").run(|_| ());
    hooks.hook(TOOL_PRE).named("watcher").observer().run(|_| HookResult::ask("Go?"));
    let (spans, events) = watch(|| emit(&hooks));
    let inside = "hook.emission tool:pre";
    assert_eq!(
        spans,
        [
            emission("tool:pre", None, &[("hook.decision", "deny"), ("hook.denied_by", "guard")]),
            call("quiet", inside, &[("hook.role", "Gate"), ("hook.answer", "continue")]),
            call("editor", inside, &[("hook.role", "Gate"), ("hook.answer", "modify")]),
            call("guard", inside, &[("hook.role", "Gate"), ("hook.answer", "deny")]),
            call("watcher", inside, &[("hook.role", "Observer"), ("hook.answer", "ask_user")]),
        ]
    );
    assert_eq!(events, []);
}

#[test]
fn failures_show_up_as_errors() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("failing").run(|_| Err::<(), _>(HookError::failed("out of order")));
    hooks.hook(TOOL_PRE).named("panicking").run(|_| -> () { panic!("boom") });
    let (spans, events) = watch(|| emit(&hooks));
    let inside = "hook.emission tool:pre";
    let failed = |answer| [("hook.role", "Gate"), ("hook.answer", answer), ("otel.status_code", "ERROR")];
    assert_eq!(
        spans,
        [
            emission("tool:pre", None, &[("hook.decision", "continue")]),
            call("failing", inside, &failed("failed")),
            call("panicking", inside, &failed("panicked")),
        ]
    );
    let event = |hook, failure, error| {
        let inside = format!("hook.call {hook}");
        let fields = [("hook.name", hook), ("hook.event", "tool:pre"), ("hook.failure", failure), ("error", error)];
        seen("WARN hook failed", Some(&inside), &fields)
    };
    let failed = event("failing", "failed", "out of order");
    assert_eq!(events, [failed, event("panicking", "panicked", "panicked: boom")]);
}

#[test]
fn failures_are_logged_although_nobody_watches_spans() {
    for hooks in [HookRegistry::new(), HookRegistry::builder().parallel_observers().build()] {
        hooks.hook(TOOL_PRE).named("failing").run(|_| Err::<(), _>(HookError::failed("out of order")));
        hooks.hook(TOOL_PRE).named("fine").run(|_| ());
        hooks.hook(TOOL_PRE).named("later").run(|_| async {
            tokio::task::yield_now().await;
            Err::<(), _>(HookError::failed("out of order"))
        });
        hooks.hook(TOOL_PRE).named("panicking").run(|_| -> () { panic!("boom") });
        hooks.hook(TOOL_PRE).named("watcher").observer().run(|_| Err::<(), _>(HookError::failed("out of order")));
        let event = |hook, failure, error| {
            let fields = [("hook.name", hook), ("hook.event", "tool:pre"), ("hook.failure", failure), ("error", error)];
            seen("WARN hook failed", None, &fields)
        };
        let expected = [
            event("failing", "failed", "out of order"),
            event("later", "failed", "out of order"),
            event("panicking", "panicked", "panicked: boom"),
            event("watcher", "failed", "out of order"),
        ];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let emitted = watch_at(LevelFilter::WARN, || {
            let _ = runtime.block_on(hooks.emit(TOOL_PRE, tool_pre()));
        });
        assert_eq!(emitted, (vec![], expected.to_vec()));
        let collected = watch_at(LevelFilter::WARN, || {
            let _ = runtime.block_on(hooks.emit_and_collect(TOOL_PRE, tool_pre(), Duration::from_secs(1)));
        });
        assert_eq!(collected, (vec![], expected.to_vec()));
    }
}

#[test]
fn observers_side_by_side_stand_inside_their_emission() {
    let hooks = HookRegistry::builder().parallel_observers().build();
    hooks.hook(TOOL_PRE).named("a").observer().run(|_| ());
    hooks.hook(TOOL_PRE).named("b").observer().run(|_| ());
    let (spans, _) = watch(|| emit(&hooks));
    let observed = [("hook.role", "Observer"), ("hook.answer", "continue")];
    assert_eq!(
        spans,
        [
            emission("tool:pre", None, &[("hook.decision", "continue")]),
            call("a", "hook.emission tool:pre", &observed),
            call("b", "hook.emission tool:pre", &observed),
        ]
    );
}

#[test]
fn spans_nest_as_emissions_do() {
    let hooks = HookRegistry::new();
    let registry = hooks.clone();
    hooks.hook(TOOL_PRE).named("outer").run(move |_| {
        let registry = registry.clone();
        async move {
            tracing::info!("said by the hook");
            drop(registry.emit("inner:event", EventData::new()).await);
        }
    });
    hooks.hook("inner:event").named("inner").run(|_| ()).unwrap();
    let (spans, events) = watch(|| tracing::info_span!("turn").in_scope(|| emit(&hooks)));
    let nested: Vec<_> = spans.iter().map(|span| (title(span), span.inside.as_deref())).collect();
    assert_eq!(
        nested,
        [
            ("turn".to_owned(), None),
            ("hook.emission tool:pre".to_owned(), Some("turn")),
            ("hook.call outer".to_owned(), Some("hook.emission tool:pre")),
            ("hook.emission inner:event".to_owned(), Some("hook.call outer")),
            ("hook.call inner".to_owned(), Some("hook.emission inner:event")),
        ]
    );
    assert_eq!(events, [seen("INFO said by the hook", Some("hook.call outer"), &[])]);
}

// ---- sessions ------------------------------------------------------------------------------------------------------

/// The span of an approval: whether it was granted, and what that rests on.
fn check_approval(person: ScriptedApprovals, granted: &str, basis: &str) {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("asker").run(|_| HookResult::ask("Go?"));
    let session = Coordinator::builder(hooks).approvals(person).build();
    let (spans, _) = watch(|| drop(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap()));
    let approval = seen(
        "hook.approval",
        None,
        &[
            ("otel.name", "approval"),
            ("hook.name", "asker"),
            ("hook.event", "tool:pre"),
            ("approval.granted", granted),
            ("approval.basis", basis),
        ],
    );
    assert!(spans.contains(&approval), "{spans:#?}");
    let required = emission("approval:required", Some("hook.approval approval"), &[("hook.decision", "continue")]);
    assert!(spans.contains(&required), "{spans:#?}");
}

#[test]
fn an_approval_is_a_span() {
    check_approval(ScriptedApprovals::new(["Allow"]), "true", "answer");
    check_approval(ScriptedApprovals::new(["Deny"]), "false", "answer");
    check_approval(ScriptedApprovals::new(["Perhaps"]), "false", "not_offered");
    let gone = amplifier_core::testing::ScriptedAnswer::Error(ApprovalError::Closed);
    check_approval(ScriptedApprovals::new([gone]), "false", "failed");
}

#[test]
fn an_injection_is_an_event_with_its_size() {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("linter").run(|_| HookResult::inject("zwölf Zeichen"));
    let session = Coordinator::builder(hooks).build();
    let (_, events) = watch(|| drop(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap()));
    let fields = [("hook.name", "linter"), ("bytes", "14"), ("tokens", "3"), ("fate", "no_context")];
    assert_eq!(events, [seen("INFO hook injection", None, &fields)]);
}

// ---- secrets -------------------------------------------------------------------------------------------------------

const SECRET: &str = "hunter2";

/// Nothing that is seen while this runs shows the secret.
fn check_kept(run: impl FnOnce()) {
    let (spans, events) = watch(run);
    assert!(!spans.is_empty());
    for seen in spans.iter().chain(&events) {
        assert!(!format!("{seen:?}").contains(SECRET), "{seen:?}");
    }
}

struct BrokenDisplay;

impl Display for BrokenDisplay {
    async fn show_message(&self, _: &DisplayMessage) -> Result<(), PortError> {
        Err("out of order".into())
    }
}

#[test]
fn the_contents_of_events_are_never_shown() {
    let hooks = HookRegistry::new();
    hooks.set_default_fields([("token", SECRET)]);
    hooks.hook(TOOL_PRE).named("mistyped").run(|_| ());
    hooks.on("tool:pre", |event| HookResult::modify(event.data).because(SECRET)).unwrap();
    hooks.on("tool:pre", |event| HookResult::set("copy", event["tool_name"].clone())).unwrap();
    hooks.on("tool:pre", |event| HookResult::respond(event.data)).unwrap();
    hooks.on("tool:pre", |_| HookResult::inject(SECRET).info(SECRET).with_output(SECRET)).unwrap();
    hooks.on("tool:pre", |_| HookResult::ask(SECRET).because(SECRET)).unwrap();
    let data = || data! { "tool_name": [SECRET], "tool_input": { "password": SECRET } };
    for answer in ["Allow", SECRET] {
        let builder = Coordinator::builder(hooks.clone()).approvals(ScriptedApprovals::new([answer]));
        let builder = builder.context(Conversation::new()).audit(MemoryAudit::new());
        let session = builder.display(CollectingDisplay::new()).build();
        check_kept(|| drop(session.emit(TOOL_PRE, data()).now_or_never().unwrap()));
    }
    let broken = Coordinator::builder(hooks.clone()).display(BrokenDisplay).build();
    check_kept(|| drop(broken.emit(TOOL_PRE, data()).now_or_never().unwrap()));
    hooks.hook(TOOL_PRE).named("guard").priority(-1).run(|_| ());
    hooks.on("tool:pre", |_| HookResult::deny(SECRET)).unwrap();
    check_kept(|| drop(hooks.emit(TOOL_PRE, data()).now_or_never().unwrap()));
}

#[test]
fn an_unreadable_answer_that_repeats_the_data_does_not_show_it() {
    for answer in [json!({ "action": "modify", "data": SECRET }), json!({ "approval_timeout": SECRET })] {
        let hooks = HookRegistry::new();
        hooks.hook(TOOL_PRE).named("echo").run(move |_| HookResult::from_json(answer.clone()));
        check_kept(|| emit(&hooks));
    }
}
