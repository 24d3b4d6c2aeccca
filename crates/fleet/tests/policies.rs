//! Policies: published by an administrator, followed by machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use amplifier_audit::{Hash, SigningKey};
use amplifier_fleet::enrol::{FleetRole, Member};
use amplifier_fleet::policies::{
    BundleArchive, PolicyCache, PolicyChange, PolicyError, PolicyFollower, PolicyPointer, PolicyPublisher, history,
    machine_statuses,
};
use amplifier_fleet::{Connection, subjects};
use async_nats::HeaderMap;
use jiff::{SignedDuration, Timestamp};

use crate::support::{Centre, new_server};

const ONE: &str = "hooks: [] # one\n";
const TWO: &str = "hooks: [] # two\n";

/// A machine that follows the policy of its group.
struct Machine {
    follower: PolicyFollower,
    cache: PolicyCache,
    member: Member,
}

impl Machine {
    async fn join(centre: &mut Centre, name: &str, group: &str) -> Self {
        let token = centre.add(name, &[FleetRole::Machine], group, None);
        let member = centre.join(&token);
        let cache = PolicyCache::new(member.folder().join("policy"), member.organisation(), member.group().clone());
        let connection = centre.open(&member).await.unwrap();
        let follower = PolicyFollower::new(connection, cache.clone(), |bundle| match fs::read_to_string(bundle) {
            Ok(text) if text.contains("nonsense") => Err("unknown key `nonsense`".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        });
        Self { follower, cache, member }
    }

    /// The content of the active bundle.
    fn active(&self) -> Option<(u64, String)> {
        let active = self.cache.load().unwrap()?;
        Some((active.pointer.version, fs::read_to_string(active.bundle).unwrap()))
    }

    async fn refresh(&self) -> PolicyChange {
        self.follower.refresh().await.unwrap()
    }

    async fn activate(&self, version: u64, content: &str) {
        let change = self.refresh().await;
        assert!(matches!(change, PolicyChange::Activated(_)), "{change:?}");
        assert_eq!(self.active(), Some((version, content.to_owned())));
    }

    /// Refuses the newest policy for this reason, keeps the active one, and reports both.
    async fn refuse(&self, admin: &Connection, why: &str, active: u64) {
        let change = self.refresh().await;
        assert!(matches!(&change, PolicyChange::Refused(reason) if reason.contains(why)), "{change:?}");
        assert_eq!(self.active().unwrap().0, active);
        let status = &machine_statuses(admin).await.unwrap()[self.member.name()];
        assert_eq!(status.version, Some(active));
        assert!(status.refused.as_ref().unwrap().contains(why), "{status:?}");
    }
}

fn name(text: &str) -> amplifier_fleet::FleetName {
    text.parse().unwrap()
}

async fn publish(admin: &Connection, key: &SigningKey, group: &str, folder: &Path) -> PolicyPointer {
    let publisher = PolicyPublisher::new(admin, key, BTreeMap::new(), BTreeMap::new());
    publisher.publish(&name(group), &BundleArchive::pack(folder).unwrap(), Timestamp::now()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_reaches_the_canary_first_then_all_and_is_rolled_back() {
    let Some(program) = new_server() else { return };
    let mut centre = Centre::start(&program).await;
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let key = centre.policy_key();
    let (one, two) = (centre.bundle("one", ONE), centre.bundle("two", TWO));
    let canary = Machine::join(&mut centre, "m1", "canary").await;
    let other = Machine::join(&mut centre, "m2", "all").await;
    assert_eq!((other.refresh().await, other.active()), (PolicyChange::None, None));
    for group in ["canary", "all"] {
        assert_eq!(publish(&admin, &key, group, &one).await.version, 1);
    }
    canary.activate(1, ONE).await;
    other.activate(1, ONE).await;
    publish(&admin, &key, "canary", &two).await;
    canary.activate(2, TWO).await;
    assert_eq!(other.refresh().await, PolicyChange::None);
    publish(&admin, &key, "all", &two).await;
    other.activate(2, TWO).await;
    let versions = |statuses: BTreeMap<_, amplifier_fleet::policies::MachineStatus>| {
        statuses.into_iter().map(|(machine, status)| (machine, status.version.unwrap())).collect::<Vec<_>>()
    };
    let expected = vec![(name("m1"), 2), (name("m2"), 2)];
    assert_eq!(versions(machine_statuses(&admin).await.unwrap()), expected);
    let publisher = PolicyPublisher::new(&admin, &key, BTreeMap::new(), BTreeMap::new());
    assert_eq!(publisher.roll_back(&name("all"), 1).await.unwrap().version, 3);
    other.activate(3, ONE).await;
    let versions: Vec<_> = history(&admin, &name("all"), &key.public()).await.unwrap();
    assert_eq!(versions.iter().map(|pointer| pointer.version).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(matches!(publisher.roll_back(&name("all"), 9).await, Err(PolicyError::NoVersion { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_refuses_what_the_organisation_has_not_signed() {
    let Some(program) = new_server() else { return };
    let mut centre = Centre::start(&program).await;
    // With valid permissions, but without the organisation's key.
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let key = centre.policy_key();
    let machine = Machine::join(&mut centre, "m1", "all").await;
    let (one, two) = (centre.bundle("one", ONE), centre.bundle("two", TWO));
    publish(&admin, &key, "all", &one).await;
    machine.activate(1, ONE).await;
    let newest = publish(&admin, &key, "all", &two).await;
    machine.activate(2, TWO).await;
    let put = async |signed: String| {
        admin.publish(&subjects::pointer(&name("all")), HeaderMap::new(), signed.into()).await.unwrap();
    };
    let mut next = PolicyPointer { version: 3, ..newest.clone() };
    put(next.sign(&SigningKey::generate().unwrap()).unwrap()).await;
    machine.refuse(&admin, "not signed by the organisation", 2).await;
    // An older version, with its valid signature.
    put(PolicyPointer { version: 1, ..newest.clone() }.sign(&key).unwrap()).await;
    machine.refuse(&admin, "version 1 of the policy is not newer than version 2", 2).await;
    // The same version with other content.
    put(PolicyPointer { not_before: Timestamp::UNIX_EPOCH, ..newest.clone() }.sign(&key).unwrap()).await;
    machine.refuse(&admin, "version 2 of the policy is not newer than version 2", 2).await;
    // The policy of another group.
    put(PolicyPointer { group: name("canary"), version: 9, ..newest.clone() }.sign(&key).unwrap()).await;
    machine.refuse(&admin, "is for the group `canary`", 2).await;
    // A changed text with the old signature.
    let signed = next.sign(&key).unwrap().replace("\"version\":3", "\"version\":4");
    put(signed).await;
    machine.refuse(&admin, "not signed by the organisation", 2).await;
    put("nonsense".to_owned()).await;
    machine.refuse(&admin, "no signature", 2).await;
    // Content that is missing, and content with another hash.
    next.bundle = Hash::sha256(b"missing");
    put(next.sign(&key).unwrap()).await;
    machine.refuse(&admin, "does not have the bundle", 2).await;
    let mut headers = HeaderMap::new();
    headers.insert("Amp-Parts", "1");
    admin.publish(&subjects::bundle_part(next.bundle, 0), headers, "{}".into()).await.unwrap();
    machine.refuse(&admin, "expected", 2).await;
    // The next good one is accepted.
    put(PolicyPointer { version: 5, ..newest }.sign(&key).unwrap()).await;
    machine.activate(5, TWO).await;
    assert_eq!(machine_statuses(&admin).await.unwrap()[&name("m1")].refused, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_cannot_be_used_changes_nothing() {
    let Some(program) = new_server() else { return };
    let mut centre = Centre::start(&program).await;
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let key = centre.policy_key();
    let machine = Machine::join(&mut centre, "m1", "all").await;
    publish(&admin, &key, "all", &centre.bundle("one", ONE)).await;
    machine.activate(1, ONE).await;
    publish(&admin, &key, "all", &centre.bundle("bad", "nonsense: 1\n")).await;
    machine.refuse(&admin, "unknown key `nonsense`", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_applies_from_its_time() {
    let Some(program) = new_server() else { return };
    let mut centre = Centre::start(&program).await;
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let key = centre.policy_key();
    let machine = Machine::join(&mut centre, "m1", "all").await;
    let publisher = PolicyPublisher::new(&admin, &key, BTreeMap::new(), BTreeMap::new());
    let archive = BundleArchive::pack(&centre.bundle("one", ONE)).unwrap();
    let later = Timestamp::now() + SignedDuration::from_secs(3600);
    publisher.publish(&name("all"), &archive, later).await.unwrap();
    assert_eq!((machine.refresh().await, machine.active()), (PolicyChange::Later(later), None));
    publisher.publish(&name("all"), &archive, Timestamp::now()).await.unwrap();
    machine.activate(2, ONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_starts_without_the_centre_and_notices_changed_files() {
    let Some(program) = new_server() else { return };
    let mut centre = Centre::start(&program).await;
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let key = centre.policy_key();
    let machine = Machine::join(&mut centre, "m1", "all").await;
    let folder = centre.bundle("one", ONE);
    fs::create_dir(folder.join("checks")).unwrap();
    // More than one message.
    fs::write(folder.join("checks/data"), vec![b'x'; 1 << 20]).unwrap();
    fs::write(folder.join("checks/check.sh"), "#!/bin/sh\n").unwrap();
    publish(&admin, &key, "all", &folder).await;
    machine.activate(1, ONE).await;
    centre.server.kill();
    assert_eq!(machine.active(), Some((1, ONE.to_owned())));
    assert!(machine.follower.refresh().await.is_err());
    assert_eq!(machine.active(), Some((1, ONE.to_owned())));
    let active = machine.cache.load().unwrap().unwrap();
    let unpacked = active.bundle.parent().unwrap().to_owned();
    for (file, content) in [("bundle.yaml", "hooks: []\n"), ("checks/check.sh", "true\n"), ("new", "x")] {
        let before = fs::read(unpacked.join(file)).ok();
        fs::write(unpacked.join(file), content).unwrap();
        assert!(matches!(machine.cache.load(), Err(PolicyError::Damaged { .. })), "{file}");
        match before {
            Some(before) => fs::write(unpacked.join(file), before).unwrap(),
            None => fs::remove_file(unpacked.join(file)).unwrap(),
        }
        machine.cache.load().unwrap();
    }
    fs::write(machine.cache.pointer_file(), "x").unwrap();
    assert!(matches!(machine.cache.load(), Err(PolicyError::Damaged { .. })));
    // With the centre, everything is repaired.
    centre.server.restart();
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < Duration::from_secs(60));
        if matches!(machine.follower.refresh().await, Ok(PolicyChange::Activated(_))) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(machine.active(), Some((1, ONE.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_machines_follow_by_notification() {
    const MACHINES: usize = 100;
    let Some(program) = new_server() else { return };
    let mut centre = Centre::start(&program).await;
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let key = centre.policy_key();
    let (sender, mut active) = tokio::sync::mpsc::unbounded_channel();
    let mut followers = Vec::new();
    for number in 0..MACHINES {
        let machine = Machine::join(&mut centre, &format!("m{number}"), "all").await;
        let sender = sender.clone();
        followers.push(tokio::spawn(async move {
            machine.follower.follow(|change| _ = sender.send(matches!(change, Ok(PolicyChange::Activated(_))))).await;
        }));
    }
    // All of them have looked once.
    let start = Instant::now();
    while machine_statuses(&admin).await.unwrap().len() < MACHINES {
        assert!(start.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let published = Instant::now();
    publish(&admin, &key, "all", &centre.bundle("one", ONE)).await;
    for _ in 0..MACHINES {
        let is_active = tokio::time::timeout(Duration::from_secs(30), active.recv()).await.unwrap().unwrap();
        assert!(is_active);
    }
    eprintln!("{MACHINES} machines have the policy after {:?}", published.elapsed());
    followers.iter().for_each(tokio::task::JoinHandle::abort);
    let start = Instant::now();
    while machine_statuses(&admin).await.unwrap().values().any(|status| status.version != Some(1)) {
        assert!(start.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn an_archive_has_all_files_and_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str| folder.path().join(path);
    assert!(matches!(BundleArchive::pack(folder.path()), Err(PolicyError::Unpublishable { .. })));
    fs::write(file("bundle.yaml"), ONE).unwrap();
    fs::create_dir_all(file(".git/objects")).unwrap();
    let archive = BundleArchive::pack(folder.path()).unwrap();
    fs::write(file(".git/objects/x"), "x").unwrap();
    assert_eq!(BundleArchive::pack(folder.path()).unwrap().hash(), archive.hash());
    fs::write(file("check.py"), "x").unwrap();
    assert_ne!(BundleArchive::pack(folder.path()).unwrap().hash(), archive.hash());
    std::os::unix::fs::symlink("/etc/passwd", file("link")).unwrap();
    assert!(matches!(BundleArchive::pack(folder.path()), Err(PolicyError::Unpublishable { .. })));
    let outside =
        br#"{"../x":{"content":"","is_executable":false},"bundle.yaml":{"content":"","is_executable":false}}"#;
    let read = BundleArchive::from_text(outside.to_vec(), Hash::sha256(outside));
    assert!(matches!(read, Err(PolicyError::Malformed { .. })), "{read:?}");
}
