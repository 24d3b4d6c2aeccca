//! The progress line.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::line::{CYAN, DIM, Line, PLAIN};
use super::screen::Screen;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(100);

/// Shows that something is being worked on, and for how long, until it is dropped.
#[must_use = "the progress line goes away when this is dropped"]
pub struct Working {
    screen: Screen,
    id: u64,
    /// Its end tells the ticking thread to stop.
    _ticking: Option<Sender<()>>,
}

/// What is being worked on.
#[derive(Default)]
pub(super) struct Works {
    last_id: u64,
    open: Vec<Work>,
}

struct Work {
    id: u64,
    what: String,
    since: Instant,
}

impl Works {
    fn begin(&mut self, what: &str) -> u64 {
        self.last_id += 1;
        self.open.push(Work { id: self.last_id, what: what.to_owned(), since: Instant::now() });
        self.last_id
    }

    fn end(&mut self, id: u64) {
        self.open.retain(|work| work.id != id);
    }

    /// The latest work, and how many others there are.
    pub(super) fn line(&self) -> Option<Line> {
        let work = self.open.last()?;
        let elapsed = work.since.elapsed();
        let frame = usize::try_from(elapsed.as_millis() / FRAME.as_millis()).unwrap_or_default() % FRAMES.len();
        let what = work.what.lines().next().unwrap_or_default();
        let line = Line::new().exact(CYAN, FRAMES[frame]).exact(PLAIN, " ").exact(PLAIN, what).exact(PLAIN, "…");
        let others = match self.open.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(line.exact(DIM, format!("{others}  {} s", elapsed.as_secs())))
    }
}

impl Screen {
    /// Shows that something is being worked on, for as long as the handle lives. Only a terminal shows it.
    pub fn working(&self, what: &str) -> Working {
        let id = self.change_works(|works| works.begin(what));
        let (ticking, stopped) = channel();
        let screen = self.clone();
        // A thread, because the line has to move also while the runtime is busy. Without one it only stands still.
        let thread = std::thread::Builder::new().name("progress".into());
        let started = self.draws_progress() && thread.spawn(move || tick(&screen, &stopped)).is_ok();
        Working { screen: self.clone(), id, _ticking: started.then_some(ticking) }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.screen.change_works(|works| works.end(self.id));
    }
}

fn tick(screen: &Screen, stopped: &Receiver<()>) {
    while stopped.recv_timeout(FRAME) == Err(RecvTimeoutError::Timeout) {
        screen.change_works(|_| ());
    }
}
