//! A centre that loses what it had.

use std::fs;
use std::path::Path;
use std::process::Command;

use amplifier_fleet::subjects;
use async_nats::jetstream;

use super::*;
use crate::support::{free_port, new_server};

/// Copies a folder, as it is at this moment.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_store_is_completed_again_and_the_loss_is_reported() {
    let Some(program) = new_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(&program, folder.path(), free_port(), "", "sync_interval: always");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    machine.write(300);
    // Without a collector: nobody else has the records.
    let shipper = machine.ship(&connection);
    let sent = |size: u64| move |status: &ShipperStatus| status.sent == size;
    until(&shipper, "sent", sent(machine.size())).await;
    let before = machine.size();
    server.pause();
    copy(&folder.path().join("store"), &folder.path().join("older"));
    server.resume();
    machine.write(300);
    until(&shipper, "sent", sent(machine.size())).await;
    let lost = machine.size() - before;
    // As after a loss of power without syncs.
    server.kill();
    copy(&folder.path().join("older"), &folder.path().join("store"));
    server.restart();
    machine.write(10);
    let status = until(&shipper, "sent again", sent(machine.size())).await;
    assert_eq!(status.lost_by_centre, lost);
    let _collector = collect(&connection, "a", mirrors.path()).await;
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_has_everything_after_the_store_was_rolled_back_or_emptied() {
    let Some(program) = new_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(&program, folder.path(), free_port(), "", "sync_interval: always");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    machine.write(200);
    until_received(&shipper, &machine).await;
    server.pause();
    copy(&folder.path().join("store"), &folder.path().join("older"));
    server.resume();
    machine.write(200);
    until_received(&shipper, &machine).await;

    server.kill();
    copy(&folder.path().join("older"), &folder.path().join("store"));
    server.restart();
    machine.write(200);
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());

    // Another disk.
    server.kill();
    fs::remove_dir_all(folder.path().join("store")).unwrap();
    server.restart();
    centre(&server).await;
    machine.write(200);
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());

    // Also for processes that remember nothing.
    drop((shipper, collector));
    server.kill();
    fs::remove_dir_all(folder.path().join("store")).unwrap();
    server.restart();
    centre(&server).await;
    machine.write(200);
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_made_anew_is_filled_and_read_again() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    machine.write(100);
    until_received(&shipper, &machine).await;
    let context = jetstream::new(connection.client().clone());
    for stream in [subjects::AUDIT, subjects::RECEIPT] {
        context.delete_stream(stream).await.unwrap();
    }
    centre(&server).await;
    machine.write(100);
    let size = machine.size();
    until_mirror(&collector, &machine, "complete", |mirror| mirror.received == size).await;
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
    // The sequence numbers of the stream began again, and are low for a while.
    machine.write(100);
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_log_whose_messages_expired_is_not_sent_again() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    machine.write(200);
    until_received(&shipper, &machine).await;
    drop(shipper);
    expire(&connection, &machine).await;

    machine.write(5);
    let shipper = machine.ship(&connection);
    until_received(&shipper, &machine).await;
    assert_eq!(shipper.status().borrow().lost_by_centre, 0);
    assert_mirrored(&machine, mirrors.path());
    let context = jetstream::new(connection.client().clone());
    let messages = context.get_stream(subjects::AUDIT).await.unwrap().get_info().await.unwrap().state.messages;
    assert!(messages <= 4, "{messages} messages for a few records");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_collector_gets_the_records_that_expired_from_the_machine() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, a, b) = (Machine::new("m1"), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let collector = collect(&connection, "a", a.path()).await;
    let shipper = machine.ship_to(&connection, &["a", "b"]);
    machine.write(200);
    until_received(&shipper, &machine).await;
    expire(&connection, &machine).await;
    let second = collect(&connection, "b", b.path()).await;
    machine.write(5);
    let size = machine.size();
    until_mirror(&second, &machine, "complete", |mirror| mirror.received == size).await;
    until_mirror(&collector, &machine, "complete", |mirror| mirror.received == size).await;
    assert_mirrored(&machine, a.path());
    assert_mirrored(&machine, b.path());
    assert_eq!(shipper.status().borrow().lost_by_centre, 0);
}

/// Lets all messages of the log expire.
async fn expire(connection: &Connection, machine: &Machine) {
    let context = jetstream::new(connection.client().clone());
    let stream = context.get_stream(subjects::AUDIT).await.unwrap();
    let config = stream.get_info().await.unwrap().config;
    let short = Duration::from_millis(200);
    let short = jetstream::stream::Config { max_age: short, duplicate_window: short, ..config.clone() };
    context.update_stream(short).await.unwrap();
    let subject = subjects::audit(&machine.name, &machine.id());
    let start = Instant::now();
    while connection.last_message(subjects::AUDIT, &subject).await.unwrap().is_some() {
        assert!(start.elapsed() < LIMIT, "nothing expires");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    context.update_stream(config).await.unwrap();
}
