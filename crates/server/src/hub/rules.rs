//! Standing answers: given, taken back, and what they mean in words.

use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::Duration;

use amplifier_core::{Actor, ApprovalRule, RuleScope};

use super::{Change, Hub, Refused, Silence};
use amplifier_link::{Kept, RuleBook, ToSession, Unreadable};

use crate::wire::{Rule, Rules};

/// How often is looked for what others have changed in the files: by a command, or with an editor.
const LOOK: Duration = Duration::from_secs(1);

impl Hub {
    /// The standing answers: of sessions, of projects, of the person; and the files that cannot be read. Blocks while it reads.
    pub fn rules(&self) -> Rules {
        let mut rules = self.state().rules();
        let kept = self.shared.book.get().map(|book| book.list()).unwrap_or_default();
        self.compare(&kept);
        let Kept { rules: kept, unreadable } = kept;
        rules.extend(kept.into_iter().map(Rule::from));
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
    pub async fn add_rule(&self, rule: ApprovalRule) -> Result<Rule, Refused> {
        rule.check().map_err(|invalid| Refused::new("not_offered", invalid.to_string()))?;
        let rule = ApprovalRule { event: None, created_at: None, ..rule };
        if rule.scope == RuleScope::Session {
            let none = || Refused::new("not_offered", "say for which session: `session`");
            let session = rule.session.clone().ok_or_else(none)?;
            let rule = ApprovalRule { project: None, ..rule };
            let id = rule.id();
            self.ruled(&session, |reference| ToSession::Rule { reference, rule: Box::new(rule) }).await?;
            let added = self.state().rules().into_iter().find(|rule| rule.id == id);
            return added.ok_or_else(|| Refused::new("failed", "the session does not list the rule"));
        }
        let project = match (rule.scope, rule.project) {
            (RuleScope::Project, None) => return Err(Refused::new("not_offered", "say for which folder: `project`")),
            (RuleScope::Project, Some(project)) => Some(folder(project).await?),
            _ => None,
        };
        let rule = ApprovalRule { project, session: None, ..rule };
        let added = Rule::from(ApprovalRule { by: None, ..rule.clone() });
        let now = self.in_book(move |book| book.add(&rule).map(|()| book.list())).await?;
        // Whoever looks from now on finds no news.
        self.seen(&now);
        self.told(vec![Change::Rules]);
        Ok(added)
    }

    /// Takes a standing answer back.
    ///
    /// # Errors
    /// If there is none, or that cannot be kept or recorded.
    pub async fn revoke(&self, id: &str, by: Actor) -> Result<(), Refused> {
        let rules = self.state().rules();
        let found = rules.into_iter().find(|rule| rule.id == id);
        if let Some(session) = found.and_then(|found| found.rule.session) {
            let rule = id.to_owned();
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
