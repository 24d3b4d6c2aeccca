//! Prints what keeping an audit log costs, beside floors measured in the same run.
//!
//! `cargo run --profile dist -p amplifier-bench --bin audit [FOLDER]`: the folder is where the logs are written, so that a certain disk
//! can be measured; a folder below the system's temporary one if not given.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use amplifier_audit::{Durability, Hash, Log, Verifier};
use amplifier_core::{AuditEntry, AuditLog, AuditRecord, DecisionKind, EventEntry, TOOL_PRE, data};
use futures::channel::oneshot;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How long each measurement takes at least, and how often it is made: the middle one counts, because a disk has good moments.
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 15;

fn main() -> Result<()> {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = base.join(format!("audit-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &Path) -> Result<()> {
    let line = sample(folder)?;
    println!("What it costs to keep a record of {} bytes. Records a second, median of {ROUNDS} rounds.\n", line.len());
    println!("  loop    the same line, hashed, in one write each; then one fdatasync for so many of them");
    println!(
        "  floor   the loop in a thread of its own, for as many tasks as wait for it; the loop where nobody waits"
    );
    println!(
        "  log     this log: made, searched for secrets, chained, hashed, put into the tree, signed, written, synced\n"
    );
    println!("{:>24} {:>10} {:>10} {:>10} {:>9} {:>9}", "", "loop", "floor", "log", "log/floor", "log/loop");

    // One core for those who wait; the other is the writer's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    row("no sync", folder, |file| bare(file, &line, 1_000, false), None, unsynced);
    row(
        "a sync for each record",
        folder,
        |file| bare(file, &line, 1, true),
        Some(&mut |file| handed_over(file, &line, &runtime, 1)),
        |folder| synced(folder, &runtime, 1, Durability::Record),
    );
    for waiters in [1, 8, 32, 128] {
        row(
            &format!("group, {waiters} waiting"),
            folder,
            |file| bare(file, &line, waiters, true),
            Some(&mut |file| handed_over(file, &line, &runtime, waiters)),
            |folder| synced(folder, &runtime, waiters, Durability::Group),
        );
    }
    verify(folder)
}

/// A measurement that writes to one file.
type Floor<'a> = &'a mut dyn FnMut(File) -> Result<f64>;

/// Measures all in turns, so that noise hits them alike, and compares those of the same round.
fn row(
    name: &str,
    folder: &Path,
    mut bare: impl FnMut(File) -> Result<f64>,
    mut floor: Option<Floor<'_>>,
    mut log: impl FnMut(&Path) -> Result<f64>,
) {
    let in_file = |measure: Floor<'_>| {
        let path = folder.join("floor");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let measured = shown(file.map_err(Into::into).and_then(measure));
        let _ = fs::remove_file(path);
        measured
    };
    let rounds = (0..ROUNDS).map(|round| {
        let bare = in_file(&mut bare);
        let floor = floor.as_mut().map_or(bare, |floor| in_file(floor));
        let path = folder.join(format!("log-{round}"));
        let log = shown(log(&path));
        let _ = fs::remove_dir_all(path);
        [bare, floor, log, log / floor, log / bare]
    });
    let rounds: Vec<[f64; 5]> = rounds.collect();
    let middle = [0, 1, 2, 3, 4].map(|column| median(rounds.iter().map(|round| round[column])));
    let [bare, floor, log, to_floor, to_bare] = middle;
    println!("{name:>24} {bare:>10.0} {floor:>10.0} {log:>10.0} {to_floor:>8.2}x {to_bare:>8.2}x");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn shown(result: Result<f64>) -> f64 {
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        0.0
    })
}

fn record(number: u64) -> AuditRecord {
    let data = data! {
        "tool_name": "Write", "tool_call_id": format!("call-{number}"), "session_id": "bench",
        "tool_input": { "file_path": "src/main.rs", "content": "fn main() {}" },
    };
    let entry = AuditEntry::Event(EventEntry {
        data: data.into(),
        decision: DecisionKind::Continue,
        denied_by: None,
        reason: None,
    });
    AuditRecord { at: SystemTime::now(), session: Some("bench".to_owned()), turn: 1, event: TOOL_PRE.name(), entry }
}

