//! `amplifier serve`, as it is run.

#![cfg(unix)]

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{LIMIT, Place, send_signal, with_input};
use serde_json::{Value, json};

/// A server that runs, and what it said when it began.
pub(crate) struct Served {
    child: Child,
    began: Value,
    out: BufReader<std::process::ChildStdout>,
}

impl Served {
    fn start(place: &Place) -> Self {
        Self::begin(place.command(&["serve", "--listen", "127.0.0.1:0", "--json"]))
    }

    pub(crate) fn begin(mut command: Command) -> Self {
        let mut child = command.env("USER", "ada").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        Self { began: serde_json::from_str(&line).unwrap(), child, out }
    }

    fn told(&self, field: &str) -> &str {
        self.began[field].as_str().unwrap()
    }

    /// The status and the rest of what it answers.
    fn get(&self, path: &str, header: &str) -> (u16, String) {
        self.ask("GET", path, header, "")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, header: &str, body: &str) -> (u16, String) {
        let address = self.told("address");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n");
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer[9..12].parse().unwrap(), answer)
    }

    /// Follows a link: the headers that the browser sends from then on.
    fn browser(&self, link: &str) -> String {
        let (status, entered) = self.get(link.strip_prefix(self.told("url")).unwrap(), "");
        assert_eq!(status, 200, "{entered}");
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let (_, key) = entered.split_once("name=\"amplifier-key\" content=\"").unwrap();
        let (cookie, key) = (cookie.split(';').next().unwrap(), key.split('"').next().unwrap());
        format!("Cookie: {cookie}\r\nX-Amplifier-Key: {key}\r\n")
    }

    /// Follows a link, and says who is in.
    fn enter(&self, link: &str) -> String {
        let (_, me) = self.get("/api/me", &self.browser(link));
        me.rsplit("\r\n\r\n").next().unwrap().to_owned()
    }

    /// What it tells its owner.
    fn told_owner(&self, place: &Place, path: &str) -> Value {
        self.asked_by_owner(place, "GET", path, "")
    }

    fn asked_by_owner(&self, place: &Place, method: &str, path: &str, body: &str) -> Value {
        let token = place.read("home/server/token");
        let header = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
        let (status, answer) = self.ask(method, path, &header, body);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.rsplit("\r\n\r\n").next().unwrap()).unwrap()
    }

    /// Ends it with a signal: the exit code, and what it said meanwhile.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        send_signal(signal, self.child.id());
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

fn place() -> Place {
    Place::with(json!([]))
}

