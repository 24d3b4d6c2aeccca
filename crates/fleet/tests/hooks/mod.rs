//! Hooks of machines that are services of the fleet.

mod helpers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use amplifier_core::{Coordinator, HookError, HookRegistry, HookResult, OnError, TOOL_PRE, Verdict, data};
use amplifier_fleet::{Connection, ConnectionOptions, FleetHooks, HookService};
use amplifier_modules::transport::{NatsHook, NatsOptions};
use futures::future::join_all;

use crate::approvals::{LIMIT, name};
use crate::support::{Server, new_server};

/// A machine whose gate asks the service `policy`. A failure denies.
fn gate(connection: &Connection, timeout: Duration) -> Coordinator {
    let options = NatsOptions { timeout, ..NatsOptions::new("policy", "policy") };
    let hook = NatsHook::new(options, Arc::new(FleetHooks::new(connection.clone()))).unwrap();
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("policy").on_error(OnError::Deny).timeout(LIMIT).handler(hook);
    Coordinator::builder(hooks).session_id("s").build()
}

async fn call(gate: &Coordinator, command: &str) -> Verdict {
    gate.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": { "command": command } }).await
}

fn reason(verdict: Verdict) -> String {
    let Verdict::Denied { reason, .. } = verdict else { panic!("it was allowed") };
    reason
}

/// An instance that denies `rm`, and counts its requests.
async fn instance(server: &Server, name_of: &str) -> (HookService, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let (connection, policy) = (server.connect(name_of).await, name("policy"));
    let service = HookService::start(&connection, &policy, move |call| {
        counted.fetch_add(1, Ordering::SeqCst);
        let command = call.data["tool_input"]["command"].as_str().unwrap_or_default().to_owned();
        async move {
            match command.as_str() {
                "rm" => Ok(HookResult::deny("no rm")),
                "broken" => Err(HookError::failed("the rules\ncannot be read")),
                _ => Ok(HookResult::proceed()),
            }
        }
    });
    (service.await.unwrap(), count)
}

/// An instance that receives requests, and never answers.
async fn hanging(server: &Server) -> HookService {
    let never = |_| std::future::pending::<Result<HookResult, HookError>>();
    HookService::start(&server.connect("hanging").await, &name("policy"), never).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_instance_answers_a_share_of_the_requests() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let gate = gate(&server.connect("m1").await, LIMIT);
    let mut instances = Vec::new();
    for number in 0..3 {
        instances.push(instance(&server, &format!("policy-{number}")).await);
    }
    let verdicts = join_all((0..300).map(|_| call(&gate, "ls"))).await;
    assert!(verdicts.iter().all(Verdict::is_proceed));
    let counts: Vec<usize> = instances.iter().map(|(_, count)| count.load(Ordering::SeqCst)).collect();
    assert!(counts.iter().sum::<usize>() == 300 && counts.iter().all(|count| *count > 30), "{counts:?}");
    assert_eq!(reason(call(&gate, "rm").await), "no rm");
    let failed = reason(call(&gate, "broken").await);
    assert!(failed.contains("the rules cannot be read"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_denies_at_once_if_no_instance_runs() {
    let Some(program) = new_server() else { return };
    let mut server = Server::start(&program, "");
    let gate = gate(&server.connect("m1").await, LIMIT);
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let started = Instant::now();
        let failed = reason(call(&gate, "ls").await);
        best = best.min(started.elapsed());
        assert!(failed.contains("the service `policy` is not running"), "{failed}");
    }
    eprintln!("denied after {best:?} at best");
    assert!(best < LIMIT / 4, "{best:?}");
    server.kill();
    // The client notices the lost connection by itself.
    let started = Instant::now();
    loop {
        let failed = reason(call(&gate, "ls").await);
        if failed.contains("there is no connection to the centre") {
            break;
        }
        assert!(started.elapsed() < LIMIT, "{failed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_hangs_or_ends_loses_no_request() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let timeout = Duration::from_secs(4);
    let gate = gate(&server.connect("m1").await, timeout);
    let (_good, _) = instance(&server, "policy-1").await;
    let hanging = hanging(&server).await;
    let started = Instant::now();
    let verdicts = join_all((0..200).map(|_| call(&gate, "ls"))).await;
    eprintln!("one of two hangs: the slowest of 200 calls took {:?}", started.elapsed());
    assert!(verdicts.iter().all(Verdict::is_proceed), "{verdicts:?}");
    drop(hanging);
    let (killed, _) = instance(&server, "policy-2").await;
    let calls = join_all((0..300).map(|_| call(&gate, "rm")));
    let (verdicts, ()) = tokio::join!(calls, async { drop(killed) });
    for verdict in verdicts {
        assert_eq!(reason(verdict), "no rm");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_denies_if_every_instance_hangs_or_the_answer_is_invalid() {
    let Some(program) = new_server() else { return };
    let server = Server::start(&program, "");
    let machine = server.connect("m1").await;
    let hanging = hanging(&server).await;
    let short = gate(&machine, Duration::from_millis(200));
    let failed = reason(call(&short, "ls").await);
    assert!(failed.contains("200ms"), "{failed}");
    let large = reason(call(&gate(&machine, LIMIT), &"x".repeat(2 << 20)).await);
    assert!(!large.contains("no rm"), "{large}");
    drop(hanging);
    let client = machine.client().clone();
    let mut requests = client.subscribe("hook.policy.>").await.unwrap();
    tokio::spawn(async move {
        let answers = ["{\"action\": \"denny\"}", "no JSON", "{\"action\": \"deny\", \"action\": \"continue\"}"];
        for answer in answers {
            let request = futures::StreamExt::next(&mut requests).await.unwrap();
            client.publish(request.reply.unwrap(), answer.into()).await.unwrap();
        }
    });
    machine.client().flush().await.unwrap();
    let gate = gate(&machine, LIMIT);
    for _ in 0..3 {
        reason(call(&gate, "ls").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_denies_before_the_first_connection() {
    let options = ConnectionOptions::new(name("m1"), ["nats://127.0.0.1:1"]);
    let gate = gate(&Connection::start(options).await.unwrap(), LIMIT);
    let failed = reason(call(&gate, "ls").await);
    assert!(failed.contains("there is no connection to the centre"), "{failed}");
}

#[test]
fn the_name_of_a_service_is_one_part_of_a_subject() {
    struct NoServices;
    impl amplifier_modules::transport::RemoteHooks for NoServices {
        fn call<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            _: Vec<u8>,
            _: Duration,
        ) -> futures::future::BoxFuture<'a, Result<Vec<u8>, HookError>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }
    for bad in ["", "a.b", "*", ">", "a b"] {
        let refused = NatsHook::new(NatsOptions::new("h", bad), Arc::new(NoServices)).unwrap_err();
        assert!(refused.to_string().starts_with(&format!("invalid service `{bad}` of hook `h`")), "{refused}");
    }
}
