//! Texts of a hook that may be file paths.

use serde_json::Value;

use super::HookEntry;

/// Keys whose texts never name a file of the hook.
///
/// INVARIANT: every other key is searched for files, so that trust also pins the files of keys that are unknown here.
const PATHLESS_KEYS: [&str; 20] = [
    "module",
    "rule",
    "http",
    "nats",
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

/// Options of modules with an output file, which changes in each session.
const OUTPUT_OPTIONS: [(&str, &str); 2] = [("hooks-logging", "path"), ("hooks-metrics", "file")];

/// Options of modules with patterns for the agent's actions. A file that matches one does not belong to the hook, so tools may change it. Trust pins
/// such files anyway, which costs one more approval at most.
const PATTERN_OPTIONS: [(&str, &str); 5] = [
    ("hooks-approval", "rules"),
    ("hooks-bash-guard", "allow"),
    ("hooks-bash-guard", "deny"),
    ("hooks-production-guard", "paths"),
    ("hooks-redaction", "patterns"),
];

impl HookEntry {
    /// Returns every key that is set, with its value as text or JSON.
    pub fn settings(&self) -> Vec<(String, String)> {
        let shown = |value: Value| match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        self.fields().into_iter().flatten().map(|(key, value)| (key, shown(value))).collect()
    }

    /// Returns every text that may name a file of the hook; `None` if the entry cannot be written as JSON.
    pub(crate) fn path_candidates(&self) -> Option<Vec<String>> {
        self.clone().candidates()
    }

    /// Returns the same without patterns for the agent's actions.
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
        // A host module may be a file.
        let is_file = |key: &str| key == "module" && entry.is_host_module;
        let fields = entry.fields()?.into_iter();
        let fields = fields.filter(|(key, _)| is_file(key) || !PATHLESS_KEYS.contains(&key.as_str()));
        Some(fields.flat_map(|(_, value)| strings(value)).collect())
    }

    /// Returns the texts of commands that run in the workspace instead of the bundle's folder.
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

fn strings(value: Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.into_iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.into_iter().flat_map(|(_, value)| strings(value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
