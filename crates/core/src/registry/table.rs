//! The table of registered hooks, and the lists that emissions read.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::hook::{AnyHook, DroppedHook, Reply, RunningHook};
use super::settings::{HookInfo, HookRole};
use crate::contain;
use crate::event::{BaseFields, CATALOG, EventData, EventKey, EventName, EventPattern};
use crate::sync::{LoadedValue, Mutex, PublishedValue, lock};

/// The most events with a list. Emitting ever new names must not fill the memory.
const MOST_LISTS: usize = 256;

/// The running order: gates before observers, then priority, then order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunOrder {
    role: HookRole,
    priority: i64,
    registered: u64,
}

// Aligned to a cache line, like all data that emissions read: its neighbours in memory are often written by the thread that
// allocated it, which would slow down every other emitting thread.
#[repr(align(64))]
struct RegisteredHook {
    info: HookInfo,
    pattern: EventPattern,
    hook: Box<dyn AnyHook>,
}

impl Drop for RegisteredHook {
    fn drop(&mut self) {
        // A hook may be dropped at the end of an emission, and its `drop` may panic.
        contain::drop_quietly(std::mem::replace(&mut self.hook, Box::new(DroppedHook)));
    }
}

#[derive(Default)]
struct Entries {
    // INVARIANT: iterating gives the running order.
    hooks: BTreeMap<RunOrder, Arc<RegisteredHook>>,
    registrations: u64,
    default_names: HashMap<Arc<str>, u64>,
    base: Arc<BaseFields>,
}

/// The registered hooks, and their snapshot for emissions.
///
/// INVARIANT: `snapshot` is replaced only while `entries` is locked, and has no hook that was removed from `entries`
/// once the removal has returned.
pub(super) struct HookTable {
    // A std lock: nothing awaits while it is held, and emissions take it only after a change.
    entries: Mutex<Entries>,
    snapshot: PublishedValue<Snapshot>,
}

#[derive(Clone)]
#[repr(align(64))]
struct Snapshot {
    lists: Vec<List>,
    by_event: HashMap<EventName, usize, foldhash::fast::FixedState>,
    /// For known events, by catalog index: the index in `lists`, or [`NO_LIST`].
    by_catalog_index: [u16; CATALOG.len()],
    base: Option<Arc<BaseFields>>,
}

/// Larger than every index, because there are at most [`MOST_LISTS`].
const NO_LIST: u16 = u16::MAX;

impl Snapshot {
    fn without_lists(base: Option<Arc<BaseFields>>) -> Self {
        Self { lists: Vec::new(), by_event: HashMap::default(), by_catalog_index: [NO_LIST; CATALOG.len()], base }
    }

    #[inline]
    fn list_of<K: EventKey>(&self, key: &K) -> Option<usize> {
        match key.catalog_index() {
            Some(index) => Some(self.by_catalog_index[index]).filter(|&list| list != NO_LIST).map(usize::from),
            None => self.by_event.get(key.event_text()).copied(),
        }
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct List {
    event: EventName,
    // In running order. Shared, because adding the list of another event copies the snapshot.
    hooks: Arc<[ListedHook]>,
    gates: usize,
}

/// A hook that is registered for an event.
#[derive(Clone)]
#[repr(align(64))]
pub struct ListedHook {
    event: EventName,
    registered: Arc<RegisteredHook>,
}

impl ListedHook {
    /// Returns the hook's settings.
    pub fn info(&self) -> &HookInfo {
        &self.registered.info
    }

    /// Returns the name under which the hook receives the event.
    pub fn event(&self) -> &EventName {
        &self.event
    }

    /// Returns the hook itself, for a driver that calls hooks of type `T` in its own way.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        let hook: &dyn Any = &*self.registered.hook;
        hook.downcast_ref()
    }

    #[inline]
    pub(super) fn start<'a>(
        &'a self,
        data: &'a EventData,
        running: Pin<&mut RunningHook<'a>>,
        context: &mut Context<'_>,
    ) -> Poll<Reply> {
        self.registered.hook.call(&self.event, data, running, context)
    }
}

/// The hooks of one emission, as registered when it began.
pub struct Listeners {
    snapshot: LoadedValue<Snapshot>,
    list: usize,
}

impl Listeners {
    fn list(&self) -> &List {
        &self.snapshot.lists[self.list]
    }

    /// Returns the event as emitted.
    pub fn event(&self) -> &EventName {
        &self.list().event
    }

