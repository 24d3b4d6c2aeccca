//! Many consoles that answer the same requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_core::{DecisionBasis, Verdict};
use amplifier_fleet::{AnswerError, Connection, Console, Replicas};
use amplifier_link::OpenApproval;
use futures::StreamExt;
use futures::future::join_all;

use super::{LIMIT, Session, answer, console, done, name, streams, until};
use crate::support::{Cluster, Server, new_server};

/// The number of answers that a console sends at a time.
const AT_ONCE: usize = 16;

/// The results of one console: for each request, its own name if its answer was first, or the name it was told.
type Winners = HashMap<u64, String>;

/// Answers all requests, and counts the stored answers.
async fn answer_all(console: &Console, requests: &[Arc<OpenApproval>], wins: &AtomicUsize) -> Winners {
    let own = console.name().to_string();
    let label = if own.ends_with(['0', '2', '4', '6']) { "Allow once" } else { "Deny" };
    let answers = requests.iter().map(async |request| {
        match console.answer(&name("m1"), &request.id, answer(label, &own)).await {
            Ok(()) => {
                wins.fetch_add(1, Ordering::SeqCst);
                (request.number, own.clone())
            }
            Err(AnswerError::Answered(Some(by))) => (request.number, by.name),
            Err(error) => panic!("{error:?}"),
        }
    });
    futures::stream::iter(answers).buffer_unordered(AT_ONCE).collect().await
}

/// Lets eight consoles answer all requests of a session at once. Exactly one answer to each counts, and everybody learns which one.
async fn race(session: &Session, consoles: &[Console], count: usize, midway: impl AsyncFnOnce(&AtomicUsize)) {
    let operations: Vec<_> = (0..count).map(|_| session.run("ls")).collect();
    let mut requests = until(|| Some(consoles[0].open_requests()).filter(|open| open.len() == count)).await;
    requests.sort_by_key(|request| request.number);
    for console in consoles {
        until(|| (console.open_requests().len() == count).then_some(())).await;
    }
    let wins = AtomicUsize::new(0);
    let answering = join_all(consoles.iter().map(|console| answer_all(console, &requests, &wins)));
    let (told, ()) = tokio::join!(answering, midway(&wins));
    assert_eq!(wins.load(Ordering::SeqCst), count, "one answer to each request is the first");
    for other in &told[1..] {
        assert_eq!(other, &told[0], "every console is told the same name");
    }
    let mut granted = 0;
    for operation in operations {
        granted += usize::from(matches!(done(operation).await, Verdict::Proceed(_)));
    }
    let decisions = session.decisions();
    assert_eq!(decisions.len(), count);
    for (number, basis, by) in decisions {
        assert_eq!((basis, by.as_ref()), (DecisionBasis::Answer, Some(&told[0][&number])), "request {number}");
    }
    let allowing = told[0].values().filter(|by| by.ends_with(['0', '2', '4', '6'])).count();
    assert_eq!(granted, allowing);
    assert!(session.late().is_empty() && session.failures().is_empty());
    until(|| consoles.iter().all(|console| console.open_requests().is_empty()).then_some(())).await;
}

async fn consoles(connect: impl AsyncFn(&str) -> Connection) -> Vec<Console> {
    let mut consoles = Vec::new();
    for number in 0..8 {
        consoles.push(console(connect(&format!("c{number}")).await));
    }
    consoles
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_answers_to_each_of_2000_requests_the_first_counts() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    streams(&machine, Replicas::One).await;
    let session = Session::new(&machine, LIMIT).await;
    let consoles = consoles(async |name| server.connect(name).await).await;
    race(&session, &consoles, 2_000, async |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_keep_one_answer_to_each_of_1000_requests_also_without_their_leader() {
    let Some(program) = new_server() else { return };
    let mut cluster = Cluster::start(&program, "");
    let machine = cluster.connect("m1").await;
    streams(&machine, Replicas::Three).await;
    let session = Session::new(&machine, LIMIT * 2).await;
    let consoles = consoles(async |name| cluster.connect(name).await).await;
    race(&session, &consoles, 1_000, async |_| {}).await;
    let leader = cluster.leader(&machine, amplifier_fleet::subjects::ANSWER).await;
    // In the middle of the run, the leader ends without a word.
    let server = &mut cluster.servers[leader];
    let session = Session::of_run(&machine, "run-2", LIMIT * 2).await;
    race(&session, &consoles, 500, async |wins| {
        until(|| (wins.load(Ordering::SeqCst) > 100).then_some(())).await;
        server.kill();
    })
    .await;
}
