//! `amplifier hooks test`: the tests of a bundle.

use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_core::text::counted;
use amplifier_core::{
    DecisionKind, EmissionReport, HookRegistry, InjectionReport, MessageReport, Outcome, OutputReport,
};
use amplifier_host::{Config, Home, bundles};
use amplifier_modules::bundle::{BundleTest, Expectation, LoadedBundle};
use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use super::try_out::missing_fields;
use super::{choose_bundle, decided_by, diff};
use crate::commands::exit::Exit;
use crate::commands::output::pipe_stdout;
use crate::flags::Flags;
use crate::session::excerpt;
use crate::terminal::{EscapeMode, visible};

/// Run the tests of a bundle
#[derive(Args, Debug)]
#[command(mut_args(Flags::hide_agent_flags))]
#[command(
    after_help = "Only the hooks of the bundle run. A session also has the hook `confirm`, which asks before changes; `amplifier hooks try` includes it.\n\n\
                  Exit codes: 0 all tests passed, 1 a test failed, 2 wrong usage, 4 not tested: the bundle is invalid, or another failure."
)]
pub(super) struct Test {
    /// Bundle [default: the configured one]
    file: Option<PathBuf>,
    /// Print JSON: one test per line, then the counts
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Test {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let config = self.flags.load(home)?;
        test(&choose_bundle(self.file, &config, home)?, &config, home, self.json).await
    }
}

/// Runs every test of a bundle and prints the results.
async fn test(bundle: &LoadedBundle, config: &Config, home: &Home, json: bool) -> Result<ExitCode> {
    let mut out = pipe_stdout();
    let failed = run(bundle, config, home, |result| {
        let passed = result.passed();
        if json {
            return Ok(writeln!(out, "{}", line(&result))?);
        }
        let TestResult { case, expected, found, failures, report, warning, .. } = result;
        let (style, word) = match passed {
            true => (AnsiColor::Green.on_default(), "ok"),
            false => (AnsiColor::Red.on_default(), "FAILED"),
        };
        writeln!(out, "test {} ... {style}{word}{style:#}", visible(&case.name, EscapeMode::Exact))?;
        show_side_effects(&mut out, &report)?;
        if let Some(warning) = warning {
            writeln!(out, "    warning: {}", visible(&warning, EscapeMode::Exact))?;
        }
        if expected != found {
            show_decision(&mut out, &report)?;
            writeln!(out, "    - expected\n    + found")?;
            diff::write(&mut out, 4, &expected, &found)?;
        }
        for HookFailure { hook, cause } in failures {
            let (hook, cause) = (visible(&hook, EscapeMode::Exact), visible(&cause, EscapeMode::Exact));
            writeln!(out, "    hook `{hook}` failed: {cause}")?;
        }
        Ok(())
    })
    .await?;
    let passed = bundle.tests.len() - failed;
    match json {
        true => writeln!(out, "{}", json!({ "passed": passed, "failed": failed }))?,
        false if bundle.tests.is_empty() => writeln!(out, "0 passed; 0 failed: no tests under `tests`")?,
        false => writeln!(out, "\n{passed} passed; {failed} failed")?,
    }
    out.flush()?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

/// Runs every test of a bundle and returns the results as JSON.
pub(crate) async fn test_results(bundle: &LoadedBundle, config: &Config, home: &Home) -> Result<Value> {
    let mut tests = Vec::new();
    let failed = run(bundle, config, home, |result| {
        tests.push(line(&result));
        Ok(())
    })
    .await?;
    let passed = tests.len() - failed;
    Ok(json!({ "tests": tests, "passed": passed, "failed": failed }))
}

struct TestResult<'a> {
    file: &'a Path,
    case: &'a BundleTest,
    took: Duration,
    expected: Value,
    found: Value,
    /// Failures of hooks that the expectation does not mention.
    failures: Vec<HookFailure>,
    /// The outcome of the event, without its data.
    report: EmissionReport,
    /// A field that the data should have.
    warning: Option<String>,
}

/// A hook that failed, and the cause.
struct HookFailure {
    hook: String,
    cause: String,
}

