//! The fleet that this machine belongs to: its policy, and the work for it while a session runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{HookRegistry, Level};
use amplifier_fleet::enrol::{MEMBER, Member};
use amplifier_fleet::policies::{PolicyCache, PolicyChange, PolicyFollower};
use amplifier_fleet::records::ShipperOptions;
use amplifier_fleet::{Connection, ConsoleKeys, FleetApprovalsOptions};
use amplifier_modules::bundle::{BundleError, BundleScope, BundleStack, LoadedBundle, load};
use amplifier_modules::transport::RemoteHooks;
use amplifier_process::files::changeable_part;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bundles::register_for_listing;
use crate::config::Config;
use crate::error::{ErrorContext, Result, bail, reasons, usage};
pub(crate) use crate::fleet_services::{FleetAsker, unconnected_hooks};
use crate::fleet_services::{FleetServices, console_keys};
use crate::home::Home;
use crate::notices::Notices;

/// The pause between attempts to connect.
const PAUSE: Duration = Duration::from_secs(10);

/// The membership of this machine in a fleet.
#[derive(Clone, Debug)]
pub struct Membership {
    member: Member,
    policy: PolicyCache,
    is_of_all_users: bool,
}

impl Membership {
    /// Finds the membership of this machine. The addresses of the configuration take precedence over those of the enrolment.
    ///
    /// # Errors
    /// If the membership is damaged, or the configuration names a centre without one.
    pub fn find(config: &Config, home: &Home) -> Result<Option<Self>> {
        match (Self::load(home)?, &config.fleet) {
            (Some(found), Some(servers)) => {
                let servers = servers.split(',').map(|server| server.trim().to_owned());
                Ok(Some(Self { member: found.member.with_servers(servers), ..found }))
            }
            (None, Some(_)) => {
                Err(usage("`fleet` is set, but this machine has not joined; run `amplifier fleet join`"))
            }
            (found, None) => Ok(found),
        }
    }

    /// Loads the membership of all users, else that of the user.
    fn load(home: &Home) -> Result<Option<Self>> {
        let system = home.system_fleet_folder();
        let of_all_users = match cfg!(windows) {
            // There, any user may create the folder.
            true => None,
            false => Member::load(&system).context("the membership in the fleet")?,
        };
        let found = match of_all_users {
            Some(member) => {
                check_owner(&system.join(MEMBER))?;
                Some((member, true))
            }
            None => Member::load(&home.fleet_folder()).context("the membership in the fleet")?.map(|own| (own, false)),
        };
        Ok(found.map(|(member, is_of_all_users)| {
            let policy = home.fleet_folder().join("policy");
            let policy = PolicyCache::new(policy, member.organisation(), member.group().clone());
            Self { member, policy, is_of_all_users }
        }))
    }

    /// Returns the membership.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Returns the active policy on this machine.
    pub fn policy(&self) -> &PolicyCache {
        &self.policy
    }

    /// Connects to the centre.
    ///
    /// # Errors
    /// If no server answers, or the identity is refused.
    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(self.member.connection_options()).await.context("the fleet")
    }

    /// Returns a follower of the policy. A bundle that cannot be compiled is refused.
    pub fn follower(&self, connection: Connection, config: &Config) -> PolicyFollower {
        let config = config.clone();
        PolicyFollower::new(connection, self.policy.clone(), move |bundle| {
            check_bundle(bundle, &config).map_err(|error| reasons(&error))
        })
    }
}

/// Fails for a bundle that this program cannot use.
fn check_bundle(file: &Path, config: &Config) -> Result<()> {
    let levels = BundleStack::new([(BundleScope::Fleet, load(file)?)], &[]);
    register_for_listing(&levels, config, &HookRegistry::new())
}

/// Fails if another user than the administrator can change a file.
fn check_owner(file: &Path) -> Result<()> {
    let changeable = changeable_part(file).with_context(|| format!("the owner of `{}` is unknown", file.display()))?;
    if let Some(path) = changeable {
        let path = path.display();
        bail!(
            "`{path}` can be changed by another user than the administrator; run `chown root {path}` and `chmod go-w {path}`"
        );
    }
    Ok(())
}

