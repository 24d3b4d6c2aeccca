//! Messages that a stream stores.

use async_nats::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;

use crate::FleetError;

/// The error codes of a lost compare-and-set: [alone, and in clusters](https://github.com/nats-io/nats-server).
const CONFLICTS: [u64; 2] = [10071, 10164];

/// The error code of every limit of a stream, and the description of the one that allows only one message of a subject.
const LIMIT: u64 = 10077;
const PER_SUBJECT: &str = "per subject";

/// A message read from a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The subject.
    pub subject: String,
    /// The sequence number in the stream.
    pub sequence: u64,
    /// The headers.
    pub headers: HeaderMap,
    /// The content.
    pub payload: Bytes,
}

/// The reply of a stream to a published message.
#[derive(Deserialize)]
struct Reply {
    seq: Option<u64>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Refusal {
    fn is_conflict(&self) -> bool {
        CONFLICTS.contains(&self.err_code) || self.err_code == LIMIT && self.description.contains(PER_SUBJECT)
    }
}

/// Reads the reply of a stream to a published message.
pub(crate) fn read_reply(subject: &str, payload: &[u8]) -> Result<u64, FleetError> {
    let subject = subject.to_owned();
    match serde_json::from_slice(payload) {
        Ok(Reply { error: Some(refusal), .. }) if refusal.is_conflict() => Err(FleetError::Conflict { subject }),
        Ok(Reply { error: Some(Refusal { err_code: code, description }), .. }) => {
            Err(FleetError::Refused { subject, code, description })
        }
        Ok(Reply { seq: Some(sequence), .. }) => Ok(sequence),
        Ok(Reply { seq: None, .. }) => Err(FleetError::Invalid { subject, cause: "no sequence number".to_owned() }),
        Err(error) => Err(FleetError::Invalid { subject, cause: error.to_string() }),
    }
}

/// Reads the reply to a request for a message of a subject; `None` if there is no message.
pub(crate) fn read_stored(subject: &str, message: async_nats::Message) -> Result<Option<StoredMessage>, FleetError> {
    let invalid = |cause: &str| FleetError::Invalid { subject: subject.to_owned(), cause: cause.to_owned() };
    match message.status.map(|status| status.as_u16()) {
        None => {}
        Some(404) => return Ok(None),
        Some(code) => {
            let description = message.description.unwrap_or_default();
            return Err(FleetError::Refused { subject: subject.to_owned(), code: code.into(), description });
        }
    }
    let headers = message.headers.ok_or_else(|| invalid("no headers"))?;
    let sequence = headers.get("Nats-Sequence").and_then(|number| number.as_str().parse().ok());
    let sequence = sequence.ok_or_else(|| invalid("no sequence number"))?;
    // The requested subject may have wildcards.
    let subject = headers.get("Nats-Subject").map_or(subject, |subject| subject.as_str()).to_owned();
    Ok(Some(StoredMessage { subject, sequence, headers, payload: message.payload }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_compare_and_set_has_several_codes() {
        for code in CONFLICTS {
            let reply = format!(r#"{{"error":{{"code":400,"err_code":{code},"description":"wrong last sequence"}}}}"#);
            assert!(matches!(read_reply("a", reply.as_bytes()), Err(FleetError::Conflict { .. })), "{code}");
        }
        let second =
            br#"{"error":{"code":400,"err_code":10077,"description":"maximum messages per subject exceeded"}}"#;
        assert!(matches!(read_reply("a", second), Err(FleetError::Conflict { .. })));
        let full = br#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#;
        assert!(matches!(read_reply("a", full), Err(FleetError::Refused { code: 10_077, .. })));
        assert_eq!(read_reply("a", br#"{"stream":"AUDIT","seq":7}"#).unwrap(), 7);
        assert!(matches!(read_reply("a", b"{}"), Err(FleetError::Invalid { .. })));
    }
}
