//! `hooks-redaction`: replaces secrets and personal data in prompts, tool results and answers, before anything else sees them.

mod markers;
mod personal;

use std::collections::BTreeMap;
use std::sync::Arc;

use amplifier_audit::{InvalidRule, Redaction};
use amplifier_core::{EventData, Hook, HookError, HookResult, Map};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::markers::MARKER_IN_INPUT;
use self::markers::MarkerGuard;
use self::personal::{PersonalDataKind, PersonalDataRedactor};
use super::{GUARDS, ModuleContext, ModuleHook, options};
use crate::condition::{Scope, did_you_mean};

/// Options of `hooks-redaction`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// The data to redact: `prompt`, `tool_result` and `answer`.
    places: Vec<RedactionTarget>,
    /// Redact keys, tokens, passwords and card numbers, by the rules of the audit log.
    secrets: bool,
    /// Redact email addresses.
    emails: bool,
    /// Redact telephone numbers.
    phones: bool,
    /// Redact bank account numbers (IBAN).
    ibans: bool,
    /// Redact card numbers; also part of `secrets`.
    cards: bool,
    /// Redact IP addresses, except loopback and unspecified addresses.
    ips: bool,
    /// Kinds of data to keep, by their names in markers.
    except: Vec<String>,
    /// Additional regular expressions, by name. If an expression has a group called `secret`, only that group is replaced.
    patterns: BTreeMap<String, String>,
    /// Tell the user when something was replaced.
    announce: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RedactionTarget {
    Prompt,
    ToolResult,
    Answer,
}

impl RedactionTarget {
    const ALL: [Self; 3] = [Self::Prompt, Self::ToolResult, Self::Answer];

    /// Returns the event at which the data can be changed, and its field.
    fn event(self) -> (&'static str, &'static str) {
        match self {
            Self::Prompt => ("prompt:submit", "prompt"),
            Self::ToolResult => ("tool:post", "tool_result"),
            Self::Answer => ("provider:response", "content"),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            places: RedactionTarget::ALL.to_vec(),
            secrets: true,
            emails: true,
            phones: true,
            ibans: true,
            cards: true,
            ips: false,
            except: Vec::new(),
            patterns: BTreeMap::new(),
            announce: false,
        }
    }
}

pub(super) fn make(config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
    let Options { places, secrets, emails, phones, ibans, cards, ips, except, patterns, announce } = options(config)?;
    // Data with a check digit comes first: parts of it may look like another kind.
    let kinds = [
        (emails, PersonalDataKind::Email),
        (ibans, PersonalDataKind::Iban),
        (cards, PersonalDataKind::Card),
        (ips, PersonalDataKind::IpAddress),
        (phones, PersonalDataKind::Phone),
    ];
    check_kinds(&except)?;
    let is_wanted = |kind: PersonalDataKind| !except.iter().any(|kept| kept == kind.name());
    let kinds = kinds.into_iter().filter(|(wanted, kind)| *wanted && is_wanted(*kind));
    let kinds: Vec<PersonalDataKind> = kinds.map(|(_, kind)| kind).collect();
    let secrets = secrets.then(|| {
        let standard = context.host.scope.secret_rules().clone();
        except.iter().fold(standard, |rules, kind| rules.without_kind(kind))
    });
    let secrets = secrets.filter(|rules| !rules.kinds().is_empty());
    if places.is_empty() {
        return Err("`places` is empty; name at least one".to_owned());
    }
    if secrets.is_none() && kinds.is_empty() && patterns.is_empty() {
        return Err("everything is disabled; enable at least one kind of data".to_owned());
    }
    let mut own = (!patterns.is_empty()).then(Redaction::none);
    for (name, pattern) in &patterns {
        check_groups(name, pattern)?;
        let matches_nothing = regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(""));
        if matches_nothing {
            return Err(format!("`patterns.{name}` matches the empty text; change the pattern"));
        }
        own = own
            .map(|own| own.with_pattern(name, pattern))
            .transpose()
            .map_err(|error| invalid_pattern(name, &error))?;
    }
    let personal = PersonalDataRedactor::new(&kinds).map_err(|error| error.to_string())?;
    let redactor = Redactor { secrets, own, personal, announce, scope: context.host.scope.clone() };
    let events: Vec<&str> =
        RedactionTarget::ALL.iter().filter(|one| places.contains(one)).map(|one| one.event().0).collect();
    // Before all other hooks, so that they do not receive the data either.
    let guard = ModuleHook::guard(&["tool:pre"], MarkerGuard).priority(GUARDS);
    Ok(vec![ModuleHook::guard(&events, redactor).priority(-100), guard])
}

