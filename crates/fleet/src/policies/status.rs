//! The policy that each machine runs, or its reason to refuse one.

use std::collections::BTreeMap;

use amplifier_audit::Hash;
use async_nats::HeaderMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PolicyError;
use crate::{Connection, FleetName, subjects};

/// The state of a machine, as it reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineStatus {
    /// The group.
    pub group: FleetName,
    /// The version of the active policy.
    pub version: Option<u64>,
    /// The hash of its bundle.
    pub bundle: Option<Hash>,
    /// The time since which it is active.
    pub since: Option<Timestamp>,
    /// The reason why a newer policy is refused.
    pub refused: Option<String>,
    /// The version of this program.
    pub amplifier: String,
    /// The time of this report.
    pub seen: Timestamp,
}

impl MachineStatus {
    /// Reports the state of the connection's machine.
    ///
    /// # Errors
    /// If the centre fails.
    pub(super) async fn report(&self, connection: &Connection) -> Result<(), PolicyError> {
        let text = serde_json::to_vec(self).map_err(PolicyError::malformed)?;
        connection.publish(&subjects::status(connection.name()), HeaderMap::new(), text.into()).await?;
        Ok(())
    }
}

/// Returns the last reports of all machines.
///
/// # Errors
/// If the centre fails, or a report is malformed.
pub async fn machine_statuses(connection: &Connection) -> Result<BTreeMap<FleetName, MachineStatus>, PolicyError> {
    let prefix = "$KV.status.machine.";
    let messages = connection.messages(subjects::STATUS, &format!("{prefix}>")).await?;
    let mut all = BTreeMap::new();
    for message in messages {
        let name = message.subject.strip_prefix(prefix).unwrap_or_default();
        let name = name.parse().map_err(PolicyError::malformed)?;
        all.insert(name, serde_json::from_slice(&message.payload).map_err(PolicyError::malformed)?);
    }
    Ok(all)
}
