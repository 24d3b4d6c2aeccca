//! A process group, and all that descends from its first process.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// How often processes that left their group are looked for, while new ones are found.
const MAX_SCANS: usize = 10;

/// A process group. When this is dropped, all its processes are killed, with all that descend from the first of them.
///
/// A process that has left both the group (`setsid`) and the tree (its parent has ended) is out of reach here. A [sandbox](crate::sandbox) ends it.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: Pid,
    /// Leads the group in the place of the first process.
    watcher: Option<GroupWatcher>,
    /// `false` if nothing else descends from the group.
    has_descendants: bool,
}

impl ProcessGroup {
    /// The group of a process that leads one, or that is about to.
    ///
    /// INVARIANT: whoever has this does not wait for the process before it is dropped. Until then, its id cannot become that of another.
    pub fn from_leader(id: u32) -> Option<Self> {
        let leader = Pid::from_raw(i32::try_from(id).ok()?)?;
        Some(Self { leader, watcher: None, has_descendants: true })
    }

    /// The group of a watcher, which the process has joined.
    pub(crate) fn with_watcher(mut self, watcher: Option<GroupWatcher>) -> Self {
        self.watcher = watcher;
        self
    }

    /// Waits until the first process of the group has ended. It can still be waited for afterwards.
    pub fn wait_for_leader(&self) -> impl FnOnce() + Send + use<> {
        let leader = self.leader;
        move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // It fails only if there is no such process, which has ended then.
            let _ = retry_on_intr(|| waitid(WaitId::Pid(leader), options));
        }
    }

    /// Kills the group, from which nothing else descends.
    pub(crate) fn kill(mut self) {
        self.has_descendants = false;
    }

    fn group(&self) -> Pid {
        self.watcher.as_ref().map_or(self.leader, |watcher| Pid::from_child(&watcher.0))
    }

    fn kill_group(&self) {
        // One signal reaches them all, also those that are being forked. Both fail if they have all ended.
        let _ = kill_process(self.leader, Signal::KILL);
        let _ = kill_process_group(self.group(), Signal::KILL);
    }

    /// `true` if the first process of the group has ended; then nothing descends from it any more.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.leader), options), Ok(None))
    }

    /// Kills what descends from the first process and has left the group.
    fn kill_strays(&self) {
        // A stopped process starts nothing, and keeps the id of a child that ended from becoming that of another. First the leader: a launcher that has not started its
        // session yet is not in the group.
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

/// A tiny shell that leads a process group, waits for the end of its input, and then kills the group: also when this process is killed.
///
/// INVARIANT: dropped after the group was killed. It is waited for then, so that its id, which is that of the group, cannot become another's before.
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

    /// The id of the group.
    pub(crate) fn group(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for GroupWatcher {
    fn drop(&mut self) {
        // Both fail if it has ended, which the wait then tells.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes that descend from another and are in another process group.
fn strays(ancestor: Pid, group: Pid) -> Vec<Pid> {
    let group = group.as_raw_nonzero().get();
    descendants(ancestor).into_iter().filter(|(_, in_group)| *in_group != group).map(|(stray, _)| stray).collect()
}

/// The processes that descend from another, with their process groups; none where the system does not tell.
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
        // Taken out, so that nobody is visited twice.
        for (id, group) in children.remove(&parent).unwrap_or_default() {
            to_visit.push(id);
            descendants.extend(Pid::from_raw(id).map(|id| (id, group)));
        }
    }
    descendants
}

fn parent_and_group(id: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // The name before may have anything in it.
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[after + 1..]).ok()?.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
