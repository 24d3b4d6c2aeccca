//! Facts about sessions that outlive the daemon: it may be killed at any time.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use amplifier_process::files::{Durability, create_private_folder, write_atomic};
use serde::{Deserialize, Serialize};

use super::installation::Installation;

/// The time after which facts about a session that does not continue are removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The facts about one session of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionFacts {
    /// The session of the log, if this is a session of a sub-agent.
    pub(super) root: Option<String>,
    /// The reason why nothing of the session is allowed.
    pub(super) denied: Option<String>,
    /// The installation of the guard at the start of the session.
    pub(super) installation: Option<Installation>,
}

/// The folder with facts: one file for each session.
#[derive(Clone, Debug)]
pub(super) struct FactStore {
    folder: PathBuf,
    /// Held during a change. A std lock: nothing awaits meanwhile.
    changing: Arc<Mutex<()>>,
}

impl FactStore {
    /// Opens the folder, and removes old facts.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let folder = folder.join("sessions");
        create_private_folder(&folder)?;
        let now = SystemTime::now();
        for entry in fs::read_dir(&folder)?.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > KEPT)) {
                // An old file that stays does no harm.
                _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { folder, changing: Arc::default() })
    }

    /// Returns the facts about a session. A session without facts has none to be held against it.
    ///
    /// # Errors
    /// The reason if the facts cannot be read. The session could be denied then.
    pub(super) fn load(&self, id: &str) -> Result<SessionFacts, String> {
        let file = self.file(id);
        let failed = |error: &dyn std::fmt::Display| {
            format!("`{}` cannot be read: {error}; start a new session of the agent", file.display())
        };
        match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(&error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(SessionFacts::default()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Changes the facts about a session.
    ///
    /// # Errors
    /// The reason if the facts cannot be read or written.
    pub(super) fn update(&self, id: &str, change: impl FnOnce(&mut SessionFacts)) -> Result<(), String> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.load(id)?;
        let mut facts = before.clone();
        change(&mut facts);
        if facts == before {
            return Ok(());
        }
        let file = self.file(id);
        let written = serde_json::to_vec(&facts).map_err(io::Error::from);
        let written = written.and_then(|text| write_atomic(&file, &text, Durability::Cached));
        written.map_err(|error| format!("`{}` cannot be written: {error}", file.display()))
    }

    /// Forgets a session that has ended. A denial stays: a session that was ended must not continue.
    pub(super) fn end(&self, id: &str) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.load(id).is_ok_and(|facts| facts.denied.is_none()) {
            // It is removed later.
            _ = fs::remove_file(self.file(id));
        }
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}
