//! Stored sessions: a folder for each, with the metadata and one line per message.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use amplifier_core::session_id::{self, AmbiguousSessionId};
use amplifier_core::{Conversation, Message};
use amplifier_process::files::{Durability, OpenOptionsExt, create_private_folder, write_atomic};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::export::SessionExport;
use super::journal::{Journal, JournalEntry, JournalLine, at, now, replay, title};

pub(super) const META_FILE: &str = "session.json";
const MESSAGES_FILE: &str = "messages.jsonl";
/// A file of its own, because the name is set by another process than the one that writes the rest.
const NAME_FILE: &str = "name";
/// The longest name, in characters. Names are printed to terminals.
const MAX_NAME_CHARS: usize = 200;

/// The time that the end of another use of a session may take.
const LOCK_WAIT: Duration = Duration::from_millis(100);

/// The reason why a stored session cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No store is configured.
    #[error("no session store is configured")]
    None,
    /// The id is unknown.
    #[error("unknown session `{id}`; run `amplifier sessions list` to list the sessions")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Several sessions begin or end with the text.
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousSessionId),
    /// The turn is unknown.
    #[error("session `{id}` has {turns} turns, not {turn}")]
    NoTurn {
        /// The session.
        id: String,
        /// The number of turns.
        turns: u64,
        /// The requested turn.
        turn: u64,
    },
    /// Another process writes to the session.
    #[error("session `{id}` is in use; end it there, or fork it")]
    InUse {
        /// The session.
        id: String,
    },
    /// A line cannot be read.
    #[error("invalid line {line} in `{path}`: {problem}; repair or remove the line")]
    Damaged {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("`{path}` cannot be used: {error}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        error: io::Error,
    },
}

/// The metadata of a stored session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSession {
    /// The id.
    pub id: String,
    /// The start time.
    pub created: String,
    /// The time of the last change.
    pub updated: String,
    /// The session that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The beginning of the first prompt.
    #[serde(default)]
    pub title: String,
    /// The name, if the user has set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The provider.
    #[serde(default)]
    pub provider: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// The number of turns.
    #[serde(default)]
    pub turns: u64,
    /// The reason for the end, if the session has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The mount plan of the start, as hooks left it.
    #[serde(default)]
    pub mount_plan: Value,
}

impl StoredSession {
    pub(super) fn new(id: &str) -> Self {
        let now = now();
        Self {
            id: id.to_owned(),
            created: now.clone(),
            updated: now,
            parent: None,
            title: String::new(),
            name: None,
            provider: String::new(),
            model: String::new(),
            turns: 0,
            ended: None,
            mount_plan: Value::Null,
        }
    }
}

impl StoredSession {
    /// Returns the name, or else the title.
    pub fn shown_title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.title)
    }
}

