//! A place to try the program in: a home, a workspace, and a script that the model plays.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here takes; a test that waits for it has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// `true` if this system can confine programs with these options of the launcher; with none, in namespaces. A test that cannot test it says so.
#[allow(clippy::print_stderr, reason = "whoever reads the output of the tests has to know")]
pub(crate) fn is_possible(options: &[&str]) -> bool {
    let launcher = env!("CARGO_BIN_EXE_amplifier");
    let possible = Command::new(launcher).arg("confined").args(options).arg("--").output().unwrap().status.success();
    if !possible {
        eprintln!("NOT TESTED: this system cannot confine programs with the options {options:?}");
    }
    possible
}

pub(crate) struct Place(TempDir);

impl Place {
    /// A place where the model gives these answers.
    pub(crate) fn with(answers: Value) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["home", "workspace"] {
            fs::create_dir(place.at(folder)).unwrap();
        }
        place.answers(answers);
        place
    }

    /// The model gives other answers from now on.
    pub(crate) fn answers(&self, answers: Value) {
        self.write("script.json", &json!({ "answers": answers }).to_string());
    }

    /// The person's standing answers.
    pub(crate) fn rules(&self, rules: Value) {
        self.write("home/approvals.json", &rules.to_string());
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// The program, in the workspace, with an environment that holds nothing else.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier"));
        command.args(arguments).current_dir(self.at("workspace")).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("AMPLIFIER_HOME", self.at("home"));
        command
    }

    /// The program with the script.
    pub(crate) fn scripted(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.env("AMPLIFIER_SCRIPT", self.at("script.json"));
        command
    }

    /// Runs the program without a script.
    pub(crate) fn amplifier(&self, arguments: &[&str]) -> Ran {
        Running::start(self.command(arguments)).end()
    }

    /// Does a task with the script.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Running::start(self.scripted(&[&["run"], arguments].concat())).end()
    }

    /// The messages of the newest session: who speaks, and what.
    pub(crate) fn conversation(&self) -> Vec<(String, String)> {
        let exported = self.amplifier(&["sessions", "export", "last", "--format", "jsonl"]).fine();
        let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let text = |line: &Value, at| line.pointer(at).and_then(Value::as_str).unwrap().to_owned();
        let messages = lines.skip(1).map(|line| (text(&line, "/message/role"), text(&line, "/message/content")));
        messages.filter(|(role, _)| role != "system").collect()
    }

    /// Checks that the audit log is sound, and all of that many sessions in it are sealed.
    pub(crate) fn check_sealed(&self, sessions: u64) {
        let report = self.amplifier(&["audit", "verify"]).fine();
        assert!(report.starts_with("sound: "), "{report}");
        let plural = if sessions == 1 { "" } else { "s" };
        assert!(report.contains(&format!("{sessions} session{plural} sealed, 0 open")), "{report}");
    }

    /// Makes a pipe with a name. Whoever opens one end waits for the other.
    pub(crate) fn make_pipe(&self, path: &str) {
        assert!(Command::new("mkfifo").arg(self.at(path)).status().unwrap().success());
    }

    /// A pipe with a name, for a tool to write to.
    pub(crate) fn pipe(&self, path: &str) -> Pipe {
        self.make_pipe(path);
        let path = self.at(path);
        Pipe(lines(move || fs::File::open(path).unwrap()))
    }
}

/// A pipe that a tool writes to. It is closed when everything that the tool has begun has ended.
pub(crate) struct Pipe(Receiver<String>);

impl Pipe {
    pub(crate) fn line(&self) -> String {
        self.0.recv_timeout(LIMIT).unwrap()
    }

    /// Waits until nobody holds it open.
    pub(crate) fn check_closes(&self) {
        assert_eq!(self.0.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    }
}

/// The program at work.
pub(crate) struct Running {
    child: Child,
    out: JoinHandle<String>,
    errors: Receiver<String>,
    /// What was said on standard error so far.
    said: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let out = std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).unwrap();
            text
        });
        let stderr = child.stderr.take().unwrap();
        Self { child, out, errors: lines(move || stderr), said: String::new() }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        send_signal(name, self.child.id());
    }

    /// Waits until this is said on standard error.
    pub(crate) fn until(&mut self, text: &str) {
        while !self.said.contains(text) {
            let line = self.errors.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no `{text}` in {}", self.said));
            self.said.extend([&line, "\n"]);
        }
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ran {
        loop {
            match self.errors.recv_timeout(LIMIT) {
                Ok(line) => self.said.extend([line.as_str(), "\n"]),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().unwrap();
                    panic!("it does not end: {}", self.said);
                }
            }
        }
        let status = self.child.wait().unwrap();
        Ran { code: code(status), out: self.out.join().unwrap(), error: self.said }
    }
}

/// What came of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Ran {
    /// What it printed, if all went well and there was nothing to say.
    pub(crate) fn fine(self) -> String {
        assert_eq!((self.code, self.error.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// Checks that it failed with this explanation, and printed nothing.
    pub(crate) fn check_failed(&self, error: &str) {
        self.check(1, error);
    }

    /// Checks that it said how it is to be used, and printed nothing.
    pub(crate) fn check_usage(&self, error: &str) {
        self.check(2, error);
    }

    /// Checks that it could not check anything, with this explanation, and printed nothing.
    pub(crate) fn check_unchecked(&self, error: &str) {
        self.check(4, error);
    }

    fn check(&self, code: i32, error: &str) {
        assert_eq!((self.code, self.out.as_str(), self.error.as_str()), (code, "", format!("{error}\n").as_str()));
    }
}

/// Does a task that is given on standard input.
pub(crate) fn with_input(mut command: Command, input: &str) -> Ran {
    let (reader, mut writer) = std::io::pipe().unwrap();
    command.stdin(reader);
    let running = Running::start(command);
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    running.end()
}

pub(crate) fn send_signal(name: &str, process: u32) {
    let kill = format!("kill -{name} {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| panic!("{status}"))
}

/// Lines as they come, until there are no more.
fn lines<R: Read>(open: impl FnOnce() -> R + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(open()).lines() {
            // A test that has ended needs no more.
            if send.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receive
}

/// The same command, which does not inherit that SIGHUP is ignored where the tests run under `nohup`.
pub(crate) fn heeding_hangups(command: Command) -> Command {
    let mut heeding = Command::new("env");
    heeding.arg("--default-signal=HUP").arg(command.get_program()).args(command.get_args());
    heeding.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    heeding.current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
    heeding
}
