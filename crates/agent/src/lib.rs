#![doc = include_str!("../README.md")]

mod cancel;
mod compact;
mod context;
pub mod provider;
mod session;
mod task;
mod tokens;
pub mod tool;
mod turn;
mod watch;

pub use cancel::{Cancel, CancelLevel};
pub use session::{
    Exported, Orchestrator, Session, SessionBuilder, SessionError, SessionOptions, Store, StoreError, StoredSession,
};
pub use tokens::{Tokenizer, count_messages};
pub use turn::{DEEPEST_KEPT, Refusal, ToolUse, TurnEnd};
pub use watch::{Silent, Watch};
