//! Standing answers: those that are kept in files, and what they mean in words.

use amplifier_core::Answerer;

use crate::wire::{Rule, Scope, Unreadable};

/// The standing answers that are kept in files. The command knows where they are.
///
/// Its methods block for as long as small files take, and every change is recorded before it counts.
pub trait RuleBook: Send + Sync + 'static {
    /// All of them: the person's, and those of every project; and the files that cannot be read.
    fn list(&self) -> Kept;

    /// Adds one.
    ///
    /// # Errors
    /// If it cannot be recorded or written; in words. Nothing has changed then.
    fn add(&self, rule: &KeptRule, by: &Answerer) -> Result<(), String>;

    /// Takes one back. False if there is none.
    ///
    /// # Errors
    /// If it cannot be recorded or written; in words. Nothing has changed then.
    fn revoke(&self, rule: &KeptRule, by: &Answerer) -> Result<bool, String>;

    /// Records a change that is kept nowhere else.
    ///
    /// # Errors
    /// If it cannot be recorded; in words.
    fn record(&self, change: &serde_json::Value) -> Result<(), String>;
}

/// What stands in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The standing answers in those that can be read.
    pub rules: Vec<KeptRule>,
    /// Those that cannot.
    pub unreadable: Vec<Unreadable>,
}

/// A standing answer in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRule {
    /// The folder of the project that it holds in; everywhere if there is none.
    pub project: Option<String>,
    /// The hook whose questions it answers.
    pub hook: String,
    /// The questions: `*` stands for any text.
    pub pattern: String,
    /// Whether it is a yes.
    pub allows: bool,
}

/// A standing answer that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    /// For what it is to hold.
    pub scope: Scope,
    /// The session, if it is to hold for one.
    pub session: Option<String>,
    /// The folder, if it is to hold for one.
    pub project: Option<String>,
    /// The hook whose questions it answers.
    pub hook: String,
    /// The questions.
    pub pattern: String,
    /// Whether it is a yes.
    pub allows: bool,
}

impl KeptRule {
    /// What it is called in the API.
    pub fn id(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for part in [self.project.as_deref().unwrap_or_default(), &self.hook, &self.pattern, decision(self.allows)] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: String = hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let scope = if self.project.is_some() { "project" } else { "person" };
        format!("{scope}.{digest}")
    }

    pub(super) fn shown(&self) -> Rule {
        let scope = if self.project.is_some() { Scope::Project } else { Scope::Person };
        let place = match &self.project {
            Some(project) => format!("in every session in `{project}`"),
            None => "in every session".to_owned(),
        };
        Rule {
            id: self.id(),
            scope,
            session: None,
            project: self.project.clone(),
            hook: self.hook.clone(),
            pattern: self.pattern.clone(),
            decision: decision(self.allows).to_owned(),
            by: None,
            explanation: explain(&self.hook, &self.pattern, self.allows, &place),
        }
    }
}

/// What a standing answer does, in a sentence.
pub(crate) fn explain(hook: &str, pattern: &str, allows: bool, place: &str) -> String {
    let word = if allows { "allowed" } else { "denied" };
    let unless = if allows { ", unless another rule denies it" } else { "" };
    match pattern {
        "*" => format!("Whatever hook `{hook}` asks is {word} without asking, {place}{unless}."),
        pattern if pattern.contains('*') => format!(
            "When hook `{hook}` asks something of the form `{pattern}`, where `*` is any text, it is {word} without asking, \
             {place}{unless}."
        ),
        pattern => format!("When hook `{hook}` asks `{pattern}`, it is {word} without asking, {place}{unless}."),
    }
}

/// The word for a decision.
pub(crate) fn decision(allows: bool) -> &'static str {
    if allows { "allow" } else { "deny" }
}

/// Fails if a rule would not be what it seems: a rule is `<hook>:<pattern>`, and the hook ends at the first colon.
pub(super) fn check(hook: &str, pattern: &str) -> Result<(), String> {
    if hook.is_empty() || hook.contains(['*', ':']) {
        return Err(format!("`{hook}` is no name of a hook that a rule can be about"));
    }
    if pattern.is_empty() {
        return Err("the pattern is empty; `*` stands for any text".to_owned());
    }
    Ok(())
}