#[test]
fn links_let_browsers_in_and_the_server_ends_in_order() {
    let place = place();
    let served = Served::start(&place);
    assert_eq!(served.enter(served.told("link")), r#"{"name":"ada","role":"admin"}"#);
    let link = place.amplifier(&["serve", "link", "--name", "bob", "--role", "viewer"]);
    assert_eq!((link.code, link.error.as_str()), (0, "The link works once, within 10 minutes.\n"));
    assert_eq!(served.enter(link.out.trim()), r#"{"name":"bob","role":"viewer"}"#);
    let link: Value = serde_json::from_str(&place.amplifier(&["serve", "link", "--json"]).fine()).unwrap();
    assert_eq!(served.enter(link["url"].as_str().unwrap()), r#"{"name":"ada","role":"admin"}"#);
    assert_eq!(served.end("INT"), (Some(0), String::new()));
    assert!(!place.at("home/server/address").exists());
    place
        .amplifier(&["serve", "link"])
        .check_failed("amplifier: no server is running; start one with `amplifier serve`");
}

#[test]
fn being_told_to_end_ends_it_and_it_can_start_again() {
    let place = place();
    for _ in 0..2 {
        assert_eq!(Served::start(&place).end("TERM"), (Some(0), String::new()));
    }
}

#[test]
fn tokens_are_made_listed_and_taken_back_while_it_runs() {
    let place = place();
    assert!(place.amplifier(&["serve", "token", "list"]).fine().starts_with("No tokens except the owner's, in `"));
    let served = Served::start(&place);
    let made = place.amplifier(&["serve", "token", "add", "ci", "--role", "approver"]);
    assert_eq!(made.error, "The token of `ci` (approver) is not shown again.\n");
    let header = format!("Authorization: Bearer {}\r\n", made.out.trim());
    assert!(served.get("/api/me", &header).1.ends_with(r#"{"name":"ci","role":"approver"}"#));
    let list: Value = serde_json::from_str(&place.amplifier(&["serve", "token", "list", "--json"]).fine()).unwrap();
    assert_eq!((&list["name"], &list["role"], list.as_object().unwrap().len()), (&json!("ci"), &json!("approver"), 3));
    assert!(place.amplifier(&["serve", "token", "list"]).fine().starts_with("ci  "));
    assert_eq!(place.amplifier(&["serve", "token", "revoke", "ci"]).fine(), "Revoked the token of `ci`.\n");
    assert_eq!(served.get("/api/me", &header).0, 401);
    place
        .amplifier(&["serve", "token", "revoke", "ci"])
        .check_failed("amplifier: unknown token `ci`; see `amplifier serve token list`");
    assert_eq!(place.amplifier(&["serve", "token", "add", "x", "--role", "owner"]).code, 2);
    served.end("TERM");
}

#[test]
fn browsers_are_listed_and_ended_whether_it_runs_or_not() {
    let place = place();
    assert_eq!(place.amplifier(&["serve", "browsers"]).fine(), "No browser is signed in.\n");
    let served = Served::start(&place);
    let link = || place.amplifier(&["serve", "link", "--name", "bob", "--role", "approver"]).out;
    let bob = served.browser(link().trim());
    let unused = link();
    let ada = served.browser(served.told("link"));
    let listed = place.amplifier(&["serve", "browsers"]).fine();
    assert!(listed.lines().count() == 2 && listed.starts_with("bob   ") && listed.contains("\nada   "), "{listed}");
    let listed = place.amplifier(&["serve", "browsers", "--json"]).fine();
    assert_eq!(listed.lines().count(), 2);
    let listed: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!((&listed["name"], &listed["role"]), (&json!("bob"), &json!("approver")));
    assert!(listed["since"].is_string() && listed["seen"].is_string(), "{listed}");
    assert_eq!(place.amplifier(&["serve", "browsers", "revoke", "bob"]).fine(), "Signed out 1 browser of `bob`.\n");
    assert_eq!((served.get("/api/me", &bob).0, served.get("/api/me", &ada).0), (401, 200));
    // A link that was not used ends as well.
    assert_eq!(served.get(unused.trim().strip_prefix(served.told("url")).unwrap(), "").0, 403);
    place
        .amplifier(&["serve", "browsers", "revoke", "bob"])
        .check_failed("amplifier: no browser of `bob` is signed in; unused links for `bob` no longer work");
    // Taking a token back means the person, who may have browsers.
    let (first, second) = (served.browser(link().trim()), served.browser(link().trim()));
    assert_eq!(place.amplifier(&["serve", "token", "revoke", "bob"]).fine(), "Signed out 2 browsers of `bob`.\n");
    assert_eq!((served.get("/api/me", &first).0, served.get("/api/me", &second).0), (401, 401));
    served.end("TERM");
    assert_eq!(place.amplifier(&["serve", "browsers"]).fine().lines().count(), 1);
    assert_eq!(place.amplifier(&["serve", "browsers", "revoke", "ada"]).fine(), "Signed out 1 browser of `ada`.\n");
    assert_eq!(place.amplifier(&["serve", "browsers"]).fine(), "No browser is signed in.\n");
}

#[test]
fn the_doctor_says_whether_a_server_runs() {
    let place = place();
    let about = || {
        let report: Value = serde_json::from_str(&place.amplifier(&["doctor", "--json"]).out).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        let server = findings.into_iter().find(|finding| finding["what"] == "server").unwrap();
        (server["ok"].clone(), server["about"].as_str().unwrap().to_owned())
    };
    let absent = (json!(true), "not running; start one with `amplifier serve`".to_owned());
    assert_eq!(about(), absent);
    let served = Served::start(&place);
    assert_eq!(about(), (json!(true), format!("running at {} (process {})", served.told("url"), served.child.id())));
    served.end("KILL_".trim_end_matches('_'));
    // It had no time to tidy up, and still nobody takes it for running.
    assert!(place.at("home/server/address").exists());
    assert_eq!(about(), absent);
}

#[test]
fn what_keeps_it_from_starting_is_said() {
    let place = place();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = address.port();
    place.amplifier(&["serve", "--listen", &address.to_string()]).check_failed(&format!(
        "amplifier: `{address}` is in use by another program; choose another port: amplifier serve --listen 127.0.0.1:{}",
        port.checked_add(1).unwrap_or(7878)
    ));
    place.amplifier(&["serve", "--listen", "0.0.0.0:0"]).check_failed(
        "amplifier: listening on `0.0.0.0:0` requires TLS: others on the network could read and change the traffic; set --tls-cert and \
         --tls-key, or --insecure",
    );
    assert_eq!(place.amplifier(&["serve", "--tls-cert", "cert.pem"]).code, 2);
    let no_file = place.amplifier(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "no.pem", "--tls-key", "no.pem"]);
    assert_eq!(no_file.code, 1);
    assert!(no_file.error.starts_with("amplifier: invalid TLS file `no.pem`: "), "{}", no_file.error);
    let served = Served::start(&place);
    place
        .amplifier(&["serve", "--listen", "127.0.0.1:0"])
        .check_failed("amplifier: a server is already running; `amplifier serve link` prints a link to it");
    served.end("TERM");
}

#[test]
fn it_is_in_the_manual_and_completed() {
    let place = place();
    assert!(place.amplifier(&["man", "serve", "token", "add"]).fine().contains("amplifier\\-serve\\-token\\-add"));
    let completions = place.amplifier(&["completions", "bash"]).fine();
    assert!(["--tls-cert", "--insecure", "revoke"].iter().all(|word| completions.contains(word)));
}

#[test]
fn the_browser_gets_the_link_by_a_file_and_not_by_a_command_line() {
    let place = place();
    let opened = place.pipe("opened");
    std::fs::create_dir(place.at("bin")).unwrap();
    let pipe = place.at("opened").display().to_string();
    for opener in ["bin/xdg-open", "bin/open"] {
        // All that anybody on the machine could see of it.
        place.write(opener, &format!("#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline > '{pipe}'\n"));
        std::fs::set_permissions(place.at(opener), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--json", "--open"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.at("bin").display()));
    let served = Served::begin(command);
    let seen = opened.line();
    let code = served.told("link").split("code=").nth(1).unwrap();
    assert!(!seen.contains(code) && !seen.contains("enter"), "{seen}");
    let page = place.at("home/server/open.html");
    assert!(seen.trim_end().ends_with(page.to_str().unwrap()), "{seen}");
    assert_eq!(std::fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&page).unwrap();
    let link = text.split("url=").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(served.enter(link), r#"{"name":"ada","role":"admin"}"#);
    let (again, _) = served.get(link.strip_prefix(served.told("url")).unwrap(), "");
    assert_ne!(again, 303, "it lets one browser in");
    assert_eq!(served.end("INT"), (Some(0), String::new()));
    assert!(!page.exists(), "it is not left behind");
}

/// Looks until there is something to see.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < limit, "it does not come about");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The states of the sessions, in the order of what they are asked to do.
fn states(served: &Served, place: &Place) -> Vec<(String, String)> {
    let listed = served.told_owner(place, "/api/sessions");
    let text = |session: &Value, field: &str| session[field].as_str().unwrap_or_default().to_owned();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    let mut states: Vec<_> = sessions.map(|session| (text(session, "prompt"), text(session, "state"))).collect();
    states.sort();
    states
}

fn stated(states: [(&str, &str); 2]) -> Vec<(String, String)> {
    states.map(|(task, state)| (task.to_owned(), state.to_owned())).to_vec()
}

#[test]
fn after_a_restart_a_session_that_died_is_away_and_then_gone_and_one_that_lives_comes_back() {
    let place = Place::with(json!([{ "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] }]));
    let served = Served::start(&place);
    let begin = |task| {
        let mut command = place.scripted(&["run", "--serve", task]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let (mut dies, mut lives) = (begin("Die"), begin("Live"));
    until(|| (states(&served, &place) == stated([("Die", "waiting"), ("Live", "waiting")])).then_some(()));
    served.end("TERM");
    dies.kill().unwrap();
    dies.wait().unwrap();

    let served = Served::start(&place);
    // The log may still be read; and on a machine that stands still it is gone by then.
    let (_, seen) = until(|| states(&served, &place).first().cloned());
    assert!(["away", "gone"].contains(&seen.as_str()), "{seen}");
    until(|| (states(&served, &place) == stated([("Die", "gone"), ("Live", "waiting")])).then_some(()));
    lives.kill().unwrap();
    lives.wait().unwrap();
    served.end("TERM");
}

#[test]
fn a_sub_agent_is_gone_with_the_session_that_it_worked_for() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Task", "input": { "task": "Dig" } }] },
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
    ]));
    let served = Served::start(&place);
    let mut command = place.scripted(&["run", "--serve", "Die"]);
    let mut dies = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| (states(&served, &place) == stated([("Die", "waiting"), ("Dig", "waiting")])).then_some(()));
    dies.kill().unwrap();
    dies.wait().unwrap();
    until(|| (states(&served, &place) == stated([("Die", "gone"), ("Dig", "gone")])).then_some(()));
    served.end("TERM");
}

#[test]
fn a_question_of_a_sub_agent_is_its_own_and_has_one_id_everywhere() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Task", "input": { "task": "Dig" } }] },
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Dug." },
        { "text": "Done." },
    ]));
    let served = Served::start(&place);
    let mut command = place.scripted(&["run", "--serve", "Have it dug"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(|| (states(&served, &place) == stated([("Dig", "waiting"), ("Have it dug", "waiting")])).then_some(()));
    let listed = served.told_owner(&place, "/api/sessions");
    let child = listed["sessions"].as_array().unwrap().iter().find(|session| session["prompt"] == "Dig").unwrap();
    let question = served.told_owner(&place, "/api/approvals")["approvals"][0].clone();
    assert_eq!((&question["session"], &question["parent_session"]), (&child["id"], &child["parent"]));
    let id = question["id"].as_str().unwrap();
    let path = format!("/api/approvals/{id}");
    let timeline = format!("/api/sessions/{}/timeline", child["id"].as_str().unwrap());
    // The questions of the timeline that are decided, or open.
    let spoken = |served: &Served, is_decided: bool| {
        let items = served.told_owner(&place, &timeline)["items"].as_array().unwrap().clone();
        let approvals = items.iter().filter_map(|item| item["approvals"].as_array()).flatten();
        let ids = approvals.filter(|one| one["decision"].is_object() == is_decided).map(|one| one["id"].clone());
        ids.collect::<Vec<Value>>()
    };
    assert_eq!(until(|| Some(spoken(&served, false)).filter(|open| !open.is_empty())), [id]);
    assert_eq!(served.told_owner(&place, &path)["nonce"], question["nonce"]);

    let answer = json!({ "option": "Allow once", "nonce": question["nonce"] }).to_string();
    assert_eq!(served.asked_by_owner(&place, "POST", &format!("{path}/answer"), &answer)["granted"], true);
    assert!(run.wait().unwrap().success());
    assert!(place.at("workspace/made").exists());
    assert_eq!(served.told_owner(&place, &path)["id"], id);
    served.end("TERM");
    let served = Served::start(&place);
    assert_eq!(until(|| Some(spoken(&served, true)).filter(|decided| !decided.is_empty())), [id]);
    assert_eq!(served.told_owner(&place, "/api/approvals/history")["decisions"][0]["id"], id);
    assert_eq!(served.told_owner(&place, &path)["id"], id);
    served.end("TERM");
}

/// Everything in `part` is in `whole`, with the same value.
fn check_part_of(part: &Value, whole: &Value, at: &str) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (key, value) in part {
                check_part_of(value, whole.get(key).unwrap_or(&Value::Null), &format!("{at}/{key}"));
            }
        }
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => {
            part.iter().zip(whole).for_each(|(part, whole)| check_part_of(part, whole, at));
        }
        _ => assert_eq!(part, whole, "{at}"),
    }
}

#[test]
fn try_trace_and_timeline_report_an_emission_in_the_same_words() {
    let place = Place::with(json!([
        { "text": "I write.", "tools": [{ "name": "Write", "input": { "file_path": "a.txt", "content": "x" } }] },
        { "text": "I clean up.", "tools": [{ "name": "Bash", "input": { "command": "rm -rf build" } }] },
        { "text": "Done." },
    ]));
    place.write(
        "home/bundle.yaml",
        "hooks:\n  - rule: hint\n    on: tool:pre\n    when: tool_name == 'Write'\n    inject: Mind it.\n    message: It writes.\n  - rule: no-rm\n    on: tool:pre\n    when: tool_name == 'Bash'\n    deny: not here\n",
    );
    assert_eq!(place.run(&["Write it"]).code, 3);
    let traced = place.amplifier(&["hooks", "trace", "last", "--json", "--event", "tool:pre"]).fine();
    let traced: Vec<Value> = traced.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let served = Served::start(&place);
    let path = format!("/api/sessions/{}/timeline", traced[0]["session"].as_str().unwrap());
    let items = until(|| {
        let items = served.told_owner(&place, &path)["items"].as_array().unwrap().clone();
        items.iter().any(|item| item["kind"] == "seal").then_some(items)
    });
    let items: Vec<_> = items.into_iter().filter(|item| item["event"] == "tool:pre").collect();
    assert_eq!((items.len(), traced.len()), (2, 2));
    for (item, traced) in items.iter().zip(&traced) {
        // The timeline is an envelope around what `trace` prints.
        let mut of_trace = item.clone();
        let envelope =
            ["kind", "denied", "truncated"].map(|key| of_trace.as_object_mut().unwrap().remove(key).unwrap());
        assert_eq!((&of_trace, envelope), (traced, [json!("event"), json!(true), json!(false)]));
        // A dry run knows less, and how long hooks took is another time.
        let tried =
            place.amplifier(&["hooks", "try", "tool:pre", "--json", "--data", &traced["data"].to_string()]).fine();
        let mut tried: Value = serde_json::from_str(&tried).unwrap();
        let hooks = tried["hooks"].as_array_mut().unwrap();
        hooks.iter_mut().for_each(|hook| _ = hook.as_object_mut().unwrap().remove("duration_ns").unwrap());
        tried["data"]["timestamp"] = traced["data"]["timestamp"].clone();
        for approval in tried["approvals"].as_array_mut().unwrap() {
            // It is not recorded.
            assert_eq!(approval.as_object_mut().unwrap().remove("fallback"), Some(json!(true)));
        }
        check_part_of(&tried, traced, "");
    }
    let counts = |key: &str| traced.iter().map(|one| one[key].as_array().unwrap().len()).collect::<Vec<_>>();
    assert_eq!([counts("approvals"), counts("injections"), counts("messages")], [[1, 0], [1, 0], [1, 0]]);
    served.end("TERM");
}

#[test]
fn whoever_watches_is_told_when_rules_are_changed_on_the_command_line_or_with_an_editor() {
    let place = place();
    place.rules(json!({ "confirm:*": "allow" }));
    let served = Served::start(&place);
    let (address, token) = (served.told("address"), place.read("home/server/token"));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!("Host: {address}\r\nAuthorization: Bearer {}\r\n\r\n", token.trim());
    write!(stream, "GET /api/stream HTTP/1.1\r\n{head}").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    // From then on, whatever changes is told.
    lines.find(|line| line.starts_with(r#"{"type":"hello""#)).unwrap();
    let listed = || served.told_owner(&place, "/api/rules")["rules"].as_array().unwrap().len();
    assert_eq!(listed(), 1);
    place.amplifier(&["approvals", "revoke", "1"]).fine();
    let limit = Instant::now() + LIMIT;
    let told = r#"{"type":"rules"}"#;
    let mut is_told = || lines.find(|line| line == told || Instant::now() > limit).as_deref() == Some(told);
    assert!(is_told());
    assert_eq!(listed(), 0);
    place.rules(json!({ "confirm:*": "deny" }));
    assert!(is_told());
    assert_eq!(listed(), 1);
    served.end("TERM");
}

#[test]
fn files_with_rules_that_cannot_be_read_are_listed_as_such_and_nothing_runs_by_them() {
    let place = Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Done." },
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    let served = Served::start(&place);
    let listed = served.told_owner(&place, "/api/rules");
    assert_eq!((&listed["rules"][0]["pattern"], &listed["unreadable"]), (&json!("*"), &json!([])));
    place.write("home/approvals.json", "{ \"confirm:*\": \"allow\"");
    // Of a project that can still be read, the rules are there.
    let project = place.at("workspace").canonicalize().unwrap();
    let folder = place.at("home/projects").join(folder_name(&project));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("path"), project.to_str().unwrap()).unwrap();
    std::fs::write(folder.join("approvals.json"), "{ \"guard:*\": \"deny\" }").unwrap();
    let other = place.at("home/projects").join("0".repeat(32));
    std::fs::create_dir(&other).unwrap();
    let listed = served.told_owner(&place, "/api/rules");
    let rules: Vec<&Value> = listed["rules"].as_array().unwrap().iter().map(|rule| &rule["hook"]).collect();
    assert_eq!(rules, [&json!("guard")]);
    let [user, unfinished] = &listed["unreadable"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!(user["file"], json!(place.at("home/approvals.json")));
    let why = "the approval rules are not of the form {\"<hook>:<pattern>\": \"allow\" or \"deny\", \"<hook>\": {\"<operation>\": \
               \"allow\" or \"deny\"}}: EOF while parsing an object at line 1 column 22";
    assert_eq!(user["reason"], json!(why));
    assert_eq!(unfinished["file"], json!(other.join("approvals.json")));
    served.end("TERM");
    // Each says the file and the reason, once.
    let said = format!("`{}`: {why}", place.at("home/approvals.json").display());
    place.run(&["Make it"]).check_failed(&format!("amplifier: {said}"));
    // Here, too, those of the others are there, and can be taken back.
    let ended = place.amplifier(&["approvals", "list"]);
    let (rules, unreadable) =
        (format!("  1  deny   guard:*  (in {})\n", project.display()), ended.error.split_once("; "));
    assert_eq!((ended.code, ended.out, unreadable.unwrap().0), (1, rules, format!("amplifier: {said}").as_str()));
    assert!(unreadable.unwrap().1.starts_with(&format!("`{}`: ", other.join("approvals.json").display())));
    assert_eq!(place.amplifier(&["approvals", "revoke", "1"]).fine(), "Revoked `guard:*`.\n");
    let none = "unknown approval rule `1`; see `amplifier approvals list`";
    let ended = place.amplifier(&["approvals", "revoke", "1"]);
    assert!(ended.code == 1 && ended.error.starts_with(&format!("amplifier: {none}; {said}; ")), "{}", ended.error);
    let doctor = place.amplifier(&["doctor"]).out;
    assert!(doctor.lines().any(|line| line == format!("  ✗ approvals      {said}")), "{doctor}");
    assert!(!place.at("workspace/made").exists());
}

fn folder_name(project: &std::path::Path) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(project.to_str().unwrap().as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn programs_and_servers_are_anchors_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Says yes to every checkpoint, and gives them back when it is asked for something else.
    let server = thread::spawn(move || {
        let mut kept = String::new();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while stream.read_line(&mut head).unwrap() > 2 {}
            if !head.starts_with("POST /checkpoints ") {
                return kept;
            }
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut note = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut note).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            if head.contains("authorization: bearer secret-of-the-test\r") {
                kept += &String::from_utf8(note).unwrap();
                kept += "\n";
            }
        }
        kept
    });

    let place = Place::with(json!([
        { "text": "I try.", "tools": [{ "name": "Bash", "input": { "command": "echo exit > ../home/keep" } }] },
        { "text": "Done." },
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    place.write("home/keep", "#!/bin/sh\n{ cat; echo; } >> \"$1\"\n");
    std::fs::set_permissions(place.at("home/keep"), Permissions::from_mode(0o755)).unwrap();
    let kept = place.at("kept").display().to_string();
    let anchors = format!(
        "anchors = [{{ command = [\"./keep\", \"{kept}\"] }}, {{ http = \"http://{address}/checkpoints\", headers = {{ Authorization = \"Bearer ${{ANCHOR_TOKEN}}\" }} }}]\n"
    );
    place.write("home/config.toml", &anchors);
    let unset = place.run(&["Hello"]);
    unset.check_failed("amplifier: `Authorization` of an anchor needs the environment variable `ANCHOR_TOKEN`, which is not set or not text");
    let mut run = place.scripted(&["run", "Hello"]);
    run.env("ANCHOR_TOKEN", "secret-of-the-test");
    let ran = with_input(run, "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.read("home/keep").contains("cat; echo"), "tools cannot change the program");
    let _ = TcpStream::connect(address).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n");
    place.write("posted", &server.join().unwrap());
    for file in ["kept", "posted"] {
        let checkpoints = place.at(file).display().to_string();
        let told = place.amplifier(&["audit", "verify", "--checkpoints", &checkpoints, "--json"]).fine();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["verdict"], &told["unanchored"]), (&json!("sound"), &json!(1)), "{file}: {told}");
    }

    for (entry, why) in [
        ("{ command = [] }", "the `command` of an anchor names no program"),
        (
            "{ http = \"ftp://log.example\" }",
            "the `http` of an anchor: the URL does not begin with `http://` or `https://` and a host",
        ),
        ("{ http = \"https://\" }", "the `http` of an anchor: invalid URL"),
        ("{ http = \"https://ann@log.example\" }", "the `http` of an anchor: the URL has a user name"),
        (
            "{ http = \"https://log.example\", headers = { \"a b\" = \"c\" } }",
            "the `http` of an anchor: invalid name of a header",
        ),
        (
            "{ comand = [\"keep\"] }",
            "an anchor is a file, `{ command = [\"PROGRAM\", \"ARGUMENT\"] }`, or `{ http = \"URL\" }`",
        ),
    ] {
        place.write("home/config.toml", &format!("anchors = [{entry}]\n"));
        let failed = place.run(&["Hello"]);
        assert!(failed.code != 0 && failed.error.contains(why), "{failed:?}");
    }
}

#[test]
fn whoever_runs_an_agent_is_told_that_the_log_was_tampered_with() {
    let place = Place::with(json!([{ "text": "Done." }]));
    assert_eq!(place.run(&["One"]).fine(), "Done.\n");
    let segment = "home/audit/seg-000001.jsonl";
    // A broken line at the end may be torn; one before a whole one is not.
    let mut lines: Vec<String> = place.read(segment).lines().map(str::to_owned).collect();
    let edited = lines.len() - 2;
    lines[edited] = lines[edited].replace("\"kind\":\"", "\"kind\":\"x");
    place.write(segment, &format!("{}\n", lines.join("\n")));
    let ran = place.run(&["Two"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{ran:?}");
    assert!(ran.error.contains("audit log: it was tampered with, or its disk is broken: "), "{ran:?}");
    assert!(ran.error.contains("`amplifier audit verify`"), "{ran:?}");
    assert_eq!(place.amplifier(&["audit", "verify"]).code, 1);
    // It is recorded, and said once.
    assert_eq!(place.run(&["Three"]).fine(), "Done.\n");
}

#[test]
fn a_log_that_was_put_back_is_found_out_by_the_anchors_that_are_configured() {
    let place = Place::with(json!([{ "text": "Done." }]));
    place.write("home/config.toml", "anchors = [\"elsewhere/checkpoints\"]\n");
    std::fs::create_dir(place.at("home/elsewhere")).unwrap();
    let copy = |from: &str, to: &str| {
        let copied = Command::new("cp").arg("-a").arg(place.at(from)).arg(place.at(to)).status().unwrap();
        assert!(copied.success());
    };
    assert_eq!(place.run(&["One"]).code, 0);
    copy("home/audit", "before");
    assert_eq!(place.run(&["Two"]).code, 0);
    assert!(place.read("home/elsewhere/checkpoints").matches("\u{2014}").count() >= 2);
    let verified = |served: &Served| loop {
        let audit = served.told_owner(&place, "/api/audit");
        if audit["checking"] == false && audit["size"].as_u64() > Some(0) {
            return audit;
        }
    };
    let served = Served::start(&place);
    let audit = verified(&served);
    assert!(audit["sound"] == true && audit["proves"].to_string().contains("those that were anchored"), "{audit}");
    served.end("TERM");

    std::fs::remove_dir_all(place.at("home/audit")).unwrap();
    copy("before", "home/audit");
    let told = place.amplifier(&["audit", "verify"]);
    assert!(told.code != 0 && told.out.contains("a checkpoint from elsewhere covers"), "{told:?}");
    let served = Served::start(&place);
    let audit = verified(&served);
    assert_eq!(audit["sound"], false, "{audit}");
    assert!(!audit["problems"].as_array().unwrap().is_empty(), "{audit}");
    served.end("TERM");
}

#[test]
fn the_key_of_the_log_can_be_rotated_while_the_server_runs() {
    let place = Place::with(json!([{ "text": "Done." }]));
    let served = Served::start(&place);
    assert_eq!(place.run(&["One"]).fine(), "Done.\n");
    place.amplifier(&["audit", "rotate-key"]).fine();
    assert_eq!(place.run(&["Two"]).fine(), "Done.\n");
    let report: Value = serde_json::from_str(&place.amplifier(&["audit", "verify", "--json"]).fine()).unwrap();
    assert_eq!((&report["verdict"], &report["rotations"]), (&json!("sound"), &json!(1)));
    let audit = loop {
        let audit = served.told_owner(&place, "/api/audit");
        if audit["checking"] == false && audit["size"].as_u64() >= report["size"].as_u64() {
            break audit;
        }
    };
    assert_eq!(audit["sound"], true, "{audit}");
    assert_eq!(served.end("TERM"), (Some(0), String::new()));
    place.check_sealed(2);
    assert_eq!(Served::start(&place).end("TERM"), (Some(0), String::new()));
}

/// Files and folders below that one which others can read or write.
fn open_to_others(folder: &Path, found: &mut Vec<String>) -> usize {
    let mut looked_at = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        looked_at += 1;
        if metadata.permissions().mode() & 0o077 != 0 {
            found.push(format!("{:o} {}", metadata.permissions().mode() & 0o7777, path.display()));
        }
        if metadata.is_dir() {
            looked_at += open_to_others(&path, found);
        }
    }
    looked_at
}

#[test]
fn nothing_that_is_kept_or_configured_is_open_to_others_whatever_the_umask() {
    let large = "x".repeat(40_000);
    let place = Place::with(json!([
        { "tools": [{ "name": "Write", "input": { "file_path": "notes.txt", "content": large } }] },
        { "tools": [{ "name": "Bash", "input": { "command": "true" } }] },
        { "text": "Done." },
    ]));
    // Folders that are not there yet, and the usual places below a home folder.
    let command = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_amplifier")]).args(arguments);
        command.current_dir(place.at("workspace")).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", place.at("home/ada"));
        command.env("AMPLIFIER_SCRIPT", place.at("script.json")).env("USER", "ada");
        command
    };
    let run = |arguments: &[&str]| {
        let ran = command(arguments).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    run(&["init", "--user"]);
    run(&["init"]);
    run(&["hooks", "trust", "--yes"]);
    run(&["run", "go", "--mode", "deny", "--allow-denials"]);
    run(&["serve", "token", "add", "bob", "--role", "viewer"]);
    let served = Served::begin(command(&["serve", "--listen", "127.0.0.1:0", "--json"]));
    served.browser(served.told("link"));
    let token = place.read("home/ada/.local/share/amplifier/server/token");
    let header = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
    let project = place.at("workspace").display().to_string();
    for rule in [json!({ "scope": "user" }), json!({ "scope": "project", "project": project })] {
        let mut rule = rule;
        rule["hook"] = json!("guard");
        rule["pattern"] = json!("Run it?");
        rule["decision"] = json!("deny");
        let (status, answer) = served.ask("POST", "/api/rules", &header, &rule.to_string());
        assert_eq!(status, 201, "{answer}");
    }
    let mut found = Vec::new();
    // While the server runs, with its socket, and after it.
    let looked_at = open_to_others(&place.at("home"), &mut found);
    assert_eq!(served.end("TERM"), (Some(0), String::new()));
    run(&["audit", "rotate-key"]);
    run(&["doctor"]);
    open_to_others(&place.at("home"), &mut found);
    assert_eq!(found, [] as [String; 0]);
    assert!(looked_at > 20, "{looked_at}");
    let data = place.at("home/ada/.local/share/amplifier");
    let kept = ["audit.key.log", "audit.key", "server/lock", "server/tokens.lock", "server/cookies.json", "trust.json"];
    for file in kept {
        assert!(data.join(file).exists(), "{file}");
    }
    for file in ["approvals.json", ".approvals.lock", "bundle.yaml", "projects"] {
        assert!(place.at("home/ada/.config/amplifier").join(file).exists(), "{file}");
    }
}

/// As the answer of the server to its owner: the status, and all that it says.
fn asked(served: &Served, place: &Place, method: &str, path: &str, body: &Value) -> (u16, String) {
    let token = place.read("home/server/token");
    let header = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
    served.ask(method, path, &header, &body.to_string())
}

#[test]
fn a_bundle_that_is_a_pipe_blocks_neither_the_server_nor_its_end() {
    for (pipe, signal) in [("home/bundle.yaml", "TERM"), ("workspace/.amplifier/bundle.yaml", "INT")] {
        let place = Place::with(json!([{ "text": "Hello." }]));
        std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
        place.make_pipe(pipe);
        let served = Served::begin(place.scripted(&["serve", "--listen", "127.0.0.1:0", "--json"]));
        let workspace = place.at("workspace").display().to_string();
        let refused = "it is not a regular file";
        let trial = json!({ "event": "tool:pre", "data": {}, "workspace": workspace });
        let (_, tried) = asked(&served, &place, "POST", "/api/hooks/try", &trial);
        assert!(tried.contains(refused), "{pipe}: {tried}");
        let (status, started) = asked(&served, &place, "POST", "/api/sessions", &json!({ "workspace": workspace }));
        // A project's bundle that cannot be trusted is left out; a user's is needed.
        assert_eq!(status == 201, pipe.starts_with("workspace"), "{started}");
        assert!(status == 201 || started.contains(refused), "{pipe}: {started}");
        assert_eq!(asked(&served, &place, "POST", "/api/hooks/reload", &json!({})).0, 200);
        assert!(served.told_owner(&place, "/api/sessions")["sessions"].is_array());
        let (code, said) = served.end(signal);
        assert_eq!(code, Some(0), "{pipe}: {said}");
    }
}

#[test]
fn a_server_ends_although_the_bundle_of_a_session_in_it_became_a_pipe() {
    let place = Place::with(json!([{ "text": "Hello." }]));
    place.write("home/bundle.yaml", "hooks: []\n");
    let served = Served::begin(place.scripted(&["serve", "--listen", "127.0.0.1:0", "--json"]));
    let workspace = place.at("workspace").display().to_string();
    let (status, started) = asked(&served, &place, "POST", "/api/sessions", &json!({ "workspace": workspace }));
    assert_eq!(status, 201, "{started}");
    place.make_pipe("home/pipe");
    std::fs::rename(place.at("home/pipe"), place.at("home/bundle.yaml")).unwrap();
    let (_, reloaded) = asked(&served, &place, "POST", "/api/hooks/reload", &json!({}));
    assert!(reloaded.contains("it is not a regular file"), "{reloaded}");
    let (code, said) = served.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    place.check_sealed(1);
}

#[test]
fn sessions_in_the_server_end_with_it_also_in_the_middle_of_a_turn() {
    let place =
        Place::with(json!([{ "tools": [{ "name": "Bash", "input": { "command": "echo > ready; sleep 1000" } }] }]));
    place.rules(json!({ "confirm:*": "allow" }));
    let served = Served::begin(place.scripted(&["serve", "--listen", "127.0.0.1:0", "--json"]));
    let new = json!({ "workspace": place.at("workspace").display().to_string(), "prompt": "Wait" });
    let (status, started) = asked(&served, &place, "POST", "/api/sessions", &new);
    assert_eq!(status, 201, "{started}");
    while !place.at("workspace/ready").exists() {
        thread::yield_now();
    }
    let (code, said) = served.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    place.check_sealed(1);
}
