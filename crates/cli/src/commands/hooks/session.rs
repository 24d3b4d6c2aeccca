//! Lookup of recorded sessions.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use amplifier_agent::{Store, StoreError};
use amplifier_audit::Operations;
use amplifier_core::session_id;
use anyhow::{Result, bail};

use crate::commands::audit::reader::LogReader;

/// The sessions in audit logs, and their unresolved operations.
#[derive(Default)]
pub(crate) struct RecordedSessions {
    ids: BTreeSet<String>,
    last: Option<String>,
    /// The intent records of operations without a result.
    pub(super) unresolved: HashSet<u64>,
}

impl RecordedSessions {
    pub(crate) fn read(log: &Path) -> Result<Self> {
        Self::read_all(&[log.to_owned()])
    }

    pub(super) fn read_all(logs: &[PathBuf]) -> Result<Self> {
        let mut sessions = Self::default();
        let mut newest = String::new();
        for log in logs {
            let mut operations = Operations::new();
            LogReader::open_path(log)?.read(|record| {
                operations.observe(record);
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

    /// Resolves a session id, the beginning or the end of one, or `last`. `store` is given if the log belongs to this installation.
    pub(crate) fn find(&self, wanted: &str, store: Option<&Store>) -> Result<String> {
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
        match session_id::find(wanted, known.iter().map(String::as_str))? {
            Some(id) => self.recorded(id.to_owned()),
            None => bail!("unknown session `{wanted}`; see `amplifier sessions list` and `amplifier audit stats`"),
        }
    }

    fn recorded(&self, id: String) -> Result<String> {
        if !self.ids.contains(&id) {
            bail!("session `{id}` is not in the audit log");
        }
        Ok(id)
    }
}
