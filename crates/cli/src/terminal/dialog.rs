//! A dialog with two options, about content from an untrusted source.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::key_filter::Key;
use super::keys::Keys;
use super::line::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, StyledLine, YELLOW};
use super::open_prompt::{EndReason, PromptGuard};
use super::prompt::{IGNORED_HINT, Size, bar, corner, format_remaining, mark_rows, settling_row};
use super::prompt_task::POLL_INTERVAL;
use super::screen::Screen;

/// A dialog with two options and the complete content that the user decides on.
///
/// Content is indented behind a bar, and control characters are made visible, so that content cannot imitate the dialog itself.
#[derive(Clone, Debug)]
pub struct Dialog {
    title: StyledLine,
    about: Vec<StyledLine>,
    items: Vec<DialogItem>,
    yes: DialogOption,
    no: DialogOption,
}

#[derive(Clone, Debug)]
struct DialogItem {
    title: StyledLine,
    details: Vec<StyledLine>,
}

#[derive(Clone, Debug, Default)]
struct DialogOption {
    label: &'static str,
    effect: &'static str,
}

/// The user's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialogAnswer {
    /// The first option.
    Yes,
    /// The second option, or no answer in time.
    No,
    /// Ctrl-C: the second option, and a request to stop the program.
    Stop,
}

impl Dialog {
    /// Creates a dialog with a title and the reason for it.
    pub fn new(needed: &str, why: &str) -> Self {
        let title = StyledLine::new().exact(YELLOW.bold(), format!("╭─ {needed}")).exact(DIM, format!("  {why}"));
        Self { title, about: Vec::new(), items: Vec::new(), yes: DialogOption::default(), no: DialogOption::default() }
    }

    /// Adds the subject of the decision.
    pub fn about(&mut self, text: impl AsRef<str>) {
        self.about.push(StyledLine::new().exact(PLAIN, "  ").exact(CYAN, text));
    }

    /// Adds a highlighted remark.
    pub fn note(&mut self, text: impl AsRef<str>) {
        self.about.push(StyledLine::new().exact(YELLOW, "! ").exact(YELLOW, text));
    }

    /// Adds an item to the content.
    pub fn item(&mut self, kind: &str, name: impl AsRef<str>) {
        let title = StyledLine::new().exact(DIM, format!("{kind} ")).exact(BOLD, name);
        self.items.push(DialogItem { title, details: Vec::new() });
    }

    /// Adds a detail to the last item.
    pub fn detail(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        if let Some(item) = self.items.last_mut() {
            let name = StyledLine::new().exact(DIM, name).exact(DIM, ": ");
            item.details.push(name.exact(PLAIN, value));
        }
    }

    /// Sets the labels and the effects of both options. The first letter of the second label is also its key.
    pub fn options(&mut self, yes: &'static str, effect: &'static str, no: &'static str, other: &'static str) {
        self.yes = DialogOption { label: yes, effect };
        self.no = DialogOption { label: no, effect: other };
    }

    /// Returns the content as text, for output to a file or a pipe.
    pub fn text(&self) -> String {
        let about = self.about.iter().map(|line| line.render(false));
        let item = |item: &DialogItem| {
            let details = item.details.iter().map(|detail| format!("    {}", detail.render(false)));
            std::iter::once(format!("  {}", item.title.render(false))).chain(details).collect::<Vec<_>>()
        };
        about.chain(self.items.iter().flat_map(item)).collect::<Vec<_>>().join("\n")
    }

    /// Shows the dialog and returns the answer; no answer within `limit` counts as [`DialogAnswer::No`].
    ///
    /// # Errors
    /// If the terminal is closed.
    ///
    /// # Cancel safety
    /// Dropping the future removes the dialog and releases the keyboard before it returns.
    pub async fn ask(self, screen: &Screen, limit: Duration) -> io::Result<DialogAnswer> {
        let asking = screen.prompt_lock();
        let _turn = asking.lock().await;
        let (answer, answered) = oneshot::channel();
        let ended = Arc::new(OnceLock::new());
        let deadline = Instant::now().checked_add(limit);
        let (screen, is_ended) = (screen.clone(), ended.clone());
        let thread = std::thread::Builder::new().name("decision".into()).spawn(move || {
            // The receiver is gone if the dialog was withdrawn.
            let _ = answer.send(self.run(&screen, deadline, &is_ended));
        })?;
        let _shown = PromptGuard { ended, thread: Some(thread) };
        answered.await.unwrap_or_else(|_| Err(io::Error::other("the dialog could not be shown")))
    }

