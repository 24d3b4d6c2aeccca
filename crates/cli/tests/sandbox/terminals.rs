//! Terminals: those of the person are out of reach, and programs can have their own.

use std::process::{Command, Stdio};

use super::{LAUNCHER, Place, Ran, is_possible};

/// Runs a script in a terminal of its own, and gives all that was written to that.
fn in_terminal(place: &Place, script: &str) -> String {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", script, "/dev/null"]);
    command.env("SHELL", "/bin/bash").env("LAUNCHER", LAUNCHER).current_dir(place.at("free")).stdin(Stdio::null());
    Ran::new(command.output().unwrap()).out
}

#[test]
fn a_program_cannot_write_to_the_terminal_of_the_person() {
    let script = "exec 7<>/dev/tty; me=$(tty </dev/tty); echo began; \
                  $LAUNCHER confined OPTIONS -- bash -c \"\
                  echo ATTACK >/dev/tty; echo ATTACK >/dev/console; echo ATTACK >&7; echo ATTACK >$me; \
                  for tty in /dev/pts/[0-9]* /dev/tty[0-9]* /dev/vcs*; do echo ATTACK >\\$tty; done; \
                  for tty in /proc/[0-9]*/fd/*; do echo \\$tty | grep -q /self/ || echo ATTACK 2>/dev/null >\\$tty; done; \
                  echo ran >ran\" </dev/null >/dev/null 2>&1; cat ran; echo ended";
    for options in ["", "--landlock"] {
        let place = Place::new();
        if !is_possible(&options.split_whitespace().collect::<Vec<_>>()) {
            continue;
        }
        let shown = in_terminal(&place, &script.replace("OPTIONS", options));
        assert_eq!(shown, "began\r\nran\r\nended\r\n", "{options}");
    }
}

/// The attempt itself works: it reaches the terminal of a process that has one.
#[test]
fn the_same_attempt_works_without_confinement() {
    let place = Place::new();
    let shown = in_terminal(&place, "bash -c 'echo ATTACK >/dev/tty' </dev/null >/dev/null 2>&1");
    assert_eq!(shown, "ATTACK\r\n");
    let shown = in_terminal(
        &place,
        "$LAUNCHER confined --session -- bash -c 'echo ATTACK >/dev/tty' </dev/null 2>&1 | grep -c 'No such device'",
    );
    assert_eq!(shown, "1\r\n");
}

#[test]
fn a_terminal_as_standard_input_or_output_is_refused() {
    let place = Place::new();
    for options in ["", "--landlock"] {
        let shown = in_terminal(&place, &format!("$LAUNCHER confined {options} -- echo ATTACK; echo $?"));
        assert!(shown.contains("is a terminal; use pipes or files") && shown.ends_with("125\r\n"), "{shown}");
    }
}

#[test]
fn a_program_can_make_terminals_of_its_own() {
    if !is_possible(&[]) {
        return;
    }
    let place = Place::new();
    let shown = place.run("SHELL=/bin/bash script -qc 'tty; echo written >/dev/tty' /dev/null");
    assert_eq!(shown.fine(), "/dev/pts/0\r\nwritten\r\n");
    let shown =
        place.run("python3 -c 'import pty; pty.spawn([\"test\", \"-t\", \"0\"]); pty.spawn([\"echo\", \"inner\"])'");
    assert_eq!(shown.fine(), "inner\r\n");
    let script = "export TMUX_TMPDIR=$PWD/free; tmux -L t new-session -d 'tty >free/made; tmux -L t wait-for -S ready; sleep 300'; \
                  tmux -L t wait-for ready; cat free/made";
    assert_eq!(place.run(script).fine(), "/dev/pts/0\n");
}
