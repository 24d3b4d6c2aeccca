//! The hooks that every session of the command has.

use amplifier_core::{Approval, Event, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre};

/// The name of the hook that asks before something is changed.
pub const CONFIRM: &str = "confirm";

/// Registers the guards.
pub fn register(hooks: &HookRegistry) {
    hooks.hook(TOOL_PRE).named(CONFIRM).priority(50).on_error(OnError::Deny).run(confirm);
}

/// Asks before a tool changes something. Tools that only look, and those that only speak to the agent itself, need no question.
fn confirm(event: Event<ToolPre>) -> Option<HookResult> {
    let input = |field: &str| event.text_at(&format!("/tool_input/{field}")).unwrap_or("?");
    // "Allow always" is remembered by this text, so it names what is allowed.
    let question = match event.tool_name() {
        "Read" | "Glob" | "Grep" | "Todo" | "Task" => return None,
        "Bash" => format!("Run `{}`?", input("command")),
        "Write" => format!("Write to `{}`?", input("file_path")),
        "Edit" | "MultiEdit" => format!("Edit `{}`?", input("file_path")),
        other => format!("Use the tool `{other}`?"),
    };
    Some(HookResult::ask(Approval::new(question).options(["Allow once", "Allow always", "Deny"])))
}
