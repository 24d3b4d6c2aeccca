//! Prints what an emission costs, beside floors measured in the same run.
//!
//! `cargo run --profile dist -p amplifier-bench`

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_bench::{
    Payload, at_once, boxed_loop, direct_loop, emit, plain_hooks, registry, registry_of_closures, registry_of_modifiers,
};
use amplifier_core::{EventData, SESSION_START, TOOL_PRE};

const ROUNDS: usize = 60;
const ROUND: Duration = Duration::from_millis(1);

/// Something that can do its work so many times and say how long that took.
type Contender<'a> = Box<dyn FnMut(usize) -> Duration + 'a>;

/// What the work needs is made before, and what is left of it (the payload) is dropped after, the clock runs.
fn contender<'a, I: 'a, O: 'a>(make: impl Fn() -> I + 'a, work: impl Fn(I) -> O + 'a) -> Contender<'a> {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    Box::new(move |calls| {
        inputs.extend((0..calls).map(|_| make()));
        outputs.clear();
        outputs.reserve(calls);
        let begun = Instant::now();
        outputs.extend(inputs.drain(..).map(|input| black_box(work(input))));
        begun.elapsed()
    })
}

/// The best time of one call of each, in nanoseconds. They take turns, so that noise hits all alike.
fn contest<const N: usize>(most_calls: usize, mut contenders: [Contender<'_>; N]) -> [f64; N] {
    let mut calls = [1; N];
    for (contender, calls) in contenders.iter_mut().zip(&mut calls) {
        while *calls < most_calls && contender(*calls) < ROUND {
            *calls *= 2;
        }
    }
    let mut best = [f64::MAX; N];
    for _ in 0..ROUNDS {
        for (index, contender) in contenders.iter_mut().enumerate() {
            let nanos = contender(calls[index]).as_nanos() as f64 / calls[index] as f64;
            best[index] = best[index].min(nanos);
        }
    }
    best
}

/// Large payloads are made in smaller batches, so that they fit into memory.
fn most_calls(payload: Payload) -> usize {
    match payload {
        Payload::FiveKeys => 8192,
        Payload::Text(bytes) | Payload::Tree(bytes) => (6_400_000 / bytes).clamp(16, 8192),
    }
}

fn main() {
    build_siblings();
    emissions();
    modifications();
    registrations();
    instructions();
    tasks();
}

fn emissions() {
    let allocations = allocations();
    println!("What it costs to emit an event. Nanoseconds, best of {ROUNDS} rounds.\n");
    println!("  building     making the payload, as a caller does before each event; not part of the other columns");
    println!("  direct       floor: a loop of direct calls over a plain map");
    println!("  boxed        floor: a loop of boxed async calls over a plain map");
    println!("  emit         this kernel, with hooks that implement `Hook`");
    println!("  closures     this kernel, with async closures under a typed constant; each gets an event of its own");
    println!("  ratio        (building + emit) / (building + boxed)");
    println!("  allocations  per emission, beyond those of the payload\n");
    println!(
        "{:>12} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>12}",
        "payload", "hooks", "building", "direct", "boxed", "emit", "ratio", "closures", "allocations"
    );
    let mut counted = allocations.iter();
    for payload in Payload::ALL {
        for hooks in Payload::HOOKS {
            let (ours, closures, plain) = (registry(hooks), registry_of_closures(hooks), plain_hooks(hooks));
            let build = || payload.build();
            let [building, direct, boxed, emitted, closed] = contest(
                most_calls(payload),
                [
                    contender(|| (), |()| drop(payload.build())),
                    contender(build, |data| direct_loop(&plain, data)),
                    contender(build, |data| at_once(boxed_loop(&plain, data))),
                    contender(build, |data| emit(&ours, data).data),
                    contender(build, |data| emit(&closures, data).data),
                ],
            );
            let ratio = (building + emitted) / (building + boxed);
            let allocations = counted.next().map_or("", String::as_str);
            println!(
                "{:>12} {hooks:>6} {building:>9.0} {direct:>8.0} {boxed:>8.0} {emitted:>8.0} {ratio:>7.2}x {closed:>9.0} {allocations:>12}",
                payload.name()
            );
        }
    }
    if let [.., closures, modifiers] = &allocations[..] {
        println!("allocations: 3 async closures {closures}, 3 modifications {modifiers}");
    }
}

fn modifications() {
    println!("\nmodify chains, in place: nanoseconds without building the payload");
    for hooks in [1, 3, 10] {
        let (quiet, modifying) = (registry(hooks), registry_of_modifiers(hooks));
        let build = || Payload::FiveKeys.build();
        let [silent, changed] = contest(
            most_calls(Payload::FiveKeys),
            [contender(build, |data| emit(&quiet, data).data), contender(build, |data| emit(&modifying, data).data)],
        );
        println!(
            "{hooks:>6} hooks: the emission {changed:>6.0}, beyond one that changes nothing {:>6.0}",
            changed - silent
        );
    }
}

fn registrations() {
    println!("\nregister and unregister one hook, with so many there: nanoseconds");
    let mut first = None;
    for count in [10, 100, 1_000, 10_000] {
        let hooks = registry(count);
        let register = |()| hooks.hook(TOOL_PRE).named("one").run(|_| ()).unregister();
        let [pair, emitting] = contest(
            8192,
            [
                contender(|| (), register),
                contender(
                    || (),
                    |()| {
                        register(());
                        drop(at_once(hooks.emit(SESSION_START, EventData::new())));
                    },
                ),
            ],
        );
        let ratio = pair / *first.get_or_insert(pair);
        println!(
            "{count:>6} hooks: {pair:>6.0} ({ratio:.2}x), with an emission that makes its list anew {emitting:>9.0}"
        );
    }
}

/// `cargo run` builds this program only; it needs the others of this package beside it.
fn build_siblings() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "--quiet", "--profile", "dist", "-p", "amplifier-bench", "--bins"]).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("the programs beside this one could not be built: run it with cargo, inside the repository");
        std::process::exit(1);
    }
}

