//! `amplifier hooks validate`: all mistakes of bundles.

mod junit;
mod sarif;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_agent::tool::Workspace;
use amplifier_core::DefaultDecision;
use amplifier_core::text::counted;
use amplifier_host::{Config, Home, bundles, find_project_bundle_file, tool_schemas};
use amplifier_modules::ToolSchema;
use amplifier_modules::bundle::{BundleCheck, Diagnostic, LoadedBundle, Severity};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::commands::exit::Exit;
use crate::commands::output::pipe_stdout;
use crate::flags::Flags;
use crate::terminal::{EscapeMode, visible};

/// Find the mistakes in bundles
///
/// Reports all mistakes of all files and their includes. Nothing of a bundle runs, so no trust is needed.
#[derive(Args, Debug)]
#[command(mut_args(Flags::hide_agent_flags))]
#[command(
    after_help = "Exit codes: 0 no mistakes, 1 mistakes, or warnings with `--deny-warnings`, 2 wrong usage, 4 not checked."
)]
pub(super) struct Validate {
    /// Bundles [default: the configured one, else that of the project, else that of the user]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the report
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ReportFormat,
    /// Print JSON, one mistake per line: the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    flags: Flags,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ReportFormat {
    /// Text for people
    Text,
    /// One JSON object per mistake and line
    Json,
    /// JUnit XML, for continuous integration
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// A checked file, with the findings in it and in its includes.
struct CheckedFile {
    file: PathBuf,
    hooks: usize,
    files: usize,
    found: Vec<Diagnostic>,
}

impl CheckedFile {
    fn count(&self, severity: Severity) -> usize {
        self.found.iter().filter(|found| found.severity == severity).count()
    }
}

impl Validate {
    /// Checks the files. Named files need no home.
    pub(super) fn run(self, home: Result<Home>) -> Result<ExitCode> {
        let home = if self.files.is_empty() { home? } else { home.unwrap_or_else(|_| Home::nonexistent()) };
        let config = self.flags.load(&home)?;
        let files = match self.files.is_empty() {
            true => vec![default_file(&config, &home)?],
            false => self.files,
        };
        let tools = tool_schemas(&Workspace::new(&config.workspace)?);
        let mut checked = Vec::<CheckedFile>::new();
        for file in files {
            let mut one = check(&file, &config, &home, &tools)?;
            // A file that several bundles include is reported once.
            one.found.retain(|found| !checked.iter().any(|before| before.found.contains(found)));
            checked.push(one);
        }
        let format = if self.json { ReportFormat::Json } else { self.format };
        let mut out = pipe_stdout();
        match format {
            ReportFormat::Text => write_text(&mut out, &checked)?,
            ReportFormat::Json => {
                checked.iter().flat_map(|one| &one.found).try_for_each(|found| writeln!(out, "{}", found.to_json()))?
            }
            ReportFormat::Junit => out.write_all(junit::report(&checked, self.deny_warnings).as_bytes())?,
            ReportFormat::Sarif => writeln!(out, "{:#}", sarif::report(&checked))?,
        }
        out.flush()?;
        let fails = |one: &CheckedFile| {
            one.count(Severity::Error) > 0 || self.deny_warnings && one.count(Severity::Warning) > 0
        };
        Ok(if checked.iter().any(fails) { Exit::Failed.into() } else { ExitCode::SUCCESS })
    }
}

/// Returns the bundle of the configuration, else that of the project, else that of the user.
fn default_file(config: &Config, home: &Home) -> Result<PathBuf> {
    let user = || Some(home.user_bundle()).filter(|user| user.exists());
    let found = config.bundle.clone().or_else(|| find_project_bundle_file(&config.workspace)).or_else(user);
    found.context("no bundle found; name one: amplifier hooks validate FILE")
}

fn check(file: &Path, config: &Config, home: &Home, tools: &[ToolSchema]) -> Result<CheckedFile> {
    let check = BundleCheck::load(file);
    let host = bundles::environment_for_check(check.bundle(), config, home)?;
    let (hooks, files) = (check.bundle().hooks.len(), check.bundle().files.len());
    let unused = unused_defaults(check.bundle());
    let mut found = check.finish(&host, tools);
    found.extend(unused);
    Ok(CheckedFile { file: file.to_owned(), hooks, files, found })
}

/// Returns warnings for `default: allow`, which sessions of this command ignore.
fn unused_defaults(bundle: &LoadedBundle) -> Vec<Diagnostic> {
    let allows = bundle.hooks.iter().filter(|placed| placed.entry.default == Some(DefaultDecision::Allow));
    let idle = allows.map(|placed| {
        let problem = "`amplifier` ignores `default: allow`: a request without an answer in time is denied; the key has an effect \
                       only in other programs";
        Diagnostic::no_effect(placed.problem_in("default", problem))
    });
    idle.collect()
}

/// Writes the findings to standard error, and a line per file to standard output.
fn write_text(out: &mut impl Write, checked: &[CheckedFile]) -> Result<()> {
    let mut errors = std::io::stderr().lock();
    for one in checked {
        for found in &one.found {
            writeln!(errors, "{}", visible(&found.to_string(), EscapeMode::Stream))?;
        }
        let (hooks, files) = (counted(one.hooks, "hook"), counted(one.files, "file"));
        let mistakes = match one.count(Severity::Error) {
            0 => "no mistakes".to_owned(),
            count => counted(count, "mistake"),
        };
        let warnings = match one.count(Severity::Warning) {
            0 => String::new(),
            count => format!(", {}", counted(count, "warning")),
        };
        writeln!(out, "{}: {hooks} in {files}, {mistakes}{warnings}", one.file.display())?;
    }
    Ok(())
}
