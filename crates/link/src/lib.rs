//! The link between a server and the sessions and machines that it sees.
//!
//! A session sends approval requests to a server with a [`LinkClient`], an approval system. A machine starts sessions and stores approval rules for
//! the server: [`serve_machine`]. Both connect by a socket in the user's folder, or by a pipe within the process of the server.

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
pub use transport::{LineReader, MAX_LINE_BYTES, PipeConnector, SOCKET, is_open, write};
