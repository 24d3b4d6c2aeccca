//! `hooks-logging`: writes chosen events to a file, one JSON object a line.

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

/// What can be said about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The file: absolute, beginning with `~/`, or relative to the folder of the bundle.
    path: String,
    /// The events that are written down; patterns too.
    events: Vec<String>,
    /// The events that are not, even if `events` has them.
    except: Vec<String>,
    /// Whether secrets are replaced by markers.
    redact: bool,
    /// So large may the file become, in bytes, before another one is begun.
    max_bytes: u64,
    /// So many full files are kept beside it: `….1` is the newest.
    keep: u32,
    /// Whether each line is on the disk before the agent goes on.
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
        return Err("`events` is empty: nothing would be written down".to_owned());
    }
    if max_bytes < 1024 {
        return Err(format!("`max_bytes` is {max_bytes}: give it 1024 or more"));
    }
    if keep > 1000 {
        return Err(format!("`keep` is {keep}: give it 1000 or less"));
    }
    let path = resolve(&path, context.folder)?;
    let logger = Logger {
        chosen: patterns("events", &events)?,
        except: patterns("except", &except)?,
        scope: redact.then(|| context.host.scope.clone()),
        file: Arc::new(LogFile { path, max_bytes, keep, sync }),
        missing: Mutex::new(0),
    };
    Ok(vec![ModuleHook::observer(&["*"], logger)])
}

fn resolve(path: &str, folder: &Path) -> Result<PathBuf, String> {
    if path.is_empty() || path.ends_with('/') {
        return Err(format!("`path` is `{path}`: give it the name of a file"));
    }
    let Some(rest) = path.strip_prefix("~/") else {
        // Now, because the agent may be in another folder later.
        return std::path::absolute(folder.join(path)).map_err(|error| format!("`path`: {error}"));
    };
    let home = std::env::var_os(HOME_VARIABLE).map(PathBuf::from).filter(|home| home.is_absolute());
    home.map(|home| home.join(rest))
        .ok_or_else(|| format!("`path` is `{path}`, but there is no home folder: set {HOME_VARIABLE}"))
}

fn patterns(option: &str, patterns: &[String]) -> Result<Vec<EventPattern>, String> {
    let patterns = patterns.iter().map(|pattern| pattern.parse()).collect::<Result<_, InvalidEventName>>();
    patterns.map_err(|error| format!("`{option}`: {error}; `amplifier events` lists all events"))
}

struct Logger {
    chosen: Vec<EventPattern>,
    except: Vec<EventPattern>,
    /// What knows the secrets, if they are replaced.
    scope: Option<Arc<Scope>>,
    file: Arc<LogFile>,
    /// How many lines could not be written since the last one that could.
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

    /// The person is told once that the file cannot be written, and once that it can be again.
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
