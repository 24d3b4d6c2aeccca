//! What happens, as it happens: over a WebSocket, or as lines of JSON.
//!
//! Every client reads the record at its own pace, from its own cursor. Nothing is queued for one that is slow: it falls behind in a file.

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
use crate::hub::SubmittedAnswer;
use crate::redact;
use crate::server::ShutdownSignal;
use crate::wire::{ErrorDetails, ErrorResponse, Me, SessionState};

/// How many questions the first message has, and how many sessions beside those that are not over; `GET /api/approvals` and
/// `GET /api/sessions` have all of them.
const FIRST_SESSIONS: usize = 200;
const FIRST_APPROVALS: usize = 500;

/// How many messages are sent at once, if so many wait.
const NOTES_AT_ONCE: usize = 256;

/// How many answers of a client may be on their way.
const MOST_ANSWERS: usize = 32;

/// How many pieces of lines wait for a client that asked for no WebSocket, before it is waited for.
const PIECES: usize = 8;

/// How large a message of a client may be.
const LONGEST_MESSAGE: usize = 64 << 10;

/// How long is waited before records that could not be read are tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// How often is looked whether a client may still be here.
const STILL_IN: Duration = Duration::from_millis(500);

/// How long a client may take to take a message, how often is looked whether it is still there, and how long it may say nothing at all.
const SEND: Duration = Duration::from_secs(30);
const PING: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(65);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(stream))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamQuery {
    /// Records from this number on; from now on if not said.
    after: Option<u64>,
}

/// What happens, as it happens: over a WebSocket, or as one object a line for those who ask for none.
///
/// The server sends objects with a `type`: first `hello`, then `records`, `session`, `approval_requested`, `approval_closed`, `approval_flood`, `rules`, `audit` and
/// `answered`. Another `hello` says that something was missed, and takes the place of all that was said about sessions and questions. The
/// client may send `answer` and `watch` over the WebSocket. With `session` in the query, only what concerns that session is told. An empty line says that the server is
/// still there.
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
    let filter = wanted.filter()?;
    // A WebSocket has its seat already.
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
    // A browser brings its key as another protocol, which is not answered.
    let socket = socket.protocols([PROTOCOL]).max_message_size(LONGEST_MESSAGE).max_frame_size(LONGEST_MESSAGE);
    Ok(socket.on_upgrade(move |socket| subscription.serve(Transport::Socket(Box::new(socket)))))
}

/// What a stream needs of the server around it.
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
        context().ok_or_else(|| ApiError::internal("a stream is asked for outside of a server"))
    }
}

/// Why a client is no longer served.
enum StreamEnd {
    /// It went, or the line broke.
    Disconnected,
    /// It does not read, or does not answer.
    TimedOut,
    /// It says what cannot be understood.
    InvalidMessage(String),
    /// What it came in with does not hold any more, or not for the same.
    SignedOut,
    /// The server stops.
    ShuttingDown,
}

/// How a client is reached.
enum Transport {
    Socket(Box<WebSocket>),
    /// It cannot say anything.
    Lines(mpsc::Sender<Bytes>),
}

impl Transport {
    /// What the client says next.
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

