//! The one owner of the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use amplifier_core::Level;
use amplifier_core::text::{Piece, Reading, pieces};
use amplifier_host::{Notice, Notices};
use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use terminal_size::terminal_size_of;

use super::key_filter::KeyFilter;
use super::line::{BOLD, Break, CYAN, DIM, GREEN, Line, PLAIN, RED, YELLOW};
use super::question::Size;
use super::working::Works;

/// Takes the cursor to the beginning of its line and empties the line.
const CLEAR: &str = "\r\x1b[K";
/// The room that is counted on where nobody can tell.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// The terminal, shared by all who show something. A handle: clones share the same terminal.
///
/// The answer of the model goes to stdout, everything else to stderr. A failure to write to stderr is ignored, because
/// there is nobody left to tell; one to write the answer is told by [`end_text`](Self::end_text).
///
/// ```
/// use amplifier::terminal::Screen;
///
/// let screen = Screen::new();
/// let working = screen.working("thinking");
/// screen.text("The answer is 42.");
/// drop(working);
/// screen.end_text()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Screen {
    shared: Arc<Shared>,
}

struct Shared {
    // A std lock: nothing awaits while it is held.
    state: Mutex<State>,
    /// Held by whoever asks: one question at a time. A tokio lock, because the others wait for a person.
    asking: Arc<tokio::sync::Mutex<()>>,
    key_filter: Arc<Mutex<KeyFilter>>,
}

/// What a stream can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether a person sees it at once, so that lines can be drawn over.
    pub terminal: bool,
    /// Whether colours are shown.
    pub colour: bool,
}

impl Look {
    /// A stream that takes text and nothing else: a file, a pipe.
    pub const fn plain() -> Self {
        Self { terminal: false, colour: false }
    }
}

struct Stream {
    to: Box<dyn Write + Send>,
    look: Look,
}

struct State {
    answer: Stream,
    side: Stream,
    /// The room, where it does not come from the terminal itself.
    size: Option<Size>,
    /// Whether the answer stopped in the middle of a line.
    answer_open: bool,
    answer_failed: Option<io::Error>,
    works: Works,
    /// Whether the last line of the terminal is the progress line.
    progress_shown: bool,
    /// While a question is open nothing else is drawn: what the person decides about stays as it is.
    question_open: bool,
    held: Vec<Held>,
}

/// What has to wait until the question is answered.
enum Held {
    Text(String),
    Lines(Vec<Line>),
}

impl Default for Screen {
    fn default() -> Self {
        Self::new()
    }
}

impl Screen {
    /// The terminal of this process. Colours are shown on a terminal, unless `NO_COLOR` is set.
    pub fn new() -> Self {
        let answer = look(&io::stdout(), io::stdout().is_terminal());
        let side = look(&io::stderr(), io::stderr().is_terminal());
        Self::on(
            Stream { to: Box::new(io::stdout()), look: answer },
            Stream { to: Box::new(io::stderr()), look: side },
            None,
        )
    }

    /// A screen of 80 columns that writes the answer and everything else to where it is told.
    pub fn to(answer: impl Write + Send + 'static, side: impl Write + Send + 'static, look: Look) -> Self {
        Self::on(Stream { to: Box::new(answer), look }, Stream { to: Box::new(side), look }, Some(USUAL))
    }

    fn on(answer: Stream, side: Stream, size: Option<Size>) -> Self {
        let state = State {
            answer,
            side,
            size,
            answer_open: false,
            answer_failed: None,
            works: Works::default(),
            progress_shown: false,
            question_open: false,
            held: Vec::new(),
        };
        let key_filter = Arc::new(Mutex::new(KeyFilter::new(Instant::now())));
        Self { shared: Arc::new(Shared { state: Mutex::new(state), asking: Arc::default(), key_filter }) }
    }

    /// Whether somebody can be asked: a person sees stderr and types into stdin.
    pub fn can_ask(&self) -> bool {
        self.lock().side.look.terminal && io::stdin().is_terminal()
    }

    /// Shows the next piece of the model's answer, as it comes.
    pub fn text(&self, piece: &str) {
        self.lock().text(piece);
    }

    /// Ends the model's answer, and the line it stopped in.
    ///
    /// # Errors
    /// If a part of the answer could not be written: stdout is closed, or a disk is full.
    pub fn end_text(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.answer_open {
            state.text("\n");
        }
        state.answer_failed.take().map_or(Ok(()), Err)
    }

