//! Prints what a guarded call costs, beside floors measured in the same run.
//!
//! `cargo run --profile dist -p amplifier-bench --features guard --bin guard [FOLDER]`: the folder is where the audit log is written, so that a certain disk can
//! be measured; a folder below the system's temporary one if not given. `--calls N` makes it shorter or longer.

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

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some(floor::ROLE) => floor::serve(&words[1..]),
        _ => {
            let calls = words.iter().position(|word| word == "--calls").and_then(|at| words.drain(at..).nth(1));
            measure(calls.and_then(|calls| calls.parse().ok()).unwrap_or(CALLS), words.first().map(PathBuf::from))
        }
    };
    if let Err(error) = result {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn measure(calls: usize, base: Option<PathBuf>) -> Result<()> {
    let base = base.unwrap_or_else(std::env::temp_dir).join(format!("guard-bench-{}", std::process::id()));
    std::fs::create_dir_all(&base)?;
    let measured = build::programs(&base).and_then(|programs| rows(calls, &programs, &base));
    std::fs::remove_dir_all(&base)?;
    measured
}

fn rows(calls: usize, programs: &Path, base: &Path) -> Result<()> {
    let echo = programs.join("echo");
    let size = std::fs::metadata(programs.join("amplifier-hook"))?.len();
    println!(
        "What a guarded call costs: a shell command that 10 rules allow. Milliseconds; {calls} calls of each, in turns.\n"
    );
    println!(
        "  echo       floor: a static program that only echoes, spawned, asked, heard, waited for ({})",
        build::target()
    );
    println!("  hook       `amplifier-hook`, without a shell; {} KB", size / 1000);
    println!("  sh echo    floor: the static program in the installed line, in place of `amplifier-hook`");
    println!("  line       the installed line, as a client runs it\n");
    for durability in ["group", "async"] {
        let guard = Installation::new(programs, &base.join(durability), durability)?;
        spawned(calls, durability, &guard, &echo)?;
        if durability == "group" {
            crowd(&guard, &echo)?;
        }
    }
    println!("\nthe daemon alone, through its socket: microseconds");
    for durability in ["group", "async"] {
        socket(calls, base, &Installation::new(programs, &base.join(format!("socket-{durability}")), durability)?)?;
    }
    first_call(programs, &echo, &base.join("first"))?;
    memory(&Installation::new(programs, &base.join("memory"), "group")?)
}

/// One call after another.
fn spawned(calls: usize, durability: &str, guard: &Installation, echo: &Path) -> Result<()> {
    let hook = Call::words(&guard.hook_words());
    let line = Call::shell(guard.line());
    let floor = Call::words(&[echo.to_string_lossy().into_owned()]);
    let shell_floor = Call::shell(&guard.line().replace(&guard.hook_words()[0], &echo.to_string_lossy()));
    let [echo, hook, shell_echo, line] = contest(
        calls,
        [
            &mut |number| floor.run(&guard.payload(number, 0)),
            &mut |number| hook.run(&guard.payload(number, 1)),
            &mut |number| shell_floor.run(&guard.payload(number, 2)),
            &mut |number| line.run(&guard.payload(number, 3)),
        ],
    )?;
    if durability == "group" {
        println!(
            "{:>8} {:>5} {:>8} {:>8} {:>9} {:>8} {:>11} {:>14} {:>10}",
            "audit", "", "echo", "hook", "sh echo", "line", "hook/echo", "line/sh echo", "line/echo"
        );
    }
    for (name, pick) in [("p50", Spread::p50 as fn(&Spread) -> f64), ("p99", Spread::p99)] {
        let [echo, hook, shell_echo, line] = [&echo, &hook, &shell_echo, &line].map(|spread| pick(spread) / 1000.0);
        println!(
            "{durability:>8} {name:>5} {echo:>8.2} {hook:>8.2} {shell_echo:>9.2} {line:>8.2} {:>10.2}x {:>13.2}x {:>9.2}x",
            hook / echo,
            line / shell_echo,
            line / echo
        );
    }
    Ok(())
}

/// Many calls at the same time, of as many sessions.
fn crowd(guard: &Installation, echo: &Path) -> Result<()> {
    let floor = Call::shell(&guard.line().replace(&guard.hook_words()[0], &echo.to_string_lossy()));
    let line = Call::shell(guard.line());
    let payloads = |round: usize| (0..CROWD).map(move |one| guard.payload_of(&format!("crowd-{one}"), round, 4));
    let [echo, line] = contest(
        CROWDS,
        [&mut |round| all_at_once(&floor, payloads(round)), &mut |round| all_at_once(&line, payloads(round))],
    )?;
    let (echo, line) = (echo.p50() / 1000.0, line.p50() / 1000.0);
    println!(
        "\n{CROWD} calls at once, until the last has ended: sh echo {echo:.1} ms, line {line:.1} ms, {:.2}x\n",
        line / echo
    );
    Ok(())
}

/// The daemon without the hook program.
fn socket(calls: usize, base: &Path, guard: &Installation) -> Result<()> {
    let (echo, log) = (EchoServer::start(base, None)?, EchoServer::start(base, Some(&base.join("log")))?);
    let daemon = guard.daemon()?;
    let before = figures::processor_time(daemon)?;
    let begun = Instant::now();
    let [bare, synced, ours] = contest(
        calls,
        [
            &mut |number| requests::ask(&echo.socket(), &guard.payload(number, 5)),
            &mut |number| requests::ask(&log.socket(), &guard.payload(number, 6)),
            &mut |number| requests::ask(&guard.socket(), &guard.payload(number, 7)),
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
                floor.run(&guard.payload(number, 8))
            },
            &mut |number| {
                // The time to find and end the daemon is a few milliseconds of this row.
                guard.end_daemon()?;
                line.run(&guard.payload(number, 9))
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
