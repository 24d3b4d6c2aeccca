//! `amplifier events`: the event catalog.

use std::fmt::Write;
use std::process::ExitCode;

use amplifier_core::{EventEffects, EventName, EventSpec, catalog};
use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::output::{print_json, print_json_lines, print_text};

/// Explain events: their time, their data, and the effect of each action
#[derive(Args, Debug)]
pub struct Events {
    /// Event to explain, such as `tool:pre` [default: list all events]
    name: Option<String>,
    /// Print JSON, one event per line, with its JSON Schema and the effects of actions
    #[arg(long)]
    json: bool,
}

impl Events {
    /// Prints the list of events, or the description of one.
    ///
    /// # Errors
    /// If the event is unknown or the output cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match (self.name, self.json) {
            (None, false) => print_text(&list()),
            (None, true) => print_json_lines(catalog().iter().map(to_json)),
            (Some(name), false) => print_text(&page(find(&name)?)),
            (Some(name), true) => print_json(&to_json(find(&name)?)),
        }
    }
}

fn find(name: &str) -> anyhow::Result<&'static EventSpec> {
    let spec = name.parse::<EventName>().ok().and_then(|name| name.spec());
    spec.ok_or_else(|| {
        let names = catalog().iter().map(|spec| spec.name).chain(ALIASES);
        let nearest = names.min_by_key(|known| distance(name, known)).unwrap_or_default();
        anyhow!("unknown event `{name}`; did you mean `{nearest}`? See `amplifier events`")
    })
}

/// Returns the event with the most similar name, if `name` is unknown.
pub(super) fn misspelt(name: &str) -> Option<&'static str> {
    if name.parse::<EventName>().ok()?.spec().is_some() {
        return None;
    }
    let known = catalog().iter().map(|spec| spec.name);
    known.min_by_key(|known| distance(name, known)).filter(|known| distance(name, known) <= 2)
}

fn aliases(spec: &EventSpec) -> Vec<&'static str> {
    let is_alias = |alias: &&str| alias.parse::<EventName>().is_ok_and(|alias| alias.canonical() == spec.name);
    ALIASES.into_iter().filter(is_alias).collect()
}

fn to_json(spec: &EventSpec) -> Value {
    let Meaning { deny, modify, inject, ask } = meaning(spec);
    json!({
        "name": spec.name,
        "aliases": aliases(spec),
        "when": spec.when.trim(),
        "answers": { "deny": deny, "modify": modify, "inject_context": inject, "ask_user": ask },
        "schema": spec.schema(),
    })
}

fn list() -> String {
    let mut text = String::new();
    for (title, families) in GROUPS {
        _ = writeln!(text, "{title}");
        let family = |spec: &EventSpec| spec.name.split_once(':').map_or("", |(family, _)| family);
        for spec in catalog().iter().filter(|spec| families.contains(&family(spec))) {
            let observed = if spec.effects == EventEffects::Observed { "" } else { "*" };
            _ = writeln!(text, "  {:<28}{observed:<2}{}", spec.name, spec.when.trim());
        }
        text.push('\n');
    }
    text.push_str("* Hooks can deny or change the operation. For details: amplifier events NAME\n");
    text
}

fn page(spec: &EventSpec) -> String {
    let mut text = format!("{}: {}\n", spec.name, spec.when.trim());
    let aliases = aliases(spec);
    if !aliases.is_empty() {
        _ = writeln!(text, "Also called {}.", aliases.join(", "));
    }
    text.push_str("\nData\n");
    let schema = spec.schema();
    let common = ["session_id", "timestamp"].map(|name| (name, true));
    for (name, required) in spec.fields.iter().map(|field| (field.name, field.required)).chain(common) {
        let field = &schema["properties"][name];
        let about = field["description"].as_str().unwrap_or_default();
        let optional = if required { "" } else { "Optional. " };
        _ = writeln!(text, "  {name:<20} {:<15} {optional}{about}", type_of(field));
    }
    text.push_str("\nActions\n");
    let Meaning { deny, modify, inject, ask } = meaning(spec);
    let ask = if ask {
        "requests approval; without approval, the operation is denied"
    } else {
        "no effect: no approval request"
    };
    for (answer, means) in [("deny", deny), ("modify", modify), ("inject_context", inject), ("ask_user", ask)] {
        _ = writeln!(text, "  {answer:<20} {means}");
    }
    text
}

