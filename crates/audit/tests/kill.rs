//! Writers that are killed at any moment: what they acknowledged is there, nothing forks, and the log is sound after it.
//!
//! The test starts itself anew as the writers. `AUDIT_KILL_CYCLES` says how often writers are killed; see `bench/kill`.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common::{Place, json, message};
use amplifier_audit::{Durability, Log, SigningKey};

const FOLDER: &str = "AUDIT_KILL_FOLDER";
const LEVEL: &str = "AUDIT_KILL_LEVEL";
const NAME: &str = "AUDIT_KILL_NAME";

/// The program that is killed: records, waits until that is safe, and says so.
#[test]
fn writer() {
    let (Ok(folder), Ok(level), Ok(name)) = (std::env::var(FOLDER), std::env::var(LEVEL), std::env::var(NAME)) else {
        return;
    };
    let durability = if level == "record" { Durability::Record } else { Durability::Group };
    let log = Log::at(format!("{folder}/audit"), format!("{folder}/audit.key"))
        .durability(durability)
        .segment_bytes(30_000)
        .checkpoint_every(16)
        .open()
        .unwrap();
    let mut out = std::io::stdout();
    for number in 0_u64.. {
        let text = format!("{name}/{number}");
        let receipt = log.take(&message(&name, &text)).unwrap();
        // Several at once, so that some are under way when the end comes.
        if number.is_multiple_of(3) {
            log.flush_blocking(receipt).unwrap();
            writeln!(out, "kept {number}").unwrap();
        }
        if level == "rotating" && number.is_multiple_of(2) {
            log.rotate_key(SigningKey::generate().unwrap()).unwrap();
        }
    }
}

struct Writer {
    name: String,
    child: Child,
    lines: mpsc::Receiver<u64>,
    last: Option<u64>,
}

impl Writer {
    fn start(place: &Place, level: &str, name: String) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::writer", "--nocapture", "--test-threads=1"])
            .env(FOLDER, place.at(""))
            .env(LEVEL, level)
            .env(NAME, &name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(number) = line.strip_prefix("kept ").and_then(|number| number.parse().ok()) {
                    let _ = sender.send(number);
                }
            }
        });
        Self { name, child, lines, last: None }
    }

    /// Waits until it has kept something more.
    fn wait(&mut self) {
        self.last = Some(self.lines.recv_timeout(Duration::from_secs(60)).unwrap());
    }

    /// Kills it, and gives the last number that it said was kept.
    fn kill(mut self) -> (String, Option<u64>) {
        self.child.kill().unwrap();
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "the writer failed: {said}");
        (self.name, self.lines.into_iter().last().or(self.last))
    }
}

/// Moments that differ from run to run of the test program, and are printed when it fails.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn cycles() -> usize {
    std::env::var("AUDIT_KILL_CYCLES").map_or(1_000, |cycles| cycles.parse().unwrap())
}

/// Starts writers and kills them, again and again, on a few logs.
fn check(level: &str, writers: usize, cycles: usize) {
    let seed = u64::from(std::process::id()) << 20 | 0x5_eed1;
    let mut state = seed;
    let mut killed = 0;
    let mut acknowledged = 0;
    let mut recoveries = 0;
    let mut place = Place::new();
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    let begun = Instant::now();
    while killed < cycles {
        let mut running: Vec<Writer> =
            (0..writers).map(|number| Writer::start(&place, level, format!("w{killed}-{number}"))).collect();
        // Half of them are killed when they have begun to write, the others whenever it comes, as while they open the log.
        if random(&mut state).is_multiple_of(2) {
            running[0].wait();
        }
        std::thread::sleep(Duration::from_micros(2_000 + random(&mut state) % 25_000));
        for writer in running {
            let (name, last) = writer.kill();
            acknowledged += last.map_or(0, |last| last + 1);
            kept.extend(last.map(|last| (name, last)));
            killed += 1;
        }
        // Each log is looked at before it gets so long that this takes most of the time.
        if killed % 100 < writers || killed >= cycles {
            recoveries += look(&place, &kept, seed);
            place = Place::new();
            kept.clear();
        }
    }
    let took = begun.elapsed();
    println!("{level}: {killed} writers killed after {acknowledged} records, {recoveries} torn ends, {took:?}");
    assert!(acknowledged > 0, "they are killed too early to show anything");
}

/// Opens the log once more, as the next program would, and checks that all is there. Says how often a torn end was found.
fn look(place: &Place, kept: &BTreeMap<String, u64>, seed: u64) -> u64 {
    place.open().close().unwrap();
    let report = place.verify();
    assert!(report.is_sound(), "seed {seed}: {report}");
    let texts: HashSet<String> = place
        .lines()
        .iter()
        .map(|line| json(line))
        .filter_map(|record| Some(record["body"]["text"].as_str()?.to_owned()))
        .collect();
    for (name, last) in kept {
        // All that came before an acknowledged record is there with it.
        let lost: Vec<u64> = (0..=*last).filter(|number| !texts.contains(&format!("{name}/{number}"))).collect();
        assert!(lost.is_empty(), "seed {seed}: {name} lost {lost:?} of {last}");
    }
    report.recoveries
}

#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    check("group", 1, cycles() / 2);
}

#[test]
fn killed_writers_that_share_a_log_do_not_fork_it() {
    check("group", 4, cycles() / 2);
}

#[test]
fn a_killed_writer_with_a_sync_for_each_record_loses_nothing() {
    check("record", 2, cycles());
}

#[test]
fn a_writer_that_is_killed_while_it_rotates_keys_leaves_one_that_is_in_force() {
    check("rotating", 3, cycles() / 4);
}

/// Sixteen processes append to one log at once, and none is killed before it has kept something.
#[test]
fn sixteen_writers_do_not_fork_a_log() {
    let place = Place::new();
    let mut running: Vec<Writer> =
        (0..16).map(|number| Writer::start(&place, "group", format!("writer-{number}"))).collect();
    for writer in &mut running {
        (0..5).for_each(|_| writer.wait());
    }
    let kept = running.into_iter().filter_map(|writer| {
        let (name, last) = writer.kill();
        Some((name, last?))
    });
    let kept: BTreeMap<String, u64> = kept.collect();
    look(&place, &kept, 0);
    let writers: HashSet<String> =
        place.lines().iter().map(|line| json(line)["writer"].as_str().unwrap().to_owned()).collect();
    assert!(writers.len() >= 16, "{writers:?}");
}
