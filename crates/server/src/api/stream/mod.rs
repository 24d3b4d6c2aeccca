//! Live updates over a WebSocket, or as lines of JSON.
//!
//! Every client reads records at its own pace, from its own cursor. Records are not queued for a slow client, which
//! reads them from the log later.

mod broadcast;
mod message;

use amplifier_audit::RecordFilter;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::ApprovalAnswer;
use amplifier_core::text::truncate_bytes;
use axum::body::{Body, Bytes};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, State};
use axum::http::header::{CONTENT_TYPE, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{SinkExt, stream};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::broadcast::StreamBroadcast;
use self::broadcast::{BroadcastMessage, BroadcastReceiver};
use self::message::{ClientMessage, StreamMessage};
use super::approvals::parse_id;
use super::error::{ApiError, Query};
use super::events::RecordQuery;
use super::sessions::all_sessions;
use crate::App;
use crate::access::guard::{ClientConnection, PROTOCOL, Refusal, StreamSlots};
use crate::access::{Identity, Role, Viewer};
use crate::api_types::{ErrorDetails, ErrorResponse, Me};
use crate::hub::SubmittedAnswer;
use crate::redact;
use crate::server::ShutdownSignal;

/// Limits of approval requests and of inactive sessions in the first message. `GET /api/approvals` and
/// `GET /api/sessions` return all of them.
const FIRST_SESSIONS: usize = 200;
const FIRST_APPROVALS: usize = 500;

/// Limit of waiting messages that are sent at once.
const NOTES_AT_ONCE: usize = 256;

/// Limit of unfinished answers per client.
const MOST_ANSWERS: usize = 32;

/// Limit of buffered pieces for a line stream.
const PIECES: usize = 8;

/// Limit of a client's message, in bytes.
const LONGEST_MESSAGE: usize = 64 << 10;

/// Delay before records are read again after a failure.
const AGAIN: Duration = Duration::from_millis(50);

/// Interval of the check that a client is still signed in.
const STILL_IN: Duration = Duration::from_millis(500);

/// Time limit for sending a message, interval of pings, and time limit of silence.
const SEND: Duration = Duration::from_secs(30);
const PING: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(65);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(stream))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamQuery {
    /// Records from this number on; by default, new ones.
    after: Option<u64>,
}

/// Streams live updates: over a WebSocket, or as one JSON object a line.
///
/// The server sends objects with a `type`: first `hello`, then `records`, `session`, `approval_requested`,
/// `approval_closed`, `approval_flood`, `rules`, `audit` and `answered`. Another `hello` means that updates were
/// missed, and replaces all earlier state of sessions and approval requests. Over the WebSocket, the client may send
/// `answer` and `watch`. With `session` in the query, only updates about that session are sent. An empty line is a sign
/// of life.
#[utoipa::path(
    get,
    path = "/api/stream",
    tag = "events",
    params(StreamQuery, RecordQuery),
    responses(
        (status = 101, description = "The WebSocket is open.", body = StreamMessage),
        (status = 200, description = "One object a line.", body = StreamMessage, content_type = "application/x-ndjson"),
        (status = 422, body = ErrorResponse)
    )
)]
async fn stream(
    Viewer(who): Viewer,
    State(app): State<App>,
    Query(query): Query<StreamQuery>,
    Query(wanted): Query<RecordQuery>,
    StreamContext { broadcast, slots, stopping }: StreamContext,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let filter = wanted.filter(&app)?;
    // A WebSocket has its slot already.
    let slot = match headers.contains_key(UPGRADE) {
        true => None,
        false => Some(slots.take(&app.access, Some(&who))?),
    };
    let subscription = Subscription { app, broadcast, who, filter, after: query.after, stopping };
    if let Some(slot) = slot {
        let (sender, pieces) = mpsc::channel(PIECES);
        tokio::spawn(async move {
            subscription.serve(Transport::Lines(sender)).await;
            drop(slot);
        });
        let pieces =
            stream::unfold(pieces, |mut pieces| async { Some((Ok::<_, Infallible>(pieces.recv().await?), pieces)) });
        return Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pieces)).into_response());
    }
    let socket = socket.map_err(|why| ApiError::new(StatusCode::BAD_REQUEST, "upgrade", why.body_text()))?;
    // A browser sends its key as another protocol, which is not echoed.
    let socket = socket.protocols([PROTOCOL]).max_message_size(LONGEST_MESSAGE).max_frame_size(LONGEST_MESSAGE);
    Ok(socket.on_upgrade(move |socket| subscription.serve(Transport::Socket(Box::new(socket)))))
}