    /// Sends something with what follows: at the next flush, or when there is much of it.
    async fn feed(&mut self, text: Utf8Bytes) -> Result<(), StreamEnd> {
        match self {
            Self::Socket(socket) => {
                SinkExt::feed(socket, Message::Text(text)).await.map_err(|_| StreamEnd::Disconnected)
            }
            Self::Lines(lines) => {
                // The bytes are everybody's, so the end of the line is a piece of its own.
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

    /// Lets it know that the server is still there.
    async fn ping(&mut self) -> Result<(), StreamEnd> {
        match self {
            Self::Socket(socket) => socket.send(Message::Ping(Bytes::new())).await.map_err(|_| StreamEnd::Disconnected),
            Self::Lines(_) => self.send(Utf8Bytes::default()).await,
        }
    }
}

/// Somebody who comes to watch.
struct Subscription {
    app: App,
    broadcast: Arc<StreamBroadcast>,
    who: Identity,
    filter: RecordFilter,
    after: Option<u64>,
    stopping: ShutdownSignal,
}

impl Subscription {
    /// Serves a client until it goes, does not read, may not be here any more, or the server stops.
    async fn serve(self, mut transport: Transport) {
        let Self { app, broadcast, who, filter, after, mut stopping } = self;
        let _watcher = app.feed.watcher();
        let heard = broadcast.subscribe();
        app.feed.ready().await;
        let now = app.feed.cursor();
        // What is beyond the end is of another log, or of what was cut off: it goes on at the end, as the first message says.
        let cursor = after.map_or(now, |after| after.min(now));
        let only = filter.session.clone();
        let staying = who.clone();
        let client = StreamClient { transport: &mut transport, app: &app, who, filter, only, cursor };
        let end = tokio::select! {
            end = client.run(heard) => match end {
                Ok(never) => match never {},
                Err(end) => end,
            },
            // Beside it: one that takes nothing of what it is sent is told to leave all the same.
            () = wait_for_sign_out(&app, &staying) => StreamEnd::SignedOut,
            () = stopping.requested() => StreamEnd::ShuttingDown,
        };
        let (code, reason) = match end {
            StreamEnd::Disconnected => return,
            StreamEnd::TimedOut => (close_code::AWAY, "nothing was heard or taken for too long".to_owned()),
            StreamEnd::InvalidMessage(why) => (close_code::POLICY, why),
            StreamEnd::SignedOut => (close_code::POLICY, "you are not let in any more, or not as before".to_owned()),
            StreamEnd::ShuttingDown => (close_code::AWAY, "the server stops".to_owned()),
        };
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        if let Transport::Socket(socket) = &mut transport {
            // Whoever does not read does not read this either.
            let _ = timeout(Duration::from_secs(1), socket.send(close)).await;
        }
    }
}

/// Returns when what somebody came in with does not hold any more: it was taken back, is over, or has another role.
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
    /// The session that it wants to know of; all of them if it said none when it came.
    only: Option<String>,
    /// The number of the next record that is looked at.
    cursor: u64,
}

impl StreamClient<'_> {
    async fn run(mut self, heard: BroadcastReceiver) -> Result<Infallible, StreamEnd> {
        let BroadcastReceiver { mut notes, mut pace } = heard;
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answers: JoinSet<StreamMessage> = JoinSet::new();
        let mut last_heard = Instant::now();
        let mut next = Instant::now();
        self.hello().await?;
        loop {
            if self.app.feed.cursor() < self.cursor {
                // Another log has begun, or some of this one is gone. What it was told is not told again as if it were new.
                self.app.feed.ready().await;
                self.cursor = self.app.feed.cursor().min(self.cursor);
                self.hello().await?;
            }
            let until = *pace.borrow_and_update();
            let is_behind = until > self.cursor;
            tokio::select! {
                said = self.transport.receive() => {
                    last_heard = Instant::now();
                    match said? {
                        Message::Text(text) => self.handle_message(&text, &mut answers).await?,
                        Message::Binary(_) => return Err(StreamEnd::InvalidMessage("messages are text".to_owned())),
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
                        // What waits by now goes with it. If some was missed, the next look finds that.
                        for _ in 1..NOTES_AT_ONCE {
                            let Ok(note) = notes.try_recv() else { break };
                            self.note(note).await?;
                        }
                        in_time(self.transport.flush()).await?;
                    }
                    // It was too slow to hear everything, so it hears how things are.
                    Err(RecvError::Lagged(_)) => {
                        notes = notes.resubscribe();
                        self.hello().await?;
                    }
                    Err(RecvError::Closed) => return Err(StreamEnd::Disconnected),
                },
                Some(answered) = answers.join_next() => {
                    // One that panicked has no answer; its question stays open.
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

    /// Tells what everybody is told, at the next flush, if it concerns the client.
    async fn note(&mut self, note: BroadcastMessage) -> Result<(), StreamEnd> {
        match note {
            BroadcastMessage::Message(about, _) if !about.is_empty() && !about.iter().any(|one| self.concerns(one)) => {
                Ok(())
            }
            BroadcastMessage::Message(_, text) => in_time(self.transport.feed(text.shown(self.who.role))).await,
            BroadcastMessage::Missed => self.hello().await,
        }
    }

    async fn hello(&mut self) -> Result<(), StreamEnd> {
        let mut sessions = all_sessions(self.app);
        sessions.retain(|session| self.concerns(&session.id));
        let known = sessions.len() as u64;
        let mut older = sessions.split_off(sessions.len().min(FIRST_SESSIONS));
        older.retain(|session| !matches!(session.state, SessionState::Ended | SessionState::Gone));
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

    /// Sends some of the records before that number; says whether they could be read.
    async fn events(&mut self, until: u64) -> Result<bool, StreamEnd> {
        let feed = &self.app.feed;
        let frame = match feed.frame(&self.filter, self.cursor, until, false) {
            Ok(Some(frame)) => frame,
            _ => {
                let (reader, filter, cursor) = (feed.clone(), self.filter.clone(), self.cursor);
                let read = tokio::task::spawn_blocking(move || reader.frame(&filter, cursor, until, true)).await;
                match read {
                    Ok(Ok(Some(frame))) => frame,
                    // It is tried again: what was not sent is not passed.
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
        // A reason to close has a limit of 123 bytes.
        let invalid = |why: &str| StreamEnd::InvalidMessage(truncate_bytes(why, 120).into_owned());
        let said =
            serde_json::from_str(text).map_err(|error| invalid(&format!("this cannot be understood: {error}")))?;
        match said {
            ClientMessage::Watch { session, event, kind, hook, text, after } => {
                let wanted = RecordQuery { session, event, kind, hook, text };
                self.filter = wanted.filter().map_err(|error| invalid(&error.message))?;
                if let Some(after) = after {
                    self.cursor = after.min(self.app.feed.cursor());
                }
                Ok(())
            }
            ClientMessage::Answer { id, option, nonce, scope } => {
                // Looked at again with every answer: one that was taken back a moment ago does not count.
                if !self.app.access.touch(&self.who) {
                    return Err(StreamEnd::SignedOut);
                }
                let refusal = if self.who.role < Role::Approver {
                    Some(("role", "this needs the role `approver`, and you have `viewer`"))
                } else if answers.len() >= MOST_ANSWERS {
                    Some(("busy", "too many answers are on their way; wait for some of them"))
                } else {
                    None
                };
                if let Some((code, message)) = refusal {
                    let (code, message) = (code.to_owned(), message.to_owned());
                    let error = Some(ErrorDetails { code, message, by: None });
                    return self.send(&StreamMessage::Answered { id, ok: false, error }).await;
                }
                let app = self.app.clone();
                let answer = ApprovalAnswer { label: option, by: Some(self.who.actor()) };
                let submitted = SubmittedAnswer { answer, nonce, scope };
                // Not waited for here: the session may take its time, and what happens meanwhile is told all the same.
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

    /// Whether the client wants to know of that session.
    fn concerns(&self, session: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == session)
    }
}

/// Sends something, unless the client does not take it.
async fn in_time(sending: impl Future<Output = Result<(), StreamEnd>>) -> Result<(), StreamEnd> {
    timeout(SEND, sending).await.unwrap_or(Err(StreamEnd::TimedOut))
}