/// One number a line, in the order of `bin/allocations.rs`.
fn allocations() -> Vec<String> {
    let output = sibling("allocations").output();
    let lines = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    assert!(!lines.is_empty(), "build everything first: cargo build --profile dist -p amplifier-bench");
    lines.lines().map(str::to_owned).collect()
}

fn sibling(name: &str) -> Command {
    let mut path = std::env::current_exe().unwrap_or_default();
    path.set_file_name(name);
    Command::new(path)
}

fn instructions() {
    println!("\ninstructions per emission, building the payload included (callgrind)");
    for hooks in ["0", "3", "100"] {
        match ["build", "boxed", "emit"].map(|kind| count(kind, hooks)) {
            [Some(build), Some(boxed), Some(emitted)] => {
                println!("{hooks:>6} hooks: building {build:>6}, boxed loop {boxed:>6}, emit {emitted:>6}");
            }
            _ => return println!("       not counted: valgrind is not installed"),
        }
    }
}

fn count(kind: &str, hooks: &str) -> Option<u64> {
    const TIMES: u64 = 1_000;
    let program = sibling("instructions");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=instructions::work"])
        .arg(program.get_program())
        .args([kind, hooks, &TIMES.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let total = text.lines().find_map(|line| line.split_once("Collected : "))?.1;
    Some(total.trim().parse::<u64>().ok()? / TIMES)
}

/// How often each task calls.
const CALLS: usize = 100_000;

/// Rates from one to eight tasks. The machine's own share of what is lost shows in the floor beside it.
fn tasks() {
    const TASKS: [usize; 4] = [1, 2, 4, 8];
    println!("\nemissions a second to 3 hooks, by tasks on two threads; floor: boxed loops that share nothing");
    let (hooks, plain) = (registry(3), Arc::new(plain_hooks(3)));
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build() else { return };
    let mut best = [(0.0, 0.0); TASKS.len()];
    for _ in 0..10 {
        for (tasks, (ours, floor)) in TASKS.into_iter().zip(&mut best) {
            let emit = || {
                let hooks = hooks.clone();
                async move {
                    for _ in 0..CALLS {
                        black_box(hooks.emit(TOOL_PRE, Payload::FiveKeys.build()).await);
                    }
                }
            };
            *ours = rate(&runtime, tasks, emit).max(*ours);
            let boxed = || {
                let plain = plain.clone();
                async move {
                    for _ in 0..CALLS {
                        black_box(boxed_loop(&plain, Payload::FiveKeys.build()).await);
                    }
                }
            };
            *floor = rate(&runtime, tasks, boxed).max(*floor);
        }
    }
    let (alone, floor_alone) = best[0];
    for (tasks, (ours, floor)) in TASKS.into_iter().zip(best) {
        println!("{tasks:>6} tasks: {ours:>12.0}  {:.2}x, floor {:.2}x", ours / alone, floor / floor_alone);
    }
}

fn rate<F: Future<Output = ()> + Send + 'static>(
    runtime: &tokio::runtime::Runtime,
    tasks: usize,
    work: impl Fn() -> F,
) -> f64 {
    let begun = Instant::now();
    runtime.block_on(futures::future::join_all((0..tasks).map(|_| runtime.spawn(work()))));
    (tasks * CALLS) as f64 / begun.elapsed().as_secs_f64()
}
