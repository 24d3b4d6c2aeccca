//! Prints the speed of records on their way from one log to a collector.
//!
//! `NATS_SERVER=PROGRAM cargo run --profile dist -p amplifier-bench --features fleet --bin fleet-records [--records N]`: the servers run on this machine,
//! and sync every message.

mod centre;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use amplifier_audit::{Log, LogStatus, SigningKey, Verifier};
use amplifier_core::{AuditEntry, AuditLog, AuditRecord, Level, MessageEntry, TOOL_PRE};
use amplifier_fleet::Connection;
use amplifier_fleet::records::{Collector, CollectorOptions, CollectorStatus, Shipper, ShipperOptions, ShipperStatus};

use self::centre::Centre;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The time limit of one step.
const LIMIT: Duration = Duration::from_secs(300);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut records = 200_000;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--records" => records = arguments.next().ok_or("`--records` needs a number")?.parse()?,
            _ => return Err(format!("unknown argument `{argument}`").into()),
        }
    }
    let program = std::env::var_os("NATS_SERVER").map(PathBuf::from).ok_or("set `NATS_SERVER` to a NATS server")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        println!("{:>28} {:>12} {:>12}", "records/s of one log", "in stream", "mirrored");
        for servers in [1, 3] {
            let centre = Centre::start(&program, servers)?;
            let connection = centre.create_streams().await?;
            throughput(&format!("{servers} server(s)"), &connection, records).await?;
            if servers == 1 {
                continue;
            }
            delay(&connection).await?;
            cost(&connection, centre).await?;
        }
        Ok(())
    })
}

fn machine_log(folder: &Path) -> Result<Log> {
    Ok(Log::at(folder.join("audit"), folder.join("audit.key")).open()?)
}

fn record(number: usize) -> AuditRecord {
    let text = format!("message {number} {}", "of a usual length ".repeat(18));
    let entry = AuditEntry::Message(MessageEntry { shown: true, source: "bench".to_owned(), level: Level::Info, text });
    AuditRecord { at: SystemTime::now(), session: Some("s".to_owned()), turn: 1, event: TOOL_PRE.name(), entry }
}

fn write(log: &Log, count: usize) -> Result<()> {
    let mut last = None;
    for number in 0..count {
        last = Some(loop {
            match log.take(&record(number)) {
                Ok(receipt) => break receipt,
                // The queue is full.
                Err(amplifier_audit::AuditError::Overloaded { .. }) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.into()),
            }
        });
    }
    last.map_or(Ok(()), |last| Ok(log.flush_blocking(last)?))
}

fn ship(folder: &Path, connection: &Connection) -> Result<Shipper> {
    let options = ShipperOptions::new(folder.join("audit"), "m1".parse()?);
    let options = options.collector("a".parse()?, SigningKey::from_seed([1; 32]).public());
    Ok(Shipper::start(std::future::ready(connection.clone()), options))
}

async fn collect(folder: &Path, connection: &Connection) -> Result<Collector> {
    let options = CollectorOptions::new("a".parse()?, SigningKey::from_seed([1; 32]), folder.join("mirrors"));
    Ok(Collector::start(connection.clone(), options).await?)
}

async fn until(shipper: &Shipper, is_so: impl FnMut(&ShipperStatus) -> bool) -> Result<()> {
    let mut status = shipper.status();
    let waited = tokio::time::timeout(LIMIT, status.wait_for(is_so)).await.map(|found| found.map(|_| ()));
    waited.map_err(|_| format!("stuck: {:?}", shipper.status().borrow()))??;
    Ok(())
}

/// A log that exists already, from its first record to the last receipt.
async fn throughput(name: &str, connection: &Connection, records: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = machine_log(folder.path())?;
    write(&log, records)?;
    log.close()?;
    let size = Verifier::new().folder(folder.path().join("audit"))?.size;
    let collector = collect(folder.path(), connection).await?;
    let begun = Instant::now();
    let shipper = ship(folder.path(), connection)?;
    until(&shipper, |status| status.sent >= size).await?;
    let sent = begun.elapsed();
    until(&shipper, |status| status.received >= size).await?;
    let received = begun.elapsed();
    drop((shipper, collector));
    let rate = |time: Duration| size as f64 / time.as_secs_f64();
    println!("{name:>28} {:>12.0} {:>12.0}", rate(sent), rate(received));
    Ok(())
}

/// A record a moment, each from its sync to the mirror, and to the receipt.
async fn delay(connection: &Connection) -> Result<()> {
    const RECORDS: usize = 200;
    let folder = tempfile::tempdir()?;
    let log = machine_log(folder.path())?;
    let collector = collect(folder.path(), connection).await?;
    let shipper = ship(folder.path(), connection)?;
    let (mut mirrored, mut received) = (Vec::new(), Vec::new());
    for number in 0..RECORDS {
        let receipt = log.take(&record(number))?;
        log.flush(receipt).await?;
        let (begun, LogStatus { size, log: id, .. }) = (Instant::now(), log.status());
        let mut mirrors = collector.status();
        let is_mirrored =
            |all: &CollectorStatus| all.mirrors.iter().any(|((_, log), mirror)| **log == *id && mirror.size >= size);
        tokio::time::timeout(LIMIT, mirrors.wait_for(is_mirrored)).await??;
        mirrored.push(begun.elapsed());
        // A receipt needs the next checkpoint of the log. Only some records wait for it, because that takes a second.
        if number % 10 == 0 {
            until(&shipper, |status| status.received >= size).await?;
            received.push(begun.elapsed());
        }
    }
    println!("\n{:>28} {:>12} {:>12}", "after its sync (ms)", "p50", "p99");
    row("in a synced mirror", mirrored);
    row("receipt on the machine", received);
    Ok(())
}

/// Synced records of an agent: alone, while they are shipped, and while the centre is away.
async fn cost(connection: &Connection, mut centre: Centre) -> Result<()> {
    const ROUNDS: usize = 15;
    let folder = tempfile::tempdir()?;
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    let _collector = collect(folder.path(), connection).await?;
    for round in 0..ROUNDS {
        for shipped in [false, true] {
            let shipper = if shipped { Some(ship(folder.path(), connection)?) } else { None };
            rounds[usize::from(shipped)].push(synced(folder.path(), round).await?);
            drop(shipper);
        }
    }
    centre.stop();
    for round in 0..ROUNDS {
        let _shipper = ship(folder.path(), connection)?;
        rounds[2].push(synced(folder.path(), round).await?);
        rounds[0].push({
            drop(_shipper);
            synced(folder.path(), round).await?
        });
    }
    println!("\n{:>28} {:>12} {:>12}", "a synced record (µs)", "p50", "best");
    for (name, mut times) in ["alone", "while shipping", "centre stopped"].into_iter().zip(rounds) {
        times.sort_unstable();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!("{name:>28} {:>12.1} {:>12.1}", micros(times[times.len() / 2]), micros(times[0]));
    }
    Ok(())
}

/// Returns the time of a record: taken, and synced.
async fn synced(folder: &Path, round: usize) -> Result<Duration> {
    const RECORDS: u32 = 300;
    let log = machine_log(folder)?;
    let begun = Instant::now();
    for number in 0..RECORDS {
        let receipt = log.take(&record(round * 1_000 + number as usize))?;
        log.flush(receipt).await?;
    }
    let time = begun.elapsed() / RECORDS;
    log.close()?;
    Ok(time)
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!("{name:>28} {:>12.1} {:>12.1}", at(0.5), at(0.99));
}
