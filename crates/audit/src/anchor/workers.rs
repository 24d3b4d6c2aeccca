//! The threads that hand checkpoints to anchors.
//!
//! Every anchor has its own thread and one pending note. A newer checkpoint covers all older ones, so it replaces the pending note: a
//! slow anchor skips checkpoints, and never delays the log.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Anchor, AnchorState, TimeLimit, after_colon};

pub(crate) struct AnchorWorkers {
    workers: Vec<Arc<AnchorWorker>>,
}

impl AnchorWorkers {
    pub(crate) fn start(anchors: Vec<Box<dyn Anchor>>) -> Self {
        Self::start_with(Backoff::DEFAULT, anchors)
    }

    fn start_with(backoff: Backoff, anchors: Vec<Box<dyn Anchor>>) -> Self {
        let start = |anchor: Box<dyn Anchor>| {
            let worker = Arc::new(AnchorWorker::new(anchor.name()));
            let run = {
                let worker = worker.clone();
                move || worker.serve(anchor, &backoff)
            };
            if let Err(error) = thread::Builder::new().name("audit-anchor".into()).spawn(run) {
                worker.failed(None, format!("cannot start a thread: {error}"));
                lock(&worker.state).ended = true;
            }
            worker
        };
        Self { workers: anchors.into_iter().map(start).collect() }
    }

    /// Passes a checkpoint over the first `size` records to every anchor. Never blocks.
    pub(crate) fn deliver(&self, size: u64, note: &str) {
        if self.workers.is_empty() {
            return;
        }
        let text: Arc<str> = note.into();
        for worker in &self.workers {
            worker.put(PendingNote { size, text: text.clone(), tried: false });
        }
    }

    pub(crate) fn states(&self) -> Vec<AnchorState> {
        self.workers.iter().map(|worker| worker.describe()).collect()
    }

    /// Delivers the pending notes, and gives up after this time. Later notes are ignored. A second call only waits.
    pub(crate) fn close(&self, within: Duration) {
        let limit = TimeLimit::starting_now(within);
        // Close all of them first, so that they share the time.
        for worker in &self.workers {
            worker.close(limit);
        }
        for worker in &self.workers {
            worker.wait_for_end(limit);
        }
    }
}

impl Drop for AnchorWorkers {
    /// Ends the threads without waiting for them: to deliver pending notes, call `close` first.
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.close(TimeLimit::starting_now(Duration::ZERO));
        }
    }
}

/// The pause between attempts while an anchor fails.
#[derive(Clone, Copy)]
struct Backoff {
    shortest: Duration,
    longest: Duration,
}

impl Backoff {
    const DEFAULT: Self = Self { shortest: Duration::from_secs(1), longest: Duration::from_secs(60) };

    /// Returns the pause after this number of consecutive failures; it doubles with each.
    fn pause(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.shortest.saturating_mul(factor).min(self.longest)
    }
}

struct PendingNote {
    size: u64,
    text: Arc<str>,
    /// `true` after a failed attempt: the next one is not urgent.
    tried: bool,
}

struct FailureStreak {
    times: u32,
    last: Instant,
    why: String,
}

#[derive(Default)]
struct WorkerState {
    waiting: Option<PendingNote>,
    /// `true` while the anchor stores a note.
    busy: bool,
    /// The size of the newest note, to detect notes that arrive out of order.
    newest: u64,
    kept: Option<u64>,
    failing: Option<FailureStreak>,
    closing: Option<TimeLimit>,
    ended: bool,
}

impl WorkerState {
    fn pause(&self, note: &PendingNote, backoff: &Backoff) -> Duration {
        let Some(failing) = &self.failing else { return Duration::ZERO };
        let hurry = !note.tried || self.closing.is_some();
        let pause = if hurry { backoff.shortest } else { backoff.pause(failing.times) };
        pause.saturating_sub(failing.last.elapsed())
    }

    fn unfinished(&self) -> bool {
        self.busy || self.waiting.is_some()
    }
}

/// The state that one anchor's thread shares with the log.
struct AnchorWorker {
    name: String,
    // A std lock: it is held briefly, never while the anchor works.
    state: Mutex<WorkerState>,
    changed: Condvar,
}

impl AnchorWorker {
    fn new(name: String) -> Self {
        Self { name, state: Mutex::default(), changed: Condvar::new() }
    }

