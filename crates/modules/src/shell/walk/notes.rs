//! Recording of findings in the analysis and the effects.

use amplifier_core::text::truncate_chars;

use super::{AnalysisList, CommandText, Walker};
use crate::shell::effects::{ChangeExtent, Exemption, FileChange, FileReference, Loss};
use crate::shell::folders::Folders;
use crate::shell::word::Word;
use crate::shell::{Analysis, ShellCommand};

impl Walker {
    /// Records the reason why the command is not analysable. The first reason is kept.
    pub(in crate::shell) fn refuse(&mut self, why: impl Into<String>) {
        self.taint();
        self.analysis.analysable = false;
        self.analysis.why_not.get_or_insert_with(|| why.into());
    }

    /// Records that the command is not proven to be read-only.
    pub(in crate::shell) fn taint(&mut self) {
        self.analysis.readonly = false;
    }

    /// Records that a part of the command runs in another folder.
    pub(in crate::shell) fn moves(&mut self) {
        self.analysis.moves = true;
        self.has_moved = true;
        self.folders = Folders::unknown();
    }

    /// Records that text is evaluated as arithmetic or as a variable name: subscripts in it run commands.
    pub(in crate::shell) fn evaluates(&mut self) {
        self.taint();
        self.evaluates = true;
    }

    pub(in crate::shell) fn network(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.taint();
        self.analysis.network = true;
        for host in hosts {
            self.note(AnalysisList::Hosts, &host);
        }
    }

    /// Records that something is, or may be, sent or changed elsewhere. The first reason is kept.
    pub(in crate::shell) fn sends(&mut self, why: &str, command: &str) {
        self.taint();
        self.analysis.sends.get_or_insert_with(|| format!("{why} (`{}`)", truncate_chars(command, LONGEST)));
    }

    /// Records a reason to be careful. The first reason is kept.
    pub(in crate::shell) fn advise(&mut self, why: impl Into<String>) {
        self.analysis.caution.get_or_insert_with(|| why.into());
    }

    pub(in crate::shell) fn downloads(&mut self) {
        self.downloads += 1;
    }

    /// Adds an item to a list of the analysis, unless present.
    pub(super) fn note(&mut self, list: AnalysisList, item: &str) {
        if !self.noted.insert((list, item.to_owned())) {
            return;
        }
        let Analysis { hosts, programs, writes, deletes, .. } = &mut self.analysis;
        let list = match list {
            AnalysisList::Hosts => hosts,
            AnalysisList::Programs => programs,
            AnalysisList::Writes => writes,
            AnalysisList::Deletes => deletes,
        };
        list.push(item.to_owned());
    }

    /// Records a simple command in the form of [`Command::plain`](super::command::Command::plain).
    pub(in crate::shell) fn record_command_text(&mut self, simple: CommandText) {
        self.plain.push(simple);
    }

    pub(in crate::shell) fn record_command(&mut self, command: ShellCommand) {
        self.analysis.commands.push(command);
    }

    pub(in crate::shell) fn program(&mut self, name: &str) {
        self.note(AnalysisList::Programs, name);
    }

    pub(in crate::shell) fn write(&mut self, file: &Word) {
        self.taint();
        self.note(AnalysisList::Writes, file.plain());
        let reference = self.file_reference(file);
        if file.lead().split('/').any(|part| part == ".git") {
            self.destroys("changes git's own files", file.plain());
        }
        self.changes(reference.clone(), ChangeExtent::File);
        self.effects.writes.push(reference);
    }

    /// Records a change of files that may be more than one.
    pub(in crate::shell) fn changes(&mut self, file: FileReference, extent: ChangeExtent) {
        self.effects.changes.push(FileChange { file, extent });
    }

    pub(in crate::shell) fn deletes(&mut self, file: &Word) {
        self.taint();
        self.note(AnalysisList::Deletes, file.plain());
    }

    /// Records a destructive effect without an exemption.
    pub(in crate::shell) fn destroys(&mut self, why: &str, command: &str) {
        self.loses(why, command, Exemption::Never);
    }

    /// Records a destructive effect with its exemption. The analysis keeps the first reason.
    pub(in crate::shell) fn loses(&mut self, why: &str, command: &str, exemption: Exemption) {
        self.taint();
        let why = format!("{why} (`{command}`)");
        self.analysis.destructive.get_or_insert_with(|| why.clone());
        self.effects.losses.push(Loss { why, exemption });
    }

    /// Records a destructive effect that only the state of the workspace reveals.
    pub(in crate::shell) fn may_lose(&mut self, why: &str, command: &str, exemption: Exemption) {
        self.taint();
        self.effects.losses.push(Loss { why: format!("{why} (`{command}`)"), exemption });
    }
}

/// Longest excerpt of a command in a reason, in characters.
const LONGEST: usize = 200;
