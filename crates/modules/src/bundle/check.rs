//! The complete check of a bundle: all mistakes of all its files.

use std::collections::BTreeSet;
use std::path::Path;

use amplifier_core::{DecisionKind, EventEffects, EventName, HookRegistry};
use serde_json::Value;

use super::load::HooksKey;
use super::position::entry_lines;
use super::read::load_all;
use super::{
    BundleError, BundleTest, Diagnostic, HookDefinition, HookKind, LoadedBundle, MistakeCode, Severity, expressions,
    module_config, yaml_traps,
};
use crate::condition::{did_you_mean, nearest_field, suggestion};
use crate::environment::HookEnvironment;
use crate::tool_schema::ToolSchema;

/// A bundle that is read in spite of mistakes, to report all of them. Nothing of it can run.
#[derive(Debug)]
pub struct BundleCheck {
    bundle: LoadedBundle,
    mistakes: Vec<BundleError>,
}

impl BundleCheck {
    /// Reads a bundle and its includes.
    pub fn load(file: &Path) -> Self {
        let (bundle, mistakes) = load_all(file);
        Self { bundle, mistakes }
    }

    /// Returns the parts that can be read.
    pub fn bundle(&self) -> &LoadedBundle {
        &self.bundle
    }

    /// Checks everything, and returns all findings in the order of the files. Hooks are compiled, but not registered.
    pub fn finish(self, host: &HookEnvironment, tools: &[ToolSchema]) -> Vec<Diagnostic> {
        let bundle = &self.bundle;
        let mut found: Vec<Diagnostic> = self.mistakes.iter().cloned().map(Diagnostic::error).collect();
        let is_readable = |empty: &BundleError| !self.mistakes.iter().any(|mistake| mistake.file == empty.file);
        found.extend(bundle.empty_files().filter(is_readable).map(Diagnostic::error));
        found.extend(bundle.unknown_events().into_iter().map(Diagnostic::error));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        if !names.is_empty() {
            found.extend(bundle.unknown_tools(&names).into_iter().map(Diagnostic::error));
        }
        for definition in &bundle.hooks {
            found.extend(self.hook(definition, host, tools));
        }
        let tests = bundle.tests.iter().zip(&bundle.test_locations);
        found.extend(tests.flat_map(|((file, case), (location, source))| {
            let mistakes = case_mistakes(case, bundle, tools).into_iter();
            mistakes.map(move |(severity, message, help)| {
                let error = BundleError::at(*location, message, source, file).coded(MistakeCode::Test).helped(help);
                Diagnostic { severity, error }
            })
        }));
        found.extend(bundle.warnings().into_iter().map(Diagnostic::warning));
        sort(&mut found, bundle);
        found
    }

    fn hook(&self, definition: &HookDefinition, host: &HookEnvironment, tools: &[ToolSchema]) -> Vec<Diagnostic> {
        let lines: BTreeSet<usize> =
            entry_lines(definition.location, &definition.source).map(|(line, _)| line).collect();
        let is_readable =
            !self.mistakes.iter().any(|mistake| mistake.file == definition.file && lines.contains(&mistake.line));
        let mut found = expressions::check(definition, &self.bundle, tools);
        let is_compilable = is_readable && !found.iter().any(|found| found.error.code == MistakeCode::Expression);
        if is_compilable {
            found.extend(match definition.entry.kind() {
                Ok(HookKind::Module(_)) => module_config::check(definition, host, tools),
                _ => definition.compile_error(host).map(Diagnostic::error).into_iter().collect(),
            });
        }
        found.extend(definition.yaml_traps().map(Diagnostic::error));
        if definition.entry.enabled == Some(false) {
            found.iter_mut().for_each(|found| {
                let message = format!("the hook is disabled and has a mistake: {}", found.error.message);
                let error = BundleError { message, ..found.error.clone() }.coded(MistakeCode::Disabled);
                *found = Diagnostic::warning(error);
            });
        }
        found
    }
}

impl HookDefinition {
    /// Returns the mistakes that YAML accepts.
    fn yaml_traps(&self) -> impl Iterator<Item = BundleError> {
        let mut lines = entry_lines(self.location, &self.source).peekable();
        let traps = std::iter::from_fn(move || {
            let (number, line) = lines.next()?;
            let next = lines.peek().map_or("", |(_, next)| *next);
            Some(yaml_traps::silent(number, line, next).map(|trap| (trap, line)))
        });
        traps.flatten().map(|(trap, line)| {
            let error = BundleError::whole(&self.file, trap.message).coded(MistakeCode::Yaml);
            error.helped(Some(trap.help)).moved(trap.line, trap.column, line)
        })
    }

