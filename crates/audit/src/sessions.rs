//! Sessions and their operations, from a stream of records.

use std::collections::HashMap;

use serde::Deserialize;

use crate::operations::Operations;
use crate::phrases::counted;
use crate::record::{Kind, Record};
use crate::report::{Problem, UnresolvedOperation};

#[derive(Clone, Default)]
pub(crate) struct SessionTracker {
    sessions: HashMap<Box<str>, TrackedSession>,
    operations: Operations,
}

#[derive(Clone, Default)]
struct TrackedSession {
    is_sealed: bool,
    unsealed: HashMap<Box<str>, u64>,
}

pub(crate) struct SessionSummary {
    pub(crate) sealed: u64,
    pub(crate) unsealed: Vec<String>,
    pub(crate) in_doubt: Vec<UnresolvedOperation>,
}

impl SessionTracker {
    /// Adds a record. With `may_lack`, a seal may count more records than the log has.
    pub(crate) fn observe(&mut self, record: &Record<'_>, may_lack: bool) -> Result<(), (Problem, String)> {
        self.operations.observe(record);
        let Some(name) = record.session.as_deref() else { return Ok(()) };
        // A lookup first, because the entry nearly always exists.
        if !self.sessions.contains_key(name) {
            self.sessions.insert(name.into(), TrackedSession::default());
        }
        let Some(session) = self.sessions.get_mut(name) else { return Ok(()) };
        session.is_sealed = record.kind == Kind::Seal;
        if record.kind != Kind::Seal {
            match session.unsealed.get_mut(&*record.writer) {
                Some(count) => *count += 1,
                None => _ = session.unsealed.insert((&*record.writer).into(), 1),
            }
            return Ok(());
        }
        #[derive(Deserialize)]
        struct SealBody {
            records: u64,
        }
        let found = session.unsealed.remove(&*record.writer).unwrap_or(0);
        let SealBody { records } = record.body().map_err(|error| (Problem::Unreadable, error.to_string()))?;
        if records == found || (records > found && may_lack) {
            return Ok(());
        }
        Err((
            Problem::Seal,
            format!(
                "the seal of session `{name}` counts {} of its writer, where the log has {found}",
                counted(records, "record")
            ),
        ))
    }

    pub(crate) fn finish(self) -> SessionSummary {
        let (sealed, unsealed): (Vec<_>, Vec<_>) =
            self.sessions.into_iter().partition(|(_, session)| session.is_sealed);
        let mut unsealed: Vec<String> = unsealed.into_iter().map(|(name, _)| name.into()).collect();
        unsealed.sort_unstable();
        SessionSummary { sealed: sealed.len() as u64, unsealed, in_doubt: self.operations.into_unresolved() }
    }
}
