//! Anchors, with real files, real processes and a real server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::message;
use amplifier_audit::{Anchor, AnchorError, CommandAnchor, FileAnchor, HttpAnchor, Log, Problem, Verifier};

/// Longer than anything here takes, so that only what hangs fails.
const LONG: Duration = Duration::from_secs(60);
const NOTE: &str =
    "amplifier-audit/00ff\n3\nq1MKE+RZFJgrefm34/uplM/R8/si9xzqGvvwK0YMbR0=\nhead 12\n\n— amplifier-audit/00ff c2ln\n";

mod file {
    use super::*;

    #[test]
    fn notes_are_appended_each_with_an_empty_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/checkpoints");
        let mut anchor = FileAnchor::new(&path);
        anchor.keep(NOTE).unwrap();
        anchor.keep(NOTE).unwrap();
        FileAnchor::new(&path).keep("no line end").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{NOTE}\n{NOTE}\nno line end\n\n"));
        assert_eq!(anchor.name(), format!("file {}", path.display()));
    }

    #[test]
    fn the_file_and_its_folders_are_for_the_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/checkpoints");
        FileAnchor::new(&path).keep(NOTE).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(path.ancestors().take(3).map(mode).collect::<Vec<_>>(), [0o600, 0o700, 0o700]);
    }

    #[test]
    fn a_torn_note_does_not_swallow_the_next() {
        let check = |torn: &str, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("checkpoints");
            fs::write(&path, torn).unwrap();
            FileAnchor::new(&path).keep("note\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "after {torn:?}");
        };
        check("", "note\n\n");
        check("t", "t\n\nnote\n\n");
        check("to", "to\n\nnote\n\n");
        check("torn", "torn\n\nnote\n\n");
        check("torn\n", "torn\n\nnote\n\n");
        check("whole\n\n", "whole\n\nnote\n\n");
        check("whole\n\ntorn\nto", "whole\n\ntorn\nto\n\nnote\n\n");
        check("\n", "\nnote\n\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [folder.path().to_owned(), file.join("checkpoints")] {
            let error = FileAnchor::new(&path).keep(NOTE).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot append to `{}`: ", path.display())), "{error}");
        }
    }
}

mod command {
    use super::*;

    /// For a shell to come to the point where it hangs, before its time is over.
    const ENOUGH: Duration = Duration::from_secs(2);

    /// A shell that runs a script whose `$0` is a path.
    fn shell(script: &str, path: &Path) -> CommandAnchor {
        CommandAnchor::new("sh", ["-c".into(), script.into(), path.as_os_str().to_owned()]).time_limit(LONG)
    }

    fn error(script: &str) -> String {
        shell(script, Path::new("sh")).keep(NOTE).unwrap_err().to_string()
    }

    /// A pipe with a name. What comes through it are lines; it ends when all processes that have it open have ended.
    fn lifeline(folder: &Path) -> (PathBuf, Receiver<String>) {
        let path = folder.join("lifeline");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (sender, lines) = mpsc::channel();
        let pipe = path.clone();
        thread::spawn(move || {
            for line in BufReader::new(fs::File::open(pipe).unwrap()).lines() {
                sender.send(line.unwrap()).unwrap();
            }
        });
        (path, lines)
    }

