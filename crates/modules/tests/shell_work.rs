//! How much work hostile commands make. Alone in its program, because it measures all of it.
//!
//! `cargo test --release -p amplifier-modules --test all shell_work -- --nocapture` prints the figures.

#![cfg(target_os = "linux")]

#[path = "shell/shapes.rs"]
mod shapes;

use std::time::Duration;

use amplifier_modules::shell::analyse;

/// The longest commands that are analysed, and shorter ones that come closer to the other limits.
const SIZES: [usize; 3] = [64 << 10, 16 << 10, 3 << 10];

/// The time that this program has used on all processors: what else runs does not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}

/// The most memory that this program ever had, in kilobytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn no_command_takes_long_or_much_memory() {
    let texts: Vec<String> = SIZES.into_iter().flat_map(shapes::of_size).collect();
    let _ = analyse("ls");
    let memory = most_memory();
    // Twenty times the figure of a release build, which is 50 ms. What grows faster than its input takes minutes.
    let limit = if cfg!(debug_assertions) { Duration::from_secs(4) } else { Duration::from_secs(1) };
    let mut times = Vec::new();
    for text in texts {
        let start = processor_time();
        let _ = analyse(&text);
        let time = processor_time() - start;
        let shape: String = text.chars().take(60).collect();
        assert!(time < limit, "{shape:?}… of {} bytes took {time:?}", text.len());
        let memory = most_memory().saturating_sub(memory);
        assert!(memory < 64 << 10, "{shape:?}… of {} bytes took {memory} kB", text.len());
        times.push((time, text.len(), shape));
    }
    times.sort();
    for (time, length, shape) in times.iter().rev().take(8) {
        println!("{time:>10.1?} {length:>6} bytes {shape:?}");
    }
    println!(
        "{} commands, {:.1?} in all, at most {} kB",
        times.len(),
        times.iter().map(|t| t.0).sum::<Duration>(),
        most_memory().saturating_sub(memory)
    );
}
