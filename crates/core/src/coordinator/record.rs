//! Recording what happens, and noticing when that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Coordinator;
use super::route::log;
use crate::event::{EventData, EventName};
use crate::guard;
use crate::ports::PortError;
use crate::ports::audit::{AuditEntry, AuditRecord};
use crate::registry::Outcome;
use crate::result::HookError;
use crate::sync::lock;

/// The records of one routing.
pub(super) struct Recording<'a> {
    session: &'a Coordinator,
    event: &'a EventName,
    /// The first failure; more of them say nothing new.
    failure: Option<PortError>,
}

impl<'a> Recording<'a> {
    pub(super) fn new(session: &'a Coordinator, event: &'a EventName) -> Self {
        Self { session, event, failure: None }
    }

    pub(super) fn event(&self) -> &'a EventName {
        self.event
    }

    pub(super) fn record(&mut self, entry: AuditEntry) {
        if let Err(error) = self.session.record(self.event, entry) {
            self.failure.get_or_insert(error);
        }
    }

    /// Logs and records that a part of the system failed.
    pub(super) fn fail(&mut self, part: &'static str, error: &PortError) {
        log(part, error);
        self.record(AuditEntry::Failure { part, error: error.to_string() });
    }

    /// Intent before an operation that was let through; outcome after it, also if its result is withheld.
    pub(super) fn record_operation(&mut self, data: &EventData, proceeds: bool) {
        let tool_call_id = || data.text("tool_call_id").map(str::to_owned);
        match self.event.as_str() {
            "tool:pre" | "provider:request" | "agent:spawn" if proceeds => {
                self.record(AuditEntry::Intent { digest: data.digest().ok(), tool_call_id: tool_call_id() });
            }
            "tool:post" | "provider:response" | "agent:complete" => {
                let success = data.get("success").and_then(serde_json::Value::as_bool);
                self.record(AuditEntry::Outcome { success, tool_call_id: tool_call_id() });
            }
            _ => {}
        }
    }

    /// Waits until everything is safe; gives the failure, if there was one.
    pub(super) async fn finish(self) -> Option<PortError> {
        let failure = match (self.failure, &self.session.shared.audit) {
            (Some(failure), _) => Some(failure),
            (None, Some(audit)) => guard::port(self.session.clock(), audit.flushed()).await.err(),
            (None, None) if self.session.shared.config.audit_required => Some("there is none".into()),
            (None, None) => None,
        };
        failure.inspect(|error| log("audit", error))
    }
}

impl Coordinator {
    /// Records without waiting.
    pub(super) fn record(&self, event: &EventName, entry: AuditEntry) -> Result<(), PortError> {
        let Some(audit) = &self.shared.audit else { return Ok(()) };
        let turn = lock(&self.shared.turn).number;
        let session = self.shared.session_id.clone();
        let record = AuditRecord { at: self.clock().wall(), session, turn, event: event.clone(), entry };
        catch_unwind(AssertUnwindSafe(|| audit.take(record)))
            .unwrap_or_else(|panic| Err(HookError::from_panic(panic).to_string().into()))
    }
}

/// What the record says about an emission: the event, and a report for each hook.
pub(super) fn reports(outcome: &Outcome) -> Vec<AuditEntry> {
    let denial = outcome.denial();
    let event = AuditEntry::Event {
        data: outcome.data.clone(),
        decision: outcome.decision.as_str(),
        denied_by: denial.map(|denial| denial.by.to_string()),
        reason: denial.and_then(|denial| denial.reason.clone()),
    };
    let reports = outcome.reports().map(|report| AuditEntry::HookReport {
        hook: report.hook.to_owned(),
        answer: report.answer_or_failure(),
        took: report.took,
        reason: report.reason.map(str::to_owned),
        error: report.error.map(ToString::to_string),
        suppressed_output: report.suppressed_output,
    });
    std::iter::once(event).chain(reports).collect()
}
