//! Other processes: none is seen or reached, and none is left.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{LAUNCHER, Place, Ran, is_possible, start};
use crate::common::heeding_hangups;

/// A process outside that others try to reach.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("1000").env("SECRET", "of-the-victim").stdin(Stdio::null()).spawn().unwrap())
    }

    fn status(&self, key: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        status.lines().find(|line| line.starts_with(key)).unwrap().to_owned()
    }

    fn limits(&self) -> String {
        fs::read_to_string(format!("/proc/{}/limits", self.0.id())).unwrap()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn no_process_outside_can_be_signalled_limited_traced_or_read() {
    if !is_possible(&[]) {
        return;
    }
    let (place, victim) = (Place::new(), Victim::new());
    let (id, this) = (victim.0.id(), std::process::id());
    let (limits, own_limits) = (victim.limits(), fs::read("/proc/self/limits").unwrap());
    for process in [id, this] {
        let ways = [
            format!("kill -9 {process}"),
            format!("kill -STOP {process}"),
            format!("kill -9 -- -{process}"),
            format!("prlimit --pid {process} --nofile=16:16"),
            format!("prlimit --pid {process} --core=unlimited"),
            format!("cat /proc/{process}/environ"),
            format!("cat /proc/{process}/cmdline"),
            format!("head -c1 /proc/{process}/mem"),
            format!("ls /proc/{process}/fd"),
            format!("ls /proc/{process}/root/"),
            format!("ls /proc/{process}/cwd/"),
            format!("nsenter --target {process} --user --mount true"),
            format!(
                "python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).ptrace(16, {process}, 0, 0) == 0)' && false"
            ),
            format!("timeout 20 gdb --batch --pid {process} -ex 'print 1' | grep '= 1' && kill -0 {process}"),
        ];
        for way in ways {
            let ran = place.run(&way);
            assert_ne!(ran.code, Some(0), "{way}: {ran:?}");
            assert!(!ran.out.contains("of-the-victim"), "{way}: {ran:?}");
        }
    }
    assert!(victim.status("State").contains("sleeping"), "{}", victim.status("State"));
    assert_eq!((victim.limits(), fs::read("/proc/self/limits").unwrap()), (limits, own_limits));
}

#[test]
fn a_program_cannot_reach_the_process_that_started_it() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let script = "kill -9 $PPID; kill -STOP $PPID; cat /proc/$PPID/environ; cat /proc/$PPID/fd/0; ls /proc/$PPID/root/; \
                  kill -9 -1; echo still here; exit 3";
    let ran = place.run(script);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), "still here\n"), "{ran:?}");
    assert_eq!(ran.error.matches("Permission denied").count(), 3, "{ran:?}");
    assert_eq!(place.run("echo $$ $PPID /proc/[0-9]*").fine(), "2 1 /proc/1 /proc/2\n");
}

#[test]
fn processes_in_the_background_end_with_the_program() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let began = Instant::now();
    // It holds its standard output open for as long as it lives.
    let ran = place.run("setsid sleep 300 & (setsid bash -c 'trap \"\" TERM HUP; sleep 300' &); echo done");
    assert_eq!(ran.fine(), "done\n");
    assert!(began.elapsed() < Duration::from_secs(250));
}

#[test]
fn all_processes_end_when_the_launcher_is_killed() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let script = "trap '' TERM HUP; (setsid sleep 300 &); echo runs; sleep 300";
    let (mut child, mut out, line) = start(place.command(&[], script));
    assert_eq!(line, "runs");
    let began = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.is_empty() && began.elapsed() < Duration::from_secs(250));
}

#[test]
fn a_launcher_that_is_killed_while_it_starts_leaves_nothing() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    for round in 0..30 {
        let mut child = place.command(&[], "sleep 300").stdout(Stdio::piped()).spawn().unwrap();
        // Each time a little later, from before its first step to after the start of the program.
        for _ in 0..round * 20 {
            fs::metadata(LAUNCHER).unwrap();
        }
        let began = Instant::now();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert!(rest.is_empty() && began.elapsed() < Duration::from_secs(250));
    }
}

