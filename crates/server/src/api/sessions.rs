//! Sessions and commands to them.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json as Reply;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json, Query};
use super::lists;
use super::session_id::SessionPath;
use crate::App;
use crate::access::{Admin, Approver, Viewer};
use crate::api_types::{ErrorResponse, Session, SessionState};
use crate::feed::SessionFacts;
use crate::hub::{Command, ConnectedSession, HubEvent};

/// Time without activity after which a session counts as gone: without a server connection, and with one. A live
/// session reconnects within two seconds.
const SILENCE: SignedDuration = SignedDuration::from_mins(5);
const ABSENCE: SignedDuration = SignedDuration::from_secs(5);
/// Default and maximum number of sessions in a response.
const LISTED: (usize, usize) = (100, 1000);
/// Time limit for a new session to connect.
const CONNECTING: Duration = Duration::from_secs(5);
/// Limit of a prompt, in bytes.
const PROMPT: usize = 1 << 20;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, start))
        .routes(routes!(one))
        .routes(routes!(hooks))
        .routes(routes!(prompt))
        .routes(routes!(interrupt))
        .routes(routes!(end))
}

/// Filter of sessions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SessionsQuery {
    /// Only sessions in this state.
    state: Option<SessionState>,
    /// Maximum number: 100 by default, at most 1000; sessions updated at the same moment as the last one are included.
    limit: Option<usize>,
    /// Only sessions updated before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Timestamp>,
    /// Only sessions updated at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Only sessions with, or without, denied operations.
    denied: Option<bool>,
    /// Only sessions of this agent program, such as `amplifier`.
    client: Option<String>,
}

impl SessionsQuery {
    fn fits(&self, session: &Session) -> bool {
        self.state.is_none_or(|state| session.state == state)
            && self.before.is_none_or(|before| session.updated_at < before)
            && self.since.is_none_or(|since| session.updated_at >= since)
            && self.denied.is_none_or(|denied| (session.denials > 0) == denied)
            && self.client.as_deref().is_none_or(|name| session.client.as_ref().is_some_and(|one| one.name == name))
    }
}

/// Sessions.
#[derive(Debug, Serialize, ToSchema)]
struct SessionList {
    /// The sessions, the newest first.
    sessions: Vec<Session>,
}

/// A session to start.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct NewSession {
    /// Working folder; the server's by default.
    workspace: Option<String>,
    /// First prompt.
    prompt: Option<String>,
}

/// A prompt for a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Prompt {
    /// The text.
    text: String,
}

/// An empty object.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

/// The hooks of a session.
#[derive(Debug, Serialize, ToSchema)]
struct SessionHooks {
    /// The hooks, in running order.
    #[schema(value_type = Vec<Object>)]
    hooks: Vec<Value>,
}

/// Returns all sessions from the log and the hub, the newest first.
pub(crate) fn all_sessions(app: &App) -> Vec<Session> {
    let now = Timestamp::now();
    let mut connected: HashMap<String, ConnectedSession> =
        app.hub.connected().into_iter().map(|about| (about.session.clone(), about)).collect();
    let facts = app.feed.sessions();
    let known = facts.into_iter().map(|facts| {
        let about = connected.remove(&facts.id);
        let (is_idle, pending) = (app.hub.is_idle(&facts.id), app.hub.pending_of(&facts.id));
        let contact = Contact::with(app, &facts, about.is_some(), now);
        session(Some(facts), about, is_idle, pending, contact, now)
    });
    let mut sessions: Vec<Session> = known.collect();
    // Sessions without records yet.
    let new = connected.into_values().map(|about| {
        let is_idle = app.hub.is_idle(&about.session);
        app.hub.presence().update(&about.session, true, now);
        let pending = about.pending;
        session(None, Some(about), is_idle, pending, Contact::Here, now)
    });
    sessions.extend(new);
    sessions.sort_by(|one, other| (other.updated_at, &other.id).cmp(&(one.updated_at, &one.id)));
    sessions
}

pub(crate) fn find_session(app: &App, id: &str) -> Option<Session> {
    let (facts, about) = (app.feed.session(id), app.hub.session(id));
    if facts.is_none() && about.is_none() {
        return None;
    }
    let now = Timestamp::now();
    let contact = facts.as_ref().map_or(Contact::Here, |facts| Contact::with(app, facts, about.is_some(), now));
    Some(session(facts, about, app.hub.is_idle(id), app.hub.pending_of(id), contact, now))
}

