//! What happens, as it happens: over a WebSocket, or as lines of JSON.
//!
//! Every client reads the record at its own pace, from its own cursor. Nothing is queued for one that is slow: it falls behind in a file.

mod board;
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

pub(super) use self::board::Board;
use self::board::{Heard, Note};
use self::message::{Said, StreamMessage};
use super::approvals::parse_id;
use super::error::{ApiError, Query};
use super::events::Wanted;
use super::sessions::joined;
use crate::App;
use crate::access::guard::{Connection, PROTOCOL, Refusal, Seats};
use crate::access::{Identity, Role, Viewer};
use crate::hub::SubmittedAnswer;
use crate::masked;
use crate::server::Stopping;
use crate::wire::{Explained, Failure, Me, State as Doing};

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
    params(StreamQuery, Wanted),
    responses(
        (status = 101, description = "The WebSocket is open.", body = StreamMessage),
        (status = 200, description = "One object a line.", body = StreamMessage, content_type = "application/x-ndjson"),
        (status = 422, body = Failure)
    )
)]
async fn stream(
    Viewer(who): Viewer,
    State(app): State<App>,
    Query(query): Query<StreamQuery>,
    Query(wanted): Query<Wanted>,
    Around { board, seats, stopping }: Around,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let filter = wanted.filter()?;
    // A WebSocket has its seat already.
    let seat = match headers.contains_key(UPGRADE) {
        true => None,
        false => Some(seats.take(&app.access, Some(&who))?),
    };
    let visit = Visit { app, board, who, filter, after: query.after, stopping };
    if let Some(seat) = seat {
        let (sender, pieces) = mpsc::channel(PIECES);
        tokio::spawn(async move {
            visit.serve(Line::Lines(sender)).await;
            drop(seat);
        });
        let pieces =
            stream::unfold(pieces, |mut pieces| async { Some((Ok::<_, Infallible>(pieces.recv().await?), pieces)) });
        return Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pieces)).into_response());
    }
    let socket = socket.map_err(|why| ApiError::new(StatusCode::BAD_REQUEST, "upgrade", why.body_text()))?;
    // A browser brings its key as another protocol, which is not answered.
    let socket = socket.protocols([PROTOCOL]).max_message_size(LONGEST_MESSAGE).max_frame_size(LONGEST_MESSAGE);
    Ok(socket.on_upgrade(move |socket| visit.serve(Line::Socket(Box::new(socket)))))
}

/// What a stream needs of the server around it.
struct Around {
    board: Arc<Board>,
    seats: Seats,
    stopping: Stopping,
}

impl<S: Sync> FromRequestParts<S> for Around {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let around = || {
            let Connection { stopping, .. } = parts.extensions.get()?;
            let (board, seats) = (parts.extensions.get::<Arc<Board>>()?, parts.extensions.get::<Seats>()?);
            Some(Self { board: board.clone(), seats: seats.clone(), stopping: stopping.clone() })
        };
        around().ok_or_else(|| ApiError::internal("a stream is asked for outside of a server"))
    }
}

/// Why a client is no longer served.
enum Over {
    /// It went, or the line broke.
    Gone,
    /// It does not read, or does not answer.
    Silent,
    /// It says what cannot be understood.
    Nonsense(String),
    /// What it came in with does not hold any more, or not for the same.
    Out,
    /// The server stops.
    Stopping,
}

/// How a client is reached.
enum Line {
    Socket(Box<WebSocket>),
    /// It cannot say anything.
    Lines(mpsc::Sender<Bytes>),
}

impl Line {
    /// What the client says next.
    async fn heard(&mut self) -> Result<Message, Over> {
        match self {
            Self::Socket(socket) => socket.recv().await.ok_or(Over::Gone)?.map_err(|_| Over::Gone),
            Self::Lines(lines) => {
                lines.closed().await;
                Err(Over::Gone)
            }
        }
    }

    async fn send(&mut self, text: Utf8Bytes) -> Result<(), Over> {
        self.feed(text).await?;
        self.flush().await
    }

