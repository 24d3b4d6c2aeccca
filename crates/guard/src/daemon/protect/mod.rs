//! Built-in hooks of guarded sessions: the canary, and the protection of files that decide about the guard.

use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_core::{Event, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre};
use amplifier_host::Policy;
use amplifier_host::guards;
use amplifier_modules::shell::{Analysis, ShellCommand, analyse};
use amplifier_process::follow_links;
use serde_json::Value;

/// The tool that is always denied, to test that a hook reaches the daemon.
pub const CANARY_TOOL: &str = "AmplifierCanary";
/// The hook that denies it.
pub const CANARY_HOOK: &str = "canary";
const PROTECT_FILES: &str = "protect-files";
const PROTECT_POLICY: &str = "protect-policy";
/// Programs that could change the policy or answer its requests.
const OWN_PROGRAMS: [&str; 2] = ["amplifier", "amplifier-hook"];
/// The first words of `amplifier` that only show something.
const SHOWING_WORDS: [&str; 7] = ["--help", "-h", "--version", "-V", "doctor", "events", "tools"];
/// Programs that end others by name.
const ENDING_PROGRAMS: [&str; 2] = ["pkill", "killall"];
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
    let secrets = vec![policy.home().audit_key(), policy.home().server_folder()];
    protect_from_commands(hooks, workspace.clone(), secrets.clone(), home.as_deref());
    protect_files(hooks, workspace, secrets);
    hooks.hook(TOOL_PRE).named(CANARY_HOOK).priority(PRIORITY - 1).on_error(OnError::Deny).run(
        |event: Event<ToolPre>| {
            let is_canary = event.tool_name() == CANARY_TOOL;
            let nonce = event.text_at("/tool_input/nonce").unwrap_or_default();
            let denial = is_canary.then(|| HookResult::deny(format!("the guard is active: {nonce}")));
            async move { denial }
        },
    );
}

/// Denies commands that name a protected file, also those that only read, and commands that administer the policy.
fn protect_from_commands(hooks: &HookRegistry, workspace: Workspace, secrets: Vec<PathBuf>, home: Option<&Path>) {
    let home = home.map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
    let guard = hooks.hook(TOOL_PRE).named(PROTECT_POLICY).priority(PRIORITY).on_error(OnError::Deny);
    guard.run(move |event: Event<ToolPre>| {
        let command = event.text_at("/tool_input/command").filter(|_| event.tool_name() == "Bash");
        let denial = command.and_then(|command| {
            let analysis = analyse(command);
            let why = match administers(command, &analysis) {
                Some(program) => format!("tools cannot use `{program}` for the policy that decides about them"),
                None => {
                    let path = named_file(command, &analysis, &workspace, &secrets, &home)?;
                    format!("commands cannot name `{path}`, which decides what tools may do or records what they did")
                }
            };
            Some(HookResult::deny(format!("{why}; if it is needed, ask the user to do it")))
        });
        async move { denial }
    });
}

/// Returns the program of a command that would change the policy, or end the daemon.
fn administers(command: &str, analysis: &Analysis) -> Option<String> {
    let is_denied = |program: &str, arguments: &[String]| {
        let mut words = arguments.iter().map(String::as_str);
        match program {
            "amplifier" => match words.next() {
                Some("guard") => words.next() != Some("status"),
                first => !first.is_some_and(|first| SHOWING_WORDS.contains(&first)),
            },
            "amplifier-hook" => true,
            _ if ENDING_PROGRAMS.contains(&program) => {
                words.any(|word| word.contains("amplifier") || word.contains("guard"))
            }
            _ => false,
        }
    };
    let known = |ShellCommand { program, arguments, .. }: &&ShellCommand| is_denied(program, arguments);
    if let Some(found) = analysis.commands.iter().find(known) {
        return Some(found.program.clone());
    }
    if analysis.analysable {
        return None;
    }
    // Not all programs are known, so the words of the text count.
    let words: Vec<String> = command
        .split(|c: char| c.is_whitespace() || "\"'`;&|(){}<>".contains(c))
        .filter(|word| !word.is_empty())
        .map(|word| word.rsplit('/').next().unwrap_or(word).to_owned())
        .collect();
    let programs = words.iter().enumerate();
    let programs =
        programs.filter(|(_, word)| OWN_PROGRAMS.contains(&word.as_str()) || ENDING_PROGRAMS.contains(&word.as_str()));
    let mut denied = programs.filter(|(at, word)| is_denied(word, &words[at + 1..]));
    denied.next().map(|(_, word)| word.clone())
}

/// Returns a protected file that a command names, as its text or as an argument.
fn named_file(
    command: &str,
    analysis: &Analysis,
    workspace: &Workspace,
    secrets: &[PathBuf],
    home: &str,
) -> Option<String> {
    // Approximates the expansions of a shell.
    let plain = |text: &str| {
        let text: String = text.chars().filter(|c| !"\"'\\".contains(*c)).collect();
        text.replace("${HOME}", home).replace("$HOME", home).replace("~/", &format!("{home}/"))
    };
    let protected = || workspace.protected().chain(secrets.iter().map(PathBuf::as_path));
    let text = plain(command);
    let in_text = |path: &&Path| {
        let relative = path.strip_prefix(workspace.root()).unwrap_or(path);
        [*path, relative].iter().any(|path| !path.as_os_str().is_empty() && text.contains(&*path.to_string_lossy()))
    };
    let arguments = analysis.commands.iter().flat_map(|command| &command.arguments);
    let named = || {
        arguments.into_iter().find_map(|argument| {
            let path =
                argument.split_once('=').filter(|_| argument.starts_with('-')).map_or(&**argument, |(_, path)| path);
            let path = follow_links(workspace.root(), Path::new(&plain(path))).ok()?;
            protected().any(|protected| path.starts_with(protected)).then_some(path)
        })
    };
    let found = protected().find(in_text).map(Path::to_owned).or_else(named)?;
    Some(workspace.display(&found))
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
