//! The registry of hooks, and the emission of events.

mod driver;
mod emission;
mod hook;
pub(crate) mod hook_time_limit;
mod outcome;
mod precedence;
mod progress;
mod registration;
pub(crate) mod sessions;
mod settings;
mod table;
mod trace;

pub use emission::Emission;
pub use hook::{AsyncHandler, HandlerOutput, Hook, SyncHandler};
pub use outcome::{Attributed, HookApproval, HookReportRef, Outcome};
pub use precedence::{Decision, Denial};
pub use registration::{HookBuilder, Registration, ScopedRegistration};
pub use settings::{HookInfo, HookRole, OnError};
pub use table::{ListedHook, Listeners};

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use self::driver::Driver;
pub(crate) use self::hook_time_limit::waiting_for_person;
use self::sessions::RegistrySessions;
use self::table::HookTable;
use crate::event::{Event, EventData, EventEffects, EventKey, Map, SESSION_ID};
use crate::ports::clock::{Clock, SystemClock};

/// The registered hooks.
///
/// A registry is a handle: clones share the same hooks. Hooks run one after another, lowest priority number first,
/// equal priorities in order of registration.
///
/// ```
/// use amplifier_core::{data, HookRegistry, HookResult, TOOL_PRE};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let hooks = HookRegistry::new();
/// hooks.on(TOOL_PRE, |event| async move {
///     if event.tool_name() == "rm" { HookResult::deny("no rm") } else { HookResult::proceed() }
/// });
///
/// let outcome = hooks.emit(TOOL_PRE, data! { "tool_name": "rm", "tool_input": {} }).await;
/// assert_eq!(outcome.denial().unwrap().reason(), "no rm");
/// # }
/// ```
#[derive(Clone)]
pub struct HookRegistry {
    shared: Arc<RegistryState>,
}

struct RegistryState {
    table: HookTable,
    // A std lock: nothing awaits while it is held.
    sessions: Mutex<RegistrySessions>,
    clock: Arc<dyn Clock>,
    parallel_observers: bool,
    given_up: watch::Sender<bool>,
}

/// Builds a [`HookRegistry`] with other than default settings.
#[must_use = "call `build` to make the registry"]
pub struct HookRegistryBuilder {
    clock: Option<Arc<dyn Clock>>,
    parallel_observers: bool,
}

impl HookRegistryBuilder {
    /// Uses another clock, also for coordinators of these hooks.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Runs observers concurrently. They cannot change data, so the outcome is the same.
    pub fn parallel_observers(mut self) -> Self {
        self.parallel_observers = true;
        self
    }

    /// Builds the registry.
    pub fn build(self) -> HookRegistry {
        let Self { clock, parallel_observers } = self;
        // Created only on demand, because calibrating the machine's counter takes a while.
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let (table, sessions, given_up) = (HookTable::new(), Mutex::default(), watch::Sender::new(false));
        HookRegistry { shared: Arc::new(RegistryState { table, sessions, clock, parallel_observers, given_up }) }
    }
}

impl Default for HookRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl HookRegistry {
    /// Creates a registry without hooks.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for a registry with other settings.
    pub fn builder() -> HookRegistryBuilder {
        HookRegistryBuilder { clock: None, parallel_observers: false }
    }

    /// Registers a closure for an event, with default settings.
    ///
    /// The closure can be synchronous or return a future; see [`IntoHookResult`](crate::IntoHookResult) for the possible
    /// results. With text instead of a constant, the event can be a pattern and the registration can fail:
    ///
    /// ```
    /// # use amplifier_core::{HookRegistry, InvalidEventName};
    /// # let hooks = HookRegistry::new();
    /// let registration = hooks.on("tool:*", |event| println!("{}", event.name))?;
    /// registration.unregister();
    /// # Ok::<(), InvalidEventName>(())
    /// ```
    pub fn on<K, F, R, When>(&self, event: K, function: F) -> K::Checked<Registration>
    where
        K: EventKey,
        F: Fn(Event<K::Payload>) -> R + Send + Sync + 'static,
        R: HandlerOutput<When>,
        When: 'static,
    {
        self.hook(event).run(function)
    }

    /// Registers a closure with a priority and a name.
    ///
    /// ```
    /// # use amplifier_core::{HookRegistry, HookResult, TOOL_PRE};
    /// # let hooks = HookRegistry::new();
    /// hooks.register(TOOL_PRE, |_| HookResult::proceed(), 10, "watcher");
    /// ```
    pub fn register<K, F, R, When>(
        &self,
        event: K,
        function: F,
        priority: i64,
        name: impl Into<Arc<str>>,
    ) -> K::Checked<Registration>
    where
        K: EventKey,
        F: Fn(Event<K::Payload>) -> R + Send + Sync + 'static,
        R: HandlerOutput<When>,
        When: 'static,
    {
        self.hook(event).priority(priority).named(name).run(function)
    }

