//! The approval requests of all machines, as messages of their stream.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::{self};
use futures::StreamExt;
use tokio::sync::mpsc;

use super::request_state::RequestState;
use crate::{Connection, FleetError, subjects};

/// The subjects of all requests.
const ALL: &str = "ask.>";

/// The pause before the stream is read again after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of reads of one message that is not stored yet, and the pause between them.
const READS: (u32, Duration) = (8, Duration::from_millis(5));

/// A state of a request, and its position in the stream.
pub(super) struct RequestChange {
    pub(super) subject: String,
    pub(super) sequence: u64,
    pub(super) state: RequestState,
}

/// Sends the last state of all requests, and later every change, until the receiver is dropped. States may come twice.
pub(super) async fn follow(connection: Connection, changes: mpsc::Sender<RequestChange>) {
    let both = async { tokio::join!(follow_stream(&connection, &changes), follow_notices(&connection, &changes)) };
    tokio::select! {
        _ = both => {}
        () = changes.closed() => {}
    }
}

/// Reads the stream, from the last message of each subject on. A consumer that fails begins again.
async fn follow_stream(connection: &Connection, changes: &mpsc::Sender<RequestChange>) {
    loop {
        if let Err(error) = read_stream(connection, changes).await {
            tracing::debug!(%error, "the approval requests at the centre cannot be read");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn read_stream(connection: &Connection, changes: &mpsc::Sender<RequestChange>) -> Result<(), async_nats::Error> {
    let stream = jetstream::new(connection.client().clone()).get_stream_no_info(subjects::ASK).await?;
    let config = OrderedConfig {
        filter_subject: ALL.to_owned(),
        deliver_policy: DeliverPolicy::LastPerSubject,
        ..OrderedConfig::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        let sequence = message.info()?.stream_sequence;
        send(changes, &message.subject, sequence, &message.payload).await;
    }
    Ok(())
}

/// Reads each subject with a new message. The consumer of the stream takes longer to notice a lost server.
async fn follow_notices(connection: &Connection, changes: &mpsc::Sender<RequestChange>) {
    let Ok(mut notices) = connection.client().subscribe(ALL).await else { return };
    while let Some(notice) = notices.next().await {
        for _ in 0..READS.0 {
            match connection.last_message(subjects::ASK, &notice.subject).await {
                Ok(Some(stored)) if stored.payload == notice.payload => {
                    send(changes, &stored.subject, stored.sequence, &stored.payload).await;
                    break;
                }
                // The message is not stored yet, or was refused. The consumer delivers it if it is stored later.
                Ok(_) | Err(FleetError::NoResponders { .. }) => tokio::time::sleep(READS.1).await,
                Err(_) => break,
            }
        }
    }
}

async fn send(changes: &mpsc::Sender<RequestChange>, subject: &str, sequence: u64, payload: &[u8]) {
    match RequestState::read(subject, payload) {
        Ok(state) => {
            // Fails if the console is closed.
            let _ = changes.send(RequestChange { subject: subject.to_owned(), sequence, state }).await;
        }
        Err(error) => tracing::warn!(%error, "an approval request is ignored"),
    }
}
