//! Approval requests of a running server, live, and answers to them.

use std::time::Duration;

use amplifier_core::ApprovalAnswer;
use amplifier_link::{ApprovalId, DecidedApproval, OpenApproval};
use axum::http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::{Client, ClientError, ConnectionTask, LIMIT, collect, decode, refusal};
use crate::api_types::Session;

/// Time limit of silence. The server sends a sign of life every twenty seconds.
const SILENCE: Duration = Duration::from_secs(65);
/// Limit of a message, in bytes: the first one has up to 500 requests.
const LONGEST_MESSAGE: usize = 64 << 20;
/// The stream without records, as far as possible: approval requests are messages of their own.
const STREAM: &str = "/api/stream?event=approval:*";

/// A change of the open approval requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "each is handled at once, and none is kept")]
pub enum ApprovalUpdate {
    /// The current state, which replaces any earlier one.
    Hello {
        /// The open approval requests, the oldest first.
        approvals: Vec<OpenApproval>,
        /// The latest sessions, and all that are active.
        sessions: Vec<Session>,
    },
    /// A session has changed.
    Session {
        /// The session.
        session: Session,
    },
    /// An approval request is open.
    ApprovalRequested {
        /// The request.
        approval: OpenApproval,
    },
    /// An approval request is closed.
    ApprovalClosed {
        /// The id of the request.
        id: ApprovalId,
        /// The decision; missing if updates were missed.
        decided: Option<DecidedApproval>,
    },
    /// Any other message.
    #[serde(other)]
    Other,
}

/// The changes of open approval requests, until the server ends.
#[derive(Debug)]
pub struct ApprovalStream {
    body: Incoming,
    received: Vec<u8>,
    /// The number of received bytes without the end of a line.
    searched: usize,
    _connection: ConnectionTask,
}

impl Client {
    /// Subscribes to approval requests.
    ///
    /// # Errors
    /// If the server is unreachable, or returns an error.
    pub async fn approvals(&self) -> Result<ApprovalStream, ClientError> {
        let sent = timeout(LIMIT, self.send(Method::GET, STREAM, &json!({}))).await;
        let sent = sent.map_err(|_| self.unreachable("no response in time"))?;
        let (response, connection) = sent.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            let body = response.into_body();
            return Ok(ApprovalStream { body, received: Vec::new(), searched: 0, _connection: connection });
        }
        let body = timeout(LIMIT, collect(response)).await.map_err(|_| self.unreachable("no response in time"))?;
        let (status, bytes) = body.map_err(|error| self.unreachable(error))?;
        Err(refusal(status, &bytes))
    }

    /// Returns a request with its whole preview; `None` if it is decided.
    ///
    /// # Errors
    /// If the server is unreachable, or returns an error.
    pub async fn approval(&self, id: &ApprovalId) -> Result<Option<OpenApproval>, ClientError> {
        let found = self.ask(Method::GET, &format!("/api/approvals/{id}"), &json!({})).await?;
        // A decided request has no options.
        if found.get("options").is_none() { Ok(None) } else { decode(found).map(Some) }
    }

    /// Answers a request as it was shown.
    ///
    /// # Errors
    /// If the server is unreachable, or the answer does not count.
    pub async fn answer(
        &self,
        request: &OpenApproval,
        answer: &ApprovalAnswer,
    ) -> Result<DecidedApproval, ClientError> {
        let ApprovalAnswer { label, reason, rule, .. } = answer;
        let body = json!({ "option": label, "reason": reason, "rule": rule, "nonce": request.nonce });
        decode(self.ask(Method::POST, &format!("/api/approvals/{}/answer", request.id), &body).await?)
    }
}

impl ApprovalStream {
    /// Returns the next change; `None` if the server has ended.
    ///
    /// # Errors
    /// If the server is silent, or sends something else.
    ///
    /// # Cancel safety
    /// No change is lost.
    pub async fn next(&mut self) -> Result<Option<ApprovalUpdate>, ClientError> {
        loop {
            while let Some(end) = self.received[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=self.searched + end).collect();
                self.searched = 0;
                // An empty line is a sign of life.
                if !line.trim_ascii().is_empty() {
                    let update = serde_json::from_slice(&line);
                    return update.map(Some).map_err(|error| unreadable(&error.to_string()));
                }
            }
            self.searched = self.received.len();
            if self.searched > LONGEST_MESSAGE {
                return Err(unreadable("a message is too long"));
            }
            let frame = timeout(SILENCE, self.body.frame()).await;
            match frame.map_err(|_| ClientError::Refused("no sign of life".to_owned()))? {
                Some(Ok(frame)) => self.received.extend(frame.data_ref().into_iter().flatten()),
                // A server that is stopped or killed.
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }
}

fn unreadable(problem: &str) -> ClientError {
    ClientError::Refused(format!("unreadable message: {problem}"))
}
