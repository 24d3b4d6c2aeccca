//! The owner of the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use amplifier_core::Level;
use amplifier_core::text::{EscapeMode, Piece, pieces};
use amplifier_host::{Notice, Notices};
use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use terminal_size::terminal_size_of;

use super::key_filter::KeyFilter;
use super::line::{BOLD, Break, CYAN, DIM, GREEN, PLAIN, RED, StyledLine, YELLOW};
use super::markdown::MarkdownStream;
use super::prompt::Size;
use super::spinner::ProgressTasks;

/// Moves the cursor to the beginning of the line and clears the line.
const CLEAR: &str = "\r\x1b[K";
/// The size to assume if the terminal does not report one.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

/// The terminal. Cheap to clone; clones share the same terminal.
///
/// Model text goes to stdout, everything else to stderr. Failures to write to stderr are ignored;
/// [`end_text`](Self::end_text) returns failures to write to stdout.
///
/// ```
/// use amplifier::terminal::Screen;
///
/// let screen = Screen::new();
/// let spinner = screen.spinner("thinking");
/// screen.text("The answer is 42.");
/// drop(spinner);
/// screen.end_text()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Screen {
    inner: Arc<ScreenInner>,
}

struct ScreenInner {
    // A std lock: nothing awaits while it is held.
    state: Mutex<ScreenState>,
    /// Held while a prompt is open. A tokio lock, because other prompts wait for the user.
    prompt_lock: Arc<tokio::sync::Mutex<()>>,
    key_filter: Arc<Mutex<KeyFilter>>,
}

/// The capabilities of an output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputMode {
    /// `true` for an interactive terminal, on which lines can be overwritten.
    pub terminal: bool,
    /// `true` if colours are shown.
    pub colour: bool,
}

impl OutputMode {
    /// Plain text only: a file or a pipe.
    pub const fn plain() -> Self {
        Self { terminal: false, colour: false }
    }
}

struct Stream {
    to: Box<dyn Write + Send>,
    mode: OutputMode,
}

struct ScreenState {
    answer: Stream,
    side: Stream,
    /// A fixed size; `None` reads the size of the terminal.
    size: Option<Size>,
    /// The model's answer, if it is shown with styles. Files and pipes get the text as it is.
    markdown: Option<MarkdownStream>,
    /// `true` if model text ended in the middle of a line.
    is_answer_open: bool,
    answer_failed: Option<io::Error>,
    tasks: ProgressTasks,
    /// `true` if the last line of the terminal is the progress line.
    is_progress_shown: bool,
    /// `true` while a prompt is open. All other output is deferred, so that the prompt stays unchanged.
    is_prompt_open: bool,
    deferred: Vec<DeferredOutput>,
}

/// Output that waits until the prompt is closed.
enum DeferredOutput {
    Text(String),
    Lines(Vec<StyledLine>),
}

impl Default for Screen {
    fn default() -> Self {
        Self::new()
    }
}

impl Screen {
    /// Opens the terminal of this process. Colours are shown on a terminal unless `NO_COLOR` is set.
    pub fn new() -> Self {
        let answer = detect_mode(&io::stdout(), io::stdout().is_terminal());
        let side = detect_mode(&io::stderr(), io::stderr().is_terminal());
        Self::on(
            Stream { to: Box::new(io::stdout()), mode: answer },
            Stream { to: Box::new(io::stderr()), mode: side },
            None,
        )
    }

    /// Creates a screen of 80 columns that writes model text to `answer` and everything else to `side`.
    pub fn to(answer: impl Write + Send + 'static, side: impl Write + Send + 'static, mode: OutputMode) -> Self {
        Self::on(Stream { to: Box::new(answer), mode }, Stream { to: Box::new(side), mode }, Some(DEFAULT_SIZE))
    }

    fn on(answer: Stream, side: Stream, size: Option<Size>) -> Self {
        let has_styles = answer.mode.terminal && answer.mode.colour;
        let state = ScreenState {
            markdown: has_styles.then(MarkdownStream::default),
            answer,
            side,
            size,
            is_answer_open: false,
            answer_failed: None,
            tasks: ProgressTasks::default(),
            is_progress_shown: false,
            is_prompt_open: false,
            deferred: Vec::new(),
        };
        let key_filter = Arc::new(Mutex::new(KeyFilter::new(Instant::now())));
        Self { inner: Arc::new(ScreenInner { state: Mutex::new(state), prompt_lock: Arc::default(), key_filter }) }
    }

