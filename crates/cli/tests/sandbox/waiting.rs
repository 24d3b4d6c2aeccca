//! Sandboxes that are made before they are needed: they run and protect as others do.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use amplifier_process::sandbox::{PinnedFile, Sandbox, SandboxPolicy};
use amplifier_process::{Command, CompletedProcess, Environment};
use sha2::{Digest, Sha256};

use super::{LAUNCHER, Place, is_possible};

const LIMIT: Duration = Duration::from_secs(60);

/// A sandbox that cannot change a protected folder and does not see its key.
fn sandbox(place: &Place) -> Sandbox {
    with_policy(SandboxPolicy {
        read_only: vec![place.at("protected")],
        hidden: vec![place.at("protected/key"), place.at("later")],
        ..SandboxPolicy::default()
    })
}

fn with_policy(policy: SandboxPolicy) -> Sandbox {
    policy.namespace_sandbox(&[LAUNCHER.into(), "confined".into()]).unwrap()
}

/// Makes a sandbox for the next program, and waits until it is ready.
async fn prepare(sandbox: &Sandbox) {
    sandbox.prepare();
    let begun = Instant::now();
    while !sandbox.is_ready() {
        assert!(begun.elapsed() < LIMIT, "it is not ready");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn shell(place: &Place, sandbox: &Sandbox, script: &str) -> Command {
    Command::new("bash", Environment::Commands).args(["-c", script]).folder(place.at("free")).sandbox(sandbox)
}

/// Runs a script in a sandbox that was made before, and gives what it wrote.
async fn run(place: &Place, sandbox: &Sandbox, script: &str) -> String {
    prepare(sandbox).await;
    let completed = shell(place, sandbox, script).run(b"", LIMIT, 65536).await.unwrap();
    text(&completed)
}

fn text(completed: &CompletedProcess) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&completed.stdout.bytes) + &text(&completed.stderr.bytes)
}

/// The processes of launchers that wait, of this sandbox.
fn waiting(sandbox: &Sandbox) -> usize {
    let wanted = sandbox.words().iter().find(|word| word.to_string_lossy().contains("/protected")).unwrap();
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let is_meant = |line: &Vec<u8>| {
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&b"--wait".as_slice()) && words.contains(&wanted.as_encoded_bytes())
    };
    processes.filter(is_meant).count()
}

#[tokio::test]
async fn a_program_in_a_sandbox_that_was_made_before_reads_writes_and_ends_as_elsewhere() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let sandbox = sandbox(&place);
    prepare(&sandbox).await;
    let script = "read line; echo \"$line in $PWD with $GIVEN\"; echo problem >&2; ls /proc/self/fd; exit 7";
    let command = shell(&place, &sandbox, script).variable("GIVEN", "a=b\nc");
    let completed = command.run(b"input\nmore\n", LIMIT, 1024).await.unwrap();
    let folder = place.at("free");
    let expected = format!("input in {} with a=b\nc\n0\n1\n2\n3\n", folder.display());
    assert_eq!(String::from_utf8_lossy(&completed.stdout.bytes), expected);
    assert_eq!(
        (completed.stderr.bytes.as_slice(), completed.status.unwrap().code()),
        (b"problem\n".as_slice(), Some(7))
    );

    prepare(&sandbox).await;
    let merged =
        shell(&place, &sandbox, "echo one; echo two >&2; cat; echo three").without_input().with_errors_in_output();
    let completed = merged.run(b"", LIMIT, 1024).await.unwrap();
    assert_eq!((completed.stdout.bytes.as_slice(), completed.stderr.bytes.len()), (b"one\ntwo\nthree\n".as_slice(), 0));

    prepare(&sandbox).await;
    let killed = shell(&place, &sandbox, "kill -SEGV $$").run(b"", LIMIT, 1024).await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed.status.unwrap()), Some(11));

    prepare(&sandbox).await;
    let missing = Command::new("no-such-program", Environment::Commands).sandbox(&sandbox);
    let missing = missing.run(b"", LIMIT, 1024).await.unwrap();
    assert_eq!(missing.status.unwrap().code(), Some(127));
    assert!(text(&missing).starts_with("amplifier: `no-such-program` cannot be started: "), "{missing:?}");
}

#[tokio::test]
async fn the_next_program_runs_in_the_sandbox_that_was_made_before() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let sandbox = sandbox(&place);
    let namespace = "readlink /proc/self/ns/pid; cat /proc/1/stat | cut -d' ' -f22; cut -d' ' -f22 /proc/self/stat";
    prepare(&sandbox).await;
    // The clock in `/proc` ticks a hundred times a second.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let completed = shell(&place, &sandbox, namespace).run(b"", LIMIT, 1024).await.unwrap();
    let said = text(&completed);
    let times: Vec<i64> = said.lines().skip(1).map(|time| time.parse().unwrap()).collect();
    assert!(times[1] - times[0] >= 25, "the sandbox was not made before: {said}");
    // Each is used once, and the end of a program makes the next.
    let begun = Instant::now();
    while !sandbox.is_ready() {
        assert!(begun.elapsed() < LIMIT, "no other was made");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = run(&place, &sandbox, namespace).await;
    assert_ne!(other.lines().next(), said.lines().next());
}

