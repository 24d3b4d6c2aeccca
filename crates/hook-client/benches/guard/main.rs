//! Prints what a guarded call costs, beside floors measured in the same run.
//!
//! `cargo bench -p amplifier-hook --bench guard -- [FOLDER]`: the folder is where the audit log is written, so that a certain disk can be measured; a folder below
//! the system's temporary one if not given. `--calls N` makes it shorter or longer. `--profile NAME` is that of the programs: `dist` if not given.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its results")]

mod build;
mod figures;
mod floor;
mod installation;
mod requests;
mod spawn;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use self::figures::{Spread, contest};
use self::floor::EchoServer;
use self::installation::Installation;
use self::spawn::{Call, all_at_once};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Calls of each contender, one after another.
const CALLS: usize = 1_000;
/// Calls at the same time, and how often.
const CROWD: usize = 64;
const CROWDS: usize = 15;
/// Calls without a daemon.
const FIRST_CALLS: usize = 15;
const SESSIONS: usize = 100;

/// The options of this program.
struct Options {
    calls: usize,
    profile: String,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some(floor::ROLE) => floor::serve(&words[1..]),
        _ => options(words).and_then(|options| measure(&options)),
    };
    if let Err(error) = result {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn options(words: Vec<String>) -> Result<Options> {
    let mut options = Options { calls: CALLS, profile: "dist".to_owned(), folder: std::env::temp_dir() };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` has no value"));
        match word.as_str() {
            // From cargo.
            "--bench" => {}
            "--calls" => options.calls = value()?.parse()?,
            "--profile" => options.profile = value()?,
            _ => options.folder = PathBuf::from(word),
        }
    }
    Ok(options)
}

fn measure(options: &Options) -> Result<()> {
    let base = options.folder.join(format!("guard-bench-{}", std::process::id()));
    std::fs::create_dir_all(&base)?;
    let programs = build::programs(&base, &options.profile);
    let measured = programs.and_then(|programs| rows(options.calls, &programs, &base));
    std::fs::remove_dir_all(&base)?;
    measured
}

fn rows(calls: usize, programs: &Path, base: &Path) -> Result<()> {
    let size = std::fs::metadata(programs.join("amplifier-hook"))?.len();
    println!(
        "What a guarded call costs: a shell command that 10 rules allow. Milliseconds; {calls} calls of each, in turns.\n"
    );
    let guards = ["group", "async"].map(|durability| Installation::new(programs, &base.join(durability), durability));
    let [group, relaxed] = guards;
    let (group, relaxed) = (group?, relaxed?);
    let record = group.record_size()?;
    let echoes = Echoes { bare: build::echo(programs, None)?, recording: build::echo(programs, Some(record))? };
    println!("  echo       floor: a static program that only echoes, spawned, asked, heard, waited for");
    println!("  record     floor: the same program, which writes and syncs {record} bytes before, as the daemon does");
    println!("  hook       `amplifier-hook`, without a shell; {} KB, static, {}", size / 1000, build::target());
    println!(
        "  sh …       in the shell of the installed line: the floors in place of `amplifier-hook`, and the line itself\n"
    );
    for guard in [&group, &relaxed] {
        spawned(calls, guard, &echoes)?;
    }
    crowd(&group, &echoes)?;
    println!("the daemon alone, through its socket: microseconds");
    for guard in [&group, &relaxed] {
        socket(calls, base, record, guard)?;
    }
    first_call(programs, &echoes.bare, &base.join("first"))?;
    memory(&Installation::new(programs, &base.join("memory"), "group")?)
}

/// The static programs that only echo.
struct Echoes {
    bare: PathBuf,
    /// The one that writes and syncs a record before.
    recording: PathBuf,
}

impl Echoes {
    /// The calls of both programs, without a shell.
    fn words(&self) -> [Call; 2] {
        [&self.bare, &self.recording].map(|program| Call::words(&[program.to_string_lossy().into_owned()]))
    }

    /// The calls of both programs in the line of the guard.
    fn lines(&self, guard: &Installation) -> [Call; 2] {
        let hook = &guard.hook_words()[0];
        [&self.bare, &self.recording]
            .map(|program| Call::shell(&guard.line().replace(hook, &program.to_string_lossy())))
    }
}

/// One call after another.
fn spawned(calls: usize, guard: &Installation, echoes: &Echoes) -> Result<()> {
    let ([echo, record], [sh_echo, sh_record]) = (echoes.words(), echoes.lines(guard));
    let (hook, line) = (Call::words(&guard.hook_words()), Call::shell(guard.line()));
    let spreads = contest(
        calls,
        [
            &mut |number| echo.run(&guard.payload(number, 0)),
            &mut |number| record.run(&guard.payload(number, 1)),
            &mut |number| hook.run(&guard.payload(number, 2)),
            &mut |number| sh_echo.run(&guard.payload(number, 3)),
            &mut |number| sh_record.run(&guard.payload(number, 4)),
            &mut |number| line.run(&guard.payload(number, 5)),
        ],
    )?;
    println!("audit `{}`", guard.durability());
    for (name, pick) in [("p50", Spread::p50 as fn(&Spread) -> f64), ("p99", Spread::p99)] {
        let times = spreads.each_ref().map(|spread| pick(spread) / 1000.0);
        for (shell, [echo, record, hook]) in
            [("", [times[0], times[1], times[2]]), ("sh ", [times[3], times[4], times[5]])]
        {
            println!(
                "  {name}  {:>9} {echo:>6.2} {:>10} {record:>6.2} {:>8} {hook:>6.2}   {:>6.2}x echo {:>6.2}x record",
                format!("{shell}echo"),
                format!("{shell}record"),
                format!("{shell}hook"),
                hook / echo,
                hook / record,
            );
        }
    }
    Ok(())
}

/// Many calls at the same time, of as many sessions.
fn crowd(guard: &Installation, echoes: &Echoes) -> Result<()> {
    let [echo, record] = echoes.lines(guard);
    let line = Call::shell(guard.line());
    let payloads = |round: usize| (0..CROWD).map(move |one| guard.payload_of(&format!("crowd-{one}"), round, 6));
    let spreads = contest(
        CROWDS,
        [
            &mut |round| all_at_once(&echo, payloads(round)),
            &mut |round| all_at_once(&record, payloads(round)),
            &mut |round| all_at_once(&line, payloads(round)),
        ],
    )?;
    let [echo, record, line] = spreads.map(|spread| spread.p50() / 1000.0);
    println!(
        "\n{CROWD} calls at once, until the last has ended: sh echo {echo:.1} ms, sh record {record:.1} ms, sh hook {line:.1} ms, {:.2}x echo, {:.2}x record\n",
        line / echo,
        line / record
    );
    Ok(())
}

/// The daemon without the hook program.
fn socket(calls: usize, base: &Path, record: u64, guard: &Installation) -> Result<()> {
    let (echo, log) = (EchoServer::start(base, None)?, EchoServer::start(base, Some(record))?);
    let daemon = guard.daemon()?;
    let before = figures::processor_time(daemon)?;
    let begun = Instant::now();
    let [bare, synced, ours] = contest(
        calls,
        [
            &mut |number| requests::ask(&echo.socket(), &guard.payload(number, 7)),
            &mut |number| requests::ask(&log.socket(), &guard.payload(number, 8)),
            &mut |number| requests::ask(&guard.socket(), &guard.payload(number, 9)),
        ],
    )?;
    let processor = (figures::processor_time(daemon)? - before) * 1e6 / calls as f64;
    println!(
        "{:>8} echo {:.0}, echo with one write and sync {:.0}, daemon {:.0} (p99 {:.0}); processor time of a call {processor:.0}; {:.1} s",
        guard.durability(),
        bare.p50(),
        synced.p50(),
        ours.p50(),
        ours.p99(),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A call that has to start the daemon.
fn first_call(programs: &Path, echo: &Path, folder: &Path) -> Result<()> {
    let guard = Installation::new(programs, folder, "group")?;
    let floor = Call::words(&[echo.to_string_lossy().into_owned()]);
    let version = Call::words(&[programs.join("amplifier").to_string_lossy().into_owned(), "--version".to_owned()]);
    let line = Call::shell(guard.line());
    let [start, first] = contest(
        FIRST_CALLS,
        [
            &mut |number| {
                version.run("")?;
                floor.run(&guard.payload(number, 10))
            },
            &mut |number| {
                // The time to find and end the daemon is a few milliseconds of this row.
                guard.end_daemon()?;
                line.run(&guard.payload(number, 11))
            },
        ],
    )?;
    let (start, first) = (start.p50() / 1000.0, first.p50() / 1000.0);
    println!(
        "\nfirst call, which starts the daemon: {first:.1} ms; `amplifier --version` and echo {start:.1} ms; {:.1}x",
        first / start
    );
    Ok(())
}

/// The memory of the daemon.
fn memory(guard: &Installation) -> Result<()> {
    let line = Call::shell(guard.line());
    line.run(&guard.payload_of("memory-0", 0, 10))?;
    let daemon = guard.daemon()?;
    let one = figures::resident(daemon)?;
    for session in 1..SESSIONS {
        line.run(&guard.payload_of(&format!("memory-{session}"), 0, 10))?;
    }
    let all = figures::resident(daemon)?;
    println!(
        "memory of the daemon: {:.1} MB with one session, {:.1} MB with {SESSIONS}: {:.0} KB for each",
        one / 1e6,
        all / 1e6,
        (all - one) / 1000.0 / (SESSIONS - 1) as f64
    );
    Ok(())
}
