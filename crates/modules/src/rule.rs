//! Rules: hooks in a few lines of configuration.

mod error;
mod modify;
mod options;
mod pointer;

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{
    Approval, ApprovalOption, Effect, EventData, FlatOption, Hook, HookError, HookResult, Injection, Level, Placement,
    Role,
};

pub use self::error::RuleError;
pub use self::options::{ModifyOptions, Pointers, RuleOptions};

use self::modify::Modification;
use crate::condition::{Condition, Scope};
use crate::template::Template;

/// A hook with a condition and an action, checked when it is created.
///
/// An expression that cannot be evaluated is a failure of the hook. Register a rule that guards something with
/// [`OnError::Deny`](amplifier_core::OnError::Deny).
///
/// ```
/// use std::sync::Arc;
/// use amplifier_core::{data, HookRegistry, TOOL_PRE};
/// use amplifier_modules::{Rule, RuleOptions, Scope};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options: RuleOptions = serde_json::from_value(serde_json::json!({
///     "when": "tool_name == 'Bash' && tool_input.command.contains('rm -rf')",
///     "deny": "`{{ tool_input.command }}` deletes too much",
/// }))?;
/// let hooks = HookRegistry::new();
/// hooks.hook(TOOL_PRE).named("no-rm").handler(Rule::new(options, Arc::new(Scope::new(".")?))?);
///
/// let outcome = hooks.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": { "command": "rm -rf /" } }).await;
/// assert_eq!(outcome.flat().reason.unwrap(), "`rm -rf /` deletes too much");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Rule {
    when: Option<Condition>,
    action: RuleAction,
    message: Option<(Level, Template)>,
    reason: Option<Template>,
    scope: Arc<Scope>,
}

#[derive(Debug)]
enum RuleAction {
    /// No effect except the message.
    Proceed,
    Deny(Template),
    Ask(Template, Approval),
    Modify(Modification),
    Inject(Template, Role, Placement),
}

impl Rule {
    /// Creates a rule after checking its names, its templates and the combination of its fields.
    ///
    /// # Errors
    /// If a field is invalid. The error has the field, and for expressions the position in it.
    pub fn new(options: RuleOptions, scope: Arc<Scope>) -> Result<Self, RuleError> {
        check_companions(&options)?;
        let action = RuleAction::new(&options)?;
        let message = template("message", options.message.as_deref())?;
        if message.is_none() && matches!(action, RuleAction::Proceed) {
            return Err(RuleError::Empty);
        }
        let rule = Self {
            when: options.when.as_deref().map(Condition::compile).transpose().map_err(RuleError::expression("when"))?,
            action,
            message: message.map(|template| (options.level.unwrap_or_default(), template)),
            reason: template("reason", options.reason.as_deref())?,
            scope,
        };
        let counts = rule.scope.counts();
        counts.track(rule.when.iter().flat_map(Condition::counted_events));
        let texts = [rule.message.as_ref().map(|(_, message)| message), rule.reason.as_ref()];
        for text in texts.into_iter().flatten().chain(rule.action.templates()) {
            counts.track(text.counted_events());
        }
        Ok(rule)
    }

    /// Returns the result of the rule for an event.
    ///
    /// # Errors
    /// If an expression cannot be evaluated for it.
    pub fn answer(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let scope = &*self.scope;
        if let Some(when) = &self.when
            && !when.holds(event, data, scope)?
        {
            return Ok(HookResult::proceed());
        }
        // A rule without a change has no reason and no message either.
        let Some(mut result) = self.action.result(event, data, scope)? else { return Ok(HookResult::proceed()) };
        if let Some(reason) = &self.reason {
            result = result.because(reason.render(event, data, scope)?);
        }
        if let Some((level, message)) = &self.message {
            result = result.message(*level, message.render(event, data, scope)?);
        }
        Ok(result)
    }
}

impl Hook for Rule {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        self.answer(event, data)
    }
}

impl RuleAction {
    fn new(options: &RuleOptions) -> Result<Self, RuleError> {
        Ok(match options {
            RuleOptions { deny: Some(deny), .. } => Self::Deny(compile("deny", deny)?),
            RuleOptions { ask: Some(ask), .. } if ask.trim().is_empty() => {
                return Err(RuleError::field("ask", "is empty: expected the prompt of the approval request"));
            }
            RuleOptions { ask: Some(ask), .. } => Self::Ask(compile("ask", ask)?, approval(options)?),
            RuleOptions { modify: Some(modify), .. } => Self::Modify(Modification::new(modify)?),
            RuleOptions { inject: Some(inject), .. } => {
                Self::Inject(compile("inject", inject)?, options.role.unwrap_or_default(), placement(options)?)
            }
            _ => Self::Proceed,
        })
    }

    fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Proceed => Vec::new(),
            Self::Deny(text) | Self::Ask(text, _) | Self::Inject(text, ..) => vec![text],
            Self::Modify(modification) => modification.templates(),
        }
    }

    /// Returns `None` if the data needs no change.
    fn result(&self, event: &str, data: &EventData, scope: &Scope) -> Result<Option<HookResult>, HookError> {
        Ok(Some(match self {
            Self::Proceed => HookResult::proceed(),
            Self::Deny(reason) => HookResult::deny(reason.render(event, data, scope)?),
            Self::Ask(prompt, approval) => {
                HookResult::ask(Approval { prompt: prompt.render(event, data, scope)?, ..approval.clone() })
            }
            Self::Modify(modification) => return modification.answer(event, data, scope),
            Self::Inject(text, role, placement) => HookResult::inject(Injection {
                text: text.render(event, data, scope)?,
                role: *role,
                placement: *placement,
            }),
        }))
    }
}

/// Checks that a rule has at most one action, and the field that each of its optional fields refines.
fn check_companions(options: &RuleOptions) -> Result<(), RuleError> {
    let answers = [
        ("deny", options.deny.is_some()),
        ("ask", options.ask.is_some()),
        ("modify", options.modify.is_some()),
        ("inject", options.inject.is_some()),
    ];
    let mut given = answers.iter().filter(|(_, given)| *given).map(|(name, _)| *name);
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let problem = format!("conflicts with `{first}`: a rule has one action, so write two rules");
        return Err(RuleError::field(second, problem));
    }
    let companions = [
        ("options", options.options.is_some(), "ask", options.ask.is_some()),
        ("timeout", options.timeout.is_some(), "ask", options.ask.is_some()),
        ("default", options.default.is_some(), "ask", options.ask.is_some()),
        ("role", options.role.is_some(), "inject", options.inject.is_some()),
        ("ephemeral", options.ephemeral.is_some(), "inject", options.inject.is_some()),
        (
            "append_to_last_tool_result",
            options.append_to_last_tool_result.is_some(),
            "inject",
            options.inject.is_some(),
        ),
        ("level", options.level.is_some(), "message", options.message.is_some()),
    ];
    for (field, given, needed, there) in companions {
        if given && !there {
            return Err(RuleError::field(field, format!("needs `{needed}`, which is missing")));
        }
    }
    if options.reason.is_some() && options.deny.is_some() {
        return Err(RuleError::field("reason", "conflicts with `deny`, whose text is the reason"));
    }
    if options.reason.is_some() && answers.iter().all(|(_, given)| !given) {
        return Err(RuleError::field("reason", "needs `ask`, `modify` or `inject`"));
    }
    Ok(())
}

fn approval(options: &RuleOptions) -> Result<Approval, RuleError> {
    let mut approval = Approval::new("");
    approval.default = options.default.unwrap_or_default();
    if let Some(seconds) = options.timeout {
        let timeout = Duration::try_from_secs_f64(seconds);
        let problem = || RuleError::field("timeout", format!("is `{seconds}`: expected seconds, 0 or more"));
        approval.timeout = timeout.map_err(|_| problem())?;
    }
    for option in options.options.iter().flatten() {
        if let FlatOption::Label(label) = option
            && Effect::from_label(label).is_none()
        {
            let problem = format!("has the unknown option `{label}`; write `{{ label: {label}, effect: allow_once }}`");
            return Err(RuleError::field("options", problem));
        }
        approval.options.push(ApprovalOption::from(option.clone()));
    }
    if options.options.is_some() && !approval.options.iter().any(|option| option.effect.allows()) {
        return Err(RuleError::field("options", "never allow the operation: use `deny` instead"));
    }
    Ok(approval)
}

fn placement(options: &RuleOptions) -> Result<Placement, RuleError> {
    match (options.ephemeral, options.append_to_last_tool_result.unwrap_or_default()) {
        (Some(false), true) => Err(RuleError::field(
            "ephemeral",
            "cannot be false with `append_to_last_tool_result`: results are not rewritten",
        )),
        (_, true) => Ok(Placement::LastToolResult),
        (Some(true), false) => Ok(Placement::NextCall),
        (_, false) => Ok(Placement::History),
    }
}

fn compile(field: &str, text: &str) -> Result<Template, RuleError> {
    Template::compile(text).map_err(RuleError::expression(field))
}

fn template(field: &str, text: Option<&str>) -> Result<Option<Template>, RuleError> {
    text.map(|text| compile(field, text)).transpose()
}
