//! A program without the feature `fleet`. On a machine that belongs to a fleet, its sessions would lack the policy of the organisation.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_modules::bundle::{BundleError, LoadedBundle};
use amplifier_modules::transport::RemoteHooks;

use crate::approval_systems::DenyAllApprovals;
use crate::config::Config;
use crate::error::{Result, usage};
use crate::home::Home;
use crate::notices::Notices;

const REBUILD: &str = "this program was built without the feature `fleet`; install it with `--features fleet`";

/// Fails if this machine belongs to a fleet.
pub(crate) fn load_fleet_bundle(home: &Home) -> Result<Option<LoadedBundle>, BundleError> {
    let system = Some(home.system_fleet_folder()).filter(|_| cfg!(unix));
    for folder in system.into_iter().chain([home.fleet_folder()]) {
        match folder.join("member.json").symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            _ => return Err(BundleError::whole(&folder, format!("this machine belongs to a fleet, but {REBUILD}"))),
        }
    }
    Ok(None)
}

pub(crate) fn fleet_bundle_file(_home: &Home) -> Option<PathBuf> {
    None
}

pub(crate) fn unconnected_hooks() -> Option<Arc<dyn RemoteHooks>> {
    None
}

/// The work for no fleet.
#[derive(Debug)]
pub(crate) enum FleetWork {}

impl FleetWork {
    /// Fails if the configuration names a centre.
    pub(crate) fn start(config: &Config, _home: &Home, _run: &str, _notices: &Notices) -> Result<Option<Self>> {
        match &config.fleet {
            Some(_) => Err(usage(format!("`fleet` is set, but {REBUILD}"))),
            None => Ok(None),
        }
    }

    pub(crate) fn asker(&self) -> FleetAsker {
        match *self {}
    }

    pub(crate) fn hooks(&self) -> Arc<dyn RemoteHooks> {
        match *self {}
    }

    pub(crate) async fn close(self, _notices: &Notices) {
        match self {}
    }
}

/// The approval system of no consoles.
pub(crate) type FleetAsker = DenyAllApprovals;
