//! `amplifier audit verify`: the integrity of a log.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_audit::{PublicKey, Report, Verifier};
use amplifier_core::text::counted;
use amplifier_host::{Home, anchors};
use anyhow::{Context, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::LogLocation;
use crate::commands::output::{print, print_json};
use crate::flags::Flags;

/// Verify every byte, link and signature of the log
///
/// Exit codes: 0 sound, 1 unsound, 2 wrong usage, 4 not checked, because the log is unreadable.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    place: LogLocation,
    /// Public key that must have signed the log; without it, the key named in the log is trusted
    #[arg(long, value_name = "PUBLIC_KEY")]
    key: Option<PublicKey>,
    /// File of an anchor with checkpoints; can be repeated [default for your own log: the configured anchors]
    #[arg(long, value_name = "FILE")]
    checkpoints: Vec<PathBuf>,
    /// Configuration file
    #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        let mut verifier = Verifier::new();
        if let Some(key) = self.key {
            verifier = verifier.key(key);
        }
        // The configured anchors belong to the user's own log. A missing or empty anchor file may have been tampered with, so it is an
        // error.
        let checkpoints = match &home {
            Ok(home) if self.checkpoints.is_empty() && self.place.folder.is_none() => {
                anchors::files(&Flags { config: self.config, ..Flags::default() }.load(home)?.anchors)
            }
            _ => self.checkpoints,
        };
        let folder = self.place.or_home(home)?;
        for file in &checkpoints {
            let context = || format!("`{}`", file.display());
            let text = std::fs::read(file).with_context(context)?;
            ensure!(!text.is_empty(), "checkpoint file `{}` is empty", file.display());
            verifier = verifier.checkpoints(&text).with_context(context)?;
        }
        let report = verify_log(verifier, &folder)?;
        if self.json { print_json(&report.to_json()) } else { print(report.to_string()) }?;
        // Output may fail; the exit code is the result.
        Ok(ExitCode::from(report.integrity().exit_code()))
    }
}

/// Verifies the log in a folder, with a progress bar on a terminal.
pub(crate) fn verify_log(verifier: Verifier<'_>, folder: &Path) -> anyhow::Result<Report> {
    let bar = progress_bar("verifying")?;
    let verifier = verifier.progress(|progress| {
        bar.set_length(progress.of);
        bar.set_position(progress.bytes);
        bar.set_message(counted(progress.records, "record"));
    });
    let report = verifier.folder(folder);
    bar.finish_and_clear();
    report.with_context(|| format!("`{}`", folder.display()))
}

/// Returns a progress bar for bytes; hidden without a terminal.
pub(crate) fn progress_bar(doing: &str) -> anyhow::Result<ProgressBar> {
    let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let template = format!("{doing} {{bar:30}} {{percent:>3}}%  {{bytes_per_sec}}  {{msg}}");
    Ok(bar.with_style(ProgressStyle::with_template(&template)?))
}
