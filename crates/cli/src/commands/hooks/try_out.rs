//! `amplifier hooks try`: what would come of an event.

use std::io::Write;
use std::process::ExitCode;

use amplifier_core::text::counted;
use amplifier_core::{Attributed, HookRegistry, Map, Outcome};
use amplifier_host::Home;
use amplifier_modules::Host;
use amplifier_server::trial::{Tried, TriedApproval, TriedHook, TriedInjection, TriedMessage, TriedOutput};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::{Registered, diff, registered, said, unknown, warn};
use crate::commands::audit::text::padded;
use crate::commands::output::stdout;
use crate::flags::Flags;
use crate::terminal::{Reading, visible};

/// Show, hook by hook, what would come of an event
#[derive(Args, Debug)]
#[command(mut_args(Flags::about_bundles))]
pub(super) struct Try {
    /// The event
    event: String,
    /// Its data: JSON, or @FILE
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
        let Registered { hooks, host, warning, .. } = registered(&self.flags.load(home)?, home)?;
        warn(warning)?;
        let tried = try_out(&hooks, &self.event, read(&self.data)?, self.json).await;
        host.settle().await;
        tried
    }
}

/// Shows what would come of an event.
async fn try_out(hooks: &HookRegistry, event: &str, data: Map, json: bool) -> Result<ExitCode> {
    let outcome = emitted(hooks, event, data.clone()).await?;
    let mut out = stdout();
    match json {
        true => writeln!(out, "{}", serde_json::to_string(&told(&outcome))?)?,
        false => {
            if outcome.reports().next().is_none() {
                let hint = unknown(event).map(|hint| format!(" {hint}")).unwrap_or_default();
                writeln!(out, "No hook hears that.{}", visible(&hint, Reading::Exact))?;
            }
            show(&mut out, data, &outcome)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// What would come of an event: what `--json` prints. What hooks do beside the agent is done then.
pub(crate) async fn tried(hooks: &HookRegistry, host: &Host, event: &str, data: Map) -> Result<Tried> {
    let outcome = emitted(hooks, event, data).await?;
    host.settle().await;
    Ok(told(&outcome))
}

/// What comes of an event. Nobody is asked, and nothing runs but the hooks.
async fn emitted(hooks: &HookRegistry, event: &str, data: Map) -> Result<Outcome> {
    let outcome = hooks.emit(event, data).await;
    outcome.map_err(|error| anyhow!("{error}; `amplifier events` lists all events"))
}

fn told(outcome: &Outcome) -> Tried {
    let hooks = outcome.reports().map(|report| TriedHook {
        hook: report.hook.to_owned(),
        answer: report.answer_or_failure().to_string(),
        took_us: report.took.as_micros() as u64,
        reason: report.reason.map(str::to_owned),
        error: report.error.map(ToString::to_string),
    });
    let approvals = outcome.approvals().iter().map(|asked| TriedApproval {
        hook: asked.hook.to_string(),
        prompt: asked.prompt.clone(),
        options: asked.offered().into_iter().map(|option| option.label).collect(),
    });
    let injections = outcome.injections().iter().map(|Attributed { hook, value }| TriedInjection {
        hook: hook.to_string(),
        role: word(&value.role),
        placement: word(&value.placement),
        text: value.text.clone(),
    });
    let messages = outcome.messages().iter().map(|Attributed { hook, value }| TriedMessage {
        hook: hook.to_string(),
        level: word(&value.level),
        text: value.text.clone(),
    });
    let outputs = outcome
        .outputs()
        .iter()
        .map(|Attributed { hook, value }| TriedOutput { hook: hook.to_string(), text: value.to_string() });
    let (by, says) = said(outcome);
    Tried {
        decision: outcome.decision.as_str().to_owned(),
        by,
        says,
        data: outcome.data.clone().into_map().into(),
        hooks: hooks.collect(),
        approvals: approvals.collect(),
        injections: injections.collect(),
        messages: messages.collect(),
        outputs: outputs.collect(),
        warning: None,
    }
}

fn show(out: &mut impl Write, data: Map, outcome: &Outcome) -> Result<()> {
    let exact = |text: &str| visible(text, Reading::Exact);
    let widest = outcome.reports().map(|report| exact(report.hook).width()).fold(24, usize::max);
    for report in outcome.reports() {
        let why = report.error.map(ToString::to_string).or(report.reason.map(str::to_owned)).unwrap_or_default();
        let took = format!("{:.1?}", report.took);
        let hook = padded(&exact(report.hook), widest);
        let row = format!("{hook} {:<15} {took:>9}  {}", report.answer_or_failure(), exact(&why));
        writeln!(out, "{}", row.trim_end())?;
    }
    for asked in outcome.approvals() {
        let options: Vec<_> = asked.offered().into_iter().map(|option| option.label).collect();
        writeln!(out, "\n{} asks: {} [{}]", exact(&asked.hook), exact(&asked.prompt), exact(&options.join(" / ")))?;
    }
    for Attributed { hook, value } in outcome.injections() {
        let place = format!("as {}, {}", word(&value.role), counted(value.text.len(), "byte"));
        writeln!(out, "\n{} tells the agent ({place}):", exact(hook))?;
        for line in visible(&value.text, Reading::Stream).lines() {
            writeln!(out, "    {line}")?;
        }
    }
    for Attributed { hook, value } in outcome.messages() {
        writeln!(out, "\n{} tells the person ({}): {}", exact(hook), word(&value.level), exact(&value.text))?;
    }
    for Attributed { hook, value } in outcome.outputs() {
        writeln!(out, "\n{} prints:", exact(hook))?;
        for line in visible(value, Reading::Stream).lines() {
            writeln!(out, "    {line}")?;
        }
    }
    let (before, after) = (without_time(data), without_time(outcome.data.clone().into_map()));
    if before != after {
        writeln!(out, "\nThe data becomes:")?;
        diff::write(out, 4, &before, &after)?;
    }
    let (by, says) = said(outcome);
    let by = if by.is_empty() { String::new() } else { format!(" by {by}: {says}") };
    writeln!(out, "\n{}{}", outcome.decision.as_str(), exact(&by))?;
    Ok(())
}

/// The word for a value, as JSON has it.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Every event gets the time, so it is no change.
fn without_time(mut data: Map) -> Value {
    data.remove("timestamp");
    data.into()
}

fn read(data: &str) -> Result<Map> {
    let text = match data.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("`{file}`"))?,
        None => data.to_owned(),
    };
    serde_json::from_str(&text).context("the data is no JSON object")
}
