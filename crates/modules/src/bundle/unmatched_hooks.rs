//! Hooks for tools that a session does not have.

use globset::Glob;
use serde_json::Value;

use super::{BundleError, HookDefinition, HookKind, LoadedBundle, MistakeCode};
use crate::condition::{CheckContext, Condition, Facts};

impl LoadedBundle {
    /// Returns a warning for each hook that names tools, none of which a session has: the hook would never apply, silently. `tools` are the
    /// names of the session's tools.
    pub fn unmatched_hooks<T: AsRef<str>>(&self, tools: &[T]) -> Vec<BundleError> {
        let enabled = self.hooks.iter().filter(|definition| definition.entry.enabled != Some(false));
        enabled.filter_map(|definition| unmatched(definition, tools)).collect()
    }
}

fn unmatched<T: AsRef<str>>(definition: &HookDefinition, tools: &[T]) -> Option<BundleError> {
    let is_missing = |name: &String| {
        let matcher = Glob::new(name).map(|glob| glob.compile_matcher());
        !tools.iter().any(|tool| {
            let tool = tool.as_ref();
            tool == name || matcher.as_ref().is_ok_and(|matcher| matcher.is_match(tool))
        })
    };
    let named = [("when", tools_of_condition(definition)), ("config", tools_of_module(definition))];
    let (key, names) = named.into_iter().find(|(_, names)| !names.is_empty() && names.iter().all(is_missing))?;
    let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let hook = definition.entry.shown_name();
    let error = definition.problem_in(key, format!("hook `{hook}` never applies: the session has no tool {names}"));
    let has: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.as_ref())).collect();
    let help = match has.as_slice() {
        [] => "it has no tools".to_owned(),
        has => format!("it has {}", has.join(", ")),
    };
    Some(error.coded(MistakeCode::UnknownTool).helped(Some(help)))
}

/// Returns the tools for which the condition may be true; empty if for any.
fn tools_of_condition(definition: &HookDefinition) -> Vec<String> {
    let condition = definition.entry.when.as_deref().and_then(|when| Condition::compile(when).ok());
    let context = CheckContext { on: &[], events: None, tools: &[] };
    let facts = condition.map(|condition| condition.check(&context, &Facts::default(), true).1);
    let values = facts.as_ref().and_then(|facts| facts.values("tool_name"));
    values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the tools in the option `tools` of a built-in module; empty if it has none.
fn tools_of_module(definition: &HookDefinition) -> Vec<String> {
    let Ok(HookKind::Module(module)) = definition.entry.kind() else { return Vec::new() };
    let schema = module.schema();
    let configured = definition.entry.config.as_ref().and_then(|config| config.get("tools"));
    let tools = configured.or_else(|| schema.pointer("/properties/tools/default"));
    let names = tools.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}
