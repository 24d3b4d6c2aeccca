//! A process and its descendants, on Windows.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How often it is looked whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A process, with those that it started. When this is dropped, they are killed.
///
/// What the process left behind when it ended by itself is out of reach.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: u32,
}

impl ProcessGroup {
    /// The process and its descendants.
    ///
    /// INVARIANT: whoever has this holds the process open. Until then, its id cannot become that of another.
    pub fn from_leader(id: u32) -> Option<Self> {
        Some(Self { leader: id })
    }

    /// Does nothing: Windows has no process groups.
    pub(crate) fn with_watcher(self, _watcher: Option<GroupWatcher>) -> Self {
        self
    }

    /// Waits until the process has ended.
    pub fn wait_for_leader(&self) -> impl FnOnce() + Send + use<> {
        let leader = self.leader;
        move || {
            while is_running(leader) {
                sleep(POLL_INTERVAL);
            }
        }
    }

    /// Kills them.
    pub(crate) fn kill(self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // It fails if the process has ended.
        let _ = system_tool("taskkill.exe").args(["/T", "/F", "/PID", &self.leader.to_string()]).status();
    }
}

/// Nothing: a program does not end with this process here.
#[derive(Debug)]
pub(crate) struct GroupWatcher;

impl GroupWatcher {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self)
    }
}

/// `true` if there is a process with that id, as far as can be told.
fn is_running(id: u32) -> bool {
    let filter = format!("PID eq {id}");
    let listed =
        system_tool("tasklist.exe").args(["/NH", "/FO", "CSV", "/FI", &filter]).stdout(Stdio::piped()).output();
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(&format!("\"{id}\"")))
}

/// A program of the system, by its path: one of that name may be in the folder that this process is in.
fn system_tool(name: &str) -> Command {
    let mut command = Command::new(system_folder().join("System32").join(name));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The folder of Windows.
pub(crate) fn system_folder() -> PathBuf {
    std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into()).into()
}
