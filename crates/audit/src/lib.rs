//! The audit log: tamper-evident, durable, verifiable by anyone.
//!
//! [`Log`] implements the kernel's audit port with a folder of text files. [`Verifier`] checks such a folder. `docs/reference/audit-format.md` describes
//! the format.

mod anchor;
mod appender;
mod assemble;
mod bodies;
mod body;
mod error;
mod filter;
mod hash;
mod keys;
mod log;
mod merkle;
mod note;
mod operations;
mod options;
mod phrases;
pub mod prometheus;
mod proof;
mod reader;
mod record;
mod redact;
mod report;
mod request;
mod retention;
mod sessions;
mod statistics;
mod storage;
mod tail;
mod verify;

pub use anchor::{Anchor, AnchorError, AnchorState, CommandAnchor, FileAnchor, HttpAnchor};
pub use assemble::{AssembledEntry, EmissionAssembler, UnassignedRecord};
pub use bodies::Bodies;
pub use body::Body;
pub use error::AuditError;
pub use filter::{LineFilter, RecordFilter};
pub use hash::Hash;
pub use keys::{KeyError, PublicKey, SigningKey};
pub use log::{Log, LogStatus};
pub use merkle::{Frontier, Tree, is_consistent, is_included};
pub use note::{Checkpoint, Note, NoteError};
pub use operations::Operations;
pub use options::{Durability, LogOptions, binding_file};
pub use proof::{Proof, ProofError};
pub use reader::{LogLine, LogLines, LogPart, LogReader, read_records, read_tree};
pub use record::{Kind, Record, RecordError};
pub use redact::{InvalidRule, Redaction, has_marker};
pub use report::{Finding, Integrity, Problem, Report, Trust, UnresolvedOperation};
pub use statistics::{ApprovalDecisionCounts, DecisionCounts, EventDecisionCounts, RecordedDecision, Statistics};
pub use storage::{FileState, Folder, Lock, RecordSource, Storage};
pub use tail::{segment_file, segment_number};
pub use verify::{Advance, Progress, Verification, Verifier};
