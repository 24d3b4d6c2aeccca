//! Logs that are not what they were, forged records and forged receipts.

use std::fs;

use amplifier_audit::{Checkpoint, Hash, Note};
use amplifier_fleet::records::{ShipperState, verify_mirrors};
use amplifier_fleet::subjects;
use async_nats::HeaderMap;

use super::*;
use crate::support::new_server;

/// Copies the log and the key of a machine.
fn clone_of(machine: &Machine) -> Machine {
    let clone = Machine::new(&machine.name);
    fs::create_dir(clone.log()).unwrap();
    for file in fs::read_dir(machine.log()).unwrap().map(|file| file.unwrap().path()) {
        if file.is_file() {
            fs::copy(&file, clone.log().join(file.file_name().unwrap())).unwrap();
        }
    }
    for key in ["audit.key", "audit.key.log"] {
        fs::copy(machine.folder.path().join(key), clone.folder.path().join(key)).unwrap();
    }
    clone
}

async fn breach(shipper: &Shipper) -> String {
    let is_breach = |status: &ShipperStatus| matches!(status.state, ShipperState::Breach(_));
    match until(shipper, "a breach", is_breach).await.state {
        ShipperState::Breach(text) => text,
        _ => unreachable!(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_log_is_reported_and_the_mirror_keeps_the_first_history() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let _collector = collect(&connection, "a", mirrors.path()).await;
    machine.write(20);
    let older = clone_of(&machine);
    machine.write(20);
    let shipper = machine.ship(&connection);
    until_received(&shipper, &machine).await;
    drop(shipper);
    let before = segments(&mirror_of(&machine, mirrors.path()));

    // The owner has the key, and writes another history from the same beginning: as long, and longer.
    older.write(100);
    let rewritten = older.ship(&connection);
    let text = breach(&rewritten).await;
    assert!(text.contains("differs from the history that the centre has already received"), "{text}");
    let error = rewritten.close(LIMIT).await.unwrap_err();
    assert_eq!(error.cause, Some(text));

    // Shorter.
    let log = clone_of(&machine);
    let segment = log.log().join("seg-000001.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    let kept: String = text.split_inclusive('\n').take(10).collect();
    fs::write(&segment, kept).unwrap();
    let text = breach(&log.ship(&connection)).await;
    assert!(text.contains("the local log has fewer"), "{text}");

    assert!(segments(&mirror_of(&machine, mirrors.path())) == before);
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_with_one_log_are_detected() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let _collector = collect(&connection, "a", mirrors.path()).await;
    machine.write(20);
    let shipper = machine.ship(&connection);
    until_received(&shipper, &machine).await;
    let clone = clone_of(&machine);
    let other = clone.ship(&connection);
    until_received(&other, &clone).await;
    // Both go on.
    machine.write(5);
    until_received(&shipper, &machine).await;
    clone.write(7);
    breach(&other).await;
    machine.write(5);
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_another_key_signed_is_rejected() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let known = SigningKey::from_seed([77; 32]).public();
    let options = CollectorOptions::new("a".parse().unwrap(), collector_key("a"), mirrors.path());
    let collector = Collector::start(connection.clone(), options.log_keys(move |_, _| Some(known))).await.unwrap();
    machine.write(10);
    let shipper = machine.ship(&connection);
    until_mirror(&collector, &machine, "rejected", |mirror| mirror.problem.is_some() && mirror.size == 0).await;
    let text = "collector `a`: the log is signed with another key than the machine's";
    until(&shipper, "informed", |status| status.problem.as_deref() == Some(text)).await;
    assert_eq!(shipper.status().borrow().received, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_records_are_rejected() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    machine.write(20);
    until_received(&shipper, &machine).await;
    drop(shipper);
    let before = segments(&mirror_of(&machine, mirrors.path()));

    // A checkpoint that follows, with the right hashes, and another key.
    let text = String::from_utf8(before.last().unwrap().1.clone()).unwrap();
    let last = amplifier_audit::Record::parse(text.lines().last().unwrap().as_bytes()).unwrap();
    let (size, head) = (last.seq + 1, last.h);
    let tree = amplifier_audit::read_tree(&amplifier_audit::Folder::new(machine.log())).unwrap();
    let root = tree.root_at(size).unwrap();
    let note = Checkpoint { log: last.log.to_string(), size, root, head, time: last.time.to_string() };
    let note = note.sign(&SigningKey::from_seed([9; 32])).to_string();
    let body = serde_json::json!({ "note": note }).to_string().replace('\u{2014}', "\\u2014");
    let hashed = text.lines().last().unwrap().split(",\"h\":").next().unwrap().to_owned();
    let hashed = hashed.replace(last.body.get(), &body);
    let hashed = hashed.replace(&format!("\"seq\":{}", last.seq), &format!("\"seq\":{size}"));
    let hashed = hashed.replace(&last.prev.to_string(), &head.to_string());
    let h = Hash::leaf(hashed.as_bytes());
    let line = format!("{hashed},\"h\":\"{h}\"}}\n");
    assert!(amplifier_audit::Record::parse(line.trim_end().as_bytes()).is_ok());
    let mut headers = HeaderMap::new();
    let segment = last.seg.to_string();
    let (from, to, h) = (size.to_string(), (size + 1).to_string(), h.to_string());
    for (name, value) in [
        ("Amp-Segment", &segment),
        ("Amp-First", &"0".to_owned()),
        ("Amp-From", &from),
        ("Amp-To", &to),
        ("Amp-Head", &h),
    ] {
        headers.insert(name, value.as_str());
    }
    let subject = subjects::audit(&machine.name, &machine.id());
    connection.publish(&subject, headers, line.into()).await.unwrap();
    let text = "the checkpoint is not signed with the active key";
    until_mirror(&collector, &machine, "rejected", |mirror| {
        mirror.problem.as_deref().is_some_and(|problem| problem.ends_with(text))
    })
    .await;
    assert!(segments(&mirror_of(&machine, mirrors.path())) == before);
    // The machine sees that someone else wrote to its log.
    let text = breach(&machine.ship(&connection)).await;
    assert!(text.contains("the local log has fewer"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_receipt_does_not_count() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let machine = Machine::new("m1");
    machine.write(20);
    let notes = fs::read_to_string(machine.log().join("checkpoints")).unwrap();
    let note = Note::parse(last_note(&notes)).unwrap();
    let forged = note.cosign("amplifier-collector/a", &SigningKey::from_seed([9; 32]), SystemTime::now());
    let checkpoint = Checkpoint::read(&forged).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("Amp-Next", checkpoint.size.to_string().as_str());
    headers.insert("Amp-Head", checkpoint.head.to_string().as_str());
    let subject = subjects::receipt(&machine.name, &machine.id(), &"a".parse().unwrap());
    connection.publish(&subject, headers, forged.to_string().into()).await.unwrap();
    let shipper = machine.ship(&connection);
    let status = until(&shipper, "informed", |status| status.problem.is_some()).await;
    assert!(status.problem.unwrap().ends_with("it is not signed with the collector's key"));
    assert_eq!(status.received, 0);
}

/// The last of several notes, each of which an empty line ends.
fn last_note(notes: &str) -> &str {
    let begin =
        notes.match_indices("amplifier-audit/").filter(|(at, _)| *at == 0 || notes[..*at].ends_with("\n\n")).last();
    notes[begin.unwrap().0..].strip_suffix('\n').unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_mirror_is_found_by_verification() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    machine.write(50);
    until_received(&shipper, &machine).await;
    drop((collector, shipper));
    let mirror = mirror_of(&machine, mirrors.path());
    let sound = |name: &str| {
        let reports = verify_mirrors(mirrors.path(), &known_collectors(), &[]).unwrap();
        assert_eq!(reports.len(), 1);
        assert!(!reports[0].is_sound(), "{name}: {}", reports[0]);
    };
    let segment = mirror.join("seg-000001.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    let shorter: String = text.split_inclusive('\n').take(20).collect();
    fs::write(&segment, shorter).unwrap();
    sound("cut before the receipt");
    // The whole log of someone with another key.
    let other = Machine::new("m1");
    other.write(60);
    fs::copy(other.log().join("seg-000001.jsonl"), &segment).unwrap();
    sound("replaced");
    fs::write(&segment, &text).unwrap();
    assert!(verify_mirrors(mirrors.path(), &known_collectors(), &[]).unwrap()[0].is_sound());
    let reports = verify_mirrors(mirrors.path(), &known_collectors()[1..], &[]).unwrap();
    assert_eq!(reports[0].problems, ["the receipt beside the mirror is not signed by a known collector"]);
}