    fn put(&self, note: PendingNote) {
        let mut state = lock(&self.state);
        if note.size < state.newest || state.closing.is_some() {
            return;
        }
        state.newest = note.size;
        state.waiting = Some(note);
        self.changed.notify_all();
    }

    /// Runs on the thread: stores one note after another, until closed.
    fn serve(&self, mut anchor: Box<dyn Anchor>, backoff: &Backoff) {
        let _end = EndGuard(self);
        while let Some(note) = self.take(backoff) {
            // A panic affects only the anchor's own state; it is called again as after any failure.
            match catch_unwind(AssertUnwindSafe(|| anchor.keep(&note.text))) {
                Ok(Ok(())) => self.succeeded(note.size),
                Ok(Err(error)) => self.failed(Some(note), error.to_string()),
                Err(panic) => self.failed(Some(note), format!("panicked{}", after_colon(message(&*panic)))),
            }
        }
    }

    /// Waits for a note and for its pause. `None` means the end.
    fn take(&self, backoff: &Backoff) -> Option<PendingNote> {
        let mut state = lock(&self.state);
        loop {
            let left = state.closing.map(|limit| limit.left());
            let Some(note) = &state.waiting else {
                if left.is_some() {
                    return None;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let pause = state.pause(note, backoff);
            if left.is_some_and(|left| left <= pause) {
                return None;
            }
            if pause.is_zero() {
                state.busy = true;
                return state.waiting.take();
            }
            state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn succeeded(&self, size: u64) {
        let failing = {
            let mut state = lock(&self.state);
            state.busy = false;
            state.kept = Some(size);
            state.failing.take()
        };
        if let Some(failing) = failing {
            tracing::info!(anchor = self.name, failures = failing.times, "the anchor works again");
        }
    }

    fn failed(&self, note: Option<PendingNote>, why: String) {
        let times = {
            let mut state = lock(&self.state);
            state.busy = false;
            if state.waiting.is_none() {
                state.waiting = note.map(|note| PendingNote { tried: true, ..note });
            }
            let times = state.failing.as_ref().map_or(0, |failing| failing.times).saturating_add(1);
            state.failing = Some(FailureStreak { times, last: Instant::now(), why: why.clone() });
            times
        };
        if times == 1 {
            tracing::warn!(anchor = self.name, why, "the anchor failed");
        }
    }

    fn describe(&self) -> AnchorState {
        let state = lock(&self.state);
        let failure = match &state.failing {
            Some(failing) => Some(failing.why.clone()),
            None if state.unfinished() && state.closing.is_some_and(|limit| limit.left().is_zero()) => {
                Some("not delivered when the log was closed".into())
            }
            None => None,
        };
        AnchorState { name: self.name.clone(), kept: state.kept, failure }
    }

    fn close(&self, limit: TimeLimit) {
        lock(&self.state).closing.get_or_insert(limit);
        self.changed.notify_all();
    }

    fn wait_for_end(&self, limit: TimeLimit) {
        let unfinished = {
            let state = lock(&self.state);
            let (state, _) = self
                .changed
                .wait_timeout_while(state, limit.left(), |state| !state.ended)
                .unwrap_or_else(PoisonError::into_inner);
            state.unfinished()
        };
        if unfinished {
            tracing::warn!(anchor = self.name, "the log is closed and the anchor does not have the newest checkpoint");
        }
    }
}

/// Marks the thread as ended, also after a panic.
struct EndGuard<'a>(&'a AnchorWorker);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).ended = true;
        self.0.changed.notify_all();
    }
}

