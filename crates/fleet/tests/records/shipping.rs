//! A log, a server and a collector without failures.

use std::fs;
use std::time::Duration;

use amplifier_audit::{Hash, SigningKey, blob_file};
use amplifier_fleet::records::{LogProgress, ShipperState, read_receipt, verify_mirrors};

use super::*;
use crate::support::new_server;

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_has_the_bytes_of_the_log_and_the_machine_has_a_receipt() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    let log = machine.options().open().unwrap();
    write(&log, 500);
    // A large body, a line that is longer than a message may be, a rotated key.
    log.take(&message(&"large ".repeat(200_000))).unwrap();
    log.rotate_key(SigningKey::generate().unwrap()).unwrap();
    write(&log, 500);
    log.close().unwrap();
    let log = machine.options().blob_above(4 << 20).open().unwrap();
    log.take(&message(&"long ".repeat(300_000))).unwrap();
    write(&log, 10);
    log.close().unwrap();
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());

    let blobs = fs::read_dir(machine.log().join("blobs")).unwrap().count();
    assert_eq!(blobs, 1);
    let report = Verifier::new().folder(mirror_of(&machine, mirrors.path())).unwrap();
    assert_eq!((report.blobs, report.blobs_erased, report.rotations), (1, 0, 1), "{report}");

    let status = shipper.status().borrow().clone();
    assert_eq!((status.unreceived(), status.lost_by_centre, &status.problem), (0, 0, &None), "{status:?}");
    assert_eq!(status.state, ShipperState::Shipping);
    let receipt =
        read_receipt(&connection, &machine.name, &machine.id(), &known_collectors()[0]).await.unwrap().unwrap();
    assert_eq!(receipt.received(), machine.size());
    until_mirror(&collector, &machine, "signed", |mirror| mirror.received == receipt.received()).await;
    let reports = verify_mirrors(mirrors.path(), &known_collectors(), &[receipt]).unwrap();
    assert!(reports.len() == 1 && reports[0].is_sound() && reports[0].receipts.len() == 2, "{}", reports[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_arrive_while_the_log_grows() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    assert_eq!(shipper.status().borrow().state, ShipperState::Waiting, "there is no log yet");
    let log = machine.options().open().unwrap();
    for round in 1..=5_u64 {
        write(&log, 20);
        until_mirror(&collector, &machine, "growing", |mirror| mirror.size >= 20 * round).await;
    }
    log.close().unwrap();
    shipper.close(LIMIT).await.unwrap();
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_waits_for_the_receipt_and_says_how_many_records_lack_one() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let machine = Machine::new("m1");
    machine.write(10);
    let size = machine.size();
    let options = ShipperOptions::new(machine.log(), machine.name.clone());
    let options = options.collector("a".parse().unwrap(), collector_key("a").public());
    let progress = async || {
        let progress = LogProgress::read(&connection, &options).await.unwrap().unwrap();
        (progress.size, progress.sent, progress.received)
    };
    assert_eq!(progress().await, (size, 0, 0));
    let shipper = machine.ship(&connection);
    // There is no collector.
    let error = shipper.close(Duration::from_millis(1500)).await.unwrap_err();
    assert_eq!(error.records, size);
    let text = format!("the centre has not received the last {size} records of `{}`; ", machine.log().display());
    assert!(error.to_string().starts_with(&text), "{error}");
    assert_eq!(progress().await, (size, size, 0));
    // Without expected receipts, the stream is enough.
    machine.write(10);
    machine.ship_to(&connection, &[]).close(LIMIT).await.unwrap();

    let mirrors = tempfile::tempdir().unwrap();
    let _collector = collect(&connection, "a", mirrors.path()).await;
    machine.ship(&connection).close(LIMIT).await.unwrap();
    assert_mirrored(&machine, mirrors.path());
    let size = machine.size();
    assert_eq!(progress().await, (size, size, size));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_shippers_ships_and_another_follows_it() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let _collector = collect(&connection, "a", mirrors.path()).await;
    machine.write(50);
    let first = machine.ship(&connection);
    until_received(&first, &machine).await;
    let second = machine.ship(&connection);
    until(&second, "aware of the other", |status| status.state == ShipperState::OtherProcess).await;
    machine.write(50);
    until_received(&second, &machine).await;
    drop(first);
    machine.write(50);
    until_received(&second, &machine).await;
    assert_eq!(second.status().borrow().state, ShipperState::Shipping);
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_body_does_not_hold_back_the_receipt_and_a_lost_one_is_sent_again() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let log = machine.options().open().unwrap();
    let [erased, lost] = ["erased ", "lost "].map(|text| text.repeat(10_000));
    log.take(&message(&erased)).unwrap();
    log.take(&message(&lost)).unwrap();
    log.checkpoint().unwrap();
    let hashes: Vec<Hash> = blobs_of(&machine);
    log.erase(hashes[0]).unwrap();
    log.close().unwrap();
    let shipper = machine.ship(&connection);
    until(&shipper, "sent", |status| status.sent > 0 && status.sent == status.size).await;
    // The centre loses what it has, before a collector reads it.
    purge(&connection, "BLOBS", &format!("blob.m1.{}.{}.>", machine.id(), hashes[1])).await;
    let collector = collect(&connection, "a", mirrors.path()).await;
    until_mirror(&collector, &machine, "complete", |mirror| mirror.received > 0 && mirror.missing_blobs == 0).await;
    until_received(&shipper, &machine).await;
    let mirror = mirror_of(&machine, mirrors.path());
    assert!(!mirror.join(blob_file(&hashes[0])).exists());
    let stored = fs::read(mirror.join(blob_file(&hashes[1]))).unwrap();
    assert_eq!(Hash::sha256(&stored), hashes[1]);
    assert_mirrored(&machine, mirrors.path());
}

/// The hashes of the large bodies of a log, in the order of its records.
fn blobs_of(machine: &Machine) -> Vec<Hash> {
    let mut hashes = Vec::new();
    amplifier_audit::read_records(&amplifier_audit::Folder::new(machine.log()), |record| {
        hashes.extend(record.blob().map(|blob| blob.hash));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    hashes
}

/// Removes messages from a stream.
async fn purge(connection: &Connection, stream: &str, subject: &str) {
    let context = async_nats::jetstream::new(connection.client().clone());
    let stream = context.get_stream(stream).await.unwrap();
    let purged = stream.purge().filter(subject).await.unwrap();
    assert!(purged.purged > 0, "{subject}");
}
