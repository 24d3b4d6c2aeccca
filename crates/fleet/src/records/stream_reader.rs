//! Reads the stream of all chunks, in order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::pull::{Batch, Config};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use serde::Deserialize;
use tokio::time::timeout;

use crate::records::chunk::ChunkHeader;
use crate::{Connection, FleetError, FleetName, subjects};

/// The most messages that are read at once.
const MESSAGES: usize = 64;
/// The longest wait for a message.
const WAIT: Duration = Duration::from_millis(100);
/// The time after which the server ends a request for messages.
const EXPIRES: Duration = Duration::from_secs(5);
/// The time after which the server removes the consumer of a reader that is gone.
const INACTIVE: Duration = Duration::from_secs(60);

/// A chunk from the stream.
#[derive(Debug)]
pub(crate) struct StreamChunk {
    pub(crate) machine: FleetName,
    pub(crate) log: FleetName,
    pub(crate) header: ChunkHeader,
    pub(crate) lines: Bytes,
}

/// A message that was read: the next one has a higher sequence number, unless the stream was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastMessage {
    sequence: u64,
    subject: String,
    chunk: Option<ChunkHeader>,
}

/// Reads the stream of all chunks.
pub(crate) struct StreamReader {
    connection: Connection,
    consumer: Consumer<Config>,
    batch: Option<Batch>,
    /// The number of messages that the consumer has delivered.
    delivered: u64,
    last: Option<LastMessage>,
    /// The time at which the stream was created.
    created: String,
    /// The failure after the chunks that were returned last.
    failure: Option<FleetError>,
    /// The number of connections so far: a server may have lost messages while it was away.
    connects: u64,
}

#[derive(Deserialize)]
struct StreamInfo {
    #[serde(default)]
    created: String,
    state: Option<StreamState>,
}

#[derive(Deserialize)]
struct StreamState {
    last_seq: u64,
}

impl StreamReader {
    /// Reads from after a message on. If that message is no longer at its place, or there is none, reads from the beginning.
    pub(crate) async fn open(connection: &Connection, last: Option<LastMessage>) -> Result<Self, FleetError> {
        let connects = connects(connection);
        let created = stream_info(connection).await?.created;
        let last = match last {
            Some(last) if is_at_its_place(connection, &last).await? => Some(last),
            _ => None,
        };
        let config = Config {
            deliver_policy: match &last {
                Some(last) => DeliverPolicy::ByStartSequence { start_sequence: last.sequence + 1 },
                None => DeliverPolicy::All,
            },
            ack_policy: AckPolicy::None,
            inactive_threshold: INACTIVE,
            memory_storage: true,
            num_replicas: 1,
            ..Config::default()
        };
        let context = async_nats::jetstream::new(connection.client().clone());
        let consumer = context.create_consumer_on_stream(config, subjects::AUDIT).await.map_err(invalid)?;
        Ok(Self {
            connection: connection.clone(),
            consumer,
            batch: None,
            delivered: 0,
            last,
            created,
            failure: None,
            connects,
        })
    }

    /// Returns the last message that was read.
    pub(crate) fn last(&self) -> Option<LastMessage> {
        self.last.clone()
    }

    /// Returns `true` if the stream may have been replaced, or have lost messages.
    pub(crate) async fn has_changed(&self) -> Result<bool, FleetError> {
        if connects(&self.connection) != self.connects {
            return Ok(true);
        }
        let info = stream_info(&self.connection).await?;
        let last = info.state.map_or(0, |state| state.last_seq);
        Ok(info.created != self.created || self.last.as_ref().is_some_and(|read| read.sequence > last))
    }

    /// Reads the next chunks; none if none arrive for a moment.
    pub(crate) async fn next_chunks(&mut self) -> Result<Vec<StreamChunk>, FleetError> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let mut batch = match self.batch.take() {
            Some(batch) => batch,
            None => {
                let request = self.consumer.batch().max_messages(MESSAGES).expires(EXPIRES);
                request.messages().await.map_err(invalid)?
            }
        };
        let mut chunks = Vec::new();
        // Only the first message is awaited.
        let mut next = timeout(WAIT, batch.next()).await.ok();
        loop {
            match next {
                None => {
                    self.batch = Some(batch);
                    return Ok(chunks);
                }
                Some(None) => return Ok(chunks),
                Some(Some(message)) => match message.map_err(invalid).and_then(|message| self.take(&message)) {
                    Ok(chunk) => chunks.extend(chunk),
                    Err(error) if chunks.is_empty() => return Err(error),
                    Err(error) => {
                        self.failure = Some(error);
                        return Ok(chunks);
                    }
                },
            }
            next = batch.next().now_or_never();
        }
    }

    fn take(&mut self, message: &async_nats::jetstream::Message) -> Result<Option<StreamChunk>, FleetError> {
        let info = message.info().map_err(invalid)?;
        self.delivered += 1;
        if info.consumer_sequence != self.delivered {
            return Err(invalid("a message was lost on the way"));
        }
        let subject = message.subject.to_string();
        let chunk = ChunkHeader::read(&subject, message.headers.as_ref().unwrap_or(&HeaderMap::new()));
        self.last = Some(LastMessage {
            sequence: info.stream_sequence,
            subject: subject.clone(),
            chunk: chunk.as_ref().ok().copied(),
        });
        match (subjects::log(&subject), chunk) {
            (Some((machine, log)), Ok(header)) => {
                Ok(Some(StreamChunk { machine, log, header, lines: message.payload.clone() }))
            }
            _ => {
                tracing::warn!(subject, "a message is not a chunk of records, and is ignored");
                Ok(None)
            }
        }
    }
}

async fn is_at_its_place(connection: &Connection, last: &LastMessage) -> Result<bool, FleetError> {
    let request = format!("{{\"seq\":{}}}", last.sequence);
    let subject = format!("$JS.API.DIRECT.GET.{}", subjects::AUDIT);
    let reply = connection.request(&subject, HeaderMap::new(), request.into()).await?;
    // A status is an error: the message is gone.
    let Some(headers) = reply.headers.filter(|_| reply.status.is_none()) else { return Ok(false) };
    let is_same_subject = headers.get("Nats-Subject").is_some_and(|subject| subject.as_str() == last.subject);
    Ok(is_same_subject && ChunkHeader::read(&last.subject, &headers).ok() == last.chunk)
}

async fn stream_info(connection: &Connection) -> Result<StreamInfo, FleetError> {
    let subject = format!("$JS.API.STREAM.INFO.{}", subjects::AUDIT);
    let reply = connection.request(&subject, HeaderMap::new(), Bytes::new()).await?;
    let info: StreamInfo = serde_json::from_slice(&reply.payload).map_err(invalid)?;
    match info.state {
        Some(_) => Ok(info),
        None => Err(invalid("the stream does not exist")),
    }
}

fn connects(connection: &Connection) -> u64 {
    connection.client().statistics().connects.load(Ordering::Relaxed)
}

fn invalid(error: impl ToString) -> FleetError {
    FleetError::Invalid { subject: subjects::AUDIT.to_owned(), cause: error.to_string() }
}
