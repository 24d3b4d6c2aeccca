//! The effects of each program of a command, beside those of the whole command.

use std::ops::Range;

use super::command::{Command, Stdin};
use super::walk::Walker;
use super::word::Word;

/// A program that runs, with its effects and those of the programs that it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramCall {
    /// The program as written, with its folder; empty if unknown until run time.
    pub(super) program: String,
    /// The arguments without quotes, and patterns of files; `None` for text that is known only at run time.
    pub(super) arguments: Vec<Option<String>>,
    /// The text that the program gets as its input, if known.
    pub(super) input: Option<String>,
    /// `true` if all arguments are known, but for patterns of files and the text of a message.
    pub(super) is_certain: bool,
    /// `true` if the program is proven to only read.
    pub(super) reads: bool,
    /// `true` if something is, or may be, lost: deleted, overwritten, force-pushed, or run after a download.
    pub(super) harms: bool,
    /// `true` if something is, or may be, sent or changed elsewhere.
    pub(super) sends: bool,
    /// The number of programs that this one runs, which follow it.
    pub(super) inner: usize,
    /// The positions of its files in the effects of the whole command.
    pub(super) writes: Range<usize>,
    /// The positions of its losses there.
    pub(super) losses: Range<usize>,
}

/// Returns the text of an argument. A pattern of files is itself.
fn known_text(word: &Word, walker: &Walker) -> Option<String> {
    // A pattern in the value of an option can only become the same option with another value.
    let value = word.raw.strip_prefix("--").and_then(|option| option.split_once('='));
    let is_known = is_pattern(&word.raw) || value.is_some_and(|(name, value)| is_pattern(name) && is_pattern(value));
    let written = word.literal().or(Some(word.raw.as_str()).filter(|_| is_known)).map(str::to_owned);
    written.or_else(|| walker.expand_known(word).filter(|_| !word.is_many()))
}

/// Returns the text of an argument. For files that another command has found, these are the folders where it has looked.
fn known_texts(word: &Word, walker: &Walker) -> Vec<Option<String>> {
    match (&walker.found, word.literal(), word.raw.as_str()) {
        (Some(folders), None, "…" | "{}") => folders.iter().cloned().map(Some).collect(),
        _ => vec![known_text(word, walker)],
    }
}

fn is_pattern(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./*?[]".contains(c))
}

/// Returns `true` if all arguments are known, but for patterns of files and the text of a message.
fn is_certain(command: &Command, walker: &Walker) -> bool {
    let arguments = command.arguments();
    let is_message = |at: usize| {
        let option = at.checked_sub(1).and_then(|before| arguments.get(before)?.literal());
        matches!(option, Some("-m" | "-am" | "--message"))
    };
    let is_known = |word: &Word| {
        word.literal().is_some()
            || is_pattern(&word.raw) && word.is_operand()
            || !word.is_many() && walker.expand_known(word).is_some()
    };
    arguments.iter().enumerate().all(|(at, word)| is_known(word) || is_message(at) && !word.splits())
}

/// Separates the effects of a program from those before it.
pub(super) struct CallRecorder {
    at: usize,
    readonly: bool,
    destructive: Option<String>,
    sends: Option<String>,
    runs_download: bool,
    force_push: bool,
    losses: usize,
    deletes: usize,
    writes: usize,
}

impl CallRecorder {
    pub(super) fn begin(command: &Command, walker: &mut Walker) -> Self {
        let at = walker.calls.len();
        let program = command.words.first().and_then(|word| word.literal()).unwrap_or_default();
        let call = ProgramCall {
            program: program.to_owned(),
            arguments: command.arguments().iter().flat_map(|word| known_texts(word, walker)).collect(),
            input: match &command.stdin {
                Stdin::Text(text) => Some(text.clone()),
                Stdin::Inherited | Stdin::Unknown => None,
            },
            is_certain: is_certain(command, walker),
            ..ProgramCall::default()
        };
        walker.calls.push(call);
        let (losses, writes) = (walker.effects.losses.len(), walker.effects.writes.len());
        let analysis = &mut walker.analysis;
        Self {
            at,
            readonly: std::mem::replace(&mut analysis.readonly, true),
            destructive: analysis.destructive.take(),
            sends: analysis.sends.take(),
            runs_download: std::mem::take(&mut analysis.runs_download),
            force_push: std::mem::take(&mut analysis.force_push),
            losses,
            deletes: analysis.deletes.len(),
            writes,
        }
    }

    /// Records the effects of the program, and adds those before it again.
    pub(super) fn end(self, walker: &mut Walker) {
        let inner = walker.calls.len().saturating_sub(self.at + 1);
        let (losses, writes) = (walker.effects.losses.len(), walker.effects.writes.len());
        let analysis = &mut walker.analysis;
        let harms = losses > self.losses
            || analysis.deletes.len() > self.deletes
            || analysis.destructive.is_some()
            || analysis.runs_download
            || analysis.force_push;
        if let Some(call) = walker.calls.get_mut(self.at) {
            call.reads = analysis.readonly;
            call.harms = harms;
            call.sends = analysis.sends.is_some();
            call.inner = inner;
            call.writes = self.writes..writes;
            call.losses = self.losses..losses;
        }
        analysis.readonly &= self.readonly;
        analysis.destructive = self.destructive.or(analysis.destructive.take());
        analysis.sends = self.sends.or(analysis.sends.take());
        analysis.runs_download |= self.runs_download;
        analysis.force_push |= self.force_push;
    }
}
