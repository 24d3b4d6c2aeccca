//! Who listens: an ordered book of registrations, and the lists that emissions read.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::hook::{AnyHook, Gone, Reply, Running};
use super::settings::{HookInfo, HookRole};
use crate::event::{Base, CATALOG, EventData, EventKey, EventName, EventPattern};
use crate::guard;
use crate::sync::{Loaded, Mutex, Published, lock};

/// How many events can have a list at once. Emitting ever new names must not fill the memory.
const MOST_LISTS: usize = 256;

/// The running order: gates before observers, then priority, then order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    role: HookRole,
    priority: i64,
    registered: u64,
}

// Aligned to a cache line, like everything that emissions read: what stands beside it in memory is often written by the
// thread that made it, and would slow down every other thread that emits.
#[repr(align(64))]
struct Registered {
    info: HookInfo,
    pattern: EventPattern,
    hook: Box<dyn AnyHook>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // A hook may be dropped at the end of an emission, and its `drop` may panic.
        guard::drop_quietly(std::mem::replace(&mut self.hook, Box::new(Gone)));
    }
}

#[derive(Default)]
struct Entries {
    // INVARIANT: iterating gives the running order.
    hooks: BTreeMap<Place, Arc<Registered>>,
    registrations: u64,
    /// How often each name was given by default.
    default_names: HashMap<Arc<str>, u64>,
    base: Arc<Base>,
}

/// The registrations, and what emissions read of them.
///
/// INVARIANT: `snapshot` is replaced only while `entries` is locked, and shows nothing that `entries` no longer holds
/// once the change that removed it has returned.
pub(super) struct Book {
    // A std lock: nothing awaits while it is held, and emissions take it only after a change.
    entries: Mutex<Entries>,
    snapshot: Published<Snapshot>,
}

#[derive(Clone)]
#[repr(align(64))]
struct Snapshot {
    lists: Vec<List>,
    by_event: HashMap<EventName, usize, foldhash::fast::FixedState>,
    /// The same for known events, by their place in the catalog: where in `lists`, or [`NO_LIST`].
    by_place: [u16; CATALOG.len()],
    base: Option<Arc<Base>>,
}

/// No event's list has this place, because there are at most [`MOST_LISTS`].
const NO_LIST: u16 = u16::MAX;

impl Snapshot {
    fn without_lists(base: Option<Arc<Base>>) -> Self {
        Self { lists: Vec::new(), by_event: HashMap::default(), by_place: [NO_LIST; CATALOG.len()], base }
    }

    /// Where the event's list is, if it was made.
    #[inline]
    fn list_of<K: EventKey>(&self, key: &K) -> Option<usize> {
        match key.place() {
            Some(place) => Some(self.by_place[place]).filter(|&list| list != NO_LIST).map(usize::from),
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

/// A hook that listens to an event.
#[derive(Clone)]
#[repr(align(64))]
pub struct ListedHook {
    told: EventName,
    registered: Arc<Registered>,
}

impl ListedHook {
    /// What is known about it.
    pub fn info(&self) -> &HookInfo {
        &self.registered.info
    }

    /// The name of the event that it is told.
    pub fn told(&self) -> &EventName {
        &self.told
    }

    /// The hook itself, for a driver that has its own way of calling hooks of type `T`.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        let hook: &dyn Any = &*self.registered.hook;
        hook.downcast_ref()
    }

    #[inline]
    pub(super) fn start<'a>(
        &'a self,
        data: &'a EventData,
        running: Pin<&mut Running<'a>>,
        context: &mut Context<'_>,
    ) -> Poll<Reply> {
        self.registered.hook.call(&self.told, data, running, context)
    }
}

/// The hooks that one emission runs, as they were registered when it began.
pub struct Listeners {
    snapshot: Loaded<Snapshot>,
    list: usize,
}

impl Listeners {
    fn list(&self) -> &List {
        &self.snapshot.lists[self.list]
    }

    /// The event as emitted.
    pub fn event(&self) -> &EventName {
        &self.list().event
    }

