//! Questions in a real terminal: keys go in, and what the person sees comes out.

#![cfg(unix)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use expectrl::{Expect, Session, session::OsSession};

const CALL: &str = r#"{"tool_name": "Bash", "tool_input": {"command": "cargo publish"}}"#;
const WAITS: &str = "press 1–3, d · / denies";
/// The last row while the keyboard has to be silent.
const SETTLES: &str = "╰─ …";
const TOO_QUICK: &str = "keys arrived too quickly; press 1–3, d · / denies";

/// Runs the example, when the terminal has its size, and tells what is typed after it and whether the terminal is as it was before.
const SHELL: &str = r#"
    until test "$(stty size)" = "40 100"; do sleep 0.01; done
    stty echo; before=$(stty -g)
    "$0" "$@"
    read typed; echo "typed: $typed"
    test "$(stty -g)" = "$before" && echo "terminal: as before"; stty -a
"#;

fn ask(call: &str, seconds: u64, how: &str) -> OsSession {
    let example: PathBuf = std::env::current_exe().unwrap().parent().unwrap().join("../examples/approval");
    assert!(example.exists(), "build it first: cargo build -p amplifier --example approval");
    let mut shell = Command::new("sh");
    shell.args(["-c", SHELL]);
    shell.arg(example).args([call, &seconds.to_string(), how]);
    shell.env("NO_COLOR", "1").env("TERM", "xterm").env_remove("CLICOLOR_FORCE");
    let mut session = Session::spawn(shell).unwrap();
    session.get_process_mut().set_window_size(100, 40).unwrap();
    // Generous, because the machine may be busy; a passing test never waits for it.
    session.set_expect_timeout(Some(Duration::from_secs(60)));
    session
}

/// What the person saw until this text appeared, and the text.
fn until(session: &mut OsSession, text: &str) -> String {
    let found = session.expect(text).unwrap_or_else(|error| panic!("`{text}` did not appear: {error}"));
    String::from_utf8_lossy(found.as_bytes()).into_owned()
}

/// What is typed now reaches the next program, and the terminal echoes and edits lines as it did.
fn check_terminal_is_sane(session: &mut OsSession) {
    session.send("next\n").unwrap();
    until(session, "typed: next");
    let settings = until(session, "echoctl");
    assert!(settings.contains("terminal: as before") && settings.contains(" echo "), "{settings}");
}

#[test]
fn a_number_answers() {
    let mut session = ask(CALL, 300, "");
    let shown = until(&mut session, WAITS);
    let seen = [
        "│ Bash",
        "│   cargo publish",
        "│ hook guard says: ⚠️ Is this what you want?",
        "3  Deny           deny this once",
    ];
    assert!(seen.iter().all(|part| shown.contains(part)), "{shown}");
    until(&mut session, "denies in 4:5");
    session.send("1").unwrap();
    until(&mut session, "✓ allowed once");
    until(&mut session, "verdict: Proceed");
    check_terminal_is_sane(&mut session);
}

#[test]
fn a_letter_answers_if_only_one_option_begins_with_it_and_enter_alone_does_nothing() {
    let mut session = ask(CALL, 300, "");
    until(&mut session, WAITS);
    for key in ["a", "\r"] {
        session.send(key).unwrap();
        until(&mut session, SETTLES);
        until(&mut session, WAITS);
    }
    session.send("d").unwrap();
    until(&mut session, "✗ denied");
    until(&mut session, "User denied: ");
    check_terminal_is_sane(&mut session);
}

#[test]
fn escape_never_decides() {
    let mut session = ask(CALL, 300, "");
    until(&mut session, WAITS);
    session.send("\x1b").unwrap();
    until(&mut session, "Esc does not answer; press 1–3, d");
    session.send("d").unwrap();
    until(&mut session, "✗ denied");
    until(&mut session, "User denied: ");
    check_terminal_is_sane(&mut session);
}

#[test]
fn control_c_denies_and_the_program_goes_on() {
    let mut session = ask(CALL, 300, "");
    until(&mut session, WAITS);
    session.send("\x03").unwrap();
    until(&mut session, "✗ denied");
    until(&mut session, "User denied: ");
    check_terminal_is_sane(&mut session);
}

#[test]
fn keys_typed_before_the_question_appeared_do_not_answer_it() {
    let mut session = ask(CALL, 300, "later");
    until(&mut session, "press Enter");
    // All of it is in the terminal's queue before the program can go on.
    session.send("\n111").unwrap();
    let shown = until(&mut session, WAITS);
    assert!(!shown.contains("allowed"), "{shown}");
    session.send("3").unwrap();
    let shown = until(&mut session, "✗ denied");
    assert!(!shown.contains("allowed"), "{shown}");
    check_terminal_is_sane(&mut session);
}

#[test]
fn pasted_text_does_not_answer() {
    let mut session = ask(CALL, 300, "");
    until(&mut session, WAITS);
    session.send("\x1b[200~1\x1b[201~").unwrap();
    until(&mut session, SETTLES);
    until(&mut session, WAITS);
    session.send("d").unwrap();
    let shown = until(&mut session, "✗ denied");
    assert!(!shown.contains("allowed"), "{shown}");
}

