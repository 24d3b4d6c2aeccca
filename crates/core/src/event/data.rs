//! The data of an event: JSON that is shared, not copied.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::checked_payload::CheckedPayload;
use super::timestamp::{Stamp, is_timestamp};
use super::{Digest, InvalidPayload, NestingError, Payload};

/// A JSON object.
pub type Map = serde_json::Map<String, Value>;

pub(crate) const TIMESTAMP: &str = "timestamp";
pub(crate) const SESSION_ID: &str = "session_id";

/// The data of an event: a JSON object that is cheap to clone and that is copied only when a shared one changes.
///
/// The fields that the registry adds (defaults, reserved fields, the timestamp) lie around the event's own data
/// as layers, so that adding them copies nothing and costs the same for 5 keys and for 100 KB.
///
/// ```
/// use amplifier_core::data;
///
/// let data = data! { "tool_name": "Bash", "tool_input": { "command": "ls" } };
/// assert_eq!(data["tool_name"], "Bash");
/// assert_eq!(data.pointer("/tool_input/command"), Some(&"ls".into()));
/// assert_eq!(data.text("no_such_field"), None);
/// ```
#[derive(Clone, Default)]
pub struct EventData {
    own: Arc<Map>,
    /// Fields that the session reserves; they win over all others.
    session: Option<Arc<Map>>,
    base: Option<Arc<BaseFields>>,
    /// `true` while the defaults of `base` are visible: a hook that replaces the data removes them.
    inherits: bool,
    stamp: Option<Stamp>,
    checked: CheckedPayload,
}

/// The layers that every event of one registry shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseFields {
    /// The event's own data wins over these.
    pub(crate) defaults: Map,
    /// These win over the event's own data, so that they cannot be forged.
    pub(crate) reserved: Map,
}

