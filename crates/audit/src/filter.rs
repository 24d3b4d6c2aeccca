//! Filters for the records of a log.

use amplifier_core::EventPattern;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use crate::body::{Body, stored_body};
use crate::error::AuditError;
use crate::record::{Kind, Record};
use crate::storage::RecordSource;

/// A filter for records. A record matches if it matches every condition that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordFilter {
    /// The session.
    pub session: Option<String>,
    /// The event, by any of its names.
    pub event: Option<EventPattern>,
    /// The kinds; any kind if there are none.
    pub kinds: Vec<Kind>,
    /// The hook that answered, requested an approval, sent a message or denied.
    pub hook: Option<String>,
    /// Text in the line, in the form of a JSON string. BodyReader in separate files are not searched.
    pub text: Option<String>,
    /// Only records from this time on, in the format of records: `2026-01-31T09:00:00.000000Z`.
    pub since: Option<String>,
    /// Only records before this time, in the same format.
    pub until: Option<String>,
}

impl RecordFilter {
    /// Returns `true` if the record matches. A body in a separate file is read for its hook; an erased body has none.
    ///
    /// # Errors
    /// If a body in a separate file cannot be read or was altered.
    pub fn matches(&self, record: &Record<'_>, storage: &dyn RecordSource) -> Result<bool, AuditError> {
        Ok((self.kinds.is_empty() || self.kinds.contains(&record.kind))
            && self.session.as_deref().is_none_or(|session| record.session.as_deref() == Some(session))
            && self.event.as_ref().is_none_or(|event| record.event.as_deref().is_some_and(|name| event.matches(name)))
            && self.text.as_deref().is_none_or(|text| record.line().contains(&escaped(text)))
            // All times have the same format, so text order is time order.
            && self.since.as_deref().is_none_or(|since| *record.time >= *since)
            && self.until.as_deref().is_none_or(|until| *record.time < *until)
            && match &self.hook {
                Some(hook) => names_hook(record, hook, storage)?,
                None => true,
            })
    }
}

/// A cheap test of lines, before they are parsed.
#[derive(Clone, Debug)]
pub struct LineFilter {
    needles: Vec<String>,
    hook: Option<String>,
}

impl RecordFilter {
    /// Returns a test that the line of every matching record passes.
    pub fn lines(&self) -> LineFilter {
        let session = self.session.iter().map(|session| format!("\"session\":\"{}\"", escaped(session)));
        let needles = session.chain(self.text.as_deref().map(escaped)).collect();
        LineFilter { needles, hook: self.hook.as_deref().map(escaped) }
    }
}

impl LineFilter {
    /// Returns `false` if the line is not that of a matching record.
    pub fn may_match(&self, line: &[u8]) -> bool {
        let has = |needle: &str| memmem::find(line, needle.as_bytes()).is_some();
        // The hook may be in a body in a separate file.
        self.needles.iter().all(|needle| has(needle))
            && self.hook.as_deref().is_none_or(|hook| has(hook) || has("\"body\":{\"blob\""))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HookFields {
    hook: Value,
    denied_by: Value,
    source: Value,
}

fn names_hook(record: &Record<'_>, hook: &str, storage: &dyn RecordSource) -> Result<bool, AuditError> {
    let Body::Whole(body) = stored_body(record, storage)? else { return Ok(false) };
    let HookFields { hook: of, denied_by, source } = serde_json::from_str(&body).unwrap_or_default();
    Ok(of == hook || denied_by == hook || source.as_str().and_then(|source| source.strip_prefix("hook:")) == Some(hook))
}

/// Escapes a text as in a line's strings: JSON, in ASCII.
fn escaped(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
    let mut written = String::with_capacity(inner.len());
    for character in inner.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            written.push(character);
        } else {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| written.push_str(&format!("\\u{unit:04x}")));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_searched_as_it_is_written() {
        assert_eq!(escaped("a\"b\u{7f}ü😀\n"), "a\\\"b\\u007f\\u00fc\\ud83d\\ude00\\n");
    }
}
