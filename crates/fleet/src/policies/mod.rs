//! Policies: bundles of an organisation for groups of machines, signed and addressed by content.

mod archive;
mod cache;
mod error;
mod follower;
mod pointer;
mod publisher;
mod status;

pub use archive::BundleArchive;
pub use cache::{ActivePolicy, PolicyCache};
pub use error::PolicyError;
pub use follower::{PolicyChange, PolicyFollower};
pub use pointer::PolicyPointer;
pub use publisher::{PolicyPublisher, history};
pub use status::{MachineStatus, machine_statuses};
