//! Approvals: requests, answers, decisions and rules given in advance.

mod answer;
mod decision;
mod offer;
mod request;
mod rule;
mod rule_file;

pub use self::answer::{Actor, ApprovalAnswer, ApprovalError};
pub use self::decision::{ApprovalDecision, DecisionBasis};
pub(crate) use self::offer::OperationParts;
pub use self::offer::{ChosenRule, RuleOffer};
pub(crate) use self::request::{ApprovalKey, RequestLog, late_answer};
pub use self::request::{ApprovalRequest, OpenRequest};
pub use self::rule::{ApprovalRule, InvalidRule, RuleScope};
pub use self::rule_file::{ApprovalRules, InvalidRules};