    /// Shows that a tool runs: its name, and what it is about.
    pub fn tool(&self, name: &str, summary: &str) {
        let line = Line::new().exact(CYAN, "● ").exact(BOLD, name).exact(PLAIN, "  ").exact(PLAIN, first_line(summary));
        self.print_cut(line);
    }

    /// Shows how a tool ended.
    pub fn tool_done(&self, ok: bool, summary: &str) {
        let style = if ok { GREEN } else { RED };
        self.print_cut(Line::new().exact(DIM, "  └ ").exact(style, first_line(summary)));
    }

    /// Shows a message with its level and who says it: `hook:<name>`, or `kernel`.
    pub fn message(&self, level: Level, source: &str, text: &str) {
        // As in a log: what cannot be shown is not worth stopping for.
        let _ = self.try_message(level, source, text);
    }

    pub(super) fn try_message(&self, level: Level, source: &str, text: &str) -> io::Result<()> {
        let (sign, style) = match level {
            Level::Info => ("◇", CYAN),
            Level::Warning => ("▲", YELLOW),
            Level::Error => ("✗", RED),
        };
        // The kind stays in front of the name: a hook that calls itself `kernel` remains a hook.
        let source = source.split_once(':').map_or_else(|| source.to_owned(), |(kind, name)| format!("{kind} {name}"));
        let head = Line::new().exact(style.bold(), format!("{sign} {}", level.as_str())).exact(PLAIN, "  ");
        self.print_paragraph(head.exact(BOLD, source).exact(PLAIN, ": "), "  ", PLAIN, text)
    }

    /// Shows what comes next, with room above it.
    pub fn heading(&self, label: &str, text: &str) {
        let head = Line::new().exact(CYAN.bold(), format!("{label:<8}"));
        let mut state = self.lock();
        let _ = state.print(vec![Line::new()]);
        drop(state);
        let _ = self.print_paragraph(head, "        ", BOLD, text);
    }

    /// Shows a remark of the program itself.
    pub fn note(&self, text: &str) {
        let _ = self.print_paragraph(Line::new(), "", DIM, text);
    }

    /// Shows the notices of sessions that are built from configuration.
    pub fn notices(&self) -> Notices {
        let screen = self.clone();
        Notices::new(move |Notice { level, source, text }| match source {
            Some(source) => screen.message(level, source, &text),
            None => screen.note(&text),
        })
    }

    fn print_cut(&self, line: Line) {
        let mut state = self.lock();
        let line = if state.side.look.terminal { line.cut(state.size().columns) } else { line };
        let _ = state.print(vec![line]);
    }

    fn print_paragraph(&self, head: Line, indent: &str, style: Style, text: &str) -> io::Result<()> {
        let mut state = self.lock();
        let mut lines = text.lines();
        let first = head.prose(style, lines.next().unwrap_or_default());
        let lines = std::iter::once(first).chain(lines.map(|line| Line::new().prose(style, line)));
        let width = if state.side.look.terminal { state.size().columns.saturating_sub(2).max(20) } else { usize::MAX };
        let rows = lines.flat_map(|line| line.wrapped(width, Break::Words)).enumerate();
        let indented = |(row, line)| if row == 0 { line } else { Line::new().exact(PLAIN, indent).then(&line) };
        let rows = rows.map(indented).collect();
        state.print(rows)
    }

    pub(super) fn asking(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.shared.asking.clone()
    }

    pub(super) fn key_filter(&self) -> Arc<Mutex<KeyFilter>> {
        self.shared.key_filter.clone()
    }

    pub(super) fn size(&self) -> Size {
        self.lock().size()
    }

    /// Takes the terminal for a question. Until the floor is given back, everything else waits.
    pub(super) fn take_floor(&self) -> io::Result<Floor> {
        let mut state = self.lock();
        state.clear_progress()?;
        state.close_line()?;
        state.question_open = true;
        Ok(Floor { screen: self.clone() })
    }

