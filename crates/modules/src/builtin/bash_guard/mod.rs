//! `hooks-bash-guard`: checks shell commands before they run.

mod locations;
mod losses;
mod outputs;
mod outside;

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::text::{EscapeMode, truncate_chars, visible};
use amplifier_core::{Approval, EventData, Hook, HookError, HookResult, Map};
use amplifier_process::sandbox::Sandbox;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::settings::{require_exact_names, seconds, strings};
use super::{GUARDS, ModuleContext, ModuleHook, options};
use crate::bundle::SandboxConfig;
use crate::condition::Scope;
use crate::shell::{Analysis, Effects, inspect};

/// Longest excerpt of a command in a prompt or a reason, in characters.
const SHOWN: usize = 2_000;

/// Options of `hooks-bash-guard`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The tools with a shell command in their `command` field.
    tools: Vec<String>,
    /// Action for destructive commands: `ask` or `deny`.
    destructive: StrictDecision,
    /// Action for commands that cannot be analysed: `ask` or `deny`.
    unanalysable: StrictDecision,
    /// Action for commands that send data over the network, change something on another machine, or may do so: `allow`, `ask`
    /// or `deny`.
    network: CommandDecision,
    /// Action for commands that only read from the network, install packages by name, or push to a remote of the repository:
    /// `allow`, `ask` or `deny`.
    network_reads: CommandDecision,
    /// Action for commands that write to a file outside of the workspace, or may do so: `allow`, `ask` or `deny`.
    outside: CommandDecision,
    /// Action for all other commands that are not proven to be read-only: `allow`, `ask` or `deny`.
    other: CommandDecision,
    /// Programs that never run.
    deny: Vec<String>,
    /// Trusted programs: `network`, `network_reads` and `other` do not apply to commands that run only these.
    allow: Vec<String>,
    /// Time limit for an approval, in seconds.
    timeout: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tools: strings(&["Bash"]),
            destructive: StrictDecision::Ask,
            unanalysable: StrictDecision::Ask,
            network: CommandDecision::Ask,
            network_reads: CommandDecision::Allow,
            outside: CommandDecision::Ask,
            other: CommandDecision::Allow,
            deny: Vec::new(),
            allow: Vec::new(),
            timeout: 300.0,
        }
    }
}

/// Action for a command that must not run unchecked.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StrictDecision {
    /// Request approval.
    Ask,
    /// Deny the command.
    Deny,
}

// INVARIANT: ordered by strictness, so that the strictest is the greatest.
/// Action for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CommandDecision {
    /// Run the command.
    Allow,
    /// Request approval.
    Ask,
    /// Deny the command.
    Deny,
}

impl From<StrictDecision> for CommandDecision {
    fn from(decision: StrictDecision) -> Self {
        match decision {
            StrictDecision::Ask => Self::Ask,
            StrictDecision::Deny => Self::Deny,
        }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let options: Options = options(config)?;
    require_exact_names("tools", &options.tools)?;
    let timeout = seconds("timeout", options.timeout)?;
    let programs = options.deny.iter().chain(&options.allow);
    if let Some(path) = programs.into_iter().find(|program| program.is_empty() || program.contains(['/', ' ', '*'])) {
        return Err(format!("invalid program name `{path}`; write the name without a folder, arguments and patterns"));
    }
    if let Some(both) = options.deny.iter().find(|program| options.allow.contains(program)) {
        return Err(format!("`{both}` is in `deny` and in `allow`; remove one of the entries"));
    }
    let sandbox = context.host.sandbox_for(&SandboxConfig::default()).unwrap_or_default();
    let guard = CommandGuard { options, timeout, scope: context.host.scope.clone(), sandbox };
    Ok(vec![ModuleHook::guard(&["tool:pre"], guard).priority(GUARDS)])
}

struct CommandGuard {
    options: Options,
    timeout: Duration,
    scope: Arc<Scope>,
    /// The sandbox of `git`, which tells build outputs from work.
    sandbox: Sandbox,
}

impl Hook for CommandGuard {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let tool = data.text("tool_name").ok_or_else(|| HookError::failed("the event has no `tool_name`"))?;
        if !self.options.tools.iter().any(|guarded| guarded == tool) {
            return Ok(HookResult::proceed());
        }
        let Some(command) = data.text_at("/tool_input/command") else {
            return Ok(HookResult::deny("`command` is missing or not a string, so the program is unknown"));
        };
        let (analysis, effects) = inspect(command);
        let concerns = self.concerns(&analysis, &effects).await;
        let strictest = concerns.iter().map(|(decision, _)| *decision).max().unwrap_or(CommandDecision::Allow);
        let why: Vec<&str> =
            concerns.iter().filter(|(decision, _)| *decision == strictest).map(|(_, why)| why.as_str()).collect();
        let why = why.join("; ");
        Ok(match strictest {
            CommandDecision::Allow => HookResult::proceed(),
            CommandDecision::Ask => HookResult::ask(self.approval(command, &why)).because(why),
            CommandDecision::Deny => HookResult::deny(format!("`{}` is not run: {why}", readable(command).0)),
        })
    }
}

