//! The link between a server and the sessions and machines that it sees.
//!
//! A session sends its approval requests to a server with a [`LinkClient`], which is an approval system like a terminal. A machine starts sessions and
//! keeps approval rules for the server: [`serve_machine`]. Both reach the server by a socket in the user's own folder, or by a pipe if they run in the
//! server's process.

mod approval;
mod client;
mod limits;
mod machine;
mod message;
mod transport;

pub use approval::{
    AnswerScope, ApprovalId, DecidedApproval, InvalidApprovalId, OpenApproval, invalid_option, is_valid_id,
};
pub use client::{Command, LinkClient, LinkClientOptions, LinkHandle, RecordChange};
pub use machine::{
    DryRun, DryRunReport, MachineCall, MachineMessage, MachineReply, MachineRequest, RuleList, UnreadableFile,
    serve_machine,
};
pub use message::{AnswerStatus, ReloadResult, ReloadStatus, ServerMessage, SessionHello, SessionMessage, VERSION};
pub use transport::{Lines, MAX_LINE_BYTES, PipeConnector, SOCKET, is_open, write};
