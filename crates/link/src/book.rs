//! Approval rules in files.

use amplifier_core::{Actor, ApprovalRule};
use serde::{Deserialize, Serialize};

/// The standing answers that are kept in files. The command knows where they are.
///
/// Its methods block for as long as small files take, and every change is recorded before it counts.
pub trait RuleBook: Send + Sync + 'static {
    /// All of them: the person's, and those of every project; and the files that cannot be read.
    fn list(&self) -> Kept;

    /// Adds one.
    ///
    /// # Errors
    /// If it cannot be recorded or written; in words. Nothing has changed then.
    fn add(&self, rule: &ApprovalRule) -> Result<(), String>;

    /// Takes one back. False if there is none.
    ///
    /// # Errors
    /// If it cannot be recorded or written; in words. Nothing has changed then.
    fn revoke(&self, rule: &ApprovalRule, by: &Actor) -> Result<bool, String>;

    /// Records a change that is kept nowhere else.
    ///
    /// # Errors
    /// If it cannot be recorded; in words.
    fn record(&self, change: &serde_json::Value) -> Result<(), String>;
}

/// What stands in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The standing answers in those that can be read.
    pub rules: Vec<ApprovalRule>,
    /// Those that cannot.
    pub unreadable: Vec<Unreadable>,
}

/// A file with standing answers that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unreadable {
    /// The file, or the folder that it should be in.
    pub file: String,
    /// Why.
    pub why: String,
}
