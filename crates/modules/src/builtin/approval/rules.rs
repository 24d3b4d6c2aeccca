//! Which rule counts.

use amplifier_core::{EventData, HookError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::RuleMatch;
use super::pattern::{COMMAND, Glob, Pattern};
use crate::condition::Scope;
use crate::shell;

/// What holds for some uses of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PatternRule {
    /// The tool, as a glob.
    tool: String,
    /// What it is used for, as a glob on one field of its input; without it, whatever that is.
    #[serde(default)]
    pattern: Option<String>,
    /// The field; `command` for `Bash` and `file_path` for tools that work on files, unless given.
    #[serde(default)]
    field: Option<String>,
    /// What holds then: `allow`, `ask` or `deny`.
    pub(super) action: RuleAction,
    /// The question to the person, or why it is denied; a template.
    #[serde(default)]
    pub(super) prompt: Option<String>,
}

/// From lax to strict. To allow means only that this module has no objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RuleAction {
    Allow,
    Ask,
    Deny,
}

impl PatternRule {
    /// The field that the rule is about; none if it is about all of the input.
    pub(super) fn field(&self) -> Result<Option<&str>, String> {
        let known = match self.tool.as_str() {
            "Bash" => Some(COMMAND),
            "Read" | "Write" | "Edit" | "MultiEdit" => Some("file_path"),
            "Task" => Some("task"),
            _ => None,
        };
        match (self.field.as_deref().or(known), &self.pattern) {
            (None, Some(_)) => Err(format!("which `field` of `{}` is the `pattern` about?", self.tool)),
            (Some(_), None) if self.field.is_some() => {
                Err("`field` says more about `pattern`, which is not there".to_owned())
            }
            (field, _) => Ok(field),
        }
    }
}

/// The rules in order, ready for use.
pub(super) struct RuleList {
    rules: Vec<CompiledRule>,
    default: RuleAction,
}

struct CompiledRule {
    tool: Glob,
    pattern: Option<Pattern>,
    effect: RuleAction,
}

impl RuleList {
    pub(super) fn new(entries: &[PatternRule], default: RuleAction) -> Result<Self, String> {
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

    /// What counts for a use of a tool.
    pub(super) fn find_match(&self, event: &str, data: &EventData, scope: &Scope) -> Result<RuleMatch, HookError> {
        let tool = data.text("tool_name").ok_or_else(|| HookError::failed("the event names no tool"))?;
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

    /// A line may hold several commands. What counts for the line is what counts for the one that is least allowed: `git status; rm x`
    /// is not allowed because it begins with `git status`.
    fn strictest_of(&self, command: &str, rules: &[(usize, &CompiledRule)], whole: RuleMatch) -> RuleMatch {
        let parts = match shell::commands(command) {
            Ok(parts) => parts,
            // What nobody can see through is asked about at least, also where it looks like something that is allowed.
            Err(_) if self.effect(whole) > RuleAction::Allow => return whole,
            Err(_) if self.default == RuleAction::Deny => return RuleMatch::Default,
            Err(_) => return RuleMatch::Unclear,
        };
        let of_parts = parts.iter().map(|part| {
            let matches = |rule: &CompiledRule| match &rule.pattern {
                None => true,
                Some(pattern) if pattern.field != COMMAND => false,
                // What may be forbidden is not allowed, and what may be allowed is not so yet: a program in some folder need not
                // be what its name says.
                Some(pattern) if rule.effect == RuleAction::Allow => {
                    pattern.matches_command(part.with_path.as_ref().unwrap_or(&part.plain))
                }
                Some(pattern) => [Some(&part.plain), part.with_path.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|command| pattern.matches_command(command) || pattern.may_match_command(command)),
            };
            rules.iter().find(|(_, rule)| matches(rule)).map_or(RuleMatch::Default, |(at, _)| RuleMatch::Rule(*at))
        });
        // The line as it stands counts, too, if it is not to be allowed: a rule may be about a pipe.
        let as_it_stands = (self.effect(whole) > RuleAction::Allow && whole != RuleMatch::Default) || parts.is_empty();
        let all = of_parts.chain(as_it_stands.then_some(whole));
        // Of equals the first, so that a person is asked about what comes first.
        all.reduce(|one, other| if self.effect(other) > self.effect(one) { other } else { one }).unwrap_or(whole)
    }

    fn effect(&self, rule_match: RuleMatch) -> RuleAction {
        match rule_match {
            RuleMatch::Rule(at) => self.rules.get(at).map_or(RuleAction::Deny, |rule| rule.effect),
            RuleMatch::Default => self.default,
            RuleMatch::Unclear => RuleAction::Ask,
        }
    }
}
