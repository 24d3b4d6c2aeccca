//! What an adversarial review found.

#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use amplifier::terminal::HeadlessApprovals;
use amplifier_agent::provider::Kind;
use amplifier_core::{Approval, ApprovalRules, Coordinator, HookRegistry, HookResult, TOOL_PRE, Verdict, data};
use amplifier_host::{ApprovalRuleFiles, Home, ModelChoice};
use expectrl::{Expect, Session};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home and a workspace.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.at("home")).unwrap();
        fs::create_dir_all(place.at("work")).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn script(&self, answers: Value) -> &Self {
        self.put("script.json", json!({ "answers": answers }).to_string())
    }

    fn amplifier(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier"));
        command.args(arguments).current_dir(self.at("work")).stdin(Stdio::null());
        command.env("AMPLIFIER_HOME", self.at("home")).env("NO_COLOR", "1").env("TERM", "xterm");
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
            command.env_remove(name);
        }
        if self.at("script.json").exists() {
            command.env("AMPLIFIER_SCRIPT", self.at("script.json"));
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.amplifier(arguments).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until it is so, but not for ever.
fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}

/// A process with these arguments, which only it has. Its id in the sandbox says nothing here.
fn find_process(arguments: &[&str]) -> Option<u32> {
    let wanted: Vec<u8> = arguments.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect();
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes.into_iter().find(|id: &u32| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|found| found == wanted))
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_standing_no_holds_however_the_path_is_spelt() {
    for path in ["secrets/key", "./secrets/key", "docs/../secrets/key", "link/key"] {
        let place = Place::new();
        place.put("work/secrets/key", "old\n").put("work/docs/a", "");
        std::os::unix::fs::symlink("secrets", place.at("work/link")).unwrap();
        place.put("home/approvals.json", r#"{ "confirm:Edit `*`?": "allow", "confirm:Edit `secrets/*`?": "deny" }"#);
        let input = json!({ "file_path": path, "old_string": "old", "new_string": "new" });
        place.script(json!([{ "tools": [{ "name": "Edit", "input": input }] }, { "text": "Done." }]));
        place.run(&["run", "go"]);
        assert_eq!(fs::read_to_string(place.at("work/secrets/key")).unwrap(), "old\n", "with `{path}`");
    }
}

/// A tool that runs for long, and what ends the program.
fn left_behind(how: &str) -> bool {
    let place = Place::new();
    place.put("home/approvals.json", r#"{ "confirm:Run *": "allow" }"#);
    let seconds = unique_seconds();
    let command = format!("exec sleep {seconds}");
    let call = json!({ "name": "Bash", "input": { "command": command } });
    place.script(json!([{ "tools": [call] }, { "text": "Done." }]));
    let mut agent = place.amplifier(&["run", "go"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    ends_with(&mut agent, how, &seconds)
}

/// Seconds for `sleep` that nobody else sleeps.
fn unique_seconds() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("300.{}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Ends an agent by a signal, and is `true` if a process that sleeps that long is left behind.
fn ends_with(agent: &mut Child, how: &str, seconds: &str) -> bool {
    let sleeper = || find_process(&["sleep", seconds]);
    assert!(eventually(|| sleeper().is_some()));
    signal(how, agent.id());
    agent.wait().unwrap();
    let is_gone = eventually(|| sleeper().is_none());
    if let Some(id) = sleeper() {
        signal("-KILL", id);
    }
    !is_gone
}

#[test]
fn a_tool_does_not_outlive_an_agent_that_is_terminated() {
    assert!(!left_behind("-TERM"), "`kill` leaves the tool running");
}

#[test]
fn a_tool_does_not_outlive_a_terminal_that_is_closed() {
    assert!(!left_behind("-HUP"), "closing the terminal leaves the tool running");
}

#[test]
fn an_mcp_server_does_not_outlive_a_start_that_is_interrupted() {
    let place = Place::new();
    let seconds = unique_seconds();
    let server = format!("exec sleep {seconds}");
    place.put("home/config.toml", format!("[mcp.slow]\ncommand = \"bash\"\nargs = [\"-c\", \"{server}\"]\n"));
    place.script(json!([{ "text": "Done." }]));
    let mut agent = place.amplifier(&["run", "go"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(!ends_with(&mut agent, "-INT", &seconds), "Ctrl-C during the start leaves the MCP server running");
}

#[test]
fn an_error_of_an_mcp_server_cannot_write_to_the_terminal() {
    let place = Place::new();
    let server = r#"
import json, sys
id = json.loads(sys.stdin.readline())["id"]
error = {"code": -32000, "message": "\u001b]0;owned\u0007\u001b[2J"}
print(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), flush=True)
sys.stdin.read()
"#;
    place.put("server.py", server);
    let file = place.at("server.py").display().to_string();
    place.put("home/config.toml", format!("[mcp.bad]\ncommand = \"python3\"\nargs = [\"{file}\"]\n"));
    place.script(json!([{ "text": "Done." }]));
    let ran = place.amplifier(&["run", "go"]).env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR").output().unwrap();
    let error = text(&ran.stderr);
    assert!(!error.contains('\u{1b}') && !error.contains('\u{7}'), "{error:?}");
}

#[test]
fn a_session_is_shown_in_lines() {
    let place = Place::new();
    place.script(json!([{ "text": "One.\nTwo." }]));
    place.run(&["run", "go"]);
    let shown = text(&place.run(&["sessions", "show", "last"]).stdout);
    assert!(!shown.contains('␊') && shown.contains("\n## User\n"), "{shown}");
}

#[test]
fn an_answer_that_could_not_be_written_is_no_success() {
    let place = Place::new();
    place.script(json!([{ "text": "The answer." }]));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = place.amplifier(&["run", "go"]).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_task_that_failed_is_no_success_when_nobody_reads() {
    let place = Place::new();
    place.script(json!([{ "error": "rejected" }]));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = place.amplifier(&["run", "--json", "go"]).stdout(writer).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn wrong_usage_has_its_exit_code() {
    let place = Place::new();
    place.script(json!([{ "text": "Done." }]));
    let codes: Vec<_> =
        [&["run", "--approvals", "maybe", "go"][..], &["run", "--provider", "none", "go"], &["run", ""]]
            .iter()
            .map(|arguments| place.run(arguments).status.code())
            .collect();
    assert_eq!(codes, [Some(2), Some(2), Some(2)]);
}

#[test]
fn the_last_line_says_how_it_ended_also_if_it_did_not_begin() {
    let place = Place::new();
    place.script(json!([{ "text": "Done." }])).put("home/sessions", "in the way");
    let ran = place.run(&["run", "--json", "go"]);
    let lines = text(&ran.stdout);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap_or("null")).unwrap();
    assert_eq!(last["result"], "error", "{last}");
}

#[test]
fn taking_one_answer_back_does_not_turn_another_from_no_to_yes() {
    let place = Place::new();
    // A rule that stands twice counts as both, so it denies.
    let rules = r#"{ "confirm:Run `rm*`?": "deny", "confirm:Run `rm*`?": "allow", "confirm:Run `ls`?": "allow" }"#;
    place.put("home/approvals.json", rules);
    let listed = text(&place.run(&["approvals", "list"]).stdout);
    assert!(place.run(&["approvals", "revoke", "confirm:Run `ls`?"]).status.success());
    let left = fs::read_to_string(place.at("home/approvals.json")).unwrap();
    assert!(left.contains("deny") && listed.contains("deny"), "listed:\n{listed}left: {left}");
}

#[test]
fn rules_that_cannot_be_read_are_not_taken_for_no_rules() {
    let place = Place::new();
    std::os::unix::fs::symlink("approvals.json", place.at("home/approvals.json")).unwrap();
    assert!(ApprovalRuleFiles::for_workspace(&Home::at(place.at("home")), &place.at("")).is_err());
}

#[test]
fn the_key_is_not_in_what_debug_shows() {
    let who =
        ModelChoice::Remote { kind: Kind::OpenAi, model: "m".into(), base_url: None, key: Some("sk-secret".into()) };
    assert!(!format!("{who:?}").contains("sk-secret"));
}

#[test]
fn a_folder_whose_name_is_no_utf8_can_be_the_workspace() {
    let place = Place::new();
    place.script(json!([{ "text": "Done." }]));
    let folder = place.0.path().join(OsStr::from_bytes(b"w\xff"));
    fs::create_dir(&folder).unwrap();
    let ran = place.amplifier(&["run", "go"]).env("AMPLIFIER_WORKSPACE", &folder).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
}

#[test]
fn the_lines_that_a_person_typed_are_for_that_person_alone() {
    let place = Place::new();
    place.script(json!([{ "text": "Done." }]));
    let mut command = Command::new("sh");
    command.args(["-c", "umask 022; exec \"$0\" chat", env!("CARGO_BIN_EXE_amplifier")]).current_dir(place.at("work"));
    command
        .env("AMPLIFIER_HOME", place.at("home"))
        .env("AMPLIFIER_SCRIPT", place.at("script.json"))
        .env("TERM", "xterm");
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(60)));
    session.expect("Ctrl-D ends the session").unwrap();
    // The line editor asks where the cursor is.
    if session.expect("\u{1b}[6n").is_ok() {
        session.send("\u{1b}[1;1R").unwrap();
    }
    session.send("my secret plan\r").unwrap();
    session.expect("Done.").unwrap();
    let file = place.at("home/history");
    assert!(eventually(|| file.exists()), "no history");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn ctrl_c_at_a_question_stops_the_turn() {
    let place = Place::new();
    let call = json!({ "name": "Bash", "input": { "command": "true" } });
    place.script(json!([{ "tools": [call] }, { "text": "The model went on." }]));
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" run go; echo \"code: $?.\"", env!("CARGO_BIN_EXE_amplifier")]);
    command.current_dir(place.at("work")).env("AMPLIFIER_HOME", place.at("home")).env("NO_COLOR", "1");
    command.env("AMPLIFIER_SCRIPT", place.at("script.json")).env("TERM", "xterm");
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(60)));
    session.expect("/ denies").unwrap();
    session.send("\u{3}").unwrap();
    let seen = session.expect("code: ").map(|found| text(found.as_bytes())).unwrap();
    let code = session.expect(".").map(|found| text(found.before())).unwrap();
    assert_eq!(code, "130", "{seen}");
}

#[tokio::test]
async fn the_rule_that_is_proposed_allows_nothing_but_the_question() {
    let ask = |command: &'static str, rules: ApprovalRules| async move {
        let hooks = HookRegistry::new();
        hooks.hook(TOOL_PRE).named("confirm").run(move |_| HookResult::ask(Approval::new(format!("Run `{command}`?"))));
        let session = Coordinator::builder(hooks).approvals(HeadlessApprovals).approval_rules(rules).build();
        session.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": {} }).await
    };
    let Verdict::Denied { reason, .. } = ask("ls *.rs", ApprovalRules::default()).await else { panic!("allowed") };
    assert!(!reason.contains("rule"), "a `*` would stand for any text: {reason}");

    let Verdict::Denied { reason, .. } = ask("ls", ApprovalRules::default()).await else { panic!("allowed") };
    let begin = reason.find("`\"confirm").unwrap() + 1;
    let end = reason.find("\"allow\"").unwrap() + "\"allow\"".len();
    let rules = ApprovalRules::from_json(&format!("{{ {} }}", &reason[begin..end])).unwrap();
    assert!(matches!(ask("ls", rules.clone()).await, Verdict::Proceed(_)));
    assert!(matches!(ask("ls x", rules).await, Verdict::Denied { .. }));
}

/// What a command of the agent writes.
fn written(place: &Place, command: &str) -> String {
    place.put("home/approvals.json", r#"{ "confirm:Run *": "allow" }"#);
    let call = json!({ "name": "Bash", "input": { "command": format!("{command} > out 2>&1") } });
    place.script(json!([{ "tools": [call] }, { "text": "Done." }]));
    let mut agent = place.amplifier(&["run", "go"]);
    agent.env("AWS_SECRET_ACCESS_KEY", "aws-secret").env("PGPASSWORD", "pg-secret").env("OPENAI_API_KEY", "sk-secret");
    assert!(agent.output().unwrap().status.success());
    let mut out = String::new();
    fs::File::open(place.at("work/out")).unwrap().read_to_string(&mut out).unwrap();
    out
}

#[test]
fn a_command_does_not_get_variables_that_look_like_secrets() {
    let out = written(&Place::new(), "env");
    let found: Vec<&str> =
        ["aws-secret", "pg-secret", "sk-secret"].into_iter().filter(|one| out.contains(one)).collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn what_is_kept_is_for_its_owner_alone() {
    let place = Place::new();
    fs::remove_dir(place.at("home")).unwrap();
    place.script(json!([{ "text": "Done." }]));
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 022; exec \"$0\" run go", env!("CARGO_BIN_EXE_amplifier")])
        .current_dir(place.at("work"));
    command.env("AMPLIFIER_HOME", place.at("home")).env("AMPLIFIER_SCRIPT", place.at("script.json"));
    assert!(command.output().unwrap().status.success());
    let mut open = Vec::new();
    readable(&place.at("home"), &mut open);
    assert_eq!(open, [""; 0]);
}

/// Files that others can read, because nothing on the way to them is closed.
fn readable(path: &Path, open: &mut Vec<String>) {
    let about = fs::symlink_metadata(path).unwrap();
    if about.permissions().mode() & 0o007 == 0 {
        return;
    }
    if about.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| readable(&entry.unwrap().path(), open));
    } else {
        open.push(path.display().to_string());
    }
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    #[derive(Clone, Default)]
    struct Paper(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let paper = Paper::default();
    let look = amplifier::terminal::OutputMode { terminal: true, colour: false };
    let screen = amplifier::terminal::Screen::to(paper.clone(), paper.clone(), look);
    // Two columns each on most terminals; the last words would come to stand at the left edge, in front of every bar.
    screen.message(amplifier_core::Level::Info, "hook:x", &format!("{}╰─ allowed once", "⚠\u{fe0f}".repeat(60)));
    let shown = text(&paper.0.lock().unwrap());
    let widest = shown.lines().map(unicode_width::UnicodeWidthStr::width).max();
    assert!(widest <= Some(80), "{widest:?} columns in 80");
}

