//! Prints what the analysis of shell commands costs, beside a floor measured in the same run.
//!
//! `cargo run --profile dist -p amplifier-bench --bin shell`. The floor is what reading the same text takes at least: a thread with room
//! for deep nesting, and one pass of tree-sitter, which gives up after the same number of steps as the analysis.

#[path = "../../../crates/modules/tests/shell/shapes.rs"]
mod shapes;

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use amplifier_modules::shell::analyse;
use tree_sitter::{ParseOptions, Parser};

/// Everyday commands of coding agents, one a line; `⏎` stands for a line break.
const ORDINARY: &str = include_str!("../../../crates/modules/tests/shell/harmless.txt");
/// The longest command that is analysed, in bytes.
const LONGEST: usize = 64 << 10;
/// The stack of the analysis, and the calls that tree-sitter makes before it is stopped.
const STACK: usize = 256 << 20;
const STEPS: usize = 150;
/// The best of so many rounds counts.
const ROUNDS: usize = 7;

fn main() {
    let ordinary: Vec<String> = ORDINARY.lines().map(|line| line.replace('⏎', "\n")).collect();
    println!("What it costs to analyse a shell command. Microseconds for one command, best of {ROUNDS} rounds.\n");
    println!("  floor      a thread, and one pass of tree-sitter over the text");
    println!("  analysis   two grammars, every simple command, its options, files and program texts\n");
    println!("{:>34} {:>10} {:>10} {:>8}", "", "floor", "analysis", "ratio");
    row(&format!("{} everyday commands, mean", ordinary.len()), &ordinary);
    let slowest = ordinary.iter().max_by_key(|command| best(command)).cloned();
    row("the slowest of them", slowest.as_slice());

    let hostile = shapes::of_size(LONGEST);
    let slowest = hostile.iter().max_by_key(|text| best(text));
    row("slowest hostile shape of 64 KiB", slowest.cloned().as_slice());
    let shape: String = slowest.iter().flat_map(|text| text.chars()).take(40).collect();
    println!("\nThe hostile shape is {shape:?}…, the slowest of {}.", hostile.len());
}

fn row(name: &str, commands: &[String]) {
    let total = |work: fn(&str)| (0..ROUNDS).map(|_| commands.iter().map(|c| time(c, work)).sum::<Duration>()).min();
    // The contenders take turns only between rows: each row is short.
    let each = |total: Option<Duration>| total.unwrap_or_default().as_secs_f64() * 1e6 / commands.len() as f64;
    let (floor, analysis) = (each(total(floor)), each(total(run)));
    println!("{name:>34} {floor:>10.0} {analysis:>10.0} {:>7.1}x", analysis / floor);
}

/// The time of an analysis, to find the slowest.
fn best(text: &str) -> Option<Duration> {
    (0..3).map(|_| time(text, run)).min()
}

fn time(text: &str, work: fn(&str)) -> Duration {
    let begun = Instant::now();
    work(text);
    begun.elapsed()
}

fn run(text: &str) {
    black_box(analyse(black_box(text)));
}

fn floor(text: &str) {
    let parse = || {
        let mut parser = Parser::new();
        let mut left = STEPS;
        let mut patience = |_: &_| {
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut patience);
        let is_set = parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_ok();
        let mut read = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
        black_box((is_set, parser.parse_with_options(&mut read, None, Some(options))));
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, parse);
        black_box(thread.map(std::thread::ScopedJoinHandle::join).is_ok());
    });
}
