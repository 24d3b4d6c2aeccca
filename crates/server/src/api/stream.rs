//! What happens, as it happens: over a WebSocket, or as lines of JSON.
//!
//! Every client reads the record at its own pace, from its own cursor. Nothing is queued for one that is slow: it falls behind in a file.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Bound;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::header::{CONTENT_TYPE, UPGRADE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{SinkExt, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Query};
use super::events::Wanted;
use super::sessions::{joined, joined_one};
use crate::App;
use crate::access::{Identity, Role, Viewer};
use crate::feed::Filter;
use crate::hub::{Answering, Change};
use crate::wire::{Approval, AuditStatus, Busy, Decided, Explained, Failure, Me, Scope, Session};

/// How often the clients are told about records that come one after another, and about sessions.
const PACE: Duration = Duration::from_millis(50);
const SESSIONS: Duration = Duration::from_millis(250);

/// How many sessions are told about at once; the others have their turn next.
const SESSIONS_AT_ONCE: usize = 50;

/// How many sessions and questions the first message has; `GET /api/sessions` and `GET /api/approvals` have all of them.
const FIRST_SESSIONS: usize = 200;
const FIRST_APPROVALS: usize = 500;

/// How many changes are told at once, if so many wait.
const CHANGES_AT_ONCE: usize = 256;

/// How many answers of a client may be on their way.
const MOST_ANSWERS: usize = 32;

/// How many lines wait for a client that asked for no WebSocket, before it is waited for.
const LINES: usize = 4;

/// How large a message of a client may be.
const LONGEST_MESSAGE: usize = 64 << 10;

/// How long is waited for a client.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// To take a message.
    send: Duration,
    /// Between looks whether it is still there.
    ping: Duration,
    /// To say anything at all, if only that it is still there.
    silence: Duration,
}

const PATIENCE: Patience =
    Patience { send: Duration::from_secs(30), ping: Duration::from_secs(20), silence: Duration::from_secs(65) };

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
/// The server sends objects with a `type`: first `hello`, then `events`, `session`, `asked`, `closed`, `busy`, `rules`, `audit` and
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
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let filter = wanted.filter()?;
    if !headers.contains_key(UPGRADE) {
        let (sender, lines) = mpsc::channel(LINES);
        tokio::spawn(serve(Line::Lines(sender), app, who, filter, query.after, PATIENCE));
        let lines =
            stream::unfold(lines, |mut lines| async { Some((Ok::<_, Infallible>(lines.recv().await?), lines)) });
        return Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response());
    }
    let socket = socket.map_err(|why| ApiError::new(StatusCode::BAD_REQUEST, "upgrade", why.body_text()))?;
    let socket = socket.max_message_size(LONGEST_MESSAGE).max_frame_size(LONGEST_MESSAGE);
    Ok(socket.on_upgrade(move |socket| serve(Line::Socket(Box::new(socket)), app, who, filter, query.after, PATIENCE)))
}

/// What the server sends.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "each is written at once, and none is kept")]
enum StreamMessage {
    /// How things are.
    Hello {
        /// Who the server takes the client for.
        me: Me,
        /// The number of the first record that will come.
        cursor: u64,
        /// The time at the server.
        #[schema(value_type = String, format = DateTime)]
        now: Timestamp,
        /// The sessions last heard of.
        sessions: Vec<Session>,
        /// The questions that are open, the oldest first; not all if there are very many.
        approvals: Vec<Approval>,
        /// How many questions are open.
        pending: u64,
        /// Whether there are too many.
        #[serde(skip_serializing_if = "Option::is_none")]
        busy: Option<Busy>,
        /// What is proven about the audit log.
        audit: AuditStatus,
    },
    /// Something about a session has changed.
    Session {
        /// How it is now.
        session: Session,
    },
    /// There is a question.
    Asked {
        /// The question.
        approval: Approval,
    },
    /// A question is no longer open.
    Closed {
        /// Which.
        id: String,
        /// What became of it.
        decided: Decided,
    },
    /// There are too many questions, or no longer.
    Busy {
        /// How many; none if there are not too many any more.
        busy: Option<Busy>,
    },
    /// The standing answers have changed.
    Rules {},
    /// What is proven about the audit log has changed.
    Audit {
        /// What is proven.
        audit: AuditStatus,
    },
    /// What became of an answer.
    Answered {
        /// Of the answer to which question.
        id: String,
        /// Whether it counts.
        ok: bool,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Explained>,
    },
}

