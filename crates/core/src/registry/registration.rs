//! Registration of hooks.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::hook::{AnyHook, Closure, HandlerOutput, Hook};
use super::settings::{HookInfo, HookRole, OnError, name_of};
use super::table::RunOrder;
use super::{HookRegistry, RegistryState};
use crate::event::{Event, EventKey};

/// Settings of a hook before its registration; see [`HookRegistry::hook`].
#[must_use = "end with `run` (a closure) or `handler` (a `Hook`) to register it"]
pub struct HookBuilder<'a, K> {
    registry: &'a HookRegistry,
    event: K,
    name: Option<Arc<str>>,
    priority: i64,
    role: HookRole,
    on_error: OnError,
    timeout: Duration,
}

impl<'a, K: EventKey> HookBuilder<'a, K> {
    pub(super) fn new(registry: &'a HookRegistry, event: K) -> Self {
        Self {
            registry,
            event,
            name: None,
            priority: 0,
            role: HookRole::default(),
            on_error: OnError::default(),
            timeout: HookInfo::TIMEOUT,
        }
    }

    /// Sets the priority: lower runs earlier; 0 by default.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the display name. The default is the name of the function or type, numbered if there are several.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the role.
    pub fn role(mut self, role: HookRole) -> Self {
        self.role = role;
        self
    }

    /// Makes the hook an observer: it sees every emission, after the gates, and changes nothing.
    pub fn observer(self) -> Self {
        self.role(HookRole::Observer)
    }

    /// Sets the effect of a failure.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets the time limit of one call; 30 seconds by default. A hook that blocks its thread cannot be stopped.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Registers a closure, synchronous or with a future.
    pub fn run<F, R, When>(self, function: F) -> K::Checked<Registration>
    where
        F: Fn(Event<K::Payload>) -> R + Send + Sync + 'static,
        R: HandlerOutput<When>,
        When: 'static,
    {
        self.add(name_of::<F>, Box::new(Closure::<K::Payload, F, When>::new(function)))
    }

    /// Registers a hook with its own state.
    pub fn handler<H: Hook>(self, hook: H) -> K::Checked<Registration> {
        self.add(name_of::<H>, Box::new(hook))
    }

    fn add(self, default_name: fn() -> String, hook: Box<dyn AnyHook>) -> K::Checked<Registration> {
        let registration = self.event.event_pattern().map(|pattern| {
            let has_default_name = self.name.is_none();
            let info = HookInfo {
                name: self.name.unwrap_or_else(|| default_name().into()),
                event: pattern.as_str().into(),
                priority: self.priority,
                role: self.role,
                on_error: match (self.on_error, self.role) {
                    // An observer's failure stops nothing.
                    (OnError::DenyGating, HookRole::Observer) => OnError::Continue,
                    // A pattern matches events of both kinds.
                    (OnError::DenyGating, HookRole::Gate) => {
                        pattern.as_name().map_or(OnError::DenyGating, |name| OnError::DenyGating.at(name))
                    }
                    (on_error, _) => on_error,
                },
                timeout: self.timeout,
            };
            let order = self.registry.shared.table.add(info, pattern, has_default_name, hook);
            Registration { shared: Arc::downgrade(&self.registry.shared), order }
        });
        K::checked(registration)
    }
}

/// A registered hook. Dropping this does nothing: the hook stays until it is unregistered.
#[derive(Clone)]
pub struct Registration {
    shared: Weak<RegistryState>,
    order: RunOrder,
}

impl Registration {
    /// Unregisters the hook. Emissions that have begun still run it. A second call has no effect.
    pub fn unregister(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.table.remove(self.order);
        }
    }

    /// Ties the hook to a scope: it is unregistered when the guard is dropped.
    ///
    /// ```
    /// # use amplifier_core::{HookRegistry, TOOL_PRE};
    /// let hooks = HookRegistry::new();
    /// {
    ///     let _guard = hooks.on(TOOL_PRE, |_| ()).scoped();
    ///     assert_eq!(hooks.list_handlers().len(), 1);
    /// }
    /// assert!(hooks.list_handlers().is_empty());
    /// ```
    pub fn scoped(self) -> ScopedRegistration {
        ScopedRegistration(self)
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registration").field(&self.order).finish()
    }
}

/// A registered hook that is unregistered on drop.
#[derive(Debug)]
#[must_use = "dropping the guard unregisters the hook"]
pub struct ScopedRegistration(Registration);

impl Drop for ScopedRegistration {
    fn drop(&mut self) {
        self.0.unregister();
    }
}
