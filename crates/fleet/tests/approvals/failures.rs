//! Approval requests without a network, without a console, and without an answer.

use std::time::{Duration, Instant};

use amplifier_core::{DecisionBasis, Verdict};
use amplifier_fleet::{AnswerError, Connection, ConnectionOptions, ConsoleEvent, Replicas};
use amplifier_link::AnswerStatus;
use async_nats::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{LIMIT, Session, answer, asked, console, done, name, streams, until};
use crate::support::{Proxy, Server, new_server};

/// A machine behind a network that can be cut.
async fn behind(proxy: &Proxy) -> Connection {
    Connection::open(ConnectionOptions::new(name("m1"), [&proxy.url])).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_the_kernel_with_its_approver_and_reason() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let operation = session.run("rm -rf build");
    // A console that starts later reads the request from the stream.
    let console = console(server.connect("c1").await);
    let request = asked(&console).await;
    assert_eq!(request.machine.as_deref(), Some("m1"));
    assert_eq!((request.id.to_string().as_str(), request.prompt.as_str()), ("s.run.1", "Run `rm -rf build`?"));
    let unknown = console.answer(&name("m2"), &request.id, answer("Deny", "ann")).await;
    assert!(matches!(unknown, Err(AnswerError::Unknown { .. })), "{unknown:?}");
    let not_offered = console.answer(&name("m1"), &request.id, answer("Maybe", "ann")).await;
    assert!(matches!(not_offered, Err(AnswerError::NotOffered(_))), "{not_offered:?}");
    let reason = "not während\u{85}\u{1b}[31m the release";
    console.answer(&name("m1"), &request.id, answer("Deny", "ann").because(reason)).await.unwrap();
    let Verdict::Denied { reason, .. } = done(operation).await else { panic!("it was allowed") };
    assert_eq!(reason, "User denied: Run `rm -rf build`?\nReason: not während[31m the release");
    assert_eq!(session.decisions(), [(1, DecisionBasis::Answer, Some("ann".to_owned()))]);
    let by = answer("Deny", "ann").by;
    let (status, decision) = console.status(&name("m1"), &request.id, by.as_ref(), LIMIT).await;
    assert_eq!((status, decision.unwrap().granted), (AnswerStatus::Taken, false));
    let late = console.answer(&name("m1"), &request.id, answer("Deny", "bob")).await;
    assert!(matches!(&late, Err(AnswerError::Answered(Some(by))) if by.name == "ann"), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server_does_not_delay_the_time_limit() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let setup = server.connect("admin").await;
    streams(&setup, Replicas::One).await;
    // Longer than the test: waiting for the network would show.
    let options = ConnectionOptions::new(name("m1"), [server.url()]).time_limit(LIMIT);
    let machine = Connection::open(options).await.unwrap();
    let timeout = Duration::from_secs(1);
    let session = Session::new(&machine, timeout).await;
    server.pause();
    let mut worst = Duration::ZERO;
    for _ in 0..5 {
        let started = Instant::now();
        let verdict = done(session.run("ls")).await;
        let took = started.elapsed();
        worst = worst.max(took);
        assert!(matches!(verdict, Verdict::Denied { .. }) && took >= timeout, "{verdict:?} after {took:?}");
        assert!(took < LIMIT / 2, "{took:?}");
    }
    eprintln!("denied at most {:?} after the time limit", worst - timeout);
    assert!(session.decisions().iter().all(|(_, basis, _)| *basis == DecisionBasis::Timeout));
    server.resume();
    // The decisions are stored later.
    let console = console(server.connect("c1").await);
    let id = "s.run.1".parse().unwrap();
    let (status, _) = console.status(&name("m1"), &id, None, LIMIT).await;
    assert_eq!(status, AnswerStatus::Late);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_during_a_partition_is_recorded_as_late_when_the_machine_connects_again() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let proxy = Proxy::start(server.port()).await;
    let machine = behind(&proxy).await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, Duration::from_secs(5)).await;
    let console = console(server.connect("c1").await);
    let operation = session.run("ls");
    let request = asked(&console).await;
    proxy.cut().await;
    console.answer(&name("m1"), &request.id, answer("Allow once", "ann")).await.unwrap();
    let by = answer("Allow once", "ann").by;
    let (status, _) = console.status(&name("m1"), &request.id, by.as_ref(), Duration::from_millis(300)).await;
    assert_eq!(status, AnswerStatus::Sent);
    assert!(matches!(done(operation).await, Verdict::Denied { .. }));
    assert!(session.late().is_empty());
    proxy.heal();
    until(|| (session.late() == ["ann"]).then_some(())).await;
    let (status, _) = console.status(&name("m1"), &request.id, by.as_ref(), LIMIT).await;
    assert_eq!(status, AnswerStatus::Late);
    tokio::time::timeout(LIMIT, session.approvals.close(LIMIT)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_although_its_console_is_gone() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let proxy = Proxy::start(server.port()).await;
    let machine = behind(&proxy).await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let operation = session.run("ls");
    let first = console(server.connect("c1").await);
    let request = asked(&first).await;
    proxy.cut().await;
    first.answer(&name("m1"), &request.id, answer("Allow once", "ann")).await.unwrap();
    drop(first);
    proxy.heal();
    assert!(matches!(done(operation).await, Verdict::Proceed(_)));
    let second = console(server.connect("c2").await);
    let late = second.answer(&name("m1"), &request.id, answer("Deny", "bob")).await;
    assert!(matches!(&late, Err(AnswerError::Answered(Some(by))) if by.name == "ann"), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_operation_withdraws_its_request() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let console = console(server.connect("c1").await);
    let operation = session.run("ls");
    let request = asked(&console).await;
    let mut events = console.subscribe();
    operation.abort();
    let closed = tokio::time::timeout(LIMIT, async {
        loop {
            if let ConsoleEvent::Closed { decision, .. } = events.recv().await.unwrap() {
                return decision;
            }
        }
    });
    assert_eq!(closed.await.unwrap().basis, DecisionBasis::Cancelled);
    let late = console.answer(&name("m1"), &request.id, answer("Deny", "ann")).await;
    assert!(matches!(&late, Err(AnswerError::Closed(decision)) if !decision.granted), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_a_machine_that_is_gone_is_closed_after_its_time_limit() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let console = console(server.connect("c1").await);
    let mut events = console.subscribe();
    let created = Timestamp::now() - SignedDuration::from_secs(36);
    let request = |id: &str, deadline: Timestamp| {
        let approval = json!({
            "id": id, "number": 1, "session": "s", "machine": "m2", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "Run it?",
            "options": [], "created_at": created, "deadline": deadline, "timeout_s": 1.0, "default": "deny", "digest": "0".repeat(64),
            "preview": { "title": "Deploy" },
        });
        json!({ "state": "open", "refused": 0, "approval": approval }).to_string()
    };
    // Long over: it is not shown at all.
    let over = request("s.run.9", created);
    machine.publish("ask.m1.s.run.9", HeaderMap::new(), over.into()).await.unwrap();
    // Shown for the rest of half a minute, under the name of the subject's machine, whatever the message says.
    let ending = request("s.run.1", created + SignedDuration::from_secs(10));
    machine.publish("ask.m1.s.run.1", HeaderMap::new(), ending.into()).await.unwrap();
    let mut next = async || tokio::time::timeout(LIMIT, events.recv()).await.unwrap().unwrap();
    let ConsoleEvent::Opened(opened) = next().await else { panic!("it was not opened first") };
    assert_eq!((opened.id.number, opened.machine.as_deref()), (1, Some("m1")));
    let ConsoleEvent::Closed { id, decision, .. } = next().await else { panic!("it was not closed") };
    assert_eq!((id.number, decision.basis), (1, DecisionBasis::Disconnected));
    assert!(console.open_requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_centre_waits_for_one_within_the_time_limit() {
    let Some(program) = new_server() else { return };
    let mut server = Server::start(&program, "");
    streams(&server.connect("admin").await, Replicas::One).await;
    server.kill();
    let machine = Connection::start(ConnectionOptions::new(name("m1"), [server.url()])).await.unwrap();
    let session = Session::new(&machine, LIMIT).await;
    let operation = session.run("ls");
    server.restart();
    let console = console(server.connect("c1").await);
    let request = asked(&console).await;
    console.answer(&name("m1"), &request.id, answer("Allow once", "ann")).await.unwrap();
    assert!(matches!(done(operation).await, Verdict::Proceed(_)));
}
