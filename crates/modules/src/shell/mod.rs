//! What a shell command would do, without running it.
//!
//! [`analyse`] reads a command with two grammars of bash, walks every simple command in it, and says which programs run, what is
//! written, and whether it is proven that nothing but reading happens. What it cannot see through, it says it cannot.
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
mod closing;
mod command;
mod containers;
mod copies;
mod database;
mod declarations;
mod destructive;
mod dialect;
mod dry_run;
mod effects;
mod embedded;
mod emptying;
mod exemption;
mod fetch;
mod folders;
mod git;
mod languages;
mod limits;
mod listings;
mod network;
mod options;
mod packages;
mod parameter;
mod parse;
mod program_text;
mod python;
mod readonly;
mod remote;
mod scan;
mod scripts;
mod sed;
mod services;
mod shells;
mod subscript;
mod syntax;
mod variables;
mod verbs;
mod walk;
mod word;
mod wrappers;
mod writes;
mod written_files;

use serde::Serialize;

pub(crate) use self::effects::{Effects, Exemption, FileReference};
pub(crate) use self::exemption::{is_litter_file, is_litter_name};
pub(crate) use self::walk::CommandText;

/// The parser of the second grammar and the walk descend the stack; this is room for the deepest input that the limits let through.
const STACK: usize = 256 << 20;

/// What is known of a command before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// Whether every program that would run is known.
    pub analysable: bool,
    /// Why the command is not analysable.
    pub why_not: Option<String>,
    /// The base names of the programs, in order, without repetition.
    pub programs: Vec<String>,
    /// The simple commands, in order, also those that other commands run.
    pub commands: Vec<ShellCommand>,
    /// The files that redirections and known programs write to, move or delete: without quotes where they are known, else as written,
    /// with `…` for what only shows when the command runs.
    pub writes: Vec<String>,
    /// The files that known programs delete, written in the same way.
    pub deletes: Vec<String>,
    /// Whether a program that is known for using the network runs. What stays on this machine, as `curl localhost` does, is no
    /// network.
    pub network: bool,
    /// The machines that it is known to speak with.
    pub hosts: Vec<String>,
    /// Why something is sent or changed elsewhere, or may be; reading and installing what is plainly named is neither.
    pub sends: Option<String>,
    /// Whether it runs something that it has downloaded itself, such as `curl … | sh`.
    pub runs_download: bool,
    /// Whether it overwrites or deletes what is on a remote of git.
    pub force_push: bool,
    /// Why the command destroys something, such as "deletes recursively (`rm -rf build`)".
    pub destructive: Option<String>,
    /// Whether it is proven that the command only reads.
    pub readonly: bool,
    /// Whether some of it runs in another folder, where paths begin elsewhere.
    pub moves: bool,
}

/// A simple command: a program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShellCommand {
    /// The program's name, without its folder.
    pub program: String,
    /// The arguments without quotes; `…` stands for what is known only when the command runs.
    pub arguments: Vec<String>,
    /// Whether all arguments are known.
    pub resolved: bool,
}

/// Says what a command would do. Anything but a plain, wholly understood command is "not analysable"; no input makes it fail.
#[must_use]
pub fn analyse(command: &str) -> Analysis {
    if let Err(why) = limits::admit(command) {
        return Analysis { why_not: Some(why), ..Analysis::default() };
    }
    walk(command).map_or_else(unparsed, |walked| walked.analysis)
}

/// The simple commands of a command, also those that other commands run: the name of each program without its folder, and its
/// arguments without quotes; and the assignments, unless no program cares. `…` stands for what is known only when it runs.
///
/// # Errors
/// Says why the command is not analysable.
pub(crate) fn commands(command: &str) -> Result<Vec<CommandText>, String> {
    limits::admit(command)?;
    let walked = walk(command).unwrap_or_else(|| walk::WalkResult {
        analysis: unparsed(),
        commands: Vec::new(),
        effects: Effects::default(),
    });
    match walked.analysis {
        Analysis { analysable: true, .. } => Ok(walked.commands),
        Analysis { why_not, .. } => Err(why_not.unwrap_or_default()),
    }
}

/// What a command would do, and in detail what happens to files and services.
pub(crate) fn inspect(command: &str) -> (Analysis, Effects) {
    if let Err(why) = limits::admit(command) {
        return (Analysis { why_not: Some(why), ..Analysis::default() }, Effects::default());
    }
    walk(command).map_or_else(|| (unparsed(), Effects::default()), |walked| (walked.analysis, walked.effects))
}

/// A thread of its own also keeps a panic of a parser inside.
fn walk(command: &str) -> Option<walk::WalkResult> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("shell-analysis".into())
            .stack_size(STACK)
            .spawn_scoped(scope, || walk::Walker::walk(command))
            .ok()?
            .join()
            .ok()
    })
}

fn unparsed() -> Analysis {
    Analysis { why_not: Some("the command could not be parsed; write it more simply".into()), ..Analysis::default() }
}
