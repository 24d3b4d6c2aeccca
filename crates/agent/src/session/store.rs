//! Conversations on disk: a folder for each session, with what is known about it and every message as a line.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use amplifier_core::{Conversation, Message};
use amplifier_process::files::{Durability, OpenOptionsExt, create_private_folder, write_atomic};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::export::SessionExport;
use super::journal::{Journal, JournalEntry, JournalLine, at, now, replay, title};

pub(super) const META_FILE: &str = "session.json";
const MESSAGES_FILE: &str = "messages.jsonl";
/// In a file of its own, because whoever names a session is not the one who writes the rest.
const NAME_FILE: &str = "name";
/// A name is listed on terminals.
const MAX_NAME_CHARS: usize = 200;

/// Why a stored session cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Sessions are not kept.
    #[error("there is no place where sessions are kept")]
    None,
    /// There is none of that id.
    #[error("there is no session `{id}`; `amplifier sessions list` shows those there are")]
    Unknown {
        /// The id.
        id: String,
    },
    /// More than one begins so.
    #[error("{count} sessions begin with `{id}`; please give more of it")]
    Ambiguous {
        /// The beginning of an id.
        id: String,
        /// How many there are.
        count: usize,
    },
    /// It has no such turn.
    #[error("session `{id}` has {turns} turns, not {turn}")]
    NoTurn {
        /// The session.
        id: String,
        /// How many turns it has.
        turns: u64,
        /// The turn that was asked for.
        turn: u64,
    },
    /// Somebody else goes on with it.
    #[error("session `{id}` is in use; end it there, or fork it")]
    InUse {
        /// The session.
        id: String,
    },
    /// A line is not as it was written.
    #[error("`{path}`, line {line}, is damaged: {problem}; mend the line or take it away")]
    Damaged {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("`{path}` cannot be used: {error}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// What is known about a stored session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSession {
    /// Its id.
    pub id: String,
    /// When it began.
    pub created: String,
    /// When something last happened in it.
    pub updated: String,
    /// The session it branches off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The beginning of its first prompt.
    #[serde(default)]
    pub title: String,
    /// What it is called, if somebody has named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The provider.
    #[serde(default)]
    pub provider: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// How many turns it has.
    #[serde(default)]
    pub turns: u64,
    /// Why it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What it was started with, after hooks changed it.
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
    /// What to call it in a list: its name, or else the beginning of its first prompt.
    pub fn shown_title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.title)
    }
}

