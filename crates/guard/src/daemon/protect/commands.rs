//! Denies commands that name or change a protected file, and commands that administer the policy.

use std::path::{Path, PathBuf};

use amplifier_core::{Event, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre};
use amplifier_modules::shell::{Analysis, CommandChanges, ShellCommand};

use super::changes::{StartFolders, find_change};
use super::paths::ProtectedFiles;
use super::settings_paths::{self, may_equal};
use super::{PRIORITY, folder_of};

const PROTECT_POLICY: &str = "protect-policy";
/// Programs that could change the policy or answer its requests.
const OWN_PROGRAMS: [&str; 2] = ["amplifier", "amplifier-hook"];
/// The first words of `amplifier` that only show something.
const SHOWING_WORDS: [&str; 7] = ["--help", "-h", "--version", "-V", "doctor", "events", "tools"];
/// Programs that end others by name.
const ENDING_PROGRAMS: [&str; 2] = ["pkill", "killall"];
/// Fields with a command. The first one is ours.
const COMMAND_FIELDS: [&str; 3] = ["command", "cmd", "script"];
/// Fields with the folder of a command, beside that of the agent.
const FOLDER_FIELDS: [&str; 5] = ["workdir", "cwd", "dir_path", "directory", "working_directory"];

pub(super) fn register(hooks: &HookRegistry, files: ProtectedFiles) {
    let guard = hooks.hook(TOOL_PRE).named(PROTECT_POLICY).priority(PRIORITY).on_error(OnError::Deny);
    guard.run(move |event: Event<ToolPre>| {
        // A tool of an MCP server may run commands, too.
        let fields = if event.tool_name() == "Bash" { &COMMAND_FIELDS[..1] } else { &COMMAND_FIELDS[..] };
        let mut commands = fields.iter().filter_map(|field| event.text_at(&format!("/tool_input/{field}")));
        let denial = commands.find_map(|command| problem(command, &start_folders(&event, &files), &files));
        async move { denial.map(|why| HookResult::deny(format!("{why}; if it is needed, ask the user to do it"))) }
    });
}

/// Returns the folders in which a command may start.
fn start_folders(event: &Event<ToolPre>, files: &ProtectedFiles) -> StartFolders {
    let folder = folder_of(event, files);
    let fields = FOLDER_FIELDS.iter().filter_map(|field| event.text_at(&format!("/tool_input/{field}")));
    let named = fields.filter(|named| !named.is_empty());
    let named = named.flat_map(|named| files.candidates(&folder, named).unwrap_or_default());
    let mut folders: Vec<PathBuf> = named.collect();
    folders.push(folder);
    folders.dedup();
    // The payload of Codex leaves out the folder of a command.
    StartFolders { folders, may_be_elsewhere: event.text_at("/client") == Some("codex") }
}

/// Returns the reason to deny a command.
fn problem(command: &str, starts: &StartFolders, files: &ProtectedFiles) -> Option<String> {
    let changes = CommandChanges::analyse(&files.with_home(command));
    let analysis = &changes.analysis;
    if let Some(program) = administers(command, analysis) {
        return Some(format!("tools cannot use `{program}` for the policy that decides about them"));
    }
    if let Some(path) = named_file(command, analysis, starts, files) {
        return Some(format!(
            "commands cannot name `{path}`, which decides what tools may do or records what they did"
        ));
    }
    if analysis.readonly {
        return None;
    }
    let text = without_quotes(command);
    // Nothing is known of a command that cannot be parsed.
    let is_unparsed = analysis.commands.is_empty() && settings_paths::has_name_in(&text);
    if !analysis.analysable && (is_unparsed || settings_paths::is_named_in(&text)) {
        return Some(
            "the command names settings of an agent, and its text does not show what it does with them".to_owned(),
        );
    }
    find_change(&changes, &text, starts, files)
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
    // Not all programs are known, so the words of the text count, also as patterns.
    let words: Vec<String> = command
        .split(|c: char| c.is_whitespace() || "\"'`;&|(){}<>=".contains(c))
        .filter(|word| !word.is_empty())
        .map(|word| word.rsplit('/').next().unwrap_or(word).to_owned())
        .collect();
    let program = |word: &String| {
        let is_pattern = word.len() > 3 && !word.contains(settings_paths::UNKNOWN);
        let mut programs = OWN_PROGRAMS.iter().chain(&ENDING_PROGRAMS);
        programs.find(|program| word == *program || is_pattern && may_equal(word, program)).copied()
    };
    let mut found = words.iter().enumerate().filter_map(|(at, word)| Some((at, program(word)?)));
    found.find(|(at, program)| is_denied(program, &words[at + 1..])).map(|(_, program)| program.to_owned())
}

/// Returns a protected file that a command names, as its text or as an argument.
fn named_file(command: &str, analysis: &Analysis, starts: &StartFolders, files: &ProtectedFiles) -> Option<String> {
    let text = files.with_home(&without_quotes(command));
    let in_text = |path: &&Path| {
        let relative = path.strip_prefix(files.workspace.root()).unwrap_or(path);
        [*path, relative].iter().any(|path| !path.as_os_str().is_empty() && text.contains(&*path.to_string_lossy()))
    };
    if let Some(path) = files.named().find(in_text) {
        return Some(files.workspace.display(path));
    }
    if let Some(path) = settings_paths::path_in(&text) {
        return Some(path.to_owned());
    }
    let arguments = analysis.commands.iter().flat_map(|command| &command.arguments);
    arguments.into_iter().find_map(|argument| {
        let path = argument.split_once('=').filter(|_| argument.starts_with('-')).map_or(&**argument, |(_, path)| path);
        let mut found = starts.folders.iter().filter_map(|folder| files.candidates(folder, path).ok()).flatten();
        let is_named = |path: &PathBuf| files.named().any(|protected| path.starts_with(protected));
        found.find(is_named).map(|named| files.workspace.display(&named))
    })
}

fn without_quotes(text: &str) -> String {
    text.chars().filter(|c| !"\"'\\".contains(*c)).collect()
}
