//! Settings of hooks.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::EventName;
use crate::text::{as_seconds, as_text};
use crate::words::words;

words! {
    /// The role of a hook.
    #[derive(Default, PartialOrd, Ord, JsonSchema)]
    pub enum HookRole("role") {
        /// Every action of the hook counts.
        #[default]
        Gate = "gate",
        /// The hook sees every emission after the gates, also a denied one. Its messages are shown, but its action has no effect.
        Observer = "observer",
    }
}

words! {
    /// The effect of a hook's failure on the operation.
    #[derive(Default, JsonSchema)]
    pub enum OnError("on_error") {
        /// The operation proceeds; the failure is logged, recorded and shown to the user.
        #[default]
        Continue = "continue",
        /// The operation is denied, with the hook and the error named. For guards.
        Deny = "deny",
        /// The operation is denied at events that gate one, such as `tool:pre`, and proceeds at all others. The default for hooks of a bundle.
        DenyGating = "deny_gating",
    }
}

impl OnError {
    /// Returns the setting at one event: `Continue` or `Deny`.
    #[must_use]
    pub fn at(self, event: &EventName) -> Self {
        match self {
            Self::DenyGating if event.is_gating() => Self::Deny,
            Self::DenyGating => Self::Continue,
            other => other,
        }
    }
}

/// The settings of a registered hook.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookInfo {
    /// The display name.
    #[serde(serialize_with = "as_text")]
    pub name: Arc<str>,
    /// The event or pattern.
    #[serde(serialize_with = "as_text")]
    pub event: Arc<str>,
    /// The priority; lower runs earlier.
    pub priority: i64,
    /// The role.
    pub role: HookRole,
    /// The effect of a failure.
    pub on_error: OnError,
    /// The time limit of one call. Waiting for a user does not count.
    #[serde(rename = "timeout_s", serialize_with = "as_seconds")]
    pub timeout: Duration,
}

impl HookInfo {
    /// The default time limit of one call.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
}

/// Returns the default name of a hook: that of its function or type.
pub(super) fn name_of<T>() -> String {
    short_name(std::any::type_name::<T>())
}

fn short_name(path: &str) -> String {
    let function = path.trim_end_matches("::{{closure}}");
    if function.len() < path.len() {
        return format!("{}::closure", short_name(function));
    }
    let (path, arguments) = match path.strip_suffix('>').and_then(|path| path.split_once('<')) {
        // `<Type as Trait>` precedes a method; anything else is a generic type.
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
