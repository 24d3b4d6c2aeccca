//! Audit records of the coordinator, and their failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Coordinator;
use super::route::log;
use crate::audit::{AuditEntry, AuditRecord, EventEntry, FailureEntry, HookReportEntry, IntentEntry, OutcomeEntry};
use crate::contain;
use crate::event::{Data, EventData, EventName};
use crate::ports::audit::Receipt;
use crate::ports::{BoxFuture, PortError};
use crate::registry::Outcome;
use crate::result::{ActionKind, DecisionKind, HookError};

pub(super) struct RecordWriter<'a> {
    session: &'a Coordinator,
    event: &'a EventName,
    /// The receipt of the first record: no record since may be lost.
    first: Option<Receipt>,
    /// The first failure; later ones add nothing.
    failure: Option<PortError>,
    /// Parts that hung in this routing. A second call would only make the agent wait longer.
    hung: Vec<&'static str>,
}

impl<'a> RecordWriter<'a> {
    pub(super) fn new(session: &'a Coordinator, event: &'a EventName) -> Self {
        Self { session, event, first: None, failure: None, hung: Vec::new() }
    }

    pub(super) fn event(&self) -> &'a EventName {
        self.event
    }

    pub(super) fn record(&mut self, entry: AuditEntry) {
        match self.session.record(self.event, entry) {
            Ok(receipt) => _ = self.first.get_or_insert(receipt),
            Err(error) => _ = self.failure.get_or_insert(error),
        }
    }

    /// Calls a part of the system, unless it hung before. A failure is logged and recorded.
    pub(super) async fn call<T>(
        &mut self,
        part: &'static str,
        call: BoxFuture<'_, Result<T, PortError>>,
    ) -> Result<T, PortError> {
        let result = match self.has_hung(part) {
            true => Err("skipped, because an earlier call hung".into()),
            false => contain::port(self.session.clock(), call).await,
        };
        if let Err(error) = &result {
            if error.is::<contain::PortTimeout>() {
                self.hung.push(part);
            }
            log(part, error);
            self.record(AuditEntry::Failure(FailureEntry { part: part.into(), error: error.to_string() }));
        }
        result
    }

    pub(super) fn has_hung(&self, part: &'static str) -> bool {
        self.hung.contains(&part)
    }

    /// Records the intent before an allowed operation, and the outcome after it, also if its result is withheld. Returns the entry for an
    /// operation that is cancelled before it begins.
    pub(super) fn record_operation(
        &mut self,
        data: &EventData,
        tool_call_id: Option<String>,
        proceeds: bool,
    ) -> Option<AuditEntry> {
        // A digest reads all of the data, so it is made only for an audit log.
        self.session.shared.audit.as_ref()?;
        match self.event.as_str() {
            "tool:pre" | "provider:request" | "agent:spawn" if proceeds => {
                self.record(AuditEntry::Intent(IntentEntry {
                    digest: data.digest().ok(),
                    tool_call_id: tool_call_id.clone(),
                }));
                return Some(AuditEntry::Outcome(OutcomeEntry { success: Some(false), tool_call_id }));
            }
            "tool:post" | "provider:response" | "agent:complete" => {
                let success = data.get("success").and_then(serde_json::Value::as_bool);
                self.record(AuditEntry::Outcome(OutcomeEntry { success, tool_call_id }));
            }
            "error:provider" => {
                self.record(AuditEntry::Outcome(OutcomeEntry { success: Some(false), tool_call_id: None }))
            }
            _ => {}
        }
        None
    }

    /// Waits until all records are flushed; returns the failure, if there was one.
    pub(super) async fn finish(&mut self) -> Option<PortError> {
        let flushed = match &self.session.shared.audit {
            Some(audit) => contain::port(self.session.clock(), audit.flushed(self.first.unwrap_or_default())).await,
            None if self.session.shared.config.audit_required => Err("no audit log is configured".into()),
            None => Ok(()),
        };
        let failure = self.failure.take().or(flushed.err());
        failure.inspect(|error| log("audit", error))
    }
}

impl Coordinator {
    /// Records that an emission was cancelled, with the results of the hooks so far.
    pub(super) fn record_cancelled<D: Data>(&self, outcome: &Outcome<D>, data: &EventData) {
        if self.shared.audit.is_none() {
            return;
        }
        for entry in reports(outcome, data, DecisionKind::Cancelled) {
            if let Err(error) = self.record(outcome.event(), entry) {
                return log("audit", &error);
            }
        }
    }

    /// Records the end of an operation, for agents that emit no event with its result: a model call, or a tool that failed. `event` names the
    /// operation; the intent with the same `tool_call_id` has an outcome then.
    ///
    /// # Errors
    /// If the audit log fails.
    pub fn record_outcome(
        &self,
        event: &EventName,
        tool_call_id: Option<String>,
        success: Option<bool>,
    ) -> Result<(), PortError> {
        self.record(event, AuditEntry::Outcome(OutcomeEntry { success, tool_call_id })).map(drop)
    }

    pub(super) fn record(&self, event: &EventName, entry: AuditEntry) -> Result<Receipt, PortError> {
        let Some(audit) = &self.shared.audit else { return Ok(Receipt::default()) };
        let turn = self.shared.turn.load(Ordering::Relaxed);
        let session = self.shared.session_id.clone();
        let record = AuditRecord { at: self.clock().wall(), session, turn, event: event.clone(), entry };
        catch_unwind(AssertUnwindSafe(|| audit.take(record)))
            .unwrap_or_else(|panic| Err(HookError::from_panic(panic).to_string().into()))
    }
}

/// Returns the entries of an emission: the event with its effective data, and a report for each hook.
pub(super) fn reports<D: Data>(outcome: &Outcome<D>, data: &EventData, decision: DecisionKind) -> Vec<AuditEntry> {
    let denial = outcome.denial();
    let event = AuditEntry::Event(EventEntry {
        data: data.clone().into(),
        decision,
        denied_by: denial.map(|denial| denial.by.to_string()),
        reason: denial.and_then(|denial| denial.reason.clone()),
    });
    let reports = outcome.reports().map(|report| AuditEntry::HookReport(report.into()));
    std::iter::once(event).chain(reports).collect()
}

pub(super) struct SingleReport<'a> {
    pub(super) hook: &'a str,
    pub(super) answer: ActionKind,
    pub(super) decision: DecisionKind,
    pub(super) reason: Option<String>,
    pub(super) suppress_output: bool,
}

impl SingleReport<'_> {
    pub(super) fn entries(&self, data: &EventData) -> Vec<AuditEntry> {
        let denies = self.decision == DecisionKind::Deny;
        let event = AuditEntry::Event(EventEntry {
            data: data.clone().into(),
            decision: self.decision,
            denied_by: denies.then(|| self.hook.to_owned()),
            reason: self.reason.clone().filter(|_| denies),
        });
        let report = AuditEntry::HookReport(HookReportEntry {
            hook: self.hook.to_owned(),
            answer: self.answer,
            took: Duration::ZERO,
            reason: self.reason.clone(),
            error: None,
            suppressed_output: self.suppress_output,
        });
        vec![event, report]
    }
}
