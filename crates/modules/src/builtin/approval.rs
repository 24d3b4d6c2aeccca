//! `hooks-approval`: an ordered list of patterns that allow tool calls, request approval, or deny them.

mod pattern;
mod pattern_rules;

use std::sync::Arc;

use amplifier_core::{DefaultDecision, EventData, FlatOption, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use self::pattern::COMMAND;
use self::pattern_rules::{PatternAction, PatternRule, PatternRules};
use super::{GUARDS, ModuleContext, ModuleHook, options};
use crate::condition::Scope;
use crate::rule::{Rule, RuleOptions};

/// Options of `hooks-approval`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Rules for tool calls; the first that matches a call decides.
    rules: Vec<PatternRule>,
    /// The action for calls that no rule matches: `allow`, `ask` or `deny`.
    default: PatternAction,
    /// The prompt of approval requests, a template; the `prompt` of a rule overrides this one.
    prompt: Option<String>,
    /// The options that the approver can choose from.
    options: Vec<FlatOption>,
    /// Time limit for the approval, in seconds.
    timeout: f64,
    /// The decision after the time limit: `deny` or `allow`.
    on_timeout: DefaultDecision,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            default: PatternAction::Allow,
            prompt: None,
            options: ["Allow once", "Allow always", "Deny"].map(|label| FlatOption::Label(label.into())).into(),
            timeout: 300.0,
            on_timeout: DefaultDecision::Deny,
        }
    }
}

impl Options {
    /// Returns the compiled rule for an action, with a prompt that shows this field of the input; `None` if the call is
    /// allowed.
    fn answer(
        &self,
        effect: PatternAction,
        field: Option<&str>,
        prompt: Option<String>,
        scope: &Arc<Scope>,
    ) -> Result<Option<Rule>, String> {
        let shown = match field {
            Some(field) => format!("{{{{ tool_input[{}] }}}}", serde_json::Value::from(field)),
            None => "{{ tool_input }}".to_owned(),
        };
        let rule = match effect {
            PatternAction::Allow => return Ok(None),
            PatternAction::Ask => RuleOptions {
                ask: prompt
                    .or_else(|| self.prompt.clone())
                    .or_else(|| Some(format!("Allow {{{{ tool_name }}}}: {shown}?"))),
                options: Some(self.options.clone()),
                timeout: Some(self.timeout),
                default: Some(self.on_timeout),
                ..RuleOptions::default()
            },
            PatternAction::Deny => RuleOptions {
                deny: prompt.or_else(|| Some(format!("{{{{ tool_name }}}} may not do this: {shown}"))),
                ..RuleOptions::default()
            },
        };
        Rule::new(rule, scope.clone()).map(Some).map_err(|error| error.to_string())
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let options: Options = options(config)?;
    if options.default == PatternAction::Allow && options.rules.iter().all(|rule| rule.action == PatternAction::Allow) {
        return Err("no call is asked about or denied; add `rules` or change `default`".to_owned());
    }
    let scope = &context.host.scope;
    let mut answers = Vec::new();
    for (at, entry) in options.rules.iter().enumerate() {
        let problem = |problem| format!("`rules[{at}]`: {problem}");
        let answer = entry.field().and_then(|field| options.answer(entry.action, field, entry.prompt.clone(), scope));
        answers.push(answer.map_err(problem)?);
    }
    let otherwise = options.answer(options.default, None, None, scope)?;
    let unclear = options.answer(PatternAction::Ask, Some(COMMAND), None, scope)?;
    let rules = PatternRules::new(&options.rules, options.default)?;
    let approval = ApprovalHook { rules, answers, otherwise, unclear, scope: scope.clone() };
    Ok(vec![ModuleHook::guard(&["tool:pre"], approval).priority(GUARDS)])
}

struct ApprovalHook {
    rules: PatternRules,
    answers: Vec<Option<Rule>>,
    otherwise: Option<Rule>,
    unclear: Option<Rule>,
    scope: Arc<Scope>,
}

/// The rule that decides on a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleMatch {
    Rule(usize),
    Default,
    /// The command cannot be analysed, so the matching rules are unknown.
    Unclear,
}

impl Hook for ApprovalHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let answer = match self.rules.find_match(event, data, &self.scope)? {
            RuleMatch::Rule(at) => self.answers.get(at).and_then(Option::as_ref),
            RuleMatch::Default => self.otherwise.as_ref(),
            RuleMatch::Unclear => self.unclear.as_ref(),
        };
        answer.map_or_else(|| Ok(HookResult::proceed()), |rule| rule.answer(event, data))
    }
}
