//! The terminal: what the person sees, and how the person answers.
//!
//! One [`Screen`] owns the terminal. Everything that is shown goes through it, so that the text of the model, messages
//! of hooks, the progress line and questions never garble each other. What a model, a tool or a hook says is shown
//! through [`StyledLine`] and [`visible`], which make visible what a terminal would hide or obey.

mod approve;
mod dialog;
mod display;
mod key_filter;
mod keys;
mod line;
mod prompt;
mod screen;
mod spinner;
mod trust;

pub use amplifier_core::text::{Reading, visible};
pub use approve::{HeadlessApprovals, TerminalApprovals};
pub use dialog::{Dialog, DialogAnswer};
pub use display::TerminalDisplay;
pub use line::StyledLine;
pub use screen::{OutputMode, Screen};
pub use spinner::Spinner;
pub use trust::{TerminalTrustPrompt, trust_dialog};
