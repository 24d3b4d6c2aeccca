//! Following of the policy by a machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::publisher::download;
use super::{ActivePolicy, MachineStatus, PolicyCache, PolicyError};
use crate::{Connection, FleetError, subjects};

/// The time between two looks, if no notification arrives.
const INTERVAL: Duration = Duration::from_mins(1);

/// The time between two reports, by which others see that the machine runs.
const REPORT_INTERVAL: u32 = 5;

/// A check of a bundle before it becomes active.
type CheckBundle = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// Follows the policy of a machine's group: newer policies of the organisation become active, and the machine reports which one it runs.
#[derive(Clone)]
pub struct PolicyFollower {
    connection: Connection,
    cache: PolicyCache,
    check: CheckBundle,
}

/// The result of a look at the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChange {
    /// The active policy is the newest one.
    None,
    /// A newer policy is active.
    Activated(ActivePolicy),
    /// A newer policy applies later.
    Later(Timestamp),
    /// A newer policy is refused for this reason; the old one stays active.
    Refused(String),
}

impl PolicyFollower {
    /// Follows on a connection. `check` accepts a bundle that this program can use.
    pub fn new(
        connection: Connection,
        cache: PolicyCache,
        check: impl Fn(&Path) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { connection, cache, check: Arc::new(check) }
    }

    /// Looks at the policy once, activates a newer one, and reports the result.
    ///
    /// # Errors
    /// If the centre fails, or a file cannot be written. The active policy stays.
    pub async fn refresh(&self) -> Result<PolicyChange, PolicyError> {
        let change = self.look().await?;
        self.report(&change).await?;
        Ok(change)
    }

    /// Follows the policy for ever, and calls `changed` for each news. Failures of the centre are retried.
    ///
    /// # Cancel safety
    /// Dropping the future ends the following; a policy is active completely or not at all.
    pub async fn follow(&self, mut changed: impl FnMut(Result<PolicyChange, PolicyError>)) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Only a notification: the stream has the valid message. Without permission, the ticks remain.
        let mut news = self.connection.client().subscribe(subjects::pointer(self.cache.group())).await.ok();
        let (mut last, mut since_report) = (None, 0);
        loop {
            let notification = async {
                match &mut news {
                    Some(news) => news.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = ticks.tick() => {}
                message = notification => if message.is_none() { news = None },
            }
            let change = self.look().await;
            let is_news = match (&change, &last) {
                (Ok(PolicyChange::None), _) => false,
                (Ok(change), last) => Some(change) != last.as_ref(),
                (Err(_), _) => true,
            };
            since_report += 1;
            if let Ok(change) = &change
                && (is_news || last.is_none() || since_report >= REPORT_INTERVAL)
            {
                // The next report says the same.
                since_report = self.report(change).await.map_or(since_report, |()| 0);
                last = Some(change.clone());
            }
            if is_news {
                changed(change);
            }
        }
    }

    async fn look(&self) -> Result<PolicyChange, PolicyError> {
        match self.activate_newest().await {
            Err(error) if error.is_refusal() => Ok(PolicyChange::Refused(error.to_string())),
            result => result,
        }
    }

    async fn activate_newest(&self) -> Result<PolicyChange, PolicyError> {
        let subject = subjects::pointer(self.cache.group());
        let Some(message) = self.connection.last_message(subjects::POLICY, &subject).await? else {
            return Ok(PolicyChange::None);
        };
        let pointer = self.cache.check(&message.payload)?;
        match blocking({
            let cache = self.cache.clone();
            move || cache.load()
        })
        .await?
        {
            Ok(Some(active)) if active.pointer == pointer => return Ok(PolicyChange::None),
            Ok(Some(active)) if active.pointer.version >= pointer.version => {
                return Err(PolicyError::Older { found: pointer.version, active: active.pointer.version });
            }
            // A changed file is replaced.
            Ok(_) | Err(PolicyError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        if pointer.not_before > Timestamp::now() {
            return Ok(PolicyChange::Later(pointer.not_before));
        }
        let archive = download(&self.connection, pointer.bundle).await?;
        let (cache, check) = (self.cache.clone(), self.check.clone());
        let active = blocking(move || cache.activate(&message.payload, &archive, |bundle| check(bundle))).await??;
        Ok(PolicyChange::Activated(active))
    }

    async fn report(&self, change: &PolicyChange) -> Result<(), PolicyError> {
        let cache = self.cache.clone();
        let active = blocking(move || {
            let since = cache.pointer_file().metadata().and_then(|file| file.modified()).ok();
            (cache.pointer(), since.and_then(|time| Timestamp::try_from(time).ok()))
        });
        let (pointer, since) = active.await?;
        let damage = pointer.as_ref().err().map(ToString::to_string);
        let pointer = pointer.ok().flatten();
        let status = MachineStatus {
            group: self.cache.group().clone(),
            version: pointer.as_ref().map(|pointer| pointer.version),
            bundle: pointer.as_ref().map(|pointer| pointer.bundle),
            since: since.filter(|_| pointer.is_some()),
            refused: match change {
                PolicyChange::Refused(why) => Some(why.clone()),
                PolicyChange::None | PolicyChange::Activated(_) | PolicyChange::Later(_) => damage,
            },
            amplifier: env!("CARGO_PKG_VERSION").to_owned(),
            seen: Timestamp::now(),
        };
        status.report(&self.connection).await
    }
}

/// Runs work with files on a thread for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PolicyError> {
    let failed =
        |error: tokio::task::JoinError| FleetError::Invalid { subject: "policy".to_owned(), cause: error.to_string() };
    Ok(tokio::task::spawn_blocking(work).await.map_err(failed)?)
}
