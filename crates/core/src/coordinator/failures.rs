//! Warnings about failing hooks: one for each hook and cause.

use std::collections::HashMap;
use std::sync::Arc;

use super::Verdict;
use crate::event::{Data, EventName};
use crate::registry::{Attributed, Outcome};
use crate::text::is_readable;

/// The most causes shown of one hook in a session: a hook with ever new errors must not fill the screen.
const MOST_CAUSES: usize = 5;

/// The most hooks whose causes are stored separately; all others share one entry.
const MOST_HOOKS: usize = 256;

/// In characters.
const LONGEST_ERROR: usize = 1_000;

pub(super) fn failures<D: Data>(outcome: &Outcome<D>) -> Vec<Attributed<String>> {
    if outcome.is_silent() {
        return Vec::new();
    }
    let failure = |report: crate::registry::HookReportRef<'_>| {
        let error = report.error?.to_string();
        let said = error.chars().filter(|c| is_readable(*c)).take(LONGEST_ERROR).collect();
        Some(Attributed { hook: report.hook.into(), value: said })
    };
    outcome.reports().filter_map(failure).collect()
}

#[derive(Default)]
pub(super) struct ShownFailures {
    causes: HashMap<Arc<str>, Vec<String>>,
}

impl ShownFailures {
    /// Returns the warning about a failure, unless it was shown before, or the hook's limit is reached.
    pub(super) fn warning(
        &mut self,
        Attributed { hook, value: error }: &Attributed<String>,
        event: &EventName,
        verdict: &Verdict,
    ) -> Option<String> {
        let is_known = self.causes.len() < MOST_HOOKS || self.causes.contains_key(hook);
        let causes = self.causes.entry(if is_known { hook.clone() } else { "".into() }).or_default();
        if causes.len() >= MOST_CAUSES || causes.contains(error) {
            return None;
        }
        causes.push(error.clone());
        let effect = match verdict {
            Verdict::Proceed(_) => "the operation went on without this hook",
            Verdict::Denied { by, .. } if by == hook => "the operation was denied",
            Verdict::Denied { .. } => "the operation was denied for another reason",
        };
        let end = if causes.len() == MOST_CAUSES { "; further failures of this hook are not shown" } else { "" };
        Some(format!("failed at {event}: {error}; {effect}{end}"))
    }
}