/// Returns the sessions that became gone between these times.
pub(crate) fn gone_between(app: &App, from: Timestamp, to: Timestamp) -> Vec<String> {
    let mut sessions = app.feed.sessions();
    sessions.retain(|facts| {
        facts.ended.is_none() && app.hub.session(&facts.id).is_none() && {
            let at = Contact::with(app, facts, false, to).gone_at(facts);
            at.is_some_and(|at| from < at && at <= to)
        }
    });
    sessions.into_iter().map(|facts| facts.id).collect()
}

/// Connection state of a session.
#[derive(Clone, Copy, Debug)]
enum Contact {
    /// The session is connected, or is a sub-agent of a connected one.
    Here,
    /// The session was or should be connected, and is missing since this time.
    Missed(Timestamp),
    /// The session does not use the server.
    Unknown,
}

impl Contact {
    fn with(app: &App, facts: &SessionFacts, is_connected: bool, now: Timestamp) -> Self {
        // A sub-agent has no connection of its own.
        let (id, is_connected) = match &facts.within {
            Some(outer) => (outer, app.hub.session(outer).is_some()),
            None => (&facts.id, is_connected),
        };
        let presence = app.hub.presence();
        let missed = presence.update(id, is_connected, now);
        if is_connected {
            return Self::Here;
        }
        let open = presence.opened_at();
        // A session of an earlier server reconnects soon. A session with later activity does not connect to this
        // server.
        let is_expected = facts.is_served && facts.updated_at < open + ABSENCE;
        missed.or(is_expected.then_some(open)).map_or(Self::Unknown, Self::Missed)
    }

    /// Returns the time at which the session counts as gone without further activity.
    fn gone_at(self, facts: &SessionFacts) -> Option<Timestamp> {
        match self {
            Self::Here => None,
            Self::Missed(since) => Some(since.max(facts.updated_at) + ABSENCE),
            Self::Unknown => Some(facts.updated_at + SILENCE),
        }
    }
}

fn session(
    facts: Option<SessionFacts>,
    about: Option<ConnectedSession>,
    is_idle: Option<bool>,
    pending: u64,
    contact: Contact,
    now: Timestamp,
) -> Session {
    let begun = facts.as_ref().map(|facts| facts.started_at).or_else(|| about.as_ref().map(|about| about.started_at));
    let begun = begun.unwrap_or(now);
    let facts =
        facts.unwrap_or_else(|| SessionFacts { started_at: begun, updated_at: begun, ..SessionFacts::default() });
    let is_gone = contact.gone_at(&facts).is_some_and(|at| at <= now);
    let state = match &about {
        // A connected session goes on after its end.
        None if facts.is_failed => SessionState::Failed,
        None if facts.ended.is_some() => SessionState::Ended,
        None if is_gone => SessionState::Gone,
        // A sub-agent keeps its state until it counts as gone.
        None if matches!(contact, Contact::Missed(_)) && facts.within.is_none() => SessionState::Away,
        _ if pending > 0 => SessionState::Waiting,
        Some(about) if about.takes_prompts && is_idle == Some(true) => SessionState::Idle,
        _ if facts.is_running => SessionState::Running,
        _ => SessionState::Idle,
    };
    Session {
        id: about.as_ref().map_or(facts.id, |about| about.session.clone()),
        name: facts.name.or_else(|| about.as_ref()?.name.clone()),
        workspace: facts.workspace.or_else(|| Some(about.as_ref()?.workspace.clone())),
        state,
        connected: about.is_some(),
        takes_prompts: about.as_ref().is_some_and(|about| about.takes_prompts),
        mode: about.as_ref().and_then(|about| about.mode.clone()),
        runs_in: about.as_ref().map(|about| about.place),
        machine: about.as_ref().and_then(|about| about.machine.clone()),
        pid: about.as_ref().filter(|about| about.machine.is_none()).map(|about| about.pid),
        started_at: facts.started_at,
        updated_at: facts.updated_at,
        turns: facts.turns,
        tool_calls: facts.tool_calls,
        denials: facts.denials,
        errors: facts.errors,
        pending,
        tokens: facts.tokens,
        cost: facts.cost,
        prompt: facts.prompt,
        last_message: facts.last_message,
        client: facts.client,
        model: facts.model,
        ended: facts.ended.filter(|_| about.is_none()),
        parent: facts.parent,
    }
}

/// Lists sessions, the newest first.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", params(SessionsQuery),
    responses((status = 200, body = SessionList), (status = 401, body = ErrorResponse)))]
