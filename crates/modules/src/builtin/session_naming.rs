//! `hooks-session-naming`: names a session after its subject.

mod name;

use std::sync::Arc;

use amplifier_core::{EventData, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::Deserialize;

use self::name::{Name, name};
use super::shared::per_session::PerSession;
use super::{ModuleContext, ModuleHook, options};
use crate::environment::HookEnvironment;

/// Allowed lengths of names, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 10..=200;

/// Options of `hooks-session-naming`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Longest name, in characters: 10 to 200.
    longest: usize,
    /// Tell the user the name.
    announce: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { longest: 60, announce: false }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { longest, announce } = options(config)?;
    if !LENGTHS.contains(&longest) {
        return Err(format!("`longest` is {longest}: give it 10 to 200 characters"));
    }
    let namer =
        SessionNamer { longest, announce, host: context.host.clone(), status: context.host.module_state(context.who) };
    let events = ["session:start", "session:resume", "execution:start", "execution:complete", "session:end"];
    Ok(vec![ModuleHook::observer(&events, namer)])
}

struct SessionNamer {
    longest: usize,
    announce: bool,
    host: HookEnvironment,
    status: Arc<PerSession<NamingStatus>>,
}

#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
enum NamingStatus {
    #[default]
    Unnamed,
    /// Has a vague name: the next prompt or answer may give a better one.
    Provisional,
    /// Has its final name, or needs none.
    Final,
}

impl SessionNamer {
    fn name(&self, event: &str, data: &EventData) -> Option<Name> {
        let text = match event {
            "execution:start" => data.text("prompt"),
            // An error message makes a bad name.
            "execution:complete" if data.text("status") == Some("success") => data.text("response"),
            _ => None,
        }?;
        let name = name(text, self.longest, &self.host.scope)?;
        // A response replaces the name only by a descriptive one.
        (event == "execution:start" || name.is_descriptive).then_some(name)
    }

    async fn give(&self, data: &EventData, name: String) -> HookResult {
        if let (Some(give), Some(id)) = (self.host.name_session.clone(), data.session_id()) {
            let (id, name) = (id.to_owned(), name.clone());
            // Storing the name may be slow; the callback reports its own errors.
            let _ = tokio::task::spawn_blocking(move || give(&id, &name)).await;
        }
        let answer = HookResult::proceed();
        if self.announce { answer.info(format!("This session is called “{name}”.")) } else { answer }
    }
}

impl Hook for SessionNamer {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        match event {
            "session:end" => self.status.forget(data),
            // A resumed session already has its name.
            "session:resume" => self.status.with(data, |status| *status = NamingStatus::Final),
            // Sub-agents are not stored and therefore not listed.
            "session:start" if data.pointer("/mount_plan/parent_session_id").is_some() => {
                self.status.with(data, |status| *status = NamingStatus::Final);
            }
            _ => {
                let found = self.status.with(data, |status| {
                    if *status == NamingStatus::Final {
                        return None;
                    }
                    let found = self.name(event, data)?;
                    let knows = if found.is_descriptive { NamingStatus::Final } else { NamingStatus::Provisional };
                    let is_better = knows > *status;
                    *status = knows;
                    is_better.then_some(found)
                });
                if let Some(name) = found {
                    return Ok(self.give(data, name.text).await);
                }
            }
        }
        Ok(HookResult::proceed())
    }
}
