//! Hooks that are kept alive: good ones, and those that mean harm.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::transport::{LIMIT, Pids, answers, ask, call, eventually, failure, large, members, patiently};
use amplifier_core::{Action, EventData, Hook, HookError, HookResult, data};
use amplifier_modules::transport::{Program, WorkerHook, WorkerOptions};
use futures::future::{join, join_all};
use serde_json::{Value, json};

/// How a program in Python begins that answers requests without the helper.
const PYTHON: &str = "
import json, os, sys, time
with open(os.environ['PIDS'], 'a') as pids:
    print(os.getpid(), file=pids)
def ask():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def say(id, **result):
    print(json.dumps({'id': id, 'result': result}), flush=True)
def answer(request):
    say(request['id'], action='deny', reason=str(os.getpid()))
";

fn options(program: Program, pids: &Pids) -> WorkerOptions {
    WorkerOptions::new("test", program.variable("PIDS", pids.path().to_str().unwrap()))
}

fn python(script: &str, pids: &Pids) -> WorkerOptions {
    options(Program::new(["python3", "-c", &format!("{PYTHON}{script}")]), pids)
}

fn make(options: WorkerOptions) -> WorkerHook {
    WorkerHook::new(options).unwrap()
}

fn helpers() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("helpers").to_str().unwrap().to_owned()
}

/// Asks a worker that is to answer with what the event tells it to.
async fn check_answers(hook: &WorkerHook) {
    for (answer, expected) in answers() {
        assert_eq!(hook.handle("tool:pre", &data! { "answer": answer }).await, Ok(expected));
    }
    let failed = hook.handle("tool:pre", &data! { "fail": true }).await;
    assert!(failure(failed).contains("told to fail"));
    assert_eq!(hook.handle("user:notification", &data! {}).await, Ok(HookResult::deny("user:notification")));
}

#[tokio::test]
async fn a_worker_knows_the_workspace() {
    let pids = Pids::new();
    let script = "
request = ask()
say(request['id'], action='deny', reason=os.environ['AMPLIFIER_WORKSPACE'] + '|' + request['workspace'] + '|' + request['path'])
ask()";
    let input = serde_json::json!({ "file_path": "a.txt" });
    let hook = make(WorkerOptions { workspace: Some("/w".into()), ..python(script, &pids) });
    let answer = hook.handle("tool:pre", &data! { "tool_name": "Read", "tool_input": input }).await;
    assert_eq!(answer, Ok(HookResult::deny("/w|/w|/w/a.txt")));
}

#[tokio::test]
async fn the_python_helper_serves_every_action() {
    let script = "
import amplifier_hook

def decide(event, data):
    print('this is no answer')
    if 'fail' in data:
        raise ValueError('told to fail')
    return data['answer'] if 'answer' in data else {'action': 'deny', 'reason': event}

amplifier_hook.serve(decide)";
    let program = Program::new(["python3", "-c", script]).variable("PYTHONPATH", helpers());
    check_answers(&make(WorkerOptions::new("test", program))).await;
}

#[tokio::test]
async fn the_javascript_helper_serves_every_action() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: helpers/amplifier_hook.mjs, because `node` is not installed");
        return;
    }
    let script = "
import { serve } from './amplifier_hook.mjs';

serve(async (event, data) => {
  console.log('this is no answer');
  if ('fail' in data) throw new Error('told to fail');
  return 'answer' in data ? data.answer : { action: 'deny', reason: event };
});";
    let program = Program::new(["node", "--input-type=module", "-e", script]).folder(helpers());
    check_answers(&make(WorkerOptions::new("test", program))).await;
}

#[tokio::test]
async fn a_request_is_a_line_with_an_id() {
    let pids = Pids::new();
    let hook = make(python("while True:\n    r = ask(); say(r['id'], data=r)", &pids));
    for id in 1..=2 {
        let Ok(answer) = ask(&hook).await else { panic!("no answer") };
        let expected =
            json!({ "protocol": 1, "id": id, "hook": "test", "event": "tool:pre", "data": Value::from(call()) });
        assert_eq!(answer, HookResult::respond(expected.as_object().unwrap().clone()));
    }
}

#[tokio::test]
async fn answers_come_in_any_order() {
    let pids = Pids::new();
    let script = "
first, second = ask(), ask()
say(second['id'], reason=second['data']['name'])
say(first['id'], reason=first['data']['name'])
ask()";
    let hook = make(python(script, &pids));
    let (a, b) = (data! { "name": "a" }, data! { "name": "b" });
    let answers = join(hook.handle("tool:pre", &a), hook.handle("tool:pre", &b)).await;
    assert_eq!(answers, (Ok(HookResult::proceed().because("a")), Ok(HookResult::proceed().because("b"))));
}

