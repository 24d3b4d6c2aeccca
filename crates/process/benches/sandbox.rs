//! The overhead of a sandbox: `bash -c true` from start to end, compared with the same command without a sandbox.
//!
//! Takes the program that is the launcher, as a session has it: `cargo bench -p amplifier-process --bench sandbox -- target/release/amplifier`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use amplifier_process::sandbox::{Sandbox, SandboxPolicy};
use amplifier_process::{Command, Environment};

const ROUNDS: usize = 200;

/// The shortest pause of a model between two commands.
const PAUSE: Duration = Duration::from_millis(50);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let launcher = std::env::args_os().skip(1).find(|word| !word.to_string_lossy().starts_with("--"));
    let launcher = PathBuf::from(launcher.ok_or("which program is the launcher? give its path")?).canonicalize()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&[launcher.into(), "confined".into()]))
}

async fn measure(starter: &[OsString]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let made = |name: String| -> Result<PathBuf> {
        let path = folder.path().join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    };
    // About as many as a session protects.
    let policy = SandboxPolicy {
        read_only: (0..20).map(|number| made(format!("read-only-{number}"))).collect::<Result<_>>()?,
        hidden: (0..10).map(|number| made(format!("hidden-{number}"))).collect::<Result<_>>()?,
        ..SandboxPolicy::default()
    };
    let ready = policy.namespace_sandbox(starter)?;
    let mut contenders = vec![
        ("without a sandbox", Sandbox::default()),
        ("sandbox, made before", ready.clone()),
        ("sandbox, made now", Sandbox::through(ready.words())),
        ("session of its own only", SandboxPolicy::session_sandbox(starter)),
    ];
    if std::process::Command::new("bwrap").arg("--version").output().is_ok() {
        let mut words: Vec<OsString> =
            "bwrap --unshare-user --unshare-pid --unshare-ipc --new-session --die-with-parent --bind / /"
                .split(' ')
                .map(OsString::from)
                .collect();
        for path in &policy.read_only {
            words.extend(["--ro-bind".into(), path.into(), path.into()]);
        }
        words.extend(["--dev", "/dev", "--proc", "/proc", "--"].map(OsString::from));
        contenders.push(("bubblewrap, made now", Sandbox::through(words)));
    }
    let mut times = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS + 5 {
        for ((_, sandbox), times) in contenders.iter().zip(&mut times) {
            tokio::time::sleep(PAUSE).await;
            let command =
                Command::new("bash", Environment::Commands).args(["-c", "true"]).without_input().sandbox(sandbox);
            let begun = Instant::now();
            let completed = command.run(&[], Duration::from_secs(10), 1024).await?;
            let elapsed = begun.elapsed();
            if !completed.status.is_some_and(|status| status.success()) {
                return Err(format!("it failed: {}", String::from_utf8_lossy(&completed.stderr.bytes)).into());
            }
            // The first ones fill caches.
            if round >= 5 {
                times.push(elapsed);
            }
        }
    }
    report(&contenders, &mut times);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a report")]
fn report(contenders: &[(&str, Sandbox)], times: &mut [Vec<Duration>]) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let mut floor = None;
    for ((name, _), times) in contenders.iter().zip(times) {
        times.sort();
        let (best, median) = (milliseconds(times[0]), milliseconds(times[times.len() / 2]));
        let (floor_best, floor_median) = *floor.get_or_insert((best, median));
        println!(
            "{name:<24} {best:6.2} ms at best ({:.2}x), {median:6.2} ms in the middle ({:.2}x)",
            best / floor_best,
            median / floor_median
        );
    }
}
