//! Who is connected and what is asked, without I/O.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use amplifier_core::{ApprovalDecision, ApprovalRule, DecisionBasis, RuleScope};
use jiff::Timestamp;
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::busy::Flood;
use super::{Answering, Change, Connected, Refused};
use crate::wire::{Approval, Busy, Decided, Place, Rule, question_id};
use amplifier_link::{Hello, Reception, is_id};

/// How many closed questions are remembered, so that who answers them learns what became of them.
const REMEMBERED: usize = 10_000;
/// How much room they take together.
const REMEMBERED_BYTES: usize = 32 << 20;
/// How much room the open questions of one session take, and those of all. Beyond that, they are kept without what will run; and beyond
/// the last limit, not at all.
const ROOM: usize = 8 << 20;
const ROOM_OF_ALL: usize = 256 << 20;
const ROOM_AT_MOST: usize = 320 << 20;
/// One that is smaller would not become much smaller by that.
const SMALL: usize = 2 << 10;
/// How many questions of one session can be open.
const OPEN: usize = 20_000;

/// Who is connected and what is asked. `L` is the way to a session.
pub(super) struct State<L> {
    sessions: BTreeMap<String, Member<L>>,
    /// The session of each connection.
    connections: HashMap<u64, String>,
    /// Open questions by their ids.
    open: HashMap<String, Arc<Approval>>,
    /// Their order: the oldest first.
    order: BTreeMap<(Timestamp, u64), String>,
    places: HashMap<String, (Timestamp, u64)>,
    /// Those that are closed, and the nonces that they had.
    closed: HashMap<String, Closed>,
    /// The order in which they are forgotten.
    forgotten_next: BTreeMap<u64, String>,
    /// How many questions of each sub-agent are open.
    of_sub_agents: HashMap<String, u64>,
    /// How much room those take that are open, and those that are closed.
    open_bytes: usize,
    closed_bytes: usize,
    flood: Flood,
    /// What was last told about too many questions.
    busy: Option<Busy>,
    next: u64,
}

struct Member<L> {
    connection: u64,
    process: Process,
    /// How much room its open questions take.
    bytes: usize,
    about: Connected,
    link: L,
    is_idle: bool,
    rules: Vec<Rule>,
    hooks: Vec<Value>,
}

/// Who asks: a process, and the run of the session in it. Only that one is told an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    peer: Option<i32>,
    run: String,
}

struct Closed {
    /// The question, without what would have run.
    asked: Approval,
    process: Process,
    decided: Decided,
    /// Its place in the order in which they are forgotten.
    place: u64,
}

/// The question that a session speaks of.
pub(super) struct Spoken {
    /// Its number in the run, whoever of it asks.
    pub(super) number: u64,
    /// The sub-agent that asked, if it was one.
    pub(super) session: Option<String>,
}

/// An answer that the session is to be told of.
pub(super) struct Delivery<L> {
    pub(super) link: L,
    /// Where what becomes of it is heard.
    pub(super) connection: u64,
    pub(super) session: String,
    /// The number of the question in the run.
    pub(super) number: u64,
    /// The digest of what it is about.
    pub(super) digest: String,
    /// What tells this answer from others.
    pub(super) reference: u64,
    /// What is known already, if the question is closed.
    pub(super) decided: Option<Decided>,
}

impl Closed {
    /// How much room it takes, about.
    fn weight(&self) -> usize {
        // The question stands in both.
        self.asked.weight() + self.decided.prompt.len()
    }
}

impl<L> Default for State<L> {
    fn default() -> Self {
        Self {
            sessions: BTreeMap::new(),
            connections: HashMap::new(),
            open: HashMap::new(),
            order: BTreeMap::new(),
            places: HashMap::new(),
            closed: HashMap::new(),
            forgotten_next: BTreeMap::new(),
            of_sub_agents: HashMap::new(),
            open_bytes: 0,
            closed_bytes: 0,
            flood: Flood::default(),
            busy: None,
            next: 0,
        }
    }
}

