//! The security table: each attempt of an identity, with real servers of the newest and the oldest version.

use std::path::Path;
use std::time::{Duration, Instant};

use amplifier_fleet::enrol::{FleetRole, JoinToken, Member};
use amplifier_fleet::{Connection, FleetError, subjects};
use async_nats::HeaderMap;
use jiff::{SignedDuration, Timestamp};

use crate::support::{Centre, new_server, old_server};

/// Something that an identity tries.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// Sends a message or a request.
    Send(&'static str, &'static str),
    /// Reads the last message of a subject.
    Read(&'static str, &'static str),
    /// Receives the messages of a subject.
    Receive(&'static str),
}
use Attempt::{Read, Receive, Send};

/// `true` if the server lets the identity do it. A refused request shows itself by no reply, and an error of the connection.
async fn is_allowed(connection: &Connection, attempt: Attempt) -> bool {
    let result = match attempt {
        Send(subject, payload) => connection.request(subject, HeaderMap::new(), payload.into()).await.map(drop),
        Read(stream, subject) => connection.last_message(stream, subject).await.map(drop),
        Receive(subject) => return can_receive(connection, subject).await,
    };
    match result {
        Err(FleetError::TimedOut { server_error, .. }) => {
            let error = server_error.unwrap_or_else(|| panic!("{attempt:?}: no reply, and no error of the server"));
            assert!(error.contains("ermissions"), "{attempt:?}: {error}");
            false
        }
        _ => true,
    }
}

async fn can_receive(connection: &Connection, subject: &str) -> bool {
    let _subscription = connection.client().subscribe(subject.to_owned()).await.unwrap();
    connection.client().flush().await.unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        if connection.server_error().is_some_and(|error| error.contains("ubscription") && error.contains(subject)) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}