/// Loads the bundle of the organisation, if this machine has one.
///
/// # Errors
/// If one of its files was changed, or is invalid. No session may start then.
pub(crate) fn load_fleet_bundle(home: &Home) -> Result<Option<LoadedBundle>, BundleError> {
    let unusable = |reason: String| BundleError::whole(&home.fleet_folder(), reason);
    let Some(membership) = Membership::load(home).map_err(|error| unusable(reasons(&error)))? else { return Ok(None) };
    match membership.policy.load().map_err(|error| unusable(error.to_string()))? {
        Some(active) => load(&active.bundle).map(Some),
        // Otherwise, a user could remove it.
        None if membership.is_of_all_users => {
            Err(unusable("the policy of the organisation is missing; fetch it with `amplifier fleet sync`".to_owned()))
        }
        None => Ok(None),
    }
}

/// Returns the file of the organisation's newest bundle. It differs in each version with other content.
pub(crate) fn fleet_bundle_file(home: &Home) -> Option<PathBuf> {
    Membership::load(home).ok().flatten()?.policy.bundle_file().ok().flatten()
}

/// The work for the fleet while a policy is in use. Dropping it ends the work.
pub(crate) struct FleetWork {
    task: AbortOnDrop,
    services: FleetServices,
}

impl FleetWork {
    /// Starts the work, if this machine belongs to a fleet. Without the centre, it is tried again, and the session works as before.
    ///
    /// # Errors
    /// If the membership is damaged.
    pub(crate) fn start(config: &Config, home: &Home, run: &str, notices: &Notices) -> Result<Option<Self>> {
        let Some(fleet) = Membership::find(config, home)? else { return Ok(None) };
        let pointer = fleet.policy().pointer().context("the policy of the fleet")?;
        let (connected, connection) = watch::channel(None);
        let (consoles, console_keys) = watch::channel(console_keys(pointer.as_ref()));
        let machine = fleet.member().name().clone();
        let collectors = pointer.into_iter().flat_map(|pointer| pointer.collectors);
        let records = collectors.fold(ShipperOptions::new(home.audit_folder(), machine), |records, (name, key)| {
            records.collector(name, key)
        });
        let approvals = FleetApprovalsOptions {
            run: run.parse().context("the run of the session")?,
            name: None,
            workspace: config.workspace.clone(),
            consoles: console_keys,
        };
        let services = FleetServices::start(connection, records, approvals);
        let (config, notices) = (config.clone(), notices.clone());
        let task = tokio::spawn(async move {
            let connection = connect(&fleet).await;
            connected.send_replace(Some(connection.clone()));
            follow_policy(&fleet, connection, &config, &notices, &consoles).await;
        });
        Ok(Some(Self { task: AbortOnDrop(task), services }))
    }

    /// Returns the approval system of the consoles.
    pub(crate) fn asker(&self) -> FleetAsker {
        self.services.asker()
    }

    /// Returns the services that answer hooks.
    pub(crate) fn hooks(&self) -> Arc<dyn RemoteHooks> {
        self.services.hooks()
    }

    /// Waits until the centre has the records of the closed log, for a limited time.
    pub(crate) async fn close(self, notices: &Notices) {
        self.services.close(notices).await;
        drop(self.task);
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect(fleet: &Membership) -> Connection {
    loop {
        match fleet.connect().await {
            Ok(connection) => return connection,
            Err(error) => tracing::debug!(error = %reasons(&error), "the centre of the fleet"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Follows the policy of the organisation. The session reloads a newer one by itself.
async fn follow_policy(
    fleet: &Membership,
    connection: Connection,
    config: &Config,
    notices: &Notices,
    consoles: &watch::Sender<ConsoleKeys>,
) {
    fleet
        .follower(connection, config)
        .follow(|change| match change {
            Ok(PolicyChange::Refused(why)) => {
                notices.message(
                    Level::Warning,
                    "fleet",
                    format!("a newer policy of the organisation is refused: {why}"),
                );
            }
            Ok(PolicyChange::Activated(active)) => _ = consoles.send_replace(console_keys(Some(&active.pointer))),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the policy of the fleet"),
        })
        .await;
}
