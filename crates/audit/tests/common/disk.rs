//! A simulated disk: what was not synced is lost with the power, and every call can fail.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use amplifier_audit::{Lock, RecordSource, Storage};

/// The content of the disk: files by name, with the part that survives a loss of power.
#[derive(Clone, Default)]
pub(crate) struct State {
    names: BTreeMap<String, usize>,
    /// The names that survive.
    safe_names: BTreeMap<String, usize>,
    files: Vec<Content>,
    /// The calls that changed something.
    pub(crate) calls: Vec<String>,
    /// The failure, from the call with that number on.
    pub(crate) fault: Option<(usize, Fault)>,
    /// So many syncs of segments fail.
    pub(crate) failing_syncs: usize,
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    safe: Vec<u8>,
    /// Bytes that can still be read, but never become safe.
    dropped: Vec<Range<usize>>,
}

impl Content {
    /// The files, without dropped bytes.
    fn without_dropped(&self) -> Vec<u8> {
        let mut kept = self.bytes.clone();
        let end = kept.len();
        for dropped in &self.dropped {
            kept[dropped.start.min(end)..dropped.end.min(end)].fill(0);
        }
        kept
    }
}

/// A kind of failure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Power is lost after so many bytes of it.
    Power(usize),
    /// So many calls fail, and leave so many bytes behind.
    Fails { calls: usize, error: io::ErrorKind, after: usize },
    /// It takes only so many bytes at once.
    Short(usize),
}

/// The unsynced bytes that a loss of power leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Left {
    Nothing,
    All,
    /// The file has its length, and nothing in it.
    Zeros,
    /// The first so many bytes are lost, the rest is there.
    Hole(usize),
}

#[derive(Clone, Default)]
pub(crate) struct Disk {
    state: Arc<Mutex<State>>,
    turn: Arc<Turn>,
}

impl Disk {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn failing(call: usize, fault: Fault) -> Self {
        let disk = Self::default();
        disk.state().fault = Some((call, fault));
        disk
    }

    /// The disk as it is now, for whoever comes when all writers were killed.
    pub(crate) fn after_kill(&self) -> Self {
        let state = self.state().clone();
        Self { state: Arc::new(Mutex::new(state)), turn: Arc::default() }
    }

    /// The disk after power was lost. `names` says whether names that were not synced survive.
    pub(crate) fn after_power_loss(&self, left: Left, names: bool) -> Self {
        let mut state = self.state().clone();
        for file in &mut state.files {
            let bytes = file.without_dropped();
            let kept = match left {
                Left::Nothing => file.safe.clone(),
                Left::All => bytes,
                _ if bytes.len() <= file.safe.len() => bytes,
                Left::Zeros => [&file.safe[..], &vec![0; bytes.len() - file.safe.len()]].concat(),
                Left::Hole(hole) => {
                    let mut kept = bytes;
                    let end = (file.safe.len() + hole).min(kept.len());
                    kept[file.safe.len()..end].fill(0);
                    kept
                }
            };
            *file = Content { bytes: kept.clone(), safe: kept, dropped: Vec::new() };
        }
        if !names {
            state.names = state.safe_names.clone();
        }
        state.safe_names = state.names.clone();
        state.fault = None;
        Self { state: Arc::new(Mutex::new(state)), turn: Arc::default() }
    }
}

impl State {
    /// Counts a call. Gives how many of so many bytes may be written, and then the error.
    fn call(&mut self, what: String, bytes: usize) -> (usize, io::Result<()>) {
        let number = self.calls.len();
        self.calls.push(what);
        match self.fault {
            Some((at, Fault::Power(after))) if number >= at => {
                let written = if number == at { after.min(bytes) } else { 0 };
                (written, Err(io::Error::other("no power")))
            }
            Some((at, Fault::Fails { calls, error, after })) if (at..at.saturating_add(calls)).contains(&number) => {
                (after.min(bytes), Err(error.into()))
            }
            Some((at, Fault::Short(most))) if number >= at => (most.min(bytes), Ok(())),
            _ => (bytes, Ok(())),
        }
    }

    fn file(&mut self, name: &str) -> io::Result<&mut Content> {
        let number = *self.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(&mut self.files[number])
    }
}

/// One after another: a lock as several processes see it.
#[derive(Default)]
struct Turn {
    is_taken: Mutex<bool>,
    given_back: Condvar,
}

struct Taken(Arc<Turn>);