#[test]
fn whoever_wants_questions_refused_is_not_told_to_use_a_terminal() {
    let place = Place::new();
    let call = json!({ "name": "Bash", "input": { "command": "true" } });
    place.script(json!([{ "tools": [call] }, { "text": "Done." }]));
    let ran = place.run(&["run", "--json", "--mode", "deny", "go"]);
    assert!(!text(&ran.stdout).contains("no terminal to ask on"));
}

#[test]
fn doctor_names_the_configuration_that_it_read() {
    let place = Place::new();
    place.put("other.toml", "model = \"m\"\n");
    let file = place.at("other.toml").display().to_string();
    let shown = text(&place.run(&["doctor", "--config", &file]).stdout);
    assert!(shown.contains(&format!("Configuration ({file})")), "{shown}");
}

#[test]
fn an_exported_session_is_for_its_owner_alone() {
    let place = Place::new();
    place.script(json!([{ "text": "Done." }]));
    place.run(&["run", "go"]);
    let mut command = Command::new("sh");
    let script = "umask 022; exec \"$0\" sessions export last -o out.md";
    command.args(["-c", script, env!("CARGO_BIN_EXE_amplifier")]).current_dir(place.at("work"));
    assert!(command.env("AMPLIFIER_HOME", place.at("home")).status().unwrap().success());
    assert_eq!(fs::metadata(place.at("work/out.md")).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn an_agent_that_is_terminated_at_a_question_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let call = json!({ "name": "Bash", "input": { "command": "true" } });
    place.script(json!([{ "tools": [call] }, { "text": "Done." }]));
    let script = r#"before=$(stty -g); sh -c 'echo $$ > ../pid; exec "$0" run go' "$0"
        test "$(stty -g)" = "$before" && echo "terminal: as before" || echo "terminal: raw""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_amplifier")]).current_dir(place.at("work"));
    command.env("AMPLIFIER_HOME", place.at("home")).env("AMPLIFIER_SCRIPT", place.at("script.json"));
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(60)));
    session.expect("/ denies").unwrap();
    signal("-TERM", fs::read_to_string(place.at("pid")).unwrap().trim().parse().unwrap());
    session.expect("terminal: ").unwrap();
    assert!(session.expect("as before").is_ok(), "raw mode is left on");
}

#[test]
fn what_a_tool_writes_is_not_taken_for_a_refusal() {
    // The output of a tool is not to be taken for a word of the kernel.
    let place = Place::new();
    place.put("home/approvals.json", r#"{ "confirm:Run *": "allow" }"#);
    let call = json!({ "name": "Bash", "input": { "command": "echo Denied by hook x" } });
    place.script(json!([{ "tools": [call] }, { "text": "Done." }]));
    let shown = text(&place.run(&["run", "go"]).stderr);
    assert_eq!(shown.matches("● Bash").count(), 1, "{shown}");
}