/// A folder of stored sessions.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// A store in this folder, which is created with the first session. A relative path refers to the current folder at this moment.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        // A later change of the current folder must not lose the sessions.
        Self { folder: std::path::absolute(&folder).unwrap_or(folder) }
    }

    /// Lists all sessions, the most recently used first.
    ///
    /// If the `session.json` of a session is missing or damaged, for example after a crash, the entry is rebuilt from its messages.
    ///
    /// # Errors
    /// If files cannot be read.
    pub fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        let mut all = self.ids()?.iter().map(|id| self.meta(id)).collect::<Result<Vec<_>, _>>()?;
        all.sort_by(|a, b| (&b.updated, &b.id).cmp(&(&a.updated, &a.id)));
        Ok(all)
    }

    /// Finds a session by its id, or by the beginning or the end of the id; `last` is the most recently used one.
    ///
    /// # Errors
    /// If none or several match, or the session cannot be read.
    pub fn find(&self, id: &str) -> Result<StoredSession, StoreError> {
        let unknown = || StoreError::Unknown { id: id.to_owned() };
        if id == "last" {
            return self.list()?.into_iter().next().ok_or_else(unknown);
        }
        let ids = self.ids()?;
        let found = session_id::find(id, ids.iter().map(String::as_str))?;
        self.meta(found.ok_or_else(unknown)?)
    }

    /// Names a session, even while another process uses it. The change is atomic; an empty name removes the name.
    ///
    /// # Errors
    /// If no session has exactly this id, or the name cannot be written.
    pub fn name(&self, id: &str, name: &str) -> Result<(), StoreError> {
        if !self.ids()?.iter().any(|known| known == id) {
            return Err(StoreError::Unknown { id: id.to_owned() });
        }
        let words: Vec<&str> = name.split_whitespace().collect();
        let name: String = words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect();
        let path = self.folder.join(id).join(NAME_FILE);
        if name.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(&path, error)),
                _ => Ok(()),
            };
        }
        write_atomic(&path, name.as_bytes(), Durability::Synced).map_err(|error| io_error(&path, error))
    }

    /// Exports a session with every message, including those removed by compaction.
    ///
    /// # Errors
    /// As [`find`](Self::find), and if a line is damaged.
    pub fn export(&self, id: &str) -> Result<SessionExport, StoreError> {
        let (session, lines) = self.load(id, None)?;
        let mut messages: Vec<(u64, Message)> = Vec::new();
        for JournalLine { turn, entry } in lines {
            match entry {
                JournalEntry::Message(message) => messages.push((turn, message)),
                // Only the summary is new.
                JournalEntry::History(history) => {
                    for message in history {
                        if !messages.iter().any(|(_, other)| *other == message) {
                            messages.push((turn, message));
                        }
                    }
                }
            }
        }
        Ok(SessionExport { session, messages })
    }

    /// Loads the metadata and the lines of a session, all or up to the end of a turn.
    pub(super) fn load(&self, id: &str, turn: Option<u64>) -> Result<(StoredSession, Vec<JournalLine>), StoreError> {
        let mut meta = self.find(id)?;
        let path = self.folder.join(&meta.id).join(MESSAGES_FILE);
        let text = fs::read(&path).map_err(|error| io_error(&path, error))?;
        let (mut lines, _) = read(&path, &text)?;
        meta.turns = turns(&meta, &lines);
        if let Some(turn) = turn {
            if turn > meta.turns {
                return Err(StoreError::NoTurn { id: meta.id, turns: meta.turns, turn });
            }
            lines.retain(|line| line.turn <= turn);
        }
        Ok((meta, lines))
    }

    /// Creates the files of a session with these lines and the rest of the conversation.
    pub(super) fn create(
        &self,
        meta: StoredSession,
        lines: Vec<JournalLine>,
        conversation: &Conversation,
    ) -> Result<Journal, StoreError> {
        let folder = self.folder.join(&meta.id);
        create_private_folder(&folder).map_err(|error| io_error(&folder, error))?;
        let journal = begin(&folder, meta, lines, conversation);
        if journal.is_err()
            && let Err(error) = fs::remove_dir_all(&folder)
        {
            tracing::warn!(%error, "the folder of a session that did not begin is still there");
        }
        journal
    }

    /// Opens the files of a session. Nothing is written yet.
    pub(super) fn reopen(&self, id: &str) -> Result<(Journal, StoredSession, Vec<Message>), StoreError> {
        let mut meta = self.find(id)?;
        let folder = self.folder.join(&meta.id);
        let path = folder.join(MESSAGES_FILE);
        let io_error = |error| io_error(&path, error);
        let mut file = OpenOptions::new().read(true).append(true).open(&path).map_err(io_error)?;
        // Locked before reading, so that no other process appends meanwhile.
        lock(&file, &meta.id)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io_error)?;
        let (lines, length) = read(&path, &text)?;
        meta.turns = turns(&meta, &lines);
        self.set_damaged_meta_aside(&meta.id)?;
        let history = replay(&lines);
        // The name stays in its own file.
        let own = StoredSession { name: None, ..meta.clone() };
        let journal = Journal::new(folder, file, own, length, history.len()).map_err(io_error)?;
        Ok((journal, meta, history))
    }

    fn ids(&self) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error(&self.folder, error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| io_error(&self.folder, error))?;
            if [META_FILE, MESSAGES_FILE].iter().any(|file| entry.path().join(file).is_file()) {
                ids.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(ids)
    }

    fn meta(&self, id: &str) -> Result<StoredSession, StoreError> {
        let path = self.folder.join(id).join(META_FILE);
        let meta = match fs::read(&path) {
            Ok(text) => match serde_json::from_slice::<StoredSession>(&text) {
                Ok(meta) => meta,
                Err(_) => self.rebuild_meta(id)?,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.rebuild_meta(id)?,
            Err(error) => return Err(io_error(&path, error)),
        };
        // An unreadable name is ignored: the session itself is intact.
        let name = fs::read_to_string(self.folder.join(id).join(NAME_FILE)).ok();
        // The folder may have been copied, so its name is the id.
        Ok(StoredSession { id: id.to_owned(), name: name.filter(|name| !name.is_empty()), ..meta })
    }

    fn rebuild_meta(&self, id: &str) -> Result<StoredSession, StoreError> {
        let path = self.folder.join(id).join(MESSAGES_FILE);
        let (text, source) = match fs::read(&path) {
            // No message was written yet. One such session must not hide the others.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), self.folder.join(id)),
            text => (text.map_err(|error| io_error(&path, error))?, path),
        };
        let modified =
            fs::metadata(&source).and_then(|about| about.modified()).map_err(|error| io_error(&source, error))?;
        let modified = Timestamp::try_from(modified).unwrap_or_default();
        // Damaged lines are an error only on resume.
        let lines: Vec<JournalLine> = text.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
        let meta = StoredSession::new(id);
        Ok(StoredSession {
            created: at(time_from_id(id).unwrap_or(modified)),
            updated: at(modified),
            title: lines.iter().find_map(title).unwrap_or_default(),
            turns: turns(&meta, &lines),
            ..meta
        })
    }

    /// Keeps a copy of damaged metadata, which is about to be overwritten.
    fn set_damaged_meta_aside(&self, id: &str) -> Result<(), StoreError> {
        let path = self.folder.join(id).join(META_FILE);
        let is_damaged = fs::read(&path).is_ok_and(|text| serde_json::from_slice::<StoredSession>(&text).is_err());
        if is_damaged {
            let aside = path.with_extension("json.damaged");
            fs::copy(&path, &aside).map_err(|error| io_error(&aside, error))?;
        }
        Ok(())
    }
}

