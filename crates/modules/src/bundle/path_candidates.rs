//! What a hook is made of, for those who decide whether it may run.

use serde_json::Value;

use super::HookEntry;

/// Keys whose texts name no file that is run or read on behalf of the hook.
///
/// INVARIANT: every other key is searched for files, so that trust pins what a key names that is not known here.
const PATHLESS_KEYS: [&str; 19] = [
    "module",
    "rule",
    "http",
    "name",
    "on",
    "when",
    "on_error",
    "role",
    "deny",
    "ask",
    "options",
    "default",
    "modify",
    "inject",
    "inject_role",
    "message",
    "level",
    "reason",
    "headers",
];

/// Options of modules that name a file to write to: it is different after each session.
const OUTPUT_OPTIONS: [(&str, &str); 2] = [("hooks-logging", "path"), ("hooks-metrics", "file")];

/// Options of modules that are patterns for what the agent does. A file that fits one is no part of the hook: tools may change it if the hooks let them. Trust
/// pins such files all the same, because that costs a question at most.
const PATTERN_OPTIONS: [(&str, &str); 5] = [
    ("hooks-approval", "rules"),
    ("hooks-bash-guard", "allow"),
    ("hooks-bash-guard", "deny"),
    ("hooks-production-guard", "paths"),
    ("hooks-redaction", "patterns"),
];

impl HookEntry {
    /// Every key that is set, with its value as JSON, or as it is if it is a text.
    pub fn settings(&self) -> Vec<(String, String)> {
        let shown = |value: Value| match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        self.fields().into_iter().flatten().map(|(key, value)| (key, shown(value))).collect()
    }

    /// Every text of the hook that may name a file which is run or read on its behalf; none if that cannot be told.
    pub(crate) fn path_candidates(&self) -> Option<Vec<String>> {
        self.clone().candidates()
    }

    /// The same without patterns for what the agent does: what the hook is made of.
    pub(crate) fn own_path_candidates(&self) -> Option<Vec<String>> {
        let mut entry = self.clone();
        if let (Some(module), Some(config)) = (&entry.module, &mut entry.config) {
            config.retain(|option, _| !PATTERN_OPTIONS.contains(&(module.as_str(), option.as_str())));
            let linters = config.get_mut("linters").filter(|_| module == "hooks-linter").and_then(Value::as_array_mut);
            for linter in linters.into_iter().flatten().filter_map(Value::as_object_mut) {
                linter.remove("files");
            }
        }
        entry.candidates()
    }

    fn candidates(mut self) -> Option<Vec<String>> {
        let entry = &mut self;
        if let (Some(module), Some(config)) = (&entry.module, &mut entry.config) {
            config.retain(|option, _| !OUTPUT_OPTIONS.contains(&(module.as_str(), option.as_str())));
        }
        // A module that the host brings may be a file.
        let is_file = |key: &str| key == "module" && entry.is_host_module;
        let fields = entry.fields()?.into_iter();
        let fields = fields.filter(|(key, _)| is_file(key) || !PATHLESS_KEYS.contains(&key.as_str()));
        Some(fields.flat_map(|(_, value)| strings(value)).collect())
    }

    /// The commands of a module that run in the workspace, and not in the folder of the bundle.
    pub(crate) fn workspace_path_candidates(&self) -> Vec<String> {
        let linters = self.config.as_ref().filter(|_| self.module.as_deref() == Some("hooks-linter"));
        let linters = linters.and_then(|config| config.get("linters")).and_then(Value::as_array);
        linters.into_iter().flatten().filter_map(|linter| linter.get("command")).cloned().flat_map(strings).collect()
    }

    fn fields(&self) -> Option<Vec<(String, Value)>> {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return None };
        let is_set = |value: &Value| match value {
            Value::Null => false,
            Value::Array(values) => !values.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        };
        Some(fields.into_iter().filter(|(_, value)| is_set(value)).collect())
    }
}

/// Every text within a value.
fn strings(value: Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.into_iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.into_iter().flat_map(|(_, value)| strings(value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
