//! Hooks that are commands: good ones, and those that mean harm.

use std::time::{Duration, Instant};

use crate::transport::{LIMIT, Pids, answers, ask, call, failure, large, members, patiently};
use amplifier_core::{EventData, Hook, HookError, HookResult, data};
use amplifier_modules::transport::{CommandHook, CommandOptions, Program, TransportError};
use futures::FutureExt;
use futures::future::join_all;
use serde_json::{Value, json};

fn hook(program: Program) -> CommandHook {
    CommandHook::new(CommandOptions::new("test", program)).unwrap()
}

fn line(line: &str) -> CommandHook {
    hook(Program::line(line))
}

#[tokio::test]
async fn every_action_can_be_answered() {
    for (answer, expected) in answers() {
        let hook = hook(Program::line("printf '%s' \"$ANSWER\"").variable("ANSWER", answer.to_string()));
        assert_eq!(ask(&hook).await, Ok(expected), "{answer}");
    }
}

#[tokio::test]
async fn the_request_is_one_json_object_on_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let hook = hook(Program::new(["tee", "request.json"]).folder(folder.path()));
    // What `tee` repeats is no answer.
    assert!(failure(ask(&hook).await).contains("unknown field"));
    let request: Value = serde_json::from_slice(&std::fs::read(folder.path().join("request.json")).unwrap()).unwrap();
    assert_eq!(request, json!({ "protocol": 1, "hook": "test", "event": "tool:pre", "data": Value::from(call()) }));
}

#[tokio::test]
async fn the_environment_says_what_the_event_is_about() {
    let line = r#"echo "$AMPLIFIER_WORKSPACE|$AMPLIFIER_SESSION|$AMPLIFIER_EVENT|$AMPLIFIER_PATH" >&2; exit 2"#;
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().canonicalize().unwrap();
    let options = CommandOptions { workspace: Some(root.clone()), ..CommandOptions::new("test", Program::line(line)) };
    let hook = CommandHook::new(options).unwrap();
    let root = root.display();
    let input = json!({ "file_path": "src/../a.txt" });
    let write = data! { "session_id": "s-1", "tool_name": "Write", "tool_input": input };
    let expected = HookResult::deny(format!("{root}|s-1|tool:post|{root}/a.txt"));
    assert_eq!(hook.handle("tool:post", &write).await, Ok(expected));
    // Otherwise nothing is left from the environment of the agent, and nothing a program cannot be started with.
    let odd = data! { "session_id": "a\u{0}b" };
    let expected = HookResult::deny(format!("{root}||prompt:submit|"));
    assert_eq!(hook.handle("prompt:submit", &odd).await, Ok(expected));
    let input = json!({ "file_path": "x".repeat(1_000_000) });
    let expected = HookResult::deny(format!("{root}||tool:pre|"));
    assert_eq!(hook.handle("tool:pre", &data! { "tool_name": "Read", "tool_input": input }).await, Ok(expected));
}

#[tokio::test]
async fn a_request_larger_than_a_pipe_comes_through_while_the_command_writes() {
    let hook = line("cat | wc -c >&2; yes | head -c 300000 >&2");
    let answer = hook.handle("tool:pre", &large()).await.unwrap();
    let length: usize = answer.output.unwrap().lines().next().unwrap().trim().parse().unwrap();
    assert!(length > 1_000_000, "{length}");
}

#[tokio::test]
async fn what_goes_to_stderr_is_the_output_of_the_hook() {
    let hook = line("echo looking >&2; echo '{\"suppress_output\": true}'");
    assert_eq!(ask(&hook).await, Ok(HookResult::proceed().suppress_output().with_output("looking")));
    let long = line("yes é | head -c 100000 >&2").handle("tool:pre", &data! {}).await.unwrap().output.unwrap();
    assert!((10_239..=10_240).contains(&long.chars().count()));
}

#[tokio::test]
async fn exit_code_2_denies_with_stderr_as_the_reason() {
    for (command, reason) in [
        ("echo 'no rm' >&2; exit 2", "no rm".to_owned()),
        ("echo '{\"action\": \"continue\"}'; printf '\\033[31mno\\033[0m' >&2; exit 2", "[31mno[0m".to_owned()),
        ("exit 2", "the command gave no reason".to_owned()),
        ("head -c 50000 /dev/zero | tr '\\0' x >&2; exit 2", "x".repeat(10_240)),
    ] {
        assert_eq!(ask(&line(command)).await, Ok(HookResult::deny(reason)), "{command}");
    }
}

