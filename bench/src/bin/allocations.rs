//! Counts allocations per emission, without those of building the payload. Called by the benchmark.

use amplifier_bench::{Payload, emit, registry, registry_of_closures, registry_of_modifiers};
use amplifier_core::{EventData, HookRegistry};

const ROUNDS: u64 = 100;

fn count(hooks: &HookRegistry, payload: Payload) -> f64 {
    // Once before, so that what is made once is not counted.
    emit(hooks, payload.build());
    let with = allocation_counter::measure(|| (0..ROUNDS).for_each(|_| drop(emit(hooks, payload.build()))));
    let without = allocation_counter::measure(|| (0..ROUNDS).for_each(|_| drop(EventData::from(payload.build()))));
    (with.count_total - without.count_total) as f64 / ROUNDS as f64
}

fn main() {
    for payload in Payload::ALL {
        for hooks in Payload::HOOKS {
            println!("{}", count(&registry(hooks), payload));
        }
    }
    println!("{}", count(&registry_of_closures(3), Payload::FiveKeys));
    println!("{}", count(&registry_of_modifiers(3), Payload::FiveKeys));
}
