//! Answers of somebody who may publish to the centre, but has no key of a console.

use amplifier_core::{DecisionBasis, Verdict};
use amplifier_fleet::{AnswerError, Console, Replicas, subjects};
use async_nats::HeaderMap;

use super::{LIMIT, Session, answer, asked, console, done, key, name, streams, until};
use crate::support::{Server, new_server};

#[tokio::test(flavor = "multi_thread")]
async fn forged_answers_are_recorded_and_the_request_stays_open() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let operation = session.run("ls");
    let ann = console(server.connect("c1").await);
    let request = asked(&ann).await;
    // The name of a console, with another key.
    let forger = Console::start(server.connect("c2").await, key("stolen"));
    forger.answer(&name("m1"), &request.id, answer("Allow once", "eve")).await.unwrap();
    until(|| (session.failures().len() == 1).then_some(())).await;
    // A console that the policy of the machine does not name.
    let unknown = console(server.connect("c9").await);
    unknown.answer(&name("m1"), &request.id, answer("Allow once", "eve")).await.unwrap();
    until(|| (session.failures().len() == 2).then_some(())).await;
    // No signed text at all.
    let subject = subjects::answer_after(&name("m1"), &request.id, 2);
    server.connect("c3").await.publish(&subject, HeaderMap::new(), "Allow once".into()).await.unwrap();
    until(|| (session.failures().len() == 3).then_some(())).await;
    assert!(!operation.is_finished());
    ann.answer(&name("m1"), &request.id, answer("Deny", "ann")).await.unwrap();
    assert!(matches!(done(operation).await, Verdict::Denied { .. }));
    assert_eq!(session.decisions(), [(1, DecisionBasis::Answer, Some("ann".to_owned()))]);
    let failures = session.failures();
    assert!(failures[0].contains("`c2` is refused, because its signature is not valid"), "{failures:?}");
    assert!(failures[1].contains("the unknown console `c9`"), "{failures:?}");
    assert!(failures[2].starts_with("an answer is not readable"), "{failures:?}");
    assert!(session.late().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sixteen_forged_answers_only_the_machine_itself_can_answer() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let operation = session.run("ls");
    let ann = console(server.connect("c1").await);
    let request = asked(&ann).await;
    let forger = Console::start(server.connect("c2").await, key("stolen"));
    for count in 1..=16 {
        forger.answer(&name("m1"), &request.id, answer("Allow once", "eve")).await.unwrap();
        until(|| (session.failures().len() == count).then_some(())).await;
    }
    let refused = ann.answer(&name("m1"), &request.id, answer("Allow once", "ann")).await;
    assert!(matches!(&refused, Err(AnswerError::Answered(Some(by))) if by.name == "eve"), "{refused:?}");
    assert!(!operation.is_finished() && session.decisions().is_empty());
    operation.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_request_does_not_count() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let ann = console(server.connect("c1").await);
    let first = session.run("ls");
    let request = asked(&ann).await;
    ann.answer(&name("m1"), &request.id, answer("Allow once", "ann")).await.unwrap();
    assert!(matches!(done(first).await, Verdict::Proceed(_)));
    until(|| ann.open_requests().is_empty().then_some(())).await;
    let second = session.run("rm -rf /");
    let open = asked(&ann).await;
    // A copy of the valid answer.
    let subject = subjects::answer(&name("m1"), &request.id);
    let stored = machine.last_message(subjects::ANSWER, &subject).await.unwrap().unwrap();
    let subject = subjects::answer(&name("m1"), &open.id);
    machine.publish(&subject, HeaderMap::new(), stored.payload).await.unwrap();
    until(|| (session.failures().len() == 1).then_some(())).await;
    assert!(session.failures()[0].contains("about another version of the request"), "{:?}", session.failures());
    ann.answer(&name("m1"), &open.id, answer("Deny", "ann")).await.unwrap();
    assert!(matches!(done(second).await, Verdict::Denied { .. }));
}