impl EventData {
    /// Creates data without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the field of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        if let Some(value) = self.reserved(key) {
            return Some(value);
        }
        if key == TIMESTAMP
            && let Some(stamp) = self.shown_stamp()
        {
            return Some(stamp.value());
        }
        self.own.get(key).or_else(|| self.defaults()?.get(key))
    }

    /// Returns the field of that name, if it is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns a nested field, by JSON Pointer (RFC 6901): `/tool_input/file_path`.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let path = pointer.strip_prefix('/')?;
        let (key, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
        let key = if key.contains('~') { Cow::Owned(key.replace("~1", "/").replace("~0", "~")) } else { key.into() };
        self.get(&key)?.pointer(rest)
    }

    /// Returns a nested text, by JSON Pointer: `/tool_input/file_path`.
    ///
    /// ```
    /// let data = amplifier_core::data! { "tool_input": { "file_path": "a.txt" } };
    /// assert_eq!(data.text_at("/tool_input/file_path"), Some("a.txt"));
    /// ```
    pub fn text_at(&self, pointer: &str) -> Option<&str> {
        self.pointer(pointer)?.as_str()
    }

    /// Returns a typed view of the data.
    ///
    /// ```
    /// use amplifier_core::{data, ToolPre};
    ///
    /// let call: ToolPre = data! { "tool_name": "Bash", "tool_input": {} }.view()?;
    /// assert_eq!(call.tool_name(), "Bash");
    /// # Ok::<(), amplifier_core::InvalidPayload>(())
    /// ```
    ///
    /// # Errors
    /// If a required field is missing or of the wrong type.
    pub fn view<P: Payload>(&self) -> Result<P, InvalidPayload> {
        if self.checked.is_for::<P>() {
            return P::view_checked(self.clone());
        }
        let view = P::view(self.clone())?;
        self.checked.set_for::<P>();
        Ok(view)
    }

    /// Returns the session of the event.
    pub fn session_id(&self) -> Option<&str> {
        self.text(SESSION_ID)
    }

    /// Returns the time of the event: UTC, RFC 3339. Present in all data that reaches a hook.
    pub fn timestamp(&self) -> Option<&str> {
        self.text(TIMESTAMP)
    }

    /// Sets a field. Copies the event's own data first if it is shared.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.apply(DataChange::Set(Cow::Owned(key.into()), value.into()));
    }

    /// Removes a field. Reserved fields stay.
    pub fn remove(&mut self, key: &str) {
        self.checked = CheckedPayload::default();
        if key == TIMESTAMP {
            self.stamp = None;
        }
        if self.defaults().is_some_and(|defaults| defaults.contains_key(key)) {
            self.absorb_defaults();
        }
        if self.own.contains_key(key) {
            Arc::make_mut(&mut self.own).remove(key);
        }
    }

    /// Returns every field once, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let session = self.session.iter().flat_map(|session| &**session);
        let base = self.base.iter().flat_map(|base| &base.reserved);
        let base = base.filter(|(key, _)| !self.session.as_ref().is_some_and(|session| session.contains_key(*key)));
        let defaults = self.defaults().into_iter().flatten().filter(|(key, _)| !self.own.contains_key(*key));
        let stamp = self.shown_stamp().map(|stamp| (TIMESTAMP, stamp.value()));
        let below = self.own.iter().chain(defaults).map(|(key, value)| (key.as_str(), value));
        let below = below.filter(move |(key, _)| stamp.is_none() || *key != TIMESTAMP);
        let reserved = session.chain(base).map(|(key, value)| (key.as_str(), value));
        reserved.chain(stamp.into_iter().chain(below).filter(|(key, _)| self.reserved(key).is_none()))
    }

    /// Converts the fields to a plain JSON object, without a copy if the data is not shared.
    pub fn into_map(self) -> Map {
        let Self { own, session, base, inherits, stamp, .. } = self;
        let mut map = Arc::unwrap_or_clone(own);
        if let Some(base) = base.as_ref().filter(|_| inherits) {
            merge_under(&mut map, &base.defaults);
        }
        if let Some(stamp) = stamp.filter(|stamp| !stamp.hidden) {
            map.insert(TIMESTAMP.into(), stamp.value().clone());
        }
        for reserved in base.iter().map(|base| &base.reserved).chain(session.as_deref()) {
            map.extend(reserved.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        map
    }

    /// Returns a digest of all fields but the timestamp: the same data has the same digest, in every process.
    ///
    /// # Errors
    /// If the data is nested deeper than JSON readers accept.
    pub fn digest(&self) -> Result<Digest, NestingError> {
        Digest::from_fields(self.iter().filter(|(key, _)| *key != TIMESTAMP))
    }

    /// Adds the registry's layers to the event's own data.
    #[inline]
    pub(crate) fn set_base(&mut self, base: Option<&Arc<BaseFields>>) {
        if self.base.is_some() || self.stamp.is_some() || self.session.is_some() {
            self.remove_layers(base);
        }
        self.base = base.cloned();
        self.inherits = true;
        self.checked = CheckedPayload::default();
    }

    /// Removes the layers of an earlier emission of the same registry; those of another registry become part of the data.
    #[cold]
    fn remove_layers(&mut self, base: Option<&Arc<BaseFields>>) {
        if self.base.as_ref().map(Arc::as_ptr) == base.map(Arc::as_ptr) {
            self.stamp = None;
            self.session = None;
        } else {
            *self = Self::from(std::mem::take(self).into_map());
        }
    }

    #[inline]
    pub(crate) fn reserve(&mut self, session: &Option<Arc<Map>>) {
        self.session.clone_from(session);
    }

    #[inline]
    fn reserved(&self, key: &str) -> Option<&Value> {
        let session = self.session.as_ref().and_then(|session| session.get(key));
        session.or_else(|| self.base.as_ref()?.reserved.get(key))
    }

    #[inline]
    pub(crate) fn stamp(&mut self, at: SystemTime) {
        self.stamp = Some(Stamp::new(at));
    }

    fn shown_stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref().filter(|stamp| !stamp.hidden)
    }

    /// A hook may replace the kernel's timestamp, but only by a valid one.
    fn hide_stamp(&mut self, hidden: bool) {
        if let Some(stamp) = &mut self.stamp {
            stamp.hidden = hidden;
        }
    }

    fn defaults(&self) -> Option<&Map> {
        self.base.as_ref().filter(|_| self.inherits).map(|base| &base.defaults)
    }

    fn absorb_defaults(&mut self) {
        let Some(base) = self.base.clone() else { return };
        merge_under(Arc::make_mut(&mut self.own), &base.defaults);
        self.inherits = false;
    }

    fn replace(&mut self, map: Map) {
        self.hide_stamp(map.get(TIMESTAMP).and_then(Value::as_str).is_some_and(is_timestamp));
        match Arc::get_mut(&mut self.own) {
            Some(own) => *own = map,
            None => self.own = Arc::new(map),
        }
        self.inherits = false;
    }
}