impl CommandGuard {
    /// Returns the objections to a command, each with its action.
    async fn concerns(&self, analysis: &Analysis, effects: &Effects) -> Vec<(CommandDecision, String)> {
        let Options { deny, allow, destructive, unanalysable, network, network_reads, outside, other, .. } =
            &self.options;
        let mut concerns = Vec::new();
        if let Some(program) = analysis.programs.iter().find(|program| deny.contains(program)) {
            concerns.push((CommandDecision::Deny, format!("`{program}` is in `deny`")));
        }
        if !analysis.analysable {
            let why = analysis.why_not.as_deref().unwrap_or("unknown reason");
            concerns.push(((*unanalysable).into(), format!("the command cannot be analysed: {why}")));
        }
        if analysis.runs_download {
            concerns.push(((*unanalysable).into(), "the command runs a download".to_owned()));
        }
        if let Some(why) = losses::find_loss(effects, &self.scope, &self.sandbox).await {
            concerns.push(((*destructive).into(), why));
        }
        if analysis.analysable && analysis.readonly && analysis.destructive.is_none() {
            return concerns;
        }
        let is_trusted =
            !analysis.programs.is_empty() && analysis.programs.iter().all(|program| allow.contains(program));
        if let Some(why) = &analysis.sends
            && !is_trusted
        {
            concerns.push((*network, format!("the command uses the network: {why}")));
        } else if let Some(tool) = outside::missing_tool(effects, &self.scope)
            && !is_trusted
        {
            concerns.push((
                *network,
                format!("the command downloads and runs `{tool}`, which is not installed in the workspace"),
            ));
        } else if analysis.network && !is_trusted {
            concerns.push((*network_reads, "the command uses the network".to_owned()));
        }
        if *outside != CommandDecision::Allow
            && let Some(why) = outside::find_outside(effects, &self.scope)
        {
            concerns.push((*outside, why));
        }
        if !is_trusted {
            concerns.push((*other, "the command is not proven to be read-only".to_owned()));
        }
        concerns
    }

    fn approval(&self, command: &str, why: &str) -> Approval {
        let (shown, is_whole) = readable(command);
        let approval = Approval::new(format!("Run `{shown}`? {why}")).timeout(self.timeout);
        // An approval rule is remembered by this text, so the text must identify one command only.
        if is_whole {
            approval.options(["Allow once", "Allow always", "Deny"])
        } else {
            approval.options(["Allow once", "Deny"])
        }
    }
}

/// Returns the command in readable form, and `true` if that is the unchanged command.
fn readable(command: &str) -> (String, bool) {
    let shown = visible(&truncate_chars(command, SHOWN), EscapeMode::Lines);
    let is_whole = shown == command;
    (shown, is_whole)
}
