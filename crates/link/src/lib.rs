#![doc = include_str!("../README.md")]

mod approval;
mod client;
mod machine_message;
mod session_message;
mod transport;
mod truncate;

pub use approval::{
    AnswerScope, ApprovalAsker, ApprovalId, DecidedApproval, InvalidApprovalId, OpenApproval, invalid_option,
    is_valid_id,
};
pub use client::{Command, LinkClient, LinkClientOptions, LinkHandle, RecordChange};
pub use machine_message::{
    DryRun, DryRunReport, MachineCall, MachineMessage, MachineReply, MachineRequest, RuleList, UnreadableFile,
    serve_machine,
};
pub use session_message::{
    AnswerStatus, ReloadResult, ReloadStatus, ServerMessage, SessionHello, SessionMessage, VERSION,
};
pub use transport::{LineReader, MAX_LINE_BYTES, PipeConnector, SOCKET, is_open, write};
pub use truncate::truncate_request;
