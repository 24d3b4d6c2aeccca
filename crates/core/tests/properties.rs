//! The rules of an emission as laws, checked against a small model written from the specification, sections 1 to 4.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{
    Action, Approval, ApprovalOption, Attributed, Data, DataChange, Decision, DefaultDecision, Denial, Digest, Effect,
    Emission, EventData, FlatAction, FlatResult, HookError, HookRegistry, HookResult, HookRole, Injection, Level, Map,
    OnError, Outcome, Placement, Registration, Role, UserMessage,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

const EVENT: &str = "law:checked";

/// A hook, by what it answers.
#[derive(Clone, Debug)]
struct Spec {
    name: String,
    priority: i64,
    role: HookRole,
    on_error: OnError,
    answer: Says,
    reason: Option<String>,
    message: Option<UserMessage>,
    suppress_output: bool,
    /// `true` if it answers only on the second poll.
    slow: bool,
}

#[derive(Clone, Debug)]
enum Says {
    Continue,
    Respond(Bag),
    Deny,
    Replace(Bag),
    Set(String, i64),
    Inject(Injection),
    Ask(Approval),
    Fail,
    Panic,
}

/// The data of these emissions: nothing but numbers by name.
type Bag = BTreeMap<String, i64>;

/// Everything an outcome holds, in a form that the registry, the bare machine and the model can all be brought into.
#[derive(Debug, PartialEq)]
struct Summary {
    decision: Decision,
    data: Bag,
    ran: Vec<String>,
    approvals: Vec<(String, Approval)>,
    injections: Vec<(String, Injection)>,
    messages: Vec<(String, UserMessage)>,
    responses: Vec<(String, Bag)>,
    reports: Vec<(String, &'static str, Option<String>)>,
    flat: FlatResult<Bag>,
}

impl Summary {
    fn of<D: Data>(outcome: &Outcome<D>, ran: Vec<String>, bag: fn(D::Object) -> Bag) -> Self
    where
        D::Object: Clone,
    {
        let flat = outcome.flat();
        let responses = said_by(outcome.responses());
        Self {
            decision: outcome.decision.clone(),
            data: bag(outcome.data.object()),
            ran,
            approvals: outcome.approvals().iter().map(|one| (one.hook.to_string(), one.approval.clone())).collect(),
            injections: said_by(outcome.injections()),
            messages: said_by(outcome.messages()),
            responses: responses.into_iter().map(|(hook, object)| (hook, bag(object))).collect(),
            reports: outcome
                .reports()
                .map(|report| {
                    (report.hook.to_owned(), report.answer_or_failure().as_str(), report.reason.map(str::to_owned))
                })
                .collect(),
            flat: FlatResult {
                action: flat.action,
                data: flat.data.map(bag),
                // The specification fixes the reason of a denial only.
                reason: flat.reason.filter(|_| outcome.denial().is_some()),
                context_injection: flat.context_injection,
                context_injection_role: flat.context_injection_role,
                ephemeral: flat.ephemeral,
                append_to_last_tool_result: flat.append_to_last_tool_result,
                approval_prompt: flat.approval_prompt,
                approval_options: flat.approval_options,
                approval_timeout: flat.approval_timeout,
                approval_default: flat.approval_default,
                approval_fallback: flat.approval_fallback,
                suppress_output: flat.suppress_output,
                user_message: flat.user_message,
                user_message_level: flat.user_message_level,
                user_message_source: flat.user_message_source,
            },
        }
    }
}

fn said_by<T: Clone>(all: &[Attributed<T>]) -> Vec<(String, T)> {
    all.iter().map(|one| (one.hook.to_string(), one.value.clone())).collect()
}

// ---- the model -------------------------------------------------------------------------------------------------

/// The outcome of these hooks according to the specification.
fn model(specs: &[Spec], data: &Bag) -> Summary {
    let mut order: Vec<&Spec> = specs.iter().collect();
    order.sort_by_key(|spec| (spec.role == HookRole::Observer, spec.priority)); // stable: then by registration
    let mut come = Summary {
        decision: Decision::Continue,
        data: data.clone(),
        ran: Vec::new(),
        approvals: Vec::new(),
        injections: Vec::new(),
        messages: Vec::new(),
        responses: Vec::new(),
        reports: Vec::new(),
        flat: FlatResult::default(),
    };
    let mut denial: Option<Denial> = None;
    for spec in order {
        let gate = spec.role == HookRole::Gate;
        if gate && denial.is_some() {
            continue;
        }
        let name = spec.name.clone();
        come.ran.push(name.clone());
        let failure = match spec.answer {
            Says::Fail => Some(("failed", "boom")),
            Says::Panic => Some(("panicked", "panicked: boom")),
            _ => None,
        };
        if let Some((kind, text)) = failure {
            come.reports.push((name.clone(), kind, None));
            if gate && spec.on_error == OnError::Deny {
                let reason = format!("the hook failed: {text}");
                denial = Some(Denial { by: name.into(), reason: Some(reason) });
            }
            continue;
        }
        come.messages.extend(spec.message.clone().map(|message| (name.clone(), message)));
        come.flat.suppress_output |= spec.suppress_output;
        let word = match &spec.answer {
            Says::Continue | Says::Fail | Says::Panic => "continue",
            Says::Respond(_) => "respond",
            Says::Deny => "deny",
            Says::Replace(_) | Says::Set(..) => "modify",
            Says::Inject(_) => "inject_context",
            Says::Ask(_) => "ask_user",
        };
        come.reports.push((name.clone(), word, spec.reason.clone()));
        match spec.answer.clone() {
            _ if !gate => {}
            Says::Continue | Says::Fail | Says::Panic => {}
            Says::Respond(answer) => come.responses.push((name, answer)),
            Says::Deny => denial = Some(Denial { by: name.into(), reason: spec.reason.clone() }),
            Says::Replace(bag) => come.data = bag,
            Says::Set(key, value) => drop(come.data.insert(key, value)),
            Says::Inject(injection) => come.injections.push((name, injection)),
            Says::Ask(approval) => come.approvals.push((name, approval)),
        }
    }
    let gates_said = |word: &str| {
        let is_gate = |name: &str| specs.iter().any(|spec| spec.name == name && spec.role == HookRole::Gate);
        come.reports.iter().any(|(name, answer, _)| *answer == word && is_gate(name))
    };
    (come.decision, come.flat.action) = match &denial {
        Some(denial) => (Decision::Deny(Box::new(denial.clone())), FlatAction::Deny),
        None if gates_said("ask_user") => (Decision::AskUser, FlatAction::AskUser),
        None if gates_said("inject_context") => (Decision::InjectContext, FlatAction::InjectContext),
        None if gates_said("modify") => (Decision::Modify, FlatAction::Continue),
        None => (Decision::Continue, FlatAction::Continue),
    };
    flatten(&mut come, denial);
    come
}

fn flatten(come: &mut Summary, denial: Option<Denial>) {
    let flat = &mut come.flat;
    flat.data = denial.is_none().then(|| come.data.clone());
    flat.reason = denial.and_then(|denial| denial.reason);
    if let Some((_, first)) = come.injections.first() {
        let texts: Vec<_> = come.injections.iter().map(|(_, injection)| injection.text.clone()).collect();
        flat.context_injection = Some(texts.join("\n\n"));
        flat.context_injection_role = first.role;
        flat.ephemeral = first.placement != Placement::History;
        flat.append_to_last_tool_result = first.placement == Placement::LastToolResult;
    }
    if let Some((_, first)) = come.approvals.first() {
        flat.approval_prompt = Some(first.prompt.clone());
        let options: Vec<_> = first.options.iter().cloned().map(Into::into).collect();
        flat.approval_options = (!options.is_empty()).then_some(options);
        flat.approval_timeout = first.timeout.as_secs_f64();
        flat.approval_default = first.default;
        flat.approval_fallback = first.fallback;
    }
    if let Some(level) = come.messages.iter().map(|(_, message)| message.level).max() {
        let texts: Vec<_> = come.messages.iter().map(|(_, message)| message.text.clone()).collect();
        flat.user_message = Some(texts.join("\n"));
        flat.user_message_level = level;
        flat.user_message_source =
            come.messages.first().filter(|_| texts.len() == 1).and_then(|(_, one)| one.source.clone());
    }
}

// ---- the registry, with JSON -----------------------------------------------------------------------------------

struct Registry {
    hooks: HookRegistry,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn new(specs: &[Spec]) -> Self {
        let registry = Self { hooks: HookRegistry::new(), ran: Arc::default() };
        for spec in specs {
            registry.register(spec);
        }
        registry
    }

