//! Answers to approval requests. If the request was closed long ago, or its session has ended, the decision is returned
//! from the audit log, and the server records the late answer itself.

use std::time::{Duration, SystemTime};

use amplifier_core::{Actor, ApprovalAnswer, AuditEntry, AuditRecord, DecisionBasis, LateAnswerEntry};
use amplifier_link::{ApprovalId, DecidedApproval, invalid_option};

use crate::App;
use crate::feed::{FeedError, PastDecision};
use crate::hub::{HubError, HubErrorCode, SubmittedAnswer};

/// Time limit for a known decision to appear in the log.
const READING: Duration = Duration::from_secs(10);

impl App {
    /// Submits an answer, as [`Hub::answer`](crate::Hub::answer). A late answer is recorded, also if only the log still
    /// has the request.
    ///
    /// # Errors
    /// As there.
    pub async fn answer(&self, id: &ApprovalId, submitted: SubmittedAnswer) -> Result<DecidedApproval, HubError> {
        let given = submitted.answer.clone();
        match self.hub.answer(id, submitted).await {
            Err(refused) if refused.undelivered => Err(self.record_too_late(id, given, refused).await),
            answered => answered,
        }
    }

    /// Records an answer that no session has recorded, and returns the error for it. Without a decision the error stays
    /// as it was: the request may be open.
    async fn record_too_late(&self, id: &ApprovalId, given: ApprovalAnswer, refused: HubError) -> HubError {
        let past = match self.find_decision(id, given.by.as_ref()).await {
            Ok(Some(past)) => past,
            Ok(None) => return refused,
            Err(refused) => return refused,
        };
        if past.options.as_ref().is_some_and(|options| !options.contains(&given.label)) {
            let reason = invalid_option(&given.label, past.options.iter().flatten().map(String::as_str));
            return HubError::new(HubErrorCode::InvalidOption, reason);
        }
        let refused = HubError::already_decided(&past.decided);
        match self.record_late(past, given).await {
            Ok(()) => HubError { message: format!("{}; the answer is recorded", refused.message), ..refused },
            Err(error) => {
                tracing::error!(error, "a late answer is not recorded");
                HubError { message: format!("{}; the answer cannot be recorded: {error}", refused.message), ..refused }
            }
        }
    }

    async fn find_decision(&self, id: &ApprovalId, by: Option<&Actor>) -> Result<Option<PastDecision>, HubError> {
        self.feed.ready().await;
        let known = self.hub.decision(id);
        // For a session that is gone, only the lost connection is known, and not the decision.
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
        Ok(known.filter(|_| is_certain).and_then(|decided| self.reported_decision(id, decided)))
    }

    /// Searches the log for a request, within the limits per user.
    async fn search(&self, id: &ApprovalId, by: Option<&Actor>) -> Result<Option<PastDecision>, HubError> {
        let Some(permit) = self.feed.searches().for_user(by.cloned()).acquire().await else {
            let message = "too many searches in the audit log; the answer is not recorded, try again later";
            return Err(HubError::new(HubErrorCode::TooMany, message));
        };
        let (feed, wanted) = (self.feed.clone(), id.to_string());
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            feed.find_decision(&wanted)
        });
        let read = read.await.unwrap_or_else(|error| Err(FeedError::Thread(std::io::Error::other(error))));
        read.map_err(|error| {
            tracing::error!(%error, "cannot read a decision from the audit log");
            HubError::new(HubErrorCode::Failed, "the audit log cannot be read; the decision is unknown")
        })
    }

    /// Returns the decision that the session sent, if the log does not have one yet.
    fn reported_decision(&self, id: &ApprovalId, decided: DecidedApproval) -> Option<PastDecision> {
        let turn = self.feed.session(&decided.session).map_or(0, |facts| facts.turns);
        let event = decided.event.parse().ok()?;
        Some(PastDecision { decided, number: id.number, event, turn, options: None })
    }

    async fn record_late(&self, past: PastDecision, given: ApprovalAnswer) -> Result<(), String> {
        let PastDecision { decided: DecidedApproval { session, hook, .. }, number, event, turn, .. } = past;
        let entry = AuditEntry::LateAnswer(LateAnswerEntry { id: number, hook, answer: given.label, by: given.by });
        let record = AuditRecord { at: SystemTime::now(), session: Some(session.clone()), turn, event, entry };
        let log = self.log.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let receipt = log.take(&record)?;
            log.flush_blocking(receipt)?;
            Ok::<_, amplifier_audit::AuditError>(log.status().size)
        });
        let size = kept.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        // A session that has ended stays sealed: with a record after its seal, the session would seem to have no end,
        // and retention could not remove its records.
        let mut changed = self.feed.changed();
        if !matches!(tokio::time::timeout(READING, changed.wait_for(|cursor| *cursor >= size)).await, Ok(Ok(_))) {
            tracing::warn!("the log was not read in time; an ended session may be unsealed");
        } else if self.feed.is_reopened(&session) {
            self.log.seal(&session, "late_answer").await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use amplifier_audit::Log;
    use amplifier_link::AnswerScope;

    use super::*;
    use crate::Hub;
    use crate::access::{Access, AccessOptions};
    use crate::feed::Feed;

    #[tokio::test(start_paused = true)]
    async fn few_searches_for_old_requests_run_at_a_time_and_no_caller_blocks_others() {
        let folder = tempfile::tempdir().unwrap();
        let (audit, key) = (folder.path().join("audit"), folder.path().join("key"));
        let log = Log::at(&audit, key).open().unwrap();
        let access = Access::open(&folder.path().join("server"), AccessOptions::default()).unwrap();
        let feed = Feed::open(&audit, None).unwrap();
        let app = App { hub: Hub::new(), feed, access, log };
        let person = |name: &str| Actor { name: name.to_owned(), via: "api".to_owned() };
        let answer = async |name: &str| {
            let answer = ApprovalAnswer { by: Some(person(name)), .."Allow".into() };
            let submitted = SubmittedAnswer { answer, nonce: String::new(), scope: AnswerScope::Once };
            app.answer(&ApprovalId::new("session", "run", 1), submitted).await.unwrap_err().code
        };
        let acquire = async |name: &str| app.feed.searches().for_user(Some(person(name))).acquire().await.unwrap();
        let eve = (acquire("eve").await, acquire("eve").await);
        assert_eq!((answer("eve").await, answer("ada").await), (HubErrorCode::TooMany, HubErrorCode::NotFound));
        let bob = (acquire("bob").await, acquire("bob").await);
        assert_eq!(answer("ada").await, HubErrorCode::TooMany);
        drop((eve, bob));
        assert_eq!(answer("ada").await, HubErrorCode::NotFound);
    }
}