impl Drop for Taken {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap() = false;
        self.0.given_back.notify_one();
    }
}

impl RecordSource for Disk {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let state = self.state();
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let names = state.names.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn size(&self, file: &str) -> io::Result<Option<u64>> {
        Ok(self.state().file(file).ok().map(|file| file.bytes.len() as u64))
    }

    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>> {
        Ok(self.state().file(file)?.bytes.get(from as usize..).unwrap_or_default().to_vec())
    }
}

impl Storage for Disk {
    fn lock(&self) -> io::Result<Lock> {
        let is_taken = self.turn.is_taken.lock().unwrap();
        *self.turn.given_back.wait_while(is_taken, |is_taken| *is_taken).unwrap() = true;
        Ok(Lock::new(Taken(self.turn.clone())))
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        let (written, result) = state.call(format!("append {} to {file}", bytes.len()), bytes.len());
        if !state.names.contains_key(file) {
            state.files.push(Content::default());
            let number = state.files.len() - 1;
            state.names.insert(file.to_owned(), number);
        }
        state.file(file)?.bytes.extend_from_slice(&bytes[..written]);
        result.map(|()| written)
    }

    fn sync(&self, file: &str) -> io::Result<()> {
        let mut state = self.state();
        let mut result = state.call(format!("sync {file}"), 0).1;
        if state.failing_syncs > 0 && file.starts_with("seg-") && !file.ends_with(".tmp") {
            state.failing_syncs -= 1;
            result = Err(io::Error::other("the disk has failed"));
        }
        let has_power = !matches!(state.fault, Some((_, Fault::Power(_))));
        let file = state.file(file)?;
        if result.is_ok() {
            file.safe = file.without_dropped();
        } else if has_power && file.safe.len() < file.bytes.len() {
            // As Linux does it: the pages count as written from now on, and nobody writes them any more.
            file.dropped.push(file.safe.len()..file.bytes.len());
        }
        result
    }

    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        let mut state = self.state();
        state.call(format!("truncate {file}"), 0).1?;
        let file = state.file(file)?;
        file.bytes.truncate(size as usize);
        // What is written there later is written.
        file.dropped.iter_mut().for_each(|dropped| dropped.end = dropped.end.min(size as usize).max(dropped.start));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call(format!("rename {from}"), 0).1?;
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let number = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call(format!("remove {file}"), 0).1?;
        state.names.remove(file);
        Ok(())
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        self.state().call(format!("make {folder}"), 0).1
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call(format!("sync folder {folder}"), 0).1?;
        let is_in = |name: &String| name.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
        let mut safe = state.safe_names.clone();
        safe.retain(|name, _| !is_in(name));
        safe.extend(state.names.iter().filter(|(name, _)| is_in(name)).map(|(name, file)| (name.clone(), *file)));
        state.safe_names = safe;
        Ok(())
    }
}

/// Shows every call before it is done, as `sync seg-000001.jsonl`. The test can wait there, do something else, or let it fail.
pub(crate) struct Watched<S, F> {
    storage: S,
    before: F,
}

impl<S: Storage, F: Fn(&str) -> io::Result<()> + Send + Sync + 'static> Watched<S, F> {
    pub(crate) fn new(storage: S, before: F) -> Arc<Self> {
        Arc::new(Self { storage, before })
    }

    fn before(&self, call: &str, name: &str) -> io::Result<&S> {
        (self.before)(format!("{call} {name}").trim_end())?;
        Ok(&self.storage)
    }
}

impl<S: Storage, F: Fn(&str) -> io::Result<()> + Send + Sync + 'static> RecordSource for Watched<S, F> {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.before("list", folder)?.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<Option<u64>> {
        self.before("size", file)?.size(file)
    }

    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>> {
        self.before("read", file)?.read(file, from)
    }
}

impl<S: Storage, F: Fn(&str) -> io::Result<()> + Send + Sync + 'static> Storage for Watched<S, F> {
    fn lock(&self) -> io::Result<Lock> {
        self.before("lock", "")?.lock()
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize> {
        self.before("append", file)?.append(file, bytes)
    }

    fn sync(&self, file: &str) -> io::Result<()> {
        self.before("sync", file)?.sync(file)
    }

    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        self.before("truncate", file)?.truncate(file, size)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.before("rename", from)?.rename(from, to)
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.before("remove", file)?.remove(file)
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        self.before("make", folder)?.make_folder(folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.before("sync folder", folder)?.sync_folder(folder)
    }
}
