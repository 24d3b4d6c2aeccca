//! Why something was not done.

use amplifier_core::{Actor, DecisionBasis};

use crate::wire::Decided;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// A word for programs: `unknown`, `nonce`, `answered`, `late`, `closed`, `not_offered`, `busy`, `too_many`, `unreachable` (the session is not
    /// connected), `silent` (it is, but says nothing), `failed`.
    pub code: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
    /// Who was faster.
    pub by: Option<Actor>,
    /// Whether no session has taken notice of the answer, so that none has recorded it.
    pub unheard: bool,
}

impl Refused {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), by: None, unheard: false }
    }

    /// The same, where no session has taken notice of the answer.
    pub(super) fn unheard(self) -> Self {
        Self { unheard: true, ..self }
    }

    pub(crate) fn not_offered<'a>(option: &str, offered: impl Iterator<Item = &'a str>) -> Self {
        let offered = offered.map(|option| format!("`{option}`")).collect::<Vec<_>>().join(", ");
        Self::new("not_offered", format!("`{option}` is none of {offered}"))
    }

    pub(super) fn unknown(id: &str) -> Self {
        Self::new("unknown", format!("there is no question `{id}`"))
    }

    pub(super) fn gone(session: &str) -> Self {
        Self::new("unreachable", format!("the session `{session}` is not connected"))
    }

    /// The process that asked is gone for good, because another one has taken over the session.
    pub(super) fn replaced(session: &str) -> Self {
        let message = format!(
            "the run of session `{session}` that asked this has ended; another one goes on with the session, and asks anew what it wants to know"
        );
        Self::new("closed", message)
    }

    pub(super) fn late() -> Self {
        Self::new("late", "the time for an answer is over; the answer is recorded and changes nothing")
    }

    pub(super) fn faster(by: Option<Actor>) -> Self {
        let who = by.as_ref().map_or_else(|| "somebody else".to_owned(), |by| format!("{} ({})", by.name, by.via));
        Self { by, ..Self::new("answered", format!("{who} has answered already")) }
    }

    /// What to say to an answer when the question was decided so.
    pub(crate) fn over(decided: &Decided) -> Self {
        match decided.basis {
            DecisionBasis::Answer | DecisionBasis::InvalidOption => Self::faster(decided.by.clone()),
            // Nobody says that it was recorded.
            DecisionBasis::Timeout => Self::new("late", "the time for an answer is over; the answer changes nothing"),
            DecisionBasis::Disconnected => Self::gone(&decided.session),
            _ => Self::new("closed", format!("the question is no longer open: {}", decided.reason)),
        }
    }
}
