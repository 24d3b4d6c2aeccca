//! What stands in every session of the command: the hook that asks before something is changed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::tool::Workspace;
use amplifier_core::{
    Approval, ApprovalAnswer, ApprovalError, ApprovalSystem, Event, HookRegistry, HookResult, OnError, OpenRequest,
    Registration, TOOL_PRE, ToolPre,
};
use amplifier_modules::shell::{Analysis, analyse};

/// The name of the hook that asks before something is changed.
pub const CONFIRM: &str = "confirm";

/// The name of the hook that denies commands which would change what is protected.
pub const PROTECT: &str = "protect";

/// The priority of that hook: after guards and whatever else changes an action, so that its question describes what will run.
const CONFIRM_PRIORITY: i64 = 1000;

/// Registers the guards. Their questions are open for that long, and name files as they are called in the workspace.
pub fn register(hooks: &HookRegistry, timeout: Duration, workspace: Workspace) {
    let guard = hooks.hook(TOOL_PRE).named(CONFIRM).priority(CONFIRM_PRIORITY).on_error(OnError::Deny);
    guard.run(move |event| confirm(&event, timeout, &workspace));
}

/// Registers the guard for systems where commands cannot be confined: it denies those that seem to change something that is protected. What a
/// program does with files that its command does not name is not seen. `home` is the folder that `~` stands for.
pub fn protect(hooks: &HookRegistry, workspace: Workspace, home: Option<&Path>) -> Registration {
    let home = home.map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
    let guard = hooks.hook(TOOL_PRE).named(PROTECT).priority(-100).on_error(OnError::Deny);
    guard.run(move |event: Event<ToolPre>| {
        let command = event.text_at("/tool_input/command").filter(|_| event.tool_name() == "Bash")?;
        let place = protected_path_in(command, &workspace, &home)?;
        Some(HookResult::deny(format!(
            "tools cannot change `{place}`, which decides what they may do or records what they did"
        )))
    })
}

/// The protected place that a command may change.
fn protected_path_in(command: &str, workspace: &Workspace, home: &str) -> Option<String> {
    let Analysis { readonly, writes, .. } = analyse(command);
    if readonly {
        return None;
    }
    // As a shell would read them, or nearly so.
    let plain = |text: &str| {
        let text: String = text.chars().filter(|c| !"\"'\\".contains(*c)).collect();
        text.replace("${HOME}", home).replace("$HOME", home).replace("~/", &format!("{home}/"))
    };
    let written = writes.iter().find_map(|path| workspace.protects(&plain(path)));
    let command = plain(command);
    let mentioned = || {
        workspace.protected().find(|place| {
            let relative = place.strip_prefix(workspace.root()).unwrap_or(place);
            [*place, relative].iter().any(|path| command.contains(&*path.to_string_lossy()))
        })
    };
    Some(workspace.display(written.or_else(mentioned)?))
}

/// Asks before a tool changes something. Tools that only look, and those that only speak to the agent itself, need no question.
fn confirm(event: &Event<ToolPre>, timeout: Duration, workspace: &Workspace) -> Option<HookResult> {
    let input = |field: &str| event.text_at(&format!("/tool_input/{field}")).unwrap_or("?");
    // However a model spells a path: a standing answer about a file is about that file.
    let file = || {
        let path = input("file_path");
        workspace.resolve(path).map_or_else(|_| path.to_owned(), |resolved| workspace.display(&resolved))
    };
    // "Allow always" is remembered by this text, so it names what is allowed.
    let prompt = match event.tool_name() {
        "Read" | "Glob" | "Grep" | "Todo" | "Task" => return None,
        "Bash" => format!("Run `{}`?", input("command")),
        "Write" => format!("Write to `{}`?", file()),
        "Edit" | "MultiEdit" => format!("Edit `{}`?", file()),
        other => format!("Use the tool `{other}`?"),
    };
    let approval = Approval::new(prompt).options(["Allow once", "Allow always", "Deny"]).timeout(timeout);
    // A hook that asks about the same action has a better reason to.
    Some(HookResult::ask(approval.fallback()))
}

/// Denies every question without asking anyone, because that is what the person has configured.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAllApprovals;

impl ApprovalSystem for DenyAllApprovals {
    async fn request_approval(&self, _request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        Err(ApprovalError::Failed("nobody is asked, because `approvals` is `deny`".into()))
    }
}
