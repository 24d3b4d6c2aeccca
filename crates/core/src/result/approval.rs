//! What a hook asks a person.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// A question to a person, on whose answer the operation depends.
///
/// ```
/// use std::time::Duration;
/// use amplifier_core::{Approval, ApprovalOption, Effect};
///
/// let approval = Approval::new("Deploy to production?")
///     .options([ApprovalOption::new("Ship it", Effect::AllowOnce), "Deny".into()])
///     .timeout(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The question.
    pub prompt: String,
    /// What the person can answer; none means "Allow" and "Deny".
    pub options: Vec<ApprovalOption>,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// What counts when nobody answered in time.
    pub default: DefaultDecision,
    /// `true` if the question is asked only when no other hook of the emission asks.
    pub fallback: bool,
}

/// An answer that is offered, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalOption {
    /// What the person reads and answers.
    pub label: String,
    /// What it does. The kernel decides by this, never by the label.
    pub effect: Effect,
}

words! {
    /// The effect of an option.
    #[derive(JsonSchema)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Effect("effect") {
        /// The operation may run, this time.
        AllowOnce = "allow_once",
        /// The operation may run, and the same question is not asked again in this session.
        AllowAlways = "allow_always",
        /// The operation does not run.
        Deny = "deny",
        /// The operation does not run, nor does it in this session when the same question comes up.
        DenyAlways = "deny_always",
    }
}

words! {
    /// An answer that counts without an approver: after the time limit, or by a rule.
    #[derive(Default, JsonSchema)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum DefaultDecision("decision") {
        /// The operation runs.
        Allow = "allow",
        /// The operation does not run.
        #[default]
        Deny = "deny",
    }
}

impl Effect {
    /// Whether the operation may run.
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Whether the answer holds for the rest of the session.
    pub fn is_lasting(self) -> bool {
        matches!(self, Self::AllowAlways | Self::DenyAlways)
    }

    /// The same effect, but for this time only if it allows something.
    pub(crate) fn once_if_allowing(self) -> Self {
        if self == Self::AllowAlways { Self::AllowOnce } else { self }
    }

    fn strictness(self) -> u8 {
        match self {
            Self::AllowAlways => 0,
            Self::AllowOnce => 1,
            Self::Deny => 2,
            Self::DenyAlways => 3,
        }
    }

    /// What a plain label means, if it means something.
    pub fn from_label(label: &str) -> Option<Self> {
        Some(match label.trim().to_lowercase().as_str() {
            "allow" | "allow once" | "yes" | "y" | "ok" | "approve" | "accept" => Self::AllowOnce,
            "allow always" | "always allow" | "always" => Self::AllowAlways,
            "deny" | "deny once" | "no" | "n" | "reject" | "refuse" | "block" => Self::Deny,
            "deny always" | "always deny" | "never allow" | "never" => Self::DenyAlways,
            _ => return None,
        })
    }
}

impl ApprovalOption {
    /// An option with a stated effect.
    pub fn new(label: impl Into<String>, effect: Effect) -> Self {
        Self { label: label.into(), effect }
    }

    /// The one of the options that a person means by what was typed: its number, counted from 1, or its label in any case.
    pub fn resolve<'a>(options: &'a [Self], typed: &str) -> Option<&'a Self> {
        let typed = typed.trim();
        let by_number = typed.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
        by_number.or_else(|| {
            let mut meant = options.iter().filter(|option| option.label.to_lowercase() == typed.to_lowercase());
            // Two labels that differ in case only have to be typed exactly.
            let (first, second) = (meant.next(), meant.next());
            first.filter(|_| second.is_none()).or_else(|| options.iter().find(|option| option.label == typed))
        })
    }
}

impl<T: Into<String>> From<T> for ApprovalOption {
    fn from(label: T) -> Self {
        let label = label.into();
        // Who offers a label without a meaning gets a refusal, never a surprise.
        let effect = Effect::from_label(&label).unwrap_or(Effect::Deny);
        Self { label, effect }
    }
}

impl Approval {
    /// How long is waited for a person unless a hook says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(300);
    /// The question of a hook that asks without saying what.
    pub const PROMPT: &str = "Allow this operation?";

    /// A question with the options "Allow" and "Deny", open for five minutes, then denied.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            options: Vec::new(),
            timeout: Self::TIMEOUT,
            default: DefaultDecision::default(),
            fallback: false,
        }
    }

    /// What the person can answer.
    #[must_use]
    pub fn options(mut self, options: impl IntoIterator<Item = impl Into<ApprovalOption>>) -> Self {
        self.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// How long to wait for an answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lets the operation run when nobody answered in time. For low risks only; a session can forbid it.
    #[must_use]
    pub fn allow_by_default(mut self) -> Self {
        self.default = DefaultDecision::Allow;
        self
    }

    /// Asks only if no other hook of the emission asks.
    #[must_use]
    pub fn fallback(mut self) -> Self {
        self.fallback = true;
        self
    }

    /// The options that the person sees, with the effects that the kernel gives them: no hook can make a "Deny" allow, and
    /// of two options that read the same the stricter counts.
    pub fn effective_options(&self) -> Vec<ApprovalOption> {
        if self.options.is_empty() {
            return vec!["Allow".into(), "Deny".into()];
        }
        let effect_of = |label: &str| {
            let meant = Effect::from_label(label).filter(|meant| !meant.allows());
            let stated = self.options.iter().filter(|option| option.label == label).map(|option| option.effect);
            stated.chain(meant).max_by_key(|effect| effect.strictness()).unwrap_or(Effect::Deny)
        };
        let offered = self.options.iter().map(|option| &option.label);
        offered.map(|label| ApprovalOption { label: label.clone(), effect: effect_of(label) }).collect()
    }
}

impl<T: Into<String>> From<T> for Approval {
    fn from(prompt: T) -> Self {
        Self::new(prompt)
    }
}
