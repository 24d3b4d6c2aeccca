//! The rules in files, for the server.

use amplifier_core::{Actor, ApprovalRule};
use amplifier_host::{ApprovalRuleStore, RuleList, UnreadableFile, reasons};
use amplifier_server::hub::{Kept, RuleBook};
use amplifier_server::wire::Unreadable;
use serde_json::Value;

/// The rules of the user.
pub struct RuleFiles(pub ApprovalRuleStore);

impl RuleBook for RuleFiles {
    fn list(&self) -> Kept {
        let RuleList { rules, unreadable } = self.0.list();
        let unreadable = unreadable.into_iter().map(|UnreadableFile { file, reason }| Unreadable {
            file: file.to_string_lossy().into_owned(),
            why: reason,
        });
        Kept { rules, unreadable: unreadable.collect() }
    }

    fn add(&self, rule: &ApprovalRule) -> Result<(), String> {
        self.0.add(rule).map(drop).map_err(|error| reasons(&error))
    }

    fn revoke(&self, rule: &ApprovalRule, by: &Actor) -> Result<bool, String> {
        self.0.revoke(rule, by).map_err(|error| reasons(&error))
    }

    fn record(&self, change: &Value) -> Result<(), String> {
        self.0.record(change).map_err(|error| reasons(&error))
    }
}

/// Who sits at the terminal, as the system knows.
pub fn person() -> Actor {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".to_owned());
    Actor { name, via: "terminal".to_owned() }
}
