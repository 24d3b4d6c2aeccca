//! Built-in hooks of every session: `confirm` and `protect`.

use std::path::Path;
use std::time::Duration;

use amplifier_agent::tool::Workspace;
use amplifier_core::{
    Approval, COMPARED_WITH, Event, HookRegistry, HookResult, OnError, Registration, TOOL_PRE, ToolPre,
};
use amplifier_modules::bundle::{ApprovalMode, Confirm};
use amplifier_modules::shell::{Analysis, analyse};
use amplifier_process::sandbox::Sandbox;
use serde_json::json;

use crate::config::Config;
use crate::git_undo::GitUndo;
use crate::guard_scope::GuardScope;
use crate::mode::ModeSwitch;
use crate::operations::WorkspaceOperations;

/// The name of the hook that requests approval for commands and changes.
pub const CONFIRM: &str = "confirm";

/// The name of the hook that denies commands which would change protected paths.
pub const PROTECT: &str = "protect";

/// Tools that read, or affect only the agent. A sub-agent has the same hooks.
pub(crate) const READING_TOOLS: [&str; 5] = ["Read", "Glob", "Grep", "Todo", "Task"];

/// Tools that write a file.
pub(crate) const WRITING_TOOLS: [&str; 3] = ["Write", "Edit", "MultiEdit"];

/// The priority of `confirm`: after other hooks that change an action, so that the request describes the final one.
const CONFIRM_PRIORITY: i64 = 1000;

/// Registers `confirm` for these operations, with a time limit for its requests; not at all for `off`. Requests name files relative to the workspace.
/// Without a `mode`, it is `ask`.
pub fn register(
    hooks: &HookRegistry,
    operations: Confirm,
    timeout: Duration,
    workspace: Workspace,
    mode: Option<ModeSwitch>,
) -> Option<Registration> {
    if operations == Confirm::Off {
        return None;
    }
    let described = WorkspaceOperations::new(workspace.clone(), operations);
    let described = match &mode {
        Some(mode) => described.mode(mode.clone()),
        None => described,
    };
    let guard = hooks.hook(TOOL_PRE).named(CONFIRM).priority(CONFIRM_PRIORITY).on_error(OnError::Deny);
    Some(guard.run(move |event: Event<ToolPre>| {
        let is_own = mode.as_ref().is_none_or(|mode| mode.scope().contains(event.session_id()));
        let asked = if is_own { confirm(&event, operations, timeout, &workspace) } else { None };
        let is_write = asked.is_some() && WRITING_TOOLS.contains(&event.tool_name());
        let written = event.text_at("/tool_input/file_path").filter(|_| is_write).map(str::to_owned);
        let mode = mode.clone();
        let command = event.text_at("/tool_input/command").filter(|_| asked.is_some() && event.tool_name() == "Bash");
        let written = written.or_else(|| command.and_then(|command| described.edited_file(command)));
        let is_accepted = command.is_some_and(|command| described.accepts(command));
        async move {
            if is_accepted {
                return None;
            }
            let (Some(mode), Some(path)) = (mode, written) else { return asked };
            let Some(accepted) = mode.accept_write(&path).await else { return asked };
            // Other calls may wait for the user before the tool runs: it then changes only what was accepted.
            Some(HookResult::set(COMPARED_WITH, json!(accepted)))
        }
    }))
}

/// The settings of the built-in hooks of a session.
#[derive(Clone, Copy, Debug)]
pub struct GuardSettings {
    /// The operations that `confirm` requests approval for.
    pub confirm: Confirm,
    /// The time limit of these requests.
    pub timeout: Duration,
    /// The approval mode.
    pub mode: ApprovalMode,
}

/// The built-in hooks of a session whose mode stays: `confirm`, and the hook of the mode.
pub struct SessionGuards {
    confirm: Option<Registration>,
    mode: ModeSwitch,
}

impl SessionGuards {
    /// Registers the hooks for the events in a scope. git runs in the sandbox.
    pub fn register(
        hooks: &HookRegistry,
        settings: GuardSettings,
        workspace: Workspace,
        sandbox: Sandbox,
        scope: GuardScope,
    ) -> Self {
        let GuardSettings { confirm, timeout, mode } = settings;
        let undo = GitUndo::new(workspace.clone(), sandbox);
        let mode = ModeSwitch::new(hooks, mode, Vec::new(), undo, scope);
        Self { confirm: register(hooks, confirm, timeout, workspace, Some(mode.clone())), mode }
    }