impl TestResult<'_> {
    /// Returns `true` if the outcome is the expected one. A denial by a failed hook is not: it says nothing about the hook's own rules.
    fn passed(&self) -> bool {
        self.expected == self.found && self.failures.is_empty()
    }
}

/// Writes what the user of a session would see beside the decision: messages of hooks, and hooks that add context.
fn show_side_effects(out: &mut impl Write, report: &EmissionReport) -> Result<()> {
    let quiet = Style::new().dimmed();
    for MessageReport { source, level, text, .. } in &report.messages {
        let source = source.strip_prefix("hook:").unwrap_or(source);
        let line = visible(&format!("{level} {source}: {text}"), EscapeMode::Exact);
        writeln!(out, "    {quiet}{line}{quiet:#}")?;
    }
    for InjectionReport { hook, bytes, text, .. } in &report.injections {
        let (hook, bytes) = (hook.trim_start_matches("./"), counted(*bytes, "byte"));
        let line = visible(&format!("↳ {hook} added context ({bytes}): {}", excerpt(text)), EscapeMode::Exact);
        writeln!(out, "    {quiet}{line}{quiet:#}")?;
    }
    Ok(())
}

/// Writes the decision with its hook and its text, which the expectation may not name, and the outputs of programs.
fn show_decision(out: &mut impl Write, report: &EmissionReport) -> Result<()> {
    let (by, says) = decided_by(report);
    if !by.is_empty() {
        let decision = report.decision.map_or("unknown", DecisionKind::as_str);
        writeln!(out, "    {}", visible(&format!("{decision} by {by}: {}", excerpt(&says)), EscapeMode::Exact))?;
    }
    for OutputReport { hook, text, .. } in &report.outputs {
        writeln!(out, "    {}", visible(&format!("{hook} prints: {}", excerpt(text)), EscapeMode::Exact))?;
    }
    Ok(())
}

/// Runs every test of a bundle with only the bundle's hooks and returns the number of failures.
async fn run<'a>(
    bundle: &'a LoadedBundle,
    config: &Config,
    home: &Home,
    mut each: impl FnMut(TestResult<'a>) -> Result<()>,
) -> Result<usize> {
    let shared = HookRegistry::new();
    bundles::register_for_tests(bundle, config, home, &shared)?;
    let mut failed = 0;
    for (number, (file, case)) in bundle.tests.iter().enumerate() {
        let BundleTest { name, event, data, files, before, expect } = case;
        let own = if files.is_empty() { None } else { Some(OwnWorkspace::create(case, bundle, config, home)?) };
        let hooks = own.as_ref().map_or(&shared, |own| &own.hooks);
        // Each test has its own session, so that tests do not affect each other.
        let session = |data: &Map<String, Value>| {
            let mut data = data.clone();
            data.entry("session_id").or_insert_with(|| format!("test-{}", number + 1).into());
            data
        };
        for earlier in before {
            for _ in 0..earlier.times {
                let emitted = hooks.emit(earlier.event.as_str(), session(&earlier.data)).await;
                emitted.map_err(|error| anyhow!("the test `{name}`: {error}"))?;
            }
        }
        let begun = Instant::now();
        let outcome = hooks.emit(event.as_str(), session(data)).await;
        let outcome = outcome.map_err(|error| anyhow!("the test `{name}`: {error}"))?;
        let report = outcome.report_with(None);
        let (expected, found) = compare_outcome(expect, &outcome, &report);
        let failures = unexpected_failures(expect, &report);
        // Other fields rarely decide anything, and would be in the way in most tests.
        let warning = missing_fields(event, data, |field| field == "success");
        let result = TestResult { file, case, took: begun.elapsed(), expected, found, failures, report, warning };
        failed += usize::from(!result.passed());
        each(result)?;
    }
    Ok(failed)
}

/// The temporary workspace of a test with files, and the hooks in it.
struct OwnWorkspace {
    hooks: HookRegistry,
    /// Removed when dropped.
    _folder: TempDir,
}