#[tokio::test]
async fn an_error_or_an_unreadable_result_fails_that_request_alone() {
    let pids = Pids::new();
    let script = "
r = ask(); print(json.dumps({'id': r['id'], 'error': 'no \\x1b[31midea'}), flush=True)
r = ask(); say(r['id'], action='dance')
r = ask(); print('{\"id\": %d, \"result\": {\"action\": \"deny\", \"action\": \"continue\"}}' % r['id'], flush=True)
r = ask(); print(json.dumps({'id': r['id']}), flush=True)
answer(ask()); ask()";
    let hook = make(python(script, &pids));
    assert_eq!(failure(ask(&hook).await), "no [31midea");
    assert!(failure(ask(&hook).await).starts_with("the answer cannot be read in `action`: unknown variant `dance`"));
    assert_eq!(failure(ask(&hook).await), "the answer has a duplicate key");
    assert_eq!(ask(&hook).await, Ok(HookResult::proceed()));
    assert_eq!(ask(&hook).await, Ok(HookResult::deny(pids.read()[0].to_string())));
    assert_eq!(pids.read().len(), 1);
}

/// A worker that does harm at its first start, and answers at its second.
async fn check_restart(harm: &str, data: &EventData, expected: &str) {
    let pids = Pids::new();
    let script = format!(
        "
if len(open(os.environ['PIDS']).readlines()) == 1:
    {harm}
while True:
    answer(ask())"
    );
    let hook = make(WorkerOptions { timeout: LIMIT, ..python(&script, &pids) });
    let text = failure(hook.handle("tool:pre", data).await);
    assert!(text.starts_with(expected), "{harm}: {text}");
    assert!(text.len() < 2000, "{harm}");
    let answer = ask(&hook).await;
    let started = pids.read();
    assert_eq!(started.len(), 2, "{harm}");
    assert_eq!(answer, Ok(HookResult::deny(started[1].to_string())), "{harm}");
    drop(hook);
    pids.all_gone().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_does_harm_is_restarted() {
    let no_answer = "the worker wrote an invalid answer to stdout: ";
    let table: &[(&str, EventData, &str)] = &[
        ("sys.exit(0)", call(), "the worker ended with exit code 0"),
        ("ask(); sys.exit('why')", call(), "the worker ended with exit code 1; its stderr ends with: why"),
        ("ask(); os.kill(os.getpid(), 9)", call(), "the worker was ended by signal 9"),
        (
            "ask(); os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '600'); os._exit(4)",
            call(),
            "the worker ended with exit code 4",
        ),
        ("ask(); print('hello', flush=True); ask()", call(), no_answer),
        ("ask(); print(flush=True); ask()", call(), no_answer),
        ("print(json.dumps({'id': ask()['id'], 'reslt': {}}), flush=True); ask()", call(), no_answer),
        ("print(json.dumps({'id': -1}), flush=True); ask()", call(), no_answer),
        ("sys.stdout.write('[' * 1000000 + chr(10)); sys.stdout.flush(); ask()", call(), no_answer),
        ("ask(); say(99); ask()", call(), "the worker answered the unknown request 99"),
        ("ask(); os.system('yes'); ask()", call(), no_answer),
        ("ask(); os.system('cat /dev/zero')", call(), "the worker wrote a line to stdout over the size limit"),
        ("ask(); os.close(1); time.sleep(600)", call(), "the worker closed its stdout"),
        ("os.close(0); time.sleep(600)", large(), "the worker closed its stdin"),
    ];
    for (harm, data, expected) in table {
        for _ in 0..2 {
            check_restart(harm, data, expected).await;
        }
    }
}

#[tokio::test]
async fn what_a_worker_answered_before_it_ended_counts() {
    for _ in 0..20 {
        let pids = Pids::new();
        let hook = make(options(
            Program::line("read -r line; printf '{\"id\": 1, \"result\": {\"action\": \"deny\"}}\n'"),
            &pids,
        ));
        assert_eq!(ask(&hook).await, Ok(Action::Deny.into()));
    }
}

#[tokio::test]
async fn every_request_in_flight_fails_with_the_worker() {
    let pids = Pids::new();
    let hook = make(python("ask(); ask(); ask(); sys.exit('all at once')", &pids));
    for answer in join_all((0..3).map(|_| ask(&hook))).await {
        assert_eq!(failure(answer), "the worker ended with exit code 1; its stderr ends with: all at once");
    }
}

#[tokio::test]
async fn a_late_answer_is_dropped_and_the_worker_goes_on() {
    // The first answer is given when the second request has come.
    let script = "
first = ask(); second = ask()
say(first['id'], action='deny', reason='late')
answer(second)
while True: answer(ask())";
    let (answers, started) = patiently(async |limit| {
        let pids = Pids::new();
        let hook = make(WorkerOptions { timeout: limit, ..python(script, &pids) });
        assert_eq!(ask(&hook).await, Err(HookError::TimedOut(limit)));
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(ask(&hook).await.ok()?);
        }
        Some((answers, pids.read()))
    })
    .await;
    let [worker] = started[..] else { panic!("{started:?}") };
    assert_eq!(answers, vec![HookResult::deny(worker.to_string()); 3]);
}