async fn check(program: &Path) {
    let mut centre = Centre::start(program).await;
    let m1 = centre.connect("m1", &[FleetRole::Machine]).await;
    let _m2 = centre.connect("m2", &[FleetRole::Machine]).await;
    let console = centre.connect("console-1", &[FleetRole::Console]).await;
    let collector = centre.connect("collector-1", &[FleetRole::Collector]).await;
    let service = centre.connect("secrets", &[FleetRole::Service]).await;
    let admin = centre.connect("admin", &[FleetRole::Admin]).await;
    let policy = subjects::POLICY;
    let table: [(&Connection, Attempt, bool); 52] = [
        // A machine uses what is its own.
        (&m1, Send("audit.m1.log", "{}"), true),
        (&m1, Send("ask.m1.s.r.1", "{}"), true),
        (&m1, Send("$KV.status.machine.m1", "{}"), true),
        (&m1, Send("hook.secrets.tool.pre", "{}"), true),
        (&m1, Send("hookall.secrets.tool.pre", "{}"), true),
        (&m1, Read(subjects::AUDIT, "audit.m1.log"), true),
        (&m1, Read(subjects::ASK, "ask.m1.s.r.1"), true),
        (&m1, Read(subjects::ANSWER, "answer.m1.s.r.1"), true),
        (&m1, Read(subjects::RECEIPT, "receipt.m1.log.collector-1"), true),
        (&m1, Read(policy, "$KV.policy.pointer.all"), true),
        (&m1, Receive("answer.m1.>"), true),
        // It writes nothing of others.
        (&m1, Send("audit.m2.log", "{}"), false),
        (&m1, Send("ask.m2.s.r.1", "{}"), false),
        (&m1, Send("answer.m1.s.r.1", "{}"), false),
        (&m1, Send("answer.m2.s.r.1", "{}"), false),
        (&m1, Send("receipt.m1.log.collector-1", "{}"), false),
        (&m1, Send("$KV.status.machine.m2", "{}"), false),
        (&m1, Send("$KV.policy.pointer.all", "{}"), false),
        (&m1, Send("$O.bundles.C.x.0", "{}"), false),
        // It reads nothing of others.
        (&m1, Receive("audit.>"), false),
        (&m1, Receive("ask.>"), false),
        (&m1, Receive("answer.m2.>"), false),
        (&m1, Receive("_INBOX_m2.>"), false),
        (&m1, Receive(">"), false),
        (&m1, Receive("hook.>"), false),
        (&m1, Read(subjects::AUDIT, "audit.m2.log"), false),
        (&m1, Read(subjects::ANSWER, "answer.m2.s.r.1"), false),
        (&m1, Read(subjects::STATUS, "$KV.status.machine.m2"), false),
        (&m1, Send("$JS.API.DIRECT.GET.AUDIT", r#"{"last_by_subj":"audit.m2.log"}"#), false),
        (&m1, Send("$JS.API.STREAM.MSG.GET.AUDIT", r#"{"last_by_subj":"audit.m2.log"}"#), false),
        (&m1, Send("$JS.API.CONSUMER.CREATE.AUDIT", "{}"), false),
        // It changes no stream.
        (&m1, Send("$JS.API.STREAM.PURGE.AUDIT", ""), false),
        (&m1, Send("$JS.API.STREAM.DELETE.AUDIT", ""), false),
        (&m1, Send("$JS.API.STREAM.MSG.DELETE.AUDIT", r#"{"seq":1}"#), false),
        // A console answers.
        (&console, Send("answer.m1.s.r.1", "{}"), true),
        (&console, Receive("ask.>"), true),
        (&console, Send("audit.m1.log", "{}"), false),
        (&console, Send("receipt.m1.log.collector-1", "{}"), false),
        (&console, Send("$JS.API.STREAM.PURGE.ANSWER", ""), false),
        (&console, Send("$KV.policy.pointer.all", "{}"), false),
        // A collector reads records, and sends its own receipts.
        (&collector, Send("receipt.m1.log.collector-1", "{}"), true),
        (&collector, Read(subjects::AUDIT, "audit.m1.log"), true),
        (&collector, Send("receipt.m1.log.collector-2", "{}"), false),
        (&collector, Send("audit.m1.log", "{}"), false),
        (&collector, Send("answer.m1.s.r.9", "{}"), false),
        // A service only replies.
        (&service, Receive("hookall.secrets.>"), true),
        (&service, Receive("hook.other.>"), false),
        (&service, Send("audit.m1.log", "{}"), false),
        (&service, Send("hook.secrets.tool.pre", "{}"), false),
        // An administrator publishes policies, and forges nothing.
        (&admin, Send("$KV.policy.pointer.other", "{}"), true),
        (&admin, Send("audit.m1.log", "{}"), false),
        (&admin, Send("answer.m1.s.r.9", "{}"), false),
    ];
    for (connection, attempt, expected) in table {
        let allowed = is_allowed(connection, attempt).await;
        assert_eq!(allowed, expected, "{} {attempt:?}", connection.name());
    }
    // What the streams themselves do not permit.
    let publish =
        async |connection: &Connection, subject: &str| connection.publish(subject, HeaderMap::new(), "{}".into()).await;
    let again = publish(&console, "answer.m1.s.r.1").await;
    assert!(matches!(again, Err(FleetError::Conflict { .. })), "{again:?}");
    for (request, code) in [("$JS.API.STREAM.PURGE.ANSWER", "10110"), ("$JS.API.STREAM.MSG.DELETE.AUDIT", "10057")] {
        let reply = admin.request(request, HeaderMap::new(), r#"{"seq":1}"#.into()).await.unwrap();
        let text = String::from_utf8_lossy(&reply.payload).into_owned();
        assert!(text.contains(code), "{request}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_identity_does_more_than_its_role_on_a_new_server() {
    let Some(program) = new_server() else { return };
    check(&program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_identity_does_more_than_its_role_on_an_old_server() {
    let Some(program) = old_server() else { return };
    check(&program).await;
}

async fn is_refused(centre: &Centre, member: &Member) -> bool {
    let opened = centre.open(member).await;
    match opened {
        Err(FleetError::Unreachable { cause, .. }) => {
            assert!(cause.to_lowercase().contains("authorization"), "{cause}");
            true
        }
        Err(error) => panic!("{error}"),
        Ok(_) => false,
    }
}

async fn check_ends(program: &Path) {
    let mut centre = Centre::start(program).await;
    // An identity without an enrolment.
    let token = centre.add("m1", &[FleetRole::Machine], "all", None);
    let mut foreign: JoinToken = token.clone();
    foreign.seed = nkeys::KeyPair::new_user().seed().unwrap();
    foreign.name = "foreign".parse().unwrap();
    assert!(is_refused(&centre, &centre.join(&foreign)).await);
    // An expired one.
    let soon = Timestamp::now() + SignedDuration::from_secs(2);
    let token_of_runner = centre.add("runner", &[FleetRole::Machine], "all", Some(soon));
    let runner = centre.join(&token_of_runner);
    assert!(!is_refused(&centre, &runner).await);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(is_refused(&centre, &runner).await);
    // A revoked one, also if it is connected.
    let member = centre.join(&token);
    let connected = centre.open(&member).await.unwrap();
    connected.publish("audit.m1.log", HeaderMap::new(), "{}".into()).await.unwrap();
    // The time of a revocation has seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    centre.organisation.revoke("m1").unwrap();
    centre.reload();
    let start = Instant::now();
    while !is_refused(&centre, &member).await {
        assert!(start.elapsed() < Duration::from_secs(20), "the revoked identity can connect");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(connected.publish("audit.m1.log", HeaderMap::new(), "{}".into()).await.is_err());
    assert!(centre.organisation.revoke("m1").is_err());
    // The name can be used again, by another key.
    let again = centre.add("m1", &[FleetRole::Machine], "all", None);
    member.leave().unwrap();
    assert!(!is_refused(&centre, &centre.join(&again)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_and_revoked_identities_are_refused_by_a_new_server() {
    let Some(program) = new_server() else { return };
    check_ends(&program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_and_revoked_identities_are_refused_by_an_old_server() {
    let Some(program) = old_server() else { return };
    check_ends(&program).await;
}