/// Describes an invalid regular expression. The last line of the error has the cause; those before it show the pattern.
fn invalid_pattern(name: &str, error: &InvalidRule) -> String {
    let text = error.to_string();
    let cause = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    format!("`patterns.{name}`: invalid regular expression: {cause}")
}

/// Checks the names of kinds.
fn check_kinds(names: &[String]) -> Result<(), String> {
    let known = kinds();
    match names.iter().enumerate().find(|(_, name)| !known.contains(name)) {
        Some((at, name)) => {
            let help = did_you_mean(name, known.iter().map(String::as_str))
                .unwrap_or_else(|| "`amplifier hooks modules hooks-redaction` lists the kinds".to_owned());
            Err(format!("`except[{at}]`: unknown kind `{name}`; {help}"))
        }
        None => Ok(()),
    }
}

/// Returns the kinds in markers of secrets and personal data.
pub(super) fn kinds() -> Vec<String> {
    let mut kinds = Redaction::standard().kinds();
    kinds.extend(PersonalDataKind::ALL.map(|kind| kind.name().to_owned()));
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Name of the group whose text is replaced, instead of the whole match.
const SECRET: &str = "secret";

/// Checks the named groups of a pattern: only the group `secret` has an effect.
fn check_groups(name: &str, pattern: &str) -> Result<(), String> {
    let Ok(regex) = regex::Regex::new(pattern) else { return Ok(()) };
    let groups: Vec<&str> = regex.capture_names().flatten().collect();
    match groups.iter().find(|group| **group != SECRET) {
        Some(group) if !groups.contains(&SECRET) => {
            let help =
                did_you_mean(group, [SECRET]).unwrap_or_else(|| "call it `secret`, or remove the name".to_owned());
            Err(format!("`patterns.{name}`: unknown group `{group}`; {help}"))
        }
        _ => Ok(()),
    }
}

struct Redactor {
    secrets: Option<Redaction>,
    own: Option<Redaction>,
    personal: PersonalDataRedactor,
    announce: bool,
    scope: Arc<Scope>,
}

impl Redactor {
    fn redact(&self, value: &mut Value) {
        // The user's patterns see the text as it is, not the markers of other patterns.
        for rules in self.own.iter().chain(&self.secrets) {
            self.scope.redact_by(rules, value);
        }
        self.personal.redact(value, &self.scope);
    }
}

impl Hook for Redactor {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let here = RedactionTarget::ALL.iter().map(|one| one.event()).find(|(name, _)| *name == event);
        let Some((field, value)) = here.and_then(|(_, field)| Some((field, data.get(field)?))) else {
            return Ok(HookResult::proceed());
        };
        let mut redacted = value.clone();
        self.redact(&mut redacted);
        if redacted == *value {
            return Ok(HookResult::proceed());
        }
        let answer = HookResult::set(field, redacted);
        Ok(if self.announce {
            answer.info(format!("something was replaced in the {}", field_label(field)))
        } else {
            answer
        })
    }
}

fn field_label(field: &str) -> &str {
    match field {
        "tool_result" => "result of a tool",
        "content" => "answer",
        field => field,
    }
}
