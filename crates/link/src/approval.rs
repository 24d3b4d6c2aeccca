//! Approval requests on a server: open or decided.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

use amplifier_core::text::truncate_bytes;
use amplifier_core::{
    ActionPreview, ApprovalDecision, ApprovalRequest, ChosenRule, Effect, OpenRequest, PreviewField, RuleScope,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The id of an approval request, unique among all sessions: `SESSION.RUN.NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalId {
    /// The session of the request, which may be a sub-agent.
    pub session: String,
    /// The run of the session: a resumed session numbers its requests from the start.
    pub run: String,
    /// The number of the request in the run.
    pub number: u64,
}

/// An invalid id of an approval request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid approval id `{0}`; expected SESSION.RUN.NUMBER")]
pub struct InvalidApprovalId(String);

impl ApprovalId {
    /// The id of a request of a session.
    pub fn new(session: impl Into<String>, run: impl Into<String>, number: u64) -> Self {
        Self { session: session.into(), run: run.into(), number }
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.session, self.run, self.number)
    }
}

impl FromStr for ApprovalId {
    type Err = InvalidApprovalId;

    fn from_str(text: &str) -> Result<Self, InvalidApprovalId> {
        let parts: Vec<&str> = text.split('.').collect();
        match parts[..] {
            [session, run, number] if is_valid_id(session) && is_valid_id(run) => match number.parse() {
                // Another spelling of the number would be a second id for the same request.
                Ok(parsed) if format!("{parsed}") == number => Ok(Self::new(session, run, parsed)),
                _ => Err(InvalidApprovalId(text.to_owned())),
            },
            _ => Err(InvalidApprovalId(text.to_owned())),
        }
    }
}

impl Serialize for ApprovalId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ApprovalId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Returns `true` if the text can be the id of a session or of a run.
pub fn is_valid_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// An open approval request with its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenApproval {
    /// `SESSION.RUN.NUMBER`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: ApprovalId,
    /// The session of the request.
    pub session: String,
    /// The connected session, if the request comes from its sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The name of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// The workspace.
    pub workspace: String,
    /// The machine of the session, if it is another one than the server's. The server sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The request.
    #[serde(flatten)]
    pub request: ApprovalRequest,
    /// The time limit for an answer.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub deadline: Timestamp,
    /// `true` if a long preview is omitted here: `GET /api/approvals/{id}` returns the whole request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Must be returned with the answer, so that only a shown request can be answered. Empty for viewers, who cannot answer, and on the link: the
    /// server sets it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
}

/// The largest request in a list, in bytes; a larger one is listed without its preview.
const BRIEF_BYTES: usize = 16 << 10;

fn truncate(text: &str, most: usize) -> String {
    truncate_bytes(text, most).into_owned()
}

impl Deref for OpenApproval {
    type Target = ApprovalRequest;

    fn deref(&self) -> &ApprovalRequest {
        &self.request
    }
}

impl DerefMut for OpenApproval {
    fn deref_mut(&mut self) -> &mut ApprovalRequest {
        &mut self.request
    }
}

/// The session that sends approval requests to other programs.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalAsker<'a> {
    /// The id of the session. A request can name a sub-agent instead.
    pub session: &'a str,
    /// The name of the session.
    pub name: Option<&'a str>,
    /// The run of the session.
    pub run: &'a str,
    /// The workspace.
    pub workspace: &'a str,
}

impl OpenApproval {
    /// Creates the form of a request for other programs.
    pub fn from_request(open: &OpenRequest, asker: &ApprovalAsker<'_>) -> Self {
        let session = open.data.text("session_id").filter(|session| is_valid_id(session)).unwrap_or(asker.session);
        let mut request = open.request.clone();
        request.preview.warnings.splice(0..0, request.warning.take());
        Self {
            id: ApprovalId::new(session, asker.run, request.number),
            session_name: asker.name.filter(|_| session == asker.session).map(str::to_owned),
            session: session.to_owned(),
            // The server sets these from the connection.
            parent_session: None,
            machine: None,
            workspace: asker.workspace.to_owned(),
            deadline: request.created_at.checked_add(request.timeout).unwrap_or(Timestamp::MAX),
            request,
            truncated: false,
            nonce: String::new(),
        }
    }

    /// Returns the session with the connection for the request and its answer.
    pub fn connected_session(&self) -> &str {
        self.parent_session.as_deref().unwrap_or(&self.session)
    }

    /// Returns `true` if the request offers to create a rule that allows, or one that denies. A truncated request offers neither.
    pub fn offers_rule(&self, allows: bool) -> bool {
        let lasting = if allows { Effect::AllowAlways } else { Effect::DenyAlways };
        self.options.iter().any(|option| option.effect == lasting)
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        let ActionPreview { title, target, summary, warnings, body, fields, .. } = &self.preview;
        let texts = [&self.prompt, &self.hook, &self.workspace, title].into_iter().chain(&self.reason).chain(target);
        let texts: usize = texts.chain(summary).chain(warnings).map(|text| text.len() + 32).sum();
        let options: usize = self.options.iter().map(|option| option.label.len() + 64).sum();
        let offers = self
            .offers
            .iter()
            .flat_map(|offer| [&offer.label, &offer.explanation].into_iter().chain(&offer.operations));
        let offers: usize = offers.map(|text| text.len() + 64).sum();
        let fields: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 64).sum();
        body.iter().map(|row| row.text.len() + 64).sum::<usize>() + texts + options + offers + fields + 512
    }

    /// Returns the request for lists, without a long preview.
    pub fn brief(&self) -> Self {
        if self.weight() <= BRIEF_BYTES {
            return self.clone();
        }
        let ActionPreview { title, target, summary, warnings, fields, .. } = &self.preview;
        let mut warnings: Vec<String> = warnings.iter().take(10).map(|warning| truncate(warning, 500)).collect();
        warnings.push("truncated in lists; open the whole request before you answer".to_owned());
        let fields = fields.iter().take(10);
        let fields =
            fields.map(|field| PreviewField { name: truncate(&field.name, 100), value: truncate(&field.value, 500) });
        let preview = ActionPreview {
            title: title.clone(),
            target: target.clone(),
            summary: summary.clone(),
            warnings,
            fields: fields.collect(),
            truncated: self.preview.truncated,
            ..ActionPreview::default()
        };
        Self { truncated: true, ..self.with_preview(preview) }
    }

    /// Returns the request without its preview.
    pub fn without_preview(&self) -> Self {
        self.with_preview(ActionPreview::default())
    }

    /// Copies everything but the preview, which may be large.
    fn with_preview(&self, preview: ActionPreview) -> Self {
        let ApprovalRequest { hook, event, prompt, reason, warning, options, offers, .. } = &self.request;
        let request = ApprovalRequest {
            hook: hook.clone(),
            event: event.clone(),
            prompt: prompt.clone(),
            reason: reason.clone(),
            warning: warning.clone(),
            options: options.clone(),
            preview,
            offers: offers.clone(),
            ..self.request
        };
        Self {
            id: self.id.clone(),
            session: self.session.clone(),
            parent_session: self.parent_session.clone(),
            session_name: self.session_name.clone(),
            workspace: self.workspace.clone(),
            machine: self.machine.clone(),
            request,
            nonce: self.nonce.clone(),
            ..*self
        }
    }

    /// Returns the request without details, for a server that lacks memory. It can be denied there, and allowed where the whole request is shown.
    pub fn withheld(&self) -> Self {
        let warning = "too large for this server; deny the request here, or answer in its terminal";
        let ActionPreview { title, target, summary, .. } = &self.preview;
        let preview = ActionPreview {
            title: truncate(title, 500),
            target: target.as_ref().map(|target| truncate(target, 500)),
            summary: summary.clone(),
            warnings: vec![warning.to_owned()],
            truncated: true,
            ..ActionPreview::default()
        };
        let mut withheld = self.with_preview(preview);
        withheld.prompt = truncate(&self.prompt, 500);
        withheld.reason = self.reason.as_ref().map(|reason| truncate(reason, 500));
        withheld.options.retain(|option| !option.effect.allows());
        withheld.offers.clear();
        withheld
    }

    /// Returns `true` if both are the same request, made once.
    pub fn is_same_request(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.hook.clone(), one.event.clone(), one.digest, one.created_at);
        parts(self) == parts(other)
            && self.prompt == other.prompt
            && self.options == other.options
            && self.offers == other.offers
    }

    /// Returns the reason why an answer is invalid, if there is one.
    pub fn rejection(&self, label: &str, scope: AnswerScope, rule: Option<&ChosenRule>) -> Option<String> {
        let Some(option) = self.options.iter().find(|option| option.label == label) else {
            return Some(invalid_option(label, self.options.iter().map(|option| option.label.as_str())));
        };
        if let Some(rule) = rule {
            let is_offered =
                option.effect == Effect::AllowAlways && self.offers.iter().any(|offer| offer.is_chosen(rule));
            let operations = || rule.operations.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return match scope {
                _ if !is_offered => Some(format!(
                    "the request does not offer a rule for {} with this option and scope; choose one of `offers`",
                    operations()
                )),
                AnswerScope::Once => None,
                AnswerScope::Project => Some("an answer with `rule` has its scope there; leave `scope` out".to_owned()),
            };
        }
        match scope {
            AnswerScope::Once => None,
            AnswerScope::Project if !self.offers_rule(option.effect.allows()) => {
                Some("the request does not offer an approval rule; answer once".to_owned())
            }
            AnswerScope::Project if self.prompt.contains('*') => {
                Some("the request contains `*`, which would match any text in a rule; answer once".to_owned())
            }
            AnswerScope::Project => None,
        }
    }
}

/// Returns the error for an answer that is not an option.
pub fn invalid_option<'a>(label: &str, options: impl Iterator<Item = &'a str>) -> String {
    let options: Vec<String> = options.map(|option| format!("`{option}`")).collect();
    format!("invalid option `{label}`; expected one of {}", options.join(", "))
}

/// The scope of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerScope {
    /// This request and the effect of the option.
    #[default]
    Once,
    /// Also the same request in all sessions of the same folder.
    Project,
}

impl AnswerScope {
    /// Returns the scope of the resulting rule, if there is one.
    pub fn rule_scope(self) -> Option<RuleScope> {
        match self {
            Self::Once => None,
            Self::Project => Some(RuleScope::Project),
        }
    }
}

/// An approval request that was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecidedApproval {
    /// `SESSION.RUN.NUMBER`; missing if no approver was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub id: Option<ApprovalId>,
    /// The session.
    pub session: String,
    /// The hook of the request.
    pub hook: String,
    /// The event of the request.
    pub event: String,
    /// The text of the request.
    pub prompt: String,
    /// The decision.
    #[serde(flatten)]
    pub decision: ApprovalDecision,
    /// The time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The time of the decision.
    pub decided_at: String,
    /// The sequence number of the decision record; 0 until read.
    #[serde(default)]
    pub seq: u64,
}

impl Deref for DecidedApproval {
    type Target = ApprovalDecision;

    fn deref(&self) -> &ApprovalDecision {
        &self.decision
    }
}

impl DerefMut for DecidedApproval {
    fn deref_mut(&mut self) -> &mut ApprovalDecision {
        &mut self.decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_id_has_one_spelling() {
        let id = ApprovalId::new("s-1", "run_2", 7);
        assert_eq!(id.to_string(), "s-1.run_2.7");
        assert_eq!("s-1.run_2.7".parse(), Ok(id));
        for bad in ["", "7", "s.7", "s.r.", "s.r.+7", "s.r.07", "s.r.7.8", "../x.r.7", "s..7", "s.r.-1"] {
            assert!(bad.parse::<ApprovalId>().is_err(), "{bad}");
        }
    }
}
