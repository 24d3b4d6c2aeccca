//! A disk that fails in every way, at every call: what is left is a sound log, or a clear refusal.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use amplifier_audit::{Durability, Lock, Log, LogOptions, Report, SigningKey, Storage, Verifier, read_records};
use common::message;

/// What is on the disk: files by their names, and what of them survives a loss of power.
#[derive(Clone, Default)]
struct State {
    names: BTreeMap<String, usize>,
    /// The names that survive.
    safe_names: BTreeMap<String, usize>,
    files: Vec<Content>,
    /// How many calls there were that change something, and what each did.
    calls: Vec<String>,
    fault: Option<(usize, Fault)>,
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    safe: Vec<u8>,
}

/// What goes wrong, from the call with that number on.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Power is lost after so many bytes of it.
    Power(usize),
    /// So many calls fail, and leave so many bytes behind.
    Fails { calls: usize, error: io::ErrorKind, after: usize },
    /// It takes only so many bytes at once.
    Short(usize),
}

/// What a loss of power leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Nothing,
    All,
    /// The file has its length, and nothing in it.
    Zeros,
    /// The first so many bytes are lost, the rest is there.
    Hole(usize),
}

#[derive(Clone, Default)]
struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn failing(call: usize, fault: Fault) -> Self {
        let disk = Self::default();
        disk.state().fault = Some((call, fault));
        disk
    }

    /// The disk after power was lost. `names` says whether names that were not synced survive.
    fn after_power_loss(&self, left: Left, names: bool) -> Self {
        let mut state = self.state().clone();
        for file in &mut state.files {
            let kept = match left {
                Left::Nothing => file.safe.clone(),
                Left::All => file.bytes.clone(),
                _ if file.bytes.len() <= file.safe.len() => file.bytes.clone(),
                Left::Zeros => [&file.safe[..], &vec![0; file.bytes.len() - file.safe.len()]].concat(),
                Left::Hole(bytes) => {
                    let mut kept = file.bytes.clone();
                    let end = (file.safe.len() + bytes).min(kept.len());
                    kept[file.safe.len()..end].fill(0);
                    kept
                }
            };
            *file = Content { bytes: kept.clone(), safe: kept };
        }
        if !names {
            state.names = state.safe_names.clone();
        }
        state.safe_names = state.names.clone();
        state.fault = None;
        Self(Arc::new(Mutex::new(state)))
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
            Some((at, Fault::Fails { calls, error, after })) if (at..at + calls).contains(&number) => {
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

impl Storage for Disk {
    fn lock(&self) -> io::Result<Lock> {
        Ok(Lock::new(()))
    }

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
        Ok(self.state().file(file)?.bytes[from as usize..].to_vec())
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
        state.call(format!("sync {file}"), 0).1?;
        let file = state.file(file)?;
        file.safe = file.bytes.clone();
        Ok(())
    }

    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        let mut state = self.state();
        state.call(format!("truncate {file}"), 0).1?;
        state.file(file)?.bytes.truncate(size as usize);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call(format!("rename {from}"), 0).1?;
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

fn options(disk: &Disk, durability: Durability) -> LogOptions {
    let key = SigningKey::from_seed([7; 32]);
    Log::on(Arc::new(disk.clone()), key)
        .durability(durability)
        .segment_bytes(3_000)
        .checkpoint_every(4)
        .checkpoint_after(Duration::from_millis(2))
        .blob_above(600)
}

/// Writes to a log as long as it works; gives the texts of the records that it acknowledged.
fn work(disk: &Disk, durability: Durability) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let Ok(log) = options(disk, durability).open() else { return acknowledged };
    for number in 0..9 {
        // One of them is a blob.
        let text = if number == 5 { format!("text {number} {}", "x".repeat(700)) } else { format!("text {number}") };
        let Ok(receipt) = log.take(&message("s", &text)) else { continue };
        if log.flush_blocking(receipt).is_ok() {
            acknowledged.push(text);
        }
    }
    acknowledged
}

fn texts(disk: &Disk) -> Vec<String> {
    let mut texts = Vec::new();
    read_records(disk, |record| {
        let mut body: serde_json::Value = serde_json::from_str(record.body.get()).unwrap();
        if let Some(blob) = body["blob"].as_str() {
            let file = format!("blobs/{}/{}", &blob[7..9], &blob[7..]);
            body = serde_json::from_slice(&disk.read(&file, 0).unwrap()).unwrap();
        }
        texts.extend(body["text"].as_str().map(str::to_owned));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    texts
}

/// Opens the log again, writes one more record, and verifies it.
fn go_on(disk: &Disk, durability: Durability) -> Result<Report, String> {
    let log = options(disk, durability).open().map_err(|error| error.to_string())?;
    let receipt = log.take(&message("s", "one more")).map_err(|error| error.to_string())?;
    log.flush_blocking(receipt).map_err(|error| error.to_string())?;
    log.close().map_err(|error| error.to_string())?;
    Verifier::new().storage(disk).map_err(|error| error.to_string())
}

/// How many calls the work takes when nothing fails, and what each is.
fn calls(durability: Durability) -> Vec<String> {
    let disk = Disk::default();
    let acknowledged = work(&disk, durability);
    assert_eq!(acknowledged.len(), 9);
    let report = go_on(&disk, durability).unwrap();
    assert!(report.is_sound() && report.segments > 1 && report.blobs == 1, "{report}");
    disk.state().calls.clone()
}

fn check_power_loss(durability: Durability, call: usize, after: usize, lefts: &[(Left, bool)]) -> usize {
    let disk = Disk::failing(call, Fault::Power(after));
    let acknowledged = work(&disk, durability);
    for &(left, names) in lefts {
        let case = format!("{durability:?}, call {call}, {after} bytes, {left:?}, names {names}");
        let disk = disk.after_power_loss(left, names);
        let report = go_on(&disk, durability).unwrap_or_else(|error| panic!("{case}: {error}"));
        // A hole may leave a whole record after a broken one, and that counts as a breach whoever did it.
        if !(matches!(left, Left::Hole(_)) && report.breaches > 0) {
            assert!(report.is_sound(), "{case}: {report}");
            if durability != Durability::Async {
                let texts = texts(&disk);
                let lost: Vec<_> = acknowledged.iter().filter(|text| !texts.contains(text)).collect();
                assert!(lost.is_empty(), "{case}: lost {lost:?}\n{report}");
            }
        }
    }
    lefts.len()
}

#[test]
fn power_is_lost_at_every_call() {
    let mut cases = 0;
    for durability in [Durability::Group, Durability::Record, Durability::Async] {
        for call in 0..calls(durability).len() {
            let lefts = [Left::Nothing, Left::All, Left::Zeros, Left::Hole(100), Left::Hole(512)];
            let lefts: Vec<_> = lefts.into_iter().flat_map(|left| [(left, false), (left, true)]).collect();
            cases += check_power_loss(durability, call, usize::MAX, &lefts);
        }
    }
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn power_is_lost_after_every_byte_of_every_write() {
    let mut cases = 0;
    for (call, what) in calls(Durability::Group).iter().enumerate() {
        let Some(bytes) = what.strip_prefix("append ").and_then(|rest| rest.split(' ').next()) else { continue };
        for after in 0..=bytes.parse().unwrap() {
            cases += check_power_loss(Durability::Group, call, after, &[(Left::All, true)]);
        }
    }
    assert!(cases > 5_000, "{cases}");
}

#[test]
fn every_call_fails_once_and_for_a_while() {
    for durability in [Durability::Group, Durability::Record, Durability::Async] {
        let count = calls(durability).len();
        for error in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
            for (calls, after) in [(1, 0), (1, 50), (7, 30), (40, 0)] {
                for call in 0..count {
                    let case = format!("{durability:?}, call {call}, {calls} calls with {error:?} after {after} bytes");
                    let disk = Disk::failing(call, Fault::Fails { calls, error, after });
                    let acknowledged = work(&disk, durability);
                    disk.state().fault = None;
                    let report = go_on(&disk, durability).unwrap_or_else(|error| panic!("{case}: {error}"));
                    assert!(report.is_sound(), "{case}: {report}");
                    let texts = texts(&disk);
                    let lost: Vec<_> = acknowledged.iter().filter(|text| !texts.contains(text)).collect();
                    assert!(lost.is_empty() || durability == Durability::Async, "{case}: lost {lost:?}\n{report}");
                    assert!(lost.is_empty() || report.gaps > 0, "{case}: lost {lost:?} without a word\n{report}");
                }
            }
        }
    }
}

#[test]
fn short_writes_change_nothing() {
    for most in [1, 7, 100] {
        let disk = Disk::failing(0, Fault::Short(most));
        assert_eq!(work(&disk, Durability::Group).len(), 9);
        let report = go_on(&disk, Durability::Group).unwrap();
        assert!(report.is_sound() && report.recoveries == 0, "{report}");
    }
}

#[test]
fn a_full_disk_denies_until_there_is_room_and_then_says_what_is_missing() {
    let disk = Disk::default();
    let log = options(&disk, Durability::Group).open().unwrap();
    let receipt = log.take(&message("s", "before")).unwrap();
    log.flush_blocking(receipt).unwrap();
    disk.state().fault = Some((0, Fault::Fails { calls: usize::MAX, error: io::ErrorKind::StorageFull, after: 0 }));
    let receipt = log.take(&message("s", "lost")).unwrap();
    let error = log.flush_blocking(receipt).unwrap_err().to_string();
    assert!(error.contains("could not keep its records"), "{error}");
    assert!(log.take(&message("s", "refused")).is_err());
    assert!(log.status().failure.is_some());

    disk.state().fault = None;
    let begun = Instant::now();
    while log.status().failure.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not recover");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(log.flush_blocking(receipt).is_err(), "what was lost stays lost for whoever recorded it");
    let receipt = log.take(&message("s", "after")).unwrap();
    log.flush_blocking(receipt).unwrap();
    log.close().unwrap();
    assert_eq!(texts(&disk), ["before", "after"]);
    let report = Verifier::new().storage(&disk).unwrap();
    assert!(report.is_sound() && report.gaps == 1, "{report}");
    let mut gap = serde_json::Value::Null;
    read_records(&disk, |record| {
        if record.kind == amplifier_audit::Kind::Gap {
            gap = serde_json::from_str(record.body.get()).unwrap();
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((&gap["lost"], &gap["kinds"]["message"]), (&2.into(), &2.into()), "{gap}");
}
