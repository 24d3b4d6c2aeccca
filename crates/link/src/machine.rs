//! The machine as a peer of the server: starts sessions, keeps approval rules in files, tests bundles and tries events.

use std::io;
use std::sync::Arc;

use amplifier_core::{Actor, ApprovalRule, EmissionReport};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, BufWriter};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::message::VERSION;
use crate::transport::{Lines, MAX_LINE_BYTES, write};

/// The number of replies that wait for a server that does not read.
const REPLY_QUEUE: usize = 64;

/// A message of a machine to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MachineMessage {
    /// The machine introduces itself. The first line.
    Hello {
        /// The version of the machine's messages.
        version: u32,
    },
    /// The reply to a request.
    Reply {
        /// The reference of the request.
        #[serde(rename = "ref")]
        reference: u64,
        /// The reply.
        reply: Box<MachineReply>,
    },
    /// The approval rules in files have changed.
    Rules {
        /// All of them.
        #[serde(flatten)]
        rules: RuleList,
    },
}

/// A request of the server to a machine, and its reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineCall {
    /// Identifies the request in the reply.
    #[serde(rename = "ref")]
    pub reference: u64,
    /// The request.
    #[serde(flatten)]
    pub request: MachineRequest,
}

/// A request of the server to a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MachineRequest {
    /// Starts a session, which connects to the server and lives until it is told to end. Replied to with [`MachineReply::Started`].
    StartSession {
        /// The folder that it works in; the machine's own if missing.
        workspace: Option<String>,
        /// The first prompt.
        prompt: Option<String>,
    },
    /// Lists the approval rules in files. Replied to with [`MachineReply::Rules`].
    ListRules,
    /// Adds an approval rule to a file. The change is recorded before it counts. Replied to with [`MachineReply::RuleAdded`].
    AddRule {
        /// The rule.
        rule: ApprovalRule,
    },
    /// Revokes an approval rule in a file. The change is recorded before it counts. Replied to with [`MachineReply::RuleRevoked`].
    RevokeRule {
        /// The id of the rule.
        rule: String,
        /// The user who revokes it.
        by: Actor,
    },
    /// Runs the tests of a bundle. Replied to with [`MachineReply::Tested`].
    TestBundle {
        /// The bundle as text; the one of the machine's folder if missing.
        bundle: Option<String>,
    },
    /// Tries an event. Replied to with [`MachineReply::Tried`].
    DryRun(DryRun),
}

/// An event whose outcome is to be tried. Approvals are not requested, and nothing runs but the hooks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DryRun {
    /// The event.
    pub event: String,
    /// Its data.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub data: Map<String, Value>,
    /// The folder whose hooks are tried, as a session there would have them; the server's own if missing.
    #[serde(default)]
    pub workspace: Option<String>,
    /// A bundle as text, whose hooks alone are tried.
    #[serde(default)]
    pub bundle: Option<String>,
}

/// The report of an event that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunReport {
    /// The report.
    #[serde(flatten)]
    pub report: EmissionReport,
    /// The reason why hooks of a project may be missing: it is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A reply to a [`MachineRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MachineReply {
    /// A session runs, or its hooks are asking before it does.
    Started {
        /// The id of the session.
        session: String,
    },
    /// The approval rules in files.
    Rules(RuleList),
    /// An approval rule is added.
    RuleAdded {
        /// The rule as it was added.
        rule: ApprovalRule,
        /// All rules in files.
        list: RuleList,
    },
    /// An approval rule is revoked, or was not there.
    RuleRevoked {
        /// `true` if it was there.
        found: bool,
        /// The rules in files that are left.
        list: RuleList,
    },
    /// The tests of a bundle have run.
    Tested {
        /// The results, as `amplifier hooks test --json` prints them.
        results: Value,
    },
    /// An event was tried.
    Tried {
        /// The report, as `amplifier hooks try --json` prints it.
        report: Box<DryRunReport>,
    },
    /// The request is invalid.
    Invalid {
        /// The reason.
        error: String,
    },
    /// The request failed, and changed nothing.
    Failed {
        /// The reason.
        error: String,
    },
}

/// The approval rules in files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleList {
    /// The rules in the files that can be read.
    pub rules: Vec<ApprovalRule>,
    /// The files that cannot be read. While there is one, no rule allows anything.
    pub unreadable: Vec<UnreadableFile>,
}

/// A file of approval rules that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreadableFile {
    /// The file, or the folder that it should be in.
    pub file: String,
    /// The reason.
    pub reason: String,
}

/// Serves the requests of a server until it closes the connection. Each request is handled in a task of its own; changes of `rules` are sent as they
/// happen.
///
/// # Errors
/// If the connection breaks.
///
/// # Cancel safety
/// Dropping the future ends the tasks of the requests that run.
pub async fn serve_machine<H, F>(
    server: impl AsyncRead + AsyncWrite + Send + 'static,
    mut rules: watch::Receiver<RuleList>,
    handle: H,
) -> io::Result<()>
where
    H: Fn(MachineRequest) -> F + Send + Sync + 'static,
    F: Future<Output = MachineReply> + Send + 'static,
{
    let (from, to) = tokio::io::split(server);
    let mut lines = Lines::new(BufReader::new(from));
    let mut to = BufWriter::new(to);
    let handle = Arc::new(handle);
    write(&mut to, &MachineMessage::Hello { version: VERSION }).await?;
    let (send, mut replies) = mpsc::channel::<MachineMessage>(REPLY_QUEUE);
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        tokio::select! {
            call = lines.next::<MachineCall>() => {
                let Some(MachineCall { reference, request }) = call? else { return Ok(()) };
                let (handle, send) = (handle.clone(), send.clone());
                running.spawn(async move {
                    let reply = Box::new(limit_reply(handle(request).await));
                    // The connection may be gone.
                    let _ = send.send(MachineMessage::Reply { reference, reply }).await;
                });
            }
            Some(message) = replies.recv() => write(&mut to, &message).await?,
            Ok(()) = rules.changed() => {
                let rules = rules.borrow_and_update().clone();
                write(&mut to, &MachineMessage::Rules { rules }).await?;
            }
        }
    }
}

/// A line has a largest size.
fn limit_reply(reply: MachineReply) -> MachineReply {
    match serde_json::to_vec(&reply) {
        Ok(line) if line.len() < MAX_LINE_BYTES - 100 => reply,
        Ok(line) => MachineReply::Failed {
            error: format!("the result is too large: {} bytes of at most {MAX_LINE_BYTES}", line.len()),
        },
        Err(error) => MachineReply::Failed { error: error.to_string() },
    }
}
