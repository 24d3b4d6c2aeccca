//! The check of the fleet in `amplifier doctor`.

use std::time::Duration;

use amplifier_fleet::subjects;
use amplifier_host::{Config, Home, Membership, reasons};

/// The time in which a server must answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Describes the membership, the connection and the policy. An unreachable centre is a problem, but sessions work without it.
pub(crate) fn check(config: &Config, home: &Home) -> Result<String, String> {
    let Some(fleet) = Membership::find(config, home).map_err(|error| reasons(&error))? else {
        return Ok("none; this machine has not joined one".to_owned());
    };
    let policy = match fleet.policy().load() {
        Ok(Some(active)) => format!("policy version {}", active.pointer.version),
        Ok(None) => "no policy yet".to_owned(),
        Err(error) => return Err(error.to_string()),
    };
    let (name, servers) = (fleet.member().name(), fleet.member().servers().join(","));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let state = runtime.block_on(async {
        let connection = tokio::time::timeout(LIMIT, fleet.connect()).await;
        let connection = connection.map_err(|_| format!("no server answered within {LIMIT:?}"))?;
        let connection = connection.map_err(|error| reasons(&error))?;
        let pointer = subjects::pointer(fleet.member().group());
        connection.last_message(subjects::POLICY, &pointer).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(connection.client().server_info().version)
    });
    match state {
        Ok(version) => Ok(format!("{name} at {servers} (server {version}), {policy}")),
        Err(why) => Err(format!("{name}, {policy}; the centre `{servers}` fails: {why}")),
    }
}
