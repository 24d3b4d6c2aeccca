//! Gated operations without an outcome.

use std::collections::{HashMap, HashSet};

use amplifier_core::{AuditEntry, IntentEntry, OutcomeEntry};

use crate::record::{Kind, Record};
use crate::report::UnresolvedOperation;

/// Pairs the intents of operations with their outcomes, from a stream of records.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    open: HashMap<Operation, Vec<UnresolvedOperation>>,
    count: usize,
}

/// The key that pairs an intent with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Operation {
    session: Box<str>,
    family: &'static str,
    call: Box<str>,
}

impl Operations {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record.
    pub fn observe(&mut self, record: &Record<'_>) {
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
            self.count += 1;
            self.open.entry(operation).or_default().push(UnresolvedOperation {
                seq: record.seq,
                time: record.time.to_string(),
                session: record.session.as_deref().map(str::to_owned),
                event: record.event.as_deref().map(str::to_owned),
                tool_call_id: call,
            });
        } else if let Some(open) = self.open.get_mut(&operation) {
            self.count -= usize::from(open.pop().is_some());
            if open.is_empty() {
                self.open.remove(&operation);
            }
        }
    }

    /// Returns the numbers of the records of the intents that have no outcome so far.
    pub fn unresolved(&self) -> HashSet<u64> {
        self.open.values().flatten().map(|one| one.seq).collect()
    }

    /// Forgets the older half of the intents without an outcome if there are more than `most`.
    pub fn limit(&mut self, most: usize) {
        if self.count <= most {
            return;
        }
        let mut seqs: Vec<u64> = self.unresolved().into_iter().collect();
        let middle = seqs.len() / 2;
        let (_, bound, _) = seqs.select_nth_unstable(middle);
        let bound = *bound;
        self.open.retain(|_, open| {
            open.retain(|one| one.seq >= bound);
            !open.is_empty()
        });
        self.count = self.open.values().map(Vec::len).sum();
    }

    /// Returns the operations that may have run and have no outcome, in order.
    pub fn into_unresolved(self) -> Vec<UnresolvedOperation> {
        let mut in_doubt: Vec<UnresolvedOperation> = self.open.into_values().flatten().collect();
        in_doubt.sort_unstable_by_key(|one| one.seq);
        in_doubt
    }
}
