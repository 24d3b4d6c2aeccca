//! One linter, and what it says about a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amplifier_process::{CompletedProcess, describe};
use globset::GlobSet;

use super::launcher::Launcher;
use crate::transport::{Program, head};
use crate::trust::Held;

/// How many bytes a linter may write, to stdout and to stderr.
const MOST_OUTPUT: usize = 1 << 20;

/// How many characters of that are kept.
const KEPT: usize = 20_000;

/// How many characters of it the person is told, if it broke.
const TOLD: usize = 300;

/// What a launcher says begins with this.
const LAUNCHER: &[u8] = b"amplifier: ";

/// A linter, checked.
#[derive(Debug)]
pub(super) struct Linter {
    pub(super) name: String,
    pub(super) files: GlobSet,
    pub(super) command: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) exit_codes: Vec<i32>,
    /// What stands before the command.
    pub(super) launcher: Launcher,
    /// The files that it needs to be as they were trusted.
    pub(super) held: Option<Arc<Held>>,
    /// Whether the person knows already that it cannot be started.
    pub(super) is_missed: AtomicBool,
}

/// What a linter says about a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing.
    Clean,
    /// Something is wrong with the file.
    Found { linter: String, text: String },
    /// Something is wrong with the linter.
    Broke(String),
}

impl Linter {
    /// Runs it on a file of the workspace.
    pub(super) async fn look_at(&self, file: &Path, workspace: &Path) -> Said {
        let program = Program::new(self.command_for(file)).sandbox(self.launcher.sandbox());
        let program = program.folder(workspace).held(self.held.clone());
        match program.changed().await {
            Ok(None) => {}
            Ok(Some(why)) => return self.broke(&why),
            Err(error) => return self.broke(&error.to_string()),
        }
        match program.run(&[], self.timeout, MOST_OUTPUT).await {
            Ok(ran) if self.could_not_start(&ran) && self.is_missed.swap(true, Ordering::Relaxed) => Said::Clean,
            Ok(ran) => self.conclude(&ran),
            Err(_) if self.is_missed.swap(true, Ordering::Relaxed) => Said::Clean,
            Err(error) => self.broke(&error.to_string()),
        }
    }

    /// Whether the launcher ran, and could not start the linter.
    fn could_not_start(&self, ran: &CompletedProcess) -> bool {
        let code = ran.status.and_then(|status| status.code());
        !self.launcher.sandbox().is_none() && matches!(code, Some(126 | 127)) && ran.stderr.bytes.starts_with(LAUNCHER)
    }

    fn command_for(&self, file: &Path) -> Vec<String> {
        let file = file.display().to_string();
        // A file must not be taken for an option.
        let file = if file.starts_with('-') { format!("./{file}") } else { file };
        self.command.iter().map(|word| word.replace("{file}", &file)).collect()
    }

    fn conclude(&self, ran: &CompletedProcess) -> Said {
        let (stdout, stderr) = (head(&ran.stdout.bytes, KEPT), head(&ran.stderr.bytes, KEPT));
        if ran.stdout.exceeds_limit() || ran.stderr.exceeds_limit() {
            return self.broke("it wrote more than it may, and was ended");
        }
        if !ran.in_time {
            return self.broke(&format!("it took longer than {:?}, and was ended", self.timeout));
        }
        match ran.status.and_then(|status| status.code()) {
            Some(0) if stdout.trim().is_empty() => Said::Clean,
            Some(0) => self.found(stdout),
            Some(code) if self.exit_codes.contains(&code) => match (stdout.trim(), stderr.trim()) {
                ("", "") => self.broke(&format!("it ended with exit code {code} and said nothing")),
                // Some say on stderr what they find.
                ("", _) => self.found(stderr),
                _ => self.found(stdout),
            },
            _ => {
                let said = if stderr.trim().is_empty() { stdout } else { stderr };
                let said = head(said.trim().as_bytes(), TOLD);
                let said = if said.is_empty() { said } else { format!(": {said}") };
                self.broke(&format!("it {}{said}", describe(ran.status)))
            }
        }
    }

    fn found(&self, text: String) -> Said {
        Said::Found { linter: self.name.clone(), text: text.trim_end().to_owned() }
    }

    fn broke(&self, why: &str) -> Said {
        Said::Broke(format!("the linter `{}` could not be used: {why}", self.name))
    }
}
