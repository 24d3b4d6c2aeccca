//! Hook results.

mod action;
mod approval;
mod convert;
mod error;
mod flat;
mod injection;

pub use action::{Action, ActionKind, DecisionKind, HookResult, Level, UserMessage};
pub use approval::{Approval, ApprovalOption, DefaultDecision, Effect};
pub use convert::IntoHookResult;
pub use error::HookError;
pub use flat::{FlatAction, FlatOption, FlatResult};
pub use injection::{Injection, InjectionStatus, Placement, Role};
