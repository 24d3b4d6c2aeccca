use std::time::Duration;

use amplifier_fleet::{Connection, ConnectionOptions, FleetError, Replicas, create_streams, subjects};
use async_nats::HeaderMap;

use crate::support::{Cluster, Server, new_server, old_server};

const MIB: i64 = 1 << 20;

#[tokio::test]
async fn a_subject_takes_only_the_message_that_follows_the_last_one() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = server.connect("m1").await;
    create_streams(&connection, Replicas::One, 64 * MIB).await.unwrap();
    let subject = subjects::audit(&"m1".parse().unwrap(), &"log".parse().unwrap());
    assert!(connection.last_message(subjects::AUDIT, &subject).await.unwrap().is_none());
    let after = |sequence: u64| {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", sequence.to_string().as_str());
        headers
    };
    let first = connection.publish(&subject, after(0), "one".into()).await.unwrap();
    let again = connection.publish(&subject, after(0), "one".into()).await;
    assert!(matches!(again, Err(FleetError::Conflict { .. })), "{again:?}");
    connection.publish(&subject, after(first), "two".into()).await.unwrap();
    let last = connection.last_message(subjects::AUDIT, &subject).await.unwrap().unwrap();
    assert_eq!(last.payload, "two");
}

#[tokio::test]
async fn a_subject_of_answers_takes_one_message() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = server.connect("console-1").await;
    create_streams(&connection, Replicas::One, 64 * MIB).await.unwrap();
    connection.publish("answer.m1.s.r.1", HeaderMap::new(), "ann".into()).await.unwrap();
    let second = connection.publish("answer.m1.s.r.1", HeaderMap::new(), "bob".into()).await;
    assert!(matches!(second, Err(FleetError::Conflict { .. })), "{second:?}");
}

#[tokio::test]
async fn streams_that_exist_stay() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let connection = server.connect("admin").await;
    create_streams(&connection, Replicas::One, 64 * MIB).await.unwrap();
    create_streams(&connection, Replicas::One, 64 * MIB).await.unwrap();
    let other = create_streams(&connection, Replicas::One, 32 * MIB).await;
    assert!(matches!(other, Err(FleetError::Refused { .. })), "{other:?}");
}

#[tokio::test]
async fn three_servers_go_on_without_their_leader() {
    let Some(program) = new_server() else { return };
    let mut cluster = Cluster::start(&program, "");
    let connection = cluster.connect("m1").await;
    let mut created = create_streams(&connection, Replicas::Three, 64 * MIB).await;
    // A new cluster elects its leader first.
    for _ in 0..60 {
        if created.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        created = create_streams(&connection, Replicas::Three, 64 * MIB).await;
    }
    created.unwrap();
    connection.publish("audit.m1.log", HeaderMap::new(), "one".into()).await.unwrap();
    let leader = cluster.leader(&connection, subjects::AUDIT).await;
    cluster.servers[leader].kill();
    let mut stored = connection.publish("audit.m1.log", HeaderMap::new(), "two".into()).await;
    for _ in 0..60 {
        if stored.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        stored = connection.publish("audit.m1.log", HeaderMap::new(), "two".into()).await;
    }
    stored.unwrap();
    let last = connection.last_message(subjects::AUDIT, "audit.m1.log").await.unwrap().unwrap();
    assert_eq!(last.payload, "two");
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let Some(program) = old_server() else { return };
    let server = Server::start(&program, "");
    let options = || ConnectionOptions::new("m1".parse().unwrap(), [server.url()]);
    let refused = Connection::open(options()).await;
    assert!(matches!(refused, Err(FleetError::OldServer { .. })), "{:?}", refused.err());
    Connection::open(options().take_old_servers()).await.unwrap();
}

#[tokio::test]
async fn a_connection_without_a_server_fails_at_once_and_connects_later() {
    let Some(program) = new_server() else { return };
    let mut server = Server::start(&program, "");
    server.kill();
    let options = ConnectionOptions::new("m1".parse().unwrap(), [server.url()]);
    let connection = Connection::start(options).await.unwrap();
    let refused = connection.last_message(subjects::AUDIT, "audit.m1.log").await;
    assert!(matches!(refused, Err(FleetError::Unreachable { .. })), "{refused:?}");
    server.restart();
    for _ in 0..600 {
        match connection.last_message(subjects::AUDIT, "audit.m1.log").await {
            Err(FleetError::Unreachable { .. }) => tokio::time::sleep(Duration::from_millis(100)).await,
            // There are no streams yet.
            answered => return assert!(matches!(answered, Err(FleetError::NoResponders { .. })), "{answered:?}"),
        }
    }
    panic!("it does not connect");
}

#[tokio::test]
async fn a_missing_server_is_an_error() {
    let options = ConnectionOptions::new("m1".parse().unwrap(), ["nats://127.0.0.1:1"]);
    let error = Connection::open(options.time_limit(Duration::from_millis(300))).await.err().unwrap();
    assert!(error.to_string().starts_with("cannot connect to the centre `nats://127.0.0.1:1`"), "{error}");
}