/// Server state that a stream needs.
struct StreamContext {
    broadcast: Arc<StreamBroadcast>,
    slots: StreamSlots,
    stopping: ShutdownSignal,
}

impl<S: Sync> FromRequestParts<S> for StreamContext {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let context = || {
            let ClientConnection { stopping, .. } = parts.extensions.get()?;
            let (broadcast, slots) =
                (parts.extensions.get::<Arc<StreamBroadcast>>()?, parts.extensions.get::<StreamSlots>()?);
            Some(Self { broadcast: broadcast.clone(), slots: slots.clone(), stopping: stopping.clone() })
        };
        context().ok_or_else(|| ApiError::internal("the context of the stream is missing"))
    }
}

enum StreamEnd {
    /// The client has left, or the connection broke.
    Disconnected,
    /// The client does not read, or does not reply.
    TimedOut,
    /// The client sent an invalid message.
    InvalidMessage(String),
    /// The credential is no longer valid, or has another role.
    SignedOut,
    ShuttingDown,
}

enum Transport {
    Socket(Box<WebSocket>),
    /// One direction only.
    Lines(mpsc::Sender<Bytes>),
}

impl Transport {
    /// Receives the client's next message.
    async fn receive(&mut self) -> Result<Message, StreamEnd> {
        match self {
            Self::Socket(socket) => {
                socket.recv().await.ok_or(StreamEnd::Disconnected)?.map_err(|_| StreamEnd::Disconnected)
            }
            Self::Lines(lines) => {
                lines.closed().await;
                Err(StreamEnd::Disconnected)
            }
        }
    }

    async fn send(&mut self, text: Utf8Bytes) -> Result<(), StreamEnd> {
        self.feed(text).await?;
        self.flush().await
    }

    /// Buffers a message until the next flush, or until the buffer is large.
    async fn feed(&mut self, text: Utf8Bytes) -> Result<(), StreamEnd> {
        match self {
            Self::Socket(socket) => {
                SinkExt::feed(socket, Message::Text(text)).await.map_err(|_| StreamEnd::Disconnected)
            }
            Self::Lines(lines) => {
                // The bytes are shared between clients, so the end of the line is a piece of its own.
                lines.send(text.into()).await.map_err(|_| StreamEnd::Disconnected)?;
                lines.send(Bytes::from_static(b"\n")).await.map_err(|_| StreamEnd::Disconnected)
            }
        }
    }

    async fn flush(&mut self) -> Result<(), StreamEnd> {
        match self {
            Self::Socket(socket) => SinkExt::flush(socket).await.map_err(|_| StreamEnd::Disconnected),
            Self::Lines(_) => Ok(()),
        }
    }

    /// Sends a sign of life.
    async fn ping(&mut self) -> Result<(), StreamEnd> {
        match self {
            Self::Socket(socket) => socket.send(Message::Ping(Bytes::new())).await.map_err(|_| StreamEnd::Disconnected),
            Self::Lines(_) => self.send(Utf8Bytes::default()).await,
        }
    }
}

/// A client's subscription.
struct Subscription {
    app: App,
    broadcast: Arc<StreamBroadcast>,
    who: Identity,
    filter: RecordFilter,
    after: Option<u64>,
    stopping: ShutdownSignal,
}

impl Subscription {
    /// Serves a client until it leaves, stalls or is signed out, or the server stops.
    async fn serve(self, mut transport: Transport) {
        let Self { app, broadcast, who, filter, after, mut stopping } = self;
        let _watcher = app.feed.watcher();
        let receiver = broadcast.subscribe();
        app.feed.ready().await;
        let now = app.feed.cursor();
        // A cursor beyond the end belongs to another or a truncated log: the stream continues at the end, as the first
        // message shows.
        let cursor = after.map_or(now, |after| after.min(now));
        let only = filter.session.clone();
        let staying = who.clone();
        let client = StreamClient { transport: &mut transport, app: &app, who, filter, only, cursor };
        let end = tokio::select! {
            end = client.run(receiver) => match end {
                Ok(never) => match never {},
                Err(end) => end,
            },
            // In parallel: a client that stalls is disconnected all the same.
            () = wait_for_sign_out(&app, &staying) => StreamEnd::SignedOut,
            () = stopping.requested() => StreamEnd::ShuttingDown,
        };
        let (code, reason) = match end {
            StreamEnd::Disconnected => return,
            StreamEnd::TimedOut => (close_code::AWAY, "no activity for too long".to_owned()),
            StreamEnd::InvalidMessage(why) => (close_code::POLICY, why),
            StreamEnd::SignedOut => (close_code::POLICY, "you are signed out, or your role has changed".to_owned()),
            StreamEnd::ShuttingDown => (close_code::AWAY, "the server is stopping".to_owned()),
        };
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        if let Transport::Socket(socket) = &mut transport {
            // A client that does not read does not receive this either.
            let _ = timeout(Duration::from_secs(1), socket.send(close)).await;
        }
    }
}

