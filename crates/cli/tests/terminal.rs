//! The program in a real terminal: a person types, and sees what it does.

#![cfg(unix)]

mod chat;
mod rules;
mod run;
mod serve;
mod trust;
mod watch;

use std::process::Command;

use expectrl::{Expect, Session, session::OsSession};

use crate::common::{LIMIT, Place};

/// What stands below a question that waits.
const WAITS: &str = "press 1–3, d · / denies";
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Runs the program, when the terminal has its size and the file is there, if one is named; and tells how it ended and whether the terminal is as it was before.
const SHELL: &str = r#"
    trap : INT
    until test "$(stty size)" = "40 100"; do sleep 0.01; done
    until test -z "$HELD" || test -e "$HELD"; do sleep 0.01; done
    unset HELD
    before=$(stty -g)
    "$0" "$@"
    echo "code: $?"
    test "$(stty -g)" = "$before" && echo "terminal: as before"
    echo "process: over"
"#;

/// A terminal with the program in it.
pub(crate) struct Terminal {
    session: OsSession,
    seen: String,
}

impl Terminal {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::held(place, arguments, "")
    }

    /// One where the program waits for a file before it begins.
    fn held(place: &Place, arguments: &[&str], until: &str) -> Self {
        let program = place.scripted(arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", SHELL]).arg(program.get_program()).args(program.get_args());
        shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(program.get_current_dir().unwrap());
        shell.env("NO_COLOR", "1").env("TERM", "xterm").env("HELD", until);
        let mut session = Session::spawn(shell).unwrap();
        session.get_process_mut().set_window_size(100, 40).unwrap();
        session.set_expect_timeout(Some(LIMIT));
        Self { session, seen: String::new() }
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
    }

    /// What the person saw until this text appeared, and the text.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let found = self.session.expect(text);
        let found = found.unwrap_or_else(|error| panic!("`{text}` did not appear ({error}) after {}", self.seen));
        let seen = String::from_utf8_lossy(found.as_bytes()).into_owned();
        self.seen.push_str(&seen);
        seen
    }

    /// Waits for the prompt of a conversation. The line editor asks where the cursor is; a terminal would answer.
    fn until_prompt(&mut self) -> String {
        let seen = self.until("\x1b[6n");
        self.keys("\x1b[1;1R");
        self.until("> ");
        self.until("\x1b[?25h");
        seen
    }

    /// Types a line at the prompt; gives what is shown until the next prompt.
    fn line(&mut self, line: &str) -> String {
        self.keys(&format!("{line}\r"));
        self.until_prompt()
    }

    /// Answers the next question.
    fn answer(&mut self, key: &str) {
        self.until(WAITS);
        self.keys(key);
    }

    /// Waits for the end, and gives the exit code.
    pub(crate) fn end(&mut self) -> i32 {
        self.until("code: ");
        let rest = self.until("process: over");
        assert!(rest.contains("terminal: as before"), "{rest}");
        rest.lines().next().unwrap().trim().parse().unwrap()
    }

    /// The lines that are on the screen at the end of `run`, as far as it knows the codes that are used there.
    fn screen(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        let mut rest = self.seen.as_str();
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            let line = lines.last_mut().unwrap();
            match character {
                '\n' => lines.push(String::new()),
                // All that is drawn over is taken away first.
                '\r' if rest.starts_with("\x1b[K") => line.clear(),
                '\r' => {}
                '\x1b' => rest = &rest[rest.find(|c: char| c.is_ascii_alphabetic()).unwrap() + 1..],
                other => line.push(other),
            }
        }
        let end = lines.iter().position(|line| line.starts_with("code: ")).unwrap();
        lines.truncate(end);
        lines
    }
}
