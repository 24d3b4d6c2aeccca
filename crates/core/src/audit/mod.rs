//! Entries of an audit log, and reports of emissions.

mod entry;
mod report;

pub use entry::{
    ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry, AuditRecord, EventEntry, FailureEntry, HookReportEntry,
    InjectionEntry, IntentEntry, LateAnswerEntry, MessageEntry, OutcomeEntry, RecordedData,
};
pub use report::{
    ApprovalReport, DataStatus, EmissionReport, HookReport, InjectionReport, IntentReport, MessageReport, OutputReport,
    RecordedEmission,
};
