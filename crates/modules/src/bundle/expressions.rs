//! The static check of a hook: its expressions, and the effect of its action.

use amplifier_core::{EventEffects, EventName, EventSpec, SESSION_END, TOOL_POST, catalog};
use serde_json::Value;

use super::{Diagnostic, HookDefinition, HookKind, LoadedBundle, MistakeCode, OneOrMany, Severity};
use crate::condition::{CheckContext, Condition, ConditionError, Facts, Finding, Span, nearest_field};
use crate::template::Template;
use crate::tool_schema::ToolSchema;

/// Checks a hook against the events and tools that it names.
pub(super) fn check(definition: &HookDefinition, bundle: &LoadedBundle, tools: &[ToolSchema]) -> Vec<Diagnostic> {
    let entry = &definition.entry;
    let on: &[String] = entry.on.as_ref().map_or(&[], OneOrMany::all);
    let specs: Option<Vec<_>> = on.iter().map(|pattern| bundle.known_events().specs(pattern)).collect();
    let events = specs.map(|specs| specs.concat()).filter(|specs| !specs.is_empty());
    let mut check = HookCheck { definition, bundle, context: CheckContext { on, events, tools }, found: Vec::new() };
    let is_rule = matches!(entry.kind(), Ok(HookKind::Rule(_))) || entry.rule.is_some();
    let facts = entry.when.as_deref().map_or_else(Facts::default, |when| check.condition(when));
    if is_rule {
        check.texts(&facts);
        check.pointers(&facts);
        check.effects();
        check.late_request();
        check.words_as_text();
    }
    check.found
}

/// Returns `true` if an action has an effect at an event.
type HasEffect = fn(&EventSpec) -> bool;

struct HookCheck<'a> {
    definition: &'a HookDefinition,
    bundle: &'a LoadedBundle,
    context: CheckContext<'a>,
    found: Vec<Diagnostic>,
}

