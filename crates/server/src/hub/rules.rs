//! Standing answers: given, taken back, and what they mean in words.

use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::Duration;

use amplifier_core::Answerer;

use super::{Change, Hub, Refused, Silence};
use crate::link::protocol::ToSession;
use crate::wire::{Rule, Rules, Scope, Unreadable};

/// How often is looked for what others have changed in the files: by a command, or with an editor.
const LOOK: Duration = Duration::from_secs(1);

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

impl Hub {
    /// The standing answers: of sessions, of projects, of the person; and the files that cannot be read. Blocks while it reads.
    pub fn rules(&self) -> Rules {
        let mut rules = self.state().rules();
        let kept = self.shared.book.get().map(|book| book.list()).unwrap_or_default();
        self.compare(&kept);
        let Kept { rules: kept, unreadable } = kept;
        rules.extend(kept.iter().map(KeptRule::shown));
        Rules { rules, unreadable }
    }

    /// Tells of what others change in the files, as long as the future is awaited.
    pub(crate) async fn follow_rules(&self) -> Infallible {
        loop {
            if let Ok(kept) = self.in_book(|book| Ok(book.list())).await {
                self.compare(&kept);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Tells of what others have changed in the files since somebody looked last.
    fn compare(&self, kept: &Kept) {
        if self.seen(kept).is_some_and(|last| last != *kept) {
            self.told(vec![Change::Rules]);
        }
    }

    /// Keeps what stands in the files now; gives what stood there when somebody looked last.
    fn seen(&self, kept: &Kept) -> Option<Kept> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner).replace(kept.clone())
    }

    /// Adds a standing answer. Sessions go by those in files as they are when a hook asks.
    ///
    /// # Errors
    /// If it is none, or cannot be kept or recorded.
    pub async fn add_rule(&self, rule: NewRule, by: Answerer) -> Result<Rule, Refused> {
        check(&rule.hook, &rule.pattern).map_err(|problem| Refused::new("not_offered", problem))?;
        let NewRule { scope, session, project, hook, pattern, allows } = rule;
        if scope == Scope::Session {
            let session = session.ok_or_else(|| Refused::new("not_offered", "say for which session: `session`"))?;
            let (hook_name, asked) = (hook.clone(), pattern.clone());
            self.ruled(&session, |reference| {
                let decision = decision(allows).to_owned();
                ToSession::Rule { reference, hook, pattern, decision, by }
            })
            .await?;
            let now = self.state().rules();
            let added = now.into_iter().find(|rule| {
                rule.session.as_ref() == Some(&session) && rule.hook == hook_name && rule.pattern == asked
            });
            return added.ok_or_else(|| Refused::new("failed", "the session does not list the rule"));
        }
        let project = match (scope, project) {
            (Scope::Project, None) => return Err(Refused::new("not_offered", "say for which folder: `project`")),
            (Scope::Project, Some(project)) => Some(folder(project).await?),
            _ => None,
        };
        let kept = KeptRule { project, hook, pattern, allows };
        let shown = kept.shown();
        let now = self.in_book(move |book| book.add(&kept, &by).map(|()| book.list())).await?;
        // Whoever looks from now on finds no news.
        self.seen(&now);
        self.told(vec![Change::Rules]);
        Ok(shown)
    }

    /// Takes a standing answer back.
    ///
    /// # Errors
    /// If there is none, or that cannot be kept or recorded.
    pub async fn revoke(&self, id: &str, by: Answerer) -> Result<(), Refused> {
        let rules = self.state().rules();
        if let Some(Rule { session: Some(session), .. }) = rules.into_iter().find(|rule| rule.id == id) {
            let prefix = format!("session.{session}.");
            let rule = id.strip_prefix(&prefix).unwrap_or(id).to_owned();
            return self.ruled(&session, |reference| ToSession::Revoke { reference, rule, by }).await;
        }
        let none = || Refused::new("unknown", format!("there is no rule `{id}`"));
        if self.shared.book.get().is_none() {
            return Err(none());
        }
        let wanted = id.to_owned();
        let (found, now) = self
            .in_book(move |book| {
                let kept = book.list().rules.into_iter().find(|rule| rule.id() == wanted);
                let found = kept.map_or(Ok(false), |kept| book.revoke(&kept, &by))?;
                Ok((found, book.list()))
            })
            .await?;
        match now.unreadable.first() {
            _ if found => {}
            None => return Err(none()),
            // It may stand there.
            Some(Unreadable { file, why }) => {
                let message = format!("there is no rule `{id}` where rules can be read, and `{file}` cannot be: {why}");
                return Err(Refused::new("unknown", message));
            }
        }
        self.seen(&now);
        self.told(vec![Change::Rules]);
        Ok(())
    }

    /// Has a session change one of its standing answers, and waits until it has.
    async fn ruled(&self, session: &str, message: impl FnOnce(u64) -> ToSession) -> Result<(), Refused> {
        let ((link, connection), reference) = {
            let mut state = self.state();
            (state.reach(session, false)?, state.next_reference())
        };
        let told = self.shared.rulings.ask(&link, connection, reference, message(reference)).await;
        told.unwrap_or_else(|silence| {
            Err(match silence {
                Silence::Deaf | Silence::Gone => Refused::gone(session),
                Silence::Slow => Refused::new("silent", "the session has not said in time whether the rule is changed"),
            })
        })
    }

    /// Looks into the book, where that may take a while.
    async fn in_book<T: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn RuleBook) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Refused> {
        let Some(book) = self.shared.book.get().cloned() else {
            return Err(Refused::new("failed", "this server keeps no rules for projects and persons"));
        };
        let done = tokio::task::spawn_blocking(move || act(&*book)).await;
        done.unwrap_or_else(|error| Err(error.to_string())).map_err(|error| Refused::new("failed", error))
    }
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
            "When hook `{hook}` asks something of the form \"{pattern}\", where `*` is any text, it is {word} without asking, \
             {place}{unless}."
        ),
        pattern => format!("When hook `{hook}` asks \"{pattern}\", it is {word} without asking, {place}{unless}."),
    }
}

/// The word for a decision.
pub(crate) fn decision(allows: bool) -> &'static str {
    if allows { "allow" } else { "deny" }
}

/// Fails if a rule would not be what it seems: a rule is `<hook>:<pattern>`, and the hook ends at the first colon.
fn check(hook: &str, pattern: &str) -> Result<(), String> {
    if hook.is_empty() || hook.contains(['*', ':']) {
        return Err(format!("`{hook}` is no name of a hook that a rule can be about"));
    }
    if pattern.is_empty() {
        return Err("the pattern is empty; `*` stands for any text".to_owned());
    }
    Ok(())
}

/// The folder that a rule holds for, as sessions name it.
async fn folder(named: String) -> Result<String, Refused> {
    let none = |why: String| Refused::new("not_offered", format!("`{named}` cannot be a project: {why}"));
    let path = named.clone();
    let found = tokio::task::spawn_blocking(move || std::path::Path::new(&path).canonicalize()).await;
    let found = found.map_err(|error| none(error.to_string()))?.map_err(|error| none(error.to_string()))?;
    if !found.is_dir() || !std::path::Path::new(&named).is_absolute() {
        return Err(none("it has to be the whole path of a folder".to_owned()));
    }
    found.into_os_string().into_string().map_err(|_| none("its name is not text".to_owned()))
}
