//! Settings of a hook that make the guard of a module useless.

use std::collections::BTreeSet;

use amplifier_core::{HookRole, Map, OnError};

use super::events::KnownEvents;
use super::{Diagnostic, HookDefinition, MistakeCode};
use crate::builtin::{Module, ModuleContext};
use crate::condition::{CheckContext, Condition, Facts};
use crate::environment::HookEnvironment;

/// Returns the settings that let data pass a guard: a role without an effect, or a condition that is never true at one of its events.
pub(super) fn check(
    definition: &HookDefinition,
    module: &Module,
    config: &Map,
    host: &HookEnvironment,
) -> Vec<Diagnostic> {
    let entry = &definition.entry;
    let (folder, held, is_own) = (definition.folder(), definition.pinned_files.clone(), definition.is_own);
    let context = ModuleContext { host, folder, held, is_own, who: module.name };
    let hooks = module.make(config, &context).unwrap_or_default();
    let guards: Vec<_> =
        hooks.iter().filter(|hook| hook.role == HookRole::Gate && hook.on_error == OnError::Deny).collect();
    let warning = |key: &str, message: String, help: &str| {
        let error = definition.problem_in(key, message).coded(MistakeCode::NoEffect);
        Diagnostic::warning(error.helped(Some(help.to_owned())))
    };
    let mut found = Vec::new();
    if entry.role == Some(HookRole::Observer) && !guards.is_empty() {
        let message = format!("an observer has no effect: `{}` would change and deny nothing", module.name);
        found.push(warning("role", message, "remove `role`"));
    }
    let condition = entry.when.as_deref().filter(|_| entry.on.is_none()).map(Condition::compile);
    if let Some(Ok(condition)) = condition {
        let declared = BTreeSet::new();
        let known = KnownEvents { declared: &declared };
        let lacks_field = |event: &&str| {
            let events = known.specs(event);
            let context = CheckContext { on: &[], events, tools: &[] };
            let (findings, _) = condition.check(&context, &Facts::default(), true);
            findings.iter().any(|finding| finding.code == MistakeCode::UnknownField)
        };
        let events: Vec<&str> =
            guards.iter().flat_map(|hook| &hook.events).map(String::as_str).filter(lacks_field).collect();
        if !events.is_empty() {
            let message = format!(
                "the condition reads a field that `{}` does not have, so it passes unchecked",
                events.join("`, `")
            );
            found.push(warning("when", message, "remove the condition, or name the events with `on`"));
        }
    }
    found
}
