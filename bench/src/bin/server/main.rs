//! Prints how the server does under load, beside a floor measured in the same run with the same clients: an axum server that only echoes.
//!
//! `cargo run --profile dist -p amplifier-bench --features server --bin server -- [--sessions N] [--questions N] [--watchers N] [--rate N]`
//!
//! The server is a process of its own. This one plays everybody else: sessions that emit and ask over the server's socket, browsers that watch
//! all of it, and people who answer. It takes about a minute, and fails if an event was lost, or a question timed out too early or too late.

mod figures;
mod floor;
mod http;
mod process;
mod sessions;
mod watchers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use amplifier_audit::{Durability, Log};
use amplifier_server::access::TokenFiles;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use figures::{Spread, row};
use http::Reach;
use process::{Child, Usage};
use sessions::{Crowd, Tally};
use watchers::{Audience, Total};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How far a question may time out from its deadline.
const TOLERANCE: Duration = Duration::from_millis(100);

/// How long questions are answered: as long as the last ones are still open.
const ANSWERING: Duration = Duration::from_secs(5);

/// How much memory the server may take.
const MEMORY: u64 = 512 << 20;

/// What can be set.
#[derive(Clone, Copy, Debug)]
struct Load {
    sessions: usize,
    /// In all, spread over the sessions.
    questions: usize,
    watchers: usize,
    /// Events a second, of all sessions together.
    rate: usize,
    /// How many questions are answered.
    answers: usize,
    /// How long it takes until the first question times out, and until the last one does.
    limits: [Duration; 2],
}

