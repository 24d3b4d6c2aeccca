//! Static analysis of shell commands, without running them.
//!
//! [`analyse`] parses a command with two grammars of bash, walks every simple command in it, and reports the programs, the
//! files written, and `readonly` if the command is proven to only read. A command that cannot be fully analysed is reported as
//! such.
//!
//! ```
//! use amplifier_modules::shell::analyse;
//!
//! let listing = analyse("ls -l | sort -k5");
//! assert_eq!(listing.programs, ["ls", "sort"]);
//! assert!(listing.readonly);
//!
//! let evasive = analyse("$(echo rm) -rf build");
//! assert!(!evasive.analysable && !evasive.readonly);
//! ```

mod braces;
mod builtins;
mod calls;
mod changed_paths;
mod changes;
mod command;
mod containers;
mod copies;
mod database;
mod declarations;
mod destructive;
mod destructive_calls;
mod dialect;
mod downloads;
mod dry_run;
mod effects;
mod embedded;
mod emptying;
mod exemption;
mod fetch;
mod folders;
mod force_push;
mod git;
mod git_changes;
mod grammar;
mod installs;
mod languages;
mod limits;
mod listings;
mod network;
mod options;
mod ordinary;
mod packages;
mod parameter;
mod parse;
mod program_text;
mod programs;
mod python;
mod python_reads;
mod queries;
mod read_paths;
mod readers;
mod readonly;
mod recent;
mod runners;
mod scan;
mod scripts;
mod sed;
mod sed_edits;
mod services;
mod shells;
mod sql;
mod ssh;
mod subscript;
mod syntax;
mod tool_options;
mod variables;
mod verbs;
mod walk;
mod widths;
mod word;
mod wrappers;
mod writes;
mod written_files;

use serde::Serialize;

pub use self::changed_paths::{ChangeReach, ChangedPath, CommandChanges, UnknownProgram};
pub(crate) use self::effects::{ChangeExtent, Effects, Exemption, FileChange, FileReference, ProgramRun};
pub(crate) use self::exemption::{is_litter_file, is_litter_name};
pub use self::programs::ANY_PROGRAM;
pub(crate) use self::readers::LOADERS;
pub(crate) use self::walk::CommandText;
pub use self::widths::{CommandPart, CommandWidths, command_widths};

/// Stack size: the reader of bash and the walk are recursive, and the limits allow this depth.
const STACK: usize = 256 << 20;

/// The result of the analysis of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// `true` if every program that would run is known.
    pub analysable: bool,
    /// The reason if the command is not analysable.
    pub why_not: Option<String>,
    /// The base names of the programs, in order, without duplicates.
    pub programs: Vec<String>,
    /// The simple commands, in order, including those run by other commands.
    pub commands: Vec<ShellCommand>,
    /// The files that redirections and known programs write, move or delete: without quotes if known, otherwise as written,
    /// with `…` for text that is known only at run time.
    pub writes: Vec<String>,
    /// The files that known programs delete, in the same notation.
    pub deletes: Vec<String>,
    /// `true` if a program known to use the network runs. Connections to this machine, such as `curl localhost`, do not count.
    pub network: bool,
    /// The known remote hosts.
    pub hosts: Vec<String>,
    /// The reason if the command sends data or changes something on another machine, or may do so. Reading, and installing
    /// packages by name, do not count.
    pub sends: Option<String>,
    /// `true` if the command runs something that it has downloaded, such as `curl … | sh`.
    pub runs_download: bool,
    /// `true` if the command overwrites or deletes something on a git remote.
    pub force_push: bool,
    /// The reason if the command is destructive, such as "deletes recursively (`rm -rf build`)".
    pub destructive: Option<String>,
    /// A reason to be careful that is neither destruction nor sending: a push that may be forced, a download or a file of commands that runs.
    pub caution: Option<String>,
    /// `true` if the command is proven to only read.
    pub readonly: bool,
    /// `true` if a part of the command runs in another folder, which changes the meaning of relative paths.
    pub moves: bool,
}

impl Analysis {
    /// Returns the reason to be careful: the command is destructive, not analysable, runs or forces something, or changes something on another
    /// machine.
    pub fn why(&self) -> Option<&str> {
        // The reason for a field that is true explains more than a part that is not analysable.
        let certain = self.caution.as_ref().filter(|_| self.runs_download || self.force_push);
        let reasons = [self.destructive.as_ref(), certain, self.why_not.as_ref(), self.caution.as_ref()];
        reasons.into_iter().flatten().chain(&self.sends).next().map(String::as_str)
    }
}

/// A simple command: a program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShellCommand {
    /// The program's name, without its folder.
    pub program: String,
    /// The arguments without quotes; `…` stands for text that is known only at run time.
    pub arguments: Vec<String>,
    /// `true` if all arguments are known.
    pub resolved: bool,
}

/// Analyses a command. Anything but a fully understood command is "not analysable"; the analysis never fails.
#[must_use]
pub fn analyse(command: &str) -> Analysis {
    if let Err(why) = limits::admit(command) {
        return Analysis { why_not: Some(why), ..Analysis::default() };
    }
    walk(command).map_or_else(unparsed, |walked| walked.analysis)
}

/// Returns the simple commands of a command, including those run by other commands: the program's name without its folder, and
/// the arguments without quotes. Assignments are included unless they are harmless. `…` stands for text that is known only at
/// run time.
///
/// # Errors
/// If the command is not analysable; the message is the reason.
pub(crate) fn commands(command: &str) -> Result<Vec<CommandText>, String> {
    limits::admit(command)?;
    let walked = walk(command).unwrap_or_else(|| walk::WalkResult {
        analysis: unparsed(),
        commands: Vec::new(),
        effects: Effects::default(),
        calls: Vec::new(),
        inputs: Vec::new(),
        defines: false,
    });
    match walked.analysis {
        Analysis { analysable: true, .. } => Ok(walked.commands),
        Analysis { why_not, .. } => Err(why_not.unwrap_or_default()),
    }
}

/// Analyses a command, including its effects on files and services.
pub(crate) fn inspect(command: &str) -> (Analysis, Effects) {
    if let Err(why) = limits::admit(command) {
        return (Analysis { why_not: Some(why), ..Analysis::default() }, Effects::default());
    }
    walk(command).map_or_else(|| (unparsed(), Effects::default()), |walked| (walked.analysis, walked.effects))
}

/// Walks a command in a separate thread, which contains a panic of a parser.
fn walk(command: &str) -> Option<walk::WalkResult> {
    if let Some(known) = recent::find(command) {
        return Some(known);
    }
    let walked = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("shell-analysis".into())
            .stack_size(STACK)
            .spawn_scoped(scope, || walk::Walker::walk(command))
            .ok()?
            .join()
            .ok()
    })?;
    recent::remember(command, &walked);
    Some(walked)
}

fn unparsed() -> Analysis {
    Analysis { why_not: Some("the command could not be parsed; simplify the command".into()), ..Analysis::default() }
}
