//! The form of the cases, as `conformance/README.md` describes it.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[allow(dead_code, reason = "for people")]
    pub about: String,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub name: String,
    /// The section of `docs/specification.md` that the case checks.
    pub section: String,
    pub rule: String,
    #[serde(default)]
    pub defaults: Map<String, Value>,
    #[serde(default)]
    pub reserved: Map<String, Value>,
    #[serde(default)]
    pub parallel_observers: bool,
    pub session: Option<Session>,
    #[serde(default)]
    pub hooks: Vec<Hook>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hook {
    pub name: String,
    #[serde(default = "tool_pre")]
    pub on: String,
    #[serde(default)]
    pub priority: i64,
    #[serde(default)]
    pub role: amplifier_core::HookRole,
    #[serde(default)]
    pub on_error: amplifier_core::OnError,
    #[serde(default = "thirty")]
    pub timeout: f64,
    #[serde(default)]
    pub answer: Value,
    #[serde(default)]
    pub answers: Vec<Value>,
}

fn tool_pre() -> String {
    "tool:pre".to_owned()
}

fn thirty() -> f64 {
    30.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Session {
    #[serde(default = "size_limit")]
    pub injection_size_limit: Option<usize>,
    #[serde(default = "budget")]
    pub injection_budget_per_turn: Option<usize>,
    #[serde(default)]
    pub over_budget: amplifier_core::OverBudget,
    #[serde(default)]
    pub forbid_default_allow: bool,
    #[serde(default)]
    pub audit_required: bool,
    #[serde(default)]
    pub approvals: Option<Vec<Value>>,
    #[serde(default)]
    pub rules: Map<String, Value>,
    #[serde(default)]
    pub operations: Vec<amplifier_core::OperationPart>,
    #[serde(default)]
    pub broken: Vec<String>,
}

fn size_limit() -> Option<usize> {
    Some(10_240)
}

fn budget() -> Option<usize> {
    Some(10_000)
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Step {
    Emit(Emit),
    Collect(Collect),
    Process(Box<Process>),
    Register(Register),
    Unregister(Unregister),
    Defaults(Defaults),
    BeginTurn(BeginTurn),
    Wait(Wait),
    List(List),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Emit {
    pub emit: String,
    #[serde(default)]
    pub data: Map<String, Value>,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Collect {
    pub collect: String,
    #[serde(default)]
    pub data: Map<String, Value>,
    #[serde(default = "one")]
    pub timeout: f64,
    #[serde(default)]
    pub expect: Expect,
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    pub process: Value,
    pub event: String,
    pub hook: String,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Register {
    pub register: Hook,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unregister {
    pub unregister: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    pub defaults: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BeginTurn {
    pub begin_turn: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    pub wait: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    // Present even if null, or every unreadable step would be taken for a list.
    #[serde(deserialize_with = "present")]
    pub list: Option<String>,
    #[serde(default)]
    pub expect: Expect,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Expect {
    pub decision: Option<String>,
    pub by: Option<String>,
    pub reason: Option<String>,
    pub reason_has: Vec<String>,
    pub data: Option<Map<String, Value>>,
    pub timestamp: Option<bool>,
    pub ran: Option<Vec<String>>,
    pub saw: Map<String, Value>,
    pub told: Map<String, Value>,
    pub stamped: Vec<String>,
    pub approvals: Option<Vec<Value>>,
    pub injections: Option<Vec<Value>>,
    pub messages: Option<Vec<Value>>,
    pub responses: Option<Vec<Value>>,
    pub reports: Option<Vec<Value>>,
    pub flat: Map<String, Value>,
    pub error: Option<String>,
    pub names: Option<Vec<String>>,
    pub verdict: Option<String>,
    pub asked: Option<Vec<Value>>,
    pub context: Option<Vec<Value>>,
    pub shown: Option<Vec<Value>>,
    pub audit: Vec<String>,
    pub no_audit: Vec<String>,
}
