//! A process group, and all that descends from its first process.

use std::collections::{HashMap, HashSet};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// How often processes that left their group are looked for, while new ones are found.
const MOST_LOOKS: usize = 10;

/// A process group. When this is dropped, all its processes are killed, with all that descend from the first of them.
///
/// A process that has left both the group (`setsid`) and the tree (its parent has ended) is out of reach here. A [sandbox](crate::sandbox) ends it.
#[derive(Debug)]
pub struct ProcessGroup(Pid);

impl ProcessGroup {
    /// The group of a process that leads one, or that is about to.
    ///
    /// INVARIANT: whoever has this does not wait for the process before it is dropped. Until then, its id cannot become that of another.
    pub fn of_leader(id: u32) -> Option<Self> {
        Pid::from_raw(i32::try_from(id).ok()?).map(Self)
    }

    /// Waits until the first process of the group has ended. It can still be waited for afterwards.
    pub fn wait_for_leader(&self) -> impl FnOnce() + Send + use<> {
        let leader = self.0;
        move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // It fails only if there is no such process, which has ended then.
            let _ = retry_on_intr(|| waitid(WaitId::Pid(leader), options));
        }
    }

    /// Kills the group, from which nothing else descends.
    pub(crate) fn kill(self) {
        self.kill_group();
        std::mem::forget(self);
    }

    fn kill_group(&self) {
        // One signal reaches them all, also those that are being forked. Both fail if they have all ended.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = kill_process_group(self.0, Signal::KILL);
    }

    /// `true` if the first process of the group has ended; then nothing descends from it any more.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.0), options), Ok(None))
    }

    /// Kills what descends from the first process and has left the group.
    fn kill_strays(&self) {
        // A stopped process starts nothing, and keeps the id of a child that ended from becoming that of another. First the leader: a launcher that has not started its
        // session yet is not in the group.
        let _ = kill_process(self.0, Signal::STOP);
        let _ = kill_process_group(self.0, Signal::STOP);
        let mut stopped = HashSet::new();
        for _ in 0..MOST_LOOKS {
            let new: Vec<Pid> = strays(self.0).into_iter().filter(|stray| !stopped.contains(stray)).collect();
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
        if !self.has_ended() {
            self.kill_strays();
        }
        self.kill_group();
    }
}

/// The processes that descend from another and are in another process group.
fn strays(ancestor: Pid) -> Vec<Pid> {
    let group = ancestor.as_raw_nonzero().get();
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
