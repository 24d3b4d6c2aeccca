//! Servers, machines and collectors that are killed or paused at any moment: nothing is lost, repeated or out of order.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_fleet::ConnectionOptions;

use super::*;
use crate::support::new_server;

const URL: &str = "FLEET_URL";
const FOLDER: &str = "FLEET_FOLDER";
const ROLE: &str = "FLEET_ROLE";

/// The end of a process that is not killed, because its test was.
const LIFE: Duration = Duration::from_mins(10);

/// The program that is killed: a machine that records and ships, or a collector.
#[test]
fn process() {
    let (Ok(url), Ok(folder), Ok(role)) = (std::env::var(URL), std::env::var(FOLDER), std::env::var(ROLE)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let folder = PathBuf::from(folder);
        let connection = connect(&role, &url).await;
        if role == "a" {
            let _collector = collect(&connection, "a", &folder).await;
            return tokio::time::sleep(LIFE).await;
        }
        let options = ShipperOptions::new(folder.join("audit"), role.parse().unwrap());
        let options = options.collector("a".parse().unwrap(), collector_key("a").public());
        let _shipper = Shipper::start(std::future::ready(connection), options);
        let log = Log::at(folder.join("audit"), folder.join("audit.key"));
        let log = log.segment_bytes(60_000).checkpoint_every(64).open().unwrap();
        let start = Instant::now();
        for number in 0.. {
            if start.elapsed() > LIFE {
                return;
            }
            log.take(&message(&format!("message {number}"))).unwrap();
            if number % 20 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
}

/// Connects as soon as a server answers.
async fn connect(role: &str, urls: &str) -> Connection {
    let start = Instant::now();
    loop {
        match Connection::open(ConnectionOptions::new(role.parse().unwrap(), urls.split(','))).await {
            Ok(connection) => return connection,
            Err(error) => assert!(start.elapsed() < LIMIT, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(super) struct Process(Child);

impl Process {
    /// Starts a machine or a collector. `urls` has commas between the servers.
    pub(super) fn start(role: &str, folder: &Path, urls: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "records::crashes::process", "--nocapture", "--test-threads=1"])
            .envs([(URL, urls), (ROLE, role)])
            .env(FOLDER, folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // As `kill -9`.
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_machines_are_killed() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let first = machine.log().join("seg-000001.jsonl");
    for round in 0..6_u64 {
        let process = Process::start("m1", machine.folder.path(), &server.url());
        until_file(&first).await;
        tokio::time::sleep(Duration::from_millis(300 + 137 * round)).await;
        drop(process);
    }
    // The next start repairs the log and ships the rest.
    machine.write(10);
    let shipper = machine.ship(&connection);
    until_received(&shipper, &machine).await;
    assert!(machine.size() > 300, "{}", machine.size());
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_collectors_are_killed() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let shipper = machine.ship(&connection);
    let writer = Writer::start(&machine);
    for round in 0..5_u64 {
        let process = Process::start("a", mirrors.path(), &server.url());
        tokio::time::sleep(Duration::from_millis(400 + 173 * round)).await;
        drop(process);
    }
    writer.stop();
    let _collector = collect(&connection, "a", mirrors.path()).await;
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

/// Writes to a log until it is stopped.
struct Writer {
    is_stopped: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Writer {
    fn start(machine: &Machine) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (stopped, log) = (is_stopped.clone(), machine.options().open().unwrap());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                write(&log, 10);
                std::thread::sleep(Duration::from_millis(4));
            }
            log.close().unwrap();
        });
        Self { is_stopped, thread }
    }

    fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_server_is_killed_or_paused() {
    let Some(program) = new_server() else { return };
    let mut server = Server::start(&program, "");
    let connection = centre(&server).await;
    let mirrors = tempfile::tempdir().unwrap();
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let machines = ["m1", "m2", "m3"].map(Machine::new);
    let shippers = machines.each_ref().map(|machine| machine.ship(&connection));
    let writers = machines.each_ref().map(Writer::start);
    for shipper in &shippers {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.restart();
        let received = shipper.status().borrow().received;
        until(shipper, "going on", |status| status.received > received).await;
    }
    // Longer than the time limit of a request: acks arrive too late.
    server.pause();
    tokio::time::sleep(Duration::from_millis(3_000)).await;
    server.resume();
    tokio::time::sleep(Duration::from_millis(500)).await;
    for writer in writers {
        writer.stop();
    }
    for (machine, shipper) in machines.iter().zip(&shippers) {
        until_received(shipper, machine).await;
        assert_eq!(shipper.status().borrow().lost_by_centre, 0);
        assert_mirrored(machine, mirrors.path());
    }
}