impl Load {
    fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut load = Self {
            sessions: 1_000,
            questions: 10_000,
            watchers: 200,
            rate: 1_000,
            answers: 500,
            limits: [30, 40].map(Duration::from_secs),
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{name}` needs a number"))?.parse()?;
            match name.as_str() {
                "--sessions" => load.sessions = value,
                "--questions" => load.questions = value,
                "--watchers" => load.watchers = value,
                "--rate" => load.rate = value,
                "--answers" => load.answers = value,
                _ => return Err(format!("`{name}` is not known").into()),
            }
        }
        load.answers = load.answers.min(load.questions / 2);
        Ok(load)
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, folder] = &arguments[..]
        && let Some(served) = process::serve(role, Path::new(folder))
    {
        return served;
    }
    let load = Load::from_arguments(arguments.into_iter())?;
    // Browsers run on other machines, as a rule: what they do must not hold up the clocks of the sessions.
    let browsers = runtime(1)?;
    let faults = runtime(2)?.block_on(measure(load, browsers.handle()))?;
    browsers.shutdown_background();
    if faults.is_empty() {
        println!("\nNo event was lost, and every question timed out within {TOLERANCE:?} of its deadline.");
        return Ok(());
    }
    Err(faults.join("; ").into())
}

fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

async fn measure(load: Load, browsers: &tokio::runtime::Handle) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let audit = folder.path().join("audit");
    let log = Log::at(&audit, folder.path().join("audit.key")).durability(Durability::Group).open()?;
    let child = Child::server(folder.path())?;
    let reach = child.reach().await?.with_token(TokenFiles::at(folder.path().join("server"))?.admin()?);
    let begin = log.status().size;

    let begun = Instant::now();
    let audience = Arc::new(Audience::new(begun, begin));
    audience.fill(load, &reach, browsers).await?;
    let before = Usage::of(child.id())?;
    let memory = child.watch_memory();
    let crowd = Crowd::start(load, &log, folder.path(), begun)?;
    let pending = AtomicUsize::new(0);
    until(load.limits[0], || async {
        let metrics = reach.get("/metrics").await.unwrap_or_default();
        let open = metrics.lines().find_map(|line| line.strip_prefix("amplifier_approvals_pending ")?.parse().ok());
        pending.fetch_max(open.unwrap_or(0), Ordering::Relaxed);
        open == Some(load.questions)
    })
    .await;
    let most_pending = pending.into_inner();
    let ready = begun.elapsed();

    let listed = Instant::now();
    let pending: Value = serde_json::from_str(&reach.get("/api/approvals").await?)?;
    let listed = listed.elapsed();
    let answers = answer(load, &reach, &pending).await?;
    let tally = crowd.finish().await?;
    let emitted_for = begun.elapsed();
    let usage = Usage::of(child.id())?.since(before);
    let own = Usage::of(std::process::id())?;

    audience.hurry();
    let size = log.status().size;
    until(Duration::from_secs(30), || async { audience.have_all(size, &tally) }).await;
    let caught_up = begun.elapsed() - emitted_for;
    let memory = memory.end();
    let watched = audience.total(size, &tally);
    child.end();
    let bytes = folder_bytes(&audit)?;
    log.close()?;

    let seconds = emitted_for.as_secs_f64();
    let floor = floor::measure(load, &watched, seconds, browsers).await?;
    println!(
        "{} sessions emit {} events a second, {} questions are open, {} browsers watch all records ({} of them slowly, {} one session).\n",
        load.sessions, load.rate, load.questions, load.watchers, watched.slow, watched.of_one,
    );
    report(&tally, &watched, &answers, seconds, &usage, &floor);
    println!();
    row("questions open at once, after", [format!("{most_pending}, {ready:.1?}"), String::new()]);
    row("all open questions listed", [format!("{listed:.1?}"), String::new()]);
    row("slow browsers caught up after", [format!("{caught_up:.1?}"), String::new()]);
    row("memory at first, at most, at last", [memory.to_string(), floor.memory.to_string()]);
    row("records, and bytes of the log", [format!("{size}, {} MB", bytes / 1_000_000), String::new()]);
    row("processor time of the clients", [format!("{:.1} s", own.seconds()), String::new()]);
    let mut faults = faults(load, &tally, &watched, memory.most);
    if tally.answered != answers.count() {
        faults.push(format!("{} of {} answers counted", tally.answered, answers.count()));
    }
    if most_pending < load.questions {
        faults.push(format!("only {most_pending} questions were open at once"));
    }
    Ok(faults)
}

fn report(tally: &Tally, watched: &Total, answers: &Spread, seconds: f64, usage: &Usage, floor: &floor::Floor) {
    let per = |count: u64| format!("{:.0}", count as f64 / seconds);
    row("", ["server", "echo floor"].map(str::to_owned));
    row("events emitted a second", [per(tally.emitted), String::new()]);
    row("records received a second", [per(watched.records), String::new()]);
    row("messages received a second", [per(watched.messages), format!("{:.0}", floor.messages)]);
    row("megabytes received a second", [per(watched.bytes / 1_000_000), format!("{:.0}", floor.megabytes)]);
    row("bytes a message", [watched.bytes_each().to_string(), floor.bytes_each.to_string()]);
    let share = |usage: &Usage, seconds: f64| format!("{:.0} %", 100.0 * usage.seconds() / seconds);
    row("one core's time", [share(usage, seconds), share(&floor.usage, floor.seconds)]);
    row("from emission to receipt, p50 p99 max", [watched.lag.to_string(), floor.lag.to_string()]);
    row("HTTP answer, p50 p99 max", [answers.to_string(), floor.http.to_string()]);
    row("messages a second, at most", [String::new(), format!("{:.0}", floor.most)]);
    row("emission, p50 p99 max", [tally.took.to_string(), String::new()]);
    row("time-out off by, p50 p99 max", [tally.off.to_string(), String::new()]);
    row("questions timed out, answered", [format!("{}, {}", tally.off.count(), tally.answered), String::new()]);
    row("told all anew; cut off, and came back", [format!("{}; {}", watched.anew, watched.cut_off), String::new()]);
}

fn faults(load: Load, tally: &Tally, watched: &Total, memory: u64) -> Vec<String> {
    let mut faults = watched.faults.clone();
    if tally.off.most() > TOLERANCE || tally.earliest > TOLERANCE {
        faults.push(format!("a question timed out {:?} late, or {:?} early", tally.off.most(), tally.earliest));
    }
    if tally.off.count() + tally.answered != load.questions {
        faults.push("some questions were neither answered nor timed out".to_owned());
    }
    if memory > MEMORY {
        faults.push(format!("the server took {} MB", memory >> 20));
    }
    faults
}

/// Answers some of the questions, one after another, while there is time, and says how long each takes.
async fn answer(load: Load, reach: &Reach, pending: &Value) -> Result<Spread> {
    let open = pending["approvals"].as_array().ok_or("no questions are listed")?;
    // The last ones have the most time left.
    let mut open: Vec<&Value> = open.iter().collect();
    open.sort_by_key(|approval| approval["deadline"].as_str());
    let mut took = Vec::new();
    let begun = Instant::now();
    for approval in open.iter().rev().take(load.answers) {
        if begun.elapsed() > ANSWERING {
            break;
        }
        let path = format!("/api/approvals/{}/answer", approval["id"].as_str().unwrap_or_default());
        let body = serde_json::json!({ "option": "Allow", "nonce": approval["nonce"] }).to_string();
        let asked = Instant::now();
        reach.post(&path, &body).await?;
        took.push(asked.elapsed());
        sleep(Duration::from_millis(5)).await;
    }
    Ok(Spread::of(took))
}

/// Waits until it holds, at most so long; says whether it does.
async fn until<F: Future<Output = bool>>(limit: Duration, holds: impl Fn() -> F) -> bool {
    let waited = timeout(limit, async {
        while !holds().await {
            sleep(Duration::from_millis(100)).await;
        }
    });
    waited.await.is_ok()
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        bytes += file?.metadata()?.len();
    }
    Ok(bytes)
}
