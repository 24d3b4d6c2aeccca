#![doc = include_str!("../README.md")]

mod approval;
mod audit;
mod coordinator;
pub mod driving;
mod event;
mod guard;
mod ports;
mod rate;
mod registry;
mod result;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod wildcard;
mod words;

pub use approval::*;
pub use audit::*;
pub use coordinator::*;
#[doc(no_inline)]
pub use event::events::*;
pub use event::*;
pub use ports::PortError;
pub use ports::approval::{
    ApprovalClosed, ApprovalInbox, ApprovalSystem, ChannelApprovals, PendingApproval, approval_channel,
};
pub use ports::audit::{AuditLog, MemoryAudit, Receipt};
pub use ports::clock::{Clock, SystemClock};
pub use ports::context::{ContextManager, InjectedMessage};
pub use ports::conversation::{APPENDED, Conversation, Message, Speaker, ToolCall};
pub use ports::display::{Display, DisplayMessage, LogDisplay};
pub use ports::preview::{
    ActionPreview, COMPARED_WITH, ComparedWith, PreviewField, PreviewRow, PreviewRowKind, PreviewSource,
};
pub use ports::rules::{ApprovalRuleSource, TOOL_DEFINITION, ToolDefinition};
pub use rate::{Rate, TokenBucket};
pub use registry::*;
pub use result::*;
pub use words::UnknownWord;

#[doc(hidden)]
pub mod __private {
    pub use serde_json::{Value, json};
}

/// The README's code compiles and runs too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The guide's code does, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/start/embed-in-rust.md")]
struct Guide;
