//! The world around the hooks of a case: registry, session, and everything that can be looked at afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::testing::{CollectingDisplay, ScriptedAnswer, ScriptedApprovals};
use amplifier_core::{
    ApprovalError, ApprovalRules, AuditLog, AuditRecord, ContextManager, Coordinator, Display, DisplayMessage,
    HookRegistry, InjectedMessage, MemoryAudit, PortError, Receipt, SessionConfig,
};
use serde_json::Value;

use crate::conformance::case::{Case, Session};
use crate::conformance::hook::Hooks;

pub(super) struct World {
    pub hooks: Hooks,
    pub session: Option<Coordinator>,
    pub person: ScriptedApprovals,
    pub context: Context,
    pub display: Screen,
    pub audit: Audit,
}

impl World {
    pub(super) fn new(case: &Case) -> Self {
        let builder = HookRegistry::builder();
        let registry = if case.parallel_observers { builder.parallel_observers() } else { builder }.build();
        registry.set_default_fields(case.defaults.clone());
        registry.set_reserved_fields(case.reserved.clone());
        let broken = |part: &str| case.session.iter().any(|session| session.broken.iter().any(|name| name == part));
        let script = case.session.as_ref().and_then(|session| session.approvals.clone()).unwrap_or_default();
        let mut world = Self {
            hooks: Hooks::new(registry),
            session: None,
            person: ScriptedApprovals::new(script.iter().map(scripted)),
            context: Context { broken: broken("context"), ..Context::default() },
            display: Screen { broken: broken("display"), shown: CollectingDisplay::new() },
            audit: Audit { broken: broken("audit"), log: MemoryAudit::new() },
        };
        world.session = case.session.as_ref().map(|session| world.coordinator(session));
        for hook in &case.hooks {
            world.hooks.register(hook).unwrap();
        }
        world
    }

    fn coordinator(&self, session: &Session) -> Coordinator {
        let rules = serde_json::to_string(&session.rules).unwrap();
        let builder = Coordinator::builder(self.hooks.registry.clone())
            .context(self.context.clone())
            .display(self.display.clone())
            .audit(self.audit.clone())
            .approval_rules(ApprovalRules::from_json(&rules).unwrap())
            .operations(session.operations.clone())
            .config(SessionConfig {
                injection_size_limit: session.injection_size_limit,
                injection_budget_per_turn: session.injection_budget_per_turn,
                over_budget: session.over_budget,
                forbid_default_allow: session.forbid_default_allow,
                audit_required: session.audit_required,
            });
        match session.approvals {
            Some(_) => builder.approvals(self.person.clone()).build(),
            None => builder.build(),
        }
    }
}

fn scripted(entry: &Value) -> ScriptedAnswer {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    if let Some(seconds) = entry.get("$after") {
        ScriptedAnswer::After(Duration::from_secs_f64(seconds.as_f64().unwrap()), text(&entry["answer"]))
    } else if let Some(rule) = entry.get("$rule") {
        ScriptedAnswer::Rule(text(&entry["answer"]), serde_json::from_value(rule.clone()).unwrap())
    } else if entry.get("$hang").is_some() {
        ScriptedAnswer::Silence
    } else if let Some(error) = entry.get("$error") {
        ScriptedAnswer::Error(ApprovalError::Failed(text(error)))
    } else {
        ScriptedAnswer::Answer(text(entry))
    }
}

#[derive(Clone, Default)]
pub(super) struct Context {
    broken: bool,
    pub messages: Arc<Mutex<Vec<InjectedMessage>>>,
}

impl ContextManager for Context {
    async fn add_message(&self, message: InjectedMessage) -> Result<(), PortError> {
        if self.broken {
            return Err("the context is broken".into());
        }
        self.messages.lock().unwrap().push(message);
        Ok(())
    }
}

#[derive(Clone)]
pub(super) struct Screen {
    broken: bool,
    pub shown: CollectingDisplay,
}

impl Display for Screen {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        if self.broken {
            return Err("the display is broken".into());
        }
        self.shown.show_message(message).await
    }
}

#[derive(Clone)]
pub(super) struct Audit {
    broken: bool,
    pub log: MemoryAudit,
}

impl AuditLog for Audit {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        if self.broken {
            return Err("the audit log is broken".into());
        }
        self.log.record(record)
    }
}
