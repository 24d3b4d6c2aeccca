//! The parts of a command, and the names by which a rule may allow each.
//!
//! A name is as wide as "every `cargo test`", or "`cargo`, where it builds and tests". It counts only for a command that loses nothing, sends
//! nothing and reveals all that it runs; every other command is only itself.

use super::calls::ProgramCall;
use super::command::{base_name, is_system};
use super::effects::Effects;
use super::{Analysis, limits, programs, read_paths, runners, walk};

/// The parts of a command that can be analysed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandWidths {
    /// The programs that do more than read, and the files that the command writes.
    pub parts: Vec<CommandPart>,
    /// The folders that the command enters, as written.
    pub folders: Vec<String>,
    /// `true` if only the whole command can be named: its parts depend on each other, or on something unknown.
    pub only_whole: bool,
}

/// A part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandPart {
    /// A program that only reads, or an input file of one.
    Reads {
        /// The program; empty for an input file.
        program: String,
        /// The arguments that may be paths; `None` if the program may read other files, too.
        paths: Option<Vec<String>>,
    },
    /// A program that runs.
    Program {
        /// The names that may allow this run, from narrow to wide: `cargo test`, `cargo`, `*` for all programs of development. Empty if only the
        /// whole command may.
        allowed: Vec<String>,
        /// All names of the program, from narrow to wide.
        names: Vec<String>,
        /// Arguments that may be paths. The names count only if these are in the workspace.
        paths: Vec<String>,
        /// Arguments that may be files. The names count only if none leads out of the workspace, also not through a link.
        operands: Vec<String>,
    },
    /// A file that is written: all its possible paths, relative to the workspace. `None` if they are unknown.
    Writes(Option<Vec<String>>),
    /// A folder that is created: all its possible paths.
    Creates(Option<Vec<String>>),
}

/// Returns the parts of a command; `None` if it cannot be analysed.
#[must_use]
pub fn command_widths(command: &str) -> Option<CommandWidths> {
    limits::admit(command).ok()?;
    let walk::WalkResult { analysis, commands, effects, calls, inputs, defines } = super::walk(command)?;
    if !analysis.analysable {
        return None;
    }
    let Analysis { runs_download, moves, .. } = analysis;
    let has_settings = commands.iter().any(|text| assigns(&text.plain));
    let enters = |call: &&ProgramCall| call.program == "cd";
    let folders: Vec<Option<String>> = calls.iter().filter(enters).map(folder_of).collect();
    let moves_oddly = moves && (folders.is_empty() || folders.iter().any(Option::is_none));
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(call) = calls.get(at) {
        let inner = calls.get(at + 1..at + 1 + call.inner).unwrap_or_default();
        let container = container_parts(call, inner, &effects);
        // What runs in a container is none of the workspace's programs.
        at += 1 + container.as_ref().map_or(0, |_| call.inner);
        parts.extend(container.unwrap_or_else(|| parts_of(call, inner, &effects)));
    }
    parts.extend(inputs.into_iter().map(|file| CommandPart::Reads {
        program: String::new(),
        paths: file.and_then(|file| read_paths::read_paths("cat", &[Some(file)])),
    }));
    // Redirections are between the files of programs.
    let of_programs = |at: &usize| calls.iter().any(|call| call.writes.contains(at));
    let redirected = (0..effects.writes.len()).filter(|at| !of_programs(at));
    // A redirection may lose something, too.
    let is_lost = |at: &usize| !calls.iter().any(|call| call.losses.contains(at));
    let loses = (0..effects.losses.len()).any(|at| is_lost(&at));
    parts
        .extend(redirected.filter_map(|at| effects.writes.get(at)).map(|file| CommandPart::Writes(file.paths.clone())));
    Some(CommandWidths {
        parts,
        folders: folders.into_iter().flatten().collect(),
        only_whole: loses || runs_download || moves_oddly || has_settings || defines,
    })
}