fn begin(
    folder: &Path,
    meta: StoredSession,
    lines: Vec<JournalLine>,
    conversation: &Conversation,
) -> Result<Journal, StoreError> {
    let path = folder.join(MESSAGES_FILE);
    let io_error = |error| io_error(&path, error);
    let file = OpenOptions::new().create(true).append(true).owner_only().open(&path).map_err(io_error)?;
    lock(&file, &meta.id)?;
    let history = replay(&lines);
    let mut journal = Journal::new(folder.to_owned(), file, meta, 0, history.len()).map_err(io_error)?;
    journal.write(lines).map_err(io_error)?;
    journal.resume(&history, conversation, |_| ())
}

fn time_from_id(id: &str) -> Option<Timestamp> {
    let (seconds, nanoseconds) = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    Timestamp::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?).ok()
}

/// Parses complete lines, and returns their total length. An incomplete last line is ignored.
fn read(path: &Path, text: &[u8]) -> Result<(Vec<JournalLine>, u64), StoreError> {
    let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = text[..length].split_inclusive(|byte| *byte == b'\n');
    let lines = whole.enumerate().map(|(at, line)| {
        serde_json::from_slice(line).map_err(|error| {
            let problem = error.to_string();
            // The parser sees one line at a time, so its line number is always 1.
            let position = format!(" at line {} column {}", error.line(), error.column());
            let problem = problem.strip_suffix(&position).unwrap_or(&problem).to_owned();
            StoreError::Damaged { path: path.display().to_string(), line: at + 1, problem }
        })
    });
    Ok((lines.collect::<Result<_, _>>()?, length as u64))
}

/// Returns the number of turns. A crash may have come between a message and the count.
fn turns(meta: &StoredSession, lines: &[JournalLine]) -> u64 {
    lines.iter().map(|line| line.turn).max().unwrap_or(0).max(meta.turns)
}

/// Locks the file while it is open. File systems without locks are accepted.
fn lock(file: &File, id: &str) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        match file.try_lock() {
            // A program that is being started holds the files of its parent for an instant.
            Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_WAIT / 20),
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { id: id.to_owned() }),
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

pub(super) fn io_error(path: &Path, error: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}