    /// Returns `true` if prompts are possible: stderr and stdin are both a terminal.
    pub fn can_ask(&self) -> bool {
        self.lock().side.mode.terminal && io::stdin().is_terminal()
    }

    /// Shows the next piece of the model's answer.
    pub fn text(&self, piece: &str) {
        self.lock().text(piece);
    }

    /// Ends the model's answer and its last line.
    ///
    /// # Errors
    /// If a part of the answer could not be written, because stdout is closed or the disk is full.
    pub fn end_text(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_answer_open {
            state.text("\n");
        }
        state.show_markdown(MarkdownStream::finish);
        state.answer_failed.take().map_or(Ok(()), Err)
    }

    /// Returns `true` if the model's answer appears in whole rows, with styles.
    pub fn shows_rows(&self) -> bool {
        self.lock().markdown.is_some()
    }

    /// Shows a tool call: the tool's name and a summary of its input.
    pub fn tool(&self, name: &str, summary: &str) {
        let line =
            StyledLine::new().exact(CYAN, "● ").exact(BOLD, name).exact(PLAIN, "  ").exact(PLAIN, first_line(summary));
        self.print_cut(line);
    }

    /// Shows the result of a tool call.
    pub fn tool_done(&self, ok: bool, summary: &str) {
        let style = if ok { GREEN } else { RED };
        self.print_cut(StyledLine::new().exact(DIM, "  └ ").exact(style, first_line(summary)));
    }

    /// Shows a message with its level and its source: `hook:<name>` or `kernel`.
    pub fn message(&self, level: Level, source: &str, text: &str) {
        // As for a log, a failure to show a message must not stop the program.
        let _ = self.try_message(level, source, text);
    }

    pub(super) fn try_message(&self, level: Level, source: &str, text: &str) -> io::Result<()> {
        let (sign, style) = match level {
            Level::Info => ("◇", CYAN),
            Level::Warning => ("▲", YELLOW),
            Level::Error => ("✗", RED),
        };
        // The kind stays in front of the name, so that a hook named `kernel` is still shown as a hook.
        let source = source.split_once(':').map_or_else(|| source.to_owned(), |(kind, name)| format!("{kind} {name}"));
        let head = StyledLine::new().exact(style.bold(), format!("{sign} {}", level.as_str())).exact(PLAIN, "  ");
        self.print_paragraph(head.exact(BOLD, source).exact(PLAIN, ": "), "  ", PLAIN, text)
    }

    /// Shows a heading with an empty line above it.
    pub fn heading(&self, label: &str, text: &str) {
        let head = StyledLine::new().exact(CYAN.bold(), format!("{label:<8}"));
        let mut state = self.lock();
        let _ = state.print(vec![StyledLine::new()]);
        drop(state);
        let _ = self.print_paragraph(head, "        ", BOLD, text);
    }

    /// Shows a remark from the program itself.
    pub fn note(&self, text: &str) {
        let _ = self.print_paragraph(StyledLine::new(), "", DIM, text);
    }

    /// Shows a remark behind a sign.
    pub(super) fn remark(&self, sign: StyledLine, text: &str) {
        let _ = self.print_paragraph(sign, "  ", DIM, text);
    }

    /// Shows a value with its label.
    pub fn fact(&self, label: &str, value: &str) {
        let head = StyledLine::new().exact(DIM, format!("{label:<9}"));
        let _ = self.print_paragraph(head, "         ", PLAIN, value);
    }

    /// Returns a handler that shows the notices of sessions.
    pub fn notices(&self) -> Notices {
        let screen = self.clone();
        Notices::new(move |Notice { level, source, text }| match source {
            Some(source) => screen.message(level, source, &text),
            None => screen.note(&text),
        })
    }

    /// Shows rows, each cut to the width of the terminal.
    pub(super) fn print_rows(&self, rows: Vec<StyledLine>) {
        rows.into_iter().for_each(|row| self.print_cut(row));
    }

    fn print_cut(&self, line: StyledLine) {
        let mut state = self.lock();
        let line = if state.side.mode.terminal { line.truncate(state.size().columns) } else { line };
        let _ = state.print(vec![line]);
    }

