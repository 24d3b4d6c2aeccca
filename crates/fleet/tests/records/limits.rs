//! Limits of the centre, missing permissions, retention, clocks.

use amplifier_audit::Verifier;
use amplifier_fleet::records::ShipperState;
use amplifier_fleet::{ConnectionOptions, subjects};
use async_nats::jetstream;

use super::*;
use crate::support::new_server;

fn failure(status: &ShipperStatus) -> Option<&str> {
    match &status.state {
        ShipperState::Failing(text) => Some(text),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_stream_refuses_records_and_takes_them_when_it_has_room() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let admin = server.connect("admin").await;
    create_streams(&admin, Replicas::One, 100_000).await.unwrap();
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    machine.write(1_000);
    let shipper = machine.ship(&admin);
    let status = until(&shipper, "refused", |status| failure(status).is_some()).await;
    assert!(failure(&status).unwrap().contains("maximum bytes exceeded"), "{status:?}");
    let context = jetstream::new(admin.client().clone());
    let config = context.get_stream(subjects::AUDIT).await.unwrap().get_info().await.unwrap().config;
    context.update_stream(jetstream::stream::Config { max_bytes: 64 * MIB, ..config }).await.unwrap();
    let _collector = collect(&admin, "a", mirrors.path()).await;
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_shown_with_the_error_of_the_server() {
    let Some(program) = new_server() else { return };
    // The machine may send records of another machine only.
    let keys = ["admin", "m1"].map(|name| (name, nkeys::KeyPair::new_user()));
    let permissions = r#"permissions: {
        publish: ["audit.m2.>", "$JS.API.DIRECT.GET.AUDIT.audit.m1.>", "$JS.API.DIRECT.GET.RECEIPT.receipt.m1.>"]
        subscribe: ["_INBOX_m1.>"]
    }"#;
    let [admin, m1] = keys.each_ref().map(|(_, key)| key.public_key());
    let users = format!("authorization {{ users: [ {{ nkey: {admin} }}, {{ nkey: {m1}, {permissions} }} ] }}");
    let server = Server::start(&program, &users);
    let connect = async |index: usize| {
        let (name, key) = &keys[index];
        let options = ConnectionOptions::new(name.parse().unwrap(), [server.url()]).seed(key.seed().unwrap());
        Connection::open(options.time_limit(Duration::from_millis(500))).await.unwrap()
    };
    create_streams(&connect(0).await, Replicas::One, 64 * MIB).await.unwrap();
    let machine = Machine::new("m1");
    machine.write(10);
    let shipper = machine.ship(&connect(1).await);
    let status = until(&shipper, "refused", |status| failure(status).is_some_and(|text| text.contains("says"))).await;
    let text = failure(&status).unwrap().to_lowercase();
    assert!(text.contains("permissions violation") && text.contains("audit.m1."), "{text}");
    assert_eq!(status.sent, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_keeps_records_until_a_collector_has_them() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let shipper = machine.ship(&connection);
    let log = machine.options().segment_bytes(10_000).retention_limit(shipper.received()).open().unwrap();
    write(&log, 200);
    log.seal_blocking("s", "complete").unwrap();
    until(&shipper, "sent", |status| status.sent > 200).await;
    // The stream has them all. That is not enough.
    log.retain(1).unwrap();
    assert!(log.status().limited_segments > 5);
    assert_eq!(Verifier::new().folder(machine.log()).unwrap().first, 0);

    let collector = collect(&connection, "a", mirrors.path()).await;
    until_received(&shipper, &machine).await;
    log.retain(1).unwrap();
    let report = Verifier::new().folder(machine.log()).unwrap();
    assert!(report.is_sound() && report.first > 100, "{report}");
    // The mirror keeps the old segments and goes on.
    log.take(&message("one more")).unwrap();
    log.close().unwrap();
    until_received(&shipper, &machine).await;
    let name = mirror_of(&machine, mirrors.path());
    let mirror = Verifier::new().folder(&name).unwrap();
    assert!(mirror.is_sound() && mirror.first == 0 && mirror.size == machine.size(), "{mirror}");

    // A new collector, whose beginning only the machine had, begins with the first record that is left.
    drop(collector);
    let later = tempfile::tempdir().unwrap();
    drop(shipper);
    let shipper = machine.ship_to(&connection, &["b"]);
    let _collector = collect(&connection, "b", later.path()).await;
    until_received(&shipper, &machine).await;
    let mirror = Verifier::new().folder(mirror_of(&machine, later.path())).unwrap();
    assert!(mirror.is_sound() && mirror.size == machine.size(), "{mirror}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_changes_nothing() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = centre(&server).await;
    let (machine, mirrors) = (Machine::new("m1"), tempfile::tempdir().unwrap());
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let shipper = machine.ship(&connection);
    let log = machine.options().open().unwrap();
    let day = Duration::from_hours(24);
    for at in [SystemTime::now() + 400 * day, SystemTime::now() - 4000 * day, SystemTime::UNIX_EPOCH] {
        for number in 0..20 {
            log.take(&AuditRecord { at, ..message(&format!("message {number}")) }).unwrap();
        }
        log.checkpoint().unwrap();
    }
    log.close().unwrap();
    until_received(&shipper, &machine).await;
    assert_mirrored(&machine, mirrors.path());
}
