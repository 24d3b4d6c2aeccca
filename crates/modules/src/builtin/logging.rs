//! `hooks-logging`: writes selected events to a file, one JSON object per line.

mod file;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{EventData, EventPattern, Hook, HookError, HookResult, InvalidEventName, Map};
use amplifier_process::HOME_VARIABLE;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::file::LogFile;
use super::{ModuleContext, ModuleHook, options};
use crate::condition::Scope;

/// Options of `hooks-logging`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Path of the file: absolute, starting with `~/`, or relative to the folder of the bundle.
    path: String,
    /// The events to write; patterns allowed.
    events: Vec<String>,
    /// Exceptions from `events`; patterns allowed.
    except: Vec<String>,
    /// Replace secrets by markers.
    redact: bool,
    /// Largest size of the file in bytes before a new one is started.
    max_bytes: u64,
    /// Number of full files to keep beside the current one; the newest has the suffix `.1`.
    keep: u32,
    /// Write each line to the disk before the agent continues.
    sync: bool,
}

impl Default for Options {
    fn default() -> Self {
        let strings = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            path: "events.jsonl".to_owned(),
            events: strings(&["*"]),
            except: strings(&["content_block:*", "thinking:*"]),
            redact: true,
            max_bytes: 10 << 20,
            keep: 3,
            sync: false,
        }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { path, events, except, redact, max_bytes, keep, sync } = options(config)?;
    if events.is_empty() {
        return Err("`events` is empty; name at least one event".to_owned());
    }
    if max_bytes < 1024 {
        return Err(format!("`max_bytes` is {max_bytes}: give it 1024 or more"));
    }
    if keep > 1000 {
        return Err(format!("`keep` is {keep}: give it 1000 or less"));
    }
    let path = resolve_path(&path, context.folder)?;
    if context.host.is_trial {
        // The file belongs to sessions.
        return Ok(Vec::new());
    }
    let logger = Logger {
        chosen: patterns("events", &events)?,
        except: patterns("except", &except)?,
        scope: redact.then(|| context.host.scope.clone()),
        file: Arc::new(LogFile { path, max_bytes, keep, sync }),
        missing: Mutex::new(0),
    };
    Ok(vec![ModuleHook::observer(&["*"], logger)])
}

fn resolve_path(path: &str, folder: &Path) -> Result<PathBuf, String> {
    if path.is_empty() || path.ends_with('/') {
        return Err(format!("invalid `path` `{path}`; give the path of a file"));
    }
    let Some(rest) = path.strip_prefix("~/") else {
        // Resolved now, because the working folder may change later.
        return std::path::absolute(folder.join(path)).map_err(|error| format!("`path`: {error}"));
    };
    let home = std::env::var_os(HOME_VARIABLE).map(PathBuf::from).filter(|home| home.is_absolute());
    home.map(|home| home.join(rest))
        .ok_or_else(|| format!("cannot resolve `path` `{path}`: the home folder is unknown; set {HOME_VARIABLE}"))
}

fn patterns(option: &str, patterns: &[String]) -> Result<Vec<EventPattern>, String> {
    let patterns = patterns.iter().map(|pattern| pattern.parse()).collect::<Result<_, InvalidEventName>>();
    patterns.map_err(|error| format!("`{option}`: {error}; `amplifier events` lists all events"))
}

struct Logger {
    chosen: Vec<EventPattern>,
    except: Vec<EventPattern>,
    scope: Option<Arc<Scope>>,
    file: Arc<LogFile>,
    /// Number of lines lost since the last successful write.
    missing: Mutex<u64>,
}

impl Logger {
    fn is_chosen(&self, event: &str) -> bool {
        let matches = |patterns: &[EventPattern]| patterns.iter().any(|pattern| pattern.matches(event));
        matches(&self.chosen) && !matches(&self.except)
    }

    fn line(&self, event: &str, data: &EventData) -> Vec<u8> {
        let mut fields = data.clone().into_map();
        let (timestamp, session) = (fields.remove("timestamp"), fields.remove("session_id"));
        let mut fields = Value::Object(fields);
        if let Some(scope) = &self.scope {
            scope.redact(&mut fields);
        }
        let line = json!({ "timestamp": timestamp, "session_id": session, "event": event, "data": fields });
        format!("{line}\n").into_bytes()
    }

    /// Warns once when the file cannot be written, and reports once when writing works again.
    fn report_write(&self, written: std::io::Result<()>) -> HookResult {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.file.path.display();
        let answer = HookResult::proceed();
        match (written, *missing) {
            (Ok(()), 0) => answer,
            (Ok(()), lines) => {
                *missing = 0;
                answer.info(format!("events are written to `{path}` again; {lines} are missing"))
            }
            (Err(error), lines) => {
                *missing += 1;
                let told = format!("events cannot be written to `{path}`: {error}");
                if lines == 0 { answer.warning(told) } else { answer }
            }
        }
    }
}

impl Hook for Logger {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if !self.is_chosen(event) {
            return Ok(HookResult::proceed());
        }
        let line = self.line(event, data);
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || file.append(&line)).await.map_err(std::io::Error::other);
        Ok(self.report_write(written.flatten()))
    }
}
