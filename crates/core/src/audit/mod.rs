//! Entries of an audit log.

mod entry;

pub use entry::{
    ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry, AuditRecord, EventEntry, FailureEntry, HookReportEntry,
    InjectionEntry, IntentEntry, LateAnswerEntry, MessageEntry, OutcomeEntry, RecordedData,
};
