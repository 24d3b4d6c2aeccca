//! Contribution channels: data that modules provide without knowing who will ask for it.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;

use crate::guard::{ContainedFuture, WaitResult, contain, drop_quietly, wait};
use crate::ports::clock::Clock;
use crate::ports::{BoxFuture, PortError};
use crate::registry::{AsyncHandler, SyncHandler};
use crate::sync::{Mutex, lock};

/// How long one contributor may take.
const TIMEOUT: Duration = Duration::from_secs(30);

type Contributor<T> = Arc<dyn Fn() -> ContributorResult<T> + Send + Sync>;

/// The answer of a contributor: a value, nothing or a failure, at once or in a future.
pub enum ContributorResult<T> {
    /// It is there.
    Ready(Result<Option<T>, PortError>),
    /// It is waited for.
    Pending(BoxFuture<'static, Result<Option<T>, PortError>>),
}

/// What the contributors of a channel gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributions<T = Value> {
    /// What each gave, in order of registration.
    pub values: Vec<Contribution<T>>,
    /// Who gave nothing because of a failure.
    pub failures: Vec<FailedContribution>,
}

/// What one contributor gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution<T = Value> {
    /// The contributor.
    pub name: String,
    /// What it gave.
    pub value: T,
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
    channels: Weak<dyn Unregister>,
    channel: String,
    id: u64,
}

impl ContributorRegistration {
    /// Takes the contributor away. Doing it twice is harmless.
    pub fn unregister(&self) {
        if let Some(channels) = self.channels.upgrade() {
            channels.unregister(&self.channel, self.id);
        }
    }
}

/// Channels, whatever is contributed to them.
trait Unregister: Send + Sync {
    fn unregister(&self, channel: &str, id: u64);
}

impl<T> Unregister for Mutex<ContributorTable<T>> {
    fn unregister(&self, channel: &str, id: u64) {
        let mut registered = lock(self);
        let contributors = registered.channels.get_mut(channel);
        let removed = contributors.map(|all| all.extract_if(.., |(other, ..)| *other == id).collect::<Vec<_>>());
        // What a contributor holds may use the channels when it is dropped.
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

/// Contributors by the channel that they contribute to.
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
            // It may be the last one to hold it.
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

/// The contributions of a channel, of which some are there and others are waited for.
pub struct ContributionCollector<T> {
    channel: String,
    answers: VecDeque<(String, CollectedResult<T>)>,
    given: Contributions<T>,
}

/// A failure was logged already.
enum CollectedResult<T> {
    Ready(Result<Option<T>, String>),
    Pending(BoxFuture<'static, Result<Option<T>, PortError>>),
}

impl<T: Send> ContributionCollector<T> {
    /// What was there at once.
    pub fn at_once(&self) -> impl Iterator<Item = &T> {
        self.answers.iter().filter_map(|(_, answer)| match answer {
            CollectedResult::Ready(Ok(value)) => value.as_ref(),
            CollectedResult::Ready(Err(_)) | CollectedResult::Pending(_) => None,
        })
    }

    /// Waits for the others, for each as long as a contributor may take. One that fails is skipped, and logged.
    ///
    /// # Cancel safety
    /// The contributor that is waited for when the future is dropped gives nothing; the next call goes on behind it.
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

    /// Everything, once it is [finished](Self::finish).
    pub fn into_contributions(self) -> Contributions<T> {
        self.given
    }
}

fn failed(channel: &str, contributor: &str, error: impl ToString) -> String {
    let error = error.to_string();
    tracing::warn!(channel, contributor, error, "contributor failed");
    error
}