    fn expect_end(lifeline: &Receiver<String>) {
        assert_eq!(lifeline.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn the_note_comes_on_stdin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note");
        for script in ["cat > \"$0\"", "cat /dev/stdin > \"$0\"; echo fine > /dev/stderr"] {
            shell(script, &path).keep(NOTE).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{NOTE}\n"));
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_a_program_was_given_can_be_compared_with_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for text in ["one", "two"] {
            let log = Log::at(at("log"), at("key")).anchor(shell("cat >> \"$0\"", &at("kept"))).open().unwrap();
            log.take(&message("s", text)).unwrap();
            log.close().unwrap();
        }
        let kept = fs::read(at("kept")).unwrap();
        let all = String::from_utf8(kept.clone()).unwrap();
        let last = all.trim_end().rsplit_once("\n\n").unwrap().0.rsplit_once("\n\n").unwrap().0.len() + 2;
        let spaced = all.replace("\n\n", "\n\n\n").replace("\n\n\n—", "\n\n—");
        // All of them, with lines that somebody has put between them, and the last one alone, without its empty line.
        let forms = [&kept[..], spaced.as_bytes(), &kept[last..kept.len() - 1]];
        for kept in forms {
            let report = Verifier::new().checkpoints(kept).unwrap().folder(at("log")).unwrap();
            assert!(report.is_sound(), "{report}");
            assert_eq!(report.to_json()["unanchored"], 1, "{report}");
        }
        fs::write(at("log/seg-000001.jsonl"), "").unwrap();
        for kept in forms {
            let report = Verifier::new().checkpoints(kept).unwrap().folder(at("log")).unwrap();
            assert!(report.findings.iter().any(|finding| finding.problem == Problem::Truncated), "{report}");
        }
    }

    #[test]
    fn arguments_are_not_for_a_shell_nor_for_messages() {
        let mut anchor = CommandAnchor::new("test", ["$HOME; exit 1", "=", "$HOME; exit 1"]);
        anchor.keep(NOTE).unwrap();
        assert_eq!(anchor.name(), "command test");
        assert_eq!(format!("{anchor:?}"), "CommandAnchor { program: \"test\", .. }");
    }

    #[test]
    fn a_failure_tells_the_exit_code_and_what_stderr_says() {
        assert_eq!(error("exit 3"), "`sh` ended with exit status: 3");
        assert_eq!(
            error("echo no such host >&2; echo 'try \u{1b}[31mlater' >&2; exit 4"),
            "`sh` ended with exit status: 4: no such host try ␛[31mlater"
        );
        assert_eq!(error("kill -9 $$"), "`sh` ended with signal: 9 (SIGKILL)");
        let missing = CommandAnchor::new("/no/such/program", [""; 0]).keep(NOTE).unwrap_err();
        assert_eq!(missing.to_string(), "cannot run `/no/such/program`: No such file or directory (os error 2)");
    }

    #[test]
    fn a_program_that_does_not_read_its_stdin_is_no_problem() {
        let mut anchor = CommandAnchor::new("true", [""; 0]).time_limit(Duration::MAX);
        anchor.keep(NOTE).unwrap();
        anchor.keep(&NOTE.repeat(100_000)).unwrap();
    }

    #[test]
    fn a_flood_is_drained() {
        shell("head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2", Path::new("sh")).keep(NOTE).unwrap();
        let flood = shell("yes | head -c 10000000 >&2; exit 1", Path::new("sh")).keep(NOTE).unwrap_err();
        let AnchorError::Exit { stderr, .. } = flood else { panic!("{flood}") };
        assert_eq!(stderr, "y ".repeat(2048).trim());
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let (path, lifeline) = lifeline(folder.path());
        // The program, its child and its grandchild hold the lifeline, and the pipes.
        let script = "exec 3> \"$0\"; echo waiting >&2; trap '' TERM HUP; (sleep 1000 & sleep 1000) & sleep 1000";
        let began = Instant::now();
        let error = shell(script, &path).time_limit(ENOUGH).keep(&NOTE.repeat(100_000)).unwrap_err();
        assert_eq!(error.to_string(), "no answer within 2s: waiting");
        assert!(began.elapsed() < LONG);
        expect_end(&lifeline);
    }

    #[test]
    fn what_a_program_leaves_in_the_background_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, lifeline) = lifeline(folder.path());
        let began = Instant::now();
        shell("exec 3> \"$0\"; sleep 1000 & exit 0", &path).keep(NOTE).unwrap();
        assert!(began.elapsed() < LONG);
        expect_end(&lifeline);
    }