#[tokio::test]
async fn everything_else_is_a_failure_that_says_what_happened() {
    for (command, expected) in [
        ("echo why >&2; exit 3", "the command ended with exit code 3; its stderr ends with: why"),
        ("exit 1", "the command ended with exit code 1"),
        ("kill -9 $$", "the command was ended by signal 9"),
        ("kill -SEGV $$", "the command was ended by signal 11"),
        ("no-such-program-at-all 2>/dev/null", "the command ended with exit code 127"),
        (
            "echo hello",
            "the answer is not JSON: expected value at line 1 column 1; print an object such as {\"action\": \"inject_context\", \
             \"context_injection\": \"…\"}, and write other text to standard error",
        ),
        ("echo '{} {}'", "the answer is not JSON: trailing characters at line 1 column 4"),
        ("echo '[]'", "the answer cannot be read: expected an object, found a list"),
        ("echo '{\"action\": \"deny\", \"action\": \"continue\"}'", "the answer has a duplicate key"),
        (
            "echo '{\"action\": \"modify\", \"data\": {\"a\": [{\"b\": 1, \"b\": 2}]}}'",
            "the answer has a duplicate key",
        ),
        ("echo '{\"action\": \"modify\"}'", "the answer cannot be read: `modify` needs `data`"),
    ] {
        assert_eq!(failure(ask(&line(command)).await), expected, "{command}");
    }
    let missing = failure(ask(&hook(Program::new(["/no/such/program"]))).await);
    assert!(missing.starts_with("`/no/such/program` cannot be started: "), "{missing}");
    let missing = failure(ask(&hook(Program::new(["true"]).folder("/no/such/folder"))).await);
    assert!(missing.starts_with("`true` cannot be started: "), "{missing}");
}

#[test]
fn a_hook_without_a_command_or_a_variable_cannot_be_made() {
    let make = |program| CommandHook::new(CommandOptions::new("test", program)).map(drop).unwrap_err().to_string();
    assert_eq!(make(Program::new([""; 0])), "hook `test` has no command; name a program");
    assert_eq!(
        make(Program::line("true").variable("KEY", "${NO_SUCH_VARIABLE}")),
        "`KEY` of hook `test` needs the environment variable `NO_SUCH_VARIABLE`, which is not set or not text"
    );
    assert_eq!(
        make(Program::line("true").variable("KEY", "${NO")),
        "`KEY` of hook `test` has a `${` without a name or without the closing `}`; write `${NAME}`"
    );
}

#[tokio::test]
async fn variables_are_handed_over_and_never_printed() -> Result<(), TransportError> {
    let program = Program::line("echo \"$MY_TOKEN\" >&2; exit 2").variable("MY_TOKEN", "<${CARGO_PKG_NAME}>");
    let hook = CommandHook::new(CommandOptions::new("test", program))?;
    assert_eq!(ask(&hook).await, Ok(HookResult::deny("<amplifier-modules>")));
    assert!(!format!("{hook:?}").contains("<amplifier-modules>"));
    Ok(())
}

