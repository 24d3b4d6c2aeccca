//! Runs commands that the analysis calls `readonly` with real shells, and fails if one of them changes a file.
//!
//! Commands are generated, analysed and run in a sandbox of their own: namespaces for users, mounts, processes and the network, a
//! small root in memory, the system's programs read-only. `fuzz/shell 3600` runs it for an hour, with other commands every time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

mod generate;
#[path = "../shell/numbers.rs"]
mod numbers;
mod sandbox;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amplifier_modules::shell::analyse;

use self::generate::Generator;
use self::sandbox::{Sandbox, Shell};

const NAME: &str = "no_command_called_readonly_changes_a_file";
/// How long a run takes unless `SHELL_FUZZ_SECONDS` says otherwise. Such a short run always begins with the same commands.
const SECONDS: u64 = 20;
/// So many findings end a run.
const FINDINGS: usize = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if sandbox::is_inside() {
        std::process::exit(i32::from(fuzz() > 0));
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return println!("{NAME}: test");
    }
    let mut filters = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
    if filters.peek().is_some() && !filters.any(|filter| NAME.contains(filter.as_str())) {
        return;
    }
    if let Err(why) = sandbox::enter() {
        eprintln!("{NAME} failed: {why}");
        std::process::exit(1);
    }
}

/// Runs for some seconds, and says how many commands changed a file.
fn fuzz() -> usize {
    let seconds = std::env::var("SHELL_FUZZ_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| u64::from(now.subsec_nanos()) ^ now.as_secs());
    let seed = std::env::var("SHELL_FUZZ_SEED").ok().map(|text| text.parse().expect("a number"));
    let seed = seed.unwrap_or(if seconds.is_some() { now } else { 1 });
    let sandbox = Sandbox::new();
    let mut generator = Generator::new(seed, &sandbox);
    let mut counts = Counts::default();
    let mut findings: Vec<String> = Vec::new();
    let begun = Instant::now();
    let limit = Duration::from_secs(seconds.unwrap_or(SECONDS));
    while begun.elapsed() < limit && findings.len() < FINDINGS {
        let command = generator.command();
        counts.generated += 1;
        for (shells, text) in [(Shell::BASH, command.clone()), (Shell::SH, format!("sh -c {}", quoted(&command)))] {
            if !analyse(&text).readonly {
                continue;
            }
            counts.readonly += 1;
            for shell in shells.iter().filter(|shell| sandbox.has(**shell)) {
                counts.runs += 1;
                let Some(change) = sandbox.change_by(*shell, &command) else { continue };
                let known = findings.iter().any(|finding| finding.contains(&format!("{command:?}")));
                if !known {
                    println!("{shell:?} {command:?}: {change}");
                    findings.push(format!("{command:?}"));
                }
            }
        }
    }
    println!(
        "{NAME}: {} commands generated, {} called readonly, {} runs with {} shells, {} changed a file, {} s, seed {seed}",
        counts.generated,
        counts.readonly,
        counts.runs,
        Shell::BASH.iter().chain(Shell::SH).filter(|shell| sandbox.has(**shell)).count(),
        findings.len(),
        begun.elapsed().as_secs(),
    );
    if counts.runs < 20 {
        println!("too few commands were run for this to mean anything");
        return 1;
    }
    findings.len()
}

#[derive(Default)]
struct Counts {
    generated: u64,
    readonly: u64,
    runs: u64,
}

/// The text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