/// Returns `true` if the text is an assignment that may change what programs do.
fn assigns(text: &str) -> bool {
    const HARMLESS: [&str; 22] = [
        "RUST_BACKTRACE",
        "RUST_LOG",
        "CI",
        "NODE_ENV",
        "CARGO_TERM_COLOR",
        "FORCE_COLOR",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "DEBUG",
        "CARGO_INCREMENTAL",
        "GIT_EDITOR=true",
        "GIT_EDITOR=:",
        "GIT_PAGER=cat",
        "PAGER=cat",
        "LOG_LEVEL",
        "PORT",
        "CGO_ENABLED",
        "TZ",
        "NODE_NO_WARNINGS",
        "PYTHONHASHSEED",
        "UV_NO_PROGRESS",
        "DOCKER_BUILDKIT",
    ];
    let program = text.split(' ').next().unwrap_or_default();
    program.split_once('=').is_some_and(|(name, _)| !HARMLESS.contains(&name) && !HARMLESS.contains(&text))
}

/// Returns the folder of `cd`, if it is written out.
fn folder_of(call: &ProgramCall) -> Option<String> {
    match call.arguments.as_slice() {
        [Some(folder)] if !folder.is_empty() && !folder.starts_with(['-', '~']) => Some(folder.clone()),
        _ => None,
    }
}

/// Returns `true` if all arguments are known, and nothing is lost.
fn is_safe(call: &ProgramCall) -> bool {
    call.is_certain && !call.harms && !call.program.is_empty()
}

/// Returns the parts of a new container that reaches nothing but mounted folders, or of a program in a container that only reads there.
fn container_parts(call: &ProgramCall, inner: &[ProgramCall], effects: &Effects) -> Option<Vec<CommandPart>> {
    let arguments: Vec<&str> = call.arguments.iter().map(Option::as_deref).collect::<Option<_>>()?;
    let name = call.program.as_str();
    if !is_safe(call) || call.sends {
        return None;
    }
    let only_reads = || !inner.is_empty() && inner.iter().all(|call| call.reads);
    let is_query = || {
        matches!(arguments.first(), Some(&("exec" | "compose")))
            && runners::passes_through(name, &arguments)
            && only_reads()
    };
    let allowed = match (name, arguments.as_slice()) {
        // Files with secrets, files that are written, and logs that are sent.
        ("docker" | "podman", ["run", rest @ ..]) if rest.iter().any(|word| names_files(word)) => return None,
        ("docker" | "podman", ["run", ..]) => vec![format!("{name} run")],
        ("docker" | "podman" | "docker-compose", _) if is_query() => {
            vec![name.to_owned(), programs::ANY_PROGRAM.to_owned()]
        }
        _ => return None,
    };
    let names = allowed.iter().cloned().chain([name.to_owned(), programs::ANY_PROGRAM.to_owned()]).collect();
    let mounts = effects.writes.get(call.writes.clone()).unwrap_or_default();
    let part = CommandPart::Program { allowed, names, paths: Vec::new(), operands: Vec::new() };
    Some(std::iter::once(part).chain(mounts.iter().map(|file| CommandPart::Writes(file.paths.clone()))).collect())
}

fn names_files(option: &str) -> bool {
    ["--env-file", "--cidfile", "--log-"].iter().any(|start| option.starts_with(start))
}

