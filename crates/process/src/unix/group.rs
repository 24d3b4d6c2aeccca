//! Process groups and their descendants.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

const MAX_SCANS: usize = 10;

/// A process group. Dropping it kills all its processes, and the descendants of the first one.
///
/// A process that has left both the group (`setsid`) and the tree (its parent has ended) is out of reach. A [sandbox](crate::sandbox) ends it.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: Pid,
    /// The leader of the group, instead of the first process.
    watcher: Option<GroupWatcher>,
    /// `false` if there are no descendants outside of the group.
    has_descendants: bool,
}

impl ProcessGroup {
    /// The group of a process that leads one, or is about to.
    ///
    /// INVARIANT: the process is not waited for before this is dropped. Until then, its id is not reused.
    pub fn from_leader(id: u32) -> Option<Self> {
        let leader = Pid::from_raw(i32::try_from(id).ok()?)?;
        Some(Self { leader, watcher: None, has_descendants: true })
    }

    pub(crate) fn with_watcher(mut self, watcher: Option<GroupWatcher>) -> Self {
        self.watcher = watcher;
        self
    }

    /// Returns a function that waits until the first process of the group has ended. The process can still be waited for afterwards.
    pub fn wait_for_leader(&self) -> impl FnOnce() + Send + use<> {
        let leader = self.leader;
        move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // Fails only if the process has been waited for.
            let _ = retry_on_intr(|| waitid(WaitId::Pid(leader), options));
        }
    }

    /// Kills the group, which has no other descendants.
    pub(crate) fn kill(mut self) {
        self.has_descendants = false;
    }

    fn group(&self) -> Pid {
        self.watcher.as_ref().map_or(self.leader, |watcher| Pid::from_child(&watcher.0))
    }

    fn kill_group(&self) {
        // One signal reaches all, even processes in a fork. Both calls fail if all have ended.
        let _ = kill_process(self.leader, Signal::KILL);
        let _ = kill_process_group(self.group(), Signal::KILL);
    }

    /// Returns `true` if the first process of the group has ended; it has no descendants then.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.leader), options), Ok(None))
    }

    /// Kills the descendants of the first process that have left the group.
    fn kill_strays(&self) {
        // A stopped process starts nothing, and keeps the ids of its ended children reserved. The leader first: a launcher without its own session
        // yet is not in the group.
        let _ = kill_process(self.leader, Signal::STOP);
        let _ = kill_process_group(self.group(), Signal::STOP);
        let mut stopped = HashSet::new();
        for _ in 0..MAX_SCANS {
            let new: Vec<Pid> =
                strays(self.leader, self.group()).into_iter().filter(|stray| !stopped.contains(stray)).collect();
            if new.is_empty() {
                break;
            }
            for stray in new {
                let _ = kill_process(stray, Signal::STOP);
                stopped.insert(stray);
            }
        }
        for stray in stopped {
            let _ = kill_process(stray, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.has_descendants && !self.has_ended() {
            self.kill_strays();
        }
        self.kill_group();
    }
}

/// A small shell that leads a process group, waits for the end of its input, and then kills the group, even after this process was killed.
///
/// INVARIANT: dropped after the group was killed. Only then is it waited for, so that its id, which is also that of the group, is not reused before.
#[derive(Debug)]
pub(crate) struct GroupWatcher(Child);

impl GroupWatcher {
    const SHELL: &str = "/bin/sh";

    pub(crate) fn start() -> io::Result<Self> {
        let mut shell = Command::new(Self::SHELL);
        shell.args(["-c", "read line; kill -s KILL 0"]).env_clear().process_group(0);
        let started = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("`{}` cannot be run: {error}", Self::SHELL));
        started.map(Self).map_err(named)
    }

    pub(crate) fn group(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for GroupWatcher {
    fn drop(&mut self) {
        // Both calls fail if the shell has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the descendants that are in another process group.
fn strays(ancestor: Pid, group: Pid) -> Vec<Pid> {
    let group = group.as_raw_nonzero().get();
    descendants(ancestor).into_iter().filter(|(_, in_group)| *in_group != group).map(|(stray, _)| stray).collect()
}

/// Returns the descendants with their process groups; none where unsupported.
pub(crate) fn descendants(ancestor: Pid) -> Vec<(Pid, i32)> {
    let ids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut children: HashMap<i32, Vec<(i32, i32)>> = HashMap::new();
    for id in ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some((parent, group)) = parent_and_group(id) {
            children.entry(parent).or_default().push((id, group));
        }
    }
    let (mut descendants, mut to_visit) = (Vec::new(), vec![ancestor.as_raw_nonzero().get()]);
    while let Some(parent) = to_visit.pop() {
        // Removed from the map, so that no process is visited twice.
        for (id, group) in children.remove(&parent).unwrap_or_default() {
            to_visit.push(id);
            descendants.extend(Pid::from_raw(id).map(|id| (id, group)));
        }
    }
    descendants
}

fn parent_and_group(id: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // The process name before may contain anything.
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[after + 1..]).ok()?.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
