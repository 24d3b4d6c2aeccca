//! Approvals: requests, answers, decisions and rules given in advance.

mod answer;
mod decision;
mod request;
mod rule;

pub use self::answer::{Actor, ApprovalAnswer, ApprovalError};
pub use self::decision::{ApprovalDecision, DecisionBasis};
pub(crate) use self::request::{ApprovalKey, LateAnswers};
pub use self::request::{ApprovalRequest, OpenRequest};
pub use self::rule::{ApprovalRule, ApprovalRules, InvalidRule, InvalidRules, RuleScope};