#[tokio::test]
async fn a_sandbox_that_was_made_before_protects_what_has_changed_since() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let sandbox = sandbox(&place);
    let attack = "echo x >> ../protected/rule; cat ../protected/key ../later; echo x > ../protected/new; true";
    let check = |said: String| {
        assert!(said.contains("Read-only file system") && !said.contains("secret"), "{said}");
        place.check_unchanged();
    };
    check(run(&place, &sandbox, attack).await);

    // A hidden file that comes into being, and a protected folder that becomes another.
    prepare(&sandbox).await;
    fs::write(place.at("later"), "secret\n").unwrap();
    fs::rename(place.at("protected"), place.at("before")).unwrap();
    fs::create_dir_all(place.at("protected/inner")).unwrap();
    for file in ["rule", "inner/rule", "key"] {
        fs::copy(place.at(&format!("before/{file}")), place.at(&format!("protected/{file}"))).unwrap();
    }
    let completed = shell(&place, &sandbox, attack).run(b"", LIMIT, 65536).await.unwrap();
    check(text(&completed));
    check(run(&place, &sandbox, attack).await);
}

#[tokio::test]
async fn pinned_files_are_the_trusted_ones_and_files_beside_them_the_newest() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let sha256 = Sha256::digest(fs::read(place.at("protected/rule")).unwrap()).into();
    let pinned = PinnedFile { path: place.at("protected/rule"), sha256 };
    let sandbox = sandbox(&place).pinning(&[pinned]);
    let both = "cat ../protected/rule ../protected/inner/rule ../protected/settings";
    fs::write(place.at("protected/settings"), "old\n").unwrap();
    assert_eq!(run(&place, &sandbox, both).await, "rule\nrule\nold\n");

    prepare(&sandbox).await;
    let replace = |name: &str, text: &str| {
        fs::write(place.at("free/new"), text).unwrap();
        fs::rename(place.at("free/new"), place.at(name)).unwrap();
    };
    replace("protected/settings", "new\n");
    let completed = shell(&place, &sandbox, both).run(b"", LIMIT, 1024).await.unwrap();
    assert_eq!(text(&completed), "rule\nrule\nnew\n");

    prepare(&sandbox).await;
    replace("protected/rule", "another\n");
    let completed = shell(&place, &sandbox, both).run(b"", LIMIT, 1024).await.unwrap();
    assert!(text(&completed).starts_with("amplifier: a pinned file has changed: "), "{completed:?}");
}

#[tokio::test]
async fn nothing_is_left_of_a_program_nor_of_sandboxes_that_nobody_needs() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let sandbox = sandbox(&place);
    // A process that left the group and the tree, and would write after a while.
    let script = "setsid bash -c 'sleep 1; echo x > ../free/late' & disown; exit 0";
    run(&place, &sandbox, script).await;
    prepare(&sandbox).await;
    let endless = shell(&place, &sandbox, "trap '' TERM INT HUP; setsid sleep 1000 & while :; do sleep 1; done");
    let completed = endless.run(b"", Duration::from_millis(300), 1024).await.unwrap();
    assert!(!completed.in_time);
    prepare(&sandbox).await;
    assert!(waiting(&sandbox) > 0);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(!Path::new(&place.at("free/late")).exists());

    let words = Sandbox::through(sandbox.words());
    drop((sandbox, endless));
    let begun = Instant::now();
    while waiting(&words) > 0 {
        assert!(begun.elapsed() < LIMIT, "{} are left", waiting(&words));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The folder in which this program, started once more, runs a program until it is killed.
const FOLDER: &str = "AMPLIFIER_TEST_FOLDER";

#[tokio::test]
async fn a_program_ends_when_the_process_that_uses_its_sandbox_is_killed() {
    if !is_possible(&[]) {
        return;
    }
    if let Some(folder) = std::env::var_os(FOLDER) {
        let sandbox = with_policy(SandboxPolicy {
            read_only: vec![Path::new(&folder).join("protected")],
            ..SandboxPolicy::default()
        });
        prepare(&sandbox).await;
        let script = "exec 3> alive; echo runs >&3; sleep 1000";
        let command = Command::new("bash", Environment::Commands).args(["-c", script]).folder(folder).sandbox(&sandbox);
        command.run(b"", LIMIT, 1024).await.unwrap();
        return;
    }
    let place = Place::new();
    super::make_pipe(&place.at("alive"));
    let mut user = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "sandbox::waiting::a_program_ends_when_the_process_that_uses_its_sandbox_is_killed";
    let mut user = user.args([name, "--exact"]).env(FOLDER, place.at("")).spawn().unwrap();
    let alive = place.at("alive");
    let text = tokio::task::spawn_blocking(move || {
        // The first line says that the program runs. The end comes when nobody has the pipe open any more.
        let mut pipe = std::io::BufReader::new(fs::File::open(alive).unwrap());
        let mut text = String::new();
        std::io::BufRead::read_line(&mut pipe, &mut text).unwrap();
        user.kill().unwrap();
        user.wait().unwrap();
        std::io::Read::read_to_string(&mut pipe, &mut text).unwrap();
        text
    });
    assert_eq!(tokio::time::timeout(LIMIT, text).await.expect("the program still runs").unwrap(), "runs\n");
}

#[tokio::test]
async fn a_sandbox_that_ended_while_it_was_made_does_not_take_the_place_of_the_next() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let pinned = place.at("protected/pinned");
    fs::write(&pinned, "checked").unwrap();
    let files = [PinnedFile { path: pinned.clone(), sha256: Sha256::digest("checked").into() }];
    let sandbox = sandbox(&place).pinning(&files);
    // The launcher finds other bytes and ends.
    fs::write(&pinned, "changed").unwrap();
    sandbox.prepare();
    let begun = Instant::now();
    let mut has_been_seen = false;
    loop {
        let is_there = waiting(&sandbox) > 0;
        has_been_seen |= is_there;
        // It may come and go between two looks.
        if !is_there && (has_been_seen || begun.elapsed() > Duration::from_secs(3)) {
            break;
        }
        assert!(begun.elapsed() < LIMIT, "it does not end");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!sandbox.is_ready());
    fs::write(&pinned, "checked").unwrap();
    assert_eq!(run(&place, &sandbox, "echo fine").await, "fine\n");
}
