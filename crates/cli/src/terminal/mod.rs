//! The terminal: what the person sees, and how the person answers.
//!
//! One [`Screen`] owns the terminal. Everything that is shown goes through it, so that the text of the model, messages
//! of hooks, the progress line and questions never garble each other. What a model, a tool or a hook says is shown
//! through [`Line`] and [`visible`], which make visible what a terminal would hide or obey.

mod approve;
mod decision;
mod display;
mod key_filter;
mod keys;
mod line;
mod question;
mod screen;
mod trust;
mod working;

pub use amplifier_core::text::{Reading, visible};
pub use approve::{HeadlessApprovals, TerminalApprovals};
pub use decision::{Answer, Decision};
pub use display::TerminalDisplay;
pub use line::Line;
pub use screen::{Look, Screen};
pub use trust::{TrustDialog, decision};
pub use working::Working;