async fn list(_viewer: Viewer, State(app): State<App>, Query(query): Query<SessionsQuery>) -> Reply<SessionList> {
    let limit = query.limit.unwrap_or(LISTED.0).min(LISTED.1);
    let mut sessions = all_sessions(&app);
    sessions.retain(|session| query.fits(session));
    lists::cut(&mut sessions, limit, |session| session.updated_at);
    Reply(SessionList { sessions })
}

/// Starts a session in the server.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions", request_body = NewSession,
    responses((status = 201, body = Session), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 422, body = ErrorResponse)))]
async fn start(
    _admin: Admin,
    State(app): State<App>,
    Json(NewSession { workspace, prompt }): Json<NewSession>,
) -> Result<(StatusCode, Reply<Session>), ApiError> {
    if let Some(prompt) = &prompt {
        check_prompt(prompt)?;
    }
    let changes = app.hub.subscribe();
    let started = app.hub.start_session(workspace, prompt).await;
    let id = started.map_err(ApiError::refused_by_machine("not_started"))?;
    // The session should be usable at once. A session that does not connect in time is returned as known.
    let _ = tokio::time::timeout(CONNECTING, connected(&app, &id, changes)).await;
    let session = find_session(&app, &id).unwrap_or_else(|| {
        let now = Timestamp::now();
        let facts = SessionFacts { id, started_at: now, updated_at: now, ..SessionFacts::default() };
        self::session(Some(facts), None, None, 0, Contact::Unknown, now)
    });
    Ok((StatusCode::CREATED, Reply(session)))
}

async fn connected(app: &App, id: &str, mut changes: Receiver<HubEvent>) {
    while app.hub.session(id).is_none() {
        if let Err(RecvError::Closed) = changes.recv().await {
            return;
        }
    }
}

/// Returns a session.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path, description = "The session: its id, or the beginning or end of it.")),
    responses((status = 200, body = Session), (status = 401, body = ErrorResponse), (status = 404, body = ErrorResponse)))]
async fn one(
    _viewer: Viewer,
    State(app): State<App>,
    SessionPath(id): SessionPath,
) -> Result<Reply<Session>, ApiError> {
    find_session(&app, &id).map(Reply).ok_or_else(|| unknown(&id))
}

/// Lists the hooks of a connected session.
#[utoipa::path(get, path = "/api/sessions/{id}/hooks", tag = "sessions", params(("id" = String, Path, description = "The session: its id, or the beginning or end of it.")),
    responses((status = 200, body = SessionHooks), (status = 401, body = ErrorResponse), (status = 404, body = ErrorResponse),
        (status = 409, body = ErrorResponse)))]
async fn hooks(
    _viewer: Viewer,
    State(app): State<App>,
    SessionPath(id): SessionPath,
) -> Result<Reply<SessionHooks>, ApiError> {
    match app.hub.hooks_of(&id) {
        Some(hooks) => Ok(Reply(SessionHooks { hooks })),
        None => Err(not_connected(&app, &id)),
    }
}

/// Sends a prompt to a session.
#[utoipa::path(post, path = "/api/sessions/{id}/prompt", tag = "sessions", params(("id" = String, Path, description = "The session: its id, or the beginning or end of it.")),
    request_body = Prompt,
    responses((status = 202, body = EmptyBody), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 404, body = ErrorResponse), (status = 409, body = ErrorResponse), (status = 422, body = ErrorResponse)))]
async fn prompt(
    _admin: Admin,
    State(app): State<App>,
    SessionPath(id): SessionPath,
    Json(Prompt { text }): Json<Prompt>,
) -> Result<(StatusCode, Reply<EmptyBody>), ApiError> {
    check_prompt(&text)?;
    send_command(&app, &id, Command::Prompt(text))
}

/// Stops the running turn of a session: the first request after the running tool has finished, the second one at once.
#[utoipa::path(post, path = "/api/sessions/{id}/interrupt", tag = "sessions", params(("id" = String, Path, description = "The session: its id, or the beginning or end of it.")),
    request_body = EmptyBody,
    responses((status = 202, body = EmptyBody), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 404, body = ErrorResponse), (status = 409, body = ErrorResponse)))]
async fn interrupt(
    _approver: Approver,
    State(app): State<App>,
    SessionPath(id): SessionPath,
    Json(EmptyBody {}): Json<EmptyBody>,
) -> Result<(StatusCode, Reply<EmptyBody>), ApiError> {
    send_command(&app, &id, Command::Interrupt)
}

