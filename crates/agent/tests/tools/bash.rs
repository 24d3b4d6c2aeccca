use std::fs;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use amplifier_agent::tool::{BashTool, ToolOutput};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::tools::place::{Place, failed, failure, output, run};

/// Longer than anything here takes; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// `true` if a process runs. An ended process that was not waited for is still listed, as a zombie.
fn is_running(process: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn assert_ends(process: &str) {
    let until = Instant::now() + PATIENCE;
    while is_running(process) {
        assert!(Instant::now() < until, "{process} still runs");
        std::thread::yield_now();
    }
}

/// The content of a file, once it has a whole line.
async fn line(path: &Path) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(line) = fs::read_to_string(path).ok().as_deref().and_then(|text| text.strip_suffix('\n')) {
            return line.to_owned();
        }
        assert!(Instant::now() < until, "{path:?} does not come");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_gives_its_output() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    let result = run(&bash, json!({"command": "pwd; touch made", "description": "Say where we are"})).await.unwrap();
    assert_eq!(result, ToolOutput::text(place.workspace.root().to_str().unwrap()).with("exit_code", 0));
    assert_eq!(place.names("."), ["made"]);
    assert_eq!(output(&bash, json!({"command": "true"})).await, "(no output)");
}

#[tokio::test]
async fn both_outputs_come_in_the_order_in_which_they_were_written() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    let command = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    assert_eq!(output(&bash, json!({"command": command})).await, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3");
}

#[tokio::test]
async fn a_command_that_fails_says_how() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    let cases = [
        ("echo before; exit 3", "before\nexit code 3"),
        ("false", "exit code 1"),
        ("kill -TERM $$", "ended by signal 15"),
    ];
    for (command, expected) in cases {
        assert_eq!(failure(&bash, json!({"command": command})).await, failed(expected));
    }
}

#[tokio::test]
async fn what_was_written_right_before_the_end_is_given() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    for number in 0..10 {
        let command = format!("echo $$ > {number}; printf '%050000d' {number}");
        let mut running = pin!(run(&bash, json!({"command": command})));
        assert!(futures::poll!(&mut running).is_pending());
        // Nobody reads its output before it has ended.
        assert_ends(&line(&place.path(&number.to_string())).await);
        let expected = ToolOutput::text(format!("{number:050000}")).with("exit_code", 0);
        assert_eq!(running.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn there_is_nothing_to_read() {
    let place = Place::new();
    assert_eq!(output(&BashTool::new(place.workspace.clone()), json!({"command": "cat; echo done"})).await, "done");
}

#[tokio::test]
async fn of_a_long_output_head_and_tail_are_given() {
    let place = Place::new();
    // The first byte puts the cut into the middle of a character, at both ends.
    place.put("long", format!("x{}", "€".repeat(100_000)));
    let text = output(&BashTool::new(place.workspace.clone()), json!({"command": "cat long"})).await;
    let half = "€".repeat(10_922);
    assert_eq!(text, format!("x{half}\n… 234468 bytes left out …\n{half}"));
}

#[tokio::test]
async fn what_a_command_leaves_running_is_ended_with_it() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    // It holds the output open as well, and must not be waited for.
    let process = output(&bash, json!({"command": "sleep 1000 & (sleep 1000 & echo $! > inner); echo $!"})).await;
    assert_ends(&process);
    assert_ends(&line(&place.path("inner")).await);
}

#[tokio::test]
async fn a_process_that_leaves_the_group_is_not_waited_for() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    // It says that it has left before the command ends, and writes without end to the output that it holds open.
    let command =
        "mkfifo left; setsid bash -c 'echo $$ > left; exec yes' & read process < left; echo $process > process";
    output(&bash, json!({"command": command})).await;
    let process = line(&place.path("process")).await;
    // The other end of its output is closed by now, which ends it; if it did not, this would.
    if let Some(process) = Pid::from_raw(process.parse().unwrap()) {
        let _ = kill_process(process, Signal::KILL);
    }
    assert_ends(&process);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_that_it_began() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    let command = "trap '' TERM INT HUP; sleep 1000 & echo $! > child; echo $$ > shell; echo begun; wait; sleep 1000";
    let mut seconds = 1;
    let mut result = failure(&bash, json!({"command": command, "timeout": seconds})).await;
    while result == failed(&format!("ended after {seconds} s: time limit exceeded")) && seconds < 60 {
        // Too short for it to begin, on a busy machine.
        seconds *= 2;
        result = failure(&bash, json!({"command": command, "timeout": seconds})).await;
    }
    assert_eq!(result, failed(&format!("begun\nended after {seconds} s: time limit exceeded")));
    for name in ["child", "shell"] {
        assert_ends(&line(&place.path(name)).await);
    }
}

#[tokio::test]
async fn dropping_the_future_ends_the_command_with_all_that_it_began() {
    let place = Place::new();
    let bash = BashTool::new(place.workspace.clone());
    let command = "echo $$ > shell; (sleep 1000 & echo $! > child; wait); touch over";
    {
        let mut running = pin!(run(&bash, json!({"command": command})));
        let begun = async { (line(&place.path("shell")).await, line(&place.path("child")).await) };
        let (shell, child) = tokio::select! {
            result = &mut running => panic!("it ended: {result:?}"),
            begun = begun => begun,
        };
        assert!(is_running(&shell) && is_running(&child));
    }
    for name in ["shell", "child"] {
        assert_ends(&line(&place.path(name)).await);
    }
    assert!(!place.path("over").exists());
}

#[tokio::test]
async fn commands_do_not_see_secrets_of_the_environment() {
    // The test starts itself anew, with secrets in the environment.
    if std::env::var_os("SEEN").is_none() {
        let test = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tools::bash::commands_do_not_see_secrets_of_the_environment"])
            .envs([("SEEN", "1"), ("A_API_KEY", "2"), ("A_TOKEN", "3"), ("a_secret", "4"), ("A_PASSWORD", "5")])
            .envs([("AWS_SECRET_ACCESS_KEY", "6"), ("PGPASSWORD", "7"), ("TOK", "8")])
            .output()
            .unwrap();
        let ran = String::from_utf8_lossy(&test.stdout).contains("1 passed");
        assert!(test.status.success() && ran, "{test:?}");
        return;
    }
    let place = Place::new();
    let command = "echo $SEEN $A_API_KEY $A_TOKEN $a_secret $A_PASSWORD $AWS_SECRET_ACCESS_KEY $PGPASSWORD $TOK";
    assert_eq!(output(&BashTool::new(place.workspace.clone()), json!({"command": command})).await, "1 8");
}

#[tokio::test]
async fn a_missing_bash_is_pointed_out() {
    // As above, with a path on which there is no bash.
    if std::env::var_os("PATH").is_some_and(|path| path != "/nowhere") {
        let test = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tools::bash::a_missing_bash_is_pointed_out"])
            .env("PATH", "/nowhere")
            .output()
            .unwrap();
        let ran = String::from_utf8_lossy(&test.stdout).contains("1 passed");
        assert!(test.status.success() && ran, "{test:?}");
        return;
    }
    let place = Place::new();
    let expected = format!(
        "`bash` cannot be started in `{}`: No such file or directory (os error 2); it must be installed and in `PATH`",
        place.workspace.root().display()
    );
    assert_eq!(failure(&BashTool::new(place.workspace.clone()), json!({"command": "true"})).await, failed(&expected));
}