    fn print_paragraph(&self, head: StyledLine, indent: &str, style: Style, text: &str) -> io::Result<()> {
        let mut state = self.lock();
        let mut lines = text.lines();
        let first = head.prose(style, lines.next().unwrap_or_default());
        let lines = std::iter::once(first).chain(lines.map(|line| StyledLine::new().prose(style, line)));
        let width = if state.side.mode.terminal { state.size().columns.saturating_sub(2).max(20) } else { usize::MAX };
        let rows = lines.flat_map(|line| line.wrap(width, Break::Words)).enumerate();
        let indented = |(row, line)| if row == 0 { line } else { StyledLine::new().exact(PLAIN, indent).then(&line) };
        let rows = rows.map(indented).collect();
        state.print(rows)
    }

    pub(super) fn prompt_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.inner.prompt_lock.clone()
    }

    pub(super) fn key_filter(&self) -> Arc<Mutex<KeyFilter>> {
        self.inner.key_filter.clone()
    }

    pub(super) fn size(&self) -> Size {
        self.lock().size()
    }

    /// Takes the terminal for a prompt. All other output is deferred until the lock is dropped.
    pub(super) fn lock_for_prompt(&self) -> io::Result<ScreenLock> {
        let mut state = self.lock();
        state.close_line()?;
        state.clear_progress()?;
        state.is_prompt_open = true;
        Ok(ScreenLock { screen: self.clone() })
    }

    pub(super) fn change_tasks<T>(&self, change: impl FnOnce(&mut ProgressTasks) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state.tasks);
        let _ = state.clear_progress().and_then(|()| state.draw_progress());
        changed
    }

    pub(super) fn draws_progress(&self) -> bool {
        self.lock().side.mode.terminal
    }

    fn lock(&self) -> MutexGuard<'_, ScreenState> {
        // The state stays valid after a panic elsewhere.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScreenState {
    fn size(&self) -> Size {
        self.size.unwrap_or_else(|| {
            let size = terminal_size_of(io::stderr()).map(|(columns, rows)| (columns.0.into(), rows.0.into()));
            size.filter(|&(columns, _)| columns > 0).map_or(DEFAULT_SIZE, |(columns, rows)| Size { columns, rows })
        })
    }

    /// Returns the width for the model's answer. The last column stays free.
    fn answer_width(&self) -> usize {
        let columns = match self.size {
            Some(size) => size.columns,
            None => terminal_size_of(io::stdout()).map_or(DEFAULT_SIZE.columns, |(columns, _)| columns.0.into()),
        };
        columns.saturating_sub(1).max(20)
    }

    /// Shows the rows of the model's answer that are complete after a change.
    fn show_markdown(&mut self, change: impl FnOnce(&mut MarkdownStream, usize) -> Vec<StyledLine>) {
        let width = self.answer_width();
        let Some(markdown) = &mut self.markdown else { return };
        let rows = change(markdown, width);
        if rows.is_empty() {
            return;
        }
        let _ = self.clear_progress();
        let out: String = rows.iter().map(|row| row.render(true) + "\n").collect();
        self.write_answer(&out);
        let _ = self.draw_progress();
    }

    fn write_answer(&mut self, text: &str) {
        if let Err(error) = self.answer.write(text) {
            self.answer_failed.get_or_insert(error);
        }
    }

    fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if self.is_prompt_open {
            self.deferred.push(DeferredOutput::Text(piece.to_owned()));
            return;
        }
        if self.markdown.is_some() {
            return self.show_markdown(|markdown, width| markdown.push(piece, width));
        }
        let _ = self.clear_progress();
        let mut out = String::with_capacity(piece.len());
        for piece in pieces(piece, EscapeMode::Stream) {
            match piece {
                Piece::Shown(text) => out.push_str(text),
                Piece::StandIn(text) => {
                    out.push_str(&StyledLine::new().exact(YELLOW, text).render(self.answer.mode.colour))
                }
            }
        }
        self.write_answer(&out);
        self.is_answer_open = !piece.ends_with('\n');
        let _ = self.draw_progress();
    }

    fn print(&mut self, lines: Vec<StyledLine>) -> io::Result<()> {
        if self.is_prompt_open {
            self.deferred.push(DeferredOutput::Lines(lines));
            return Ok(());
        }
        self.close_line()?;
        self.clear_progress()?;
        let out: String = lines.iter().map(|line| line.render(self.side.mode.colour) + "\n").collect();
        self.side.write(&out)?;
        self.draw_progress()
    }

    fn is_line_open(&self) -> bool {
        self.is_answer_open && self.answer.mode.terminal && self.side.mode.terminal
    }

    /// Ends the line of the model's answer before other output is printed.
    fn close_line(&mut self) -> io::Result<()> {
        self.show_markdown(MarkdownStream::interrupt);
        if self.is_line_open() {
            self.is_answer_open = false;
            self.answer.write("\n")?;
        }
        Ok(())
    }

    fn clear_progress(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_progress_shown) { self.side.write(CLEAR) } else { Ok(()) }
    }

    fn draw_progress(&mut self) -> io::Result<()> {
        if !self.side.mode.terminal || self.is_prompt_open || self.is_line_open() {
            return Ok(());
        }
        let Some(line) = self.tasks.line() else { return Ok(()) };
        // The last column stays free: some terminals wrap as soon as it is filled.
        let line = line.truncate(self.size().columns.saturating_sub(1)).render(self.side.mode.colour);
        self.is_progress_shown = true;
        self.side.write(&line)
    }
}

