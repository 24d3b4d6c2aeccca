//! Three servers, machines and collectors that fail at random moments, for as long as `FLEET_SECONDS` says. For use before a release.

use super::crashes::Process;
use super::*;
use crate::support::{Cluster, new_server};

/// Numbers that look random, and are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_at_random_failures() {
    let Some(program) = new_server() else { return };
    let Some(seconds) = std::env::var("FLEET_SECONDS").ok().and_then(|seconds| seconds.parse().ok()) else {
        return eprintln!("not run: set `FLEET_SECONDS` to the duration of the random failures");
    };
    let seed = std::env::var("FLEET_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut numbers = Numbers(seed);
    let mut cluster = Cluster::start(&program, "");
    let connection = cluster.connect("admin").await;
    let start = Instant::now();
    while let Err(error) = create_streams(&connection, Replicas::Three, 1_024 * MIB).await {
        assert!(start.elapsed() < LIMIT, "{error}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let urls = cluster.urls().join(",");
    let (machines, mirrors) = (["m1", "m2", "m3"].map(Machine::new), tempfile::tempdir().unwrap());
    let begin = |machine: &Machine| Process::start(&machine.name, machine.folder.path(), &urls);
    let collect_again = || Process::start("a", mirrors.path(), &urls);
    let mut processes = machines.each_ref().map(|machine| Some(begin(machine)));
    let mut collector = Some(collect_again());
    let mut failures = [0; 4];
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_millis(500 + numbers.below(2_500))).await;
        // One server at a time: two of three must agree.
        let server = &mut cluster.servers[usize::try_from(numbers.below(3)).unwrap()];
        let failure = numbers.below(4);
        failures[usize::try_from(failure).unwrap()] += 1;
        match failure {
            0 => {
                server.kill();
                tokio::time::sleep(Duration::from_millis(numbers.below(8_000))).await;
                server.restart();
            }
            1 => {
                server.pause();
                tokio::time::sleep(Duration::from_millis(numbers.below(8_000))).await;
                server.resume();
            }
            2 => {
                let index = usize::try_from(numbers.below(3)).unwrap();
                // A killed process must be gone before the next one begins.
                drop(processes[index].take());
                processes[index] = Some(begin(&machines[index]));
            }
            _ => {
                drop(collector.take());
                collector = Some(collect_again());
            }
        }
    }
    drop((processes, collector));
    let _collector = collect(&connection, "a", mirrors.path()).await;
    for machine in &machines {
        machine.write(10);
        machine.ship(&connection).close(LIMIT).await.unwrap();
        let logs: Vec<PathBuf> =
            fs::read_dir(mirrors.path().join(&*machine.name)).unwrap().map(|log| log.unwrap().path()).collect();
        assert!(logs.len() == 1 && segments(&machine.log()) == segments(&logs[0]), "{logs:?}");
    }
    let mut records = 0;
    for report in verify_mirrors(mirrors.path(), &known_collectors(), &[]).unwrap() {
        assert!(report.is_sound() && report.receipts.len() == 1, "{report}");
        records += report.report.size;
    }
    eprintln!("{records} records; killed and paused servers, machines, collectors: {failures:?}");
}
