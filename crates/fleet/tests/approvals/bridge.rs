//! Approval requests of other machines in a server, whose approvers use the page and the API.

use amplifier_core::{ApprovalAnswer, DecisionBasis, Verdict};
use amplifier_fleet::{Connection, ConnectionOptions, Replicas, ServerBridge};
use amplifier_link::{AnswerScope, OpenApproval};
use amplifier_server::Hub;
use amplifier_server::hub::{HubErrorCode, SubmittedAnswer};

use super::{LIMIT, Session, console, done, name, streams, until};
use crate::support::{Proxy, Server, new_server};

/// A server with the requests of all machines.
async fn server(centre: &Server, name: &str) -> (Hub, ServerBridge) {
    let hub = Hub::new();
    let bridge = ServerBridge::start(console(centre.connect(name).await), hub.remote_pipes());
    (hub, bridge)
}

async fn asked(hub: &Hub) -> OpenApproval {
    until(|| hub.pending().into_iter().next()).await
}

fn by(name: &str, label: &str, nonce: &str) -> SubmittedAnswer {
    let answer = ApprovalAnswer::by(label, name, "console");
    SubmittedAnswer { answer, nonce: nonce.to_owned(), scope: AnswerScope::Once }
}

#[tokio::test(flavor = "multi_thread")]
async fn approvers_of_two_servers_answer_for_all_machines() {
    let Some(program) = new_server() else { return };
    let centre = Server::start(&program, "");
    let (m1, m2) = (centre.connect("m1").await, centre.connect("m2").await);
    streams(&m1, Replicas::One).await;
    let (first, second) = (Session::new(&m1, LIMIT).await, Session::new(&m2, LIMIT).await);
    let [(one, _bridge), (other, _other)] = [server(&centre, "c1").await, server(&centre, "c2").await];
    let operation = first.run("ls");
    let (here, there) = (asked(&one).await, asked(&other).await);
    assert_eq!((here.machine.as_deref(), here.prompt.as_str()), (Some("m1"), "Run `ls`?"));
    assert_eq!((&here.id, here.deadline), (&there.id, there.deadline));
    let session = one.session("s").unwrap();
    assert_eq!((session.machine.as_deref(), session.name.as_deref(), session.pending), (Some("m1"), Some("deploy"), 1));
    let (ann, bob) = tokio::join!(
        one.answer(&here.id, by("ann", "Allow once", &here.nonce)),
        other.answer(&there.id, by("bob", "Deny", &there.nonce)),
    );
    let (winner, decided, loser) = match (ann, bob) {
        (Ok(decided), Err(refused)) => ("ann", decided, refused),
        (Err(refused), Ok(decided)) => ("bob", decided, refused),
        both => panic!("{both:?}"),
    };
    assert_eq!(decided.by.clone().unwrap().name, winner);
    assert_eq!((loser.code, loser.by.unwrap().name.as_str()), (HubErrorCode::Answered, winner));
    assert_eq!(matches!(done(operation).await, Verdict::Proceed(_)), winner == "ann");
    assert_eq!(first.decisions(), [(1, DecisionBasis::Answer, Some(winner.to_owned()))]);
    until(|| (one.pending().is_empty() && other.pending().is_empty()).then_some(())).await;
    // The session of the other machine has the same id and run, and waits until the place is free, or another server shows it.
    drop(first);
    let operation = second.run("rm");
    let (third, _third) = server(&centre, "c3").await;
    let request = asked(&third).await;
    assert_eq!(request.machine.as_deref(), Some("m2"));
    third.answer(&request.id, by("ann", "Deny", &request.nonce)).await.unwrap();
    assert!(matches!(done(operation).await, Verdict::Denied { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_its_machine_has_not_confirmed_is_reported_as_sent() {
    let Some(program) = new_server() else { return };
    let centre = Server::start(&program, "");
    let proxy = Proxy::start(centre.port()).await;
    let machine = Connection::open(ConnectionOptions::new(name("m1"), [&proxy.url])).await.unwrap();
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let operation = session.run("ls");
    let [(one, _bridge), (other, _other)] = [server(&centre, "c1").await, server(&centre, "c2").await];
    let (here, there) = (asked(&one).await, asked(&other).await);
    proxy.cut().await;
    let sent = one.answer(&here.id, by("ann", "Allow once", &here.nonce)).await.unwrap_err();
    assert_eq!(sent.code, HubErrorCode::TimedOut);
    assert!(sent.message.contains("is on its way"), "{}", sent.message);
    let second = other.answer(&there.id, by("bob", "Deny", &there.nonce)).await.unwrap_err();
    assert_eq!((second.code, second.by.unwrap().name.as_str()), (HubErrorCode::Answered, "ann"));
    proxy.heal();
    assert!(matches!(done(operation).await, Verdict::Proceed(_)));
    until(|| one.pending().is_empty().then_some(())).await;
    let decided = one.decision(&here.id).unwrap();
    assert_eq!((decided.granted, decided.by.clone().unwrap().name.as_str()), (true, "ann"));
}
