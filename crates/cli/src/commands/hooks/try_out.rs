//! `amplifier hooks try`: a dry run of an event.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use amplifier_agent::tool::{Workspace, standard};
use amplifier_core::text::counted;
use amplifier_core::{ActionPreview, DecisionKind, EmissionReport, EventName, HookRegistry, Map};
use amplifier_host::{Config, Home};
use amplifier_link::DryRunReport;
use amplifier_modules::HookEnvironment;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::{RegisteredHooks, decided_by, diff, register_all, suggest_event, warn};
use crate::commands::audit::text::pad;
use crate::commands::output::stdout;
use crate::flags::Flags;
use crate::terminal::{EscapeMode, preview_rows, visible};

/// Dry-run an event through the hooks
#[derive(Args, Debug)]
#[command(mut_args(Flags::hide_agent_flags))]
pub(super) struct Try {
    /// Event name
    event: String,
    /// Event data: JSON, or @FILE
    #[arg(long, default_value = "{}")]
    data: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Try {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode> {
        let config = self.flags.load(home)?;
        let RegisteredHooks { hooks, host, warning, .. } = register_all(&config, home)?;
        warn(warning.clone())?;
        let data = read_data(&self.data)?;
        let missing = missing_fields(&self.event, &data, |_| true);
        let report = dry_run(&hooks, &host, &self.event, data.clone()).await?;
        let mut out = stdout();
        if self.json {
            let warnings: Vec<String> = warning.into_iter().chain(missing).collect();
            let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
            writeln!(out, "{}", serde_json::to_string(&DryRunReport { report, warning })?)?;
        } else {
            warn(missing)?;
            if report.hooks.is_empty() {
                let hint = suggest_event(&self.event).map(|hint| format!(" {hint}")).unwrap_or_default();
                writeln!(out, "No hook is registered for this event.{}", visible(&hint, EscapeMode::Exact))?;
            }
            let preview = preview(&config, report.data.as_ref().unwrap_or(&data))?;
            show(&mut out, data, report, preview)?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs the hooks for an event and waits for their background work. No approval is requested, and only hooks run.
pub(crate) async fn dry_run(
    hooks: &HookRegistry,
    host: &HookEnvironment,
    event: &str,
    data: Map,
) -> Result<EmissionReport> {
    let outcome = hooks.emit(event, data).await;
    host.settle().await;
    Ok(outcome.map_err(|error| anyhow!("{error}; `amplifier events` lists all events"))?.report())
}

/// Warns about fields that a session always supplies. Conditions read a missing field as `null`, so a rule that needs one does nothing.
pub(super) fn missing_fields(event: &str, data: &Map, matters: impl Fn(&str) -> bool) -> Option<String> {
    let spec = event.parse::<EventName>().ok()?.spec()?;
    let missing = spec.fields.iter().filter(|field| field.required && matters(field.name));
    let missing = missing.filter(|field| !data.contains_key(field.name));
    let missing: Vec<String> = missing.map(|field| format!("`{}`", field.name)).collect();
    let name = spec.name;
    (!missing.is_empty()).then(|| {
        let missing = missing.join(", ");
        format!("the data lacks {missing}, which `{name}` has in a session; conditions read a missing field as null")
    })
}

/// Returns the preview that an approval request about a tool would show.
fn preview(config: &Config, data: &Map) -> Result<Option<ActionPreview>> {
    let name = data.get("tool_name").and_then(Value::as_str).unwrap_or_default();
    let Some(Value::Object(input)) = data.get("tool_input") else { return Ok(None) };
    let tools = standard(&Workspace::new(&config.workspace)?);
    Ok(tools.iter().find(|tool| tool.spec().name == name).and_then(|tool| tool.preview(input)))
}

fn show(out: &mut impl Write, data: Map, report: EmissionReport, preview: Option<ActionPreview>) -> Result<()> {
    let exact = |text: &str| visible(text, EscapeMode::Exact);
    let widest = report.hooks.iter().map(|one| exact(&one.hook).width()).fold(24, usize::max);
    for one in &report.hooks {
        let why = one.error.as_deref().or(one.reason.as_deref()).unwrap_or_default();
        let took = format!("{:.1?}", Duration::from_nanos(one.duration_ns));
        let row = format!("{} {:<15} {took:>9}  {}", pad(&exact(&one.hook), widest), one.answer, exact(why));
        writeln!(out, "{}", row.trim_end())?;
    }
    for one in &report.approvals {
        let (hook, prompt) = (exact(&one.hook), exact(one.prompt.as_deref().unwrap_or_default()));
        if !report.requests(one) {
            let why = if report.denied_by.is_some() { "the operation is denied" } else { "another hook asks already" };
            writeln!(out, "\n{hook} does not ask: {why}")?;
            continue;
        }
        let options: Vec<_> = one.options.iter().map(|option| option.label.as_str()).collect();
        writeln!(out, "\n{hook} asks: {prompt} [{}]", exact(&options.join(" / ")))?;
        for row in preview.iter().flat_map(preview_rows) {
            writeln!(out, "    {}", row.render(true))?;
        }
    }
    for one in &report.injections {
        let place = format!("as {}, {}", one.role.as_str(), counted(one.bytes, "byte"));
        writeln!(out, "\n{} adds context ({place}):", exact(&one.hook))?;
        write_indented(out, &one.text)?;
    }
    for one in &report.messages {
        let hook = one.source.strip_prefix("hook:").unwrap_or(&one.source);
        writeln!(out, "\n{} sends a message ({}): {}", exact(hook), one.level.as_str(), exact(&one.text))?;
    }
    for one in &report.outputs {
        writeln!(out, "\n{} prints:", exact(&one.hook))?;
        write_indented(out, &one.text)?;
    }
    let (by, says) = decided_by(&report);
    let (before, after) = (without_time(data), without_time(report.data.unwrap_or_default()));
    if before != after {
        writeln!(out, "\nThe data becomes:")?;
        diff::write(out, 4, &before, &after)?;
    }
    let by = if by.is_empty() { String::new() } else { format!(" by {by}: {says}") };
    writeln!(out, "\n{}{}", report.decision.map_or("unknown", DecisionKind::as_str), exact(&by))?;
    Ok(())
}

fn write_indented(out: &mut impl Write, text: &str) -> Result<()> {
    Ok(visible(text, EscapeMode::Stream).lines().try_for_each(|line| writeln!(out, "    {line}"))?)
}

/// Removes the timestamp, which every event gets and which is therefore not a change.
fn without_time(mut data: Map) -> Value {
    data.remove("timestamp");
    data.into()
}

fn read_data(data: &str) -> Result<Map> {
    let text = match data.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("`{file}`"))?,
        None => data.to_owned(),
    };
    serde_json::from_str(&text).context("invalid data: expected a JSON object")
}
