//! Which rule counts.

use amplifier_core::{EventData, HookError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Counts;
use super::pattern::{COMMAND, Glob, Pattern};
use crate::condition::Scope;
use crate::shell;

/// What holds for some uses of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The tool, as a glob.
    tool: String,
    /// What it is used for, as a glob on one field of its input; without it, whatever that is.
    #[serde(default)]
    pattern: Option<String>,
    /// The field; `command` for `Bash` and `file_path` for tools that work on files, unless given.
    #[serde(default)]
    field: Option<String>,
    /// What holds then: `allow`, `ask` or `deny`.
    pub(super) action: Effect,
    /// The question to the person, or why it is denied; a template.
    #[serde(default)]
    pub(super) prompt: Option<String>,
}

/// From lax to strict. To allow means only that this module has no objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    Allow,
    Ask,
    Deny,
}

impl Entry {
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
pub(super) struct Rules {
    rules: Vec<Ready>,
    default: Effect,
}

struct Ready {
    tool: Glob,
    pattern: Option<Pattern>,
    effect: Effect,
}

impl Rules {
    pub(super) fn new(entries: &[Entry], default: Effect) -> Result<Self, String> {
        let ready = |entry: &Entry| {
            let tool = Glob::new(&entry.tool).map_err(|problem| format!("`tool`: {problem}"))?;
            let pattern = match (entry.field()?, &entry.pattern) {
                (Some(field), Some(pattern)) => Some(Pattern::new(field, pattern)?),
                _ => None,
            };
            Ok(Ready { tool, pattern, effect: entry.action })
        };
        let rules = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| ready(entry).map_err(|problem: String| format!("`rules[{at}]`: {problem}")));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, default })
    }

    /// What counts for a use of a tool.
    pub(super) fn counts(&self, event: &str, data: &EventData, scope: &Scope) -> Result<Counts, HookError> {
        let tool = data.text("tool_name").ok_or_else(|| HookError::failed("the event names no tool"))?;
        let of_tool: Vec<(usize, &Ready)> =
            self.rules.iter().enumerate().filter(|(_, rule)| rule.tool.fits(tool)).collect();
        let mut whole = Counts::Default;
        for (at, rule) in &of_tool {
            if rule.pattern.as_ref().map_or(Ok(true), |pattern| pattern.fits(event, data, scope))? {
                whole = Counts::Rule(*at);
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
    fn strictest_of(&self, command: &str, rules: &[(usize, &Ready)], whole: Counts) -> Counts {
        let parts = match shell::commands(command) {
            Ok(parts) => parts,
            // What nobody can see through is asked about at least, also where it looks like something that is allowed.
            Err(_) if self.effect(whole) > Effect::Allow => return whole,
            Err(_) if self.default == Effect::Deny => return Counts::Default,
            Err(_) => return Counts::Unclear,
        };
        let of_parts = parts.iter().map(|part| {
            let fits = |rule: &Ready| match &rule.pattern {
                None => true,
                Some(pattern) if pattern.field != COMMAND => false,
                // What may be forbidden is not allowed, and what may be allowed is not so yet: a program in some folder need not
                // be what its name says.
                Some(pattern) if rule.effect == Effect::Allow => {
                    pattern.fits_command(part.with_path.as_ref().unwrap_or(&part.plain))
                }
                Some(pattern) => [Some(&part.plain), part.with_path.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|command| pattern.fits_command(command) || pattern.may_fit_command(command)),
            };
            rules.iter().find(|(_, rule)| fits(rule)).map_or(Counts::Default, |(at, _)| Counts::Rule(*at))
        });
        // The line as it stands counts, too, if it is not to be allowed: a rule may be about a pipe.
        let as_it_stands = (self.effect(whole) > Effect::Allow && whole != Counts::Default) || parts.is_empty();
        let all = of_parts.chain(as_it_stands.then_some(whole));
        // Of equals the first, so that a person is asked about what comes first.
        all.reduce(|one, other| if self.effect(other) > self.effect(one) { other } else { one }).unwrap_or(whole)
    }

    fn effect(&self, counts: Counts) -> Effect {
        match counts {
            Counts::Rule(at) => self.rules.get(at).map_or(Effect::Deny, |rule| rule.effect),
            Counts::Default => self.default,
            Counts::Unclear => Effect::Ask,
        }
    }
}