/// Ends a session.
#[utoipa::path(post, path = "/api/sessions/{id}/end", tag = "sessions", params(("id" = String, Path, description = "The session: its id, or the beginning or end of it.")),
    request_body = EmptyBody,
    responses((status = 202, body = EmptyBody), (status = 401, body = ErrorResponse), (status = 403, body = ErrorResponse),
        (status = 404, body = ErrorResponse), (status = 409, body = ErrorResponse)))]
async fn end(
    _admin: Admin,
    State(app): State<App>,
    SessionPath(id): SessionPath,
    Json(EmptyBody {}): Json<EmptyBody>,
) -> Result<(StatusCode, Reply<EmptyBody>), ApiError> {
    send_command(&app, &id, Command::End)
}

fn send_command(app: &App, id: &str, command: Command) -> Result<(StatusCode, Reply<EmptyBody>), ApiError> {
    if app.hub.session(id).is_none() {
        return Err(not_connected(app, id));
    }
    app.hub.send(id, command)?;
    Ok((StatusCode::ACCEPTED, Reply(EmptyBody {})))
}

fn check_prompt(text: &str) -> Result<(), ApiError> {
    let problem = match text {
        text if text.trim().is_empty() => "empty prompt; enter a task",
        text if text.len() > PROMPT => "prompt longer than 1 MiB; put the content in a file",
        _ => return Ok(()),
    };
    Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "prompt", problem))
}

fn not_connected(app: &App, id: &str) -> ApiError {
    match app.feed.session(id) {
        Some(_) => ApiError::new(
            StatusCode::CONFLICT,
            "not_connected",
            format!("session `{id}` is not connected; start it with `--serve`"),
        ),
        None => unknown(id),
    }
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found(format!("unknown session `{id}`; see `GET /api/sessions`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_types::SessionHost;

    #[test]
    fn the_state_of_a_session_follows_from_what_is_recorded_and_who_is_connected() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let facts = |minutes: i64, is_running, ended: Option<&str>| SessionFacts {
            id: "s".to_owned(),
            updated_at: now - SignedDuration::from_mins(minutes),
            is_running,
            ended: ended.map(str::to_owned),
            is_failed: ended == Some("error"),
            ..SessionFacts::default()
        };
        let connected = |pending, takes_prompts| ConnectedSession {
            session: "s".to_owned(),
            name: None,
            pid: 1,
            workspace: "/".to_owned(),
            place: SessionHost::Process,
            machine: None,
            takes_prompts,
            mode: None,
            started_at: now,
            pending,
        };
        let check = |facts, about: Option<ConnectedSession>, is_idle, expected| {
            let contact = if about.is_some() { Contact::Here } else { Contact::Unknown };
            let pending = about.as_ref().map_or(0, |about| about.pending);
            assert_eq!(session(facts, about, is_idle, pending, contact, now).state, expected);
        };
        let lost = |seconds| {
            let since = now - SignedDuration::from_secs(seconds);
            session(Some(facts(1, true, None)), None, None, 0, Contact::Missed(since), now).state
        };
        assert_eq!((lost(1), lost(6)), (SessionState::Away, SessionState::Gone));
        // A sub-agent of a connected session.
        let within = |pending| session(Some(facts(60, true, None)), None, None, pending, Contact::Here, now).state;
        assert_eq!((within(0), within(1)), (SessionState::Running, SessionState::Waiting));
        check(Some(facts(0, true, None)), None, None, SessionState::Running);
        check(Some(facts(0, false, None)), None, None, SessionState::Idle);
        check(Some(facts(6, true, None)), None, None, SessionState::Gone);
        check(Some(facts(6, false, Some("complete"))), None, None, SessionState::Ended);
        check(Some(facts(6, false, Some("error"))), None, None, SessionState::Failed);
        check(Some(facts(0, false, Some("error"))), Some(connected(0, true)), Some(true), SessionState::Idle);
        check(Some(facts(60, true, None)), Some(connected(0, false)), Some(false), SessionState::Running);
        check(Some(facts(0, true, None)), Some(connected(1, false)), Some(false), SessionState::Waiting);
        check(Some(facts(0, true, None)), Some(connected(0, true)), Some(true), SessionState::Idle);
        check(Some(facts(0, false, Some("user_exit"))), Some(connected(0, true)), Some(true), SessionState::Idle);
        check(None, Some(connected(2, true)), Some(false), SessionState::Waiting);
    }
}
