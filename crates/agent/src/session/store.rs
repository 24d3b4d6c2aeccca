//! Conversations on disk: a folder for each session, with what is known about it and every message as a line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use amplifier_core::{Message, Speaker};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::export::Exported;

const META: &str = "session.json";
const MESSAGES: &str = "messages.jsonl";
/// So much of the first prompt tells sessions apart.
const TITLE: usize = 80;

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
    /// A file is not as it was written.
    #[error("`{path}` is damaged: {problem}")]
    Damaged {
        /// The file.
        path: String,
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

pub(crate) use StoredSession as Meta;

impl Meta {
    pub(super) fn new(id: &str) -> Self {
        let now = Timestamp::now().to_string();
        Self {
            id: id.to_owned(),
            created: now.clone(),
            updated: now,
            parent: None,
            title: String::new(),
            provider: String::new(),
            model: String::new(),
            turns: 0,
            ended: None,
            mount_plan: Value::Null,
        }
    }
}

/// A line of the messages.
#[derive(Serialize, Deserialize)]
struct Line {
    turn: u64,
    #[serde(flatten)]
    entry: Entry,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Message(Message),
    /// The conversation was shortened, or begins with that of another session: this takes the place of everything before.
    History(Vec<Message>),
}

/// The folder where sessions are kept.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The folder at that path. It is made when a session is stored.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Every session, the newest first.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        let mut all = self.ids()?.iter().map(|id| self.meta(id)).collect::<Result<Vec<_>, _>>()?;
        all.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| b.id.cmp(&a.id)));
        Ok(all)
    }

    /// One session, by its id or the beginning of it; `last` is the newest.
    ///
    /// # Errors
    /// If there is none, more than one, or it cannot be read.
    pub fn find(&self, id: &str) -> Result<StoredSession, StoreError> {
        let unknown = || StoreError::Unknown { id: id.to_owned() };
        if id == "last" {
            return self.list()?.into_iter().next().ok_or_else(unknown);
        }
        let mut meant: Vec<String> = self.ids()?.into_iter().filter(|known| known.starts_with(id)).collect();
        match meant.len() {
            1 => self.meta(&meant.remove(0)),
            0 => Err(unknown()),
            count => Err(StoreError::Ambiguous { id: id.to_owned(), count }),
        }
    }

    /// All of a session, to be shown or kept elsewhere: every message, also those that compaction took out of the conversation.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn export(&self, id: &str) -> Result<Exported, StoreError> {
        let session = self.find(id)?;
        let mut messages = Vec::new();
        for line in self.lines(&session.id)? {
            match line.entry {
                Entry::Message(message) => messages.push((line.turn, message)),
                Entry::History(history) if messages.is_empty() => {
                    messages.extend(history.into_iter().map(|message| (line.turn, message)));
                }
                Entry::History(history) => {
                    messages.extend(history.into_iter().filter(is_summary).map(|message| (line.turn, message)));
                }
            }
        }
        Ok(Exported { session, messages })
    }

    pub(super) fn load(&self, id: &str) -> Result<(Meta, Vec<Message>), StoreError> {
        self.load_until(id, None)
    }

    /// The conversation as it was after a turn.
    pub(super) fn load_until(&self, id: &str, turn: Option<u64>) -> Result<(Meta, Vec<Message>), StoreError> {
        let meta = self.find(id)?;
        if let Some(turn) = turn.filter(|turn| *turn > meta.turns) {
            return Err(StoreError::NoTurn { id: meta.id, turns: meta.turns, turn });
        }
        let mut history = Vec::new();
        for line in self.lines(&meta.id)?.into_iter().filter(|line| turn.is_none_or(|turn| line.turn <= turn)) {
            match line.entry {
                Entry::Message(message) => history.push(message),
                Entry::History(replaced) => history = replaced,
            }
        }
        Ok((meta, history))
    }

    pub(super) fn create(&self, meta: Meta) -> Result<Journal, StoreError> {
        let folder = self.folder.join(&meta.id);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| io(&folder, error))?;
        let file = open(&folder.join(MESSAGES))?;
        let mut journal = Journal { folder, file, turn: meta.turns, meta, saved: 0, failure: None };
        journal.update(|_| ());
        match journal.failure.take() {
            Some(error) => Err(io(&journal.folder, error)),
            None => Ok(journal),
        }
    }

    /// Goes on with the messages of a session. A line that was cut off when they were last written is taken away.
    pub(super) fn reopen(&self, meta: &Meta, saved: usize) -> Result<Journal, StoreError> {
        let folder = self.folder.join(&meta.id);
        let path = folder.join(MESSAGES);
        let text = fs::read(&path).map_err(|error| io(&path, error))?;
        let file = open(&path)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(|error| io(&path, error))?;
        }
        let meta = Meta { ended: None, ..meta.clone() };
        Ok(Journal { folder, file, turn: meta.turns, meta, saved, failure: None })
    }

    fn ids(&self) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(&self.folder, error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| io(&self.folder, error))?;
            if entry.path().join(META).is_file() {
                ids.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(ids)
    }

    fn meta(&self, id: &str) -> Result<Meta, StoreError> {
        let path = self.folder.join(id).join(META);
        let text = fs::read(&path).map_err(|error| io(&path, error))?;
        serde_json::from_slice(&text).map_err(|error| damaged(&path, &error))
    }

    fn lines(&self, id: &str) -> Result<Vec<Line>, StoreError> {
        let path = self.folder.join(id).join(MESSAGES);
        let text = fs::read(&path).map_err(|error| io(&path, error))?;
        let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        whole.map(|line| serde_json::from_slice(line).map_err(|error| damaged(&path, &error))).collect()
    }
}