    /// Returns the hooks in running order.
    pub fn hooks(&self) -> &[ListedHook] {
        &self.list().hooks
    }

    /// Returns the number of gates, which come first.
    pub fn gates(&self) -> usize {
        self.list().gates
    }

    pub(super) fn base(&self) -> Option<&Arc<BaseFields>> {
        self.snapshot.base.as_ref()
    }
}

impl HookTable {
    pub(super) fn new() -> Self {
        Self { entries: Mutex::default(), snapshot: PublishedValue::new(Snapshot::without_lists(None)) }
    }

    /// Adds a hook. A default name that is already in use gets a number: remembered answers belong to the hook's name, so two
    /// unnamed hooks must not share one.
    pub(super) fn add(
        &self,
        mut info: HookInfo,
        pattern: EventPattern,
        has_default_name: bool,
        hook: Box<dyn AnyHook>,
    ) -> RunOrder {
        let mut entries = lock(&self.entries);
        entries.registrations += 1;
        if has_default_name {
            let taken = entries.default_names.entry(info.name.clone()).or_default();
            *taken += 1;
            if *taken > 1 {
                info.name = format!("{}#{taken}", info.name).into();
            }
        }
        let order = RunOrder { role: info.role, priority: info.priority, registered: entries.registrations };
        entries.hooks.insert(order, Arc::new(RegisteredHook { info, pattern, hook }));
        self.forget_lists();
        order
    }

    pub(super) fn remove(&self, order: RunOrder) {
        let mut entries = lock(&self.entries);
        let removed = entries.hooks.remove(&order);
        if removed.is_some() {
            self.forget_lists();
        }
        drop(entries);
        // The hook's own `drop` may use the registry, so it runs after the lock is released.
        drop(removed);
    }

    pub(super) fn change_base(&self, change: impl FnOnce(&mut BaseFields)) {
        let mut entries = lock(&self.entries);
        change(Arc::make_mut(&mut entries.base));
        let is_empty = entries.base.defaults.is_empty() && entries.base.reserved.is_empty();
        let base = (!is_empty).then(|| entries.base.clone());
        self.snapshot.store(Snapshot::without_lists(base));
    }

    pub(super) fn base(&self) -> Option<Arc<BaseFields>> {
        self.snapshot.load().base.clone()
    }

    pub(super) fn infos(&self) -> Vec<HookInfo> {
        lock(&self.entries).hooks.values().map(|hook| hook.info.clone()).collect()
    }

    pub(super) fn listeners<K: EventKey>(&self, key: &K) -> Result<Listeners, K::Error> {
        let snapshot = self.snapshot.load();
        if let Some(list) = snapshot.list_of(key) {
            return Ok(Listeners { snapshot, list });
        }
        drop(snapshot);
        Ok(self.make_list(key.event_name()?))
    }

    // Registering is cheap, because lists are made on the first emission after a change.
    #[cold]
    fn make_list(&self, event: EventName) -> Listeners {
        let entries = lock(&self.entries);
        let current = self.snapshot.load();
        // Another emission may have made it meanwhile.
        if let Some(list) = current.list_of(&event) {
            return Listeners { snapshot: current, list };
        }
        let mut next = if current.lists.len() < MOST_LISTS {
            Snapshot::clone(&current)
        } else {
            Snapshot::without_lists(current.base.clone())
        };
        let listening = entries.hooks.values().filter_map(|registered| {
            let event = registered.pattern.matching_name(&event)?;
            Some(ListedHook { event, registered: registered.clone() })
        });
        let hooks: Arc<[ListedHook]> = listening.collect();
        let gates = hooks.iter().take_while(|hook| hook.info().role == HookRole::Gate).count();
        let list = next.lists.len();
        next.by_event.insert(event.clone(), list);
        if let Some(index) = CATALOG.iter().position(|spec| event == spec.name) {
            next.by_catalog_index[index] = list as u16;
        }
        next.lists.push(List { event, hooks, gates });
        self.snapshot.store(next);
        Listeners { snapshot: self.snapshot.load(), list }
    }

    // Called with `entries` locked.
    fn forget_lists(&self) {
        let current = self.snapshot.load();
        if !current.lists.is_empty() {
            self.snapshot.store(Snapshot::without_lists(current.base.clone()));
        }
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.hooks().iter().map(ListedHook::info)).finish()
    }
}