fn merge_under(map: &mut Map, defaults: &Map) {
    for (key, value) in defaults {
        map.entry(key.as_str()).or_insert_with(|| value.clone());
    }
}

/// The data that an emission passes from hook to hook.
///
/// [`Emission`](crate::Emission) does not read the data; it only applies the changes of hooks. Rust uses JSON ([`EventData`]); another
/// language can use its native objects.
pub trait Data {
    /// A whole object, as in the field `data` of a flat result.
    type Object;

    /// Applies a hook's change. Reserved fields stay.
    fn apply(&mut self, change: DataChange<Self::Object>);

    /// Returns the data with the change applied.
    fn changed(&self, change: DataChange<Self::Object>) -> Self::Object;

    /// Returns the data as one whole object.
    fn object(&self) -> Self::Object;

    /// Returns the digest of the data, equal to [`EventData::digest`] of the same data in JSON; `None` if it has none. It is called only for
    /// approval requests.
    fn digest(&self) -> Option<Digest>;
}

impl Data for EventData {
    type Object = Map;

    fn apply(&mut self, change: DataChange) {
        self.checked = CheckedPayload::default();
        match change {
            DataChange::Replace(map) => self.replace(map),
            DataChange::Set(field, value) => {
                if field == TIMESTAMP {
                    self.hide_stamp(value.as_str().is_some_and(is_timestamp));
                }
                let own = Arc::make_mut(&mut self.own);
                match own.get_mut(&*field) {
                    Some(present) => *present = value,
                    None => drop(own.insert(field.into_owned(), value)),
                }
            }
        }
    }

    fn changed(&self, change: DataChange) -> Map {
        match change {
            DataChange::Replace(map) => map,
            set => {
                let mut data = self.clone();
                data.apply(set);
                data.into_map()
            }
        }
    }

    fn object(&self) -> Map {
        self.clone().into_map()
    }

    fn digest(&self) -> Option<Digest> {
        Self::digest(self).ok()
    }
}

/// A hook's change of the data of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum DataChange<O = Map> {
    /// Replaces the whole data, as the flat form does.
    Replace(O),
    /// Sets one field in place.
    Set(Cow<'static, str>, Value),
}

impl From<Map> for DataChange {
    fn from(map: Map) -> Self {
        Self::Replace(map)
    }
}

impl From<EventData> for DataChange {
    fn from(data: EventData) -> Self {
        Self::Replace(data.into_map())
    }
}

impl From<Map> for EventData {
    fn from(own: Map) -> Self {
        Self {
            own: Arc::new(own),
            session: None,
            base: None,
            inherits: false,
            stamp: None,
            checked: CheckedPayload::default(),
        }
    }
}

/// Converts an object; returns any other value as the error.
impl TryFrom<Value> for EventData {
    type Error = Value;

    fn try_from(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(map) => Ok(map.into()),
            other => Err(other),
        }
    }
}

impl From<EventData> for Map {
    fn from(data: EventData) -> Self {
        data.into_map()
    }
}

impl From<EventData> for Value {
    fn from(data: EventData) -> Self {
        Self::Object(data.into_map())
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for EventData {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Self {
        Self::from(fields.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map>())
    }
}

impl<K: Into<String>, V: Into<Value>, const N: usize> From<[(K, V); N]> for EventData {
    fn from(fields: [(K, V); N]) -> Self {
        fields.into_iter().collect()
    }
}

impl Index<&str> for EventData {
    type Output = Value;

    /// Returns the field of that name; `null` if it is missing, as with [`serde_json::Value`].
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

impl PartialEq for EventData {
    fn eq(&self, other: &Self) -> bool {
        self.iter().count() == other.iter().count() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl fmt::Debug for EventData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for EventData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for EventData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

/// Builds [`EventData`](crate::EventData) from the inside of a JSON object.
///
/// ```
/// let data = amplifier_core::data! { "tool_name": "Write", "tool_input": { "file_path": "a.txt" } };
/// assert_eq!(data["tool_input"]["file_path"], "a.txt");
/// ```
#[macro_export]
macro_rules! data {
    ($($fields:tt)*) => {
        match $crate::__private::json!({ $($fields)* }) {
            $crate::__private::Value::Object(map) => $crate::EventData::from(map),
            _ => $crate::EventData::new(),
        }
    };
}
