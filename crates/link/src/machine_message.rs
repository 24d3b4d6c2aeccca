//! The machine as a peer of the server: starts sessions, stores approval rules, tests bundles and tries events.

use std::io;
use std::sync::Arc;

use amplifier_core::{Actor, ApprovalRule, EmissionReport};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, BufWriter};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::session_message::VERSION;
use crate::transport::{LineReader, MAX_LINE_BYTES, write};

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
        /// All rules.
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
    /// Starts a session, which connects to the server and runs until told to end. The reply is [`MachineReply::Started`].
    StartSession {
        /// The workspace; that of the machine if missing.
        workspace: Option<String>,
        /// The first prompt.
        prompt: Option<String>,
    },
    /// Lists the approval rules in files. The reply is [`MachineReply::Rules`].
    ListRules,
    /// Adds an approval rule to a file, after recording the change. The reply is [`MachineReply::RuleAdded`].
    AddRule {
        /// The rule.
        rule: ApprovalRule,
    },
    /// Revokes an approval rule in a file, after recording the change. The reply is [`MachineReply::RuleRevoked`].
    RevokeRule {
        /// The id of the rule.
        rule: String,
        /// The user who revokes it.
        by: Actor,
    },
    /// Runs the tests of a bundle. The reply is [`MachineReply::Tested`].
    TestBundle {
        /// The bundle as text; that of the machine's folder if missing.
        bundle: Option<String>,
    },
    /// Tries an event. The reply is [`MachineReply::Tried`].
    DryRun(DryRun),
}

/// An event to try. Only hooks run, and no approvals are requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DryRun {
    /// The event.
    pub event: String,
    /// The data.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub data: Map<String, Value>,
    /// The workspace of the hooks; that of the server if missing.
    #[serde(default)]
    pub workspace: Option<String>,
    /// A bundle as text, if only its hooks are to be tried.
    #[serde(default)]
    pub bundle: Option<String>,
}

/// The report of a tried event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DryRunReport {
    /// The report.
    #[serde(flatten)]
    pub report: EmissionReport,
    /// The reason why hooks may be missing: the project is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A reply to a [`MachineRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MachineReply {
    /// The session is running, or waits for an approval before the start.
    Started {
        /// The id of the session.
        session: String,
    },
    /// The approval rules in files.
    Rules(RuleList),
    /// An approval rule is added.
    RuleAdded {
        /// The rule as added.
        rule: ApprovalRule,
        /// All rules in files.
        list: RuleList,
    },
    /// An approval rule is revoked or unknown.
    RuleRevoked {
        /// `true` if the rule existed.
        found: bool,
        /// The remaining rules in files.
        list: RuleList,
    },
    /// The tests of a bundle have run.
    Tested {
        /// The results, as `amplifier hooks test --json` prints them.
        results: Value,
    },
    /// The report of a tried event.
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
    /// The unreadable files. While there is one, no rule allows anything.
    pub unreadable: Vec<UnreadableFile>,
}

/// A file of approval rules that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreadableFile {
    /// The file, or the folder of a missing file.
    pub file: String,
    /// The reason.
    pub reason: String,
}

/// Serves the requests of a server until it closes the connection. Each request runs in its own task; changes of `rules` are sent immediately.
///
/// # Errors
/// If the connection breaks.
///
/// # Cancel safety
/// Dropping the future ends the tasks of running requests.
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
    let mut lines = LineReader::new(BufReader::new(from));
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
                    // Fails if the connection is closed.
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

/// Replaces a reply that is too long for a line.
fn limit_reply(reply: MachineReply) -> MachineReply {
    match serde_json::to_vec(&reply) {
        Ok(line) if line.len() < MAX_LINE_BYTES - 100 => reply,
        Ok(line) => MachineReply::Failed {
            error: format!("the result is too large: {} bytes of at most {MAX_LINE_BYTES}", line.len()),
        },
        Err(error) => MachineReply::Failed { error: error.to_string() },
    }
}
