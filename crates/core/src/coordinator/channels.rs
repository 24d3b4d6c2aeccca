//! Contribution channels: data that modules provide without knowing who will ask for it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::guard::{Contained, Waited, drop_quietly, wait};
use crate::ports::clock::Clock;
use crate::ports::{BoxFuture, PortError};
use crate::registry::{Later, Now};
use crate::sync::{Mutex, lock};

/// How long one contributor may take.
const TIMEOUT: Duration = Duration::from_secs(30);

type Contributor = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<Value>, PortError>> + Send + Sync>;

/// What the contributors of a channel gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contributions {
    /// What each gave, in order of registration.
    pub values: Vec<Contribution>,
    /// Who gave nothing because of a failure.
    pub failures: Vec<FailedContribution>,
}

/// What one contributor gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The contributor.
    pub name: String,
    /// What it gave.
    pub value: Value,
}

/// A contributor that failed, and was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedContribution {
    /// The contributor.
    pub name: String,
    /// What went wrong.
    pub error: String,
}

/// A registered contributor. Dropping this does nothing: the contributor stays until it is unregistered.
#[derive(Debug)]
pub struct ContributorRegistration {
    channels: Weak<Mutex<Registered>>,
    channel: String,
    id: u64,
}

impl ContributorRegistration {
    /// Takes the contributor away. Doing it twice is harmless.
    pub fn unregister(&self) {
        let Some(channels) = self.channels.upgrade() else { return };
        let mut registered = lock(&channels);
        let contributors = registered.channels.get_mut(&self.channel);
        let removed = contributors.map(|all| all.extract_if(.., |(id, ..)| *id == self.id).collect::<Vec<_>>());
        // What a contributor holds may use the channels when it is dropped.
        drop(registered);
        drop_quietly(removed);
    }
}

#[derive(Default)]
struct Registered {
    registrations: u64,
    channels: BTreeMap<String, Vec<(u64, String, Contributor)>>,
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.channels.keys()).finish()
    }
}

/// What a contributor may give: a value, nothing, or a failure.
pub trait IntoContribution {
    /// The value, if there is one.
    ///
    /// # Errors
    /// If the contributor failed.
    fn into_contribution(self) -> Result<Option<Value>, PortError>;
}

impl IntoContribution for Value {
    fn into_contribution(self) -> Result<Option<Value>, PortError> {
        Ok(Some(self))
    }
}

impl<T: IntoContribution> IntoContribution for Option<T> {
    fn into_contribution(self) -> Result<Option<Value>, PortError> {
        self.map_or(Ok(None), T::into_contribution)
    }
}

impl<T: IntoContribution, E: Into<PortError>> IntoContribution for Result<T, E> {
    fn into_contribution(self) -> Result<Option<Value>, PortError> {
        self.map_err(Into::into)?.into_contribution()
    }
}

/// What a contributing function may return: a value (or nothing, or a failure), or a future of one.
///
/// `When` tells the two apart; it is always inferred.
pub trait ContributorAnswer<When>: sealed::Sealed<When> {}

mod sealed {
    use super::{BoxFuture, PortError, Value};

    pub trait Sealed<When> {
        fn contributed(self) -> BoxFuture<'static, Result<Option<Value>, PortError>>;
    }
}

impl<T: IntoContribution + Send + 'static> ContributorAnswer<Now> for T {}

impl<T: IntoContribution + Send + 'static> sealed::Sealed<Now> for T {
    fn contributed(self) -> BoxFuture<'static, Result<Option<Value>, PortError>> {
        Box::pin(async { self.into_contribution() })
    }
}

impl<F: Future<Output: IntoContribution> + Send + 'static> ContributorAnswer<Later> for F {}

impl<F: Future<Output: IntoContribution> + Send + 'static> sealed::Sealed<Later> for F {
    fn contributed(self) -> BoxFuture<'static, Result<Option<Value>, PortError>> {
        Box::pin(async { self.await.into_contribution() })
    }
}

#[derive(Debug, Default)]
pub(super) struct Channels {
    // A std lock: nothing awaits while it is held.
    registered: Arc<Mutex<Registered>>,
}

impl Channels {
    pub(super) fn register<F, R, When>(&self, channel: &str, name: &str, contributor: F) -> ContributorRegistration
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: ContributorAnswer<When>,
    {
        let contributor = Arc::new(contributor);
        let contributor: Contributor = Arc::new(move || {
            let contributor = contributor.clone();
            // Called inside the future, so that a panic of the function itself is caught too.
            Box::pin(async move {
                let contributed = contributor().contributed();
                contributed.await
            })
        });
        let mut registered = lock(&self.registered);
        registered.registrations += 1;
        let id = registered.registrations;
        registered.channels.entry(channel.to_owned()).or_default().push((id, name.to_owned(), contributor));
        ContributorRegistration { channels: Arc::downgrade(&self.registered), channel: channel.to_owned(), id }
    }

    pub(super) async fn collect(&self, clock: &dyn Clock, channel: &str) -> Contributions {
        let contributors = lock(&self.registered).channels.get(channel).cloned().unwrap_or_default();
        let mut contributions = Contributions::default();
        for (_, name, contributor) in contributors {
            let waited = wait(clock, TIMEOUT, &mut Contained::new(contributor())).await;
            // It may be the last one to hold it.
            drop_quietly(contributor);
            let error = match waited {
                Waited::Done(Ok(value)) => {
                    contributions.values.extend(value.map(|value| Contribution { name, value }));
                    continue;
                }
                Waited::Done(Err(error)) => error.to_string(),
                Waited::Panicked(what) => what,
                Waited::TimedOut => format!("gave nothing within {TIMEOUT:?}"),
            };
            tracing::warn!(channel, contributor = name, error, "contributor failed");
            contributions.failures.push(FailedContribution { name, error });
        }
        contributions
    }
}
