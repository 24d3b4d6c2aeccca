#![doc = include_str!("../README.md")]

mod cancel;
mod compact;
mod context;
mod observer;
pub mod provider;
mod session;
mod sub_agent;
mod tokens;
pub mod tool;
mod turn;

pub use cancel::{Cancel, CancelLevel};
pub use observer::{NullObserver, SessionObserver};
pub use session::{
    Orchestrator, Session, SessionBuilder, SessionError, SessionExport, SessionOptions, Store, StoreError,
    StoredSession,
};
#[cfg(feature = "tokenizer")]
pub use tokens::Tokenizer;
pub use tokens::count_messages;
pub use turn::{Denial, MAX_STORED_DEPTH, ToolResult, TurnEnd};
