//! Decides with the person whether the bundle of a project is used.

use std::time::Duration;

use amplifier_agent::Cancel;
use amplifier_audit::Log;
use amplifier_core::Level;
use amplifier_modules::bundle::Loaded;
use amplifier_modules::trust::{Pin, Pinned, TrustStore, Verdict, opaque_reason};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::bundles::{Project, State};
use crate::terminal::{Answer, Decision, Screen};

/// Who is asked.
pub enum Asked<'a> {
    /// The person at the terminal, who has that long.
    Person(&'a Screen, Duration),
    /// Nobody.
    Nobody(&'a Screen),
}

/// Settles whether the bundle of the project is used in a session: asks the person if there is one, and says so if it is not. What comes of it is
/// recorded before it counts.
///
/// # Errors
/// If it cannot be recorded or kept, or the terminal is gone.
pub async fn settle(
    project: &mut Project,
    store: &TrustStore,
    log: &Log,
    asked: Asked<'_>,
    cancel: &Cancel,
) -> Result<()> {
    let (screen, answer) = match (&asked, &project.state) {
        (_, State::Trusted(_, pinned)) => return record(log, pinned, "used"),
        (Asked::Person(screen, limit), State::Untrusted(bundle, pinned, verdict)) => {
            let answer = decision(bundle, pinned, verdict).ask(screen, *limit).await?;
            record(log, pinned, if answer == Answer::Yes { "trusted" } else { "refused" })?;
            (screen, Some(answer))
        }
        (Asked::Nobody(screen), State::Untrusted(_, pinned, _)) => {
            record(log, pinned, "not used")?;
            (screen, None)
        }
        (Asked::Nobody(screen) | Asked::Person(screen, _), State::Unusable(_)) => (screen, None),
    };
    match answer {
        Some(Answer::Yes) => trust(project, store, log),
        Some(Answer::Stop) => {
            cancel.request();
            Ok(())
        }
        Some(Answer::No) => {
            screen.note("going on without the hooks of this project");
            Ok(())
        }
        None => {
            let warning = project.warning().unwrap_or_default();
            screen.message(Level::Warning, "trust", &warning);
            Ok(())
        }
    }
}

/// Trusts a bundle as it was looked at.
fn trust(project: &mut Project, store: &TrustStore, log: &Log) -> Result<()> {
    project.state = match std::mem::replace(&mut project.state, State::Unusable(String::new())) {
        State::Untrusted(bundle, pinned, _) => {
            store.trust(&pinned)?;
            record(log, &pinned, "used")?;
            State::Trusted(bundle, pinned)
        }
        state => state,
    };
    Ok(())
}

/// Records a decision about a bundle.
///
/// # Errors
/// If it cannot be kept.
pub fn record(log: &Log, pinned: &Pinned, decision: &str) -> Result<()> {
    let change = json!({
        "project_bundle": pinned.bundle.to_string_lossy(),
        "digest": pinned.digest(),
        "decision": decision,
    });
    let receipt = log.policy_change(&change).context("the audit log")?;
    log.flush_blocking(receipt).context("the audit log")
}

/// What a person decides about: every hook, and every file.
pub fn decision(bundle: &Loaded, pinned: &Pinned, verdict: &Verdict) -> Decision {
    let mut decision = Decision::new("trust needed", "this project brings hooks of its own");
    decision.about(pinned.bundle.display().to_string());
    decision.note("whoever wrote the project wrote them; what they run, runs with your rights");
    if let Verdict::Changed(changes) = verdict {
        changes.iter().for_each(|change| decision.note(format!("changed since you trusted it: {change}")));
    }
    for entry in bundle.hooks.iter().map(|placed| &placed.entry).filter(|entry| entry.enabled != Some(false)) {
        decision.item("hook", entry.shown_name());
        entry.settings().iter().for_each(|(key, value)| decision.detail(key, value));
        let own = [&entry.command, &entry.worker].into_iter().flatten().map(|line| line.all().to_vec());
        let config = serde_json::to_value(&entry.config).unwrap_or_default();
        let mut commands: Vec<Vec<String>> = own.collect();
        find_commands(&config, &mut commands);
        for why in commands.iter().filter_map(|command| opaque_reason(command)) {
            decision.detail("!", format!("what this runs cannot be told from looking at it: {why}"));
        }
    }
    for (file, Pin { sha256, mode, leads_to }) in &pinned.files {
        decision.item("file", file.display().to_string());
        decision.detail("sha256", sha256.to_string());
        decision.detail("mode", format!("{mode:o}"));
        if let Some(leads_to) = leads_to {
            decision.detail("leads to", leads_to.display().to_string());
        }
    }
    decision.options("Trust", "its hooks run, until one of these files changes", "Not now", "nothing of it runs");
    decision
}

/// The commands in the settings of a module, such as the linters of `hooks-linter`.
fn find_commands(config: &Value, commands: &mut Vec<Vec<String>>) {
    match config {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(line) if name == "command" => commands.push(vec![line.clone()]),
                    Value::Array(words) if name == "command" => {
                        commands.push(words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
                    }
                    value => find_commands(value, commands),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| find_commands(value, commands)),
        _ => {}
    }
}
