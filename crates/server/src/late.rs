//! Answers that no session takes notice of: the question was closed long ago, or its session has ended. What the record says became of the
//! question is told, and the server records the answer itself.

use std::time::{Duration, SystemTime};

use amplifier_core::{Actor, AuditEntry, AuditRecord, DecisionBasis, LateAnswerEntry};

use crate::App;
use crate::feed::{FeedError, Past};
use crate::hub::{Answering, Refused};
use crate::wire::Decided;

/// How long is waited for a decision, that is known of already, to be read from the log.
const READING: Duration = Duration::from_secs(10);

impl App {
    /// Answers a question, as [`Hub::answer`](crate::Hub::answer). An answer that is too late is recorded, whoever still knows of the question.
    ///
    /// # Errors
    /// As there.
    pub async fn answer(&self, id: &str, answering: Answering) -> Result<Decided, Refused> {
        let given = answering.clone();
        match self.hub.answer(id, answering).await {
            Err(refused) if refused.unheard => Err(self.too_late(id, given, refused).await),
            answered => answered,
        }
    }

    /// What to say to an answer that no session has taken notice of. It stays what it was if there is no decision: the question may be open.
    async fn too_late(&self, id: &str, given: Answering, refused: Refused) -> Refused {
        let past = match self.past(id, &given.by).await {
            Ok(Some(past)) => past,
            Ok(None) => return refused,
            Err(refused) => return refused,
        };
        if past.options.as_ref().is_some_and(|options| !options.contains(&given.option)) {
            return Refused::not_offered(&given.option, past.options.iter().flatten().map(String::as_str));
        }
        let refused = Refused::over(&past.decided);
        match self.record_late(past, given).await {
            Ok(()) => Refused { message: format!("{}; the answer is recorded", refused.message), ..refused },
            Err(error) => {
                tracing::error!(error, "a late answer is not recorded");
                Refused { message: format!("{}; the answer cannot be recorded: {error}", refused.message), ..refused }
            }
        }
    }

    /// What the record says about a question that was decided.
    async fn past(&self, id: &str, by: &Actor) -> Result<Option<Past>, Refused> {
        self.feed.ready().await;
        let known = self.hub.decided(id);
        // What is known of a question whose session has gone is that it cannot be answered, and not what became of it.
        let is_certain = known.as_ref().is_some_and(|known| known.basis != DecisionBasis::Disconnected);
        let mut changed = self.feed.changed();
        let until = tokio::time::Instant::now() + READING;
        loop {
            changed.mark_unchanged();
            if let Some(past) = self.search(id, by).await? {
                return Ok(Some(past));
            }
            if !is_certain || !matches!(tokio::time::timeout_at(until, changed.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        Ok(known.filter(|_| is_certain).and_then(|decided| self.as_told(id, decided)))
    }

    /// Looks for a question in the log, when it is that person's turn.
    async fn search(&self, id: &str, by: &Actor) -> Result<Option<Past>, Refused> {
        let Some(turn) = self.feed.searches().of(Some(by.clone())).turn().await else {
            let message = "too many look for old questions in the audit log, so the answer is not recorded";
            return Err(Refused::new("too_many", message));
        };
        let (feed, wanted) = (self.feed.clone(), id.to_owned());
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            feed.past(&wanted)
        });
        let read = read.await.unwrap_or_else(|error| Err(FeedError::Thread(std::io::Error::other(error))));
        read.map_err(|error| {
            tracing::error!(%error, "what became of a question cannot be read");
            Refused::new("failed", "the audit log cannot be read, so it is not known what became of the question")
        })
    }

    /// What the session said about a question whose decision is not in the log, or not yet.
    fn as_told(&self, id: &str, decided: Decided) -> Option<Past> {
        let number = id.rsplit_once('.')?.1.parse().ok()?;
        let turn = self.feed.session(&decided.session).map_or(0, |facts| facts.turns);
        let event = decided.event.parse().ok()?;
        Some(Past { decided, number, event, turn, options: None })
    }

    async fn record_late(&self, past: Past, given: Answering) -> Result<(), String> {
        let Past { decided: Decided { session, hook, .. }, number, event, turn, .. } = past;
        let entry =
            AuditEntry::LateAnswer(LateAnswerEntry { id: number, hook, answer: given.option, by: Some(given.by) });
        let record = AuditRecord { at: SystemTime::now(), session: Some(session.clone()), turn, event, entry };
        let log = self.log.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let receipt = log.take(&record)?;
            log.flush_blocking(receipt)?;
            Ok::<_, amplifier_audit::AuditError>(log.status().size)
        });
        let size = kept.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        // A session that has ended stays sealed: what comes after its seal would look as if it had no end, and keep its records from
        // being removed by their age.
        let mut changed = self.feed.changed();
        if !matches!(tokio::time::timeout(READING, changed.wait_for(|cursor| *cursor >= size)).await, Ok(Ok(_))) {
            tracing::warn!("the log is not read in time, so a session that has ended may not be sealed any more");
        } else if self.feed.is_reopened(&session) {
            self.log.seal(&session, "late_answer").await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amplifier_audit::Log;

    use super::*;
    use crate::access::{Access, AccessOptions};
    use crate::feed::Feed;
    use crate::trial::{Trial, Tried};
    use crate::{BoxFuture, Host, Hub};

    struct NoHost;

    impl Host for NoHost {
        fn start_session(&self, _: Hub, _: Option<String>, _: Option<String>) -> BoxFuture<'_, Result<String, String>> {
            Box::pin(async { Err(String::new()) })
        }

        fn test_bundle(&self, _: Option<String>) -> BoxFuture<'_, Result<serde_json::Value, String>> {
            Box::pin(async { Err(String::new()) })
        }

        fn try_event(&self, _: Trial) -> BoxFuture<'_, Result<Tried, String>> {
            Box::pin(async { Err(String::new()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_look_for_old_questions_at_a_time_and_nobody_keeps_others_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let (audit, key) = (folder.path().join("audit"), folder.path().join("key"));
        let log = Log::at(&audit, key).open().unwrap();
        let access = Access::open(&folder.path().join("server"), AccessOptions::default()).unwrap();
        let feed = Feed::open(&audit, None).unwrap();
        let app = App { hub: Hub::new(), feed, access, log, host: Arc::new(NoHost) };
        let person = |name: &str| Actor { name: name.to_owned(), via: "api".to_owned() };
        let answer = async |name: &str| {
            let answering =
                Answering { option: "Allow".to_owned(), nonce: String::new(), by: person(name), scope: None };
            app.answer("session.run.1", answering).await.unwrap_err().code
        };
        let turn = async |name: &str| app.feed.searches().of(Some(person(name))).turn().await.unwrap();
        let eve = (turn("eve").await, turn("eve").await);
        assert_eq!((answer("eve").await, answer("ada").await), ("too_many", "unknown"));
        let bob = (turn("bob").await, turn("bob").await);
        assert_eq!(answer("ada").await, "too_many");
        drop((eve, bob));
        assert_eq!(answer("ada").await, "unknown");
    }
}