    fn register(&self, spec: &Spec) -> Registration {
        let (said, ran) = (spec.clone(), self.ran.clone());
        let builder = self.hooks.hook(EVENT).named(spec.name.as_str()).priority(spec.priority);
        let builder = builder.role(spec.role).on_error(spec.on_error);
        let registered = builder.run(move |_| {
            let (said, ran) = (said.clone(), ran.clone());
            async move {
                ran.lock().unwrap().push(said.name.clone());
                if said.slow {
                    tokio::task::yield_now().await;
                }
                answer(&said, map)
            }
        });
        registered.unwrap()
    }

    fn emit(&self, data: &Bag) -> (Summary, Outcome) {
        self.ran.lock().unwrap().clear();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(self.hooks.emit(EVENT, map(data.clone()))).unwrap();
        let ran = self.ran.lock().unwrap().clone();
        (Summary::of(&outcome, ran, bag), outcome)
    }
}

fn map(bag: Bag) -> Map {
    bag.into_iter().map(|(key, value)| (key, value.into())).collect()
}

fn bag(map: Map) -> Bag {
    let own = map.into_iter().filter(|(key, _)| key != "timestamp");
    own.map(|(key, value)| (key, value.as_i64().unwrap())).collect()
}

/// The result of the hook, for any type of data.
fn answer<O>(spec: &Spec, object: fn(Bag) -> O) -> Result<HookResult<O>, HookError> {
    let action = match spec.answer.clone() {
        Says::Continue => Action::Continue,
        Says::Respond(answer) => Action::Respond(object(answer)),
        Says::Deny => Action::Deny,
        Says::Replace(bag) => Action::Modify(DataChange::Replace(object(bag))),
        Says::Set(key, value) => Action::Modify(DataChange::Set(key.into(), value.into())),
        Says::Inject(injection) => Action::InjectContext(Box::new(injection)),
        Says::Ask(approval) => Action::AskUser(Box::new(approval)),
        Says::Fail => return Err(HookError::failed("boom")),
        Says::Panic => panic!("boom"),
    };
    Ok(HookResult {
        reason: spec.reason.clone(),
        message: spec.message.clone().map(Box::new),
        suppress_output: spec.suppress_output,
        ..action.into()
    })
}

// ---- the bare machine, with data that knows nothing of JSON ------------------------------------------------------

#[derive(Clone)]
struct Plain(Bag);

impl Data for Plain {
    type Object = Bag;

