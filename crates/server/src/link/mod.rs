//! How sessions reach the server: a socket in the person's own folder, or a pipe within the server.
//!
//! A session puts its questions to the server with a [`Participant`], which is an approval system like a terminal. The server lets
//! sessions in by a [`Door`]. What they say to each other is in [`protocol`].

mod door;
mod fit;
mod participant;
pub mod protocol;

pub use door::{Door, DoorError, SOCKET, is_open, join};
pub use participant::{Link, Participant, ParticipantOptions};
