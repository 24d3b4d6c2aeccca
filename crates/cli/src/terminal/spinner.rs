//! The progress line.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::line::{CYAN, DIM, PLAIN, StyledLine};
use super::screen::Screen;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME: Duration = Duration::from_millis(100);

/// A progress line with the elapsed time, shown until dropped.
#[must_use = "the progress line goes away when this is dropped"]
pub struct Spinner {
    screen: Screen,
    id: u64,
    /// Dropping the sender stops the ticking thread.
    _ticking: Option<Sender<()>>,
}

#[derive(Default)]
pub(super) struct ProgressTasks {
    last_id: u64,
    open: Vec<ProgressTask>,
}

struct ProgressTask {
    id: u64,
    label: String,
    since: Instant,
}

impl ProgressTasks {
    fn begin(&mut self, label: &str) -> u64 {
        self.last_id += 1;
        self.open.push(ProgressTask { id: self.last_id, label: label.to_owned(), since: Instant::now() });
        self.last_id
    }

    fn end(&mut self, id: u64) {
        self.open.retain(|task| task.id != id);
    }

    /// Returns a line with the latest task and the number of others.
    pub(super) fn line(&self) -> Option<StyledLine> {
        let task = self.open.last()?;
        let elapsed = task.since.elapsed();
        let frame = usize::try_from(elapsed.as_millis() / FRAME.as_millis()).unwrap_or_default() % FRAMES.len();
        let label = task.label.lines().next().unwrap_or_default();
        let line = StyledLine::new().exact(CYAN, FRAMES[frame]).exact(PLAIN, " ").exact(PLAIN, label).exact(PLAIN, "…");
        let others = match self.open.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(line.exact(DIM, format!("{others}  {} s", elapsed.as_secs())))
    }
}

impl Screen {
    /// Shows a progress line while the returned handle lives. Files and pipes show none.
    pub fn spinner(&self, label: &str) -> Spinner {
        let id = self.change_tasks(|tasks| tasks.begin(label));
        let (ticking, stopped) = channel();
        let screen = self.clone();
        // A thread, because the line must move while the runtime is busy. Without the thread it does not move.
        let thread = std::thread::Builder::new().name("progress".into());
        let started = self.draws_progress() && thread.spawn(move || tick(&screen, &stopped)).is_ok();
        Spinner { screen: self.clone(), id, _ticking: started.then_some(ticking) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.screen.change_tasks(|tasks| tasks.end(self.id));
    }
}

fn tick(screen: &Screen, stopped: &Receiver<()>) {
    while stopped.recv_timeout(FRAME) == Err(RecvTimeoutError::Timeout) {
        screen.change_tasks(|_| ());
    }
}