/// What a client sends.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Said {
    /// An answer to a question.
    Answer {
        id: String,
        option: String,
        nonce: String,
        #[serde(default)]
        scope: Option<AnswerScope>,
    },
    /// Other records are wanted from now on.
    Watch {
        #[serde(default)]
        session: Option<String>,
        #[serde(default)]
        event: Option<String>,
        #[serde(default)]
        kind: Option<String>,
        #[serde(default)]
        hook: Option<String>,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        after: Option<u64>,
    },
}

/// For what an answer holds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerScope {
    Once,
    Project,
}

/// Why a client is no longer served.
enum Over {
    /// It went, or the line broke.
    Gone,
    /// It does not read, or does not answer.
    Silent,
    /// It says what cannot be understood.
    Nonsense(String),
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
                let line = Bytes::from(format!("{text}\n"));
                lines.send(line).await.map_err(|_| Over::Gone)
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

/// Serves a client until it goes, or does not read.
async fn serve(mut line: Line, app: App, who: Identity, filter: Filter, after: Option<u64>, patience: Patience) {
    let _watcher = app.feed.watcher();
    let cursor = after.unwrap_or_else(|| app.feed.cursor());
    let told = app.feed.cursor();
    let only = filter.session.clone();
    let client = Client { line: &mut line, app: &app, who, filter, only, cursor, told, last: String::new(), patience };
    let (code, reason) = match client.run().await {
        Ok(never) => match never {},
        Err(Over::Gone) => return,
        Err(Over::Silent) => (close_code::AWAY, "nothing was heard or taken for too long".to_owned()),
        Err(Over::Nonsense(why)) => (close_code::POLICY, why),
    };
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    if let Line::Socket(socket) = &mut line {
        // Whoever does not read does not read this either.
        let _ = timeout(Duration::from_secs(1), socket.send(close)).await;
    }
}

/// Serves a client that has little time, from the first record on.
#[cfg(test)]
pub(super) async fn serve_impatiently(socket: WebSocket, app: App) {
    let time = Duration::from_millis(200);
    let who = Identity { name: "test".to_owned(), role: Role::Viewer, via: "api" };
    let patience = Patience { send: time, ping: time, silence: Duration::from_secs(60) };
    serve(Line::Socket(Box::new(socket)), app, who, Filter::default(), Some(0), patience).await;
}

struct Client<'a> {
    line: &'a mut Line,
    app: &'a App,
    who: Identity,
    filter: Filter,
    /// The session that it wants to know of; all of them if it said none when it came.
    only: Option<String>,
    /// The number of the next record that is looked at.
    cursor: u64,
    /// Sessions are told about up to this record.
    told: u64,
    /// The session that was told about last.
    last: String,
    patience: Patience,
}

