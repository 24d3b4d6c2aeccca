//! Events in an agent's lifecycle: names, data, and typed views of the data.

mod catalog;
mod checked_payload;
mod data;
mod digest;
pub mod events;
mod kind;
mod name;
mod pattern;
mod payload;
pub(crate) mod timestamp;

pub use catalog::catalog;
pub(crate) use data::{BaseFields, SESSION_ID};
pub use data::{Data, DataChange, EventData, Map};
pub use digest::{Digest, InvalidDigest, NestingError};
pub(crate) use events::CATALOG;
pub use name::{EventKey, EventName, EventType, InvalidEventName};
pub use pattern::EventPattern;
pub use payload::{EventEffects, EventSpec, FieldSpec, InvalidPayload, Payload};
pub(crate) use timestamp::rfc3339;

#[cfg(doc)]
use self::events::{TOOL_PRE, ToolPre};
use std::ops::Deref;

/// An event as a closure hook receives it: name and data.
///
/// With a typed constant such as [`TOOL_PRE`] the data is a typed view ([`ToolPre`]); with a plain name it is
/// [`EventData`]. The event dereferences to its data: `event.tool_name()`, `event.get("tool_name")`.
///
/// The data is shared, not copied: storing an `Event` is cheap.
#[derive(Clone, Debug)]
pub struct Event<P = EventData> {
    /// The name that the hook was registered for; for a pattern, the name that matched.
    pub name: EventName,
    /// The data after the changes of earlier hooks.
    pub data: P,
}

impl<P> Deref for Event<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.data
    }
}
