//! The browsers: each watches the stream, and sees that nothing is missing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use memchr::memmem::find_iter;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::figures::Spread;
use crate::http::{Reach, Socket};
use crate::sessions::{Tally, name};
use crate::{Load, Result};

/// One in so many is slow, and one in so many watches a single session.
const SLOW: usize = 20;
const OF_ONE: usize = 20;
/// How long a slow one takes for a message, and how long it looks elsewhere, once.
const PAUSE: Duration = Duration::from_millis(100);
const ABSENCE: Duration = Duration::from_secs(5);
/// One in so many looks how old events are when they arrive.
const TIMED: usize = 10;

/// All browsers.
pub(crate) struct Audience {
    begun: Instant,
    /// The first record that all of them see.
    first: u64,
    seen: Mutex<Vec<Arc<Mutex<Seen>>>>,
    is_late: Arc<AtomicBool>,
}

/// What a browser has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The session that it watches; all if none.
    only: Option<usize>,
    is_slow: bool,
    /// The next record that has to come, if it watches all.
    next: u64,
    events: u64,
    records: u64,
    messages: u64,
    bytes: u64,
    /// How often it was told all anew.
    anew: u64,
    /// How often it was cut off.
    cut_off: u64,
    lags: Vec<Duration>,
    fault: Option<String>,
}

/// What all have seen together.
pub(crate) struct Total {
    pub(crate) records: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) anew: u64,
    pub(crate) cut_off: u64,
    pub(crate) slow: usize,
    pub(crate) of_one: usize,
    pub(crate) lag: Spread,
    pub(crate) faults: Vec<String>,
}

impl Total {
    pub(crate) fn bytes_each(&self) -> u64 {
        self.bytes / self.messages.max(1)
    }
}

impl Audience {
    pub(crate) fn new(begun: Instant, first: u64) -> Self {
        Self { begun, first, seen: Mutex::default(), is_late: Arc::default() }
    }

    /// Has all of them connect.
    pub(crate) async fn fill(&self, load: Load, reach: &Reach, browsers: &Handle) -> Result<()> {
        for number in 0..load.watchers {
            let only = (number % OF_ONE == 1).then_some(number % load.sessions);
            let is_slow = number % SLOW == 2;
            let (other, first) = (reach.clone(), self.first);
            let socket = browsers.spawn(async move { other.socket(&path(only, first)).await }).await??;
            let seen = Seen { only, is_slow, next: self.first, ..Seen::default() };
            let seen = Arc::new(Mutex::new(seen));
            lock(&self.seen).push(seen.clone());
            let begun = (number % TIMED == 0).then_some(self.begun);
            browsers.spawn(watch(reach.clone(), socket, seen, begun, self.is_late.clone()));
        }
        Ok(())
    }

    /// Nobody is slow any more.
    pub(crate) fn hurry(&self) {
        self.is_late.store(true, Ordering::Relaxed);
    }

    /// Whether every browser has all that it watches.
    pub(crate) fn have_all(&self, size: u64, tally: &Tally) -> bool {
        lock(&self.seen).iter().all(|seen| lock(seen).lacks(size, tally).is_none())
    }

    pub(crate) fn total(&self, size: u64, tally: &Tally) -> Total {
        let all = lock(&self.seen);
        let seen: Vec<MutexGuard<'_, Seen>> = all.iter().map(|seen| lock(seen)).collect();
        let sum = |of: fn(&Seen) -> u64| seen.iter().map(|seen| of(seen)).sum();
        Total {
            records: sum(|seen| seen.records),
            messages: sum(|seen| seen.messages),
            bytes: sum(|seen| seen.bytes),
            anew: sum(|seen| seen.anew),
            cut_off: sum(|seen| seen.cut_off),
            slow: seen.iter().filter(|seen| seen.is_slow).count(),
            of_one: seen.iter().filter(|seen| seen.only.is_some()).count(),
            lag: Spread::of(seen.iter().flat_map(|seen| seen.lags.iter().copied()).collect()),
            faults: seen.iter().filter_map(|seen| seen.fault.clone().or_else(|| seen.lacks(size, tally))).collect(),
        }
    }
}

impl Seen {
    /// What is still to come.
    fn lacks(&self, size: u64, tally: &Tally) -> Option<String> {
        let (has, wants) = match self.only {
            Some(only) => (self.events, tally.each.get(only).copied().unwrap_or_default()),
            None if self.next == size => (self.events, tally.emitted),
            None => (self.next, size),
        };
        (has != wants).then(|| format!("a browser has {has} of {wants}"))
    }

    /// Takes in a message of the server.
    fn take(&mut self, text: &str, begun: Option<Instant>) {
        self.messages += 1;
        self.bytes += text.len() as u64;
        if text.starts_with("{\"type\":\"hello\"") {
            self.anew += u64::from(self.messages > 1);
        }
        if !text.starts_with("{\"type\":\"events\"") {
            return;
        }
        for seq in numbers(text, "{\"seq\":") {
            self.records += 1;
            if self.only.is_none() && seq != self.next {
                self.fault.get_or_insert_with(|| format!("after record {} came {seq}", self.next));
            }
            self.next = seq + 1;
        }
        for number in numbers(text, "\"number\":") {
            if self.only.is_some() && number != self.events {
                self.fault.get_or_insert_with(|| format!("after event {} of a session came {number}", self.events));
            }
            self.events += 1;
        }
        if let Some(begun) = begun {
            let now = begun.elapsed();
            let sent = numbers(text, "\"sent\":").map(Duration::from_micros);
            self.lags.extend(sent.map(|sent| now.saturating_sub(sent)));
        }
    }
}

/// The numbers after a name.
fn numbers<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = u64> + 'a {
    find_iter(text.as_bytes(), name).filter_map(move |place| {
        let rest = &text[place + name.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

/// Where a browser finds what it watches, from a record on.
fn path(only: Option<usize>, after: u64) -> String {
    let only = only.map(|only| format!("&session={}&kind=event", name(only)));
    format!("/api/stream?after={after}{}", only.unwrap_or_default())
}

/// Watches, and comes back when it is cut off: the server does that to those who take nothing for too long.
async fn watch(
    reach: Reach,
    mut socket: Socket,
    seen: Arc<Mutex<Seen>>,
    begun: Option<Instant>,
    is_late: Arc<AtomicBool>,
) {
    let (only, is_slow) = {
        let seen = lock(&seen);
        (seen.only, seen.is_slow)
    };
    let mut was_absent = false;
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => lock(&seen).take(&text, begun),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            _ => {
                let next = lock(&seen).next;
                // The server ends at last, when everybody has everything.
                let Ok(again) = reach.socket(&path(only, next)).await else { return };
                lock(&seen).cut_off += 1;
                socket = again;
                continue;
            }
        }
        if is_slow && !is_late.load(Ordering::Relaxed) {
            sleep(if was_absent { PAUSE } else { ABSENCE }).await;
            was_absent = true;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
