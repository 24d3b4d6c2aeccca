//! Runs of one linter.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amplifier_process::{CompletedProcess, describe};
use globset::GlobSet;

use super::launcher::LinterLauncher;
use crate::transport::{Program, head};
use crate::trust::PinnedFiles;

/// Maximum size of stdout and of stderr, in bytes.
const MOST_OUTPUT: usize = 1 << 20;

/// Longest findings of one run, in bytes.
const LONGEST_OUTPUT: usize = 20_000;

/// Longest excerpt of a failed linter's output, in bytes.
const LONGEST_REASON: usize = 300;

/// Prefix of the launcher's own errors.
const LAUNCHER: &[u8] = b"amplifier: ";

#[derive(Debug)]
pub(super) struct Linter {
    pub(super) name: String,
    pub(super) files: GlobSet,
    pub(super) command: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) exit_codes: Vec<i32>,
    pub(super) launcher: LinterLauncher,
    /// The files that must be unchanged since they were trusted.
    pub(super) held: Option<Arc<PinnedFiles>>,
    /// `true` once the missing linter was reported to the user.
    pub(super) is_reported_missing: AtomicBool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LintResult {
    Clean,
    Findings { linter: String, text: String },
    Failed(String),
}

impl Linter {
    pub(super) async fn lint(&self, file: &Path, workspace: &Path) -> LintResult {
        let program = Program::new(self.command_for(file)).sandbox(self.launcher.sandbox());
        let program = program.folder(workspace).pinned_files(self.held.clone());
        match program.find_change().await {
            Ok(None) => {}
            Ok(Some(why)) => return self.failure(&why),
            Err(error) => return self.failure(&error.to_string()),
        }
        match program.run(&[], self.timeout, MOST_OUTPUT).await {
            Ok(ran) if self.could_not_start(&ran) && self.is_reported_missing.swap(true, Ordering::Relaxed) => {
                LintResult::Clean
            }
            Ok(ran) => self.conclude(&ran),
            Err(_) if self.is_reported_missing.swap(true, Ordering::Relaxed) => LintResult::Clean,
            Err(error) => self.failure(&error.to_string()),
        }
    }

    fn could_not_start(&self, ran: &CompletedProcess) -> bool {
        let code = ran.status.and_then(|status| status.code());
        !self.launcher.sandbox().is_none() && matches!(code, Some(126 | 127)) && ran.stderr.bytes.starts_with(LAUNCHER)
    }

    fn command_for(&self, file: &Path) -> Vec<String> {
        let file = file.display().to_string();
        // A file name must not be read as an option.
        let file = if file.starts_with('-') { format!("./{file}") } else { file };
        self.command.iter().map(|word| word.replace("{file}", &file)).collect()
    }

    fn conclude(&self, ran: &CompletedProcess) -> LintResult {
        let (stdout, stderr) = (head(&ran.stdout.bytes, LONGEST_OUTPUT), head(&ran.stderr.bytes, LONGEST_OUTPUT));
        if ran.stdout.exceeds_limit() || ran.stderr.exceeds_limit() {
            return self.failure("output limit exceeded; the linter was stopped");
        }
        if !ran.in_time {
            return self.failure(&format!("time limit of {:?} exceeded; the linter was stopped", self.timeout));
        }
        // The launcher's own error is no finding, whatever its exit code.
        if !self.launcher.sandbox().is_none() && ran.stderr.bytes.starts_with(LAUNCHER) {
            return self.failure(stderr.trim());
        }
        match ran.status.and_then(|status| status.code()) {
            Some(0) if stdout.trim().is_empty() => LintResult::Clean,
            Some(0) => self.findings(stdout),
            Some(code) if self.exit_codes.contains(&code) => match (stdout.trim(), stderr.trim()) {
                ("", "") => self.failure(&format!("ended with exit code {code} without output")),
                // Some linters print their findings to stderr.
                ("", _) => self.findings(stderr),
                _ => self.findings(stdout),
            },
            _ => {
                let output = if stderr.trim().is_empty() { stdout } else { stderr };
                let output = head(output.trim().as_bytes(), LONGEST_REASON);
                let output = if output.is_empty() { output } else { format!(": {output}") };
                self.failure(&format!("{}{output}", describe(ran.status)))
            }
        }
    }

    fn findings(&self, text: String) -> LintResult {
        LintResult::Findings { linter: self.name.clone(), text: text.trim_end().to_owned() }
    }

    fn failure(&self, why: &str) -> LintResult {
        LintResult::Failed(format!("the linter `{}` failed: {why}", self.name))
    }
}