    #[test]
    fn a_process_that_left_the_group_with_the_pipe_is_not_waited_for() {
        let began = Instant::now();
        let error = error("setsid sleep 30 & echo 'gone astray' >&2; exit 5");
        assert!(error.contains("exit status: 5") && error.contains("gone astray"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(25));
    }

    #[test]
    fn what_has_left_the_group_of_a_program_that_hangs_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, lifeline) = lifeline(folder.path());
        let script = "exec 3> \"$0\"; setsid sh -c 'setsid sleep 1000 & sleep 1000' & sleep 1000";
        let error = shell(script, &path).time_limit(ENOUGH).keep(NOTE).unwrap_err();
        assert_eq!(error.to_string(), "no answer within 2s");
        expect_end(&lifeline);
    }

    #[test]
    fn no_variable_that_looks_like_a_secret_reaches_a_program() {
        const THIS: &str = "anchor::command::no_variable_that_looks_like_a_secret_reaches_a_program";
        const VARIABLES: [(&str, &str); 4] =
            [("ANCHOR_API_KEY", "no"), ("GITHUB_TOKEN", "no"), ("PYTHONPATH", "no"), ("ANCHOR_PLACE", "yes")];
        let given = "echo \"$ANCHOR_API_KEY$GITHUB_TOKEN$PYTHONPATH$ANCHOR_PLACE\" >&2; exit 1";
        if std::env::var_os("ANCHOR_PLACE").is_some() {
            assert_eq!(error(given), "`sh` ended with exit status: 1: yes");
            return;
        }
        let test = Command::new(std::env::current_exe().unwrap()).args(["--exact", THIS]).envs(VARIABLES).output();
        let test = test.unwrap();
        let text = String::from_utf8_lossy(&test.stdout);
        assert!(test.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn a_program_that_stops_its_group_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, lifeline) = lifeline(folder.path());
        let error = shell("exec 3> \"$0\"; kill -STOP 0", &path).time_limit(ENOUGH).keep(NOTE).unwrap_err();
        assert_eq!(error.to_string(), "no answer within 2s");
        expect_end(&lifeline);
    }

    #[test]
    fn a_program_does_not_outlive_the_process_that_keeps_the_log() {
        const LIFELINE: &str = "ANCHOR_TEST_LIFELINE";
        const THIS: &str = "anchor::command::a_program_does_not_outlive_the_process_that_keeps_the_log";
        let script = "exec 3> \"$0\"; echo here >&3; sleep 1000";
        if let Some(path) = std::env::var_os(LIFELINE) {
            let _ = shell(script, Path::new(&path)).keep(NOTE);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, lifeline) = lifeline(folder.path());
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", THIS])
            .env(LIFELINE, path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(lifeline.recv_timeout(LONG).unwrap(), "here");
        process.kill().unwrap();
        process.wait().unwrap();
        expect_end(&lifeline);
    }
}

mod http {
    use super::*;

    /// For anchors that are meant to run into their limit.
    const SHORT: Duration = Duration::from_millis(300);

