//! Built-in hooks of guarded sessions: the canary, and the protection of files that decide about the guard.

mod changes;
mod commands;
mod paths;
mod settings_paths;
mod tools;

use std::path::{Path, PathBuf};

use amplifier_core::{Event, HookResult, OnError, TOOL_PRE, ToolPre};
use amplifier_host::{Environment, Policy};

use self::paths::ProtectedFiles;
use crate::canary::{CANARY_HOOK, CANARY_TOOL};
use crate::client::Client;

/// Before other hooks: nothing allows these calls.
const PRIORITY: i64 = -101;

/// Variables that move the settings of a client, with the files in their folder.
const SETTINGS_FOLDERS: [(&str, &[&str]); 4] = [
    ("CLAUDE_CONFIG_DIR", &["settings.json", "settings.local.json", ".claude.json"]),
    ("CODEX_HOME", &["config.toml", "hooks.json", "managed_config.toml", ".env"]),
    ("COPILOT_HOME", &["hooks", "settings.json", "config.json", "mcp-config.json"]),
    ("XDG_CONFIG_HOME", &["opencode"]),
];
/// Settings for the whole system.
const SYSTEM_FOLDERS: [&str; 5] =
    ["/etc/claude-code", "/etc/codex", "/etc/gemini-cli", "/etc/github-copilot", "/etc/cursor"];

/// Registers the hooks for a policy. The tools of other agents run outside of our sandbox, so commands are analysed at every level.
/// `programs` are those of the guard, and `folder` is that of the daemon.
pub(super) fn register(policy: &Policy, programs: &[PathBuf], folder: &Path) {
    let (hooks, home) = (policy.hooks(), policy.home());
    let system = SYSTEM_FOLDERS.iter().map(PathBuf::from);
    // Their folder is protected already; a command may name them from within.
    let own = [home.user_bundle(), home.config_file(), home.trust_file(), home.approval_rule_file()];
    let protected = moved_settings(home.environment()).into_iter().chain(system).chain(own);
    let workspace = policy.workspace().clone().protect(protected);
    let unchanged = workspace.clone().protect(programs);
    let secrets = vec![home.audit_key(), home.server_folder(), folder.to_owned(), folder.join("start")];
    let home = home.environment().home().map(Path::to_owned);
    let files = ProtectedFiles { workspace, unchanged, programs: programs.to_vec(), secrets, home };
    commands::register(hooks, files.clone());
    tools::register(hooks, files);
    hooks.hook(TOOL_PRE).named(CANARY_HOOK).priority(PRIORITY - 1).on_error(OnError::Deny).run(
        |event: Event<ToolPre>| {
            let is_canary = event.tool_name() == CANARY_TOOL;
            let nonce = event.text_at("/tool_input/nonce").unwrap_or_default();
            let denial = is_canary.then(|| HookResult::deny(format!("the guard is active: {nonce}")));
            async move { denial }
        },
    );
}

/// Returns the settings in folders that the user has moved. All others are known by the end of their paths.
fn moved_settings(environment: &Environment) -> Vec<PathBuf> {
    let folder = |name: &str| environment.variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let moved = SETTINGS_FOLDERS.iter().filter_map(|(name, files)| Some((folder(name)?, files)));
    moved.flat_map(|(folder, files)| files.iter().map(move |file| folder.join(file))).collect()
}

/// Returns the folder of the agent that calls a tool.
fn folder_of(event: &Event<ToolPre>, files: &ProtectedFiles) -> PathBuf {
    let folder = event.text_at("/cwd").map(PathBuf::from).filter(|folder| folder.is_absolute());
    folder.unwrap_or_else(|| files.workspace.root().to_owned())
}

/// Returns the settings of a client that can contain the guard or disable it, for an agent in these folders.
pub(super) fn settings_of(
    client: Client,
    environment: &Environment,
    folders: &[PathBuf],
) -> impl Iterator<Item = PathBuf> {
    let folders: Vec<PathBuf> = environment.home().map(Path::to_owned).into_iter().chain(folders.to_vec()).collect();
    let usual = folders
        .into_iter()
        .flat_map(move |folder| settings_paths::of_client(client).map(move |settings| folder.join(settings)));
    usual.chain(moved_settings(environment))
}