    /// Returns a builder for a hook with other settings.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use amplifier_core::{HookRegistry, HookResult, OnError, TOOL_PRE};
    /// # let hooks = HookRegistry::new();
    /// hooks
    ///     .hook(TOOL_PRE)
    ///     .named("path-guard")
    ///     .priority(-10)
    ///     .on_error(OnError::Deny)
    ///     .timeout(Duration::from_secs(2))
    ///     .run(|event| (event.tool_name() == "Write").then(|| HookResult::deny("read-only")));
    /// ```
    pub fn hook<K: EventKey>(&self, event: K) -> HookBuilder<'_, K> {
        HookBuilder::new(self, event)
    }

    /// Sets default fields for every event; the event's own data wins. Replaces earlier defaults.
    pub fn set_default_fields<K: Into<String>, V: Into<Value>>(&self, fields: impl IntoIterator<Item = (K, V)>) {
        let fields: Map = fields.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.shared.table.change_base(|base| base.defaults = fields);
    }

    /// Sets reserved fields of every event, which neither callers nor hooks can change. Fields that were reserved before stay
    /// reserved.
    pub fn set_reserved_fields<K: Into<String>, V: Into<Value>>(&self, fields: impl IntoIterator<Item = (K, V)>) {
        let fields = fields.into_iter().map(|(key, value)| (key.into(), value.into()));
        self.shared.table.change_base(|base| base.reserved.extend(fields));
    }

    pub(crate) fn change_sessions(&self, change: impl FnOnce(&mut RegistrySessions)) {
        let mut sessions = self.shared.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sessions.sole().map(Value::from);
        change(&mut sessions);
        let now = sessions.sole().map(Value::from);
        if before != now {
            self.shared.table.change_base(|base| {
                // A field that was reserved in another way stays.
                if base.reserved.get(SESSION_ID) == before.as_ref() {
                    base.reserved.remove(SESSION_ID);
                }
                if let Some(now) = now {
                    base.reserved.entry(SESSION_ID).or_insert(now);
                }
            });
        }
    }

    /// Emits an event: calls every registered hook, in order, and returns all results.
    ///
    /// The emission uses the hooks that are registered now; later registrations count from the next event on.
    /// Exceptions, panics and time-outs of hooks become reports. Without hooks, the data is returned with the default
    /// fields and nothing else.
    ///
    /// # Cancel safety
    /// Dropping the future drops the running hook. Results of earlier hooks stay, later hooks are not called, and the
    /// registry is unchanged.
    pub fn emit<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
    ) -> impl Future<Output = K::Checked<Outcome>> + Send {
        let mut data = data.into();
        async move {
            let listeners = match self.shared.table.listeners(&event) {
                Ok(listeners) => listeners,
                Err(error) => return K::invalid(error),
            };
            self.lay_around(&mut data, &listeners);
            let mut emission = Emission::new(listeners, data);
            if !emission.is_over() {
                self.run(&mut emission, None).await;
            }
            K::valid(emission.finish())
        }
    }

    /// Calls every hook and returns the responses, in running order.
    ///
    /// Each hook has the given time; one that fails or takes longer is skipped. Nothing is changed or denied.
    ///
    /// ```
    /// use std::time::Duration;
    /// use amplifier_core::{data, EventData, HookRegistry, HookResult, DECISION_TOOL_RESOLUTION};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let hooks = HookRegistry::new();
    /// hooks.on(DECISION_TOOL_RESOLUTION, |_| HookResult::respond(data! { "tool": "weather", "confidence": 0.9 }));
    ///
    /// let query = data! { "available_tools": ["weather", "search"], "selected_tool": "search" };
    /// let answers = hooks.emit_and_collect(DECISION_TOOL_RESOLUTION, query, Duration::from_secs(1)).await;
    /// assert_eq!(answers[0]["tool"], "weather");
    /// # }
    /// ```
    pub fn emit_and_collect<K: EventKey>(
        &self,
        event: K,
        data: impl Into<EventData>,
        timeout: Duration,
    ) -> impl Future<Output = K::Checked<Vec<Attributed<EventData>>>> + Send {
        let data = data.into();
        async move {
            K::checked(match self.prepare(&event, data) {
                Ok(emission) => {
                    let mut emission = emission.collecting();
                    self.run(&mut emission, Some(timeout)).await;
                    let responses = emission.finish().into_responses().into_iter();
                    Ok(responses.map(|Attributed { hook, value }| Attributed { hook, value: value.into() }).collect())
                }
                Err(error) => Err(error),
            })
        }
    }

    /// Emits for a coordinator: also returns the data as emitted, at events where modifications do not count.
    ///
    /// If the future is dropped before there is an outcome, `cancelled` receives the outcome so far.
    pub(crate) async fn emit_routed<K: EventKey>(
        &self,
        event: &K,
        data: EventData,
        reserved: &Option<Arc<Map>>,
        cancelled: impl FnOnce(&Outcome, &EventData),
    ) -> Result<(Outcome, Option<EventData>), K::Error> {
        let mut emission = self.prepare(event, data)?;
        emission.reserve(reserved);
        let observed = emission.event().effects() == EventEffects::Observed;
        let emitted = observed.then(|| emission.data().clone());
        let mut watched = OnCancel { emission: &mut emission, emitted: emitted.as_ref(), cancelled: Some(cancelled) };
        self.run(watched.emission, None).await;
        watched.cancelled = None;
        drop(watched);
        Ok((emission.finish(), emitted))
    }

    /// Begins an emission without running it, for other drivers: see [`Emission`].
    pub fn begin<K: EventKey>(&self, event: K, data: impl Into<EventData>) -> K::Checked<Emission> {
        K::checked(self.prepare(&event, data.into()))
    }

    fn prepare<K: EventKey>(&self, event: &K, mut data: EventData) -> Result<Emission, K::Error> {
        let listeners = self.shared.table.listeners(event)?;
        self.lay_around(&mut data, &listeners);
        Ok(Emission::new(listeners, data))
    }

    /// Adds the reserved fields to data that does not go through an emission.
    pub(crate) fn lay_reserved_around(&self, data: &mut EventData) {
        data.set_base(self.shared.table.base().as_ref());
    }

    #[inline]
    fn lay_around(&self, data: &mut EventData, listeners: &Listeners) {
        data.set_base(listeners.base());
        if !listeners.hooks().is_empty() {
            data.stamp(self.shared.clock.wall());
        }
    }

    async fn run(&self, emission: &mut Emission, limit: Option<Duration>) {
        let RegistryState { clock, parallel_observers, given_up, .. } = &*self.shared;
        let driver = Driver { clock: &**clock, limit, parallel_observers: *parallel_observers, given_up };
        // Boxed, because tracing should not make every emission's future larger.
        if trace::is_on() { Box::pin(trace::emission(driver, emission)).await } else { driver.run(emission).await }
    }

    /// Stops waiting for hooks, permanently: for a program that must end but still has to complete its records. Pending hooks fail, as if
    /// their time limit had passed, and so does every later hook that is not ready at once; its [`OnError`] decides. Emissions then end
    /// without delay.
    pub fn give_up(&self) {
        self.shared.given_up.send_replace(true);
    }

    /// Returns the hooks that would run for the event now. For other drivers.
    pub fn listeners<K: EventKey>(&self, event: K) -> K::Checked<Listeners> {
        K::checked(self.shared.table.listeners(&event))
    }

    /// Returns every hook, in running order: gates before observers, then by priority, then by registration.
    pub fn list_handlers(&self) -> Vec<HookInfo> {
        self.shared.table.infos()
    }

    /// Returns the hooks of an event, in running order, each with its `on_error` at that event.
    ///
    /// ```
    /// # use amplifier_core::{HookRegistry, TOOL_PRE};
    /// let hooks = HookRegistry::new();
    /// hooks.hook(TOOL_PRE).named("second").priority(5).run(|_| ());
    /// hooks.hook("tool:*").named("first").run(|_| ())?;
    ///
    /// let names: Vec<_> = hooks.list_handlers_of(TOOL_PRE).iter().map(|info| info.name.to_string()).collect();
    /// assert_eq!(names, ["first", "second"]);
    /// # Ok::<(), amplifier_core::InvalidEventName>(())
    /// ```
    pub fn list_handlers_of<K: EventKey>(&self, event: K) -> K::Checked<Vec<HookInfo>> {
        let listeners = self.shared.table.listeners(&event);
        K::checked(listeners.map(|all| {
            let info = |hook: &ListedHook| {
                let info = hook.info();
                HookInfo { on_error: info.on_error.at(all.event()), ..info.clone() }
            };
            all.hooks().iter().map(info).collect()
        }))
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }
}

/// A guard that passes on the outcome so far if the emission is dropped before its end.
struct OnCancel<'a, F: FnOnce(&Outcome, &EventData)> {
    emission: &'a mut Emission,
    emitted: Option<&'a EventData>,
    cancelled: Option<F>,
}

impl<F: FnOnce(&Outcome, &EventData)> Drop for OnCancel<'_, F> {
    fn drop(&mut self) {
        if let Some(cancelled) = self.cancelled.take() {
            cancelled(self.emission.partial_outcome(), self.emitted.unwrap_or(self.emission.data()));
        }
    }
}

impl std::fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookRegistry").field("hooks", &self.list_handlers()).finish_non_exhaustive()
    }
}
