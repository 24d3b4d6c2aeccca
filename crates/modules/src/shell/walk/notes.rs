//! What the walk finds out, put into the analysis and the effects.

use amplifier_core::text::truncate_chars;

use super::{CommandText, List, Walker};
use crate::shell::effects::{Exemption, Loss};
use crate::shell::folders::Folders;
use crate::shell::word::Word;
use crate::shell::{Analysis, ShellCommand};

impl Walker {
    /// Notes why the command is not analysable. The first reason stays.
    pub(in crate::shell) fn refuse(&mut self, why: impl Into<String>) {
        self.taint();
        self.analysis.analysable = false;
        self.analysis.why_not.get_or_insert_with(|| why.into());
    }

    /// Notes that it is not proven that the command only reads.
    pub(in crate::shell) fn taint(&mut self) {
        self.analysis.readonly = false;
    }

    /// Notes that some of the command runs in another folder.
    pub(in crate::shell) fn moves(&mut self) {
        self.analysis.moves = true;
        self.has_moved = true;
        self.folders = Folders::unknown();
    }

    /// Notes that text is evaluated as arithmetic or as the name of a variable: subscripts in it run commands.
    pub(in crate::shell) fn evaluates(&mut self) {
        self.taint();
        self.evaluates = true;
    }

    /// Notes that the network is used, and with which machines.
    pub(in crate::shell) fn network(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.taint();
        self.analysis.network = true;
        for host in hosts {
            self.note(List::Hosts, &host);
        }
    }

    /// Notes that something is sent or changed elsewhere, or that it is not known. The first reason stays.
    pub(in crate::shell) fn sends(&mut self, why: &str, command: &str) {
        self.taint();
        self.analysis.sends.get_or_insert_with(|| format!("{why} (`{}`)", truncate_chars(command, LONGEST)));
    }

    /// Notes that the command at hand downloads.
    pub(in crate::shell) fn downloads(&mut self) {
        self.downloads += 1;
    }

    /// Adds an item to a list of the analysis, unless it is there.
    pub(super) fn note(&mut self, list: List, item: &str) {
        if !self.noted.insert((list, item.to_owned())) {
            return;
        }
        let Analysis { hosts, programs, writes, deletes, .. } = &mut self.analysis;
        let list = match list {
            List::Hosts => hosts,
            List::Programs => programs,
            List::Writes => writes,
            List::Deletes => deletes,
        };
        list.push(item.to_owned());
    }

    /// Notes a simple command, as [`Command::plain`](super::command::Command::plain) writes it.
    pub(in crate::shell) fn record_command_text(&mut self, simple: CommandText) {
        self.plain.push(simple);
    }

    /// Notes a simple command as rules see it.
    pub(in crate::shell) fn record_command(&mut self, command: ShellCommand) {
        self.analysis.commands.push(command);
    }

    /// Notes a program.
    pub(in crate::shell) fn program(&mut self, name: &str) {
        self.note(List::Programs, name);
    }

    /// Notes a file that is written to.
    pub(in crate::shell) fn write(&mut self, file: &Word) {
        self.taint();
        self.note(List::Writes, file.plain());
        let reference = self.file_reference(file);
        if file.lead().split('/').any(|part| part == ".git") {
            self.destroys("changes git's own files", file.plain());
        }
        self.effects.writes.push(reference);
    }

    /// Notes a file that is deleted.
    pub(in crate::shell) fn deletes(&mut self, file: &Word) {
        self.taint();
        self.note(List::Deletes, file.plain());
    }

    /// Notes why something is destroyed.
    pub(in crate::shell) fn destroys(&mut self, why: &str, command: &str) {
        self.loses(why, command, Exemption::Never);
    }

    /// Notes why something is destroyed, and when that is no loss. The analysis keeps the first reason.
    pub(in crate::shell) fn loses(&mut self, why: &str, command: &str, exemption: Exemption) {
        self.taint();
        let why = format!("{why} (`{command}`)");
        self.analysis.destructive.get_or_insert_with(|| why.clone());
        self.effects.losses.push(Loss { why, exemption });
    }

    /// Notes a loss that only those can see who know the workspace.
    pub(in crate::shell) fn may_lose(&mut self, why: &str, command: &str, exemption: Exemption) {
        self.taint();
        self.effects.losses.push(Loss { why: format!("{why} (`{command}`)"), exemption });
    }
}

/// So much of a command is part of a reason.
const LONGEST: usize = 200;
