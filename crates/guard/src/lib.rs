#![doc = include_str!("../README.md")]

mod adapter;
mod answer;
mod canary;
mod client;
pub mod daemon;
mod event;
mod explain;
mod patch;
pub mod settings;
pub mod tools;

pub use adapter::{PayloadError, answer, parse};
pub use answer::{Change, GuardAnswer, HookOutput, Loss, Reply};
pub use canary::{CANARY_HOOK, CANARY_SESSION, CANARY_TOOL, canary_payload};
pub use client::Client;
pub use event::{ClientEvent, ClientTool, Dialect, EventKind, ToolOperation};
pub use explain::{Expression, explain};
pub use patch::{PatchError, operations as patch_operations};
