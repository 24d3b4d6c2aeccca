//! What became of sessions and of their operations, while records go by.

use std::collections::HashMap;

use serde::Deserialize;

use crate::record::{Kind, Record};
use crate::report::{InDoubt, Problem};

/// Sessions and operations of the records so far.
#[derive(Default)]
pub(crate) struct Sessions {
    sessions: HashMap<Box<str>, Session>,
    /// Intents without an outcome so far.
    open: HashMap<Operation, Vec<InDoubt>>,
}

#[derive(Default)]
struct Session {
    is_sealed: bool,
    /// Records since the last seal, by writer.
    unsealed: HashMap<Box<str>, u64>,
}

/// What pairs an intent with its outcome.
#[derive(PartialEq, Eq, Hash)]
struct Operation {
    session: Box<str>,
    family: &'static str,
    call: Box<str>,
}

/// What became of them.
pub(crate) struct Seen {
    pub(crate) sealed: u64,
    pub(crate) unsealed: Vec<String>,
    pub(crate) in_doubt: Vec<InDoubt>,
}

impl Sessions {
    /// Takes a record into account. `may_lack` says whether a seal may count records that are not there.
    pub(crate) fn see(&mut self, record: &Record<'_>, may_lack: bool) -> Result<(), (Problem, String)> {
        if matches!(record.kind, Kind::Intent | Kind::Outcome) {
            self.operation(record);
        }
        let Some(name) = record.session.as_deref() else { return Ok(()) };
        // Looked up before it is made, because it is nearly always there.
        if !self.sessions.contains_key(name) {
            self.sessions.insert(name.into(), Session::default());
        }
        let Some(session) = self.sessions.get_mut(name) else { return Ok(()) };
        session.is_sealed = record.kind == Kind::Seal;
        if record.kind != Kind::Seal {
            match session.unsealed.get_mut(&*record.writer) {
                Some(count) => *count += 1,
                None => _ = session.unsealed.insert((&*record.writer).into(), 1),
            }
            return Ok(());
        }
        #[derive(Deserialize)]
        struct Seal {
            records: u64,
        }
        let found = session.unsealed.remove(&*record.writer).unwrap_or(0);
        let Seal { records } = record.body().map_err(|error| (Problem::Unreadable, error.to_string()))?;
        if records == found || (records > found && may_lack) {
            return Ok(());
        }
        Err((
            Problem::Seal,
            format!("the seal of session `{name}` counts {records} records of its writer, there are {found}"),
        ))
    }

    fn operation(&mut self, record: &Record<'_>) {
        #[derive(Deserialize)]
        struct Body {
            tool_call_id: Option<String>,
        }
        let event = record.event.as_deref().unwrap_or_default();
        let family = match event.split_once(':').map_or("", |(family, _)| family) {
            "tool" => "tool",
            "provider" => "provider",
            _ if event == "error:provider" => "provider",
            "agent" => "agent",
            _ => "operation",
        };
        let call = record.body::<Body>().ok().and_then(|body| body.tool_call_id);
        let operation = Operation {
            session: record.session.as_deref().unwrap_or_default().into(),
            family,
            call: call.as_deref().unwrap_or_default().into(),
        };
        if record.kind == Kind::Intent {
            self.open.entry(operation).or_default().push(InDoubt {
                seq: record.seq,
                time: record.time.to_string(),
                session: record.session.as_deref().map(str::to_owned),
                event: record.event.as_deref().map(str::to_owned),
                tool_call_id: call,
            });
        } else if let Some(open) = self.open.get_mut(&operation) {
            open.pop();
            if open.is_empty() {
                self.open.remove(&operation);
            }
        }
    }

    pub(crate) fn finish(self) -> Seen {
        let (sealed, unsealed): (Vec<_>, Vec<_>) =
            self.sessions.into_iter().partition(|(_, session)| session.is_sealed);
        let mut unsealed: Vec<String> = unsealed.into_iter().map(|(name, _)| name.into()).collect();
        unsealed.sort_unstable();
        let mut in_doubt: Vec<InDoubt> = self.open.into_values().flatten().collect();
        in_doubt.sort_unstable_by_key(|one| one.seq);
        Seen { sealed: sealed.len() as u64, unsealed, in_doubt }
    }
}