    fn apply(&mut self, change: DataChange<Bag>) {
        self.0 = self.changed(change);
    }

    fn changed(&self, change: DataChange<Bag>) -> Bag {
        match change {
            DataChange::Replace(bag) => bag,
            DataChange::Set(key, value) => {
                let set = (key.into_owned(), value.as_i64().unwrap());
                self.0.clone().into_iter().chain([set]).collect()
            }
        }
    }

    fn object(&self) -> Bag {
        self.0.clone()
    }

    fn digest(&self) -> Option<Digest> {
        self.0.iter().map(|(key, value)| (key.as_str(), *value)).collect::<EventData>().digest().ok()
    }
}

fn drive(specs: &[Spec], data: &Bag) -> Summary {
    let hooks = Registry::new(specs).hooks;
    let mut emission = Emission::new(hooks.listeners(EVENT).unwrap(), Plain(data.clone()));
    let mut ran = Vec::new();
    while let Some(index) = emission.next_hook() {
        let name = emission.hook(index).info().name.to_string();
        let spec = specs.iter().find(|spec| spec.name == name).unwrap();
        let said = match spec.answer {
            Says::Panic => Err(HookError::Panicked("boom".to_owned())),
            _ => answer(spec, |bag| bag),
        };
        emission.answer(index, said);
        ran.push(name);
    }
    Summary::of(&emission.finish(), ran, |bag| bag)
}

// ---- what is tried -----------------------------------------------------------------------------------------------

fn any_bag() -> impl Strategy<Value = Bag> {
    prop::collection::btree_map("[a-c]", 0..5_i64, 0..3)
}

fn any_injection() -> impl Strategy<Value = Injection> {
    let roles = select(vec![Role::System, Role::User, Role::Assistant]);
    let placements = select(vec![Placement::History, Placement::NextCall, Placement::LastToolResult]);
    (any::<String>(), roles, placements).prop_map(|(text, role, placement)| Injection { text, role, placement })
}

fn any_approval() -> impl Strategy<Value = Approval> {
    let labels = select(vec!["Allow", "Deny", "Allow always", "never", "Ship it", "später"]);
    let effects = select(vec![Effect::AllowOnce, Effect::AllowAlways, Effect::Deny, Effect::DenyAlways]);
    let options = prop::collection::btree_map(labels, effects, 0..4).prop_map(|options| {
        options.into_iter().map(|(label, effect)| ApprovalOption::new(label, effect)).collect::<Vec<_>>()
    });
    let timeouts = (0..1_000_000_u64, 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos));
    let defaults = select(vec![DefaultDecision::Allow, DefaultDecision::Deny]);
    (any::<String>(), options, timeouts, defaults, any::<bool>()).prop_map(
        |(prompt, options, timeout, default, fallback)| Approval { fallback, prompt, options, timeout, default },
    )
}