impl OwnWorkspace {
    fn create(case: &BundleTest, bundle: &LoadedBundle, config: &Config, home: &Home) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        for (path, text) in &case.files {
            let problem = || format!("the file `{}` of the test `{}`", path.display(), case.name);
            if !path.components().all(|part| matches!(part, Component::Normal(_))) {
                bail!("{}: expected a path within the workspace, without `..`", problem());
            }
            let file = folder.path().join(path);
            let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            written.and_then(|()| std::fs::write(&file, text)).with_context(problem)?;
        }
        let mut config = config.clone();
        folder.path().clone_into(&mut config.workspace);
        let hooks = HookRegistry::new();
        bundles::register_for_tests(bundle, &config, home, &hooks)?;
        Ok(Self { hooks, _folder: folder })
    }
}

fn line(result: &TestResult<'_>) -> Value {
    let TestResult { file, case, took, expected, found, failures, report, warning } = result;
    let passed = result.passed();
    let mut line = json!({
        "test": case.name,
        "file": file.display().to_string(),
        "event": case.event,
        "passed": passed,
        "took_us": took.as_micros() as u64,
    });
    if !passed {
        line["expected"] = expected.clone();
        line["found"] = found.clone();
    }
    if !failures.is_empty() {
        line["failures"] = failures.iter().map(|one| json!({ "hook": one.hook, "cause": one.cause })).collect();
    }
    if let Some(warning) = warning {
        line["warning"] = warning.as_str().into();
    }
    if !report.messages.is_empty() {
        line["messages"] = json!(report.messages);
    }
    if !report.injections.is_empty() {
        line["injections"] = json!(report.injections);
    }
    line
}

/// Returns the hooks that failed, unless the test expects the text of the failure.
fn unexpected_failures(wanted: &Expectation, report: &EmissionReport) -> Vec<HookFailure> {
    let failed = report.hooks.iter().filter_map(|hook| Some((hook.hook.clone(), hook.error.clone()?)));
    let is_expected = |cause: &str| wanted.says.as_ref().is_some_and(|says| !says.is_empty() && cause.contains(says));
    failed.filter(|(_, cause)| !is_expected(cause)).map(|(hook, cause)| HookFailure { hook, cause }).collect()
}

/// Returns the expected and the actual values, limited to the fields in the expectation.
fn compare_outcome(wanted: &Expectation, outcome: &Outcome, report: &EmissionReport) -> (Value, Value) {
    let (mut expected, mut found) = (Map::new(), Map::new());
    let mut compare = |what: &str, wanted: Value, came: Value| {
        expected.insert(what.to_owned(), wanted);
        found.insert(what.to_owned(), came);
    };
    if let Some(decision) = &wanted.decision {
        compare("decision", decision.as_str().into(), outcome.decision.as_str().into());
    }
    let (by, says) = decided_by(report);
    if let Some(wanted) = &wanted.by {
        compare("by", wanted.as_str().into(), by.into());
    }
    if let Some(wanted) = &wanted.says {
        // A substring is enough.
        let came = if says.contains(wanted.as_str()) { wanted } else { &says };
        compare("says", wanted.as_str().into(), came.as_str().into());
    }
    if !wanted.data.is_empty() {
        let came = |(pointer, wanted): (&String, &Value)| {
            let came = outcome.data.pointer(pointer).cloned().unwrap_or_default();
            (pointer.clone(), if wanted.to_string().contains(ANY_HASH) { without_hashes(came) } else { came })
        };
        let came: Map<_, _> = wanted.data.iter().map(came).collect();
        let wanted: Map<_, _> = wanted.data.clone().into_iter().collect();
        compare("data", wanted.into(), came.into());
    }
    (expected.into(), found.into())
}

/// Stands for the hash of any marker of redaction, which depends on a random key.
const ANY_HASH: &str = "hmac=*]";

/// Replaces the hashes of markers by a star.
fn without_hashes(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let mut parts = text.split("hmac=");
            let mut plain = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
                let is_marker = rest.starts_with(']') && rest.len() + 16 == part.len();
                plain.push_str(if is_marker { "hmac=*" } else { "hmac=" });
                plain.push_str(if is_marker { rest } else { part });
            }
            plain.into()
        }
        Value::Array(items) => items.into_iter().map(without_hashes).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, without_hashes(value))).collect(),
        other => other,
    }
}
