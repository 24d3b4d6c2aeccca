//! `amplifier guard explain`: the effect of the policy in a client, and the answers that the client can express.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use amplifier_core::{HookRegistry, HookRole};
use amplifier_guard::{Client, Expression, explain};
use amplifier_host::{Bundles, Config, Home, Overrides, bundles};
use amplifier_modules::bundle::{BundleStack, HookEntry, HookKind};
use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::audit::text::pad;
use crate::commands::output::{print_json, stdout};
use crate::terminal::{EscapeMode, visible};

/// An answer that a hook of the policy can give, as a client expresses it.
#[derive(Debug, Serialize)]
struct PolicyAnswer {
    hook: String,
    #[serde(flatten)]
    expression: Expression,
}

/// Prints the policy of the current folder and the effect of each answer, for each client.
pub(super) fn run(clients: &[Client], as_json: bool, home: &Home) -> Result<ExitCode> {
    let clients = if clients.is_empty() { &Client::ALL[..] } else { clients };
    let config = Config::load(&Overrides::default(), home)?;
    let found = Bundles::find(&config, home)?;
    let warning = found.project.as_ref().and_then(|project| project.warning());
    let stack = found.levels();
    let config = config.with_bundles(&stack);
    let hooks = HookRegistry::new();
    bundles::register_for_listing(&stack, &config, &hooks)?;
    let mut reports = Vec::new();
    for client in clients {
        let answers = explain(*client, config.approvals);
        let (policy, absent) = (policy(&answers, &hooks, &stack)?, absent(&answers, &hooks)?);
        reports.push((client, policy, absent, answers));
    }
    if as_json {
        let list = reports.iter().map(|(client, policy, absent, answers)| {
            json!({
                "client": client, "approvals": config.approvals, "policy": policy, "absent": absent, "answers": answers,
                "warning": warning,
            })
        });
        return print_json(&list.collect::<Vec<Value>>());
    }
    let mut out = stdout();
    if let Some(warning) = warning {
        writeln!(out, "warning: {}\n", visible(&warning, EscapeMode::Exact))?;
    }
    for (client, policy, absent, answers) in &reports {
        writeln!(out, "{client}\n\n  Hooks of the policy\n")?;
        let name = |answer: &PolicyAnswer| visible(&answer.hook, EscapeMode::Exact);
        let widest = policy.iter().map(|answer| name(answer).chars().count()).max().unwrap_or_default();
        for answer in policy {
            write!(out, "    {} ", pad(&name(answer), widest))?;
            write_expression(&mut out, &answer.expression)?;
        }
        if policy.is_empty() {
            writeln!(out, "    none")?;
        }
        for (hook, event) in absent {
            let line = format!("{hook} is never called: {client} has no event for {event}");
            writeln!(out, "    {}", visible(&line, EscapeMode::Exact))?;
        }
        writeln!(out, "\n  All answers\n")?;
        for expression in answers {
            write!(out, "    ")?;
            write_expression(&mut out, expression)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn write_expression(out: &mut impl Write, Expression { event, answer, effect }: &Expression) -> Result<()> {
    Ok(writeln!(out, "{event:<21} {answer:<15} {effect}")?)
}

/// Returns the answers that the hooks of the policy can give at the events of a client.
fn policy(answers: &[Expression], hooks: &HookRegistry, stack: &BundleStack) -> Result<Vec<PolicyAnswer>> {
    let entries = || stack.bundles().flat_map(|(_, bundle)| bundle.hooks.iter().map(|hook| &hook.entry));
    let mut found = Vec::new();
    for expression in answers {
        for hook in hooks.list_handlers_of(expression.event)?.iter().filter(|hook| hook.role == HookRole::Gate) {
            let entry = entries().find(|entry| entry.shown_name() == *hook.name);
            if entry.is_none_or(|entry| can_answer(entry, expression.answer)) {
                found.push(PolicyAnswer { hook: hook.name.to_string(), expression: expression.clone() });
            }
        }
    }
    Ok(found)
}

/// Returns the hooks that no event of a client calls, with their event or pattern.
fn absent(answers: &[Expression], hooks: &HookRegistry) -> Result<Vec<(String, String)>> {
    let mut called = BTreeSet::new();
    for Expression { event, .. } in answers {
        called.extend(hooks.list_handlers_of(*event)?.into_iter().map(|hook| (hook.name, hook.event)));
    }
    let all = hooks.list_handlers().into_iter().map(|hook| (hook.name, hook.event));
    let absent = all.filter(|hook| !called.contains(hook));
    Ok(absent.map(|(name, event)| (name.to_string(), event.to_string())).collect())
}

/// Returns `true` if a hook can give an answer. Programs and modules can give any.
fn can_answer(entry: &HookEntry, answer: &str) -> bool {
    if !matches!(entry.kind(), Ok(HookKind::Rule(_))) {
        return true;
    }
    match answer {
        "deny" => entry.deny.is_some(),
        "ask_user" => entry.ask.is_some(),
        "modify" => entry.modify.is_some(),
        "inject_context" => entry.inject.is_some(),
        _ => entry.message.is_some(),
    }
}