    /// Returns the error that registering the hook would have.
    pub(super) fn compile_error(&self, host: &HookEnvironment) -> Option<BundleError> {
        let mut definition = self.clone();
        definition.entry.enabled = None;
        let mut alone = LoadedBundle::default();
        alone.hooks.push(definition);
        alone.register(&HookRegistry::new(), host).err()
    }
}

impl LoadedBundle {
    fn empty_files(&self) -> impl Iterator<Item = BundleError> {
        let files = self.files.iter().zip(&self.contents);
        let empty = files.filter(|(_, content)| matches!(content, Some((_, HooksKey::BlankFile))));
        empty.map(|(file, _)| {
            let help = "write `hooks: []` for a bundle without hooks; `amplifier hooks new rule` creates an example";
            let error = BundleError::whole(file, "the file is empty").coded(MistakeCode::Empty);
            error.helped(Some(help.to_owned()))
        })
    }
}

/// Returns the mistakes of a test that depend on the other parts of the bundle.
fn case_mistakes(
    case: &BundleTest,
    bundle: &LoadedBundle,
    tools: &[ToolSchema],
) -> Vec<(Severity, String, Option<String>)> {
    let mut found = Vec::new();
    for event in case.events() {
        let mistake = bundle.known_events().mistake(event).filter(|_| !event.contains('*'));
        found.extend(mistake.map(|(message, help)| (Severity::Error, message, Some(help))));
    }
    let names: Vec<String> = bundle.hooks.iter().map(|definition| definition.entry.shown_name()).collect();
    if let Some(by) = case.expect.by.as_ref().filter(|by| !names.contains(by)) {
        let hint = did_you_mean(by, names.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| format!("the hooks are {}", names.join(", ")));
        found.push((Severity::Error, format!("unknown hook `{by}` in `expect`"), Some(hint)));
    }
    if let Some(name) = case.data.get("tool_name").and_then(Value::as_str) {
        match tools.iter().find(|tool| tool.name == name) {
            Some(tool) => found.extend(input_mistakes(case, tool)),
            None => {
                let hint = did_you_mean(name, tools.iter().map(|tool| tool.name.as_str()));
                found
                    .extend(hint.map(|hint| (Severity::Error, format!("unknown tool `{name}` in `data`"), Some(hint))));
            }
        }
    }
    let spec = case.event.parse::<EventName>().ok().and_then(|name| name.spec());
    for field in case.data.keys() {
        let fields = || spec.iter().flat_map(|spec| spec.fields).map(|field| field.name);
        if !fields().any(|known| known == field)
            && let Some(nearest) = nearest_field(field, fields())
        {
            let hint = Some(suggestion(nearest));
            found.push((Severity::Error, format!("unknown field `{field}` of `{}` in `data`", case.event), hint));
        }
    }
    let effects = spec.map(|spec| spec.effects);
    let is_idle = match case.expect.decision.as_deref() {
        Some(decision) if decision == DecisionKind::Deny.as_str() || decision == DecisionKind::Modify.as_str() => {
            effects == Some(EventEffects::Observed)
        }
        _ => false,
    };
    if is_idle {
        let message = format!(
            "the decision at `{}` is never `{}`",
            case.event,
            case.expect.decision.as_deref().unwrap_or_default()
        );
        let help = "the event reports what has happened; test an earlier one, such as `tool:pre`".to_owned();
        found.push((Severity::Error, message, Some(help)));
    }
    found
}

/// Returns a mistake for each field of `tool_input` that the tool does not have: the hook would decide about a call that no session makes.
fn input_mistakes(case: &BundleTest, tool: &ToolSchema) -> Vec<(Severity, String, Option<String>)> {
    let known = tool.input["properties"].as_object();
    let Some((input, known)) = case.data.get("tool_input").and_then(Value::as_object).zip(known) else {
        return Vec::new();
    };
    let unknown = input.keys().filter(|field| !known.contains_key(*field));
    let mistake = |field: &String| {
        let hint = nearest_field(field, known.keys().map(String::as_str)).map(suggestion);
        let names = known.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let message = format!("unknown field `{field}` of the input of `{}` in `data`", tool.name);
        (Severity::Warning, message, Some(hint.unwrap_or_else(|| format!("the fields are {names}"))))
    };
    unknown.map(mistake).collect()
}

/// Sorts findings by file, as read, and position. Removes those found twice.
fn sort(found: &mut Vec<Diagnostic>, bundle: &LoadedBundle) {
    let place = |found: &Diagnostic| {
        let BundleError { file, line, column, .. } = &found.error;
        let at = bundle.files.iter().position(|known| known == file).unwrap_or(usize::MAX);
        (at, *line, *column)
    };
    found.sort_by_key(place);
    let mut known: Vec<(usize, usize, usize, String)> = Vec::new();
    found.retain(|found| {
        let (file, line, column) = place(found);
        let key = (file, line, column, found.error.message.clone());
        let is_new = !known.contains(&key);
        known.push(key);
        is_new
    });
}
