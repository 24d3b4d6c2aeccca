//! A process and its descendants, on Windows.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The interval of checks for the end of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A process with its descendants. Dropping it kills them.
///
/// Descendants of a process that has ended are out of reach.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: u32,
}

impl ProcessGroup {
    /// The process and its descendants.
    ///
    /// INVARIANT: the owner holds the process open. Until then, its id is not reused.
    pub fn from_leader(id: u32) -> Option<Self> {
        Some(Self { leader: id })
    }

    /// Does nothing: Windows has no process groups.
    pub(crate) fn with_watcher(self, _watcher: Option<GroupWatcher>) -> Self {
        self
    }

    /// Returns a function that waits until the process has ended.
    pub fn wait_for_leader(&self) -> impl FnOnce() + Send + use<> {
        let leader = self.leader;
        move || {
            while is_running(leader) {
                sleep(POLL_INTERVAL);
            }
        }
    }

    pub(crate) fn kill(self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Fails if the process has ended.
        let _ = system_tool("taskkill.exe").args(["/T", "/F", "/PID", &self.leader.to_string()]).status();
    }
}

/// A placeholder: programs do not end with this process here.
#[derive(Debug)]
pub(crate) struct GroupWatcher;

impl GroupWatcher {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self)
    }
}

/// Returns `true` if a process with that id seems to run.
fn is_running(id: u32) -> bool {
    let filter = format!("PID eq {id}");
    let listed =
        system_tool("tasklist.exe").args(["/NH", "/FO", "CSV", "/FI", &filter]).stdout(Stdio::piped()).output();
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(&format!("\"{id}\"")))
}

/// Returns a system program by its path: the current folder may contain one of that name.
fn system_tool(name: &str) -> Command {
    let mut command = Command::new(system_folder().join("System32").join(name));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

pub(crate) fn system_folder() -> PathBuf {
    std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into()).into()
}
