//! Contribution channels: data that modules provide for unknown consumers.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::contain::{ContainedFuture, WaitResult, contain, drop_quietly, wait};
use crate::ports::clock::Clock;
use crate::ports::{BoxFuture, PortError};
use crate::registry::{AsyncHandler, SyncHandler};
use crate::sync::{Mutex, lock};

const TIMEOUT: Duration = Duration::from_secs(30);

type Contributor<T> = Arc<dyn Fn() -> ContributorResult<T> + Send + Sync>;

/// The result of a contributor: a value, nothing or a failure, at once or in a future.
pub enum ContributorResult<T> {
    /// Available at once.
    Ready(Result<Option<T>, PortError>),
    /// A future of the result.
    Pending(BoxFuture<'static, Result<Option<T>, PortError>>),
}

/// The contributions to a channel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Contributions<T = Value> {
    /// The values, in order of registration.
    pub values: Vec<Contribution<T>>,
    /// The contributors that failed.
    pub failures: Vec<FailedContribution>,
}

/// The value of one contributor.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution<T = Value> {
    /// The contributor.
    pub name: String,
    /// The value.
    pub value: T,
}

/// A contributor that failed and was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedContribution {
    /// The contributor.
    pub name: String,
    /// The error.
    pub error: String,
}

/// A registered contributor. Dropping this does nothing: the contributor stays until it is unregistered.
#[derive(Debug)]
pub struct ContributorRegistration {
    channels: Weak<dyn Unregister>,
    channel: String,
    id: u64,
}

impl ContributorRegistration {
    /// Unregisters the contributor. A second call has no effect.
    pub fn unregister(&self) {
        if let Some(channels) = self.channels.upgrade() {
            channels.unregister(&self.channel, self.id);
        }
    }
}

trait Unregister: Send + Sync {
    fn unregister(&self, channel: &str, id: u64);
}

impl<T> Unregister for Mutex<ContributorTable<T>> {
    fn unregister(&self, channel: &str, id: u64) {
        let mut registered = lock(self);
        let contributors = registered.channels.get_mut(channel);
        let removed = contributors.map(|all| all.extract_if(.., |(other, ..)| *other == id).collect::<Vec<_>>());
        // A contributor's `drop` may use the channels.
        drop(registered);
        drop_quietly(removed);
    }
}

struct ContributorTable<T> {
    registrations: u64,
    channels: BTreeMap<String, Vec<(u64, String, Contributor<T>)>>,
}

impl<T> std::fmt::Debug for ContributorTable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.channels.keys()).finish()
    }
}

/// A contributed value, nothing, or a failure.
pub trait IntoContribution {
    /// Returns the value, if there is one.
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

/// The return type of a contributor: a value (or nothing, or a failure), or a future of one.
///
/// `When` distinguishes the two; it is always inferred.
pub trait ContributorOutput<When>: sealed::Sealed<When> {}

mod sealed {
    use super::{ContributorResult, Value};

    pub trait Sealed<When> {
        fn contributor_result(self) -> ContributorResult<Value>;
    }
}

impl<T: IntoContribution + Send + 'static> ContributorOutput<SyncHandler> for T {}

impl<T: IntoContribution + Send + 'static> sealed::Sealed<SyncHandler> for T {
    fn contributor_result(self) -> ContributorResult<Value> {
        ContributorResult::Ready(self.into_contribution())
    }
}

impl<F: Future<Output: IntoContribution> + Send + 'static> ContributorOutput<AsyncHandler> for F {}

impl<F: Future<Output: IntoContribution> + Send + 'static> sealed::Sealed<AsyncHandler> for F {
    fn contributor_result(self) -> ContributorResult<Value> {
        ContributorResult::Pending(Box::pin(async { self.await.into_contribution() }))
    }
}

pub(super) fn contributor_result<R: ContributorOutput<When>, When>(answer: R) -> ContributorResult<Value> {
    sealed::Sealed::contributor_result(answer)
}

/// Contributors by channel.
#[derive(Debug)]
pub struct Channels<T = Value> {
    // A std lock: nothing awaits while it is held.
    registered: Arc<Mutex<ContributorTable<T>>>,
}

