//! Second places for the checkpoints of the audit log, as they are configured.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use amplifier_audit::{Anchor, CommandAnchor, FileAnchor, HttpAnchor, LogOptions};
use amplifier_modules::transport::expand;
use amplifier_process::files::is_executable;
use serde::Deserialize;

use crate::environment::Environment;
use crate::error::{Error, ErrorContext, Result, bail};

/// A second place.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "an anchor is a file, `{ command = [\"PROGRAM\", \"ARGUMENT\"] }`, or `{ http = \"URL\" }` with or without `headers`"
)]
pub enum AnchorConfig {
    /// A file.
    File(PathBuf),
    /// A program that is given each checkpoint.
    Command {
        /// The program, and what it is called with.
        command: Vec<String>,
    },
    /// A server that each is posted to.
    Http {
        /// Where.
        http: String,
        /// What else is said; `${NAME}` stands for a variable of the environment.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

impl AnchorConfig {
    /// The same with paths that begin at that folder, if they are not whole.
    ///
    /// # Errors
    /// If nothing can be kept there.
    pub(crate) fn resolve_paths(self, folder: &Path) -> Result<Self> {
        Ok(match self {
            Self::File(file) if file.as_os_str().is_empty() => bail!("an anchor names no file"),
            Self::File(file) => Self::File(folder.join(file)),
            Self::Command { mut command } => {
                let program = command.first_mut().filter(|program| !program.is_empty());
                let program = program.context("the `command` of an anchor names no program")?;
                // A name alone is looked for where programs are.
                if program.contains('/') {
                    *program = folder.join(&*program).to_string_lossy().into_owned();
                }
                Self::Command { command }
            }
            Self::Http { http, headers } => {
                check_anchor(HttpAnchor::new(&http))?;
                Self::Http { http, headers }
            }
        })
    }

    /// Looks whether checkpoints could be kept there, without keeping one. A server is not asked.
    ///
    /// # Errors
    /// What is in the way.
    pub fn check(&self, environment: &Environment) -> Result<()> {
        match self {
            Self::File(file) => check_file(file),
            Self::Command { command } => check_program(command.first().map_or("", String::as_str), environment),
            Self::Http { .. } => Ok(()),
        }
    }

    /// The file that decides what is kept there: the one that it is kept in, or the program.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Command { command } => {
                command.first().map(Path::new).filter(|program| program.components().count() > 1)
            }
            Self::Http { .. } => None,
        }
    }

    /// Lets a log keep its checkpoints there, too.
    ///
    /// # Errors
    /// If a header needs a variable that is not set, or cannot be sent.
    pub fn add_to(&self, log: LogOptions) -> Result<LogOptions> {
        Ok(match self {
            Self::File(file) => log.anchor(FileAnchor::new(file)),
            Self::Command { command } => log.anchor(program(command)),
            Self::Http { http, headers } => {
                let mut anchor = HttpAnchor::new(http);
                for (name, value) in headers {
                    let value = expand(value).map_err(|why| Error::Refused(format!("`{name}` of an anchor {why}")))?;
                    anchor = anchor.header(name, &value);
                }
                log.anchor(check_anchor(anchor)?)
            }
        })
    }
}

fn check_file(file: &Path) -> Result<()> {
    match OpenOptions::new().read(true).append(true).open(file) {
        Ok(_) => Ok(()),
        // The first checkpoint makes it, with its folders. An empty one would be taken for one that was emptied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = file.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok());
            let folder = folder.context("it has no folder")?;
            tempfile::tempfile_in(folder).map(drop).with_context(|| format!("`{}`", folder.display()))
        }
        Err(error) => Err(error.into()),
    }
}

fn check_program(program: &str, environment: &Environment) -> Result<()> {
    let may_run = |file: &Path| file.metadata().is_ok_and(|found| is_executable(&found));
    let is_found = match program.contains('/') {
        true => may_run(Path::new(program)),
        false => environment
            .variable("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| may_run(&folder.join(program)))),
    };
    if !is_found {
        bail!("there is no such program, or nobody may run it");
    }
    Ok(())
}

/// The server, if it can be posted to: whoever configures it is told at once, not when the first checkpoint comes.
fn check_anchor(anchor: HttpAnchor) -> Result<HttpAnchor> {
    match anchor.fault() {
        Some(fault) => bail!("the `http` of an anchor: {fault}"),
        None => Ok(anchor),
    }
}

fn program(command: &[String]) -> CommandAnchor {
    let (program, args) = command.split_first().map_or(("", [].as_slice()), |(program, args)| (program.as_str(), args));
    CommandAnchor::new(program, args)
}

/// The files among them: what is kept elsewhere has to be fetched from there to be compared with the log.
pub fn files(anchors: &[AnchorConfig]) -> Vec<PathBuf> {
    anchors
        .iter()
        .filter_map(|anchor| if let AnchorConfig::File(file) = anchor { Some(file.clone()) } else { None })
        .collect()
}

/// Without secrets, which arguments, addresses and headers may be.
impl fmt::Display for AnchorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Command { command } => f.write_str(&program(command).name()),
            Self::Http { http, .. } => f.write_str(&HttpAnchor::new(http).name()),
        }
    }
}

impl fmt::Debug for AnchorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnchorConfig({self})")
    }
}
