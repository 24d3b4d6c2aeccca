//! The launcher itself, as attackers see it from inside: real processes, terminals and mounts.
//!
//! Where the system allows no namespaces or has no Landlock, this is said, and the tests of it are left out.

#![cfg(target_os = "linux")]

mod landlock;
mod mounts;
mod pins;
mod processes;
mod terminals;
mod waiting;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::common::is_possible;
use tempfile::TempDir;

const LAUNCHER: &str = env!("CARGO_BIN_EXE_amplifier");

/// A folder with a protected folder and a key in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["protected/inner", "free"] {
            fs::create_dir_all(place.at(folder)).unwrap();
        }
        fs::write(place.at("protected/rule"), "rule\n").unwrap();
        fs::write(place.at("protected/inner/rule"), "rule\n").unwrap();
        fs::write(place.at("protected/key"), "secret\n").unwrap();
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// The options that protect the folder and hide the key.
    fn options(&self) -> Vec<String> {
        let path = |path: &str| self.at(path).display().to_string();
        vec!["--read-only".to_owned(), path("protected"), "--hidden".to_owned(), path("protected/key")]
    }

    /// A shell that runs a script in the folder, confined.
    fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(LAUNCHER);
        command.arg("confined").args(options).args(self.options()).args(["--", "bash", "-c", script]);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs a script, and gives what it wrote.
    fn run(&self, script: &str) -> Ran {
        Ran::new(self.command(&[], script).output().unwrap())
    }

    /// Runs a script without confinement, which starts the launcher as `$LAUNCH`, with the same protection.
    fn run_around(&self, script: &str) -> Ran {
        let launch = format!("{LAUNCHER} confined {} --", self.options().join(" "));
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("LAUNCH", launch).current_dir(self.0.path()).stdin(Stdio::null());
        Ran::new(command.output().unwrap())
    }

    fn check_unchanged(&self) {
        for file in ["protected/rule", "protected/inner/rule"] {
            assert_eq!(self.read(file), "rule\n", "{file}");
        }
        assert_eq!(self.read("protected/key"), "secret\n");
        let names = fs::read_dir(self.at("protected")).unwrap().count();
        assert_eq!(names, 3);
    }
}

/// How a program ended.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    signal: Option<i32>,
    out: String,
    error: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (code, signal) = (output.status.code(), output.status.signal());
        Self { code, signal, out: text(output.stdout), error: text(output.stderr) }
    }

    /// What it wrote, if it ended well.
    fn fine(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }
}

/// Starts a program, and waits for its first line.
fn start(mut command: Command) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (child, reader, line.trim().to_owned())
}

/// Makes a pipe with a name, with which processes wait for each other.
fn make_pipe(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
