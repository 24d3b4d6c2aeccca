//! The link between sessions and a server.
//!
//! A session puts its approval requests to a server with a [`Participant`], which is an approval system like a terminal. It reaches the server
//! by a socket in the user's own folder, or by a pipe if it runs in the server's process.

mod approval;
mod book;
mod client;
mod limits;
mod message;
mod transport;

pub use approval::{Approval, Choice, Decided, question_id};
pub use book::{Kept, RuleBook, Unreadable};
pub use client::{Command, Link, Participant, ParticipantOptions};
pub use message::{Hello, Reception, Reload, Reloaded, ToServer, ToSession, VERSION, is_id};
pub use transport::{LONGEST, Lines, PipeConnector, SOCKET, is_open, write};
