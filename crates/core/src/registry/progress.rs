//! Whose turn it is in an emission, and what those before answered.

use std::ops::Range;

use smallvec::SmallVec;

use super::book::Listeners;
use super::outcome::Answered;
use crate::result::HookError;

/// Whose turn it is, and what those before answered.
pub(super) struct Progress {
    next: usize,
    gates: usize,
    all: usize,
    // Small, and without an allocation for the usual number of hooks.
    reports: SmallVec<[KeptReport; 4]>,
    /// Where the reports begin that have no time yet.
    untimed: usize,
    /// The hooks that had no turn because of a denial.
    skipped: Range<usize>,
    /// Whether answers are only collected: then nobody denies and nothing is modified.
    pub(super) collecting: bool,
}

/// A report as it is kept; the hook's name is looked up when someone reads it.
pub(super) struct KeptReport {
    pub(super) hook: u32,
    pub(super) answer: Answered,
    pub(super) suppressed_output: bool,
    pub(super) nanos: u64,
    pub(super) detail: Option<Box<Detail>>,
}

pub(super) struct Detail {
    pub(super) reason: Option<String>,
    pub(super) error: Option<HookError>,
}

impl Progress {
    #[inline]
    pub(super) fn new(listeners: &Listeners) -> Self {
        let all = listeners.hooks().len();
        let mut reports = SmallVec::new();
        if all > reports.inline_size() {
            reports.reserve_exact(all);
        }
        Self { next: 0, gates: listeners.gates(), all, reports, untimed: 0, skipped: 0..0, collecting: false }
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.next >= self.all
    }

    /// Whether that hook had its turn and has not answered.
    pub(super) fn awaits(&self, index: usize) -> bool {
        index < self.next
            && !self.skipped.contains(&index)
            && !self.reports.iter().any(|report| report.hook as usize == index)
    }

    /// Whether all hooks that had to answer have done so.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.is_over() && self.reports.len() + self.skipped.len() == self.all
    }

    pub(super) fn gates(&self) -> usize {
        self.gates
    }

    pub(super) fn reports(&self) -> &[KeptReport] {
        &self.reports
    }

    #[inline]
    pub(super) fn next_hook(&mut self) -> Option<usize> {
        let next = self.next;
        (next < self.all).then(|| {
            self.next += 1;
            next
        })
    }

    /// The remaining gates have no say any more.
    pub(super) fn skip_gates(&mut self) {
        self.skipped = self.next..self.next.max(self.gates);
        self.next = self.skipped.end;
    }

    /// The hook had nothing to say.
    #[inline]
    pub(super) fn continued(&mut self, index: usize) {
        self.report(index, Answered::Continue, false, None);
    }

    #[inline]
    pub(super) fn report(
        &mut self,
        index: usize,
        answer: Answered,
        suppressed_output: bool,
        detail: Option<Box<Detail>>,
    ) {
        let hook = index as u32;
        self.reports.push(KeptReport { hook, answer, suppressed_output, nanos: 0, detail });
    }

    /// The hooks that answered since this was last called share the time.
    #[inline]
    pub(super) fn took(&mut self, nanos: u64) {
        match &mut self.reports[self.untimed..] {
            [report] => report.nanos = nanos,
            several => {
                let share = nanos / several.len().max(1) as u64;
                several.iter_mut().for_each(|report| report.nanos = share);
            }
        }
        self.untimed = self.reports.len();
    }
}
