//! Which gated operations have begun and not ended, while records go by.

use std::collections::HashMap;

use amplifier_core::{AuditEntry, IntentEntry, OutcomeEntry};

use crate::record::{Kind, Record};
use crate::report::InDoubt;

/// Pairs the intents of operations with their outcomes, while records go by.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// Intents without an outcome so far.
    open: HashMap<Operation, Vec<InDoubt>>,
}

/// What pairs an intent with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Operation {
    session: Box<str>,
    family: &'static str,
    call: Box<str>,
}

impl Operations {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a record into account.
    pub fn see(&mut self, record: &Record<'_>) {
        if !matches!(record.kind, Kind::Intent | Kind::Outcome) {
            return;
        }
        let event = record.event.as_deref().unwrap_or_default();
        let family = match event.split_once(':').map_or("", |(family, _)| family) {
            "tool" => "tool",
            "provider" => "provider",
            _ if event == "error:provider" => "provider",
            "agent" => "agent",
            _ => "operation",
        };
        let call = match record.entry(record.body.get()) {
            Ok(Some(AuditEntry::Intent(IntentEntry { tool_call_id, .. }))) => tool_call_id,
            Ok(Some(AuditEntry::Outcome(OutcomeEntry { tool_call_id, .. }))) => tool_call_id,
            _ => None,
        };
        let operation = Operation {
            session: record.session.as_deref().unwrap_or_default().into(),
            family,
            call: call.as_deref().unwrap_or_default().into(),
        };
        if record.kind == Kind::Intent {
            self.open.entry(operation).or_default().push(InDoubt {
                seq: record.seq,
                time: record.time.to_string(),
                session: record.session.as_deref().map(str::to_owned),
                event: record.event.as_deref().map(str::to_owned),
                tool_call_id: call,
            });
        } else if let Some(open) = self.open.get_mut(&operation) {
            open.pop();
            if open.is_empty() {
                self.open.remove(&operation);
            }
        }
    }

    /// The operations that may have run, and nobody knows how they ended; in order.
    pub fn in_doubt(self) -> Vec<InDoubt> {
        let mut in_doubt: Vec<InDoubt> = self.open.into_values().flatten().collect();
        in_doubt.sort_unstable_by_key(|one| one.seq);
        in_doubt
    }
}
