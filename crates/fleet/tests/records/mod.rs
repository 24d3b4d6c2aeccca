//! Records from the log of a machine to the mirrors of collectors.

mod collectors;
mod crashes;
mod differences;
mod limits;
mod random_failures;
mod shipping;
mod store;
mod three_servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use amplifier_audit::{Log, LogOptions, PublicKey, SigningKey, Verifier};
use amplifier_core::{AuditEntry, AuditRecord, Level, MessageEntry, TOOL_PRE};
use amplifier_fleet::records::{
    Collector, CollectorKey, CollectorOptions, MirrorStatus, Shipper, ShipperOptions, ShipperStatus, verify_mirrors,
};
use amplifier_fleet::{Connection, FleetName, Replicas, create_streams};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::support::Server;

const MIB: i64 = 1 << 20;

/// The longest wait for anything on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A machine with a log.
struct Machine {
    name: FleetName,
    folder: TempDir,
}

impl Machine {
    fn new(name: &str) -> Self {
        Self { name: name.parse().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    fn options(&self) -> LogOptions {
        Log::at(self.log(), self.folder.path().join("audit.key")).segment_bytes(60_000).checkpoint_every(64)
    }

    /// Opens the log, records that many messages, and closes it, so that a checkpoint covers them.
    fn write(&self, count: usize) {
        let log = self.options().open().unwrap();
        write(&log, count);
        log.close().unwrap();
    }

    fn ship(&self, connection: &Connection) -> Shipper {
        self.ship_to(connection, &["a"])
    }

    fn ship_to(&self, connection: &Connection, collectors: &[&str]) -> Shipper {
        let mut options = ShipperOptions::new(self.log(), self.name.clone());
        for name in collectors {
            options = options.collector(name.parse().unwrap(), collector_key(name).public());
        }
        Shipper::start(std::future::ready(connection.clone()), options)
    }

    fn size(&self) -> u64 {
        Verifier::new().folder(self.log()).unwrap().size
    }

    fn id(&self) -> FleetName {
        Verifier::new().folder(self.log()).unwrap().log.parse().unwrap()
    }

    fn key(&self) -> PublicKey {
        SigningKey::load(&self.folder.path().join("audit.key")).unwrap().public()
    }
}

/// Records that many messages.
fn write(log: &Log, count: usize) {
    let receipts: Vec<_> = (0..count).map(|number| log.take(&message(&format!("message {number}"))).unwrap()).collect();
    if let Some(last) = receipts.last() {
        log.flush_blocking(*last).unwrap();
    }
}

fn message(text: &str) -> AuditRecord {
    let (source, level) = ("test".to_owned(), Level::Info);
    let entry = AuditEntry::Message(MessageEntry { shown: true, source, level, text: text.to_owned() });
    AuditRecord { at: SystemTime::now(), session: Some("s".to_owned()), turn: 1, event: TOOL_PRE.name(), entry }
}

fn collector_key(name: &str) -> SigningKey {
    SigningKey::from_seed([name.as_bytes()[0]; 32])
}

fn known_collectors() -> Vec<CollectorKey> {
    ["a", "b"].map(|name| CollectorKey { name: name.parse().unwrap(), key: collector_key(name).public() }).to_vec()
}

/// The centre: a server with its streams.
async fn centre(server: &Server) -> Connection {
    let admin = server.connect("admin").await;
    create_streams(&admin, Replicas::One, 64 * MIB).await.unwrap();
    admin
}

async fn collect(connection: &Connection, name: &str, folder: &Path) -> Collector {
    let options = CollectorOptions::new(name.parse().unwrap(), collector_key(name), folder);
    Collector::start(connection.clone(), options).await.unwrap()
}

/// Waits until the status of a shipper fulfils a condition.
async fn until(shipper: &Shipper, what: &str, is_so: impl FnMut(&ShipperStatus) -> bool) -> ShipperStatus {
    wait(shipper.status(), what, is_so).await
}

async fn wait<T: Clone + std::fmt::Debug>(
    mut status: watch::Receiver<T>,
    what: &str,
    is_so: impl FnMut(&T) -> bool,
) -> T {
    let waited = tokio::time::timeout(LIMIT, status.wait_for(is_so)).await.map(|found| found.unwrap().clone());
    waited.unwrap_or_else(|_| panic!("not {what}: {:?}", status.borrow()))
}

/// Waits until a collector has signed all records of the machine's log.
async fn until_received(shipper: &Shipper, machine: &Machine) {
    let size = machine.size();
    until(shipper, "received", |status| status.received >= size).await;
}

/// Waits until the mirror has a state.
async fn until_mirror(
    collector: &Collector,
    machine: &Machine,
    what: &str,
    mut is_so: impl FnMut(&MirrorStatus) -> bool,
) {
    let name = (machine.name.clone(), machine.id());
    wait(collector.status(), what, |status| status.mirrors.get(&name).is_some_and(&mut is_so)).await;
}

fn mirror_of(machine: &Machine, folder: &Path) -> PathBuf {
    folder.join(&*machine.name).join(&*machine.id())
}

/// The files of a log with records, and their content.
fn segments(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut files: Vec<_> = files
        .filter(|path| name(path).starts_with("seg-"))
        .map(|path| (name(&path), fs::read(&path).unwrap()))
        .collect();
    files.sort_unstable();
    files
}

/// Checks that the mirror has the bytes of the log, all of them, once, in order, and that it is sound.
#[track_caller]
fn assert_mirrored(machine: &Machine, folder: &Path) {
    let (log, mirror) = (segments(&machine.log()), segments(&mirror_of(machine, folder)));
    let sizes = |segments: &[(String, Vec<u8>)]| {
        segments.iter().map(|(name, text)| format!("{name} {}", text.len())).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&log), sizes(&mirror));
    assert!(log == mirror, "the bytes differ");
    let report = Verifier::new().key(machine.key()).folder(mirror_of(machine, folder)).unwrap();
    assert!(report.is_sound(), "{report}");
    for report in verify_mirrors(folder, &known_collectors(), &[]).unwrap() {
        assert!(report.is_sound(), "{report}");
        assert_eq!(report.receipts.len(), 1, "{report}");
    }
}

/// Waits until a file exists.
async fn until_file(file: &Path) {
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < LIMIT, "no file {}", file.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
