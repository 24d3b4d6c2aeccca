//! Approval rules in files.

use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::ApprovalRule;
use crate::result::DefaultDecision;

/// Rules of a user, from a file that the user owns.
///
/// Each rule is `"<hook>:<pattern>": "allow"` or `"deny"`; the pattern is compared with the whole prompt, and `*` stands
/// for any text. Where several match, deny wins. Rules about operations are in an object: `"<hook>": { "<operation>": "allow" }`. They allow an
/// operation if they name all of its parts, and deny it if they name one.
///
/// ```
/// let rules = amplifier_core::ApprovalRules::from_json(
///     r#"{ "production-guard:Allow write to staging/*": "allow", "cost-control:*": "deny", "confirm": { "write src/**": "allow" } }"#,
/// )?;
/// # Ok::<(), amplifier_core::InvalidRules>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    // A list: a rule that is in the file with both answers counts as both, so that deny wins.
    rules: Vec<ApprovalRule>,
}

impl FromIterator<ApprovalRule> for ApprovalRules {
    fn from_iter<I: IntoIterator<Item = ApprovalRule>>(rules: I) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

impl<'de> Deserialize<'de> for ApprovalRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RulesVisitor;

        impl<'de> Visitor<'de> for RulesVisitor {
            type Value = ApprovalRules;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of rules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ApprovalRules, A::Error> {
                let mut rules = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    // A `*` instead of the hook would look like "every hook" and match none.
                    match key.split_once(':') {
                        Some((hook, pattern)) if !hook.is_empty() && !hook.contains('*') => {
                            rules.push(ApprovalRule::new(hook, pattern, map.next_value()?));
                        }
                        None if !key.is_empty() && !key.contains('*') => {
                            map.next_value_seed(HookOperations { hook: &key, rules: &mut rules })?;
                        }
                        _ => return Err(missing_hook(&key)),
                    }
                }
                Ok(ApprovalRules { rules })
            }
        }

        deserializer.deserialize_map(RulesVisitor)
    }
}

fn missing_hook<E: Error>(rule: &str) -> E {
    E::custom(format!("invalid rule `{rule}`: missing hook name; expected `<hook>:<pattern>`"))
}

/// The operations of one hook: an object of operations and decisions.
struct HookOperations<'a> {
    hook: &'a str,
    rules: &'a mut Vec<ApprovalRule>,
}

impl<'de> DeserializeSeed<'de> for HookOperations<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HookOperations<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object of operations for `{}`", self.hook)
    }

    fn visit_str<E: Error>(self, _decision: &str) -> Result<(), E> {
        Err(missing_hook(self.hook))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((operation, decision)) = map.next_entry::<String, _>()? {
            if operation.is_empty() {
                return Err(A::Error::custom(format!(
                    "empty operation for `{}`; expected one such as `write src/**`",
                    self.hook
                )));
            }
            self.rules.push(ApprovalRule::for_operation(self.hook, operation, decision));
        }
        Ok(())
    }
}

/// The form of files, with all operations of a hook in one object. A rule with both decisions is written twice.
impl Serialize for ApprovalRules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (at, rule) in self.rules.iter().enumerate() {
            let of_hook = |other: &&ApprovalRule| other.operation.is_some() && other.hook == rule.hook;
            match &rule.operation {
                None => map.serialize_entry(&rule.file_key(), &rule.decision)?,
                // The first operation of a hook writes all of them.
                Some(_) if self.rules[..at].iter().any(|other| of_hook(&other)) => {}
                Some(_) => {
                    let operations: Vec<_> = self.rules.iter().filter(of_hook).collect();
                    map.serialize_entry(&rule.hook, &OperationEntries(&operations))?;
                }
            }
        }
        map.end()
    }
}

struct OperationEntries<'a>(&'a [&'a ApprovalRule]);

impl Serialize for OperationEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|rule| (&rule.operation, &rule.decision)))
    }
}

/// Rules that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRules {
    /// The file cannot be read.
    #[error("the approval rules `{}` cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not a set of rules.
    #[error(
        "the approval rules are not of the form {{\"<hook>:<pattern>\": \"allow\" or \"deny\", \"<hook>\": {{\"<operation>\": \"allow\" or \"deny\"}}}}: {0}"
    )]
    Form(#[from] serde_json::Error),
}

impl ApprovalRules {
    /// Reads rules from JSON.
    ///
    /// # Errors
    /// If the text is not a set of rules; none of it is used then.
    pub fn from_json(text: &str) -> Result<Self, InvalidRules> {
        Ok(serde_json::from_str(text)?)
    }

    /// Reads rules from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a set of rules.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, InvalidRules> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        Self::from_json(&text.map_err(|source| InvalidRules::Io { path: path.to_owned(), source })?)
    }

    /// Returns these rules and others. If both answer a request, deny wins.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.rules.extend(others.rules);
        self
    }

    /// Returns the rule that decides about a prompt: one that denies, else the first that applies.
    pub(crate) fn deciding(&self, hook: &str, prompt: &str) -> Option<&ApprovalRule> {
        let rules = || self.rules.iter().filter(|rule| rule.applies(hook, prompt));
        rules().find(|rule| rule.decision == DefaultDecision::Deny).or_else(|| rules().next())
    }

    pub(crate) fn has_operation(&self, hook: &str, operation: &str, decision: DefaultDecision) -> bool {
        let is_same = |rule: &ApprovalRule| rule.hook == hook && rule.operation.as_deref() == Some(operation);
        self.rules.iter().any(|rule| rule.decision == decision && is_same(rule))
    }

    pub(crate) fn denials(&self) -> Self {
        self.iter().filter(|rule| rule.decision == DefaultDecision::Deny).cloned().collect()
    }

    /// Returns the rules, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &ApprovalRule> {
        self.rules.iter()
    }
}