impl<L: Clone> State<L> {
    /// A session connects. The number of its connection is given back.
    ///
    /// A session that is connected already is taken over by its own process only: another one cannot pass for it.
    pub(super) fn join(
        &mut self,
        hello: Hello,
        place: Place,
        peer: Option<i32>,
        link: L,
        now: Timestamp,
    ) -> Result<(u64, Vec<Change>), String> {
        let mut changes = Vec::new();
        if let Some(known) = self.sessions.get(&hello.session) {
            if known.process.peer != peer {
                return Err(format!("the session `{}` is connected already, from another process", hello.session));
            }
            changes = self.leave(known.connection, now);
        }
        self.next += 1;
        let Hello { session, run, name, pid, workspace, takes_prompts, idle, begun_at, .. } = hello;
        let about =
            Connected { session: session.clone(), name, pid, workspace, place, takes_prompts, begun_at, pending: 0 };
        let connection = self.next;
        self.connections.insert(connection, session.clone());
        let (rules, hooks) = (Vec::new(), Vec::new());
        let process = Process { peer, run };
        self.sessions.insert(
            session.clone(),
            Member { connection, process, bytes: 0, about, link, is_idle: idle, rules, hooks },
        );
        changes.push(Change::Session(session));
        Ok((connection, changes))
    }

    /// A connection is gone: nobody can answer the questions of that session here until it comes back.
    pub(super) fn leave(&mut self, connection: u64, now: Timestamp) -> Vec<Change> {
        let Some(session) = self.connections.remove(&connection) else { return Vec::new() };
        let of_it: Vec<String> =
            self.open.iter().filter(|(_, asked)| asked.connected() == session).map(|(id, _)| id.clone()).collect();
        let Some(member) = self.sessions.remove(&session) else { return Vec::new() };
        let had_rules = !member.rules.is_empty();
        let mut changes = Vec::new();
        for id in of_it {
            let reason = "the session is no longer connected, so it cannot be answered here";
            let outcome = ApprovalDecision::new(false, DecisionBasis::Disconnected, reason);
            let (closed, asker) = self.close(&id, member.process.clone(), outcome, now).unzip();
            changes.extend(closed);
            changes.extend(asker.filter(|asker| *asker != session).map(Change::Session));
        }
        changes.push(Change::Session(session));
        changes.extend(had_rules.then_some(Change::Rules));
        changes
    }