impl HookCheck<'_> {
    /// Checks the condition, and returns what is known when it is true.
    fn condition(&mut self, when: &str) -> Facts {
        let condition = match Condition::compile(when) {
            Ok(condition) => condition,
            Err(error) => {
                self.invalid("when", &error);
                return Facts::default();
            }
        };
        let (findings, facts) = condition.check(&self.context, &Facts::default(), true);
        self.report("when", when, 0, findings);
        self.counted_events("when", when, &condition);
        facts
    }

    /// Checks the templates.
    fn texts(&mut self, facts: &Facts) {
        let entry = &self.definition.entry;
        let texts = [
            ("deny", &entry.deny),
            ("ask", &entry.ask),
            ("inject", &entry.inject),
            ("message", &entry.message),
            ("reason", &entry.reason),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                self.template(field, text, facts);
            }
        }
        for (pointer, value) in entry.modify.iter().flat_map(|modify| &modify.set) {
            self.value(&format!("modify.set.{pointer}"), value, facts);
        }
    }

    fn value(&mut self, field: &str, value: &Value, facts: &Facts) {
        match value {
            Value::String(text) => self.template(field, text, facts),
            Value::Array(items) => items.iter().for_each(|item| self.value(field, item, facts)),
            Value::Object(fields) => fields.values().for_each(|value| self.value(field, value, facts)),
            _ => {}
        }
    }

    fn template(&mut self, field: &str, text: &str, facts: &Facts) {
        let template = match Template::compile(text) {
            Ok(template) => template,
            Err(error) => return self.invalid(field, &error),
        };
        for (expression, begin) in template.expressions() {
            let (findings, _) = expression.check(&self.context, facts, false);
            self.report(field, text, begin, findings);
            self.counted_events(field, text, expression);
        }
    }

    fn invalid(&mut self, field: &str, error: &ConditionError) {
        self.found.push(Diagnostic::error(self.definition.expression_error(field, error)));
    }

    fn report(&mut self, field: &str, text: &str, begin: usize, findings: Vec<Finding>) {
        for Finding { severity, code, span, message, help } in findings {
            let error = ConditionError::new(text, span.shifted(begin), message).with_help(help);
            let error = self.definition.expression_error(field, &error).coded(code);
            self.found.push(Diagnostic { severity, error });
        }
    }

    /// Checks the events whose counts an expression uses.
    fn counted_events(&mut self, field: &str, text: &str, condition: &Condition) {
        for event in condition.counted_events() {
            if let Some((message, help)) = self.bundle.known_events().mistake(event) {
                let span = Span::new(text.find(event.as_str()).unwrap_or_default(), event.len());
                let error = ConditionError::new(text, span, message).with_help(Some(help));
                let error = self.definition.expression_error(field, &error).coded(MistakeCode::UnknownEvent);
                self.found.push(Diagnostic::error(error));
            }
        }
    }

    /// Checks the positions that a rule changes.
    fn pointers(&mut self, facts: &Facts) {
        let Some(modify) = &self.definition.entry.modify else { return };
        let redact = modify.redact.as_ref().map_or(&[][..], |redact| redact.as_slice());
        // `set` may add a field; the others need one that the data has.
        let set = modify.set.keys().map(|pointer| (pointer, false));
        for (pointer, must_exist) in set.chain(modify.remove.iter().chain(redact).map(|pointer| (pointer, true))) {
            let mut parts = pointer.split('/').skip(1);
            let (Some(field), part) = (parts.next(), parts.next()) else { continue };
            if let Some((severity, message, help)) = self.pointer_mistake(field, part, facts) {
                let error = self.definition.problem_in("modify", format!("`{pointer}`: {message}"));
                let error = error.coded(MistakeCode::UnknownField).helped(help);
                self.found.push(Diagnostic { severity, error });
            } else if must_exist {
                self.existing_position(pointer, facts);
            }
        }
    }

    /// Checks a position as a condition that reads it is checked.
    fn existing_position(&mut self, pointer: &str, facts: &Facts) {
        let mut parts = pointer.split('/').skip(1);
        let Some(field) = parts.next() else { return };
        let is_name = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        // Items of lists and names with other characters are not known to the schemas.
        let names = parts.take_while(|part| is_name(part) && !part.starts_with(|c: char| c.is_ascii_digit()));
        let expression = names.fold(field.to_owned(), |expression, part| format!("{expression}.{part}"));
        let Ok(condition) = Condition::compile(&expression) else { return };
        for Finding { severity, code, message, help, .. } in condition.check(&self.context, facts, false).0 {
            let error =
                self.definition.problem_in("modify", format!("`{pointer}`: {message}")).coded(code).helped(help);
            self.found.push(Diagnostic { severity, error });
        }
    }

    fn pointer_mistake(
        &self,
        field: &str,
        part: Option<&str>,
        facts: &Facts,
    ) -> Option<(Severity, String, Option<String>)> {
        let specs = self.context.events.as_ref()?;
        let fields = || specs.iter().flat_map(|spec| spec.fields).map(|field| field.name);
        if !fields().any(|known| known == field) {
            let is_elsewhere = catalog().iter().flat_map(|spec| spec.fields).any(|known| known.name == field);
            let nearest = nearest_field(field, fields()).map(|nearest| format!("did you mean `/{nearest}`?"));
            let severity = if is_elsewhere || nearest.is_some() { Severity::Error } else { Severity::Warning };
            let events: Vec<&str> = specs.iter().take(3).map(|spec| spec.name).collect();
            return Some((severity, format!("unknown field `{field}` of `{}`", events.join("`, `")), nearest));
        }
        let (part, names) = (part?, facts.values("tool_name").filter(|_| field == "tool_input")?);
        let tools: Option<Vec<&ToolSchema>> =
            names.iter().map(|name| self.context.tools.iter().find(|tool| name == tool.name.as_str())).collect();
        let inputs = || {
            tools
                .iter()
                .flatten()
                .filter_map(|tool| tool.input["properties"].as_object())
                .flat_map(|fields| fields.keys())
        };
        if tools.as_ref()?.is_empty() || inputs().any(|known| known == part) {
            return None;
        }
        let nearest = nearest_field(part, inputs().map(String::as_str));
        let severity = if nearest.is_some() { Severity::Error } else { Severity::Warning };
        let names: Vec<&str> = tools.iter().flatten().map(|tool| tool.name.as_str()).collect();
        let message = format!("unknown field `{part}` of the input of `{}`", names.join("`, `"));
        Some((severity, message, nearest.map(|nearest| format!("did you mean `/tool_input/{nearest}`?"))))
    }

    /// Checks for a request after the operation.
    fn late_request(&mut self) {
        let Some(specs) = self.context.events.as_ref().filter(|_| self.definition.entry.ask.is_some()) else { return };
        let post = TOOL_POST.name();
        if specs.iter().any(|spec| spec.name == post.as_str()) && self.is_named(post.as_str()) {
            let message =
                format!("`ask` at `{post}` comes after the tool has run, and decides if the model reads the result");
            let error = self.definition.problem_in("ask", message).coded(MistakeCode::NoEffect);
            let help = "to ask before the tool runs, write `on: tool:pre`".to_owned();
            self.found.push(Diagnostic::warning(error.helped(Some(help))));
        }
    }

    /// Checks for words in the place of a text: `deny: false` denies, with the reason "false".
    fn words_as_text(&mut self) {
        let entry = &self.definition.entry;
        let texts =
            [("deny", &entry.deny), ("ask", &entry.ask), ("inject", &entry.inject), ("message", &entry.message)];
        for (key, text) in texts {
            let word = text.as_deref().map(str::trim);
            let (severity, help) = match word {
                Some("false" | "off" | "null" | "none" | "~") => {
                    (Severity::Error, format!("remove `{key}`, or set `enabled: false` to switch the rule off"))
                }
                Some("true" | "on" | "always") => {
                    (Severity::Warning, format!("write the text that is shown: `{key}: …`"))
                }
                _ => continue,
            };
            let message = format!("`{key}: {}` is a text, and does not switch anything", word.unwrap_or_default());
            let error = self.definition.problem_in(key, message).coded(MistakeCode::Value).helped(Some(help));
            self.found.push(Diagnostic { severity, error });
        }
    }

    /// Returns `true` if the hook names this event, not only a pattern that matches it.
    fn is_named(&self, name: &str) -> bool {
        self.context.on.iter().any(|on| on.parse::<EventName>().is_ok_and(|on| on.canonical() == name))
    }

    /// Checks that the action has an effect.
    fn effects(&mut self) {
        let entry = &self.definition.entry;
        let actions: [(&str, bool, HasEffect); 4] = [
            ("deny", entry.deny.is_some(), |spec| spec.effects != EventEffects::Observed),
            ("ask", entry.ask.is_some(), |spec| spec.effects == EventEffects::All),
            ("modify", entry.modify.is_some(), |spec| spec.effects != EventEffects::Observed),
            // After the end of a session, no call to a model follows.
            ("inject", entry.inject.is_some(), |spec| {
                spec.effects != EventEffects::DenyOrModify && spec.name != SESSION_END.name().as_str()
            }),
        ];
        let Some((action, _, has_effect)) = actions.into_iter().find(|(_, given, _)| *given) else { return };
        let Some(specs) = &self.context.events else { return };
        let idle: Vec<&str> = specs.iter().filter(|spec| !has_effect(spec)).map(|spec| spec.name).collect();
        let (severity, shown): (_, Vec<&str>) = match idle.len() == specs.len() {
            true => (Severity::Error, idle.into_iter().take(3).collect()),
            // A pattern may match more than is meant.
            false => (Severity::Warning, idle.into_iter().filter(|name| self.is_named(name)).collect()),
        };
        if shown.is_empty() {
            return;
        }
        let help = match action {
            "ask" => "use `deny`, or an event before the operation, such as `tool:pre`",
            "inject" => "use an earlier event, such as `prompt:submit`",
            _ => "the event reports what has happened; use `message`, or an earlier event, such as `tool:pre`",
        };
        let message = format!("`{action}` has no effect at `{}`", shown.join("`, `"));
        let error = self.definition.problem_in(action, message).coded(MistakeCode::NoEffect);
        self.found.push(Diagnostic { severity, error: error.helped(Some(help.to_owned())) });
    }
}