/// Returns the parts of a program; `inner` are the programs that it runs.
fn parts_of(call: &ProgramCall, inner: &[ProgramCall], effects: &Effects) -> Vec<CommandPart> {
    let (folder, name) = (folder_before(&call.program), base_name(&call.program));
    let is_plain = folder.is_none_or(is_system);
    if call.reads {
        let paths = match is_plain {
            // What a wrapper runs is a part of its own.
            true if !inner.is_empty() && name != "find" => Some(Vec::new()),
            true => read_paths::read_paths(name, &call.arguments),
            false => None,
        };
        return vec![CommandPart::Reads { program: name.to_owned(), paths }];
    }
    let arguments: Vec<&str> = call.arguments.iter().map(|argument| argument.as_deref().unwrap_or("…")).collect();
    let writes = || effects.writes.get(call.writes.clone()).unwrap_or_default();
    let is_safe = is_safe(call);
    if is_plain && is_safe && !call.sends && !inner.is_empty() && runners::passes_through(name, &arguments) {
        // A program that only reads or writes files has no name that this one could have. A wrapper runs nothing of its own; others prepare a project.
        let is_wrapper = runners::WRAPPERS.contains(&name);
        let has_no_name =
            |call: &ProgramCall| call.reads || !is_wrapper && programs::WRITERS.contains(&base_name(&call.program));
        let allowed = || vec![name.to_owned(), programs::ANY_PROGRAM.to_owned()];
        let part = inner.iter().all(has_no_name).then(|| program_part(call, allowed(), is_plain));
        // Its own files, such as the report of `time -o`.
        let own = call.writes.clone().filter(|at| !inner.iter().any(|call| call.writes.contains(at)));
        let files = own.filter_map(|at| effects.writes.get(at));
        return part.into_iter().chain(files.map(|file| CommandPart::Writes(file.paths.clone()))).collect();
    }
    if is_plain
        && is_safe
        && programs::WRITERS.contains(&name)
        && programs::is_plain_writer(name, &arguments)
        && !writes().is_empty()
    {
        let part = if programs::only_creates(name, &arguments) { CommandPart::Creates } else { CommandPart::Writes };
        return writes().iter().map(|file| part(file.paths.clone())).collect();
    }
    let is_push = is_plain && programs::is_plain_push(name, &arguments);
    let allowed = match is_safe && (!call.sends || is_push) {
        false => Vec::new(),
        true if is_plain => {
            let mut allowed = programs::text_names(name, &arguments, call.input.as_deref());
            if allowed.is_empty() {
                allowed = programs::allowed_names(name, &arguments);
            }
            if !allowed.is_empty() && programs::is_everyday(name, &arguments) {
                allowed.push(programs::ANY_PROGRAM.to_owned());
            }
            allowed
        }
        // A program in the workspace, by its path.
        true => vec![call.program.clone()],
    };
    let mut parts = vec![program_part(call, allowed, is_plain)];
    parts.extend(writes().iter().map(|file| CommandPart::Writes(file.paths.clone())));
    parts
}

fn program_part(call: &ProgramCall, allowed: Vec<String>, is_plain: bool) -> CommandPart {
    let name = base_name(&call.program);
    let arguments: Vec<&str> = call.arguments.iter().map(|argument| argument.as_deref().unwrap_or("…")).collect();
    let subcommand = arguments.first().filter(|word| programs::is_subcommand(word));
    let mut names: Vec<String> = subcommand.map(|subcommand| format!("{name} {subcommand}")).into_iter().collect();
    names.extend([name.to_owned(), programs::ANY_PROGRAM.to_owned()]);
    let mut paths: Vec<String> = arguments.iter().flat_map(|argument| possible_paths(argument)).collect();
    if !is_plain {
        paths.push(call.program.clone());
    }
    paths.sort_unstable();
    paths.dedup();
    let operands = arguments.iter().flat_map(|word| operand_of(word)).map(str::to_owned).collect();
    CommandPart::Program { allowed, names, paths, operands }
}

fn folder_before(program: &str) -> Option<&str> {
    program.rsplit_once('/').map(|(folder, _)| folder)
}

/// Returns the text of an argument, or the value of an option, that may be a file.
fn operand_of(argument: &str) -> Option<&str> {
    let value = match argument.starts_with('-') {
        true => argument.split_once('=').map(|(_, value)| value),
        false => Some(argument),
    };
    // The text of a message is no file.
    value.filter(|value| !value.is_empty() && !value.contains([' ', '\n', '~', '$']))
}

/// Returns the texts in an argument that may be paths outside of the workspace: the argument, and the value of an option.
fn possible_paths(argument: &str) -> Vec<String> {
    let value = argument.split_once('=').map(|(_, value)| value);
    let leaves = |text: &&str| {
        text.starts_with(['/', '~']) || text.split('/').any(|part| part.ends_with("..") && !part.ends_with("..."))
    };
    let attached = argument.strip_prefix('-').and_then(|option| option.find('/').and_then(|at| option.get(at..)));
    [Some(argument), value, attached].into_iter().flatten().filter(leaves).map(str::to_owned).collect()
}