    /// A session asks, or a sub-agent of it. Its number stands in the id; the nonce is new.
    ///
    /// An id never stands for something else: what is announced again has to be what was asked, by the process that asked it.
    pub(super) fn asked(&mut self, connection: u64, approval: Approval, nonce: String, now: Timestamp) -> Vec<Change> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        if member.about.pending >= OPEN as u64 {
            return Vec::new();
        }
        let (connected, process) = (member.about.session.clone(), member.process.clone());
        let Ok(number) = approval.id.parse() else { return Vec::new() };
        // Sub-agents ask over the connection of the session that delegated to them. One that has its own is none of them.
        let is_sub_agent = is_id(&approval.session) && !self.sessions.contains_key(&approval.session);
        let (session, within) =
            if is_sub_agent { (approval.session, Some(connected.clone())) } else { (connected.clone(), None) };
        let id = question_id(&session, &process.run, number);
        if self.open.contains_key(&id) {
            return Vec::new();
        }
        let approval = Approval { id: id.clone(), session: session.clone(), within, nonce, ..approval };
        if let Some(closed) = self.closed.get(&id) {
            // It may be open again if it was closed because the connection broke.
            let asked = &closed.asked;
            let is_same = asked.is_same_as(&approval) || asked.is_same_as(&approval.withheld());
            let is_same = is_same && closed.process == process;
            if !is_same || closed.decided.basis != DecisionBasis::Disconnected {
                tracing::warn!(session.id = session, "a question is announced that was closed, or was another one");
                return Vec::new();
            }
            self.forget(&id);
        }
        let taken = self.member(connection).map_or(0, |member| member.bytes);
        let weight = approval.weight();
        let has_room = weight <= SMALL || taken + weight <= ROOM && self.open_bytes + weight <= ROOM_OF_ALL;
        let approval = Arc::new(if has_room { approval } else { approval.withheld() });
        let weight = approval.weight();
        if self.open_bytes + weight > ROOM_AT_MOST {
            tracing::warn!(session.id = session, "a question is not announced: too much is open");
            return Vec::new();
        }
        self.open_bytes += weight;
        if let Some(member) = self.member(connection) {
            member.about.pending += 1;
            member.bytes += weight;
        }
        self.next += 1;
        let place = (approval.asked_at, self.next);
        self.order.insert(place, id.clone());
        self.places.insert(id.clone(), place);
        self.open.insert(id, approval.clone());
        self.flood.count(&approval, now);
        let mut changes = vec![Change::Asked(approval), Change::Session(connected)];
        if is_sub_agent {
            *self.of_sub_agents.entry(session.clone()).or_default() += 1;
            changes.push(Change::Session(session));
        }
        changes.extend(self.told_busy(now));
        changes
    }

    /// A question of a session is no longer open.
    pub(super) fn closed(
        &mut self,
        connection: u64,
        spoken: &Spoken,
        outcome: ApprovalDecision,
        now: Timestamp,
    ) -> Vec<Change> {
        let Some(id) = self.meant(connection, spoken) else { return Vec::new() };
        let Some(member) = self.member(connection) else { return Vec::new() };
        let (connected, process) = (member.about.session.clone(), member.process.clone());
        let Some((closed, asker)) = self.close(&id, process, outcome, now) else { return Vec::new() };
        if let Some(member) = self.member(connection) {
            member.about.pending = member.about.pending.saturating_sub(1);
        }
        let is_sub_agent = asker != connected;
        let mut changes = vec![closed, Change::Session(connected)];
        changes.extend(is_sub_agent.then_some(Change::Session(asker)));
        changes
    }

    /// The id of a question that a session speaks of, if it is one that came over its connection.
    fn meant(&self, connection: u64, Spoken { number, session }: &Spoken) -> Option<String> {
        let connected = self.connections.get(&connection)?;
        let run = &self.sessions.get(connected)?.process.run;
        let is_its_own = |id: &String| {
            let asked = self.open.get(id).map(|asked| &**asked);
            let asked = asked.or_else(|| self.closed.get(id).map(|closed| &closed.asked));
            asked.is_some_and(|asked| asked.connected() == connected)
        };
        // A sub-agent that had a connection of its own when it asked was not taken for one.
        let askers = session.iter().chain([connected]);
        askers.map(|asker| question_id(asker, run, *number)).find(is_its_own)
    }

    /// Closes a question; says whose it was.
    fn close(
        &mut self,
        id: &str,
        process: Process,
        outcome: ApprovalDecision,
        now: Timestamp,
    ) -> Option<(Change, String)> {
        let asked = self.open.remove(id)?;
        let weight = asked.weight();
        self.open_bytes = self.open_bytes.saturating_sub(weight);
        if let Some(member) = self.sessions.get_mut(asked.connected()) {
            member.bytes = member.bytes.saturating_sub(weight);
        }
        if asked.within.is_some()
            && let Entry::Occupied(mut open) = self.of_sub_agents.entry(asked.session.clone())
        {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
        if let Some(place) = self.places.remove(id) {
            self.order.remove(&place);
        }
        let ApprovalDecision { granted, basis, reason, by, .. } = outcome;
        let decided = Decided {
            id: Some(id.to_owned()),
            session: asked.session.clone(),
            hook: asked.hook.clone(),
            event: asked.event.clone(),
            prompt: asked.prompt.clone(),
            granted,
            basis,
            reason,
            by,
            asked_at: Some(asked.asked_at.to_string()),
            decided_at: now.to_string(),
            seq: 0,
        };
        self.next += 1;
        let closed = Closed { asked: asked.without_action(), process, decided: decided.clone(), place: self.next };
        self.closed_bytes += closed.weight();
        self.closed.insert(id.to_owned(), closed);
        self.forgotten_next.insert(self.next, id.to_owned());
        while self.closed.len() > REMEMBERED || self.closed_bytes > REMEMBERED_BYTES {
            let Some(oldest) = self.forgotten_next.first_key_value().map(|(_, id)| id.clone()) else { break };
            self.forget(&oldest);
        }
        let within = asked.within.clone();
        Some((Change::Closed { id: id.to_owned(), decided, within }, asked.session.clone()))
    }

    /// Forgets a closed question.
    fn forget(&mut self, id: &str) {
        if let Some(closed) = self.closed.remove(id) {
            self.forgotten_next.remove(&closed.place);
            self.closed_bytes = self.closed_bytes.saturating_sub(closed.weight());
        }
    }

    /// Checks an answer, and says whom to tell of it: the process that asked, and no other. An answer to a question that is closed is told as
    /// well if that process is still there: it is recorded where the question was.
    pub(super) fn answer(&mut self, id: &str, answering: &Answering) -> Result<Delivery<L>, Refused> {
        let (asked, closed) = match (self.open.get(id), self.closed.get(id)) {
            (Some(asked), _) => (&**asked, None),
            (None, Some(closed)) => (&closed.asked, Some(closed)),
            (None, None) => return Err(Refused::unknown(id).unheard()),
        };
        if !bool::from(asked.nonce.as_bytes().ct_eq(answering.nonce.as_bytes())) {
            return Err(Refused::new(
                "nonce",
                "the nonce is not the one of this question; look at the question again and answer what you see",
            ));
        }
        if let Some(why) = asked.refuses(&answering.option, answering.scope) {
            return Err(Refused::new("not_offered", why));
        }
        let (session, digest) = (asked.connected().to_owned(), asked.digest.clone());
        let decided = closed.map(|closed| closed.decided.clone());
        let member = self.sessions.get(&session);
        // What is open was asked by whoever is connected.
        let Some(member) = member.filter(|member| closed.is_none_or(|closed| closed.process == member.process)) else {
            let refused = match decided {
                Some(decided) if member.is_none() || decided.basis != DecisionBasis::Disconnected => {
                    Refused::over(&decided)
                }
                Some(_) => Refused::replaced(&session),
                None => Refused::gone(&session),
            };
            return Err(refused.unheard());
        };
        let number = id.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
        let Some(number) = number else { return Err(Refused::unknown(id)) };
        self.next += 1;
        let (link, connection) = (member.link.clone(), member.connection);
        Ok(Delivery { link, connection, session, number, digest, reference: self.next, decided })
    }

    /// What becomes of an answer by what the session says to it. What became of the question is taken over at once, so that whoever looks
    /// next sees it.
    pub(super) fn answered(
        &mut self,
        connection: u64,
        spoken: &Spoken,
        result: Reception,
        outcome: Option<ApprovalDecision>,
        now: Timestamp,
    ) -> (Result<Decided, Refused>, Vec<Change>) {
        if self.member(connection).is_none() {
            return (Err(Refused::gone("")), Vec::new());
        }
        let id = self.meant(connection, spoken);
        // What a session does not know any more, it does not record.
        let is_unheard = result == Reception::Closed && outcome.is_none();
        let changes = outcome.map(|outcome| self.closed(connection, spoken, outcome, now)).unwrap_or_default();
        let decided = id.and_then(|id| self.closed.get(&id)).map(|closed| &closed.decided);
        let by = decided.and_then(|decided| decided.by.clone());
        let answer = match (result, decided) {
            (Reception::Taken, Some(decided)) => Ok(decided.clone()),
            (Reception::Late, _) => Err(Refused::late()),
            (Reception::Answered, _) => Err(Refused::faster(by)),
            (Reception::NotOffered, _) => Err(Refused::new("not_offered", "it is none of the options")),
            (Reception::Closed, Some(decided)) => Err(Refused::over(decided)),
            (Reception::Closed | Reception::Taken, None) => {
                Err(Refused::new("closed", "the question is no longer open"))
            }
        };
        let answer = answer.map_err(|refused| Refused { unheard: is_unheard, ..refused });
        (answer, changes)
    }

    /// A session says which standing answers it has.
    pub(super) fn set_rules(&mut self, connection: u64, rules: Vec<ApprovalRule>) -> Vec<Change> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        let session = member.about.session.clone();
        // Whatever it says, these are the rules of that session.
        let rules = rules.into_iter().map(|rule| {
            Rule::from(ApprovalRule {
                scope: RuleScope::Session,
                session: Some(session.clone()),
                project: None,
                ..rule
            })
        });
        let rules: Vec<Rule> = rules.collect();
        if member.rules == rules {
            return Vec::new();
        }
        member.rules = rules;
        vec![Change::Rules]
    }

    /// A session says which hooks it has.
    pub(super) fn set_hooks(&mut self, connection: u64, hooks: Vec<Value>) -> Vec<Change> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        member.hooks = hooks;
        vec![Change::Session(member.about.session.clone())]
    }

    /// A session says whether it waits for a prompt.
    pub(super) fn set_idle(&mut self, connection: u64, is_idle: bool) -> Vec<Change> {
        let Some(member) = self.member(connection) else { return Vec::new() };
        member.is_idle = is_idle;
        vec![Change::Session(member.about.session.clone())]
    }

    /// The way to a session that can be told something, and its connection. A prompt counts as begun at once, so that two cannot be sent.
    pub(super) fn reach(&mut self, session: &str, is_prompt: bool) -> Result<(L, u64), Refused> {
        let Some(member) = self.sessions.get_mut(session) else { return Err(Refused::gone(session)) };
        if is_prompt && !member.about.takes_prompts {
            return Err(Refused::new("not_offered", "this session takes no prompts from here"));
        }
        if is_prompt && !std::mem::take(&mut member.is_idle) {
            return Err(Refused::new(
                "busy",
                "the session is in the middle of a turn; wait for its end, or interrupt it",
            ));
        }
        Ok((member.link.clone(), member.connection))
    }

    /// All sessions, with the way to each and its connection.
    pub(super) fn everyone(&self) -> Vec<(String, L, u64)> {
        let all = self.sessions.iter();
        all.map(|(session, member)| (session.clone(), member.link.clone(), member.connection)).collect()
    }

    pub(super) fn next_reference(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn connected(&self) -> Vec<Connected> {
        self.sessions.values().map(|member| member.about.clone()).collect()
    }

    pub(super) fn session(&self, id: &str) -> Option<Connected> {
        self.sessions.get(id).map(|member| member.about.clone())
    }

    pub(super) fn pending_of(&self, id: &str) -> u64 {
        let connected = self.sessions.get(id).map(|member| member.about.pending);
        connected.or_else(|| self.of_sub_agents.get(id).copied()).unwrap_or_default()
    }

    pub(super) fn is_idle(&self, id: &str) -> Option<bool> {
        self.sessions.get(id).map(|member| member.is_idle)
    }

    pub(super) fn pending(&self) -> Vec<Arc<Approval>> {
        self.order.values().filter_map(|id| self.open.get(id).cloned()).collect()
    }

    pub(super) fn approval(&self, id: &str) -> Option<Arc<Approval>> {
        self.open.get(id).cloned()
    }

    pub(super) fn decided(&self, id: &str) -> Option<Decided> {
        self.closed.get(id).map(|closed| closed.decided.clone())
    }

    pub(super) fn rules(&self) -> Vec<Rule> {
        self.sessions.values().flat_map(|member| member.rules.clone()).collect()
    }

    pub(super) fn hooks_of(&self, session: &str) -> Option<Vec<Value>> {
        self.sessions.get(session).map(|member| member.hooks.clone())
    }

    pub(super) fn busy(&mut self, now: Timestamp) -> Option<Busy> {
        self.flood.busy(now)
    }

    /// What has changed about too many questions since it was last told.
    pub(super) fn told_busy(&mut self, now: Timestamp) -> Option<Change> {
        let busy = self.flood.busy(now);
        let is_news = match (&self.busy, &busy) {
            (None, None) => false,
            // With each question the number changes; it is told when that means something.
            (Some(old), Some(new)) => {
                let is_same = (&old.hook, &old.pattern) == (&new.hook, &new.pattern);
                !is_same || new.asked >= 2 * old.asked || 2 * new.asked <= old.asked
            }
            _ => true,
        };
        if !is_news {
            return None;
        }
        self.busy.clone_from(&busy);
        Some(Change::Busy(busy))
    }

    fn member(&mut self, connection: u64) -> Option<&mut Member<L>> {
        self.sessions.get_mut(self.connections.get(&connection)?)
    }
}