/// Ignores poisoning: the state is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::process::Command;
    use std::sync::mpsc::{self, Receiver, Sender};

    use tracing::field::{Field, Visit};
    use tracing::{Level, Metadata, Subscriber, span};

    use super::super::AnchorError;
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const QUICK: Backoff = Backoff { shortest: Duration::from_millis(1), longest: Duration::from_millis(10) };

    enum Answer {
        Kept,
        Failed(&'static str),
        Panic(&'static str),
    }

    /// An anchor that passes each note to the test and waits for its instructions.
    struct Fake {
        shown: Sender<String>,
        answers: Receiver<Answer>,
    }

    impl Anchor for Fake {
        fn keep(&mut self, note: &str) -> Result<(), AnchorError> {
            let _ = self.shown.send(note.to_owned());
            match self.answers.recv() {
                Ok(Answer::Kept) | Err(_) => Ok(()),
                Ok(Answer::Failed(why)) => Err(AnchorError::other(why)),
                Ok(Answer::Panic(why)) => panic!("{why}"),
            }
        }

        fn name(&self) -> String {
            "fake".into()
        }
    }

    /// The test's end of a fake.
    struct Hand {
        shown: Receiver<String>,
        answers: Sender<Answer>,
    }

    impl Hand {
        fn expect(&self, note: &str) {
            assert_eq!(self.shown.recv_timeout(LONG).unwrap(), note);
        }

        fn answer(&self, answer: Answer) {
            self.answers.send(answer).unwrap();
        }
    }

    fn fake() -> (Box<dyn Anchor>, Hand) {
        let (shown, seen) = mpsc::channel();
        let (say, answers) = mpsc::channel();
        (Box::new(Fake { shown, answers }), Hand { shown: seen, answers: say })
    }

    fn one() -> (AnchorWorkers, Hand) {
        let (anchor, hand) = fake();
        (AnchorWorkers::start_with(QUICK, vec![anchor]), hand)
    }

    fn state(kept: Option<u64>, failure: Option<&str>) -> AnchorState {
        AnchorState { name: "fake".into(), kept, failure: failure.map(Into::into) }
    }

    /// Waits until the anchors have these states.
    fn expect(workers: &AnchorWorkers, states: &[AnchorState]) {
        let limit = TimeLimit::starting_now(LONG);
        while workers.states() != states {
            assert!(!limit.left().is_zero(), "expected {states:?}, found {:?}", workers.states());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_checkpoint_reaches_every_anchor() {
        let ((first, first_hand), (second, second_hand)) = (fake(), fake());
        let workers = AnchorWorkers::start(vec![first, second]);
        expect(&workers, &[state(None, None), state(None, None)]);
        workers.deliver(7, "seven");
        first_hand.expect("seven");
        // The first one hangs, the second one does not care.
        second_hand.expect("seven");
        second_hand.answer(Answer::Kept);
        expect(&workers, &[state(None, None), state(Some(7), None)]);
        first_hand.answer(Answer::Kept);
        expect(&workers, &[state(Some(7), None), state(Some(7), None)]);
    }

    #[test]
    fn without_anchors_there_is_nothing_to_do() {
        let workers = AnchorWorkers::start(Vec::new());
        workers.deliver(1, "one");
        workers.close(LONG);
        assert_eq!(workers.states(), []);
    }

    #[test]
    fn the_newest_note_replaces_those_that_wait() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        for size in 2..10_000 {
            workers.deliver(size, "later");
        }
        workers.deliver(10_000, "newest");
        hand.answer(Answer::Kept);
        hand.expect("newest");
        assert_eq!(workers.states(), [state(Some(1), None)]);
        hand.answer(Answer::Kept);
        expect(&workers, &[state(Some(10_000), None)]);
    }

    #[test]
    fn a_note_that_was_overtaken_is_dropped() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        workers.deliver(3, "three");
        workers.deliver(2, "two");
        hand.answer(Answer::Kept);
        hand.expect("three");
        workers.deliver(2, "two");
        hand.answer(Answer::Kept);
        workers.deliver(4, "four");
        hand.expect("four");
    }

    #[test]
    fn a_failing_anchor_gets_the_note_again_until_it_works() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        hand.answer(Answer::Failed("no paper"));
        hand.expect("one");
        assert_eq!(workers.states(), [state(None, Some("no paper"))]);
        hand.answer(Answer::Failed("no ink"));
        hand.expect("one");
        assert_eq!(workers.states(), [state(None, Some("no ink"))]);
        hand.answer(Answer::Kept);
        expect(&workers, &[state(Some(1), None)]);
        workers.deliver(2, "two");
        hand.expect("two");
    }

    #[test]
    fn a_newer_note_replaces_the_one_that_failed() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        workers.deliver(2, "two");
        hand.answer(Answer::Failed("no paper"));
        hand.expect("two");
    }

    #[test]
    fn a_panic_counts_as_a_failure() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        hand.answer(Answer::Panic("paper jam"));
        hand.expect("one");
        assert_eq!(workers.states(), [state(None, Some("panicked: paper jam"))]);
        hand.answer(Answer::Kept);
        expect(&workers, &[state(Some(1), None)]);
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<_> = (1..9).map(|failures| Backoff::DEFAULT.pause(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(Backoff::DEFAULT.pause(u32::MAX), Duration::from_secs(60));
    }

    #[test]
    fn only_a_note_that_failed_waits_for_long() {
        let check = |state: &WorkerState, tried: bool, expected: u64| {
            let pause = state.pause(&PendingNote { size: 1, text: "".into(), tried }, &Backoff::DEFAULT);
            // A little of it has passed already.
            assert_eq!(pause.as_secs_f64().ceil() as u64, expected, "tried: {tried}");
        };
        let mut state = WorkerState::default();
        check(&state, false, 0);
        state.failing = Some(FailureStreak { times: 5, last: Instant::now(), why: String::new() });
        check(&state, true, 16);
        check(&state, false, 1);
        state.closing = Some(TimeLimit::starting_now(LONG));
        check(&state, true, 1);
    }

    #[test]
    fn closing_delivers_what_is_waiting() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        workers.deliver(2, "two");
        for answer in [Answer::Failed("no paper"), Answer::Failed("no ink"), Answer::Kept] {
            hand.answer(answer);
        }
        workers.close(Duration::MAX);
        assert_eq!(workers.states(), [state(Some(2), None)]);
        workers.deliver(3, "three");
        workers.close(LONG);
        assert_eq!(workers.states(), [state(Some(2), None)]);
    }

    #[test]
    fn closing_does_not_wait_for_an_anchor_that_hangs() {
        let (workers, hand) = one();
        workers.deliver(1, "one");
        hand.expect("one");
        let began = Instant::now();
        workers.close(Duration::from_millis(50));
        assert!(began.elapsed() < LONG);
        assert_eq!(workers.states(), [state(None, Some("not delivered when the log was closed"))]);
        hand.answer(Answer::Kept);
        expect(&workers, &[state(Some(1), None)]);
    }

    #[test]
    fn closing_does_not_wait_for_an_anchor_that_fails() {
        let (anchor, hand) = fake();
        let workers = AnchorWorkers::start_with(Backoff { shortest: LONG * 60, longest: LONG * 60 }, vec![anchor]);
        workers.deliver(1, "one");
        hand.expect("one");
        hand.answer(Answer::Failed("no paper"));
        expect(&workers, &[state(None, Some("no paper"))]);
        // There is no time for another try, so there is nothing to wait for.
        let began = Instant::now();
        workers.close(LONG);
        assert!(began.elapsed() < LONG);
        assert_eq!(workers.states(), [state(None, Some("no paper"))]);
    }

    #[test]
    fn dropping_ends_the_threads() {
        let (workers, hand) = one();
        drop(workers);
        assert_eq!(hand.shown.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn the_first_failure_and_the_recovery_are_told() {
        // In a process of its own: while other tests run into the same events, `tracing` may decide that nobody listens.
        const ALONE: &str = "ANCHOR_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let mut test = Command::new(std::env::current_exe().unwrap());
            test.arg("the_first_failure_and_the_recovery_are_told").env(ALONE, "");
            let output = String::from_utf8(test.output().unwrap().stdout).unwrap();
            assert!(output.contains("1 passed; 0 failed"), "{output}");
            return;
        }
        let (anchor, hand) = fake();
        let worker = AnchorWorker::new(anchor.name());
        worker.put(PendingNote { size: 1, text: "one".into(), tried: false });
        worker.close(TimeLimit::starting_now(LONG));
        for answer in [Answer::Failed("no paper"), Answer::Failed("no ink"), Answer::Kept] {
            hand.answer(answer);
        }
        let told = Told::default();
        tracing::subscriber::with_default(told.clone(), || worker.serve(anchor, &QUICK));
        let warning = "anchor=fake why=no paper message=the anchor failed";
        let relief = "anchor=fake failures=2 message=the anchor works again";
        assert_eq!(*lock(&told.0), [(Level::WARN, warning.to_owned()), (Level::INFO, relief.to_owned())]);
    }

    /// Collects events.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<(Level, String)>>>);

    impl Subscriber for Told {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target().ends_with("::workers")
        }

        fn event(&self, event: &tracing::Event<'_>) {
            let mut fields = Fields(Vec::new());
            event.record(&mut fields);
            // The message is recorded first or last, depending on how the event was written.
            fields.0.sort_by_key(|field| field.starts_with("message="));
            lock(&self.0).push((*event.metadata().level(), fields.0.join(" ")));
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    struct Fields(Vec<String>);

    impl Visit for Fields {
        fn record_str(&mut self, field: &Field, value: &str) {
            self.0.push(format!("{field}={value}"));
        }

        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.push(format!("{field}={value:?}"));
        }
    }
}