    /// A server that treats every connection like this, after the request was read. Gives its address and the requests.
    fn server(answer: impl Fn(&mut TcpStream) + Send + 'static) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if let Some(request) = read_request(&stream) {
                    let _ = seen.send(request);
                }
                answer(&mut stream);
            }
        });
        (address, requests)
    }

    fn read_request(stream: &TcpStream) -> Option<String> {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut stream = BufReader::new(stream);
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") {
            stream.read_line(&mut request).ok().filter(|length| *length > 0)?;
        }
        let head = request.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        Some(head + std::str::from_utf8(&body).unwrap())
    }

    fn answering(text: &'static str) -> (String, Receiver<String>) {
        server(move |stream| stream.write_all(text.as_bytes()).unwrap())
    }

    fn anchor(address: &str) -> HttpAnchor {
        HttpAnchor::new(&format!("http://{address}/secret-path?token=secret-query"))
            .header("Authorization", "Bearer secret-header")
            .time_limit(LONG)
    }

    /// The message, which never tells a secret.
    fn failure(mut anchor: HttpAnchor) -> String {
        let error = anchor.keep(NOTE).unwrap_err();
        let told = format!("{error} {error:?} {anchor:?} {}", anchor.name());
        assert!(!told.contains("secret"), "{told}");
        error.to_string()
    }

    #[test]
    fn the_note_is_posted() {
        let (address, requests) = answering("HTTP/1.1 204 No Content\r\n\r\n");
        let mut anchor = anchor(&address);
        anchor.keep(NOTE).unwrap();
        let request = requests.recv_timeout(LONG).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, format!("{NOTE}\n"));
        let mut lines: Vec<_> = head.lines().collect();
        assert_eq!(lines.remove(0), "post /secret-path?token=secret-query http/1.1");
        lines.sort_unstable();
        let host = format!("host: {address}");
        let length = format!("content-length: {}", body.len());
        let expected = [
            "accept: */*",
            "authorization: bearer secret-header",
            &length,
            "content-type: text/plain; charset=utf-8",
            &host,
            concat!("user-agent: amplifier-audit/", env!("CARGO_PKG_VERSION")),
        ];
        assert_eq!(lines.into_iter().filter(|line| !line.starts_with("accept-")).collect::<Vec<_>>(), expected);
        assert_eq!(anchor.name(), format!("http://{address}"));
        // The server has closed the connection, so this needs a new one.
        anchor.keep("again").unwrap();
        assert!(requests.recv_timeout(LONG).unwrap().ends_with("\r\n\r\nagain\n\n"));
    }

    #[test]
    fn any_2xx_is_a_success() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.0 299 Fine\r\n\r\nand a body until the end",
        ] {
            anchor(&answering(answer).0).time_limit(Duration::MAX).keep(NOTE).unwrap();
        }
    }

    #[test]
    fn a_body_that_never_comes_is_not_waited_for() {
        let (stop, wait) = mpsc::channel::<()>();
        let (address, _requests) = server(move |stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").unwrap();
            let _ = wait.recv_timeout(LONG * 10);
        });
        let began = Instant::now();
        anchor(&address).keep(NOTE).unwrap();
        assert!(began.elapsed() < LONG);
        drop(stop);
    }

    #[test]
    fn any_other_status_is_a_failure() {
        let check = |answer: &'static str, expected: &str| {
            assert_eq!(failure(anchor(&answering(answer).0)), expected);
        };
        check("HTTP/1.1 500 secret\r\ncontent-length: 6\r\n\r\nsecret", "the server answered with status 500");
        check("HTTP/1.1 401 Unauthorized\r\n\r\n", "the server answered with status 401");
    }

    #[test]
    fn a_redirect_is_not_followed() {
        let (elsewhere, visits) = answering("HTTP/1.1 200 OK\r\n\r\n");
        for status in [301, 302, 303, 307, 308] {
            let answer =
                format!("HTTP/1.1 {status} Away\r\nlocation: http://{elsewhere}/secret\r\ncontent-length: 0\r\n\r\n");
            let (address, _requests) = server(move |stream| stream.write_all(answer.as_bytes()).unwrap());
            let expected = format!("the server answered with status {status}; redirects are not followed");
            assert_eq!(failure(anchor(&address)), expected);
        }
        assert!(visits.try_recv().is_err());
    }

    #[test]
    fn a_server_that_hangs_runs_into_the_limit() {
        let (stop, wait) = mpsc::channel::<()>();
        let (silent, _requests) = server(move |_| {
            let _ = wait.recv_timeout(LONG * 10);
        });
        let (dripping, _requests) = server(|stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ");
            while stream.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
        for address in [silent, dripping, deaf.local_addr().unwrap().to_string()] {
            let began = Instant::now();
            assert_eq!(failure(anchor(&address).time_limit(SHORT)), "no answer within 300ms");
            assert!(began.elapsed() < LONG);
        }
        drop(stop);
    }

    #[test]
    fn what_is_no_http_is_a_failure() {
        let check = |answer: &'static str, expected: &str| {
            let message = failure(anchor(&answering(answer).0));
            assert!(message.starts_with("no answer from the server: "), "{message}");
            assert!(message.ends_with(expected), "{message}");
        };
        check("secret garbage\r\n\r\n", "the response is not HTTP");
        check("", "");
        check("HTTP/1.1 2", "");
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_a_failure() {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let message = failure(anchor(&nobody));
        assert!(message.starts_with("no answer from the server: Connection refused"), "{message}");
        // One that does not speak TLS.
        let (address, _requests) = server(|stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap());
        let message = failure(HttpAnchor::new(&format!("https://{address}")).time_limit(SHORT));
        assert!(message.starts_with("no answer"), "{message}");
    }

    #[test]
    fn a_wrong_setup_is_told() {
        let check = |anchor: HttpAnchor, expected: &str| {
            assert_eq!(failure(anchor), format!("invalid anchor settings: {expected}"));
        };
        check(HttpAnchor::new("http://secret host/"), "invalid URL");
        check(HttpAnchor::new("/secret"), "the URL does not begin with `http://` or `https://` and a host");
        check(HttpAnchor::new("ftp://secret/"), "the URL does not begin with `http://` or `https://` and a host");
        check(HttpAnchor::new("http://a:secret@b/"), "the URL has a user name; use a header instead");
        check(HttpAnchor::new("http://b/").header("X", "secret\n"), "invalid value of header `x`");
        check(HttpAnchor::new("http://b/").header("X: secret", ""), "invalid name of a header");
    }
}
