//! Connected sessions and their approval requests, without I/O.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use amplifier_core::{Actor, ApprovalDecision, ApprovalRule, DecisionBasis, DefaultDecision, Digest, RuleScope};
use amplifier_link::{AnswerScope, AnswerStatus, ApprovalId, DecidedApproval, OpenApproval, SessionHello};
use jiff::Timestamp;
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::flood::ApprovalRate;
use super::request_store::RequestStore;
use super::{ConnectedSession, HubError, HubErrorCode, HubEvent, SubmittedAnswer};
use crate::api_types::{ApprovalFlood, ListedRule, SessionHost};

/// Limits in bytes of the open requests of one session, and of all. Beyond them, requests are stored without previews;
/// beyond the last limit, not at all.
const ROOM: usize = 8 << 20;
const ROOM_OF_ALL: usize = 256 << 20;
const ROOM_AT_MOST: usize = 320 << 20;
/// The largest length of the name of a mode.
const MAX_MODE: usize = 32;
/// A smaller request would not become much smaller without its preview.
const SMALL: usize = 2 << 10;
/// Limit of open requests per session.
const OPEN: usize = 20_000;

/// Connected sessions and their approval requests. `L` is the channel to a session.
pub(super) struct ConnectedSessions<L> {
    sessions: BTreeMap<String, Member<L>>,
    connections: HashMap<u64, String>,
    approvals: RequestStore,
    sub_agent_requests: HashMap<String, u64>,
    rate: ApprovalRate,
    /// The last report about too many requests.
    last_flood: Option<ApprovalFlood>,
    next: u64,
}

struct Member<L> {
    connection: u64,
    process: Process,
    /// The size of its open requests, in bytes.
    bytes: usize,
    about: ConnectedSession,
    link: L,
    is_idle: bool,
    rules: Vec<ListedRule>,
    hooks: Vec<Value>,
}

/// The requesting process, and the run of the session in it. Only this process receives the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    peer: Option<i32>,
    run: String,
}

/// A session's reply to an answer.
pub(super) struct AnswerReply {
    pub(super) id: ApprovalId,
    pub(super) status: AnswerStatus,
    pub(super) decision: Option<ApprovalDecision>,
    /// The approver who was faster, if there is no decision yet.
    pub(super) by: Option<Actor>,
}

pub(super) struct Delivery<L> {
    pub(super) link: L,
    pub(super) connection: u64,
    pub(super) session: String,
    pub(super) id: ApprovalId,
    /// The digest of the data that the answer is about.
    pub(super) digest: Digest,
    /// Identifies the answer in the reply.
    pub(super) reference: u64,
    /// The decision, if the request is closed.
    pub(super) decided: Option<DecidedApproval>,
    /// The rule that the answer becomes, or the reason why it cannot become one.
    pub(super) rule: Option<Result<ApprovalRule, &'static str>>,
}

impl<L> Default for ConnectedSessions<L> {
    fn default() -> Self {
        Self {
            sessions: BTreeMap::new(),
            connections: HashMap::new(),
            approvals: RequestStore::default(),
            sub_agent_requests: HashMap::new(),
            rate: ApprovalRate::default(),
            last_flood: None,
            next: 0,
        }
    }
}

impl<L: Clone> ConnectedSessions<L> {
    /// Adds a session, and returns the number of its connection.
    ///
    /// A session that is connected already is taken over by its own process only: another one cannot pass for it.
    pub(super) fn join(
        &mut self,
        hello: SessionHello,
        place: SessionHost,
        peer: Option<i32>,
        link: L,
        now: Timestamp,
    ) -> Result<(u64, Vec<HubEvent>), String> {
        let mut changes = Vec::new();
        // A session of this machine cannot pass for one of another.
        let machine = hello.machine.clone().filter(|_| place == SessionHost::Machine);
        if let Some(known) = self.sessions.get(&hello.session) {
            if known.process.peer != peer || known.about.machine != machine {
                return Err(format!("session `{}` is already connected from another process", hello.session));
            }
            changes = self.leave(known.connection, now);
        }
        self.next += 1;
        let SessionHello { session, run, name, pid, workspace, takes_prompts, idle, started_at, .. } = hello;
        let about = ConnectedSession {
            session: session.clone(),
            name,
            pid,
            workspace,
            place,
            machine,
            takes_prompts,
            mode: None,
            started_at,
            pending: 0,
        };
        let connection = self.next;
        self.connections.insert(connection, session.clone());
        let (rules, hooks) = (Vec::new(), Vec::new());
        let process = Process { peer, run };
        self.sessions.insert(
            session.clone(),
            Member { connection, process, bytes: 0, about, link, is_idle: idle, rules, hooks },
        );
        changes.push(HubEvent::Session(session));
        Ok((connection, changes))
    }