/// Returns when the credential is no longer valid: revoked, expired, or with another role.
async fn wait_for_sign_out(app: &App, who: &Identity) {
    let mut checks = interval(STILL_IN);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        checks.tick().await;
        if !app.access.is_signed_in(who) {
            return;
        }
    }
}

struct StreamClient<'a> {
    transport: &'a mut Transport,
    app: &'a App,
    who: Identity,
    filter: RecordFilter,
    /// The session of the query, if any; limits all messages.
    only: Option<String>,
    /// Number of the next record.
    cursor: u64,
}

impl StreamClient<'_> {
    async fn run(mut self, receiver: BroadcastReceiver) -> Result<Infallible, StreamEnd> {
        let BroadcastReceiver { mut notes, mut pace } = receiver;
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answers: JoinSet<StreamMessage> = JoinSet::new();
        let mut last_heard = Instant::now();
        let mut next = Instant::now();
        self.hello().await?;
        loop {
            if self.app.feed.cursor() < self.cursor {
                // The log was replaced or truncated. Records that were sent are not sent again as new ones.
                self.app.feed.ready().await;
                self.cursor = self.app.feed.cursor().min(self.cursor);
                self.hello().await?;
            }
            let until = *pace.borrow_and_update();
            let is_behind = until > self.cursor;
            tokio::select! {
                message = self.transport.receive() => {
                    last_heard = Instant::now();
                    match message? {
                        Message::Text(text) => self.handle_message(&text, &mut answers).await?,
                        Message::Binary(_) => return Err(StreamEnd::InvalidMessage("expected text messages".to_owned())),
                        Message::Close(_) => return Err(StreamEnd::Disconnected),
                        Message::Ping(_) | Message::Pong(_) => {}
                    }
                }
                () = sleep_until(next), if is_behind => {
                    let is_read = self.events(until).await?;
                    next = Instant::now() + if is_read { Duration::ZERO } else { AGAIN };
                }
                grown = pace.changed(), if !is_behind => grown.map_err(|_| StreamEnd::Disconnected)?,
                note = notes.recv() => match note {
                    Ok(note) => {
                        self.note(note).await?;
                        // Sends what is waiting with one flush. A lag is found by the next receive.
                        for _ in 1..NOTES_AT_ONCE {
                            let Ok(note) = notes.try_recv() else { break };
                            self.note(note).await?;
                        }
                        in_time(self.transport.flush()).await?;
                    }
                    // The client was too slow, so it receives the whole state.
                    Err(RecvError::Lagged(_)) => {
                        notes = notes.resubscribe();
                        self.hello().await?;
                    }
                    Err(RecvError::Closed) => return Err(StreamEnd::Disconnected),
                },
                Some(answered) = answers.join_next() => {
                    // A panicked task has no answer; the request stays open.
                    if let Ok(answered) = answered {
                        self.send(&answered).await?;
                    }
                }
                _ = pings.tick() => {
                    let can_speak = matches!(self.transport, Transport::Socket(_));
                    if can_speak && last_heard.elapsed() > SILENCE {
                        return Err(StreamEnd::TimedOut);
                    }
                    in_time(self.transport.ping()).await?;
                }
            }
        }
    }

    /// Buffers a broadcast message if it concerns the client.
    async fn note(&mut self, note: BroadcastMessage) -> Result<(), StreamEnd> {
        match note {
            BroadcastMessage::Message(about, _) if !about.is_empty() && !about.iter().any(|one| self.concerns(one)) => {
                Ok(())
            }
            BroadcastMessage::Message(_, text) => in_time(self.transport.feed(text.for_role(self.who.role))).await,
            BroadcastMessage::Missed => self.hello().await,
        }
    }

    async fn hello(&mut self) -> Result<(), StreamEnd> {
        let mut sessions = all_sessions(self.app);
        sessions.retain(|session| self.concerns(&session.id));
        let known = sessions.len() as u64;
        let mut older = sessions.split_off(sessions.len().min(FIRST_SESSIONS));
        older.retain(|session| !session.state.is_over());
        sessions.append(&mut older);
        let mut open = self.app.hub.pending_shared();
        open.retain(|approval| self.concerns(&approval.session) || self.concerns(approval.connected_session()));
        let pending = open.len() as u64;
        let shown = |approval| self.app.hub.redacted(approval, self.who.role).brief();
        let approvals = open.iter().take(FIRST_APPROVALS).map(shown).collect();
        let hello = StreamMessage::Hello {
            me: Me { name: self.who.name.clone(), role: self.who.role.as_str().to_owned() },
            cursor: self.cursor,
            now: Timestamp::now(),
            sessions,
            known,
            approvals,
            pending,
            busy: redact::flood(self.app.hub.flood(), self.who.role),
            audit: self.app.feed.status(),
        };
        self.send(&hello).await
    }

    /// Sends records before this number; returns `true` if there were some to read.
    async fn events(&mut self, until: u64) -> Result<bool, StreamEnd> {
        let feed = &self.app.feed;
        let frame = match feed.frame(&self.filter, self.cursor, until, false) {
            Ok(Some(frame)) => frame,
            _ => {
                let (reader, filter, cursor) = (feed.clone(), self.filter.clone(), self.cursor);
                let read = tokio::task::spawn_blocking(move || reader.frame(&filter, cursor, until, true)).await;
                match read {
                    Ok(Ok(Some(frame))) => frame,
                    // Tried again: the cursor has not advanced.
                    Ok(Ok(None)) | Err(_) => return Ok(false),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "records could not be read for the stream");
                        return Ok(false);
                    }
                }
            }
        };
        if frame.count > 0 {
            in_time(self.transport.send(frame.text)).await?;
        }
        let is_read = frame.cursor > self.cursor;
        self.cursor = frame.cursor;
        Ok(is_read)
    }

    async fn handle_message(
        &mut self,
        text: &Utf8Bytes,
        answers: &mut JoinSet<StreamMessage>,
    ) -> Result<(), StreamEnd> {
        if self.app.access.count(&self.who).is_err() {
            return Err(StreamEnd::InvalidMessage("too many messages".to_owned()));
        }
        // A close reason is limited to 123 bytes.
        let invalid = |why: &str| StreamEnd::InvalidMessage(truncate_bytes(why, 120).into_owned());
        let message = serde_json::from_str(text).map_err(|error| invalid(&format!("invalid message: {error}")))?;
        match message {
            ClientMessage::Watch { session, event, kind, hook, text, after } => {
                let wanted = RecordQuery { session, event, kind, hook, text, ..RecordQuery::default() };
                self.filter = wanted.filter(self.app).map_err(|error| invalid(&error.message))?;
                if let Some(after) = after {
                    self.cursor = after.min(self.app.feed.cursor());
                }
                Ok(())
            }
            ClientMessage::Answer { id, option, reason, nonce, scope, rule } => {
                // Checked with every answer: a credential that was revoked a moment ago does not count.
                if !self.app.access.touch(&self.who) {
                    return Err(StreamEnd::SignedOut);
                }
                let refusal = if self.who.role < Role::Approver {
                    Some(("role", "role `approver` required, but yours is `viewer`"))
                } else if answers.len() >= MOST_ANSWERS {
                    Some(("busy", "too many unfinished answers; wait for some of them"))
                } else {
                    None
                };
                if let Some((code, message)) = refusal {
                    let (code, message) = (code.to_owned(), message.to_owned());
                    let error = Some(ErrorDetails { code, message, by: None });
                    return self.send(&StreamMessage::Answered { id, ok: false, error }).await;
                }
                let app = self.app.clone();
                let answer = ApprovalAnswer { label: option, by: Some(self.who.actor()), reason, rule };
                let submitted = SubmittedAnswer { answer, nonce, scope };
                // Not awaited here: the session may take time, and updates go on meanwhile.
                answers.spawn(async move {
                    let answered = match parse_id(&id) {
                        Ok(parsed) => app.answer(&parsed, submitted).await.map_err(ApiError::from),
                        Err(error) => Err(error),
                    };
                    let error = answered.err().map(|ApiError { code, message, by, .. }| ErrorDetails {
                        code: code.to_owned(),
                        message,
                        by,
                    });
                    StreamMessage::Answered { id, ok: error.is_none(), error }
                });
                Ok(())
            }
        }
    }

    async fn send(&mut self, message: &StreamMessage) -> Result<(), StreamEnd> {
        let text = message.text().ok_or(StreamEnd::Disconnected)?;
        in_time(self.transport.send(text)).await
    }

    /// Returns `true` if messages about this session go to the client.
    fn concerns(&self, session: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == session)
    }
}

/// Limits the time of sending.
async fn in_time(sending: impl Future<Output = Result<(), StreamEnd>>) -> Result<(), StreamEnd> {
    timeout(SEND, sending).await.unwrap_or(Err(StreamEnd::TimedOut))
}
