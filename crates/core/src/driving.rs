//! For drivers of emissions in another language: what the kernel's own driver does around the hooks that it calls.
//!
//! An [`Emission`](crate::Emission) says which hook is next and takes its answer; whoever drives it calls the hooks. The rules for that
//! are here: a hook that panics, or is called from inside too many others, has failed ([`contain`]), and the time that it waits for
//! a person is not counted ([`PersonWaits`]; where it is the driver who knows that a person is asked, [`PersonWait`]). Whose
//! events the registry's own are, [`RegistrySessions`] says.
//!
//! [`Channels`] are those of a coordinator, for values that are not JSON.

pub use crate::coordinator::channels::{Channels, ContributionCollector, ContributorResult};
pub use crate::event::stamp::{is_timestamp, rfc3339};
pub use crate::guard::contain;
pub use crate::registry::person_wait::{PersonWait, PersonWaits};
pub use crate::registry::sessions::RegistrySessions;