#[test]
fn the_end_of_a_program_is_that_of_the_launcher() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    for options in [&[][..], &["--session"]] {
        let check = |script: &str, code: Option<i32>, signal: Option<i32>| {
            let ran = Ran::new(heeding_hangups(place.command(options, script)).output().unwrap());
            assert_eq!((ran.code, ran.signal), (code, signal), "{script}: {ran:?}");
        };
        check("true", Some(0), None);
        check("exit 7", Some(7), None);
        check("exit 143", Some(143), None);
        check("exit 255", Some(255), None);
        // Without SIGINT, which may be ignored by whoever runs the tests.
        for signal in [1, 6, 9, 11, 15] {
            check(&format!("kill -{signal} $$"), None, Some(signal));
        }
    }
    let missing = Command::new(LAUNCHER).args(["confined", "--", "/no/such"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    let no_program = Command::new(LAUNCHER).args(["confined", "--", "/etc/passwd"]).output().unwrap();
    assert_eq!(no_program.status.code(), Some(126));
}

#[test]
fn a_signal_to_the_group_reaches_the_program_which_ends_as_it_likes() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let (mut child, mut out, line) =
        start(place.command(&[], "trap 'echo told; exit 5' TERM; echo ready; sleep 300 & wait"));
    assert_eq!(line, "ready");
    let killed = Command::new("bash").args(["-c", &format!("kill -TERM -- -{}", child.id())]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("told\n", Some(5)));
}

#[test]
fn a_program_leads_no_session_of_others_however_it_is_started() {
    let session = "ps -o sid= -p $$";
    let own = String::from_utf8(Command::new("bash").args(["-c", session]).output().unwrap().stdout).unwrap();
    for options in [&[][..], &["--landlock"], &["--session"]] {
        if !is_possible(options) {
            continue;
        }
        for leads_group in [false, true] {
            let mut command = Command::new(LAUNCHER);
            command.arg("confined").args(options).args(["--", "bash", "-c", session]);
            if leads_group {
                command.process_group(0);
            }
            let ran = Ran::new(command.output().unwrap());
            assert_ne!(ran.fine(), own, "{options:?}");
        }
    }
}

#[test]
fn a_program_leaves_no_core_dump() {
    for options in [&[][..], &["--landlock"]] {
        if !is_possible(options) {
            continue;
        }
        let place = Place::new();
        let script = "ulimit -Sc; ulimit -Hc; ulimit -c unlimited 2>/dev/null; cd free; bash -c 'kill -ABRT $$'; ls";
        let ran = Ran::new(place.command(options, script).output().unwrap());
        assert_eq!(ran.out, "0\n0\n", "{ran:?}");
    }
}

#[test]
fn a_program_has_only_its_standard_files() {
    for options in [&[][..], &["--landlock"]] {
        if !is_possible(options) {
            continue;
        }
        let place = Place::new();
        let script = format!(
            "exec 7</ 8>free/open 9</dev/null; {LAUNCHER} confined {} -- bash -c 'ls /proc/$$/fd; true'",
            options.join(" ")
        );
        let listed = place.run_around(&script).fine();
        let names: Vec<&str> = listed.split_whitespace().collect();
        assert_eq!(names, ["0", "1", "2"]);
    }
}

#[test]
fn shared_memory_and_sockets_without_files_of_others_are_out_of_reach() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    assert_eq!(place.run("tail -n +2 /proc/sysvipc/shm | wc -l").fine(), "0\n");
    let script = "import socket, subprocess, sys\n\
                  listener = socket.socket(socket.AF_UNIX)\n\
                  listener.bind('\\0amplifier-test-' + sys.argv[2])\n\
                  listener.listen()\n\
                  inner = 'import socket, sys; socket.socket(socket.AF_UNIX).connect(chr(0) + \"amplifier-test-\" + sys.argv[1])'\n\
                  ended = subprocess.run([sys.argv[1], 'confined', '--', sys.executable, '-c', inner, sys.argv[2]], capture_output=True)\n\
                  print(b'Operation not permitted' in ended.stderr, ended.returncode)";
    let name = std::process::id().to_string();
    let ran = Command::new("python3").args(["-c", script, LAUNCHER, &name]).output().unwrap();
    let ran = Ran::new(ran);
    // Older systems cannot do that.
    if is_possible(&["--landlock"]) && !ran.out.contains("False 0") {
        assert_eq!(ran.fine(), "True 1\n");
    }
}

#[test]
fn nothing_is_left_of_a_program_without_namespaces_either() {
    let script =
        "setsid bash -c 'echo $$ > free/stray; exec sleep 1000' & disown; until [ -s free/stray ]; do :; done; exit 3";
    for options in [&["--session"][..], &["--landlock"]] {
        if !is_possible(options) {
            continue;
        }
        let place = Place::new();
        let ran = Ran::new(place.command(options, script).output().unwrap());
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let stray = place.read("free/stray");
        let process = format!("/proc/{}", stray.trim());
        assert!(!std::path::Path::new(&process).exists(), "{options:?}: {process} is left");
    }
}