    /// The hooks in running order.
    pub fn hooks(&self) -> &[ListedHook] {
        &self.list().hooks
    }

    /// How many of them are gates; those come first.
    pub fn gates(&self) -> usize {
        self.list().gates
    }

    pub(super) fn base(&self) -> Option<&Arc<Base>> {
        self.snapshot.base.as_ref()
    }
}

impl Book {
    pub(super) fn new() -> Self {
        Self { entries: Mutex::default(), snapshot: Published::new(Snapshot::without_lists(None)) }
    }

    /// A name given by default is numbered when it is taken: answers of people last by the name of the hook, so two hooks
    /// that nobody named must not share one.
    pub(super) fn add(
        &self,
        mut info: HookInfo,
        pattern: EventPattern,
        has_default_name: bool,
        hook: Box<dyn AnyHook>,
    ) -> Place {
        let mut entries = lock(&self.entries);
        entries.registrations += 1;
        if has_default_name {
            let taken = entries.default_names.entry(info.name.clone()).or_default();
            *taken += 1;
            if *taken > 1 {
                info.name = format!("{}#{taken}", info.name).into();
            }
        }
        let place = Place { role: info.role, priority: info.priority, registered: entries.registrations };
        entries.hooks.insert(place, Arc::new(Registered { info, pattern, hook }));
        self.forget_lists();
        place
    }

    pub(super) fn remove(&self, place: Place) {
        let mut entries = lock(&self.entries);
        let removed = entries.hooks.remove(&place);
        if removed.is_some() {
            self.forget_lists();
        }
        drop(entries);
        // The hook's own `drop` may use the registry, so it runs after the lock is released.
        drop(removed);
    }

    /// Changes the fields that every event gets.
    pub(super) fn change_base(&self, change: impl FnOnce(&mut Base)) {
        let mut entries = lock(&self.entries);
        change(Arc::make_mut(&mut entries.base));
        let is_empty = entries.base.defaults.is_empty() && entries.base.reserved.is_empty();
        let base = (!is_empty).then(|| entries.base.clone());
        self.snapshot.store(Snapshot::without_lists(base));
    }

    /// The fields that every event gets.
    pub(super) fn base(&self) -> Option<Arc<Base>> {
        self.snapshot.load().base.clone()
    }

    /// Every hook in running order.
    pub(super) fn infos(&self) -> Vec<HookInfo> {
        lock(&self.entries).hooks.values().map(|hook| hook.info.clone()).collect()
    }

    /// The hooks that listen to an event now.
    pub(super) fn listeners<K: EventKey>(&self, key: &K) -> Result<Listeners, K::Error> {
        let snapshot = self.snapshot.load();
        if let Some(list) = snapshot.list_of(key) {
            return Ok(Listeners { snapshot, list });
        }
        drop(snapshot);
        Ok(self.make_list(key.event_name()?))
    }

    // Registering is cheap because the lists are made here, when an event is first emitted after a change.
    #[cold]
    fn make_list(&self, event: EventName) -> Listeners {
        let entries = lock(&self.entries);
        let current = self.snapshot.load();
        // Another emission may have made it while this one waited for the lock.
        if let Some(list) = current.list_of(&event) {
            return Listeners { snapshot: current, list };
        }
        let mut next = if current.lists.len() < MOST_LISTS {
            Snapshot::clone(&current)
        } else {
            Snapshot::without_lists(current.base.clone())
        };
        let listening = entries.hooks.values().filter_map(|registered| {
            let told = registered.pattern.matching_name(&event)?;
            Some(ListedHook { told, registered: registered.clone() })
        });
        let hooks: Arc<[ListedHook]> = listening.collect();
        let gates = hooks.iter().take_while(|hook| hook.info().role == HookRole::Gate).count();
        let list = next.lists.len();
        next.by_event.insert(event.clone(), list);
        if let Some(place) = CATALOG.iter().position(|spec| event == spec.name) {
            next.by_place[place] = list as u16;
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