impl Stream {
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())?;
        self.to.flush()
    }
}

/// Exclusive use of the terminal by a prompt. Dropping the lock prints the deferred output.
pub(super) struct ScreenLock {
    screen: Screen,
}

impl ScreenLock {
    /// Draws the rows of a prompt. In raw mode a line break alone would not return to the first column.
    pub(super) fn rows(&self, rows: &[StyledLine]) -> io::Result<()> {
        let mut state = self.screen.lock();
        let colour = state.side.mode.colour;
        let out: String = rows.iter().map(|row| CLEAR.to_owned() + &row.render(colour) + "\r\n").collect();
        state.side.write(&out)
    }

    /// Draws the last row over the previous one.
    pub(super) fn last_row(&self, row: &StyledLine) -> io::Result<()> {
        let mut state = self.screen.lock();
        let row = row.truncate(state.size().columns.saturating_sub(1)).render(state.side.mode.colour);
        state.side.write(&(CLEAR.to_owned() + &row))
    }
}

impl Drop for ScreenLock {
    fn drop(&mut self) {
        let mut state = self.screen.lock();
        state.is_prompt_open = false;
        for deferred in std::mem::take(&mut state.deferred) {
            match deferred {
                DeferredOutput::Text(text) => state.text(&text),
                DeferredOutput::Lines(lines) => drop(state.print(lines)),
            }
        }
        let _ = state.clear_progress().and_then(|()| state.draw_progress());
    }
}