/// Whether a message stands for those that compaction took out.
fn is_summary(message: &Message) -> bool {
    message.metadata.get("source").is_some_and(|source| source == crate::compact::SOURCE)
}

/// Where a session writes down what happens in it.
pub(crate) struct Journal {
    folder: PathBuf,
    file: File,
    meta: Meta,
    pub(crate) turn: u64,
    /// How many messages of the conversation are written down.
    pub(crate) saved: usize,
    /// What went wrong last, for whoever looks.
    pub(crate) failure: Option<io::Error>,
}

impl Journal {
    pub(crate) fn append(&mut self, messages: &[Message]) {
        if messages.is_empty() {
            return;
        }
        let mut lines = Vec::new();
        for message in messages {
            self.line(&mut lines, Entry::Message(message.clone()));
        }
        if let Some(prompt) = messages.iter().find(|message| message.role == Speaker::User)
            && self.meta.title.is_empty()
        {
            self.meta.title =
                prompt.content.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE).collect();
        }
        self.write(&lines, messages.len());
    }

    pub(crate) fn replace(&mut self, history: &[Message]) {
        let mut line = Vec::new();
        self.line(&mut line, Entry::History(history.to_vec()));
        self.saved = 0;
        self.write(&line, history.len());
    }

    pub(crate) fn end(&mut self, reason: &str) {
        let reason = reason.to_owned();
        self.update(|meta| meta.ended = Some(reason));
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Meta)) {
        change(&mut self.meta);
        self.meta.turns = self.turn;
        self.meta.updated = Timestamp::now().to_string();
        let path = self.folder.join(META);
        let written = serde_json::to_vec_pretty(&self.meta).map_err(io::Error::other).and_then(|text| {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(&text)?;
            file.persist(&path)?;
            Ok(())
        });
        self.failure = written.err().or(self.failure.take());
    }

    fn line(&self, lines: &mut Vec<u8>, entry: Entry) {
        let line = Line { turn: self.turn, entry };
        if let Ok(text) = serde_json::to_vec(&line) {
            lines.extend_from_slice(&text);
            lines.push(b'\n');
        }
    }

    fn write(&mut self, lines: &[u8], messages: usize) {
        match self.file.write_all(lines) {
            Ok(()) => {
                self.saved += messages;
                self.update(|_| ());
            }
            Err(error) => self.failure = Some(error),
        }
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.map_err(|error| io(path, error))
}

fn io(path: &Path, error: io::Error) -> StoreError {
    StoreError::Io { path: path.display().to_string(), error }
}

fn damaged(path: &Path, problem: &serde_json::Error) -> StoreError {
    StoreError::Damaged { path: path.display().to_string(), problem: problem.to_string() }
}
