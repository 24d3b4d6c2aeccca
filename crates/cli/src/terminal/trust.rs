//! The trust dialog for a project's bundle.

use amplifier_agent::Cancel;
use amplifier_core::PortError;
use amplifier_host::{BoxFuture, TrustAnswer, TrustPrompt, TrustRequest};
use amplifier_modules::bundle::LoadedBundle;
use amplifier_modules::trust::{BundlePins, Pin, TrustStatus, opaque_reason};
use serde_json::Value;

use super::{Dialog, DialogAnswer, Screen};

/// Asks the user at the terminal to trust a project's bundle.
pub struct TerminalTrustPrompt {
    /// The terminal that shows the dialog.
    pub screen: Screen,
    /// Cancelled on Ctrl-C.
    pub cancel: Cancel,
}

impl TrustPrompt for TerminalTrustPrompt {
    fn ask<'a>(&'a self, request: TrustRequest<'a>) -> BoxFuture<'a, Result<TrustAnswer, PortError>> {
        let TrustRequest { bundle, pinned, status, timeout } = request;
        Box::pin(async move {
            Ok(match trust_dialog(bundle, pinned, status).ask(&self.screen, timeout).await? {
                DialogAnswer::Yes => TrustAnswer::Trust,
                DialogAnswer::No => TrustAnswer::Refuse,
                DialogAnswer::Stop => {
                    self.cancel.request();
                    TrustAnswer::Stop
                }
            })
        })
    }
}

/// Builds the trust dialog, which lists every hook and every file of the bundle.
pub fn trust_dialog(bundle: &LoadedBundle, pinned: &BundlePins, status: &TrustStatus) -> Dialog {
    let mut dialog = Dialog::new("trust needed", "this project contains hooks");
    dialog.about(pinned.bundle.display().to_string());
    dialog.note("the authors of the project wrote them; they run with your permissions");
    if let TrustStatus::Changed(changes) = status {
        changes.iter().for_each(|change| dialog.note(format!("changed since you trusted it: {change}")));
    }
    for entry in bundle.hooks.iter().map(|placed| &placed.entry).filter(|entry| entry.enabled != Some(false)) {
        dialog.item("hook", entry.shown_name());
        entry.settings().iter().for_each(|(key, value)| dialog.detail(key, value));
        let own = [&entry.command, &entry.worker].into_iter().flatten().map(|line| line.all().to_vec());
        let config = serde_json::to_value(&entry.config).unwrap_or_default();
        let mut commands: Vec<Vec<String>> = own.collect();
        find_commands(&config, &mut commands);
        for why in commands.iter().filter_map(|command| opaque_reason(command)) {
            dialog.detail("!", format!("this command cannot be analysed: {why}"));
        }
    }
    for (file, Pin { sha256, mode, leads_to }) in &pinned.files {
        dialog.item("file", file.display().to_string());
        dialog.detail("sha256", sha256.to_string());
        dialog.detail("mode", format!("{mode:o}"));
        if let Some(leads_to) = leads_to {
            dialog.detail("links to", leads_to.display().to_string());
        }
    }
    dialog.options("Trust", "run its hooks until one of these files changes", "Not now", "run none of its hooks");
    dialog
}

/// Collects the commands in the settings of a module, such as the linters of `hooks-linter`.
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
