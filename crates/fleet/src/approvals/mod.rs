//! Approval requests of all machines.
//!
//! A machine stores the state of each request in the stream `ASK`, and a console stores a signed answer in the stream `ANSWER`, which keeps the first one.
//! The kernel of the machine decides, within its own time limit.

mod answer_reader;
mod asked_request;
mod asker;
mod console;
mod console_state;
mod request_feed;
mod request_state;
mod server_bridge;
mod signed_answer;

pub use asker::{FleetApprovals, FleetApprovalsOptions};
pub use console::{Console, ConsoleEvent};
pub use console_state::AnswerError;
pub use server_bridge::ServerBridge;
pub use signed_answer::{ConsoleKeys, InvalidAnswer, SignedAnswer};
