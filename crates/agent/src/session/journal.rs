//! The files of a session: a line for each message, and the metadata beside them.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use amplifier_core::{Conversation, Message, Speaker};
use amplifier_process::files::{Durability, write_atomic};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::store::{META_FILE, StoreError, StoredSession, io_error};

const MAX_TITLE_CHARS: usize = 80;

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct JournalLine {
    pub(super) turn: u64,
    #[serde(flatten)]
    pub(super) entry: JournalEntry,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalEntry {
    Message(Message),
    /// The conversation was compacted: this replaces all messages before.
    History(Vec<Message>),
}

pub(super) fn replay(lines: &[JournalLine]) -> Vec<Message> {
    let mut history = Vec::new();
    for line in lines {
        match &line.entry {
            JournalEntry::Message(message) => history.push(message.clone()),
            JournalEntry::History(replaced) => history.clone_from(replaced),
        }
    }
    history
}

/// The files of one session, open for writing. The messages file is locked, so that no other process writes to it.
pub(crate) struct Journal {
    folder: PathBuf,
    file: File,
    meta: StoredSession,
    pub(crate) turn: u64,
    /// The number of messages of the conversation that have become lines.
    saved: usize,
    unwritten: Vec<JournalLine>,
    length: u64,
    /// `true` if the file ends with an incomplete line.
    is_torn: bool,
    is_stale: bool,
    pub(crate) is_failing: bool,
}

impl Journal {
    /// Continues after `length` bytes of complete lines, which contain `saved` messages.
    pub(super) fn new(folder: PathBuf, file: File, meta: StoredSession, length: u64, saved: usize) -> io::Result<Self> {
        let is_torn = file.metadata()?.len() != length;
        let turn = meta.turns;
        let (unwritten, is_stale, is_failing) = (Vec::new(), false, false);
        Ok(Self { folder, file, meta, turn, saved, unwritten, length, is_torn, is_stale, is_failing })
    }

    /// Continues with a conversation that begins with `written`.
    pub(super) fn resume(
        mut self,
        written: &[Message],
        conversation: &Conversation,
        change: impl FnOnce(&mut StoredSession),
    ) -> Result<Self, StoreError> {
        let is_longer = conversation.history().starts_with(written);
        let saved = if is_longer { self.save(conversation) } else { self.replace(conversation) };
        match saved.and_then(|()| self.update(change)) {
            Ok(()) => Ok(self),
            Err(error) => Err(io_error(&self.folder, error)),
        }
    }

    /// Writes the new messages. After a failure, the next call writes them: none is lost, and none is written twice.
    pub(crate) fn save(&mut self, conversation: &Conversation) -> io::Result<()> {
        let new = conversation.history_since(self.saved);
        self.saved += new.len();
        let turn = self.turn;
        self.write(new.into_iter().map(|message| JournalLine { turn, entry: JournalEntry::Message(message) }))
    }

    pub(crate) fn replace(&mut self, conversation: &Conversation) -> io::Result<()> {
        let history = conversation.history();
        self.saved = history.len();
        self.write([JournalLine { turn: self.turn, entry: JournalEntry::History(history) }])
    }

    pub(crate) fn end(&mut self, conversation: &Conversation, reason: &str) -> io::Result<()> {
        let saved = self.save(conversation);
        let synced = self.file.sync_data();
        let updated = self.update(|meta| meta.ended = Some(reason.to_owned()));
        saved.and(synced).and(updated)
    }

    /// Writes the metadata atomically.
    pub(super) fn update(&mut self, change: impl FnOnce(&mut StoredSession)) -> io::Result<()> {
        change(&mut self.meta);
        self.meta.turns = self.turn;
        self.meta.updated = now();
        self.is_stale = true;
        // Not synced: it is written at every turn, and most of it can be rebuilt from the messages.
        write_atomic(&self.folder.join(META_FILE), &serde_json::to_vec_pretty(&self.meta)?, Durability::Cached)?;
        self.is_stale = false;
        Ok(())
    }

    /// Writes the pending lines and these: all or none.
    pub(super) fn write(&mut self, lines: impl IntoIterator<Item = JournalLine>) -> io::Result<()> {
        self.unwritten.extend(lines);
        if self.unwritten.is_empty() {
            return if self.is_stale { self.update(|_| ()) } else { Ok(()) };
        }
        let mut text = Vec::new();
        for line in &self.unwritten {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        // An incomplete line must not stay between others.
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        if let Err(error) = self.file.write_all(&text) {
            self.is_torn = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += text.len() as u64;
        if self.meta.title.is_empty() {
            self.meta.title = self.unwritten.iter().find_map(title).unwrap_or_default();
        }
        self.unwritten.clear();
        self.update(|_| ())
    }
}

/// Returns the beginning of the prompt. Messages of hooks and of compaction have a `source`, and are skipped.
pub(super) fn title(line: &JournalLine) -> Option<String> {
    let is_prompt = |message: &&Message| message.role == Speaker::User && !message.metadata.contains_key("source");
    let prompt = match &line.entry {
        JournalEntry::Message(message) => Some(message).filter(is_prompt),
        JournalEntry::History(history) => history.iter().find(is_prompt),
    }?;
    let words: Vec<&str> = prompt.content.split_whitespace().collect();
    // Titles are printed to terminals.
    Some(words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_TITLE_CHARS).collect())
}

/// Returns the current time in a fixed width, so that times sort as text.
pub(super) fn now() -> String {
    at(Timestamp::now())
}

pub(super) fn at(time: Timestamp) -> String {
    format!("{time:.6}")
}
