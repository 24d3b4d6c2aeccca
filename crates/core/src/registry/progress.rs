//! The progress of an emission.

use std::ops::Range;

use smallvec::SmallVec;

use super::table::Listeners;
use crate::result::ActionKind;

/// The next hook, and the reports so far. Hooks are counted in 32 bits, because outcomes are moved around.
pub(super) struct Progress {
    next: u32,
    gates: u32,
    all: u32,
    // No allocation for the usual number of hooks.
    reports: SmallVec<[StoredReport; 4]>,
    /// No hook from this index on has answered.
    unanswered_from: u32,
    /// Index of the first report without a duration.
    untimed: u32,
    skipped: Range<u32>,
    pub(super) collecting: bool,
}

/// A compact report; the hook's name and its reason are looked up on reading.
pub(super) struct StoredReport {
    pub(super) hook: u32,
    pub(super) answer: ActionKind,
    pub(super) suppressed_output: bool,
    pub(super) nanos: u64,
}

impl Progress {
    #[inline]
    pub(super) fn new(listeners: &Listeners) -> Self {
        let all = listeners.hooks().len();
        let mut reports = SmallVec::new();
        if all > reports.inline_size() {
            reports.reserve_exact(all);
        }
        Self {
            next: 0,
            gates: listeners.gates() as u32,
            all: all as u32,
            reports,
            unanswered_from: 0,
            untimed: 0,
            skipped: 0..0,
            collecting: false,
        }
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.next >= self.all
    }

    pub(super) fn awaits(&self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|index| {
            index < self.next
                && !self.skipped.contains(&index)
                // Most hooks answer in order, and a search in all reports would be slow with many hooks.
                && (index >= self.unanswered_from || !self.reports.iter().any(|report| report.hook == index))
        })
    }

    /// Returns `true` if all hooks that must answer have done so.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.is_over() && self.reports.len() + self.skipped.len() == self.all as usize
    }

    pub(super) fn gates(&self) -> usize {
        self.gates as usize
    }

    pub(super) fn reports(&self) -> &[StoredReport] {
        &self.reports
    }

    #[inline]
    pub(super) fn next_hook(&mut self) -> Option<usize> {
        let next = self.next;
        (next < self.all).then(|| {
            self.next += 1;
            next as usize
        })
    }

    pub(super) fn skip_gates(&mut self) {
        self.skipped = self.next..self.next.max(self.gates);
        self.next = self.skipped.end;
    }

    #[inline]
    pub(super) fn continued(&mut self, index: usize) {
        self.report(index, ActionKind::Continue, false);
    }

    #[inline]
    pub(super) fn report(&mut self, index: usize, answer: ActionKind, suppressed_output: bool) {
        let hook = index as u32;
        self.unanswered_from = self.unanswered_from.max(hook + 1);
        self.reports.push(StoredReport { hook, answer, suppressed_output, nanos: 0 });
    }

    /// Divides the time among the hooks that answered since the last call.
    #[inline]
    pub(super) fn record_duration(&mut self, nanos: u64) {
        match &mut self.reports[self.untimed as usize..] {
            [report] => report.nanos = nanos,
            several => {
                let share = nanos / several.len().max(1) as u64;
                several.iter_mut().for_each(|report| report.nanos = share);
            }
        }
        self.untimed = self.reports.len() as u32;
    }
}
