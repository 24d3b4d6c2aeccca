//! Selection of the rule that decides on a tool call.

use amplifier_core::{EventData, HookError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RuleMatch;
use super::pattern::{COMMAND, Glob, Pattern};
use crate::condition::Scope;
use crate::shell;

/// A rule for some calls of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PatternRule {
    /// Name of the tool, as a glob.
    tool: String,
    /// Glob on one field of the tool's input. Without a pattern, the rule matches every call of the tool.
    #[serde(default)]
    pattern: Option<String>,
    /// The field that `pattern` applies to. Default: `command` for `Bash`, `file_path` for tools that work on files.
    #[serde(default)]
    field: Option<String>,
    /// The action: `allow`, `ask` or `deny`.
    pub(super) action: PatternAction,
    /// The prompt of the approval request, or the reason for the denial; a template.
    #[serde(default)]
    pub(super) prompt: Option<String>,
}

/// An action, ordered from permissive to strict. `Allow` only means that this module has no objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PatternAction {
    Allow,
    Ask,
    Deny,
}

impl PatternRule {
    /// Returns the field of the rule; `None` if the rule applies to the whole input.
    pub(super) fn field(&self) -> Result<Option<&str>, String> {
        let known = match self.tool.as_str() {
            "Bash" => Some(COMMAND),
            "Read" | "Write" | "Edit" | "MultiEdit" => Some("file_path"),
            "Task" => Some("task"),
            _ => None,
        };
        match (self.field.as_deref().or(known), &self.pattern) {
            (None, Some(_)) => Err(format!("`pattern` needs a `field` for the tool `{}`", self.tool)),
            (Some(_), None) if self.field.is_some() => Err("`field` needs a `pattern`".to_owned()),
            (field, _) => Ok(field),
        }
    }
}

pub(super) struct PatternRules {
    rules: Vec<CompiledRule>,
    default: PatternAction,
}

struct CompiledRule {
    tool: Glob,
    pattern: Option<Pattern>,
    effect: PatternAction,
}

impl PatternRules {
    pub(super) fn new(entries: &[PatternRule], default: PatternAction) -> Result<Self, String> {
        let compile = |entry: &PatternRule| {
            let tool = Glob::new(&entry.tool).map_err(|problem| format!("`tool`: {problem}"))?;
            let pattern = match (entry.field()?, &entry.pattern) {
                (Some(field), Some(pattern)) => Some(Pattern::new(field, pattern)?),
                _ => None,
            };
            Ok(CompiledRule { tool, pattern, effect: entry.action })
        };
        let rules = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| compile(entry).map_err(|problem: String| format!("`rules[{at}]`: {problem}")));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, default })
    }

    pub(super) fn find_match(&self, event: &str, data: &EventData, scope: &Scope) -> Result<RuleMatch, HookError> {
        let tool = data.text("tool_name").ok_or_else(|| HookError::failed("the event has no `tool_name`"))?;
        let of_tool: Vec<(usize, &CompiledRule)> =
            self.rules.iter().enumerate().filter(|(_, rule)| rule.tool.matches(tool)).collect();
        let mut whole = RuleMatch::Default;
        for (at, rule) in &of_tool {
            if rule.pattern.as_ref().map_or(Ok(true), |pattern| pattern.matches(event, data, scope))? {
                whole = RuleMatch::Rule(*at);
                break;
            }
        }
        let is_about_commands =
            of_tool.iter().any(|(_, rule)| rule.pattern.as_ref().is_some_and(|pattern| pattern.field == COMMAND));
        match data.text_at("/tool_input/command") {
            Some(command) if is_about_commands => Ok(self.strictest_of(command, &of_tool, whole)),
            _ => Ok(whole),
        }
    }

    /// Finds the strictest match of all commands on a line: `git status; rm x` is not allowed because it begins with `git
    /// status`.
    fn strictest_of(&self, command: &str, rules: &[(usize, &CompiledRule)], whole: RuleMatch) -> RuleMatch {
        let parts = match shell::commands(command) {
            Ok(parts) => parts,
            // A command that cannot be analysed requires approval at least, even if it looks like an allowed one.
            Err(_) if self.effect(whole) > PatternAction::Allow => return whole,
            Err(_) if self.default == PatternAction::Deny => return RuleMatch::Default,
            Err(_) => return RuleMatch::Unclear,
        };
        let of_parts = parts.iter().map(|part| {
            let matches = |rule: &CompiledRule| match &rule.pattern {
                None => true,
                Some(pattern) if pattern.field != COMMAND => false,
                // A rule that allows has to match for certain, a rule that denies only possibly: a program in another folder
                // may differ from the program that its name suggests.
                Some(pattern) if rule.effect == PatternAction::Allow => {
                    pattern.matches_command(part.with_path.as_ref().unwrap_or(&part.plain))
                }
                Some(pattern) => [Some(&part.plain), part.with_path.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|command| pattern.matches_command(command) || pattern.may_match_command(command)),
            };
            rules.iter().find(|(_, rule)| matches(rule)).map_or(RuleMatch::Default, |(at, _)| RuleMatch::Rule(*at))
        });
        // A rule may match the whole line, such as one about a pipe. Such a match counts if it is stricter than `allow`.
        let as_it_stands =
            (self.effect(whole) > PatternAction::Allow && whole != RuleMatch::Default) || parts.is_empty();
        let all = of_parts.chain(as_it_stands.then_some(whole));
        // Of equally strict matches the first one decides, so that the prompt shows the first command.
        all.reduce(|one, other| if self.effect(other) > self.effect(one) { other } else { one }).unwrap_or(whole)
    }

    fn effect(&self, rule_match: RuleMatch) -> PatternAction {
        match rule_match {
            RuleMatch::Rule(at) => self.rules.get(at).map_or(PatternAction::Deny, |rule| rule.effect),
            RuleMatch::Default => self.default,
            RuleMatch::Unclear => PatternAction::Ask,
        }
    }
}