    /// Removes a connection. The requests of the session cannot be answered here until it comes back.
    pub(super) fn leave(&mut self, connection: u64, now: Timestamp) -> Vec<HubEvent> {
        let Some(session) = self.connections.remove(&connection) else { return Vec::new() };
        let of_session = self.approvals.in_order().filter(|approval| approval.connected_session() == session);
        let of_session: Vec<ApprovalId> = of_session.map(|approval| approval.id.clone()).collect();
        let Some(member) = self.sessions.remove(&session) else { return Vec::new() };
        let had_rules = !member.rules.is_empty();
        let mut changes = Vec::new();
        for id in of_session {
            let reason = "the session is no longer connected, so it cannot be answered here";
            let decision = ApprovalDecision::new(false, DecisionBasis::Disconnected, reason);
            let (closed, asker) = self.close(&id, member.process.clone(), decision, now).unzip();
            changes.extend(closed);
            changes.extend(asker.filter(|asker| *asker != session).map(HubEvent::Session));
        }
        changes.push(HubEvent::Session(session));
        changes.extend(had_rules.then_some(HubEvent::Rules));
        changes
    }

    /// Adds a request of a session, or of a sub-agent of it, with a new nonce.
    ///
    /// An id never stands for something else: what is announced again has to be what was asked, by the process that asked it.
    pub(super) fn add_request(
        &mut self,
        connection: u64,
        approval: OpenApproval,
        nonce: String,
        now: Timestamp,
    ) -> Vec<HubEvent> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        if member.about.pending >= OPEN as u64 {
            return Vec::new();
        }
        let (connected, process, machine) =
            (member.about.session.clone(), member.process.clone(), member.about.machine.clone());
        // Sub-agents send requests over the connection of the session that delegated to them. A session with its own
        // connection is not a sub-agent.
        let is_sub_agent = !self.sessions.contains_key(&approval.id.session);
        let session = if is_sub_agent { approval.id.session } else { connected.clone() };
        let parent_session = is_sub_agent.then(|| connected.clone());
        let id = ApprovalId::new(session.as_str(), process.run.as_str(), approval.id.number);
        if self.approvals.open(&id).is_some() {
            return Vec::new();
        }
        let session_id = session.clone();
        let approval = OpenApproval { id: id.clone(), session: session_id, parent_session, machine, nonce, ..approval };
        if let Some(closed) = self.approvals.closed(&id) {
            // A request may be open again if it was closed because the connection broke.
            let asked = &closed.request;
            let is_same = asked.is_same_request(&approval) || asked.is_same_request(&approval.withheld());
            let is_same = is_same && closed.process == process;
            if !is_same || closed.decided.basis != DecisionBasis::Disconnected {
                tracing::warn!(session.id = session, "a request is announced that was closed, or was another one");
                return Vec::new();
            }
            self.approvals.forget(&id);
        }
        let taken = self.member(connection).map_or(0, |member| member.bytes);
        let (weight, open) = (approval.weight(), self.approvals.open_bytes());
        let has_room = weight <= SMALL || taken + weight <= ROOM && open + weight <= ROOM_OF_ALL;
        let approval = Arc::new(if has_room { approval } else { approval.withheld() });
        let weight = approval.weight();
        if open + weight > ROOM_AT_MOST {
            tracing::warn!(session.id = session, "a request is not announced: too much is open");
            return Vec::new();
        }
        if let Some(member) = self.member(connection) {
            member.about.pending += 1;
            member.bytes += weight;
        }
        self.approvals.insert(approval.clone());
        self.rate.count(&approval, now);
        let mut changes = vec![HubEvent::ApprovalRequested(approval), HubEvent::Session(connected)];
        if is_sub_agent {
            *self.sub_agent_requests.entry(session.clone()).or_default() += 1;
            changes.push(HubEvent::Session(session));
        }
        changes.extend(self.flood_change(now));
        changes
    }

    pub(super) fn close_request(
        &mut self,
        connection: u64,
        id: &ApprovalId,
        decision: ApprovalDecision,
        now: Timestamp,
    ) -> Vec<HubEvent> {
        let Some(id) = self.resolve(connection, id) else { return Vec::new() };
        let Some(member) = self.member(connection) else { return Vec::new() };
        let (connected, process) = (member.about.session.clone(), member.process.clone());
        let Some((closed, asker)) = self.close(&id, process, decision, now) else { return Vec::new() };
        if let Some(member) = self.member(connection) {
            member.about.pending = member.about.pending.saturating_sub(1);
        }
        let is_sub_agent = asker != connected;
        let mut changes = vec![closed, HubEvent::Session(connected)];
        changes.extend(is_sub_agent.then_some(HubEvent::Session(asker)));
        changes
    }

    /// Returns the id of a request that came over this connection.
    fn resolve(&self, connection: u64, id: &ApprovalId) -> Option<ApprovalId> {
        let connected = self.connections.get(&connection)?;
        let run = &self.sessions.get(connected)?.process.run;
        let is_its_own =
            |id: &ApprovalId| self.approvals.request(id).is_some_and(|asked| asked.connected_session() == connected);
        // A sub-agent that had its own connection when it sent the request was not counted as one.
        let askers = [&id.session, connected].into_iter();
        askers.map(|asker| ApprovalId::new(asker.as_str(), run.as_str(), id.number)).find(is_its_own)
    }

    /// Closes a request, and returns the change and the session that asked.
    fn close(
        &mut self,
        id: &ApprovalId,
        process: Process,
        decision: ApprovalDecision,
        now: Timestamp,
    ) -> Option<(HubEvent, String)> {
        let (asked, decided) = self.approvals.close(id, process, decision, now)?;
        if let Some(member) = self.sessions.get_mut(asked.connected_session()) {
            member.bytes = member.bytes.saturating_sub(asked.weight());
        }
        if asked.parent_session.is_some()
            && let Entry::Occupied(mut open) = self.sub_agent_requests.entry(asked.session.clone())
        {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
        let parent_session = asked.parent_session.clone();
        Some((HubEvent::ApprovalClosed { id: id.clone(), decided, parent_session }, asked.session.clone()))
    }

    /// Checks an answer, and returns its destination: the requesting process, and no other. An answer to a closed
    /// request is sent as well if that process is still connected: it is recorded with the request.
    pub(super) fn answer(&mut self, id: &ApprovalId, submitted: &SubmittedAnswer) -> Result<Delivery<L>, HubError> {
        let closed = self.approvals.closed(id).filter(|_| self.approvals.open(id).is_none());
        let asked = self.approvals.request(id).ok_or_else(|| HubError::unknown(id).undelivered())?;
        let SubmittedAnswer { answer, nonce, scope } = submitted;
        if !bool::from(asked.nonce.as_bytes().ct_eq(nonce.as_bytes())) {
            return Err(HubError::new(
                HubErrorCode::Nonce,
                "invalid nonce; reload the approval request and answer again",
            ));
        }
        if let Some(why) = asked.rejection(&answer.label, *scope, answer.rule.as_ref()) {
            return Err(HubError::new(HubErrorCode::InvalidOption, why));
        }
        if let Some(machine) = asked.machine.as_ref().filter(|_| *scope == AnswerScope::Project) {
            let message = format!("a rule of this server does not apply on the machine `{machine}`; answer once");
            return Err(HubError::new(HubErrorCode::InvalidOption, message));
        }
        let (session, digest) = (asked.connected_session().to_owned(), asked.digest);
        let rule = (*scope == AnswerScope::Project).then(|| project_rule(asked, submitted));
        let decided = closed.map(|closed| closed.decided.clone());
        let member = self.sessions.get(&session);
        // Open requests belong to the connected process.
        let Some(member) = member.filter(|member| closed.is_none_or(|closed| closed.process == member.process)) else {
            let refused = match decided {
                Some(decided) if member.is_none() || decided.basis != DecisionBasis::Disconnected => {
                    HubError::already_decided(&decided)
                }
                Some(_) => HubError::run_replaced(&session),
                None => HubError::offline(&session),
            };
            return Err(refused.undelivered());
        };
        self.next += 1;
        let (link, connection, id) = (member.link.clone(), member.connection, id.clone());
        Ok(Delivery { link, connection, session, id, digest, reference: self.next, decided, rule })
    }

    /// Returns the result of an answer by the session's reply. The decision is stored at once, so that the next reader
    /// sees it.
    pub(super) fn finish_answer(
        &mut self,
        connection: u64,
        reply: AnswerReply,
        now: Timestamp,
    ) -> (Result<DecidedApproval, HubError>, Vec<HubEvent>) {
        let AnswerReply { id, status, decision, by } = reply;
        if self.member(connection).is_none() {
            return (Err(HubError::offline("")), Vec::new());
        }
        let known = self.resolve(connection, &id);
        // A session does not record an answer to a request that it has dropped.
        let is_undelivered = status == AnswerStatus::Closed && decision.is_none();
        let changes = decision.map(|decision| self.close_request(connection, &id, decision, now)).unwrap_or_default();
        let decided = known.and_then(|id| self.approvals.closed(&id)).map(|closed| &closed.decided);
        let by = decided.and_then(|decided| decided.by.clone()).or(by);
        let answer = match (status, decided) {
            (AnswerStatus::Taken, Some(decided)) => Ok(decided.clone()),
            (AnswerStatus::Late, _) => Err(HubError::late()),
            (AnswerStatus::Answered, _) => Err(HubError::already_answered(by)),
            (AnswerStatus::NotOffered, _) => Err(HubError::new(HubErrorCode::InvalidOption, "unknown option")),
            (AnswerStatus::Sent, _) => Err(HubError::sent()),
            (AnswerStatus::Closed, Some(decided)) => Err(HubError::already_decided(decided)),
            (AnswerStatus::Closed | AnswerStatus::Taken, None) => {
                Err(HubError::new(HubErrorCode::Closed, "the approval request is no longer open"))
            }
        };
        let answer = answer.map_err(|refused| HubError { undelivered: is_undelivered, ..refused });
        (answer, changes)
    }

    pub(super) fn set_rules(&mut self, connection: u64, rules: Vec<ApprovalRule>) -> Vec<HubEvent> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        let session = member.about.session.clone();
        // The scope is set here: these are rules of that session, whatever the message contains.
        let rules = rules.into_iter().map(|rule| {
            ListedRule::from(ApprovalRule {
                scope: RuleScope::Session,
                session: Some(session.clone()),
                project: None,
                ..rule
            })
        });
        let rules: Vec<ListedRule> = rules.collect();
        if member.rules == rules {
            return Vec::new();
        }
        member.rules = rules;
        vec![HubEvent::Rules]
    }

    pub(super) fn set_hooks(&mut self, connection: u64, hooks: Vec<Value>) -> Vec<HubEvent> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        member.hooks = hooks;
        vec![HubEvent::Session(member.about.session.clone())]
    }

    pub(super) fn set_idle(&mut self, connection: u64, is_idle: bool) -> Vec<HubEvent> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        member.is_idle = is_idle;
        vec![HubEvent::Session(member.about.session.clone())]
    }

    pub(super) fn set_mode(&mut self, connection: u64, mut mode: String) -> Vec<HubEvent> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        // A session could send anything.
        mode.retain(|character| character.is_ascii_lowercase() || character == '-');
        mode.truncate(MAX_MODE);
        member.about.mode = Some(mode).filter(|mode| !mode.is_empty());
        vec![HubEvent::Session(member.about.session.clone())]
    }

    /// Returns the channel to a session and its connection. A prompt marks the session as busy at once, so that two
    /// prompts cannot be sent.
    pub(super) fn claim_link(&mut self, session: &str, is_prompt: bool) -> Result<(L, u64), HubError> {
        let Some(member) = self.sessions.get_mut(session) else { return Err(HubError::offline(session)) };
        if let Some(machine) = &member.about.machine {
            let message = format!("this session runs on the machine `{machine}`, and takes commands only there");
            return Err(HubError::new(HubErrorCode::NoPrompts, message));
        }
        if is_prompt && !member.about.takes_prompts {
            return Err(HubError::new(HubErrorCode::NoPrompts, "this session does not accept prompts from the server"));
        }
        if is_prompt && !std::mem::take(&mut member.is_idle) {
            return Err(HubError::new(
                HubErrorCode::Busy,
                "the session is running a turn; wait for the end, or interrupt the turn",
            ));
        }
        Ok((member.link.clone(), member.connection))
    }

    /// Returns all sessions of this machine with their channels and connections.
    pub(super) fn links(&self) -> Vec<(String, L, u64)> {
        let all = self.sessions.iter().filter(|(_, member)| member.about.machine.is_none());
        all.map(|(session, member)| (session.clone(), member.link.clone(), member.connection)).collect()
    }

    pub(super) fn next_reference(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn connected(&self) -> Vec<ConnectedSession> {
        self.sessions.values().map(|member| member.about.clone()).collect()
    }

    pub(super) fn session(&self, id: &str) -> Option<ConnectedSession> {
        self.sessions.get(id).map(|member| member.about.clone())
    }

    pub(super) fn pending_of(&self, id: &str) -> u64 {
        let connected = self.sessions.get(id).map(|member| member.about.pending);
        connected.or_else(|| self.sub_agent_requests.get(id).copied()).unwrap_or_default()
    }

    pub(super) fn is_idle(&self, id: &str) -> Option<bool> {
        self.sessions.get(id).map(|member| member.is_idle)
    }

    pub(super) fn pending(&self) -> Vec<Arc<OpenApproval>> {
        self.approvals.in_order().cloned().collect()
    }

    pub(super) fn approval(&self, id: &ApprovalId) -> Option<Arc<OpenApproval>> {
        self.approvals.open(id).cloned()
    }

    pub(super) fn decision(&self, id: &ApprovalId) -> Option<DecidedApproval> {
        self.approvals.closed(id).map(|closed| closed.decided.clone())
    }

    pub(super) fn rules(&self) -> Vec<ListedRule> {
        self.sessions.values().flat_map(|member| member.rules.clone()).collect()
    }

    pub(super) fn hooks_of(&self, session: &str) -> Option<Vec<Value>> {
        self.sessions.get(session).map(|member| member.hooks.clone())
    }

    pub(super) fn flood(&mut self, now: Timestamp) -> Option<ApprovalFlood> {
        self.rate.flood(now)
    }

    /// Returns a change of the flood report since the last one.
    pub(super) fn flood_change(&mut self, now: Timestamp) -> Option<HubEvent> {
        let busy = self.rate.flood(now);
        let is_news = match (&self.last_flood, &busy) {
            (None, None) => false,
            // The number changes with each request; only doubling or halving is reported.
            (Some(old), Some(new)) => {
                let is_same = (&old.hook, &old.pattern) == (&new.hook, &new.pattern);
                !is_same || new.asked >= 2 * old.asked || 2 * new.asked <= old.asked
            }
            _ => true,
        };
        if !is_news {
            return None;
        }
        self.last_flood.clone_from(&busy);
        Some(HubEvent::ApprovalFlood(busy))
    }

    fn member(&mut self, connection: u64) -> Option<&mut Member<L>> {
        self.sessions.get_mut(self.connections.get(&connection)?)
    }
}

/// Returns the project rule that an answer creates.
fn project_rule(asked: &OpenApproval, submitted: &SubmittedAnswer) -> Result<ApprovalRule, &'static str> {
    // A `*` in the prompt would stand for any text in the rule, and a colon in the name would end it.
    if asked.prompt.contains('*') || asked.hook.contains([':', '*']) {
        return Err("a rule would match more than this request");
    }
    let chosen = asked.options.iter().find(|option| option.label == submitted.answer.label);
    let allows = chosen.is_some_and(|option| option.effect.allows());
    let decision = if allows { DefaultDecision::Allow } else { DefaultDecision::Deny };
    let rule = ApprovalRule::new(asked.hook.as_str(), asked.prompt.as_str(), decision);
    let (scope, project) = (RuleScope::Project, Some(asked.workspace.clone()));
    Ok(ApprovalRule { scope, project, by: submitted.answer.by.clone(), ..rule })
}
