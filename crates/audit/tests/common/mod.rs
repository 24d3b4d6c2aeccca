//! Helpers for the tests.
#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod disk;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use amplifier_audit::{Folder, Log, LogOptions, Record, Report, Verifier, read_records};
use amplifier_core::{AuditEntry, AuditRecord, IntentEntry, Level, MessageEntry, OutcomeEntry, TOOL_POST, TOOL_PRE};
use tempfile::TempDir;

/// A folder for a log and a key.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("audit.key")
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self) -> LogOptions {
        Log::at(self.log(), self.key())
    }

    pub(crate) fn open(&self) -> Log {
        self.options().open().unwrap()
    }

    pub(crate) fn verify(&self) -> Report {
        Verifier::new().folder(self.log()).unwrap()
    }

    /// The lines of all segments.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.log())
    }

    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        self.log().join(format!("seg-{number:06}.jsonl"))
    }
}

pub(crate) fn lines(log: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    read_records(&Folder::new(log), |record| {
        lines.push(record.line().to_owned());
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    lines
}

/// The line as JSON.
pub(crate) fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

/// The kinds of all records, without checkpoints.
pub(crate) fn kinds(lines: &[String]) -> Vec<String> {
    let kinds = lines.iter().map(|line| Record::parse(line.as_bytes()).unwrap().kind.as_str().to_owned());
    kinds.filter(|kind| kind != "checkpoint").collect()
}

/// A record with a text in it.
pub(crate) fn message(session: &str, text: &str) -> AuditRecord {
    let entry = AuditEntry::Message(MessageEntry {
        shown: true,
        source: "test".to_owned(),
        level: Level::Info,
        text: text.to_owned(),
    });
    record(session, entry)
}

pub(crate) fn record(session: &str, entry: AuditEntry) -> AuditRecord {
    let event = TOOL_PRE.name();
    AuditRecord { at: SystemTime::now(), session: Some(session.to_owned()), turn: 1, event, entry }
}

pub(crate) fn intent(session: &str, call: &str) -> AuditRecord {
    record(session, AuditEntry::Intent(IntentEntry { digest: None, tool_call_id: Some(call.to_owned()) }))
}

pub(crate) fn outcome(session: &str, call: &str) -> AuditRecord {
    let entry = AuditEntry::Outcome(OutcomeEntry { success: Some(true), tool_call_id: Some(call.to_owned()) });
    AuditRecord { event: TOOL_POST.name(), ..record(session, entry) }
}
