//! Answers with the signature of a console.

use std::collections::BTreeMap;

use amplifier_audit::{Note, PublicKey, SigningKey};
use amplifier_core::{ApprovalAnswer, Digest};
use amplifier_link::{AnswerScope, ApprovalId, OpenApproval};
use serde::{Deserialize, Serialize};

use crate::FleetName;

/// The first line of a signed answer, so that no other signed text passes for one.
const TITLE: &str = "amplifier-fleet/answer";

/// The public keys of the consoles whose answers count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConsoleKeys(BTreeMap<FleetName, PublicKey>);

impl ConsoleKeys {
    /// Returns the key of a console.
    pub fn get(&self, console: &FleetName) -> Option<&PublicKey> {
        self.0.get(console)
    }
}

impl FromIterator<(FleetName, PublicKey)> for ConsoleKeys {
    fn from_iter<I: IntoIterator<Item = (FleetName, PublicKey)>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

/// An answer to an approval request of a machine, as its console signs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedAnswer {
    /// The machine.
    pub machine: FleetName,
    /// The request.
    pub id: ApprovalId,
    /// The digest of the data that the approver saw.
    pub digest: Digest,
    /// The answer.
    #[serde(flatten)]
    pub answer: ApprovalAnswer,
    /// The console.
    pub console: FleetName,
    /// A text that distinguishes this answer from an equal one.
    pub reference: String,
}

/// The reason why an answer does not count. The request stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAnswer {
    /// The message is not a signed answer.
    #[error("an answer is not readable: {0}")]
    Unreadable(String),
    /// The policy does not name the console.
    #[error("an answer of the unknown console `{0}` is refused; the policy of this machine does not have its key")]
    UnknownConsole(FleetName),
    /// The signature does not belong to the console's key.
    #[error("an answer of the console `{0}` is refused, because its signature is not valid")]
    Signature(FleetName),
    /// The answer is about something else.
    #[error("an answer of the console `{0}` is refused, because it is about another version of the request")]
    OtherRequest(FleetName),
    /// The request does not offer this answer.
    #[error("an answer of the console `{console}` is refused: {reason}")]
    NotOffered {
        /// The console.
        console: FleetName,
        /// The reason.
        reason: String,
    },
}

impl SignedAnswer {
    /// Signs the answer with the console's key.
    ///
    /// # Errors
    /// If the answer cannot be written as JSON.
    pub fn sign(&self, key: &SigningKey) -> Result<String, serde_json::Error> {
        let json = escape_controls(&serde_json::to_string(self)?);
        Ok(Note::sign(format!("{TITLE}\n{json}\n"), &self.console, key).to_string())
    }

    /// Reads an answer without checking the signature.
    ///
    /// # Errors
    /// If the message is not a signed answer.
    pub fn read(message: &[u8]) -> Result<Self, InvalidAnswer> {
        Self::parse(message).map(|(answer, _)| answer)
    }

    /// Reads an answer to an open request of a machine, and checks that it counts.
    ///
    /// # Errors
    /// If the answer does not count.
    pub fn verify(
        message: &[u8],
        machine: &FleetName,
        approval: &OpenApproval,
        keys: &ConsoleKeys,
    ) -> Result<ApprovalAnswer, InvalidAnswer> {
        let (signed, note) = Self::parse(message)?;
        let Self { console, answer, .. } = &signed;
        let key = keys.get(console).ok_or_else(|| InvalidAnswer::UnknownConsole(console.clone()))?;
        if !note.is_signed_by(console, key) {
            return Err(InvalidAnswer::Signature(console.clone()));
        }
        if (&signed.machine, &signed.id, signed.digest) != (machine, &approval.id, approval.digest) {
            return Err(InvalidAnswer::OtherRequest(console.clone()));
        }
        match approval.rejection(&answer.label, AnswerScope::Once, answer.rule.as_ref()) {
            Some(reason) => Err(InvalidAnswer::NotOffered { console: console.clone(), reason }),
            None => Ok(signed.answer),
        }
    }

