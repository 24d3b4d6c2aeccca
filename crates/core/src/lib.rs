#![doc = include_str!("../README.md")]

mod approval;
mod audit;
mod contain;
mod coordinator;
mod cost;
pub mod driving;
mod event;
mod ports;
mod rate;
mod registry;
mod result;
pub mod session_id;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod wildcard;
mod words;

pub use approval::{
    Actor, ApprovalAnswer, ApprovalDecision, ApprovalError, ApprovalRequest, ApprovalRule, ApprovalRules, ChosenRule,
    DecisionBasis, InvalidRule, InvalidRules, OpenRequest, RuleOffer, RuleScope,
};
pub use audit::{
    ApprovalDecisionEntry, ApprovalReport, ApprovalRequestEntry, AuditEntry, AuditRecord, DataStatus, EmissionReport,
    EventEntry, FailureEntry, HookReport, HookReportEntry, InjectionEntry, InjectionReport, IntentEntry, IntentReport,
    LateAnswerEntry, MessageEntry, MessageReport, OutcomeEntry, OutputReport, RecordedData, RecordedEmission,
};
pub use coordinator::{
    Contribution, Contributions, ContributorOutput, ContributorRegistration, Coordinator, CoordinatorBuilder,
    EstimatedTokens, FailedContribution, InjectionTooLarge, IntoContribution, OverBudget, SessionConfig, TokenCounter,
    Verdict,
};
pub use cost::{CallCost, InvalidCallCost};
// A glob, because a list would repeat every event of `events.rs`.
#[doc(no_inline)]
pub use event::events::*;
pub use event::{
    Data, DataChange, Digest, Event, EventData, EventEffects, EventKey, EventName, EventPattern, EventSpec, EventType,
    FieldSpec, InvalidDigest, InvalidEventName, InvalidPayload, Map, NestingError, Payload, catalog, events,
};
pub use ports::PortError;
pub use ports::approval::{
    ApprovalClosed, ApprovalInbox, ApprovalSystem, ChannelApprovals, PendingApproval, approval_channel,
};
pub use ports::approval_rules::{ApprovalRuleSource, TOOL_DEFINITION, ToolDefinition};
pub use ports::audit::{AuditLog, MemoryAudit, Receipt};
pub use ports::clock::{Clock, SystemClock};
pub use ports::context::{ContextManager, InjectedMessage};
pub use ports::conversation::{APPENDED, Conversation, Message, Speaker, ToolCall};
pub use ports::display::{AddedContext, Display, DisplayMessage, LogDisplay, ReportedDecision};
pub use ports::operations::{OperationPart, OperationSource, OperationWidth};
pub use ports::preview::{
    ActionPreview, COMPARED_WITH, ComparedWith, PreviewField, PreviewRow, PreviewRowKind, PreviewSource,
};
pub use rate::{Rate, TokenBucket};
pub use registry::{
    AsyncHandler, Attributed, Decision, Denial, Emission, HandlerOutput, Hook, HookApproval, HookBuilder, HookInfo,
    HookRegistry, HookRegistryBuilder, HookReportRef, HookRole, ListedHook, Listeners, OnError, Outcome, Registration,
    ScopedRegistration, SyncHandler,
};
pub use result::{
    Action, ActionKind, Approval, ApprovalOption, DecisionKind, DefaultDecision, Effect, FlatAction, FlatOption,
    FlatResult, HookError, HookResult, Injection, InjectionStatus, IntoHookResult, Level, Placement, Role, UserMessage,
};
pub use words::UnknownWord;

#[doc(hidden)]
pub mod __private {
    pub use serde_json::{Value, json};
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The guide's code does, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/start/embed-in-rust.md")]
struct Guide;
