//! `amplifier sessions`: stored sessions.

use amplifier_host::Home;
use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_agent::{Store, StoredSession};
use amplifier_core::session_id;
use amplifier_process::files::OpenOptionsExt;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::arguments::whole_number;
use super::chat::{SessionStart, converse};
use crate::flags::Flags;
use crate::terminal::{EscapeMode, Screen, visible};

/// List, read and continue stored sessions
#[derive(Args, Debug)]
pub struct SessionsCommand {
    #[command(subcommand)]
    command: Command,
}

/// An id can be shortened to its beginning or its end; `last` is the newest session.
#[derive(Subcommand, Debug)]
enum Command {
    /// List all sessions, newest first
    List {
        /// Print JSON, one session per line
        #[arg(long)]
        json: bool,
    },
    /// Print a session
    Show {
        /// Session id, its beginning or end, or `last`
        id: String,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Continue a session
    Resume {
        /// Session id, its beginning or end, or `last`
        #[arg(default_value = "last")]
        id: String,
        #[command(flatten)]
        flags: Flags,
    },
    /// Start a session that branches off another one
    Fork {
        /// Session id, its beginning or end, or `last`
        id: String,
        /// Turn after which the new session branches off [default: the last one]
        #[arg(long, value_parser = whole_number::<u64>, allow_negative_numbers = true)]
        turn: Option<u64>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Export a session
    Export {
        /// Session id, its beginning or end, or `last`
        id: String,
        /// Output format
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
        /// Print JSON lines: the same as `--format jsonl`
        #[arg(long, conflicts_with = "format")]
        json: bool,
        /// New file for the export [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Format {
    Markdown,
    Jsonl,
}

impl SessionsCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If the session is not found or cannot be read.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        let store = home.sessions();
        let mut out = std::io::stdout().lock();
        match self.command {
            Command::List { json: true } => {
                for session in store.list()? {
                    writeln!(out, "{}", serde_json::to_string(&session)?)?;
                }
            }
            Command::List { json: false } => list(&mut out, &store)?,
            Command::Show { id, json } => {
                let exported = store.export(&id)?;
                if json {
                    out.write_all(exported.jsonl().as_bytes())?;
                } else {
                    drop(out);
                    let screen = Screen::new();
                    screen.text(&exported.markdown());
                    screen.end_text()?;
                }
            }
            Command::Resume { id, flags } => {
                drop(out);
                return converse(&flags, home, SessionStart::Resume(id)).await;
            }
            Command::Fork { id, turn, flags } => {
                drop(out);
                return converse(&flags, home, SessionStart::Fork(id, turn)).await;
            }
            Command::Export { id, format, json, output } => {
                let exported = store.export(&id)?;
                let text = match if json { Format::Jsonl } else { format } {
                    Format::Markdown => exported.markdown(),
                    Format::Jsonl => exported.jsonl(),
                };
                match output {
                    // A terminal would obey control characters; a file or a program gets the unchanged text.
                    None if out.is_terminal() => out.write_all(visible(&text, EscapeMode::Stream).as_bytes())?,
                    None => out.write_all(text.as_bytes())?,
                    Some(path) => write_new(&path, &text)?,
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a new file that only its owner can read, like the stored session; never replaces an existing one.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).owner_only().open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("`{}` already exists; choose another name", path.display())
        }
        Err(error) => return Err(error).with_context(|| format!("`{}`", path.display())),
    };
    file.write_all(text.as_bytes()).with_context(|| format!("`{}`", path.display()))
}

/// Returns the short id of a session, or the whole id if another session has the same end.
fn shown_id(id: &str, sessions: &[StoredSession]) -> String {
    let short = session_id::short(id);
    let is_only = sessions.iter().filter(|other| other.id.ends_with(short)).count() == 1;
    if is_only { short } else { id }.to_owned()
}

fn list(out: &mut impl Write, store: &Store) -> Result<()> {
    let sessions = store.list()?;
    if sessions.is_empty() {
        writeln!(out, "No sessions yet. Start one with `amplifier chat` or `amplifier run`.")?;
        return Ok(());
    }
    let ids: Vec<String> = sessions.iter().map(|session| shown_id(&session.id, &sessions)).collect();
    let width = ids.iter().map(String::len).max().unwrap_or(0);
    writeln!(out, "{:<width$}  {:<16}  {:>5}  {:<10}  TITLE", "ID", "STARTED", "TURNS", "ENDED")?;
    for (session, id) in sessions.iter().zip(ids) {
        let title = visible(session.shown_title(), EscapeMode::Prose);
        let StoredSession { created, turns, ended, .. } = session;
        let begun = created.get(..16).unwrap_or(created).replace('T', " ");
        writeln!(out, "{id:<width$}  {begun:<16}  {turns:>5}  {:<10}  {title}", ended.as_deref().unwrap_or("open"))?;
    }
    Ok(())
}
