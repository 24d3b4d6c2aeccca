//! The limits of a session.

use amplifier_agent::SessionOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::coordinator::invalid;
use crate::encode;
use crate::registry::duration;

fn option<'py, T: for<'a> FromPyObject<'a, 'py>>(name: &str, value: &Bound<'py, PyAny>, must_be: &str) -> PyResult<T> {
    match value.extract() {
        Ok(value) => Ok(value),
        Err(_) => Err(invalid(&format!("the option `{name}` must be {must_be}; found `{}`", value.repr()?))),
    }
}

pub(crate) fn read(given: &Bound<'_, PyDict>) -> PyResult<SessionOptions> {
    const WHOLE: &str = "a whole number from 0 on";
    const WHOLE_OR_NONE: &str = "a whole number from 0 on, or `None` for no limit";
    const SECONDS: &str = "a number of seconds";
    const SHARE: &str = "a number, the share of what the model can read";
    let mut options = SessionOptions::default();
    for (key, value) in given {
        match key.extract::<String>()?.as_str() {
            "steps" => options.steps = option("steps", &value, WHOLE)?,
            "tokens" => options.tokens = option("tokens", &value, WHOLE_OR_NONE)?,
            "retries" => options.retries = option("retries", &value, WHOLE)?,
            "retry_delay" => options.retry_delay = duration("retry_delay", option("retry_delay", &value, SECONDS)?)?,
            "call_timeout" => {
                options.call_timeout = duration("call_timeout", option("call_timeout", &value, SECONDS)?)?
            }
            "depth" => options.depth = option("depth", &value, WHOLE)?,
            "compact_above" => options.compact_above = option("compact_above", &value, SHARE)?,
            "compact_to" => options.compact_to = option("compact_to", &value, SHARE)?,
            "parameters" => {
                let given = value.cast::<PyDict>().map_err(|_| invalid(&"`parameters` must be a dict"))?;
                options.parameters = encode::to_kept_map(given)?;
            }
            other => {
                const KNOWN: &str =
                    "steps, tokens, retries, retry_delay, call_timeout, depth, compact_above, compact_to, parameters";
                return Err(invalid(&format!("unknown option `{other}`; expected one of {KNOWN}")));
            }
        }
    }
    Ok(options)
}