impl Client<'_> {
    async fn run(mut self) -> Result<Infallible, Over> {
        // Listened to before the first message is made, so that nothing is missed between.
        let mut changes = self.app.hub.subscribe();
        let mut records = self.app.feed.changed();
        let mut status = self.app.feed.status_changed();
        let mut sessions = interval(SESSIONS);
        let mut pings = interval(self.patience.ping);
        sessions.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed: BTreeSet<String> = BTreeSet::new();
        let mut answers: JoinSet<StreamMessage> = JoinSet::new();
        let mut heard = Instant::now();
        let mut next = Instant::now();
        self.hello().await?;
        loop {
            let is_behind = self.app.feed.cursor() != self.cursor;
            tokio::select! {
                said = self.line.heard() => {
                    heard = Instant::now();
                    match said? {
                        Message::Text(text) => self.said(&text, &mut answers).await?,
                        Message::Binary(_) => return Err(Over::Nonsense("messages are text".to_owned())),
                        Message::Close(_) => return Err(Over::Gone),
                        Message::Ping(_) | Message::Pong(_) => {}
                    }
                }
                () = sleep_until(next), if is_behind => {
                    let is_done = self.events().await?;
                    next = Instant::now() + if is_done { PACE } else { Duration::ZERO };
                }
                grown = records.changed(), if !is_behind => grown.map_err(|_| Over::Gone)?,
                change = changes.recv() => match change {
                    Ok(change) => {
                        self.change(change, &mut changed).await?;
                        // What waits by now goes with it. If some was missed, the next look finds that.
                        for _ in 1..CHANGES_AT_ONCE {
                            let Ok(change) = changes.try_recv() else { break };
                            self.change(change, &mut changed).await?;
                        }
                        in_time(self.patience, self.line.flush()).await?;
                    }
                    // It was too slow to hear everything, so it hears how things are.
                    Err(RecvError::Lagged(_)) => {
                        changes = changes.resubscribe();
                        self.hello().await?;
                    }
                    Err(RecvError::Closed) => return Err(Over::Gone),
                },
                proven = status.changed() => {
                    proven.map_err(|_| Over::Gone)?;
                    let audit = AuditStatus::clone(&status.borrow_and_update());
                    self.send(&StreamMessage::Audit { audit }).await?;
                }
                Some(answered) = answers.join_next() => {
                    // One that panicked has no answer; its question stays open.
                    if let Ok(answered) = answered {
                        self.send(&answered).await?;
                    }
                }
                _ = sessions.tick() => self.sessions(&mut changed).await?,
                _ = pings.tick() => {
                    let can_speak = matches!(self.line, Line::Socket(_));
                    if can_speak && heard.elapsed() > self.patience.silence {
                        return Err(Over::Silent);
                    }
                    in_time(self.patience, self.line.ping()).await?;
                }
            }
        }
    }

    /// Tells about a change, at the next flush.
    async fn change(&mut self, change: Change, changed: &mut BTreeSet<String>) -> Result<(), Over> {
        let message = match change {
            Change::Session(id) => {
                changed.insert(id);
                return Ok(());
            }
            Change::Asked(approval) if !self.concerns(&approval.session) => return Ok(()),
            Change::Closed { decided, .. } if !self.concerns(&decided.session) => return Ok(()),
            Change::Asked(approval) => {
                changed.insert(approval.session.clone());
                StreamMessage::Asked { approval: Approval::clone(&approval) }
            }
            Change::Closed { id, decided } => {
                changed.insert(decided.session.clone());
                StreamMessage::Closed { id, decided }
            }
            Change::Busy(busy) => StreamMessage::Busy { busy },
            Change::Rules => StreamMessage::Rules {},
        };
        self.feed(&message).await
    }

    async fn hello(&mut self) -> Result<(), Over> {
        let mut sessions = joined(self.app);
        sessions.retain(|session| self.concerns(&session.id));
        sessions.truncate(FIRST_SESSIONS);
        let mut open = self.app.hub.pending_shared();
        open.retain(|approval| self.concerns(&approval.session));
        let pending = open.len() as u64;
        let approvals = open.iter().take(FIRST_APPROVALS).map(|approval| Approval::clone(approval)).collect();
        let hello = StreamMessage::Hello {
            me: Me { name: self.who.name.clone(), role: self.who.role.as_str().to_owned() },
            cursor: self.cursor,
            now: Timestamp::now(),
            sessions,
            approvals,
            pending,
            busy: self.app.hub.busy(),
            audit: self.app.feed.status(),
        };
        self.send(&hello).await
    }

    /// Sends some records; says whether there are no more.
    async fn events(&mut self) -> Result<bool, Over> {
        let feed = &self.app.feed;
        if feed.cursor() < self.cursor {
            // Another log has begun.
            self.cursor = 0;
        }
        let frame = match feed.frame(&self.filter, self.cursor, false) {
            Ok(Some(frame)) => frame,
            _ => {
                let (reader, filter, cursor) = (feed.clone(), self.filter.clone(), self.cursor);
                let read = tokio::task::spawn_blocking(move || reader.frame(&filter, cursor, true)).await;
                match read {
                    Ok(Ok(Some(frame))) => frame,
                    // It is tried again: what was not sent is not passed.
                    Ok(Ok(None)) | Err(_) => return Ok(true),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "records could not be read for the stream");
                        return Ok(true);
                    }
                }
            }
        };
        if frame.count > 0 {
            in_time(self.patience, self.line.send(frame.text)).await?;
        }
        self.cursor = frame.cursor;
        Ok(self.cursor >= self.app.feed.cursor())
    }

    /// Tells about sessions of which something is new.
    async fn sessions(&mut self, changed: &mut BTreeSet<String>) -> Result<(), Over> {
        if self.app.feed.cursor() > self.told && changed.len() < SESSIONS_AT_ONCE {
            let heard = self.app.feed.sessions_from(self.told, SESSIONS_AT_ONCE);
            self.told = match heard.last() {
                Some(last) if heard.len() == SESSIONS_AT_ONCE => last.last_seq + 1,
                _ => self.app.feed.cursor().max(self.told),
            };
            changed.extend(heard.into_iter().map(|facts| facts.id));
        }
        self.told = self.told.min(self.app.feed.cursor());
        changed.retain(|id| self.concerns(id));
        for _ in 0..SESSIONS_AT_ONCE {
            // In turns: one that changes all the time does not keep others waiting.
            let beyond = changed.range::<str, _>((Bound::Excluded(self.last.as_str()), Bound::Unbounded)).next();
            let Some(id) = beyond.or_else(|| changed.first()).cloned() else { break };
            changed.remove(&id);
            self.last.clone_from(&id);
            if let Some(session) = joined_one(self.app, &id) {
                self.feed(&StreamMessage::Session { session }).await?;
            }
        }
        in_time(self.patience, self.line.flush()).await
    }

    async fn said(&mut self, text: &Utf8Bytes, answers: &mut JoinSet<StreamMessage>) -> Result<(), Over> {
        let said = serde_json::from_str(text).map_err(|error| {
            let mut why = format!("this cannot be understood: {error}");
            // A reason to close has a limit of 123 bytes.
            why.truncate(why.floor_char_boundary(120));
            Over::Nonsense(why)
        })?;
        match said {
            Said::Watch { session, event, kind, hook, text, after } => {
                let wanted = Wanted { session, event, kind, hook, text };
                self.filter = wanted.filter().map_err(|error| {
                    let mut why = error.message;
                    why.truncate(why.floor_char_boundary(120));
                    Over::Nonsense(why)
                })?;
                if let Some(after) = after {
                    self.cursor = after.min(self.app.feed.cursor());
                }
                Ok(())
            }
            Said::Answer { id, option, nonce, scope } => {
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
                let hub = self.app.hub.clone();
                let by = self.who.answerer();
                let scope = match scope {
                    Some(AnswerScope::Project) => Some(Scope::Project),
                    Some(AnswerScope::Once) | None => None,
                };
                // Not waited for here: the session may take its time, and what happens meanwhile is told all the same.
                answers.spawn(async move {
                    let answered = hub.answer(&id, Answering { option, nonce, by, scope }).await;
                    let error = answered.err().map(|refused| {
                        let ApiError { code, message, by, .. } = refused.into();
                        Explained { code: code.to_owned(), message, by }
                    });
                    StreamMessage::Answered { id, ok: error.is_none(), error }
                });
                Ok(())
            }
        }
    }

    async fn send(&mut self, message: &StreamMessage) -> Result<(), Over> {
        self.feed(message).await?;
        in_time(self.patience, self.line.flush()).await
    }

    async fn feed(&mut self, message: &StreamMessage) -> Result<(), Over> {
        let text = serde_json::to_string(message).map_err(|error| {
            tracing::error!(%error, "a message of the stream cannot be written");
            Over::Gone
        })?;
        in_time(self.patience, self.line.feed(text.into())).await
    }

    /// Whether the client wants to know of that session.
    fn concerns(&self, session: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == session)
    }
}

/// Sends something, unless the client does not take it.
async fn in_time(patience: Patience, sending: impl Future<Output = Result<(), Over>>) -> Result<(), Over> {
    timeout(patience.send, sending).await.unwrap_or(Err(Over::Silent))
}
