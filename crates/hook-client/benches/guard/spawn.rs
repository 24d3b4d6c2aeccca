//! Calls of programs, as clients make them.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::Result;

/// A program with its arguments.
pub(crate) struct Call(Vec<String>);

impl Call {
    pub(crate) fn words(words: &[String]) -> Self {
        Self(words.to_vec())
    }

    /// A line, which clients give to a shell.
    pub(crate) fn shell(line: &str) -> Self {
        Self(["/bin/sh", "-c", line].map(str::to_owned).to_vec())
    }

    /// Runs the program to its end, which must be a success without a complaint.
    pub(crate) fn run(&self, payload: &str) -> Result<()> {
        finish(self.start(payload)?)
    }

    fn start(&self, payload: &str) -> Result<Child> {
        let mut child = Command::new(&self.0[0])
            .args(&self.0[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("no pipe")?;
        match stdin.write_all(payload.as_bytes()) {
            // A program that reads nothing.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(child),
        }
    }
}

/// Starts a program for each payload, and waits for all of them.
pub(crate) fn all_at_once(call: &Call, payloads: impl Iterator<Item = String>) -> Result<()> {
    let children: Vec<Child> = payloads.map(|payload| call.start(&payload)).collect::<Result<_>>()?;
    children.into_iter().try_for_each(finish)
}

fn finish(child: Child) -> Result<()> {
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("a call failed: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
