//! Subjects and streams of a centre. Permissions are built from the same functions as the messages.

use std::fmt::Display;

use amplifier_link::ApprovalId;

use crate::FleetName;

/// The stream with the bytes of all logs.
pub const AUDIT: &str = "AUDIT";

/// The stream with the large bodies of records, in pieces.
pub const BLOBS: &str = "BLOBS";

/// The stream with the receipts of collectors.
pub const RECEIPT: &str = "RECEIPT";

/// The stream with the last state of each approval request.
pub const ASK: &str = "ASK";

/// The stream with the first answer to each approval request.
pub const ANSWER: &str = "ANSWER";

/// The stream of the bucket with the signed pointers to policies.
pub const POLICY: &str = "KV_policy";

/// The stream of the bucket with the status of each machine.
pub const STATUS: &str = "KV_status";

/// The name of the object store with bundles.
pub const BUNDLES: &str = "bundles";

/// The queue group of the instances of a policy service.
pub const HOOK_QUEUE: &str = "hooks";

/// Returns the subject of the chunks of a log.
pub fn audit(machine: &FleetName, log: &FleetName) -> String {
    format!("audit.{machine}.{log}")
}

/// Returns the machine and the log of a subject of [`audit`].
pub fn log(subject: &str) -> Option<(FleetName, FleetName)> {
    let (machine, log) = subject.strip_prefix("audit.")?.split_once('.')?;
    Some((machine.parse().ok()?, log.parse().ok()?))
}

/// Returns the subject of a piece of a large body.
pub fn blob(machine: &FleetName, log: &FleetName, hash: &str, piece: usize) -> String {
    format!("blob.{machine}.{log}.{hash}.{piece}")
}

/// Returns the subject of the receipts of a collector for a log.
pub fn receipt(machine: &FleetName, log: &FleetName, collector: &FleetName) -> String {
    format!("receipt.{machine}.{log}.{collector}")
}

/// Returns the subject of the state of an approval request.
pub fn ask(machine: &FleetName, id: &ApprovalId) -> String {
    format!("ask.{machine}.{id}")
}

/// Returns the subject of the answer to an approval request.
pub fn answer(machine: &FleetName, id: &ApprovalId) -> String {
    format!("answer.{machine}.{id}")
}

/// Returns the subject of the next answer to an approval request after a number of refused ones.
pub fn answer_after(machine: &FleetName, id: &ApprovalId, refused: u32) -> String {
    match refused {
        0 => answer(machine, id),
        refused => format!("{}.{refused}", answer(machine, id)),
    }
}

/// Returns the subject of the answers to all requests of a run.
pub fn answers_of_run(machine: &FleetName, run: &FleetName) -> String {
    format!("answer.{machine}.*.{run}.>")
}

/// Returns the machine and the approval request of a subject of [`ask`].
pub fn approval(subject: &str) -> Option<(FleetName, ApprovalId)> {
    let (_, rest) = subject.split_once('.')?;
    let (machine, id) = rest.split_once('.')?;
    Some((machine.parse().ok()?, id.parse().ok()?))
}

/// Returns the subject of the pointer to a group's policy.
pub fn pointer(group: &FleetName) -> String {
    format!("$KV.policy.pointer.{group}")
}

/// Returns the subject of the status of a machine.
pub fn status(machine: &FleetName) -> String {
    format!("$KV.status.machine.{machine}")
}

/// Returns the subject of requests to one instance of a policy service.
pub fn hook(service: &FleetName, event: &str) -> String {
    format!("hook.{service}.{}", event.replace(':', "."))
}

/// Returns the subject of requests to all instances of a policy service.
pub fn hook_all(service: &FleetName, event: &str) -> String {
    format!("hookall.{service}.{}", event.replace(':', "."))
}

/// Returns the stream of the object store with bundles.
pub fn bundle_stream() -> String {
    format!("OBJ_{BUNDLES}")
}

/// Returns the subject of a part of a bundle, addressed by the hash of its content.
pub fn bundle_part(sha256: impl Display, part: impl Display) -> String {
    format!("$O.{BUNDLES}.C.{sha256}.{part}")
}

/// Returns the subject for the last message of a subject in a stream. The permission of a reader contains the subject.
pub fn last_message(stream: &str, subject: &str) -> String {
    format!("$JS.API.DIRECT.GET.{stream}.{subject}")
}

/// Returns the prefix of the inboxes of an identity, without which machines would receive the replies to others.
pub fn inbox(identity: &FleetName) -> String {
    format!("_INBOX_{identity}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_an_approval_request_names_machine_and_request() {
        let machine: FleetName = "m1".parse().unwrap();
        let id = ApprovalId::new("s-1", "run", 7);
        assert_eq!(ask(&machine, &id), "ask.m1.s-1.run.7");
        assert_eq!(approval(&ask(&machine, &id)), Some((machine, id)));
        assert_eq!(approval("ask.m1"), None);
    }
}
