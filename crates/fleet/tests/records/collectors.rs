//! Several collectors, and mirrors that they find on their disk.

use std::fs;

use amplifier_fleet::records::{RecordsError, read_receipts, verify_mirrors};

use super::*;
use crate::support::new_server;

#[tokio::test(flavor = "multi_thread")]
async fn collectors_are_independent_witnesses() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, a, b) = (Machine::new("m1"), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = collect(&connection, "a", a.path()).await;
    let shipper = machine.ship_to(&connection, &["a", "b"]);
    machine.write(100);
    until_received(&shipper, &machine).await;
    // The second one starts later, and the first one is gone.
    drop(first);
    let second = collect(&connection, "b", b.path()).await;
    machine.write(100);
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, b.path());
    let receipts = read_receipts(&connection, b.path(), &known_collectors()).await.unwrap();
    assert_eq!(receipts.len(), 2);
    let behind = verify_mirrors(a.path(), &known_collectors(), &receipts).unwrap();
    assert!(behind[0].is_sound() && behind[0].ahead.len() == 1, "{}", behind[0]);
    let ahead = verify_mirrors(b.path(), &known_collectors(), &receipts).unwrap();
    assert!(ahead[0].is_sound() && ahead[0].receipts.len() == 3, "{}", ahead[0]);

    drop(second);
    let size = machine.size();
    let first = collect(&connection, "a", a.path()).await;
    until_mirror(&first, &machine, "complete", |mirror| mirror.received == size).await;
    assert_mirrored(&machine, a.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_collectors_cannot_share_a_folder() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let mirrors = tempfile::tempdir().unwrap();
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let options = CollectorOptions::new("b".parse().unwrap(), collector_key("b"), mirrors.path());
    let error = Collector::start(connection.clone(), options).await.err().unwrap();
    assert!(matches!(error, RecordsError::Locked(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_a_loss_of_power_left_in_a_mirror_are_replaced() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    machine.write(30);
    until_received(&shipper, &machine).await;
    drop(collector);
    machine.write(300);
    let mirror = mirror_of(&machine, mirrors.path());
    let [segment, second] = ["seg-000001.jsonl", "seg-000002.jsonl"];
    // Half a line, then nothing of what was written, and a whole later segment.
    let (have, all) = (fs::read(mirror.join(segment)).unwrap(), fs::read(machine.log().join(segment)).unwrap());
    let torn = [&all[..have.len() + 1_000], &[0; 500]].concat();
    fs::write(mirror.join(segment), torn).unwrap();
    fs::copy(machine.log().join(second), mirror.join(second)).unwrap();
    let _collector = collect(&connection, "a", mirrors.path()).await;
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_mirror_is_reported_and_does_not_stop_the_others() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let mirrors = tempfile::tempdir().unwrap();
    let (good, bad) = (Machine::new("good"), Machine::new("bad"));
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shippers = [&good, &bad].map(|machine| machine.ship(&connection));
    for (machine, shipper) in [&good, &bad].into_iter().zip(&shippers) {
        machine.write(30);
        until_received(shipper, machine).await;
    }
    drop(collector);
    let segment = mirror_of(&bad, mirrors.path()).join("seg-000001.jsonl");
    let mut text = fs::read(&segment).unwrap();
    text[1000] ^= 1;
    fs::write(&segment, text).unwrap();
    let collector = collect(&connection, "a", mirrors.path()).await;
    for machine in [&good, &bad] {
        machine.write(30);
    }
    until_received(&shippers[0], &good).await;
    until_mirror(&collector, &bad, "reported", |mirror| {
        mirror.problem.as_deref().is_some_and(|text| text.contains("is damaged"))
    })
    .await;
    // Somebody moves it away: the collector begins again, also without a restart.
    fs::rename(mirror_of(&bad, mirrors.path()), mirrors.path().join("bad").join("kept-aside.1")).unwrap();
    bad.write(30);
    until_received(&shippers[1], &bad).await;
    assert!(segments(&bad.log()) == segments(&mirror_of(&bad, mirrors.path())));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_nobody_has_any_more_are_reported() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, a, b) = (Machine::new("m1"), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shipper = machine.ship_to(&connection, &["a", "b"]);
    let log = machine.options().segment_bytes(10_000).open().unwrap();
    write(&log, 20);
    let second = collect(&connection, "b", b.path()).await;
    until_mirror(&second, &machine, "begun", |mirror| mirror.size > 20).await;
    drop(second);
    // The second collector is away while the machine removes what only the first one has, and the stream loses it.
    let first = collect(&connection, "a", a.path()).await;
    write(&log, 200);
    log.seal_blocking("s", "complete").unwrap();
    until_received(&shipper, &machine).await;
    log.retain(1).unwrap();
    let context = async_nats::jetstream::new(connection.client().clone());
    context.delete_stream("AUDIT").await.unwrap();
    centre(&server).await;
    log.take(&message("one more")).unwrap();
    log.close().unwrap();
    until_received(&shipper, &machine).await;
    let second = collect(&connection, "b", b.path()).await;
    until_mirror(&second, &machine, "reported", |mirror| {
        mirror.problem.as_deref().is_some_and(|text| text.contains("copy the mirror of another collector"))
    })
    .await;

    // As the message says.
    drop((first, second));
    let (from, to) = (mirror_of(&machine, a.path()), mirror_of(&machine, b.path()));
    fs::remove_dir_all(&to).unwrap();
    fs::create_dir(&to).unwrap();
    for (name, text) in segments(&from) {
        fs::write(to.join(name), text).unwrap();
    }
    let size = machine.size();
    let second = collect(&connection, "b", b.path()).await;
    until_mirror(&second, &machine, "complete", |mirror| mirror.received == size && mirror.problem.is_none()).await;
}