fn detect_mode(stream: &impl anstream::stream::RawStream, terminal: bool) -> OutputMode {
    // A dumb terminal cannot overwrite a line.
    let terminal = terminal && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
    OutputMode { terminal, colour: AutoStream::choice(stream) != ColorChoice::Never }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer whose content can be read at any time.
    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl SharedBuffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    const PIPE: OutputMode = OutputMode::plain();
    const TERMINAL: OutputMode = OutputMode { terminal: true, colour: false };

    /// Creates a screen that writes both streams to one buffer.
    fn screen(mode: OutputMode) -> (Screen, SharedBuffer) {
        let buffer = SharedBuffer::default();
        (Screen::to(buffer.clone(), buffer.clone(), mode), buffer)
    }

    #[test]
    fn a_message_shows_its_level_and_who_says_it() {
        let (screen, buffer) = screen(PIPE);
        screen.message(Level::Info, "kernel", "ready");
        screen.message(Level::Warning, "hook:guard", "two\nlines\x1b[2J");
        screen.message(Level::Error, "hook:kernel", "");
        let expected = "◇ info  kernel: ready\n▲ warning  hook guard: two\n  lines␛[2J\n✗ error  hook kernel: \n";
        assert_eq!(buffer.text(), expected);
    }

    #[test]
    fn a_remark_keeps_its_columns() {
        let (screen, buffer) = screen(TERMINAL);
        screen.note("name   priority\nguard  10");
        assert_eq!(buffer.text(), "name   priority\nguard  10\n");
    }

    #[test]
    fn a_long_message_is_wrapped_for_a_terminal_only() {
        let text = "word ".repeat(20);
        let wrapped = |mode| {
            let (screen, buffer) = screen(mode);
            screen.message(Level::Info, "kernel", text.trim_end());
            buffer.text().lines().count()
        };
        assert_eq!((wrapped(TERMINAL), wrapped(PIPE)), (2, 1));
    }

    #[test]
    fn a_tool_is_one_line_and_its_end_another() {
        let (screen, buffer) = screen(TERMINAL);
        screen.tool("Bash", "cargo test\nand more");
        screen.tool_done(true, "12 lines, 0.4 s");
        screen.tool("Write", &"x".repeat(100));
        screen.tool_done(false, "denied");
        let cut = "x".repeat(70);
        let expected = format!("● Bash  cargo test\n  └ 12 lines, 0.4 s\n● Write  {cut}…\n  └ denied\n");
        assert_eq!(buffer.text(), expected);
    }

    #[test]
    fn colours_are_shown_where_they_can_be() {
        let (screen, buffer) = screen(OutputMode { terminal: true, colour: true });
        screen.tool_done(false, "no");
        assert_eq!(buffer.text(), "\u{1b}[2m  └ \u{1b}[0m\u{1b}[31mno\u{1b}[0m\n");
    }

    #[test]
    fn text_flows_until_something_else_is_shown() {
        let flow = |mode| {
            let (screen, buffer) = screen(mode);
            screen.text("Hello \u{202e}");
            screen.text("you\n\tand");
            screen.note("aside");
            screen.text("me");
            screen.end_text().unwrap();
            buffer.text()
        };
        assert_eq!(flow(TERMINAL), "Hello \\u{202e}you\n\tand\naside\nme\n");
        // In a pipe the answer stays unchanged: the remark goes to the other stream.
        assert_eq!(flow(PIPE), "Hello \\u{202e}you\n\tandaside\nme\n");
    }

    #[test]
    fn markdown_is_rendered_on_a_terminal_with_colours_only() {
        let flow = |mode| {
            let (screen, buffer) = screen(mode);
            screen.text("# Title\n\nSome **bo");
            screen.text("ld** text");
            screen.note("aside");
            screen.text("more");
            screen.end_text().unwrap();
            buffer.text()
        };
        let rendered =
            "\u{1b}[1m\u{1b}[4mTitle\u{1b}[0m\n\nSome \u{1b}[1mbold\u{1b}[0m text\n\u{1b}[2maside\u{1b}[0m\nmore\n";
        assert_eq!(flow(OutputMode { terminal: true, colour: true }), rendered);
        assert_eq!(flow(TERMINAL), "# Title\n\nSome **bold** text\naside\nmore\n");
        assert_eq!(flow(PIPE), "# Title\n\nSome **bold** textaside\nmore\n");
    }

    #[test]
    fn the_progress_line_is_taken_away_before_anything_is_shown_and_drawn_again_after() {
        let (screen, buffer) = screen(TERMINAL);
        let still = |text: String| text.replace(|character| "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".contains(character), "*").replace('1', "0");
        let working = screen.spinner("thinking");
        screen.note("aside");
        screen.text("open line");
        screen.note("closed");
        drop(working);
        let shown = still(buffer.text());
        let progress = "* thinking…  0 s";
        // Any number of frames in between.
        let moved = format!("{progress}{CLEAR}{progress}");
        let shown =
            std::iter::successors(Some(shown), |shown| shown.contains(&moved).then(|| shown.replace(&moved, progress)));
        let expected = format!("{progress}{CLEAR}aside\n{progress}{CLEAR}open line\nclosed\n{progress}{CLEAR}");
        assert_eq!(shown.last(), Some(expected));
    }

    #[test]
    fn nothing_is_drawn_over_a_pipe() {
        let (screen, buffer) = screen(PIPE);
        drop(screen.spinner("thinking"));
        assert_eq!(buffer.text(), "");
    }

    #[test]
    fn while_a_question_is_open_everything_else_waits() {
        let (screen, buffer) = screen(TERMINAL);
        let lock = screen.lock_for_prompt().unwrap();
        screen.text("answer");
        screen.note("aside");
        lock.rows(&[StyledLine::new().exact(PLAIN, "question")]).unwrap();
        assert_eq!(buffer.text(), format!("{CLEAR}question\r\n"));
        drop(lock);
        assert_eq!(buffer.text(), format!("{CLEAR}question\r\nanswer\naside\n"));
    }

    #[test]
    fn an_answer_that_could_not_be_written_is_told() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let screen = Screen::to(Full, io::sink(), PIPE);
        screen.text("answer");
        assert_eq!(screen.end_text().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