fn any_message() -> impl Strategy<Value = UserMessage> {
    (any::<String>(), select(vec![Level::Info, Level::Warning, Level::Error]), any::<Option<String>>())
        .prop_map(|(text, level, source)| UserMessage { text, level, source })
}

fn any_answer() -> impl Strategy<Value = Says> {
    prop_oneof![
        Just(Says::Continue),
        any_bag().prop_map(Says::Respond),
        Just(Says::Deny),
        any_bag().prop_map(Says::Replace),
        ("[a-c]", 5..9_i64).prop_map(|(key, value)| Says::Set(key, value)),
        any_injection().prop_map(Says::Inject),
        any_approval().prop_map(Says::Ask),
        Just(Says::Fail),
        Just(Says::Panic),
    ]
}

prop_compose! {
    fn any_spec(roles: Vec<HookRole>)(
        priority in -2..3_i64,
        role in select(roles),
        on_error in select(vec![OnError::Continue, OnError::Deny]),
        answer in any_answer(),
        reason in prop::option::of("[a-z]{0,5}"),
        message in prop::option::of(any_message()),
        suppress_output: bool,
        slow: bool,
    ) -> Spec {
        Spec { name: String::new(), priority, role, on_error, answer, reason, message, suppress_output, slow }
    }
}

fn named(prefix: &'static str, mut specs: Vec<Spec>) -> Vec<Spec> {
    for (index, spec) in specs.iter_mut().enumerate() {
        spec.name = format!("{prefix}{index}");
    }
    specs
}

fn any_specs() -> impl Strategy<Value = Vec<Spec>> {
    // Gates three times as often, and seldom all of them behind a denial.
    let roles = vec![HookRole::Gate, HookRole::Gate, HookRole::Gate, HookRole::Observer];
    prop::collection::vec(any_spec(roles), 0..8).prop_map(|specs| named("hook", specs))
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_map() -> impl Strategy<Value = Map> {
    prop::collection::vec(("[a-z]{1,4}", any_value()), 0..5).prop_map(|fields| fields.into_iter().collect())
}

/// Every result that has a flat form.
fn any_result() -> impl Strategy<Value = HookResult> {
    let actions = prop_oneof![
        Just(Action::Continue),
        any_map().prop_map(Action::Respond),
        Just(Action::Deny),
        any_map().prop_map(|map| Action::Modify(DataChange::Replace(map))),
        any_injection().prop_map(|injection| Action::InjectContext(Box::new(injection))),
        any_approval().prop_map(|approval| Action::AskUser(Box::new(approval))),
    ];
    (actions, any::<Option<String>>(), prop::option::of(any_message()), any::<bool>()).prop_map(
        |(action, reason, message, suppress_output)| HookResult {
            action,
            reason,
            message: message.map(Box::new),
            output: None,
            suppress_output,
        },
    )
}

/// The same value, with the fields of every object put in the other way round.
fn reordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reordered).collect(),
        Value::Object(map) => Value::Object(reordered_map(map)),
        plain => plain.clone(),
    }
}

fn reordered_map(map: &Map) -> Map {
    map.iter().rev().map(|(key, value)| (key.clone(), reordered(value))).collect()
}

