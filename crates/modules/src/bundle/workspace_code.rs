//! Commands that load code from the workspace, in which they run.

use std::path::Path;

use super::{BundleError, HookDefinition, HookKind, MistakeCode};
use crate::shell;
use crate::trust::{RUNNERS, opaque_command_reason};

/// Runners that load no code of the project, at least not outside of a container.
const APART: [&str; 4] = ["docker", "pipx", "podman", "uvx"];

/// Interpreters that look for modules in the current folder. Python does not, because its hooks get `PYTHONSAFEPATH`.
const SEARCHING: [&str; 6] = ["bun", "deno", "node", "nodejs", "php", "tclsh"];

impl HookDefinition {
    /// Returns a warning if the agent may write code that the hook's program loads.
    pub(super) fn workspace_code_warning(&self) -> Option<BundleError> {
        let (key, command) = match self.entry.kind() {
            Ok(HookKind::Command(command)) => ("command", command),
            Ok(HookKind::Worker(command)) => ("worker", command),
            _ => return None,
        };
        let what = workspace_code(&self.absolute_command(command).to_line())?;
        let message = format!("{what} from the workspace, which the agent can write");
        let help = "a guard should run a program of the bundle; for feedback, nothing needs to change";
        Some(self.problem_in(key, message).coded(MistakeCode::WorkspaceCode).helped(Some(help.to_owned())))
    }
}

fn workspace_code(line: &str) -> Option<String> {
    let Ok(commands) = shell::commands(line) else {
        return Some("the command cannot be analysed, and may load code".to_owned());
    };
    let (_, effects) = shell::inspect(line);
    let is_relative = |file: &&str| file.contains('/') && Path::new(file).is_relative();
    let programs = effects.unknown_programs.iter().filter_map(|run| run.texts.first()).map(String::as_str);
    let scripts = effects.scripts.iter().map(|script| script.written.as_str());
    let file = programs.filter(is_relative).chain(scripts.filter(|file| Path::new(file).is_relative())).next();
    let loading = || commands.iter().find_map(|command| loading_program(&command.plain));
    file.map(|file| format!("`{file}` is run")).or_else(|| loading().map(|program| format!("`{program}` loads code")))
}

/// Returns the program of a command, if it loads code from the current folder.
fn loading_program(command: &str) -> Option<&str> {
    let program = command.split_whitespace().next()?;
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_runner = RUNNERS.contains(&name) && !APART.contains(&name);
    let runs_text = SEARCHING.contains(&name) && opaque_command_reason(command).is_some();
    // Lua looks in the current folder also for the modules of a script.
    let is_lua = matches!(name, "lua" | "luajit");
    (is_runner || runs_text || is_lua || shell::LOADERS.contains(&name)).then_some(program)
}