    fn parse(message: &[u8]) -> Result<(Self, Note), InvalidAnswer> {
        let unreadable = |cause: String| InvalidAnswer::Unreadable(cause);
        let note = Note::parse(message).map_err(|error| unreadable(error.to_string()))?;
        let json = note.text().strip_prefix(TITLE).and_then(|text| text.strip_prefix('\n'));
        let json = json.ok_or_else(|| unreadable("another kind of signed text".to_owned()))?;
        let answer = serde_json::from_str(json).map_err(|error| unreadable(error.to_string()))?;
        Ok((answer, note))
    }
}

/// Escapes the control characters that JSON permits in texts, and signed notes do not.
fn escape_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            control if control.is_control() => escaped.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approval() -> OpenApproval {
        let approval = json!({
            "id": "s.r.1", "number": 1, "session": "s", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "Run it?",
            "options": [{ "label": "Allow once", "effect": "allow_once" }, { "label": "Deny", "effect": "deny" }],
            "created_at": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:05:00Z", "timeout_s": 300.0, "default": "deny",
            "digest": "0".repeat(64), "preview": { "title": "Deploy" },
        });
        serde_json::from_value(approval).unwrap()
    }

    fn name(name: &str) -> FleetName {
        name.parse().unwrap()
    }

    fn answer() -> SignedAnswer {
        let approval = approval();
        SignedAnswer {
            machine: name("m1"),
            id: approval.id.clone(),
            digest: approval.digest,
            answer: ApprovalAnswer::by("Deny", "ann", "console").because("no\u{85}\u{7f}\n\u{1b}[1m: \"später\""),
            console: name("c1"),
            reference: "1".to_owned(),
        }
    }

    #[test]
    fn an_answer_counts_only_as_it_was_signed() {
        let key = SigningKey::from_seed([1; 32]);
        let keys = ConsoleKeys::from_iter([(name("c1"), key.public())]);
        let verify = |message: &str| SignedAnswer::verify(message.as_bytes(), &name("m1"), &approval(), &keys);
        let signed = answer().sign(&key).unwrap();
        assert_eq!(verify(&signed), Ok(answer().answer));
        let other = SigningKey::from_seed([2; 32]);
        assert_eq!(verify(&answer().sign(&other).unwrap()), Err(InvalidAnswer::Signature(name("c1"))));
        assert_eq!(verify(&signed.replace("Deny", "Allow once")), Err(InvalidAnswer::Signature(name("c1"))));
        let unknown = SignedAnswer { console: name("c2"), ..answer() };
        assert_eq!(verify(&unknown.sign(&key).unwrap()), Err(InvalidAnswer::UnknownConsole(name("c2"))));
        let others = [
            SignedAnswer { machine: name("m2"), ..answer() },
            SignedAnswer { id: "s.r.2".parse().unwrap(), ..answer() },
            SignedAnswer { digest: serde_json::from_value(json!("1".repeat(64))).unwrap(), ..answer() },
        ];
        for other in others {
            assert_eq!(verify(&other.sign(&key).unwrap()), Err(InvalidAnswer::OtherRequest(name("c1"))));
        }
        let not_offered = SignedAnswer { answer: "Maybe".into(), ..answer() };
        let refused = verify(&not_offered.sign(&key).unwrap());
        assert!(matches!(refused, Err(InvalidAnswer::NotOffered { .. })), "{refused:?}");
        // A text of the same key for another purpose.
        let json = serde_json::to_string(&SignedAnswer { answer: "Deny".into(), ..answer() }).unwrap();
        let checkpoint = Note::sign(format!("amplifier-audit/x\n{json}\n"), "c1", &key).to_string();
        assert!(matches!(verify(&checkpoint), Err(InvalidAnswer::Unreadable(_))));
        assert!(matches!(verify("Deny"), Err(InvalidAnswer::Unreadable(_))));
    }
}