#[test]
fn keys_that_come_together_do_not_answer_and_the_person_is_told_so() {
    let mut session = ask(CALL, 300, "");
    until(&mut session, WAITS);
    for keys in ["11", "1\r", "1d", "yes1"] {
        session.send(keys).unwrap();
        until(&mut session, SETTLES);
        let shown = until(&mut session, TOO_QUICK);
        assert!(!shown.contains("allowed"), "{shown}");
    }
    session.send("1").unwrap();
    until(&mut session, "✓ allowed once");
    until(&mut session, "verdict: Proceed");
    check_terminal_is_sane(&mut session);
}

#[test]
fn what_a_terminal_replies_does_not_answer_even_in_pieces() {
    let mut session = ask(CALL, 300, "");
    until(&mut session, WAITS);
    let replies = [
        "\x1b]11;rgb:1111/1111/1111\x1b\\",
        "\x1b]4;1;rgb:1111/1111/1111\x07",
        "\x1bP1$r0;1m\x1b\\",
        "\x1bP1+r544e=31\x1b\\",
        "\x1b[>41;351;1c",
        "\x1b]l1\x1b\\",
    ];
    for reply in replies {
        session.send(reply).unwrap();
        until(&mut session, SETTLES);
        let shown = until(&mut session, WAITS);
        assert!(!shown.contains("allowed"), "{shown}");
    }
    // A slow connection: this is its pace, nothing is waited for.
    for byte in replies.concat().chars() {
        session.send(byte.to_string()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    until(&mut session, SETTLES);
    let shown = until(&mut session, WAITS);
    assert!(!shown.contains("allowed"), "{shown}");
    session.send("d").unwrap();
    until(&mut session, "✗ denied");
    check_terminal_is_sane(&mut session);
}

#[test]
fn when_time_is_up_the_default_counts_and_the_terminal_is_as_before() {
    let mut session = ask(CALL, 3, "");
    until(&mut session, "denies in 0:0");
    until(&mut session, "✗ denied by default: no answer in time");
    until(&mut session, "Approval timed out, denied by default: ");
    check_terminal_is_sane(&mut session);
}

#[test]
fn a_question_that_will_allow_by_itself_says_so() {
    let mut session = ask(CALL, 3, "allow");
    until(&mut session, "allows in 0:0");
    until(&mut session, "✓ allowed by default: no answer in time");
    until(&mut session, "verdict: Proceed");
    check_terminal_is_sane(&mut session);
}

#[test]
fn a_cancelled_operation_withdraws_its_question_and_eats_no_later_key() {
    let mut session = ask(CALL, 300, "cancel");
    until(&mut session, WAITS);
    until(&mut session, "○ withdrawn: the operation was cancelled");
    until(&mut session, "in time: false");
    check_terminal_is_sane(&mut session);
}

#[test]
fn only_one_question_at_a_time_is_on_the_screen() {
    let mut session = ask(CALL, 300, "twice");
    let first = until(&mut session, WAITS);
    assert_eq!(first.matches("approval needed").count(), 1, "{first}");
    session.send("1").unwrap();
    let answered = until(&mut session, "✓ allowed once");
    assert!(!answered.contains("approval needed"), "{answered}");
    until(&mut session, "approval needed");
    until(&mut session, WAITS);
    session.send("3").unwrap();
    until(&mut session, "✗ denied");
    until(&mut session, "verdicts: true false");
    check_terminal_is_sane(&mut session);
}

#[test]
fn what_would_spoof_the_screen_is_made_visible() {
    let call = r#"{"tool_name": "Bash", "tool_input": {"command": "echo \u202egnihton\u001b[1A\u001b[2K"}}"#;
    let mut session = ask(call, 300, "");
    let shown = until(&mut session, WAITS);
    assert!(shown.contains(r"│   echo \u{202e}gnihton␛[1A␛[2K"), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
    session.send("3").unwrap();
    until(&mut session, "✗ denied");
}

#[test]
fn everything_is_shown_on_request() {
    let command = (1..=60).map(|step| format!("step {step}")).collect::<Vec<_>>().join("\\n");
    let call = format!(r#"{{"tool_name": "Bash", "tool_input": {{"command": "{command}"}}}}"#);
    let mut session = ask(&call, 300, "");
    let shown = until(&mut session, WAITS);
    assert!(shown.contains("more lines here, press + to see all") && !shown.contains("step 30\r"), "{shown}");
    session.send("+").unwrap();
    until(&mut session, "│   step 30\r");
    until(&mut session, "│   step 60\r");
    until(&mut session, WAITS);
    session.send("3").unwrap();
    until(&mut session, "✗ denied");
}

#[test]
fn what_was_not_shown_is_shown_before_it_can_be_allowed() {
    let command = (1..=60).map(|step| format!("step {step}")).collect::<Vec<_>>().join("\\n");
    let call = format!(r#"{{"tool_name": "Bash", "tool_input": {{"command": "{command}"}}}}"#);
    for key in ["1", "2"] {
        let mut session = ask(&call, 300, "");
        until(&mut session, WAITS);
        session.send(key).unwrap();
        until(&mut session, "│   step 30\r");
        until(&mut session, "│   step 60\r");
        until(&mut session, "all rows are shown now; press 1–3");
        session.send(key).unwrap();
        let shown = until(&mut session, "✓ allowed");
        assert!(!shown.contains("step"), "{shown}");
        until(&mut session, "verdict: Proceed");
    }
    // Nobody has to read on to deny.
    let mut session = ask(&call, 300, "");
    until(&mut session, WAITS);
    session.send("3").unwrap();
    let shown = until(&mut session, "✗ denied");
    assert!(!shown.contains("step 30\r"), "{shown}");
}
