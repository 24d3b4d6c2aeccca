//! Built-in hooks of guarded sessions: the canary, and the protection of files that decide about the guard.

use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_core::{Event, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre};
use amplifier_host::Policy;
use amplifier_host::guards;
use amplifier_process::follow_links;
use serde_json::Value;

/// The tool that is always denied, to test that a hook reaches the daemon.
pub const CANARY_TOOL: &str = "AmplifierCanary";
/// The hook that denies it.
pub const CANARY_HOOK: &str = "canary";
const PROTECT_FILES: &str = "protect-files";
/// Before other hooks: nothing allows these calls.
const PRIORITY: i64 = -100;

/// Tools that read or affect only the agent.
const READING_TOOLS: [&str; 5] = ["Read", "Glob", "Grep", "Todo", "Task"];
/// Tools that change the file in their input.
const WRITING_TOOLS: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];

/// Settings of clients in the home folder. Some contain the guard, others could disable it.
const USER_SETTINGS: [&str; 14] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".copilot/hooks",
    ".copilot/settings.json",
    ".config/opencode/plugin",
    ".config/opencode/plugins",
    ".config/opencode/opencode.json",
    ".cursor/hooks.json",
    ".config/Cursor/User/settings.json",
    ".claude.json",
    ".codex/managed_config.toml",
];
/// Settings of clients in a project.
const PROJECT_SETTINGS: [&str; 13] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".github/hooks",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".opencode/plugin",
    ".opencode/plugins",
    "opencode.json",
    ".cursor/hooks.json",
    ".vscode/settings.json",
];

/// Registers the hooks for a policy. The tools of other agents run outside of our sandbox, so commands are analysed at every level.
pub(super) fn register(policy: &Policy) {
    let home = policy.home().environment().home().map(Path::to_owned);
    let files = USER_SETTINGS.iter().filter_map(|file| Some(home.as_ref()?.join(file)));
    let project = PROJECT_SETTINGS.iter().map(|file| policy.workspace().root().join(file));
    let workspace = policy.workspace().clone().protect(files.chain(project));
    let hooks = policy.hooks();
    guards::protect(hooks, workspace.clone(), home.as_deref());
    protect_files(hooks, workspace, vec![policy.home().audit_key(), policy.home().server_folder()]);
    hooks.hook(TOOL_PRE).named(CANARY_HOOK).priority(PRIORITY - 1).on_error(OnError::Deny).run(
        |event: Event<ToolPre>| {
            let is_canary = event.tool_name() == CANARY_TOOL;
            let nonce = event.text_at("/tool_input/nonce").unwrap_or_default();
            let denial = is_canary.then(|| HookResult::deny(format!("the guard is active: {nonce}")));
            async move { denial }
        },
    );
}

/// Denies file tools that would change a protected file, and other tools that name one. Secrets cannot be read, either.
fn protect_files(hooks: &HookRegistry, workspace: Workspace, secrets: Vec<PathBuf>) {
    let guard = hooks.hook(TOOL_PRE).named(PROTECT_FILES).priority(PRIORITY).on_error(OnError::Deny);
    guard.run(move |event: Event<ToolPre>| {
        let denial = protected_file(&event, &workspace, &secrets).map(|path| {
            HookResult::deny(format!(
                "tools cannot use `{path}`, which decides what they may do or records what they did; \
                 if it has to change, ask the user to do it"
            ))
        });
        async move { denial }
    });
}

fn protected_file(event: &Event<ToolPre>, workspace: &Workspace, secrets: &[PathBuf]) -> Option<String> {
    let tool = event.tool_name();
    // Commands have a hook of their own.
    if tool == "Bash" {
        return None;
    }
    let Value::Object(input) = event.tool_input() else { return None };
    let texts = input.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    for (key, text) in texts.filter(|(_, text)| !text.is_empty() && text.len() < 4096 && !text.contains('\n')) {
        let is_file = key.ends_with("path") || key.ends_with("Path") || key == "file" || key == "filename";
        let Ok(resolved) = follow_links(workspace.root(), Path::new(text)) else {
            // A path that cannot be followed cannot be checked.
            if is_file && WRITING_TOOLS.contains(&tool) {
                return Some(text.to_owned());
            }
            continue;
        };
        let is_secret = secrets.iter().any(|secret| resolved.starts_with(secret));
        let found = workspace.protects(text);
        let is_protected = match found {
            None => false,
            Some(_) if WRITING_TOOLS.contains(&tool) => is_file,
            Some(_) if READING_TOOLS.contains(&tool) => false,
            // An unknown tool may read a folder above.
            Some(protected) => resolved.starts_with(protected),
        };
        if is_secret || is_protected {
            return Some(workspace.display(&resolved));
        }
    }
    None
}