    /// Changes what is being worked on, and shows it.
    pub(super) fn change_works<T>(&self, change: impl FnOnce(&mut Works) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state.works);
        let _ = state.clear_progress().and_then(|()| state.draw_progress());
        changed
    }

    pub(super) fn draws_progress(&self) -> bool {
        self.lock().side.look.terminal
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is shown is still worth showing after a panic elsewhere.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn size(&self) -> Size {
        self.size.unwrap_or_else(|| {
            let size = terminal_size_of(io::stderr()).map(|(columns, rows)| (columns.0.into(), rows.0.into()));
            size.filter(|&(columns, _)| columns > 0).map_or(USUAL, |(columns, rows)| Size { columns, rows })
        })
    }

    fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if self.question_open {
            self.held.push(Held::Text(piece.to_owned()));
            return;
        }
        let _ = self.clear_progress();
        let mut out = String::with_capacity(piece.len());
        for piece in pieces(piece, Reading::Stream) {
            match piece {
                Piece::Shown(text) => out.push_str(text),
                Piece::StandIn(text) => out.push_str(&Line::new().exact(YELLOW, text).render(self.answer.look.colour)),
            }
        }
        if let Err(error) = self.answer.write(&out) {
            self.answer_failed.get_or_insert(error);
        }
        self.answer_open = !piece.ends_with('\n');
        let _ = self.draw_progress();
    }

    fn print(&mut self, lines: Vec<Line>) -> io::Result<()> {
        if self.question_open {
            self.held.push(Held::Lines(lines));
            return Ok(());
        }
        self.clear_progress()?;
        self.close_line()?;
        let out: String = lines.iter().map(|line| line.render(self.side.look.colour) + "\n").collect();
        self.side.write(&out)?;
        self.draw_progress()
    }

    fn line_open(&self) -> bool {
        self.answer_open && self.answer.look.terminal && self.side.look.terminal
    }

    /// Nothing is printed into the middle of the answer's line.
    fn close_line(&mut self) -> io::Result<()> {
        if self.line_open() {
            self.answer_open = false;
            self.answer.write("\n")?;
        }
        Ok(())
    }

    fn clear_progress(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.progress_shown) { self.side.write(CLEAR) } else { Ok(()) }
    }

    fn draw_progress(&mut self) -> io::Result<()> {
        if !self.side.look.terminal || self.question_open || self.line_open() {
            return Ok(());
        }
        let Some(line) = self.works.line() else { return Ok(()) };
        // The last column stays free: some terminals go to the next line as soon as it is filled.
        let line = line.cut(self.size().columns.saturating_sub(1)).render(self.side.look.colour);
        self.progress_shown = true;
        self.side.write(&line)
    }
}

impl Stream {
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())?;
        self.to.flush()
    }
}

/// The terminal in the hands of a question. Dropping it lets the others speak again.
pub(super) struct Floor {
    screen: Screen,
}

impl Floor {
    /// Draws the rows of a question. In raw mode a line break alone would not return to the first column.
    pub(super) fn rows(&self, rows: &[Line]) -> io::Result<()> {
        let mut state = self.screen.lock();
        let colour = state.side.look.colour;
        let out: String = rows.iter().map(|row| CLEAR.to_owned() + &row.render(colour) + "\r\n").collect();
        state.side.write(&out)
    }

    /// Draws the last row, over the last row that was drawn.
    pub(super) fn last_row(&self, row: &Line) -> io::Result<()> {
        let mut state = self.screen.lock();
        let row = row.cut(state.size().columns.saturating_sub(1)).render(state.side.look.colour);
        state.side.write(&(CLEAR.to_owned() + &row))
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let mut state = self.screen.lock();
        state.question_open = false;
        for held in std::mem::take(&mut state.held) {
            match held {
                Held::Text(text) => state.text(&text),
                Held::Lines(lines) => drop(state.print(lines)),
            }
        }
        let _ = state.clear_progress().and_then(|()| state.draw_progress());
    }
}

