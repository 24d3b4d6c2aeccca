//! How values become text: for the wire, and for whoever reads it.

use std::fmt::Display;
use std::time::Duration;

use serde::Serializer;

pub(crate) fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// Whether a model may read the character: no control characters but line breaks and tabs.
pub(crate) fn is_readable(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}
