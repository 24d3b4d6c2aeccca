//! The work of a server for the centre: it shows the requests of all machines, and collects their records.

use amplifier_fleet::enrol::FleetRole;
use amplifier_fleet::records::{Collector, CollectorOptions};
use amplifier_fleet::{Console, ServerBridge};
use amplifier_host::{Config, Home, Membership};
use amplifier_server::Hub;
use anyhow::Result;

use crate::errors::usage;

/// The work of this server for the centre. Dropping it ends the work.
pub(crate) struct CentreWork {
    _bridge: Option<ServerBridge>,
    _collector: Option<Collector>,
}

impl CentreWork {
    /// Starts the work that the roles of this identity permit.
    ///
    /// # Errors
    /// If this machine has no such identity, the centre fails, or the folder of mirrors cannot be written.
    pub(crate) async fn start(config: &Config, home: &Home, hub: &Hub) -> Result<Self> {
        let fleet = Membership::find(config, home)?;
        let fleet = fleet.ok_or_else(|| usage("`--fleet` needs an identity; run `amplifier fleet join`"))?;
        let member = fleet.member();
        let has = |role| member.roles().contains(&role);
        if !has(FleetRole::Console) && !has(FleetRole::Collector) {
            return Err(usage(format!(
                "the identity `{}` is neither a console nor a collector; create one with \
                 `amplifier fleet add NAME --role console --role collector`",
                member.name()
            )));
        }
        let connection = fleet.connect().await?;
        let key = member.signing_key()?;
        let bridge = has(FleetRole::Console)
            .then(|| ServerBridge::start(Console::start(connection.clone(), key.clone()), hub.remote_pipes()));
        let collector = match has(FleetRole::Collector) {
            true => {
                let options = CollectorOptions::new(member.name().clone(), key, home.mirror_folder());
                Some(Collector::start(connection, options).await?)
            }
            false => None,
        };
        Ok(Self { _bridge: bridge, _collector: collector })
    }
}
