//! `hooks-production-guard`: requests approval before a production file is changed.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::text::{EscapeMode, visible};
use amplifier_core::{Approval, EventData, Hook, HookError, HookResult, Map};
use globset::GlobSet;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::shared::settings::{require_exact_names, require_possible, require_some, seconds, strings};
use super::{GUARDS, ModuleContext, ModuleHook, options};
use crate::condition::{Scope, globs};

/// Options of `hooks-production-guard`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The protected files, as globs. A glob is matched against the path as given and the resolved path, both absolute and
    /// relative to the workspace.
    paths: Vec<String>,
    /// The tools that change files.
    tools: Vec<String>,
    /// The input fields of these tools that name a file. A call without any of them is denied.
    fields: Vec<String>,
    /// Request approval; if `false`, deny the change.
    ask: bool,
    /// Time limit for an approval, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            paths: strings(&["**/production/**", "**/prod/**", "**/.env", "**/.env.*", "**/secrets/**"]),
            tools: strings(&["Write", "Edit", "MultiEdit"]),
            fields: strings(&["file_path"]),
            ask: true,
            timeout: 300.0,
        }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { paths, tools, fields, ask, timeout } = options(config)?;
    require_some("paths", &paths)?;
    require_exact_names("tools", &tools)?;
    require_exact_names("fields", &fields)?;
    if paths.iter().any(|path| path.trim().is_empty()) {
        return Err("empty pattern in `paths`; remove the pattern".to_owned());
    }
    require_possible("paths", &paths)?;
    let globs = globs(paths.iter().map(String::as_str)).map_err(|error| format!("`paths`: {error}"))?;
    let ask = if ask { Some(seconds("timeout", timeout)?) } else { None };
    let guard = ProductionGuard { globs, tools, fields, ask, scope: context.host.scope.clone() };
    Ok(vec![ModuleHook::guard(&["tool:pre"], guard).priority(GUARDS)])
}

struct ProductionGuard {
    globs: GlobSet,
    tools: Vec<String>,
    fields: Vec<String>,
    /// Time limit for an approval; `None` if changes are denied.
    ask: Option<Duration>,
    scope: Arc<Scope>,
}

impl Hook for ProductionGuard {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let tool = data.text("tool_name").ok_or_else(|| HookError::failed("the event has no `tool_name`"))?;
        if !self.tools.iter().any(|guarded| guarded == tool) {
            return Ok(HookResult::proceed());
        }
        let fields = self.fields.iter().filter_map(|field| Some((field, data.get("tool_input")?.get(field)?)));
        let mut named = false;
        for (field, value) in fields {
            // The tool may still interpret a value of another type as a file.
            let Value::String(path) = value else {
                return Ok(HookResult::deny(format!("`{field}` is not a string, so the changed file is unknown")));
            };
            named = true;
            if let Some(shown) = self.protected(path)? {
                return Ok(self.stop(&shown));
            }
        }
        if named {
            return Ok(HookResult::proceed());
        }
        let fields = self.fields.join("`, `");
        Ok(HookResult::deny(format!("the call has no `{fields}`, so the changed file is unknown")))
    }
}

impl ProductionGuard {
    /// Returns the readable name of a protected file, with the resolved path if different; `None` if the file is not protected.
    fn protected(&self, path: &str) -> Result<Option<String>, HookError> {
        let resolved = self.scope.resolve(path);
        let resolved =
            resolved.map_err(|error| HookError::failed(format!("the path cannot be resolved: {}", error.kind())))?;
        // A link called `production` is as protected as its target.
        let written = without_dots(&self.scope.workspace().join(path));
        if !self.matches(&resolved) && !self.matches(&written) {
            return Ok(None);
        }
        let seen = |path: &Path| path.strip_prefix(self.scope.workspace()).unwrap_or(path).display().to_string();
        // The approver must see the actual file.
        let [written, resolved] = [written, resolved].map(|path| visible(&seen(&path), EscapeMode::Lines));
        Ok(Some(if written == resolved {
            format!("`{resolved}`")
        } else {
            format!("`{written}` (which is `{resolved}`)")
        }))
    }

    /// Matches the absolute path and the path relative to the workspace.
    fn matches(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(self.scope.workspace());
        self.globs.is_match(path) || inside.is_ok_and(|inside| self.globs.is_match(inside))
    }

    fn stop(&self, file: &str) -> HookResult {
        match self.ask {
            Some(timeout) => HookResult::ask(
                Approval::new(format!("Allow a change to the production file {file}?"))
                    .options(["Allow once", "Allow always", "Deny"])
                    .timeout(timeout),
            ),
            None => HookResult::deny(format!("{file} is a production file, and is not changed by an agent")),
        }
    }
}

/// Returns the path without `.` and `..`; links are not resolved.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            other => plain.push(other),
        }
    }
    plain
}