/// A line as the log writes it.
fn sample(folder: &Path) -> Result<Vec<u8>> {
    let log = open(&folder.join("sample"), Durability::Async)?;
    log.take(&record(0))?;
    log.close()?;
    let text = fs::read(folder.join("sample/log/seg-000001.jsonl"))?;
    Ok(text.split_inclusive(|&byte| byte == b'\n').nth(2).unwrap_or_default().to_vec())
}

fn open(folder: &Path, durability: Durability) -> Result<Log> {
    Ok(Log::at(folder.join("log"), folder.join("key")).durability(durability).open()?)
}

fn bare(mut file: File, line: &[u8], batch: usize, sync: bool) -> Result<f64> {
    let begun = Instant::now();
    let mut written = 0;
    while begun.elapsed() < ROUND {
        for _ in 0..batch {
            std::hint::black_box(Hash::leaf(line));
            file.write_all(line)?;
        }
        if sync {
            file.sync_data()?;
        }
        written += batch;
    }
    Ok(written as f64 / begun.elapsed().as_secs_f64())
}

/// The loop in a thread, for tasks that wait: each hands over a line, and goes on when that is safe. The thread knows how many they
/// are, and tells them all at once when to stop.
fn handed_over(mut file: File, line: &[u8], runtime: &tokio::runtime::Runtime, waiters: usize) -> Result<f64> {
    let (sender, lines) = mpsc::channel::<(Vec<u8>, oneshot::Sender<bool>)>();
    let writer = std::thread::spawn(move || -> std::io::Result<f64> {
        let begun = Instant::now();
        let mut waiting = Vec::with_capacity(waiters);
        let mut written = 0;
        while let Ok((line, done)) = lines.recv() {
            std::hint::black_box(Hash::leaf(&line));
            file.write_all(&line)?;
            waiting.push(done);
            if waiting.len() == waiters {
                file.sync_data()?;
                written += waiters;
                let goes_on = begun.elapsed() < ROUND;
                waiting.drain(..).for_each(|done: oneshot::Sender<bool>| _ = done.send(goes_on));
            }
        }
        Ok(written as f64 / begun.elapsed().as_secs_f64())
    });
    for _ in 0..waiters {
        let (sender, line) = (sender.clone(), line.to_vec());
        runtime.spawn(async move {
            loop {
                let (done, safe) = oneshot::channel();
                if sender.send((line.clone(), done)).is_err() || !safe.await.unwrap_or(false) {
                    break;
                }
            }
        });
    }
    drop(sender);
    Ok(writer.join().map_err(|_| "the floor panicked")??)
}

fn unsynced(folder: &Path) -> Result<f64> {
    let log = open(folder, Durability::Async)?;
    let records: Vec<AuditRecord> = (0..1_000).map(record).collect();
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < ROUND {
        for record in &records {
            log.take(record)?;
        }
        number += records.len() as u64;
    }
    let mut left = log.status().size;
    while left < number {
        std::thread::yield_now();
        left = log.status().size;
    }
    Ok(number as f64 / begun.elapsed().as_secs_f64())
}

fn synced(folder: &Path, runtime: &tokio::runtime::Runtime, waiters: usize, durability: Durability) -> Result<f64> {
    let log = open(folder, durability)?;
    let begun = Instant::now();
    let tasks = (0..waiters).map(|_| {
        let log = log.clone();
        runtime.spawn(async move {
            let mut kept = 0;
            let record = record(kept);
            while begun.elapsed() < ROUND {
                let receipt = log.take(&record).map_err(|error| error.to_string())?;
                log.flush(receipt).await.map_err(|error| error.to_string())?;
                kept += 1;
            }
            Ok::<u64, String>(kept)
        })
    });
    let mut kept = 0;
    for result in runtime.block_on(futures::future::join_all(tasks)) {
        kept += result??;
    }
    Ok(kept as f64 / begun.elapsed().as_secs_f64())
}

fn verify(folder: &Path) -> Result<()> {
    let folder = folder.join("verify");
    let log = open(&folder, Durability::Async)?;
    const RECORDS: u64 = 300_000;
    for number in 0..RECORDS {
        log.take(&record(number))?;
    }
    log.close()?;
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let report = Verifier::new().folder(folder.join("log"))?;
        if !report.is_sound() {
            return Err(report.to_string().into());
        }
        best = best.min(begun.elapsed().as_secs_f64() / report.records as f64);
    }
    println!("\nverify: {:.0} records a second", 1.0 / best);
    Ok(())
}
