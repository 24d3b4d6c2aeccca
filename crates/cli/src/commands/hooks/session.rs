//! Which recorded session is meant.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use amplifier_agent::{Store, StoreError};
use amplifier_audit::Operations;
use anyhow::{Result, bail};

use crate::commands::audit::reader::LogReader;

/// The sessions of logs, and their unresolved operations.
#[derive(Default)]
pub(super) struct RecordedSessions {
    ids: BTreeSet<String>,
    /// The one with the newest record.
    last: Option<String>,
    /// The intents of operations without a result.
    pub(super) unresolved: HashSet<u64>,
}

impl RecordedSessions {
    /// Reads who is in a log.
    pub(super) fn read(log: &Path) -> Result<Self> {
        Self::read_all(&[log.to_owned()])
    }

    /// The same of several.
    pub(super) fn read_all(logs: &[PathBuf]) -> Result<Self> {
        let mut sessions = Self::default();
        let mut newest = String::new();
        for log in logs {
            let mut operations = Operations::new();
            LogReader::open_path(log)?.read(|record| {
                operations.see(record);
                let Some(session) = record.session.as_deref() else { return Ok(()) };
                if !sessions.ids.contains(session) {
                    sessions.ids.insert(session.to_owned());
                }
                if *record.time >= *newest {
                    record.time.as_ref().clone_into(&mut newest);
                    if sessions.last.as_deref() != Some(session) {
                        sessions.last = Some(session.to_owned());
                    }
                }
                Ok(())
            })?;
            sessions.unresolved.extend(operations.unresolved());
        }
        Ok(sessions)
    }

    /// The session that is meant by an id, its beginning, or `last`. The store is that of the installation, if the log is its own.
    pub(super) fn find(&self, wanted: &str, store: Option<&Store>) -> Result<String> {
        let stored = match store {
            Some(store) => store.list()?,
            None => Vec::new(),
        };
        if wanted == "last" {
            let last = stored.first().map(|session| session.id.clone()).or_else(|| self.last.clone());
            return self.recorded(last.ok_or_else(|| StoreError::Unknown { id: wanted.to_owned() })?);
        }
        let stored = stored.into_iter().map(|session| session.id);
        let known: BTreeSet<String> = self.ids.iter().cloned().chain(stored).collect();
        let meant: Vec<&String> = known.iter().filter(|id| !wanted.is_empty() && id.starts_with(wanted)).collect();
        match meant[..] {
            [] => bail!(
                "there is no session `{wanted}`; `amplifier sessions list` and `amplifier audit stats` show those there are"
            ),
            // The shortest comes first: all of an id is no beginning.
            [first, ..] if meant.len() == 1 || first == wanted => self.recorded(first.clone()),
            _ => Err(StoreError::Ambiguous { id: wanted.to_owned(), count: meant.len() }.into()),
        }
    }

    fn recorded(&self, id: String) -> Result<String> {
        if !self.ids.contains(&id) {
            bail!("there is nothing about the session `{id}` in the audit log");
        }
        Ok(id)
    }
}
