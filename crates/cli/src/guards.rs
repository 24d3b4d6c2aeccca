//! What stands in every session of the command: the hook that asks before something is changed.

use std::sync::Arc;
use std::time::Duration;

use amplifier_agent::tool::Workspace;
use amplifier_core::{
    Approval, ApprovalError, ApprovalRequest, ApprovalSystem, Event, HookRegistry, HookResult, OnError, TOOL_PRE,
    ToolPre,
};

/// The name of the hook that asks before something is changed.
pub const CONFIRM: &str = "confirm";

/// Registers the guards. Their questions are open for that long, and name files as they are called in the workspace.
pub fn register(hooks: &HookRegistry, timeout: Duration, workspace: Workspace) {
    let guard = hooks.hook(TOOL_PRE).named(CONFIRM).priority(50).on_error(OnError::Deny);
    guard.run(move |event| confirm(&event, timeout, &workspace));
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
    let question = match event.tool_name() {
        "Read" | "Glob" | "Grep" | "Todo" | "Task" => return None,
        "Bash" => format!("Run `{}`?", input("command")),
        "Write" => format!("Write to `{}`?", file()),
        "Edit" | "MultiEdit" => format!("Edit `{}`?", file()),
        other => format!("Use the tool `{other}`?"),
    };
    let approval = Approval::new(question).options(["Allow once", "Allow always", "Deny"]);
    Some(HookResult::ask(approval.timeout(timeout)))
}

/// Denies every question without asking anyone, because that is what the person has configured.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyIsAsked;

impl ApprovalSystem for NobodyIsAsked {
    async fn request_approval(&self, _request: Arc<ApprovalRequest>) -> Result<String, ApprovalError> {
        Err(ApprovalError::Failed("nobody is asked, because `approvals` is `deny`".into()))
    }
}
