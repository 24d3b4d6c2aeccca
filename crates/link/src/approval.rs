//! Questions: what is asked, what it is about, and what became of it.

use amplifier_core::text::truncate_bytes;
use amplifier_core::{ActionPreview, Actor, DecisionBasis, PreviewField, RuleScope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Approval {
    /// The session, its run, and the number of the question in it: `SESSION.RUN.N`. It never comes again.
    pub id: String,
    /// The session that asks.
    pub session: String,
    /// If that is a sub-agent: the session that it works for, which is the one that is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The name of the session that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// The folder that it works in.
    pub workspace: String,
    /// The hook that asks.
    pub hook: String,
    /// The event at which it asks.
    pub event: String,
    /// The question.
    pub prompt: String,
    /// The reason that the hook gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can be answered.
    pub options: Vec<Choice>,
    /// When it was asked.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub asked_at: Timestamp,
    /// When the kernel stops waiting.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub deadline: Timestamp,
    /// How long the kernel waits in all, in seconds.
    pub timeout_s: f64,
    /// What counts when nobody answers: `allow` or `deny`.
    pub default: String,
    /// The digest of what will run.
    pub digest: String,
    /// What will run.
    pub action: ActionPreview,
    /// Whether the lines of the action are left out here, because there are many: `GET /api/approvals/{id}` has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// To be given back with the answer, so that nobody answers what was not shown. Left out for those who cannot answer, and on the link: the
    /// server makes it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
}

/// A longer question is listed without the lines of its action.
const BRIEF: usize = 16 << 10;

/// Up to so many bytes of a text.
fn beginning(text: &str, most: usize) -> String {
    truncate_bytes(text, most).into_owned()
}

/// The id of a question: of a session, of one run of it, by its number.
pub fn question_id(session: &str, run: &str, number: u64) -> String {
    format!("{session}.{run}.{number}")
}

/// The effects of options that last.
pub(crate) const ALLOW_ALWAYS: &str = "allow_always";
const DENY_ALWAYS: &str = "deny_always";

impl Approval {
    /// The session over whose connection it came, and its answer goes.
    pub fn connected(&self) -> &str {
        self.within.as_deref().unwrap_or(&self.session)
    }

    /// Whether the question can be answered for longer than once: with a yes, or with a no. One that stands for more than it shows offers none.
    pub fn lasts(&self, allows: bool) -> bool {
        let lasting = if allows { ALLOW_ALWAYS } else { DENY_ALWAYS };
        self.options.iter().any(|option| option.effect == lasting)
    }

    /// How much room it takes, about, in bytes.
    pub fn weight(&self) -> usize {
        let ActionPreview { title, target, summary, warnings, body, fields, .. } = &self.action;
        let texts = [&self.prompt, &self.hook, &self.workspace, title].into_iter().chain(&self.reason).chain(target);
        let texts: usize = texts.chain(summary).chain(warnings).map(|text| text.len() + 32).sum();
        let options: usize = self.options.iter().map(|option| option.label.len() + 64).sum();
        let fields: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 64).sum();
        body.iter().map(|row| row.text.len() + 64).sum::<usize>() + texts + options + fields + 512
    }

    /// As it is listed and told: one that is long without the lines of its action.
    pub fn brief(&self) -> Self {
        if self.weight() <= BRIEF {
            return self.clone();
        }
        let ActionPreview { title, target, summary, warnings, fields, .. } = &self.action;
        let mut warnings: Vec<String> = warnings.iter().take(10).map(|warning| beginning(warning, 500)).collect();
        warnings.push("it is too long for a list: look at the whole question before you answer it".to_owned());
        let fields = fields.iter().take(10);
        let fields =
            fields.map(|field| PreviewField { name: beginning(&field.name, 100), value: beginning(&field.value, 500) });
        let action = ActionPreview {
            title: title.clone(),
            target: target.clone(),
            summary: summary.clone(),
            warnings,
            fields: fields.collect(),
            truncated: self.action.truncated,
            ..ActionPreview::default()
        };
        Self { action, cut: true, ..self.without_action() }
    }

    /// All but what will run.
    pub fn without_action(&self) -> Self {
        Self {
            id: self.id.clone(),
            session: self.session.clone(),
            within: self.within.clone(),
            session_name: self.session_name.clone(),
            workspace: self.workspace.clone(),
            hook: self.hook.clone(),
            event: self.event.clone(),
            prompt: self.prompt.clone(),
            reason: self.reason.clone(),
            options: self.options.clone(),
            default: self.default.clone(),
            digest: self.digest.clone(),
            action: ActionPreview::default(),
            nonce: self.nonce.clone(),
            ..*self
        }
    }

    /// As it is kept where there is no room for all of it. It can be denied, and is allowed where all of it is seen.
    pub fn withheld(&self) -> Self {
        let warning =
            "there is no room for all of this question here: it can be denied here, or answered at its terminal";
        let ActionPreview { title, target, summary, .. } = &self.action;
        let action = ActionPreview {
            title: beginning(title, 500),
            target: target.as_ref().map(|target| beginning(target, 500)),
            summary: summary.clone(),
            warnings: vec![warning.to_owned()],
            truncated: true,
            ..ActionPreview::default()
        };
        let mut withheld = Self { action, prompt: beginning(&self.prompt, 500), ..self.without_action() };
        withheld.reason = self.reason.as_ref().map(|reason| beginning(reason, 500));
        withheld.options.retain(|option| !option.effect.starts_with("allow"));
        withheld
    }

    /// Whether it is the same question, asked once.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.hook.clone(), one.event.clone(), one.digest.clone(), one.asked_at);
        parts(self) == parts(other) && self.prompt == other.prompt && self.options == other.options
    }

    /// Why an answer is none that was offered.
    pub fn refuses(&self, label: &str, scope: Option<RuleScope>) -> Option<String> {
        let Some(option) = self.options.iter().find(|option| option.label == label) else {
            let offered =
                self.options.iter().map(|option| format!("`{}`", option.label)).collect::<Vec<_>>().join(", ");
            return Some(format!("`{label}` is none of {offered}"));
        };
        match scope {
            None => None,
            Some(RuleScope::Session | RuleScope::User) => Some("an answer holds once, or for the project".to_owned()),
            Some(RuleScope::Project) if !self.lasts(option.effect.starts_with("allow")) => {
                Some("the question offers no such answer that lasts; answer for once".to_owned())
            }
            Some(RuleScope::Project) if self.prompt.contains('*') => Some(
                "the question has a `*` in it, which would stand for any text in a rule; answer for once".to_owned(),
            ),
            Some(RuleScope::Project) => None,
        }
    }
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Choice {
    /// Its label, which is what is answered.
    pub label: String,
    /// What it does: `allow_once`, `allow_always`, `deny`, `deny_always`.
    pub effect: String,
}

/// A question that was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Decided {
    /// `SESSION.RUN.N`; none if nobody had to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The session.
    pub session: String,
    /// The hook that asked.
    pub hook: String,
    /// The event at which it asked.
    pub event: String,
    /// The question.
    pub prompt: String,
    /// Whether the operation may run.
    pub granted: bool,
    /// What that rests on: `answer`, `rule`, `remembered`, `timeout`, `cancelled`, …
    pub basis: DecisionBasis,
    /// The same in words.
    pub reason: String,
    /// Who answered, where somebody did and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<String>,
    /// When it was decided.
    pub decided_at: String,
    /// The number of the record that says so; 0 if that is not read yet.
    #[serde(default)]
    pub seq: u64,
}
