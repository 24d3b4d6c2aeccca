//! The last calls of guarded agents, from the end of the audit log.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use amplifier_audit::{AuditError, Folder, Kind, Record, read_lines_backwards};
use amplifier_core::TOOL_PRE;
use amplifier_guard::{CANARY_HOOK, CANARY_SESSION, Client};
use serde::{Deserialize, Serialize};

/// The times of the last calls of a client.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LastCalls {
    pub(super) last_call: Option<String>,
    pub(super) last_canary: Option<String>,
}

/// Returns the last calls of these clients. Reads no more of the log than needed.
///
/// # Errors
/// If the log cannot be read.
pub(super) fn find(clients: &[Client], log: &Path) -> Result<BTreeMap<Client, LastCalls>, AuditError> {
    let missing = clients.iter().map(|client| (*client, LastCalls::default()));
    let mut search = CallSearch { found: missing.collect(), open: HashMap::new(), known: HashSet::new() };
    read_lines_backwards(&Folder::new(log), |line| {
        let has_calls = search.has_calls();
        if has_calls && search.has_canaries() {
            return Ok(ControlFlow::Break(()));
        }
        // To parse a line takes far longer than to search it.
        if !has_calls || is_of_canary(line) {
            search.add(&Record::parse(line)?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(search.found)
}

fn is_of_canary(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.contains(CANARY_SESSION))
}

/// A search from the end of the log on.
struct CallSearch {
    found: BTreeMap<Client, LastCalls>,
    /// The times of the last events of sessions whose client is unknown so far.
    open: HashMap<String, String>,
    /// The sessions whose client is known.
    known: HashSet<String>,
}

impl CallSearch {
    /// Returns `true` if no earlier record can change the last calls.
    fn has_calls(&self) -> bool {
        let is_last = |calls: &LastCalls| {
            calls.last_call.as_ref().is_some_and(|found| self.open.values().all(|time| time <= found))
        };
        self.found.values().all(is_last)
    }

    fn has_canaries(&self) -> bool {
        self.found.values().all(|calls| calls.last_canary.is_some())
    }

    fn add(&mut self, record: &Record<'_>) {
        let Some(session) = record.session.as_deref().filter(|_| record.kind == Kind::Event) else { return };
        if session.starts_with(CANARY_SESSION) {
            if let Some(EventClient::Guarded(client)) = event_client(record)
                && record.body.get().contains(CANARY_HOOK)
                && let Some(calls) = self.found.get_mut(&client)
            {
                calls.last_canary.get_or_insert_with(|| record.time.to_string());
            }
            return;
        }
        if self.known.contains(session) {
            return;
        }
        let last = self.open.entry(session.to_owned()).or_insert_with(|| record.time.to_string());
        let Some(client) = event_client(record) else { return };
        if let EventClient::Guarded(client) = client
            && let Some(LastCalls { last_call, .. }) = self.found.get_mut(&client)
            // All times have the same format, so text order is time order.
            && last_call.as_ref().is_none_or(|known| *last > *known)
        {
            *last_call = Some(last.clone());
        }
        self.open.remove(session);
        self.known.insert(session.to_owned());
    }
}

/// The client of a session, as one of its events tells it.
enum EventClient {
    Guarded(Client),
    /// The session is one of our own agent.
    Own,
}

/// Returns the client of an event; none if the event does not tell it.
fn event_client(record: &Record<'_>) -> Option<EventClient> {
    #[derive(Deserialize)]
    struct Body {
        data: Fields,
    }
    #[derive(Deserialize)]
    struct Fields {
        client: Option<String>,
        mount_plan: Option<MountPlan>,
    }
    #[derive(Deserialize)]
    struct MountPlan {
        client: Option<ClientName>,
    }
    #[derive(Deserialize)]
    struct ClientName {
        name: String,
    }
    let Body { data } = serde_json::from_str(record.body.get()).ok()?;
    let is_told = data.mount_plan.is_some() || record.event.as_deref() == Some(TOOL_PRE.name().as_str());
    let name = data.client.or_else(|| Some(data.mount_plan?.client?.name));
    match name.map(|name| name.parse()) {
        Some(client) => Some(client.map_or(EventClient::Own, EventClient::Guarded)),
        None => is_told.then_some(EventClient::Own),
    }
}