#[tokio::test]
async fn a_worker_that_hangs_is_restarted() {
    for script in ["ask(); time.sleep(600)", "time.sleep(600)"] {
        let script = format!(
            "
if len(open(os.environ['PIDS']).readlines()) == 1:
    {script}
while True: answer(ask())"
        );
        let (answer, started) = patiently(async |limit| {
            let pids = Pids::new();
            let hook = make(WorkerOptions { timeout: limit, ..python(&script, &pids) });
            let (data, begun) = (large(), Instant::now());
            assert_eq!(hook.handle("tool:pre", &data).await, Err(HookError::TimedOut(limit)));
            assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
            let first = pids.read().first().copied()?;
            eventually("the end of the first worker", || members(first).is_empty().then_some(())).await;
            Some((ask(&hook).await.ok()?, pids.read()))
        })
        .await;
        let [_, second] = started[..] else { panic!("{started:?}") };
        assert_eq!(answer, HookResult::deny(second.to_string()));
    }
}

#[tokio::test]
async fn a_worker_that_keeps_failing_does_not_hold_up_the_agent() {
    let pids = Pids::new();
    let hook = make(options(Program::line("echo $$ >> \"$PIDS\"; echo broken >&2; exit 7"), &pids));
    let begun = Instant::now();
    // Pauses of 100, 200, 400 and 800 ms are waited for.
    for _ in 0..5 {
        let text = failure(ask(&hook).await);
        assert_eq!(text, "the worker ended with exit code 7; its stderr ends with: broken");
    }
    assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
    // Longer ones are not, and nothing is started meanwhile. Whoever is held up for that long asks again.
    let text = loop {
        let started = pids.read().len();
        let text = failure(ask(&hook).await);
        if pids.read().len() == started {
            break text;
        }
    };
    assert!(text.starts_with("the worker keeps failing and is not started for another "), "{text}");
    assert!(text.ends_with(" s: the worker ended with exit code 7; its stderr ends with: broken"), "{text}");

    let missing = make(WorkerOptions::new("test", Program::new(["/no/such/program"])));
    assert!(failure(ask(&missing).await).starts_with("`/no/such/program` cannot be started: "));
}

#[tokio::test]
async fn a_worker_may_write_to_stderr_without_end() {
    let pids = Pids::new();
    let script = "
while True:
    r = ask(); sys.stderr.write('x' * 3000000 + chr(10) * 100000); answer(r)";
    let hook = make(python(script, &pids));
    for _ in 0..3 {
        assert_eq!(ask(&hook).await, Ok(HookResult::deny(pids.read()[0].to_string())));
    }
}

#[tokio::test]
async fn dropping_the_hook_ends_the_workers_and_all_that_they_began() {
    for _ in 0..5 {
        let pids = Pids::new();
        let script = "trap '' TERM; sleep 60 & echo $$ >> \"$PIDS\"; while :; do sleep 60; done";
        let hook = make(WorkerOptions { workers: 2, ..options(Program::line(script), &pids) });
        {
            let both = async { join(ask(&hook), ask(&hook)).await };
            tokio::select! {
                answers = both => panic!("{answers:?}"),
                _ = pids.written(2) => {}
            }
        }
        assert!(pids.read().into_iter().all(|group| !members(group).is_empty()));
        drop(hook);
        pids.all_gone().await;
    }
}

#[test]
fn a_hook_outlives_the_runtime_that_started_its_worker() {
    let pids = Pids::new();
    let hook = make(python("while True: answer(ask())", &pids));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for start in 0..2 {
        let answer = runtime().block_on(ask(&hook));
        assert_eq!(answer, Ok(HookResult::deny(pids.read()[start].to_string())));
        // It has ended with its runtime.
        runtime().block_on(pids.all_gone());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_requests_at_a_time_are_shared_by_the_workers() {
    let pids = Pids::new();
    let script = "
while True:
    r = ask(); say(r['id'], data={'number': r['data']['number'], 'worker': os.getpid()})";
    let hook = make(WorkerOptions { workers: 4, ..python(script, &pids) });
    let numbers: Vec<EventData> = (0..100).map(|number| data! { "number": number }).collect();
    let answers = join_all(numbers.iter().map(|data| hook.handle("tool:pre", data))).await;
    let flat = answers.into_iter().map(|answer| answer.unwrap().into_flat(&data! {}).data.unwrap());
    let (numbers, workers): (Vec<_>, BTreeSet<_>) =
        flat.map(|data| (data["number"].as_u64().unwrap(), data["worker"].as_u64().unwrap())).unzip();
    assert_eq!(numbers, (0..100).collect::<Vec<u64>>());
    assert_eq!(workers, pids.read().into_iter().map(u64::from).collect::<BTreeSet<_>>());
    assert_eq!(workers.len(), 4);
    drop(hook);
    pids.all_gone().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_owes_too_many_answers_is_ended() {
    let pids = Pids::new();
    let hook = make(python("while True: ask()", &pids));
    for answer in join_all((0..1025).map(|_| ask(&hook))).await {
        assert_eq!(failure(answer), "the worker had more than 1024 pending answers");
    }
    pids.all_gone().await;
}