    /// Sends something with what follows: at the next flush, or when there is much of it.
    async fn feed(&mut self, text: Utf8Bytes) -> Result<(), Over> {
        match self {
            Self::Socket(socket) => SinkExt::feed(socket, Message::Text(text)).await.map_err(|_| Over::Gone),
            Self::Lines(lines) => {
                // The bytes are everybody's, so the end of the line is a piece of its own.
                lines.send(text.into()).await.map_err(|_| Over::Gone)?;
                lines.send(Bytes::from_static(b"\n")).await.map_err(|_| Over::Gone)
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Over> {
        match self {
            Self::Socket(socket) => SinkExt::flush(socket).await.map_err(|_| Over::Gone),
            Self::Lines(_) => Ok(()),
        }
    }

    /// Lets it know that the server is still there.
    async fn ping(&mut self) -> Result<(), Over> {
        match self {
            Self::Socket(socket) => socket.send(Message::Ping(Bytes::new())).await.map_err(|_| Over::Gone),
            Self::Lines(_) => self.send(Utf8Bytes::default()).await,
        }
    }
}

/// Somebody who comes to watch.
struct Visit {
    app: App,
    board: Arc<Board>,
    who: Identity,
    filter: RecordFilter,
    after: Option<u64>,
    stopping: Stopping,
}

impl Visit {
    /// Serves a client until it goes, does not read, may not be here any more, or the server stops.
    async fn serve(self, mut line: Line) {
        let Self { app, board, who, filter, after, mut stopping } = self;
        let _watcher = app.feed.watcher();
        let heard = board.watch();
        app.feed.ready().await;
        let now = app.feed.cursor();
        // What is beyond the end is of another log, or of what was cut off: it goes on at the end, as the first message says.
        let cursor = after.map_or(now, |after| after.min(now));
        let only = filter.session.clone();
        let staying = who.clone();
        let client = Client { line: &mut line, app: &app, who, filter, only, cursor };
        let over = tokio::select! {
            over = client.run(heard) => match over {
                Ok(never) => match never {},
                Err(over) => over,
            },
            // Beside it: one that takes nothing of what it is sent is told to leave all the same.
            () = gone(&app, &staying) => Over::Out,
            () = stopping.begun() => Over::Stopping,
        };
        let (code, reason) = match over {
            Over::Gone => return,
            Over::Silent => (close_code::AWAY, "nothing was heard or taken for too long".to_owned()),
            Over::Nonsense(why) => (close_code::POLICY, why),
            Over::Out => (close_code::POLICY, "you are not let in any more, or not as before".to_owned()),
            Over::Stopping => (close_code::AWAY, "the server stops".to_owned()),
        };
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        if let Line::Socket(socket) = &mut line {
            // Whoever does not read does not read this either.
            let _ = timeout(Duration::from_secs(1), socket.send(close)).await;
        }
    }
}

/// Returns when what somebody came in with does not hold any more: it was taken back, is over, or has another role.
async fn gone(app: &App, who: &Identity) {
    let mut looks = interval(STILL_IN);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if !app.access.is_in(who) {
            return;
        }
    }
}

struct Client<'a> {
    line: &'a mut Line,
    app: &'a App,
    who: Identity,
    filter: RecordFilter,
    /// The session that it wants to know of; all of them if it said none when it came.
    only: Option<String>,
    /// The number of the next record that is looked at.
    cursor: u64,
}

impl Client<'_> {
    async fn run(mut self, heard: Heard) -> Result<Infallible, Over> {
        let Heard { mut notes, mut pace } = heard;
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
                said = self.line.heard() => {
                    last_heard = Instant::now();
                    match said? {
                        Message::Text(text) => self.said(&text, &mut answers).await?,
                        Message::Binary(_) => return Err(Over::Nonsense("messages are text".to_owned())),
                        Message::Close(_) => return Err(Over::Gone),
                        Message::Ping(_) | Message::Pong(_) => {}
                    }
                }
                () = sleep_until(next), if is_behind => {
                    let is_read = self.events(until).await?;
                    next = Instant::now() + if is_read { Duration::ZERO } else { AGAIN };
                }
                grown = pace.changed(), if !is_behind => grown.map_err(|_| Over::Gone)?,
                note = notes.recv() => match note {
                    Ok(note) => {
                        self.note(note).await?;
                        // What waits by now goes with it. If some was missed, the next look finds that.
                        for _ in 1..NOTES_AT_ONCE {
                            let Ok(note) = notes.try_recv() else { break };
                            self.note(note).await?;
                        }
                        in_time(self.line.flush()).await?;
                    }
                    // It was too slow to hear everything, so it hears how things are.
                    Err(RecvError::Lagged(_)) => {
                        notes = notes.resubscribe();
                        self.hello().await?;
                    }
                    Err(RecvError::Closed) => return Err(Over::Gone),
                },
                Some(answered) = answers.join_next() => {
                    // One that panicked has no answer; its question stays open.
                    if let Ok(answered) = answered {
                        self.send(&answered).await?;
                    }
                }
                _ = pings.tick() => {
                    let can_speak = matches!(self.line, Line::Socket(_));
                    if can_speak && last_heard.elapsed() > SILENCE {
                        return Err(Over::Silent);
                    }
                    in_time(self.line.ping()).await?;
                }
            }
        }
    }

    /// Tells what everybody is told, at the next flush, if it concerns the client.
    async fn note(&mut self, note: Note) -> Result<(), Over> {
        match note {
            Note::Message(about, _) if !about.is_empty() && !about.iter().any(|one| self.concerns(one)) => Ok(()),
            Note::Message(_, text) => in_time(self.line.feed(text.shown(self.who.role))).await,
            Note::Missed => self.hello().await,
        }
    }

    async fn hello(&mut self) -> Result<(), Over> {
        let mut sessions = joined(self.app);
        sessions.retain(|session| self.concerns(&session.id));
        let known = sessions.len() as u64;
        let mut older = sessions.split_off(sessions.len().min(FIRST_SESSIONS));
        older.retain(|session| !matches!(session.state, Doing::Ended | Doing::Gone));
        sessions.append(&mut older);
        let mut open = self.app.hub.pending_shared();
        open.retain(|approval| self.concerns(&approval.session) || self.concerns(approval.connected_session()));
        let pending = open.len() as u64;
        let shown = |approval| self.app.hub.shown(approval, self.who.role).brief();
        let approvals = open.iter().take(FIRST_APPROVALS).map(shown).collect();
        let hello = StreamMessage::Hello {
            me: Me { name: self.who.name.clone(), role: self.who.role.as_str().to_owned() },
            cursor: self.cursor,
            now: Timestamp::now(),
            sessions,
            known,
            approvals,
            pending,
            busy: masked::busy(self.app.hub.busy(), self.who.role),
            audit: self.app.feed.status(),
        };
        self.send(&hello).await
    }

    /// Sends some of the records before that number; says whether they could be read.
    async fn events(&mut self, until: u64) -> Result<bool, Over> {
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
            in_time(self.line.send(frame.text)).await?;
        }
        let is_read = frame.cursor > self.cursor;
        self.cursor = frame.cursor;
        Ok(is_read)
    }

    async fn said(&mut self, text: &Utf8Bytes, answers: &mut JoinSet<StreamMessage>) -> Result<(), Over> {
        if self.app.access.count(&self.who).is_err() {
            return Err(Over::Nonsense("too many messages".to_owned()));
        }
        // A reason to close has a limit of 123 bytes.
        let nonsense = |why: &str| Over::Nonsense(truncate_bytes(why, 120).into_owned());
        let said =
            serde_json::from_str(text).map_err(|error| nonsense(&format!("this cannot be understood: {error}")))?;
        match said {
            Said::Watch { session, event, kind, hook, text, after } => {
                let wanted = Wanted { session, event, kind, hook, text };
                self.filter = wanted.filter().map_err(|error| nonsense(&error.message))?;
                if let Some(after) = after {
                    self.cursor = after.min(self.app.feed.cursor());
                }
                Ok(())
            }
            Said::Answer { id, option, nonce, scope } => {
                // Looked at again with every answer: one that was taken back a moment ago does not count.
                if !self.app.access.uses(&self.who) {
                    return Err(Over::Out);
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
                    let error = Some(Explained { code, message, by: None });
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
                    let error = answered.err().map(|ApiError { code, message, by, .. }| Explained {
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

    async fn send(&mut self, message: &StreamMessage) -> Result<(), Over> {
        let text = message.text().ok_or(Over::Gone)?;
        in_time(self.line.send(text)).await
    }

    /// Whether the client wants to know of that session.
    fn concerns(&self, session: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == session)
    }
}

/// Sends something, unless the client does not take it.
async fn in_time(sending: impl Future<Output = Result<(), Over>>) -> Result<(), Over> {
    timeout(SEND, sending).await.unwrap_or(Err(Over::Silent))
}