    /// Leaves the events of this session to these hooks, and no longer those of other sessions that did the same.
    pub fn begin(&self, session: &str) {
        self.mode.scope().begin(session);
    }

    /// Unregisters the hooks.
    pub fn unregister(&self) {
        self.confirm.iter().for_each(Registration::unregister);
        self.mode.end();
    }
}

/// Registers `confirm` and the hook of the mode, as a session with this configuration would have them.
pub fn register_configured(hooks: &HookRegistry, config: &Config, workspace: Workspace) {
    let Config { confirm, approval_timeout: timeout, mode, .. } = *config;
    let settings = GuardSettings { confirm, timeout, mode };
    SessionGuards::register(hooks, settings, workspace, Sandbox::default(), GuardScope::default());
}

/// Registers `protect`, for systems without a sandbox: it denies commands that seem to change protected paths. It cannot see changes by programs to
/// files that the command does not name. `home` is the folder for `~`.
pub fn protect(hooks: &HookRegistry, workspace: Workspace, home: Option<&Path>) -> Registration {
    let home = home.map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
    let guard = hooks.hook(TOOL_PRE).named(PROTECT).priority(-100).on_error(OnError::Deny);
    guard.run(move |event: Event<ToolPre>| {
        let command = event.text_at("/tool_input/command").filter(|_| event.tool_name() == "Bash")?;
        let path = protected_path_in(command, &workspace, &home)?;
        Some(HookResult::deny(format!(
            "tools cannot change `{path}`, which decides what they may do or records what they did"
        )))
    })
}

fn protected_path_in(command: &str, workspace: &Workspace, home: &str) -> Option<String> {
    let Analysis { readonly, writes, .. } = analyse(command);
    if readonly {
        return None;
    }
    // Approximates the expansions of a shell.
    let plain = |text: &str| {
        let text: String = text.chars().filter(|c| !"\"'\\".contains(*c)).collect();
        text.replace("${HOME}", home).replace("$HOME", home).replace("~/", &format!("{home}/"))
    };
    let written = writes.iter().find_map(|path| workspace.protects(&plain(path)));
    let command = plain(command);
    let mentioned = || {
        workspace.protected().find(|protected| {
            let relative = protected.strip_prefix(workspace.root()).unwrap_or(protected);
            [*protected, relative].iter().any(|path| command.contains(&*path.to_string_lossy()))
        })
    };
    Some(workspace.display(written.or_else(mentioned)?))
}

/// Requests approval for commands and changes. Read-only tools, and tools that only affect the agent, need none.
fn confirm(
    event: &Event<ToolPre>,
    operations: Confirm,
    timeout: Duration,
    workspace: &Workspace,
) -> Option<HookResult> {
    let input = |field: &str| event.text_at(&format!("/tool_input/{field}")).unwrap_or("?");
    // A resolved path, so that an approval rule applies to the file in any spelling.
    let file = || {
        let path = input("file_path");
        workspace.resolve(path).map_or_else(|_| path.to_owned(), |resolved| workspace.display(&resolved))
    };
    let mut options = vec!["Allow once", "Allow always", "Deny"];
    // An answer without a rule is remembered by this text, so the text names the allowed action.
    let prompt = match event.tool_name() {
        tool if READING_TOOLS.contains(&tool) => return None,
        "Bash" if operations < Confirm::All && analyse(input("command")).readonly => return None,
        tool if operations < Confirm::Writes && WRITING_TOOLS.contains(&tool) => return None,
        "Bash" => {
            // The same text may do something else the next time.
            if !analyse(input("command")).analysable {
                options.remove(1);
            }
            format!("Run `{}`?", input("command"))
        }
        "Write" => format!("Write to `{}`?", file()),
        "Edit" | "MultiEdit" => format!("Edit `{}`?", file()),
        other => format!("Use the tool `{other}`?"),
    };
    let approval = Approval::new(prompt).options(options).timeout(timeout);
    // Another hook that requests approval for the same action takes precedence.
    let asked = HookResult::ask(approval.fallback());
    let why = (event.tool_name() == "Bash").then(|| analyse(input("command")));
    Some(match why.as_ref().and_then(Analysis::why) {
        Some(why) => asked.because(why),
        None => asked,
    })
}