fn look(stream: &impl anstream::stream::RawStream, terminal: bool) -> Look {
    // A dumb terminal cannot draw a line over.
    let terminal = terminal && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
    Look { terminal, colour: AutoStream::choice(stream) != ColorChoice::Never }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was written, readable while it is being written.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    const PIPE: Look = Look::plain();
    const TERMINAL: Look = Look { terminal: true, colour: false };

    /// A screen whose two streams end on the same paper.
    fn screen(look: Look) -> (Screen, Paper) {
        let paper = Paper::default();
        (Screen::to(paper.clone(), paper.clone(), look), paper)
    }

    #[test]
    fn a_message_shows_its_level_and_who_says_it() {
        let (screen, paper) = screen(PIPE);
        screen.message(Level::Info, "kernel", "ready");
        screen.message(Level::Warning, "hook:guard", "two\nlines\x1b[2J");
        screen.message(Level::Error, "hook:kernel", "");
        let expected = "◇ info  kernel: ready\n▲ warning  hook guard: two\n  lines␛[2J\n✗ error  hook kernel: \n";
        assert_eq!(paper.text(), expected);
    }

    #[test]
    fn a_remark_keeps_its_columns() {
        let (screen, paper) = screen(TERMINAL);
        screen.note("name   priority\nguard  10");
        assert_eq!(paper.text(), "name   priority\nguard  10\n");
    }

    #[test]
    fn a_long_message_is_wrapped_for_a_terminal_only() {
        let text = "word ".repeat(20);
        let wrapped = |look| {
            let (screen, paper) = screen(look);
            screen.message(Level::Info, "kernel", text.trim_end());
            paper.text().lines().count()
        };
        assert_eq!((wrapped(TERMINAL), wrapped(PIPE)), (2, 1));
    }

    #[test]
    fn a_tool_is_one_line_and_its_end_another() {
        let (screen, paper) = screen(TERMINAL);
        screen.tool("Bash", "cargo test\nand more");
        screen.tool_done(true, "12 lines, 0.4 s");
        screen.tool("Write", &"x".repeat(100));
        screen.tool_done(false, "denied");
        let cut = "x".repeat(70);
        let expected = format!("● Bash  cargo test\n  └ 12 lines, 0.4 s\n● Write  {cut}…\n  └ denied\n");
        assert_eq!(paper.text(), expected);
    }

    #[test]
    fn colours_are_shown_where_they_can_be() {
        let (screen, paper) = screen(Look { terminal: true, colour: true });
        screen.tool_done(false, "no");
        assert_eq!(paper.text(), "\u{1b}[2m  └ \u{1b}[0m\u{1b}[31mno\u{1b}[0m\n");
    }

    #[test]
    fn text_flows_until_something_else_is_shown() {
        let flow = |look| {
            let (screen, paper) = screen(look);
            screen.text("Hello \u{202e}");
            screen.text("you\n\tand");
            screen.note("aside");
            screen.text("me");
            screen.end_text().unwrap();
            paper.text()
        };
        assert_eq!(flow(TERMINAL), "Hello \\u{202e}you\n\tand\naside\nme\n");
        // In a pipe the answer stays as it is: the remark goes elsewhere.
        assert_eq!(flow(PIPE), "Hello \\u{202e}you\n\tandaside\nme\n");
    }

    #[test]
    fn the_progress_line_is_taken_away_before_anything_is_shown_and_drawn_again_after() {
        let (screen, paper) = screen(TERMINAL);
        let still = |text: String| text.replace(|character| "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".contains(character), "*").replace('1', "0");
        let working = screen.working("thinking");
        screen.note("aside");
        screen.text("open line");
        screen.note("closed");
        drop(working);
        let shown = still(paper.text());
        let progress = "* thinking…  0 s";
        // However often it moved on in between.
        let moved = format!("{progress}{CLEAR}{progress}");
        let shown =
            std::iter::successors(Some(shown), |shown| shown.contains(&moved).then(|| shown.replace(&moved, progress)));
        let expected = format!("{progress}{CLEAR}aside\n{progress}{CLEAR}open line\nclosed\n{progress}{CLEAR}");
        assert_eq!(shown.last(), Some(expected));
    }

    #[test]
    fn nothing_is_drawn_over_a_pipe() {
        let (screen, paper) = screen(PIPE);
        drop(screen.working("thinking"));
        assert_eq!(paper.text(), "");
    }

    #[test]
    fn while_a_question_is_open_everything_else_waits() {
        let (screen, paper) = screen(TERMINAL);
        let floor = screen.take_floor().unwrap();
        screen.text("answer");
        screen.note("aside");
        floor.rows(&[Line::new().exact(PLAIN, "question")]).unwrap();
        assert_eq!(paper.text(), format!("{CLEAR}question\r\n"));
        drop(floor);
        assert_eq!(paper.text(), format!("{CLEAR}question\r\nanswer\naside\n"));
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
