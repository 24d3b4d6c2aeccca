//! Event data as a Python dict.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amplifier_core::driving::{is_timestamp, rfc3339};
use amplifier_core::{Data, DataChange, Digest, EventData};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::encode;

/// The dict that is passed from hook to hook. Hooks get copies, and the original leaves the emission only at its end.
pub(crate) struct DictData {
    pub(crate) current: Py<PyDict>,
    reserved: Vec<Py<PyDict>>,
    stamp: Option<Py<PyString>>,
}

/// Fields that a registry adds to the data of every event.
#[derive(Default)]
pub(crate) struct Base {
    /// Below the event's own data.
    pub(crate) defaults: Option<Py<PyDict>>,
    /// Above the event's own data, so that they cannot be forged.
    pub(crate) reserved: Option<Py<PyDict>>,
}

impl DictData {
    /// Adds the fields of the registry and the session to the data.
    pub(crate) fn new<'py>(
        own: &Bound<'py, PyDict>,
        base: Option<&Base>,
        session: Option<&Py<PyDict>>,
        stamped: bool,
    ) -> PyResult<Self> {
        let py = own.py();
        let current = match base.and_then(|base| base.defaults.as_ref()) {
            None => own.copy()?,
            Some(defaults) => {
                let current = defaults.bind(py).copy()?;
                current.update(own.as_mapping())?;
                current
            }
        };
        let stamp = stamped.then(|| now(py));
        if let Some(stamp) = &stamp {
            current.set_item(intern!(py, "timestamp"), stamp)?;
        }
        let reserved = base.and_then(|base| base.reserved.as_ref()).into_iter().chain(session);
        let reserved: Vec<_> = reserved.map(|fields| fields.clone_ref(py)).collect();
        for fields in &reserved {
            current.update(fields.bind(py).as_mapping())?;
        }
        Ok(Self { current: current.unbind(), reserved, stamp: stamp.map(Bound::unbind) })
    }

    /// Restores the fields that a hook cannot remove.
    fn keep(&self, py: Python<'_>, data: &Bound<'_, PyDict>) -> PyResult<()> {
        if let Some(stamp) = &self.stamp {
            let own = data.get_item(intern!(py, "timestamp"))?;
            let is_one = |text: &Bound<'_, PyAny>| text.extract::<&str>().is_ok_and(is_time);
            if !own.is_some_and(|own| is_one(&own)) {
                data.set_item(intern!(py, "timestamp"), stamp)?;
            }
        }
        self.reserved.iter().try_for_each(|fields| data.update(fields.bind(py).as_mapping()))
    }

    fn changed_by(&self, py: Python<'_>, change: DataChange<Py<PyDict>>) -> PyResult<Py<PyDict>> {
        let data = match change {
            DataChange::Replace(data) => data.into_bound(py),
            DataChange::Set(field, value) => {
                let data = self.current.bind(py).copy()?;
                data.set_item(field.as_ref(), encode::to_python(py, &value)?)?;
                data
            }
        };
        Ok(data.unbind())
    }
}

impl Data for DictData {
    type Object = Py<PyDict>;

    fn apply(&mut self, change: DataChange<Py<PyDict>>) {
        Python::attach(|py| {
            let changed = self.changed_by(py, change);
            // Fails only without memory; the old data is then unchanged.
            if let Ok(changed) = changed
                && self.keep(py, changed.bind(py)).is_ok()
            {
                self.current = changed;
            }
        });
    }

    fn changed(&self, change: DataChange<Py<PyDict>>) -> Py<PyDict> {
        Python::attach(|py| self.changed_by(py, change).unwrap_or_else(|_| self.current.clone_ref(py)))
    }

    fn object(&self) -> Py<PyDict> {
        Python::attach(|py| self.current.clone_ref(py))
    }

    fn digest(&self) -> Option<Digest> {
        // The same text that the kernel gets when the outcome is routed.
        let map = Python::attach(|py| encode::to_cut_map(self.current.bind(py)));
        EventData::from(map.ok()?).digest().ok()
    }
}

/// The offset of times in Python. `datetime.fromisoformat` reads `Z` only from Python 3.11 on.
const UTC: &str = "+00:00";

/// Returns `true` if the text is a timestamp that may replace the kernel's: UTC, RFC 3339.
fn is_time(text: &str) -> bool {
    is_timestamp(text) || text.strip_suffix(UTC).is_some_and(|time| is_timestamp(&format!("{time}Z")))
}

/// Writes the kernel's timestamp in a dict as Python reads it.
pub(crate) fn read_timestamp(data: &Bound<'_, PyDict>) -> PyResult<()> {
    let field = intern!(data.py(), "timestamp");
    let Some(stamp) = data.get_item(field)? else { return Ok(()) };
    match stamp.extract::<&str>().ok().and_then(|text| text.strip_suffix('Z')) {
        Some(time) => data.set_item(field, format!("{time}{UTC}")),
        None => Ok(()),
    }
}

/// The timestamp of an event. Reuses the text of the current second, because formatting all of it would cost more than a hook.
fn now(py: Python<'_>) -> Bound<'_, PyString> {
    thread_local! {
        static LAST: RefCell<(u64, Vec<u8>)> = const { RefCell::new((0, Vec::new())) };
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() || text.is_empty() {
            *second = since.as_secs();
            let time = rfc3339(UNIX_EPOCH + Duration::from_secs(*second));
            *text = format!("{}{UTC}", time.trim_end_matches('Z')).into_bytes();
        }
        let mut rest = since.subsec_micros();
        // `…:07.000000+00:00`
        for digit in text.iter_mut().rev().skip(UTC.len()).take(6) {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        PyString::new(py, std::str::from_utf8(text).unwrap_or_default())
    })
}
