//! `hooks-status-context`: tells the model the time, the working folder, the session and the git status.

pub(super) mod git;

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult, Injection, Map};
use amplifier_process::sandbox::Sandbox;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ModuleContext, ModuleHook, options};
use crate::bundle::SandboxConfig;
use crate::condition::Scope;

/// Options of `hooks-status-context`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Frequency: with the first call to the model in each `turn`, or with every `call`.
    every: Frequency,
    /// Include the branch and the files changed since the last commit.
    git: bool,
    /// Maximum number of changed files to list.
    files: usize,
    /// Time limit for git, in seconds.
    git_timeout: f64,
    /// Include the date, the time and the time zone.
    time: bool,
    /// Include the id of the session.
    session: bool,
    /// Include the working folder of the agent.
    folder: bool,
    /// Include the operating system and the processor architecture.
    platform: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Frequency {
    Turn,
    Call,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            every: Frequency::Turn,
            git: true,
            files: 20,
            git_timeout: 2.0,
            time: true,
            session: true,
            folder: true,
            platform: true,
        }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let options: Options = options(config)?;
    let timeout = Duration::try_from_secs_f64(options.git_timeout).ok().filter(|timeout| !timeout.is_zero());
    let problem = || format!("`git_timeout` is {}: give seconds, above zero", options.git_timeout);
    let timeout = timeout.ok_or_else(problem)?;
    if ![options.git, options.time, options.session, options.folder, options.platform].contains(&true) {
        return Err("everything is disabled; enable at least one option".to_owned());
    }
    let event = match options.every {
        Frequency::Turn => "prompt:submit",
        Frequency::Call => "provider:request",
    };
    let scope = context.host.scope.clone();
    // Agents can write to the configuration of a repository, so git runs in a sandbox if one is available.
    let sandbox = match options.git {
        true => context.host.sandbox_for(&SandboxConfig::default()).or_else(|_| context.host.default_sandbox(&[]))?,
        false => Sandbox::default(),
    };
    Ok(vec![ModuleHook::gate(&[event], StatusHook { options, timeout, sandbox, scope })])
}

struct StatusHook {
    options: Options,
    timeout: Duration,
    sandbox: Sandbox,
    scope: Arc<Scope>,
}

impl Hook for StatusHook {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let Options { git, files, time, session, folder, platform, .. } = self.options;
        let mut lines = vec!["The state of things now (do not mention this note):".to_owned()];
        if let Some(now) = self.scope.now().filter(|_| time) {
            lines.push(now.strftime("time: %A, %Y-%m-%d %H:%M %Z").to_string());
        }
        if let Some(id) = data.session_id().filter(|_| session) {
            lines.push(format!("session: {id}"));
        }
        if folder {
            lines.push(format!("working folder: {}", self.scope.workspace().display()));
        }
        if platform {
            lines.push(format!("platform: {} {}", std::env::consts::OS, std::env::consts::ARCH));
        }
        if git {
            lines.extend(git::status(self.scope.workspace(), &self.sandbox, files, self.timeout).await);
        }
        if lines.len() == 1 {
            return Ok(HookResult::proceed());
        }
        Ok(HookResult::inject(Injection::new(lines.join("\n")).ephemeral()))
    }
}
