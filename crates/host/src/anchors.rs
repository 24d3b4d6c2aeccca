//! Anchors of the audit log, from configuration.

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

/// A second location for checkpoints.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "an anchor is a file, `{ command = [\"PROGRAM\", \"ARGUMENT\"] }`, or `{ http = \"URL\" }` with or without `headers`"
)]
pub enum AnchorConfig {
    /// A file.
    File(PathBuf),
    /// A program that receives each checkpoint.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// A server to which each checkpoint is posted.
    Http {
        /// The URL.
        http: String,
        /// The headers; `${NAME}` stands for an environment variable.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

impl AnchorConfig {
    /// Resolves relative paths against a folder.
    ///
    /// # Errors
    /// If the anchor is invalid.
    pub(crate) fn resolve_paths(self, folder: &Path) -> Result<Self> {
        Ok(match self {
            Self::File(file) if file.as_os_str().is_empty() => bail!("an anchor names no file"),
            Self::File(file) => Self::File(folder.join(file)),
            Self::Command { mut command } => {
                let program = command.first_mut().filter(|program| !program.is_empty());
                let program = program.context("the `command` of an anchor names no program")?;
                // A plain name is searched in `PATH`.
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

    /// Checks that the anchor is usable, without storing a checkpoint. Servers are not contacted.
    ///
    /// # Errors
    /// The reason why the anchor is unusable.
    pub fn check(&self, environment: &Environment) -> Result<()> {
        match self {
            Self::File(file) => check_file(file),
            Self::Command { command } => check_program(command.first().map_or("", String::as_str), environment),
            Self::Http { .. } => Ok(()),
        }
    }

    /// Returns the file to protect: the one with the checkpoints, or the program.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Command { command } => {
                command.first().map(Path::new).filter(|program| program.components().count() > 1)
            }
            Self::Http { .. } => None,
        }
    }

    /// Adds the anchor to the options of a log.
    ///
    /// # Errors
    /// If a header is invalid or needs a missing variable.
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
        // The first checkpoint creates the file and its folders. An empty file would look as if it had been emptied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = file.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok());
            let folder = folder.context("no existing parent folder")?;
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
        bail!("program not found or not executable");
    }
    Ok(())
}

/// Fails for an invalid server at configuration time, not at the first checkpoint.
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

/// Returns the anchors that are files. The others must be fetched to compare them with the log.
pub fn files(anchors: &[AnchorConfig]) -> Vec<PathBuf> {
    anchors
        .iter()
        .filter_map(|anchor| if let AnchorConfig::File(file) = anchor { Some(file.clone()) } else { None })
        .collect()
}

/// Omits arguments, addresses and headers, which may be secrets.
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