impl<T> Default for Channels<T> {
    fn default() -> Self {
        Self { registered: Arc::new(Mutex::new(ContributorTable { registrations: 0, channels: BTreeMap::new() })) }
    }
}

impl<T: Send + 'static> Channels<T> {
    /// Registers a contributor.
    pub fn register(
        &self,
        channel: &str,
        name: &str,
        contributor: impl Fn() -> ContributorResult<T> + Send + Sync + 'static,
    ) -> ContributorRegistration {
        let mut registered = lock(&self.registered);
        registered.registrations += 1;
        let id = registered.registrations;
        let contributors = registered.channels.entry(channel.to_owned()).or_default();
        contributors.push((id, name.to_owned(), Arc::new(contributor)));
        let channels: Arc<dyn Unregister> = self.registered.clone();
        ContributorRegistration { channels: Arc::downgrade(&channels), channel: channel.to_owned(), id }
    }

    /// Calls every contributor of a channel, in order of registration.
    pub fn collect(&self, channel: &str) -> ContributionCollector<T> {
        let contributors = lock(&self.registered).channels.get(channel).cloned().unwrap_or_default();
        let channel = channel.to_owned();
        let call = |(_, name, contributor): (u64, String, Contributor<T>)| {
            let called = contain(|| contributor());
            // This may be the last reference.
            drop_quietly(contributor);
            let contributor_result =
                match called.unwrap_or_else(|panic| ContributorResult::Ready(Err(panic.to_string().into()))) {
                    ContributorResult::Ready(answer) => {
                        CollectedResult::Ready(answer.map_err(|error| failed(&channel, &name, error)))
                    }
                    ContributorResult::Pending(future) => CollectedResult::Pending(future),
                };
            (name, contributor_result)
        };
        let answers = contributors.into_iter().map(call).collect();
        ContributionCollector { channel, answers, given: Contributions { values: Vec::new(), failures: Vec::new() } }
    }
}

/// The contributions to a channel while they are collected.
pub struct ContributionCollector<T> {
    channel: String,
    answers: VecDeque<(String, CollectedResult<T>)>,
    given: Contributions<T>,
}

/// A result whose failure was logged.
enum CollectedResult<T> {
    Ready(Result<Option<T>, String>),
    Pending(BoxFuture<'static, Result<Option<T>, PortError>>),
}

impl<T: Send> ContributionCollector<T> {
    /// Returns the values that were available at once.
    pub fn at_once(&self) -> impl Iterator<Item = &T> {
        self.answers.iter().filter_map(|(_, answer)| match answer {
            CollectedResult::Ready(Ok(value)) => value.as_ref(),
            CollectedResult::Ready(Err(_)) | CollectedResult::Pending(_) => None,
        })
    }

    /// Waits for the other values, each up to the time limit. A failed contributor is skipped and logged.
    ///
    /// # Cancel safety
    /// The contributor that is pending when the future is dropped is skipped; the next call continues after it.
    pub async fn finish(&mut self, clock: &dyn Clock) -> &mut Contributions<T> {
        while let Some((name, answer)) = self.answers.pop_front() {
            let answer = match answer {
                CollectedResult::Ready(answer) => answer,
                CollectedResult::Pending(future) => match wait(clock, TIMEOUT, &mut ContainedFuture::new(future)).await
                {
                    WaitResult::Done(answer) => answer.map_err(|error| failed(&self.channel, &name, error)),
                    WaitResult::Panicked(what) => Err(failed(&self.channel, &name, what)),
                    WaitResult::TimedOut => {
                        Err(failed(&self.channel, &name, format!("gave nothing within {TIMEOUT:?}")))
                    }
                },
            };
            match answer {
                Ok(value) => self.given.values.extend(value.map(|value| Contribution { name, value })),
                Err(error) => self.given.failures.push(FailedContribution { name, error }),
            }
        }
        &mut self.given
    }

    /// Returns the contributions, after [`finish`](Self::finish).
    pub fn into_contributions(self) -> Contributions<T> {
        self.given
    }
}

fn failed(channel: &str, contributor: &str, error: impl ToString) -> String {
    let error = error.to_string();
    tracing::warn!(channel, contributor, error, "contributor failed");
    error
}
