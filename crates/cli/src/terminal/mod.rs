//! Output to the terminal and answers from it.
//!
//! One [`Screen`] owns the terminal. All output goes through it, so that model text, hook messages, the progress line and
//! prompts never garble each other. Text from models, tools and hooks passes through [`StyledLine`] and [`visible`], which
//! escape control and hidden characters.

mod approve;
pub(crate) mod decision;
mod dialog;
mod display;
mod key_filter;
mod keys;
mod line;
mod markdown;
mod open_prompt;
mod prompt;
mod prompt_task;
mod reason;
mod request_list;
mod rule_menu;
mod screen;
mod spinner;
mod table;
mod trust;

pub use amplifier_core::text::{EscapeMode, visible};
pub use approve::{HeadlessApprovals, TerminalApprovals};
pub use dialog::{Dialog, DialogAnswer};
pub use display::TerminalDisplay;
pub use line::StyledLine;
pub(crate) use open_prompt::{EndReason, OpenPrompt, PromptEnd, PromptTerminal};
pub(crate) use prompt::preview_rows;
pub(crate) use prompt_task::denial;
pub(crate) use request_list::ListedRequest;
pub use screen::{OutputMode, Screen};
pub use spinner::Spinner;
pub use trust::{TerminalTrustPrompt, trust_dialog};