/// Returns the name of the type that a schema describes.
fn type_of(schema: &Value) -> String {
    match (schema["type"].as_str(), schema["items"]["type"].as_str()) {
        (Some("array"), Some(of)) => format!("array of {of}"),
        (Some(name), _) => name.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

/// Returns the edit distance between two words; transposed letters count once.
fn distance(one: &str, other: &str) -> usize {
    // A long word is similar to none of them, so only its beginning is compared.
    strsim::osa_distance(&one.chars().take(64).collect::<String>(), other)
}

/// The effects of a hook's actions at an event.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    deny: &'static str,
    modify: &'static str,
    inject: &'static str,
    /// `true` if approval can be requested.
    ask: bool,
}

/// The groups of the list: a title, and the prefixes of its event names.
const GROUPS: [(&str, &[&str]); 9] = [
    ("Session", &["session"]),
    ("Turn", &["prompt", "execution", "orchestrator"]),
    ("Model", &["provider", "content_block", "thinking"]),
    ("Decisions", &["decision"]),
    ("Tools", &["tool", "artifact"]),
    ("Sub-agents", &["agent"]),
    ("Context", &["context"]),
    ("People and rules", &["user", "approval", "policy", "cancel"]),
    ("Errors", &["error"]),
];

const ALIASES: [&str; 4] = ["context:pre-compact", "execution:end", "tool:error", "provider:error"];

#[rustfmt::skip] // A table.
const MEANINGS: &[(&str, Meaning)] = &[
    ("session:start", all("the session does not start", "session metadata", "before the first prompt")),
    ("session:resume", all("the session is not continued", "session metadata", "before the next prompt")),
    ("session:fork", all("the session does not branch off", "session metadata", "before the next prompt")),
    ("prompt:submit", all("the prompt is not processed; the user sees the reason", "the prompt", "before the model sees the prompt")),
    ("provider:request", all("no call; the turn ends with the reason", "messages, parameters", "this call")),
    ("provider:response", all("the response is withheld", "its text, before display and history", "next call")),
    ("decision:tool_resolution", all("the choice is refused, as at `tool:pre`", "the selected tool", "next call")),
    ("decision:agent_resolution", all("the choice is refused, as at `agent:spawn`", "the selected agent", "next call")),
    ("decision:context_resolution", Meaning { ask: false, ..all("the default strategy is used", "the strategy: `summarize` or `truncate`", "no effect") }),
    ("tool:pre", all("the tool does not run; the model reads `Denied by hook <name>: <reason>` as its result", "`tool_input`", "after this tool's result")),
    ("tool:post", all("the model gets the reason instead of the result", "`tool_result`, for the model, the transcript and the audit log alike", "after the result")),
    ("agent:spawn", all("not spawned", "task, configuration", "into the child's context")),
    ("agent:complete", all("the parent gets the reason", "the result", "into the parent's context")),
    ("context:pre_compact", Meaning { ask: false, ..all("compaction is postponed once", "target", "carried into the compacted context") }),
];

const fn all(deny: &'static str, modify: &'static str, inject: &'static str) -> Meaning {
    Meaning { deny, modify, inject, ask: true }
}

fn meaning(spec: &EventSpec) -> Meaning {
    let known = MEANINGS.iter().find(|(name, _)| *name == spec.name).map(|(_, meaning)| *meaning);
    known.unwrap_or(match spec.effects {
        EventEffects::Observed => OBSERVED,
        EventEffects::All => all("the operation does not happen", "its data", "next call"),
        EventEffects::NoApprovals => {
            Meaning { ask: false, ..all("the operation does not happen", "its data", "next call") }
        }
        EventEffects::DenyOrModify => {
            Meaning { ask: false, ..all("the operation does not happen", "its data", "no effect") }
        }
    })
}

const OBSERVED: Meaning = Meaning {
    deny: "no effect: it is recorded",
    modify: "no effect",
    inject: "next call, if there is one",
    ask: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_in_one_group() {
        let listed = list();
        for spec in catalog() {
            let line = format!("  {:<28}", spec.name);
            assert_eq!(listed.matches(&line).count(), 1, "{}", spec.name);
        }
    }

    #[test]
    fn every_alias_leads_to_an_event() {
        let shown: Vec<&str> = catalog().iter().flat_map(aliases).collect();
        assert_eq!(shown.len(), ALIASES.len());
        assert!(ALIASES.iter().all(|alias| catalog().iter().all(|spec| spec.name != *alias)));
    }

    #[test]
    fn meanings_agree_with_the_answers_that_the_kernel_heeds() {
        for spec in catalog() {
            let Meaning { deny, modify, inject, ask } = meaning(spec);
            let expected = match spec.effects {
                EventEffects::All => (true, true, true, true),
                EventEffects::NoApprovals => (true, true, true, false),
                EventEffects::DenyOrModify => (true, true, false, false),
                EventEffects::Observed => (false, false, true, false),
            };
            let has_effect = |means: &str| !means.starts_with("no effect");
            assert_eq!((has_effect(deny), has_effect(modify), has_effect(inject), ask), expected, "{}", spec.name);
        }
    }

    #[test]
    fn letters_that_changed_places_count_once() {
        for (one, other, expected) in
            [("tool:per", "tool:pre", 1), ("tool", "tool:pre", 4), ("", "ab", 2), ("same", "same", 0)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
