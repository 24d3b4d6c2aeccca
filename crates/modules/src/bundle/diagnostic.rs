//! Findings of the validation of bundles.

use std::fmt;

use serde_json::{Value, json};

use super::BundleError;
use crate::mistake::{MistakeCode, Severity};

/// A finding of the validation of bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// The mistake, with its position.
    pub error: BundleError,
}

impl Diagnostic {
    pub(super) fn error(error: BundleError) -> Self {
        Self { severity: Severity::Error, error }
    }

    pub(super) fn warning(error: BundleError) -> Self {
        Self { severity: Severity::Warning, error }
    }

    /// Creates a warning about a setting without an effect.
    pub fn no_effect(error: BundleError) -> Self {
        Self::warning(error.coded(MistakeCode::NoEffect))
    }

    /// Returns the finding as JSON. `line` and `column` are 0 if it concerns the whole file.
    pub fn to_json(&self) -> Value {
        let BundleError { file, line, column, code, message, help, .. } = &self.error;
        json!({
            "severity": self.severity.as_str(),
            "code": code.as_str(),
            "message": message,
            "help": help,
            "file": file.display().to_string(),
            "line": line,
            "column": column,
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.error)
    }
}