/// What a hostile command comes to.
enum Expected {
    Continue,
    TimedOut,
    Failure(&'static str),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_commands_cannot_hurt_the_agent() {
    use Expected::{Continue, Failure, TimedOut};
    let table: &[(&str, usize, EventData, Expected)] = &[
        ("exit 0", 20, large(), Continue),
        ("exec <&-; exit 0", 20, large(), Continue),
        ("sleep 60", 5, large(), TimedOut),
        ("exec >&-; exit 0", 20, call(), Continue),
        ("exec >&- 2>&-; sleep 60", 5, call(), TimedOut),
        ("sleep 60 & exit 0", 20, call(), Continue),
        ("(sleep 60; echo late) & (sleep 60 >&2) & exit 0", 20, call(), Continue),
        ("trap '' TERM INT HUP; sleep 60; sleep 60", 5, call(), TimedOut),
        ("while :; do sleep 60 & done", 3, call(), TimedOut),
        ("while :; do (sleep 60 & sleep 60 &) ; done", 3, call(), TimedOut),
        ("kill -STOP $$", 5, call(), TimedOut),
        ("while :; do :; done", 3, call(), TimedOut),
        ("yes", 10, call(), Failure("the command exceeded the output limit of stdout and was ended")),
        ("cat /dev/zero", 10, large(), Failure("the command exceeded the output limit of stdout and was ended")),
        ("yes >&2", 10, call(), Failure("the command exceeded the output limit of stderr and was ended")),
        ("yes | head -c 2000000; exit 0", 10, call(), Failure("the command exceeded the output limit of stdout")),
        ("head -c 500000 /dev/urandom", 5, call(), Failure("the answer is not JSON")),
        ("printf '%0100000d' 0 | tr 0 '['", 5, call(), Failure("the answer is not JSON: recursion limit exceeded")),
        ("printf '{\"reason\": \"\\377\"}'", 5, call(), Failure("the answer is not JSON")),
        ("kill -9 0", 10, call(), Failure("the command was ended by signal 9")),
    ];
    for (command, times, data, expected) in table {
        for _ in 0..*times {
            let pids = Pids::new();
            let program = Program::line(format!("echo $$ > \"$PIDS\"; {command}"));
            let limit = Duration::from_millis(if matches!(expected, TimedOut) { 150 } else { 20_000 });
            let program = program.variable("PIDS", pids.path().to_str().unwrap());
            let hook = CommandHook::new(CommandOptions { timeout: limit, ..CommandOptions::new("test", program) });
            let answer = hook.unwrap().handle("tool:pre", data).await;
            match expected {
                Continue => assert_eq!(answer, Ok(HookResult::proceed()), "{command}"),
                TimedOut => assert_eq!(answer, Err(HookError::TimedOut(limit)), "{command}"),
                Failure(text) => {
                    let failure = failure(answer);
                    assert!(failure.starts_with(text), "{command}: {failure}");
                    assert!(failure.len() < 2000, "{command}");
                }
            }
            pids.all_gone().await;
        }
    }
}

#[tokio::test]
async fn what_leaves_the_group_ends_with_a_command_that_is_ended() {
    for _ in 0..5 {
        let stray =
            "setsid sh -c 'echo $$ >> \"$PIDS\"; setsid sh -c \"echo \\$\\$ >> $PIDS; exec sleep 600\" & sleep 600'";
        let both = patiently(async |limit| {
            let pids = Pids::new();
            let program = Program::line(format!("{stray} & sleep 600"));
            let program = program.variable("PIDS", pids.path().to_str().unwrap());
            let options = CommandOptions { timeout: limit, ..CommandOptions::new("test", program) };
            failure(ask(&CommandHook::new(options).unwrap()).await);
            Some(pids).filter(|pids| pids.read().len() == 2)
        });
        both.await.all_gone().await;
    }
}

#[tokio::test]
async fn a_process_that_leaves_the_group_is_not_waited_for() {
    let pids = Pids::new();
    let program = Program::line(
        "setsid sh -c 'echo $$ > \"$PIDS\"; exec sleep 600' & while ! [ -s \"$PIDS\" ]; do :; done; exit 2",
    );
    let hook = hook(program.variable("PIDS", pids.path().to_str().unwrap()));
    let begun = Instant::now();
    assert_eq!(ask(&hook).await, Ok(HookResult::deny("the command gave no reason")));
    assert!(begun.elapsed() < LIMIT);
    for id in pids.read() {
        let id = rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
        rustix::process::kill_process_group(id, rustix::process::Signal::KILL).unwrap();
    }
    pids.all_gone().await;
}

#[tokio::test]
async fn the_time_limit_is_kept_and_tells_what_the_command_said_last() {
    for _ in 0..5 {
        patiently(async |limit| {
            let program = Program::line("echo thinking >&2; sleep 600");
            let options = CommandOptions { timeout: limit, ..CommandOptions::new("test", program) };
            let begun = Instant::now();
            let answer = ask(&CommandHook::new(options).unwrap()).await;
            assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
            if answer == Err(HookError::TimedOut(limit)) {
                // It has not said anything yet.
                return None;
            }
            let expected = format!("the command gave no answer within {limit:?}; its stderr ends with: thinking");
            assert_eq!(failure(answer), expected);
            Some(())
        })
        .await;
    }
}

#[tokio::test]
async fn dropping_the_call_kills_the_command_and_all_that_it_began() {
    for _ in 0..10 {
        let pids = Pids::new();
        let program = Program::line("trap '' TERM; sleep 60 & sleep 60 & echo $$ > \"$PIDS\"; sleep 60");
        let hook = hook(program.variable("PIDS", pids.path().to_str().unwrap()));
        let data = call();
        let mut running = Box::pin(hook.handle("tool:pre", &data));
        let group = tokio::select! {
            answer = &mut running => panic!("{answer:?}"),
            pids = pids.written(1) => pids[0],
        };
        assert!(members(group).len() >= 3);
        drop(running);
        pids.all_gone().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_calls_at_a_time_get_each_its_own_answer() {
    let hook = line("sed 's/.*\"number\":\\([0-9]*\\).*/{\"action\": \"deny\", \"reason\": \"\\1\"}/'");
    let numbers: Vec<EventData> = (0..100).map(|number| data! { "number": number }).collect();
    let answers = join_all(numbers.iter().map(|data| hook.handle("tool:pre", data))).await;
    let expected: Vec<_> = (0..100).map(|number| Ok(HookResult::deny(number.to_string()))).collect();
    assert_eq!(answers, expected);
}

#[test]
fn outside_of_a_runtime_the_hook_fails_and_does_not_panic() {
    let failure = failure(ask(&line("true")).now_or_never().expect("it need not wait"));
    assert_eq!(failure, "commands and servers need a tokio runtime");
}

#[tokio::test]
async fn secrets_of_the_agent_are_not_inherited() {
    if std::env::var_os("TRANSPORT_TEST_TOKEN").is_none() {
        // A process cannot safely change its own environment, so the test runs once more, with the variable set.
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "transport_command::secrets_of_the_agent_are_not_inherited";
        let output = again.args(["--exact", name]).env("TRANSPORT_TEST_TOKEN", "secret").output().unwrap();
        let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
        assert!(output.status.success() && ran, "{output:?}");
        return;
    }
    let tell = "echo \"<$TRANSPORT_TEST_TOKEN><${CARGO_PKG_NAME}>\" >&2; exit 2";
    assert_eq!(ask(&line(tell)).await, Ok(HookResult::deny("<><amplifier-modules>")));
    let named = hook(Program::line(tell).variable("TRANSPORT_TEST_TOKEN", "${TRANSPORT_TEST_TOKEN}"));
    assert_eq!(ask(&named).await, Ok(HookResult::deny("<secret><amplifier-modules>")));
}
