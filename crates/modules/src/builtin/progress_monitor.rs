//! `hooks-progress-monitor`: shows the user the progress of the agent.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::text::counted;
use amplifier_core::{EventData, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::shared::per_session::PerSession;
use super::shared::text::one_line;
use super::{ModuleContext, ModuleHook, options};
use crate::condition::Scope;

/// Options of `hooks-progress-monitor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Show a line after this many tool calls; 0 disables these lines.
    every: u64,
    /// Show a line at the next step after this many seconds without one; 0 disables these lines.
    seconds: f64,
    /// Show a line for each tool call, with its subject.
    tools: bool,
    /// Show a line at the end of each turn.
    summary: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { every: 5, seconds: 30.0, tools: false, summary: true }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { every, seconds, tools, summary } = options(config)?;
    let quiet = Duration::try_from_secs_f64(seconds);
    let quiet = quiet.map_err(|_| format!("`seconds` is {seconds}: give seconds, 0 or more"))?;
    if every == 0 && quiet.is_zero() && !tools && !summary {
        return Err("everything is disabled; enable at least one option".to_owned());
    }
    let scope = context.host.scope.clone();
    let monitor = Monitor { every, quiet, tools, summary, scope, turns: context.host.module_state(context.who) };
    let events = [
        "execution:start",
        "provider:request",
        "provider:response",
        "tool:pre",
        "tool:post",
        "execution:complete",
        "session:end",
    ];
    Ok(vec![ModuleHook::observer(&events, monitor)])
}

struct Monitor {
    every: u64,
    quiet: Duration,
    tools: bool,
    summary: bool,
    scope: Arc<Scope>,
    turns: Arc<PerSession<Option<Turn>>>,
}

struct Turn {
    started: u64,
    last_shown: u64,
    steps: u64,
    tools: u64,
    tokens: u64,
}

impl Turn {
    fn begin(now: u64) -> Self {
        Self { started: now, last_shown: now, steps: 0, tools: 0, tokens: 0 }
    }

    /// Returns the totals of the turn, such as `5 tool calls, 12 s, 3400 tokens`.
    fn totals(&self, now: u64) -> String {
        let elapsed = readable(Duration::from_nanos(now.saturating_sub(self.started)));
        format!("{}, {elapsed}, {}", counted(self.tools, "tool call"), counted(self.tokens, "token"))
    }
}

impl Monitor {
    fn line(&self, turn: &mut Turn, event: &str, data: &EventData, now: u64) -> Option<String> {
        let tool = || one_line(data.text("tool_name").unwrap_or_default(), 60);
        let is_quiet = |turn: &Turn| {
            !self.quiet.is_zero() && Duration::from_nanos(now.saturating_sub(turn.last_shown)) >= self.quiet
        };
        match event {
            "execution:start" => {
                *turn = Turn::begin(now);
                None
            }
            "provider:request" => {
                turn.steps += 1;
                is_quiet(turn).then(|| format!("step {}: asks the model; {}", turn.steps, turn.totals(now)))
            }
            "provider:response" => {
                let tokens = |field: &str| data.pointer(field).and_then(Value::as_u64).unwrap_or(0);
                turn.tokens += tokens("/usage/input_tokens") + tokens("/usage/output_tokens");
                None
            }
            "tool:pre" if self.tools => Some(format!("step {}: {}{}", turn.steps, tool(), subject(data, &self.scope))),
            "tool:post" => {
                turn.tools += 1;
                let is_due = self.every > 0 && turn.tools.is_multiple_of(self.every);
                let line = || format!("step {}: {} has run; {}", turn.steps, tool(), turn.totals(now));
                (is_due || is_quiet(turn)).then(line)
            }
            "execution:complete" if self.summary => {
                let end = match data.text("status") {
                    Some("success") => "done",
                    Some("interrupted") => "interrupted",
                    _ => "stopped",
                };
                Some(format!("{end} after {}: {}", counted(turn.steps, "step"), turn.totals(now)))
            }
            _ => None,
        }
    }
}

impl Hook for Monitor {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if event == "session:end" {
            self.turns.forget(data);
            return Ok(HookResult::proceed());
        }
        let now = self.scope.timer().nanos();
        let line = self.turns.with(data, |turn| {
            // A reload may have registered this hook in the middle of a turn.
            let turn = turn.get_or_insert_with(|| Turn::begin(now));
            let line = self.line(turn, event, data, now);
            if line.is_some() {
                turn.last_shown = now;
            }
            line
        });
        Ok(line.map_or_else(HookResult::proceed, |line| HookResult::proceed().info(line)))
    }
}

/// Returns the subject of a tool call, in a few words and without secrets.
fn subject(data: &EventData, scope: &Scope) -> String {
    let input = data.get("tool_input");
    let known = ["command", "file_path", "pattern", "task"].iter().find_map(|field| input?.get(field)?.as_str());
    let Some(mut subject) = known.map(Value::from) else { return String::new() };
    scope.redact(&mut subject);
    format!(" `{}`", one_line(subject.as_str().unwrap_or_default(), 80))
}

/// Formats a duration: `12 s`, `3 min 5 s`, `1 h 2 min`.
fn readable(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