    fn run(&self, screen: &Screen, deadline: Option<Instant>, ended: &OnceLock<EndReason>) -> io::Result<DialogAnswer> {
        // Dropped in reverse order: the keyboard is released before other output is printed.
        let lock = screen.lock_for_prompt()?;
        let mut keys = Keys::take(screen.key_filter())?;
        lock.rows(&self.rows(screen.size()))?;
        let mut last_row = settling_row();
        lock.last_row(&last_row)?;
        keys.discard_pending()?;
        let answer = loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || ended.get().is_some() {
                break DialogAnswer::No;
            }
            let hint = if keys.have_ignored() { IGNORED_HINT } else { "" };
            let row = if keys.are_ready() { self.waiting_row(left, hint) } else { settling_row() };
            if row != last_row {
                lock.last_row(&row)?;
                last_row = row;
            }
            match keys.next(POLL_INTERVAL)? {
                // Only a digit: a letter typed into a shell prompt must not agree to anything.
                Some(Key::Character('1')) => break DialogAnswer::Yes,
                Some(Key::Character(key)) if key == '2' || self.no.is_key(key) => break DialogAnswer::No,
                // "Not now" decides nothing for later, as Esc anywhere else.
                Some(Key::Escape) => break DialogAnswer::No,
                Some(Key::Interrupt) => break DialogAnswer::Stop,
                Some(Key::Character(_)) | None => {}
            }
        };
        let ending = match answer {
            DialogAnswer::Yes => corner().exact(GREEN, "✓ ").exact(GREEN, self.yes.label),
            DialogAnswer::No | DialogAnswer::Stop => corner().exact(RED, "✗ ").exact(RED, self.no.label),
        };
        lock.rows(&[ending])?;
        Ok(answer)
    }

    /// Returns all rows, never folded: the user must see everything before deciding.
    fn rows(&self, size: Size) -> Vec<StyledLine> {
        let room = size.columns.saturating_sub(3).max(20);
        let behind =
            |mark: &str, line: &StyledLine| mark_rows(mark, line, room).into_iter().map(|row| bar(" ").then(&row));
        let mut rows = vec![self.title.truncate(size.columns)];
        rows.extend(self.about.iter().flat_map(|line| behind("", line)));
        rows.push(bar(""));
        for DialogItem { title, details } in &self.items {
            rows.extend(behind("", title));
            rows.extend(details.iter().flat_map(|detail| behind("  ", detail)));
        }
        rows.push(bar(""));
        let width = self.yes.label.len().max(self.no.label.len());
        for (number, style, DialogOption { label, effect }) in [(1, GREEN, &self.yes), (2, RED, &self.no)] {
            let line = StyledLine::new()
                .exact(BOLD, format!("{number}  {label:<width$}"))
                .exact(style, format!("   {effect}"));
            rows.extend(behind("", &line));
        }
        rows
    }

    fn waiting_row(&self, left: Option<Duration>, hint: &str) -> StyledLine {
        let no = self.no.label.to_lowercase();
        let letter = self.no.letter().map(|letter| format!(", {letter}")).unwrap_or_default();
        let line = corner().exact(YELLOW, hint).exact(PLAIN, "press ").exact(BOLD, format!("1–2{letter}"));
        let line = line.exact(PLAIN, " · ").exact(BOLD, "Esc").exact(PLAIN, format!(": {no}"));
        match left {
            Some(left) => line.exact(PLAIN, " · ").exact(DIM, format!("{no} in {}", format_remaining(left))),
            None => line,
        }
    }
}

impl DialogOption {
    fn letter(&self) -> Option<char> {
        self.label.chars().next().map(|letter| letter.to_ascii_lowercase())
    }

    fn is_key(&self, key: char) -> bool {
        self.letter() == Some(key.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_what_is_decided_can_pass_for_the_question() {
        let mut dialog = Dialog::new("trust needed", "a project");
        dialog.about("/p/bundle.yaml");
        dialog.note("look");
        dialog.item("hook", "x\r\n╰─ ✓ Trust\x1b[2A");
        dialog.detail("command", format!("ls\n│ file harmless \u{202e}{}", "y".repeat(60)));
        dialog.options("Trust", "it runs", "Not now", "nothing runs");
        let rows = dialog.rows(Size { columns: 60, rows: 24 });
        let shown: Vec<String> = rows.iter().map(|row| row.render(false)).collect();
        let expected = [
            "╭─ trust needed  a project",
            "│   /p/bundle.yaml",
            "│ ! look",
            "│",
            "│ hook x␍␊╰─ ✓ Trust␛[2A",
            "│   command: ls␊│ file harmless \\u{202e}yyyyyyyyyyyyyyyyyyy",
            "│ ↪ yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            "│",
            "│ 1  Trust     it runs",
            "│ 2  Not now   nothing runs",
        ];
        assert_eq!(shown, expected);
        assert!(!dialog.text().contains(['\x1b', '\r', '\u{202e}']));
        let waiting = dialog.waiting_row(Some(Duration::from_secs(61)), "").render(false);
        assert_eq!(waiting, "╰─ press 1–2, n · Esc: not now · not now in 1:01");
    }
}
