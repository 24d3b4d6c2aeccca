//! How a hook is registered.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::EventName;
use crate::text::{as_seconds, as_text};
use crate::words::words;

words! {
    /// What a hook's answer can do.
    #[derive(Default, PartialOrd, Ord, JsonSchema)]
    pub enum HookRole("role") {
        /// Its answer counts, whatever it is.
        #[default]
        Gate = "gate",
        /// It sees every emission, also a denied one, after the gates. Its messages are shown, but its answer changes nothing.
        Observer = "observer",
    }
}

words! {
    /// What happens to the operation when a hook fails.
    #[derive(Default, JsonSchema)]
    pub enum OnError("on_error") {
        /// It goes on; the failure is logged, recorded and shown to the user.
        #[default]
        Continue = "continue",
        /// It is denied, with the hook and the error named. For guards.
        Deny = "deny",
        /// It is denied at the events that gate an operation, such as `tool:pre`, and goes on at all others. The default for hooks of a bundle.
        DenyGating = "deny_gating",
    }
}

impl OnError {
    /// The setting at one event: `Continue` or `Deny`.
    #[must_use]
    pub fn at(self, event: &EventName) -> Self {
        match self {
            Self::DenyGating if event.is_gating() => Self::Deny,
            Self::DenyGating => Self::Continue,
            other => other,
        }
    }
}

/// What is known about a registered hook.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookInfo {
    /// Its name, for people.
    #[serde(serialize_with = "as_text")]
    pub name: Arc<str>,
    /// The event or pattern it was registered for.
    #[serde(serialize_with = "as_text")]
    pub event: Arc<str>,
    /// Lower runs earlier.
    pub priority: i64,
    /// What its answer can do.
    pub role: HookRole,
    /// What happens when it fails.
    pub on_error: OnError,
    /// How long one call may take. Waiting for a person is not counted.
    #[serde(rename = "timeout_s", serialize_with = "as_seconds")]
    pub timeout: Duration,
}

impl HookInfo {
    /// How long one call of a hook may take unless it says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
}

/// The name of a hook that was given none: that of its function or type.
pub(super) fn name_of<T>() -> String {
    short_name(std::any::type_name::<T>())
}

fn short_name(path: &str) -> String {
    let function = path.trim_end_matches("::{{closure}}");
    if function.len() < path.len() {
        return format!("{}::closure", short_name(function));
    }
    let (path, arguments) = match path.strip_suffix('>').and_then(|path| path.split_once('<')) {
        // `<Type as Trait>` stands before a method; anything else is a generic type.
        Some((generic, arguments)) if !generic.is_empty() => (generic, Some(arguments)),
        _ => (path, None),
    };
    let name = path.rsplit("::").next().unwrap_or(path);
    match arguments {
        Some(inner) if matches!(name, "Arc" | "Box") => short_name(inner),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn hooks_are_named_after_their_function_or_type() {
        for (path, name) in [
            ("app::guards::path_guard", "path_guard"),
            ("app::Meter", "Meter"),
            ("app::Meter<alloc::string::String>", "Meter"),
            ("alloc::sync::Arc<app::Meter>", "Meter"),
            ("app::main::{{closure}}", "main::closure"),
            ("app::main::{{closure}}::{{closure}}", "main::closure"),
            ("<app::Guard as app::Policy>::check", "check"),
            ("<app::Guard as app::Policy>::check::{{closure}}", "check::closure"),
        ] {
            assert_eq!(short_name(path), name);
        }
    }
}
