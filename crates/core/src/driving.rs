//! Parts of the kernel's own driver, for drivers of emissions in another language.
//!
//! An [`Emission`](crate::Emission) returns the next hook and takes its answer; the driver calls the hook. A hook that panics or is
//! nested too deeply has failed ([`contain`]). Time spent waiting for a user does not count for the hook's time limit
//! ([`PersonWaits`]; [`PersonWait`] if the driver itself knows of the wait). [`RegistrySessions`] assigns the registry's own events.
//!
//! [`Channels`] are contribution channels for values that are not JSON.

pub use crate::contain::contain;
pub use crate::coordinator::channels::{Channels, ContributionCollector, ContributorResult};
pub use crate::event::timestamp::{is_timestamp, rfc3339};
pub use crate::registry::hook_time_limit::{PersonWait, PersonWaits};
pub use crate::registry::sessions::RegistrySessions;