/// The folder where sessions are kept.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The folder at that path. It is made when a session is stored. A relative path is one of the folder that is current now.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        // A process that changes its folder later must not lose its sessions.
        Self { folder: std::path::absolute(&folder).unwrap_or(folder) }
    }

    /// Every session, the one that was used last first.
    ///
    /// Of a session whose `session.json` is missing or damaged, as after a crash, what its messages tell is listed.
    ///
    /// # Errors
    /// If files cannot be read.
    pub fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        let mut all = self.ids()?.iter().map(|id| self.meta(id)).collect::<Result<Vec<_>, _>>()?;
        all.sort_by(|a, b| (&b.updated, &b.id).cmp(&(&a.updated, &a.id)));
        Ok(all)
    }

    /// One session, by its id or the beginning of it; `last` is the one that was used last.
    ///
    /// # Errors
    /// If there is none, more than one, or it cannot be read.
    pub fn find(&self, id: &str) -> Result<StoredSession, StoreError> {
        let unknown = || StoreError::Unknown { id: id.to_owned() };
        if id == "last" {
            return self.list()?.into_iter().next().ok_or_else(unknown);
        }
        if id.is_empty() {
            return Err(unknown());
        }
        let ids = self.ids()?;
        let mut meant: Vec<&String> = ids.iter().filter(|known| known.starts_with(id)).collect();
        meant.sort_unstable();
        match meant[..] {
            [] => Err(unknown()),
            // The shortest comes first: all of an id is no beginning.
            [first, ..] if meant.len() == 1 || first == id => self.meta(first),
            _ => Err(StoreError::Ambiguous { id: id.to_owned(), count: meant.len() }),
        }
    }

    /// Names a session, also one that somebody works in. Whoever reads the name sees the old or the new, never a part; an empty one
    /// takes the name away.
    ///
    /// # Errors
    /// If there is no session of exactly that id, or the name cannot be written.
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

    /// All of a session, to be shown or kept elsewhere: every message, also those that compaction took out of the conversation.
    ///
    /// # Errors
    /// As [`find`](Self::find), and if a line is damaged.
    pub fn export(&self, id: &str) -> Result<SessionExport, StoreError> {
        let (session, lines) = self.load(id, None)?;
        let mut messages: Vec<(u64, Message)> = Vec::new();
        for JournalLine { turn, entry } in lines {
            match entry {
                JournalEntry::Message(message) => messages.push((turn, message)),
                // Most of it has been seen: what is new is the summary.
                JournalEntry::History(history) => {
                    for message in history {
                        if !messages.iter().any(|(_, seen)| *seen == message) {
                            messages.push((turn, message));
                        }
                    }
                }
            }
        }
        Ok(SessionExport { session, messages })
    }

    /// The lines of a session, all or those until the end of a turn.
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

    /// Begins the files of a session: with these lines, and what the conversation has beyond them.
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

    /// Goes on with the files of a session. Nothing is written yet.
    pub(super) fn reopen(&self, id: &str) -> Result<(Journal, StoredSession, Vec<Message>), StoreError> {
        let mut meta = self.find(id)?;
        let folder = self.folder.join(&meta.id);
        let path = folder.join(MESSAGES_FILE);
        let io_error = |error| io_error(&path, error);
        let mut file = OpenOptions::new().read(true).append(true).open(&path).map_err(io_error)?;
        // Before it is read, so that nobody adds to it behind our back.
        lock(&file, &meta.id)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io_error)?;
        let (lines, length) = read(&path, &text)?;
        meta.turns = turns(&meta, &lines);
        self.set_damaged_meta_aside(&meta.id)?;
        let history = replay(&lines);
        // The name stays where it is.
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
        // A name that cannot be read is none: it is not worth a session.
        let name = fs::read_to_string(self.folder.join(id).join(NAME_FILE)).ok();
        // The folder may have been copied: its name counts.
        Ok(StoredSession { id: id.to_owned(), name: name.filter(|name| !name.is_empty()), ..meta })
    }

    /// What messages tell about a session of which nothing else is known any more.
    fn rebuild_meta(&self, id: &str) -> Result<StoredSession, StoreError> {
        let path = self.folder.join(id).join(MESSAGES_FILE);
        let (text, place) = match fs::read(&path) {
            // Nothing was said yet: one such session must not hide the others.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), self.folder.join(id)),
            text => (text.map_err(|error| io_error(&path, error))?, path),
        };
        let modified =
            fs::metadata(&place).and_then(|about| about.modified()).map_err(|error| io_error(&place, error))?;
        let modified = Timestamp::try_from(modified).unwrap_or_default();
        // Damaged lines are an error where they count: when the session goes on.
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

    /// It is about to be written anew, and whatever is left of it may be of use to somebody.
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

/// When a session began, as its id tells.
fn time_from_id(id: &str) -> Option<Timestamp> {
    let (seconds, nanoseconds) = uuid::Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    Timestamp::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?).ok()
}

/// The lines of a file, and how long the whole ones are together. The last one does not count if it was cut off.
fn read(path: &Path, text: &[u8]) -> Result<(Vec<JournalLine>, u64), StoreError> {
    let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = text[..length].split_inclusive(|byte| *byte == b'\n');
    let lines = whole.enumerate().map(|(at, line)| {
        serde_json::from_slice(line).map_err(|error| {
            let problem = error.to_string();
            // It is asked about one line, so it always speaks of the first.
            let place = format!(" at line {} column {}", error.line(), error.column());
            let problem = problem.strip_suffix(&place).unwrap_or(&problem).to_owned();
            StoreError::Damaged { path: path.display().to_string(), line: at + 1, problem }
        })
    });
    Ok((lines.collect::<Result<_, _>>()?, length as u64))
}

/// How many turns there are. A crash may have come between a message and the count.
fn turns(meta: &StoredSession, lines: &[JournalLine]) -> u64 {
    lines.iter().map(|line| line.turn).max().unwrap_or(0).max(meta.turns)
}

/// Keeps others from writing to the file as long as it is open. Where files cannot be locked, nothing does.
fn lock(file: &File, id: &str) -> Result<(), StoreError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { id: id.to_owned() }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

pub(super) fn io_error(path: &Path, error: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}
