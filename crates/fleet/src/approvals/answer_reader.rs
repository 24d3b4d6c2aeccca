//! Notifications about stored answers, and the answers themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::{Connection, FleetError, FleetName, StoredMessage, subjects};

/// The first pause between two reads after a notification, doubled each time.
const PAUSE: Duration = Duration::from_millis(1);

/// Reads the answers to the requests of one run. A message of a subscription may be one that the stream refuses, so it only tells when to read.
pub(super) struct AnswerReader {
    connection: Connection,
    notices: Arc<Notices>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Notices {
    // A std lock: nothing awaits while it is held.
    by_subject: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Notices {
    fn by_subject(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.by_subject.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers at one subject, until it is dropped.
pub(super) struct AnswerSubject<'a> {
    reader: &'a AnswerReader,
    subject: String,
    notice: Arc<Notify>,
}

impl AnswerReader {
    pub(super) async fn start(
        connection: Connection,
        machine: &FleetName,
        run: &FleetName,
    ) -> Result<Self, FleetError> {
        let subject = subjects::answers_of_run(machine, run);
        let subscribed = connection.client().subscribe(subject.clone()).await;
        let mut messages = subscribed.map_err(|error| FleetError::Invalid { subject, cause: error.to_string() })?;
        let notices = Arc::new(Notices::default());
        let own = notices.clone();
        let task = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                if let Some(notice) = own.by_subject().get(message.subject.as_str()) {
                    notice.notify_one();
                }
            }
        });
        Ok(Self { connection, notices, task })
    }

    /// Receives the notifications about a subject.
    pub(super) fn listen(&self, subject: String) -> AnswerSubject<'_> {
        let notice = Arc::new(Notify::new());
        self.notices.by_subject().insert(subject.clone(), notice.clone());
        AnswerSubject { reader: self, subject, notice }
    }
}

impl Drop for AnswerReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AnswerSubject<'_> {
    /// Returns the stored answer, if there is one.
    pub(super) async fn read(&self) -> Result<Option<StoredMessage>, FleetError> {
        self.reader.connection.last_message(subjects::ANSWER, &self.subject).await
    }

    /// Waits for the stored answer, and reads it again after `poll` at the latest.
    pub(super) async fn wait(&self, poll: Duration) -> StoredMessage {
        let mut pause = poll;
        loop {
            match self.read().await {
                Ok(Some(message)) => return message,
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "the answer to an approval request cannot be read"),
            }
            tokio::select! {
                // The message may not be stored yet, or only on another server.
                () = self.notice.notified() => pause = PAUSE,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(poll),
            }
        }
    }
}

impl Drop for AnswerSubject<'_> {
    fn drop(&mut self) {
        self.reader.notices.by_subject().remove(&self.subject);
    }
}