/// Every place in the value that holds something else than an object or a list with content.
fn leaves(value: &mut Value) -> Vec<&mut Value> {
    let is_leaf = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    };
    match value {
        leaf if is_leaf => vec![leaf],
        Value::Array(items) => items.iter_mut().flat_map(leaves).collect(),
        Value::Object(map) => map.values_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

// ---- the laws ----------------------------------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_registry_does_what_the_specification_says(specs in any_specs(), data in any_bag()) {
        let (came, outcome) = Registry::new(&specs).emit(&data);
        prop_assert_eq!(came, model(&specs, &data));
        prop_assert_eq!(outcome.data.timestamp().is_some(), !specs.is_empty());
    }

    #[test]
    fn the_machine_does_what_the_specification_says_without_json(specs in any_specs(), data in any_bag()) {
        prop_assert_eq!(drive(&specs, &data), model(&specs, &data));
    }

    #[test]
    fn observers_side_by_side_change_nothing_else(specs in any_specs(), data in any_bag()) {
        let side_by_side = HookRegistry::builder().parallel_observers().build();
        let parallel = Registry { hooks: side_by_side, ran: Arc::default() };
        for spec in &specs {
            parallel.register(spec);
        }
        prop_assert_eq!(parallel.emit(&data).0, model(&specs, &data));
    }

    #[test]
    fn unregistering_restores_the_former_outcome(
        specs in any_specs(),
        extra in any_spec(vec![HookRole::Gate, HookRole::Observer]),
        at: Index,
        data in any_bag(),
    ) {
        let (before, after) = specs.split_at(at.index(specs.len() + 1));
        let registry = Registry::new(before);
        let registration = registry.register(&Spec { name: "extra".to_owned(), ..extra });
        for spec in after {
            registry.register(spec);
        }
        registry.emit(&data);
        registration.unregister();
        prop_assert_eq!(registry.emit(&data).0, model(&specs, &data));
    }

    #[test]
    fn observers_never_change_the_outcome(
        specs in any_specs(),
        observers in prop::collection::vec(any_spec(vec![HookRole::Observer]), 1..4),
        data in any_bag(),
    ) {
        let registry = Registry::new(&specs);
        let (alone, outcome) = registry.emit(&data);
        for observer in named("observer", observers) {
            registry.register(&observer);
        }
        let (watched, watched_outcome) = registry.emit(&data);
        prop_assert_eq!(
            (watched.decision, watched.data, watched.approvals, watched.injections, watched.responses),
            (alone.decision, alone.data, alone.approvals, alone.injections, alone.responses)
        );
        // In the flat view, messages and the wish to suppress output are all that an observer may add.
        let without_messages = |outcome: &Outcome| {
            let mut flat = outcome.flat();
            flat.data.iter_mut().for_each(|data| drop(data.remove("timestamp")));
            let (user_message, user_message_level, user_message_source) = (None, Level::Info, None);
            FlatResult { user_message, user_message_level, user_message_source, suppress_output: false, ..flat }
        };
        prop_assert_eq!(without_messages(&watched_outcome), without_messages(&outcome));
    }

    #[test]
    fn the_order_of_registration_does_not_matter_when_priorities_differ(
        (specs, shuffled) in any_specs()
            .prop_map(|mut specs| {
                specs.iter_mut().zip(0..).for_each(|(spec, priority)| spec.priority = priority);
                specs
            })
            .prop_flat_map(|specs| (Just(specs.clone()), Just(specs).prop_shuffle())),
        data in any_bag(),
    ) {
        prop_assert_eq!(Registry::new(&shuffled).emit(&data).0, Registry::new(&specs).emit(&data).0);
    }

    #[test]
    fn every_result_survives_the_way_through_json(result in any_result()) {
        let text = serde_json::to_string(&result).unwrap();
        prop_assert_eq!(serde_json::from_str::<HookResult>(&text).unwrap(), result);
    }

    #[test]
    fn a_field_that_is_set_becomes_the_whole_data_in_the_flat_form(data in any_map(), key in "[a-z]{1,4}", value in any_value()) {
        let set = HookResult::set(key.clone(), value.clone()).because("why");
        let flat = set.into_flat(&EventData::from(data.clone()));
        let mut whole = data;
        whole.insert(key, value);
        prop_assert_eq!(HookResult::from_flat(flat), Ok(HookResult::modify(whole).because("why")));
    }

    #[test]
    fn the_digest_does_not_depend_on_the_order_of_keys(map in any_map()) {
        let mut reversed = EventData::new();
        for (key, value) in map.iter().rev() {
            reversed.insert(key.as_str(), reordered(value));
        }
        let layered = HookRegistry::new();
        layered.set_default_fields(map.clone());
        let merged = layered.emit(EVENT, EventData::new());
        let merged = futures::FutureExt::now_or_never(merged).unwrap().unwrap().data;
        let digest = EventData::from(map).digest().unwrap();
        prop_assert_eq!((reversed.digest().unwrap(), merged.digest().unwrap()), (digest, digest));
    }

    #[test]
    fn the_digest_changes_with_every_change_of_a_value(map in any_map(), at: Index, value in any_value()) {
        let mut changed = Value::Object(map.clone());
        let mut places = leaves(&mut changed);
        let place = at.index(places.len());
        *places[place] = if map.is_empty() { json!({ "new": value }) } else { value };
        let Value::Object(changed) = changed else { panic!("a map stays a map") };
        let digest = |map: &Map| EventData::from(map.clone()).digest().unwrap();
        prop_assert_eq!(digest(&changed) == digest(&map), changed == map);
    }
}
