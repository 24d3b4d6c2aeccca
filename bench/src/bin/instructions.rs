//! Does one kind of work a number of times, for callgrind to count. Called by the benchmark.

use std::hint::black_box;

use amplifier_bench::{Payload, Plain, at_once, boxed_loop, emit, plain_hooks, registry};
use amplifier_core::HookRegistry;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let hooks: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(3);
    let times: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    work(&kind, &registry(hooks), &plain_hooks(hooks), times);
}

/// Callgrind counts while this runs, and nothing before: starting up calibrates a clock and is never the same twice.
#[inline(never)]
fn work(kind: &str, registry: &HookRegistry, plain: &[Box<dyn Plain>], times: usize) {
    for _ in 0..times {
        let data = Payload::FiveKeys.build();
        match kind {
            "emit" => drop(black_box(emit(registry, data))),
            "boxed" => drop(black_box(at_once(boxed_loop(plain, data)))),
            _ => drop(black_box(data)),
        }
    }
}
