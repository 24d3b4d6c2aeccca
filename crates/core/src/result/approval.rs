//! Approvals that hooks request.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// A request to a user to allow the operation.
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
    /// The prompt.
    pub prompt: String,
    /// The options; empty for "Allow" and "Deny".
    pub options: Vec<ApprovalOption>,
    /// The time limit.
    pub timeout: Duration,
    /// The decision after the time limit.
    pub default: DefaultDecision,
    /// `true` if the approval is requested only when no other hook of the emission requests one.
    pub fallback: bool,
}

/// A possible answer, with its effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalOption {
    /// The text of the option.
    pub label: String,
    /// The effect. The kernel decides by the effect, never by the label.
    pub effect: Effect,
}

words! {
    /// The effect of an option.
    #[derive(JsonSchema)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Effect("effect") {
        /// The operation may run this time.
        AllowOnce = "allow_once",
        /// The operation may run, and the same request is granted for the rest of the session.
        AllowAlways = "allow_always",
        /// The operation does not run.
        Deny = "deny",
        /// The operation does not run, and the same request is denied for the rest of the session.
        DenyAlways = "deny_always",
    }
}

words! {
    /// A decision without an approver: after the time limit, or by a rule.
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
    /// Returns `true` if the operation may run.
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Returns `true` if the answer counts for the rest of the session.
    pub fn is_lasting(self) -> bool {
        matches!(self, Self::AllowAlways | Self::DenyAlways)
    }

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

    /// Returns the effect of a well-known label.
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
    /// Creates an option with this effect.
    pub fn new(label: impl Into<String>, effect: Effect) -> Self {
        Self { label: label.into(), effect }
    }

    /// Returns the option for typed text: its number, counted from 1, or its label in any case.
    pub fn resolve<'a>(options: &'a [Self], typed: &str) -> Option<&'a Self> {
        let typed = typed.trim();
        let by_number = typed.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
        by_number.or_else(|| {
            let mut meant = options.iter().filter(|option| option.label.to_lowercase() == typed.to_lowercase());
            // Labels that differ only in case must be typed exactly.
            let (first, second) = (meant.next(), meant.next());
            first.filter(|_| second.is_none()).or_else(|| options.iter().find(|option| option.label == typed))
        })
    }
}

impl<T: Into<String>> From<T> for ApprovalOption {
    fn from(label: T) -> Self {
        let label = label.into();
        // An unknown label denies.
        let effect = Effect::from_label(&label).unwrap_or(Effect::Deny);
        Self { label, effect }
    }
}

impl Approval {
    /// The default time limit.
    pub const TIMEOUT: Duration = Duration::from_secs(300);
    /// The default prompt.
    pub const PROMPT: &str = "Allow this operation?";

    /// Creates a request with the options "Allow" and "Deny", which is denied after five minutes.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            options: Vec::new(),
            timeout: Self::TIMEOUT,
            default: DefaultDecision::default(),
            fallback: false,
        }
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: impl IntoIterator<Item = impl Into<ApprovalOption>>) -> Self {
        self.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Allows the operation after the time limit. For low risks only; a session can forbid it.
    #[must_use]
    pub fn allow_by_default(mut self) -> Self {
        self.default = DefaultDecision::Allow;
        self
    }

    /// Requests the approval only if no other hook of the emission requests one.
    #[must_use]
    pub fn fallback(mut self) -> Self {
        self.fallback = true;
        self
    }

    /// Returns the options for the approver, with their effective effects: no hook can make a "Deny" allow, and of two options
    /// with the same label the stricter one counts.
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
