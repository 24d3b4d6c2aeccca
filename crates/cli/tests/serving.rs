//! Sessions that a server sees, without a terminal.

use std::time::Duration;

use amplifier::flags::Flags;
use amplifier::server_requests;
use amplifier_audit::Log;
use amplifier_core::{Actor, ApprovalAnswer, ApprovalRule, DefaultDecision, PreviewRow, PreviewRowKind, RuleScope};
use amplifier_host::{Home, MachineHandle, open_log};
use amplifier_link::{AnswerScope, DryRun, DryRunReport, OpenApproval, ReloadResult, ReloadStatus};
use amplifier_server::api_types::SessionHost;
use amplifier_server::hub::{Command, HubErrorCode, SubmittedAnswer};
use amplifier_server::{Hub, LinkListener};
use serde_json::{Value, json};

use crate::common::{LIMIT, Place, Ran, Running};

async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, looking).await.unwrap()
}

async fn asked(hub: &Hub) -> OpenApproval {
    until(|| hub.pending().pop()).await
}

fn ann() -> Actor {
    Actor { name: "ann".to_owned(), via: "console".to_owned() }
}

fn answering(question: &OpenApproval, option: &str, scope: AnswerScope) -> SubmittedAnswer {
    let answer = ApprovalAnswer { by: Some(ann()), ..option.into() };
    SubmittedAnswer { answer, nonce: question.nonce.clone(), scope }
}

fn touch() -> Place {
    Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Done." },
    ]))
}

/// The program at a task, elsewhere.
fn runs(place: &Place, arguments: &[&str]) -> tokio::task::JoinHandle<Ran> {
    let running = Running::start(place.scripted(&[&["run"], arguments].concat()));
    tokio::task::spawn_blocking(move || running.end())
}

fn kept_rules(place: &Place) -> Vec<Value> {
    let listed = place.amplifier(&["approvals", "list", "--json"]).fine();
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A server's hub with the machine that it runs on, and the log that sessions share.
async fn hosted(place: &Place) -> (MachineHandle, Hub, Log) {
    let home = Home::at(place.at("home"));
    let flags =
        Flags { script: Some(place.at("script.json")), workspace: Some(place.at("workspace")), ..Flags::default() };
    let log = open_log(&flags.load(&home).unwrap(), &home).unwrap();
    let hub = Hub::new();
    let machine = server_requests::from_flags(&flags, &home, &log).connect(hub.machine_pipes(), hub.pipes());
    let connecting = async {
        let is_offline = |code| code == HubErrorCode::Offline;
        while hub.test_bundle(Some("hooks: []".to_owned())).await.is_err_and(|error| is_offline(error.code)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, connecting).await.unwrap();
    (machine, hub, log)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_the_project_holds_for_later_sessions_until_it_is_taken_back() {
    let place = touch();
    let home = Home::at(place.at("home"));
    let (_machine, hub, _log) = hosted(&place).await;
    let door = LinkListener::open(&home.server_folder(), hub.clone()).unwrap();
    let ran = runs(&place, &["--serve", "Make it"]);
    let question = asked(&hub).await;
    assert_eq!((question.prompt.as_str(), question.preview.title.as_str()), ("Run `touch made`?", "Bash"));
    assert_eq!(question.preview.body[0].text, "touch made");
    let hooks = until(|| hub.hooks_of(&question.session).filter(|hooks| !hooks.is_empty())).await;
    assert!(hooks.iter().any(|hook| hook["name"] == "confirm"), "{hooks:?}");
    let decided = hub.answer(&question.id, answering(&question, "Allow once", AnswerScope::Project)).await.unwrap();
    assert!(decided.granted && !decided.reason.contains("could not be stored"), "{}", decided.reason);
    let Ran { code, out, error } = ran.await.unwrap();
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{error}");
    assert!(place.at("workspace/made").exists());
    let decisions = place.amplifier(&["audit", "export", "--kind", "approval_decision"]).fine();
    assert!(decisions.contains("\"ann\"") && decisions.contains("\"console\""), "{decisions}");
    drop(door);

    let project = place.at("workspace").canonicalize().unwrap().display().to_string();
    let rule = "confirm:Run `touch made`?";
    let expected = json!({ "rule": rule, "decision": "allow", "scope": "project", "project": project });
    assert_eq!(kept_rules(&place), [expected]);
    let listed = place.amplifier(&["approvals", "list"]).fine();
    assert_eq!(listed, format!("  1  allow  {rule}  (in {project})\n"));
    // Nobody is asked any more, here.
    std::fs::remove_file(place.at("workspace/made")).unwrap();
    assert_eq!(place.run(&["Make it"]).code, 0);
    assert!(place.at("workspace/made").exists());
    // Elsewhere, somebody is.
    std::fs::create_dir(place.at("other")).unwrap();
    let other = place.at("other").display().to_string();
    let Ran { error, .. } = place.run(&["--workspace", &other, "Make it"]);
    assert!(error.contains("no terminal to ask on"), "{error}");

    assert_eq!(place.amplifier(&["approvals", "revoke", "1"]).fine(), format!("Revoked `{rule}`.\n"));
    assert!(kept_rules(&place).is_empty());
    assert!(place.run(&["Make it"]).error.contains("no terminal to ask on"));
    let changes = place.amplifier(&["audit", "export", "--kind", "policy_change"]).fine();
    let change = |word: &str| changes.lines().filter(|line| line.contains(word) && line.contains("touch made")).count();
    assert_eq!((change("added"), change("revoked")), (1, 1), "{changes}");
}

fn touches(names: &[&str]) -> Place {
    let tools = names.iter().map(|name| {
        let input = json!({ "command": format!("touch {name}") });
        json!({ "tools": [{ "name": "Bash", "input": input }] })
    });
    Place::with(tools.chain([json!({ "text": "Done." })]).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_or_denied_counts_at_once_even_if_a_file_of_rules_cannot_be_read() {
    let place = touches(&["one", "two", "three"]);
    let home = Home::at(place.at("home"));
    let hub = Hub::new();
    let _door = LinkListener::open(&home.server_folder(), hub.clone()).unwrap();
    let ran = runs(&place, &["--serve", "Make it"]);
    let question = asked(&hub).await;
    let rule = |decision| ApprovalRule {
        scope: RuleScope::Session,
        session: Some(question.session.clone()),
        by: Some(ann()),
        ..ApprovalRule::new("confirm", "*", decision)
    };
    let given = hub.add_rule(rule(DefaultDecision::Allow)).await.unwrap();
    std::fs::write(home.approval_rule_file(), "{ \"x\": ").unwrap();
    hub.revoke(&given.id, ann()).await.unwrap();
    hub.answer(&question.id, answering(&question, "Allow once", AnswerScope::Once)).await.unwrap();
    // The next one is asked, because the rule is gone.
    let question = asked(&hub).await;
    assert_eq!(question.prompt, "Run `touch two`?");
    hub.add_rule(rule(DefaultDecision::Deny)).await.unwrap();
    hub.answer(&question.id, answering(&question, "Allow once", AnswerScope::Once)).await.unwrap();
    let Ran { code, error, .. } = ran.await.unwrap();
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("Denied by rule: Run `touch three`?"), "{error}");
    assert!(error.contains("approval rules cannot be read, so rules that allow are ignored: "), "{error}");
    let made = ["one", "two", "three"].map(|name| place.at("workspace").join(name).exists());
    assert_eq!(made, [true, true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_taken_back_on_the_command_line_does_not_count_in_a_running_session() {
    let place = touches(&["one", "two"]);
    let home = Home::at(place.at("home"));
    std::fs::write(home.approval_rule_file(), "{ \"confirm:Run `touch two`?\": \"allow\" }").unwrap();
    let hub = Hub::new();
    let _door = LinkListener::open(&home.server_folder(), hub.clone()).unwrap();
    let ran = runs(&place, &["--serve", "Make it"]);
    let question = asked(&hub).await;
    place.amplifier(&["approvals", "revoke", "1"]).fine();
    hub.answer(&question.id, answering(&question, "Allow once", AnswerScope::Once)).await.unwrap();
    let question = asked(&hub).await;
    assert_eq!(question.prompt, "Run `touch two`?");
    hub.answer(&question.id, answering(&question, "Deny", AnswerScope::Once)).await.unwrap();
    assert_eq!(ran.await.unwrap().code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_server_goes_by_the_rules_as_they_are_when_a_hook_asks() {
    let bash = |command: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": command } }] });
    let touch = || bash("touch made");
    let place = Place::with(
        json!([bash("read x < one"), touch(), bash("rm made; read x < two"), touch(), { "text": "Done." }]),
    );
    place.rules(json!({ "confirm:Run `*read x < *`?": "allow" }));
    let pipes = ["one", "two"].map(|name| format!("workspace/{name}"));
    pipes.iter().for_each(|pipe| place.make_pipe(pipe));
    let alone = runs(&place, &["Make it"]);
    // Whoever writes to a pipe waits until the tool reads from it, and the tool waits until something is written.
    let [one, two] = pipes.map(|pipe| place.at(&pipe));
    let one = tokio::task::spawn_blocking(|| std::fs::File::create(one)).await.unwrap().unwrap();

    // In another session, somebody allows it for the project.
    place.answers(json!([touch(), { "text": "Done." }]));
    let (_machine, hub, _log) = hosted(&place).await;
    let door = LinkListener::open(&Home::at(place.at("home")).server_folder(), hub.clone()).unwrap();
    let other = runs(&place, &["--serve", "Make it"]);
    let question = asked(&hub).await;
    hub.answer(&question.id, answering(&question, "Allow once", AnswerScope::Project)).await.unwrap();
    assert_eq!(other.await.unwrap().code, 0);
    drop(door);
    std::fs::remove_file(place.at("workspace/made")).unwrap();
    drop(one);
    let two = tokio::task::spawn_blocking(|| std::fs::File::create(two)).await.unwrap().unwrap();
    assert!(!place.at("workspace/made").exists(), "it was made, and taken away");

    place.amplifier(&["approvals", "revoke", "confirm:Run `touch made`?"]).fine();
    drop(two);
    let Ran { code, error, .. } = alone.await.unwrap();
    assert!(code == 3 && error.contains("no terminal to ask on"), "{error}");
    assert!(!place.at("workspace/made").exists(), "{error}");
    let decisions = place.amplifier(&["audit", "export", "--kind", "approval_decision"]).fine();
    let by_rule = decisions.lines().filter(|line| line.contains("Allowed by rule: Run `touch made`?"));
    assert_eq!(by_rule.count(), 1, "{decisions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_write_shows_nothing_of_files_that_are_protected_or_elsewhere() {
    let write = |path: &str| json!({ "tools": [{ "name": "Write", "input": { "file_path": path, "content": "x" } }] });
    let place = Place::with(json!([]));
    place.write("elsewhere", "the secret is 7");
    let elsewhere = place.at("elsewhere").display().to_string();
    let (token, link) = ("home/server/token", "link");
    for path in [elsewhere.as_str(), token, link] {
        let place = Place::with(json!([write(path), { "text": "Done." }]));
        let home = Home::at(place.at("home"));
        let hub = Hub::new();
        let _door = LinkListener::open(&home.server_folder(), hub.clone()).unwrap();
        place.write(token, "the secret is 7");
        std::os::unix::fs::symlink(token, place.at(link)).unwrap();
        // The folder of the server is within this workspace.
        let ran = runs(&place, &["--serve", "--workspace", &place.at("").display().to_string(), "Write it"]);
        let question = asked(&hub).await;
        let told = serde_json::to_string(&question).unwrap();
        assert!(!told.contains("secret") && told.contains("will be refused: "), "{path}: {told}");
        let shows_file = |row: &PreviewRow| matches!(row.kind, PreviewRowKind::Removed | PreviewRowKind::Context);
        assert!(!question.preview.body.iter().any(shows_file), "{told}");
        hub.answer(&question.id, answering(&question, "Deny", AnswerScope::Once)).await.unwrap();
        ran.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_it_says_so_and_the_time_limit_holds() {
    let place = touch();
    let Ran { code, error, .. } = place.run(&["--serve", "--approval-timeout", "0.5", "Make it"]);
    assert_eq!(code, 3);
    let expected = "no server is running, so approval requests wait for one within their time limit; to start one: amplifier serve\n";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("Approval timed out, denied by default: Run `touch made`?"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_started_later_gets_the_question() {
    let place = touch();
    place.write("home/config.toml", "approvals = \"server\"\n");
    let mut running = Running::start(place.scripted(&["run", "Make it"]));
    running.until("no server is running");
    let hub = Hub::new();
    let _door = LinkListener::open(&place.at("home/server"), hub.clone()).unwrap();
    let question = asked(&hub).await;
    // It looks at its bundles in the middle of a turn, and answers from its own process.
    let unchanged = ReloadResult { result: ReloadStatus::Unchanged, message: None };
    assert_eq!(hub.reload().await, [(question.session.clone(), unchanged)]);
    hub.answer(&question.id, answering(&question, "Deny", AnswerScope::Once)).await.unwrap();
    let Ran { code, error, .. } = tokio::task::spawn_blocking(move || running.end()).await.unwrap();
    assert!(code == 3 && error.contains("User denied: Run `touch made`?"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_runs_within_the_server() {
    let place = touch();
    let (_machine, hub, log) = hosted(&place).await;
    let workspace = place.at("workspace").display().to_string();
    let nowhere = hub.start_session(Some("nowhere".to_owned()), None).await.unwrap_err();
    assert_eq!(nowhere.message, "the workspace `nowhere` is not a folder; give an absolute path");
    let id = hub.start_session(Some(workspace.clone()), None).await.unwrap();
    let about = until(|| hub.session(&id)).await;
    assert_eq!((about.place, about.takes_prompts), (SessionHost::Server, true));
    until(|| hub.is_idle(&id).filter(|idle| *idle)).await;
    // A rule for the person that is added over the API is in force at once, and denies.
    let rule = ApprovalRule::new("confirm", "Run `rm *`?", DefaultDecision::Deny);
    let added = hub.add_rule(ApprovalRule { by: Some(ann()), ..rule }).await.unwrap();
    assert_eq!(place.read("home/approvals.json"), "{\n  \"confirm:Run `rm *`?\": \"deny\"\n}");
    hub.send(&id, Command::Prompt("Make it".to_owned())).unwrap();
    let question = asked(&hub).await;
    assert_eq!(question.session, id);
    hub.answer(&question.id, answering(&question, "Allow once", AnswerScope::Once)).await.unwrap();
    until(|| hub.is_idle(&id).filter(|idle| *idle)).await;
    assert!(place.at("workspace/made").exists());
    hub.revoke(&added.id, ann()).await.unwrap();
    assert_eq!(place.read("home/approvals.json"), "{}");
    hub.send(&id, Command::End).unwrap();
    until(|| hub.connected().is_empty().then_some(())).await;
    drop(log);
    until(|| place.amplifier(&["sessions", "list"]).fine().contains("user_exit").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_stays_one_if_its_file_cannot_be_read_before_the_first_question_and_other_questions_say_so() {
    let place = touches(&["one", "two"]);
    place.rules(json!({ "confirm:Run `touch one`?": "deny" }));
    let (_machine, hub, _log) = hosted(&place).await;
    let workspace = place.at("workspace").display().to_string();
    let id = hub.start_session(Some(workspace), None).await.unwrap();
    until(|| hub.is_idle(&id).filter(|idle| *idle)).await;
    // Whoever breaks the file may have written another no into it, which nobody has read.
    place.write(
        "home/approvals.json",
        "{ \"confirm:Run `touch one`?\": \"deny\", \"confirm:Run `touch two`?\": \"deny\"",
    );
    let everything = ApprovalRule {
        scope: RuleScope::Session,
        session: Some(id.clone()),
        ..ApprovalRule::new("confirm", "*", DefaultDecision::Allow)
    };
    hub.add_rule(everything).await.unwrap();
    hub.send(&id, Command::Prompt("Make it".to_owned())).unwrap();
    let question = asked(&hub).await;
    assert_eq!(question.prompt, "Run `touch two`?");
    assert_eq!(question.preview.warnings, ["approval rules cannot be read, and one may deny this"]);
    hub.answer(&question.id, answering(&question, "Deny", AnswerScope::Once)).await.unwrap();
    until(|| hub.is_idle(&id).filter(|idle| *idle)).await;
    let made = ["one", "two"].map(|name| place.at("workspace").join(name).exists());
    assert_eq!(made, [false, false]);
    let decisions = place.amplifier(&["audit", "export", "--kind", "approval_decision"]).fine();
    assert!(decisions.contains("Denied by rule: Run `touch one`?"), "{decisions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_over_what_has_changed_at_once_and_says_so() {
    let place = touch();
    let (_machine, hub, _log) = hosted(&place).await;
    let workspace = place.at("workspace").display().to_string();
    let id = hub.start_session(Some(workspace), None).await.unwrap();
    until(|| hub.is_idle(&id).filter(|idle| *idle)).await;
    let reload = async || {
        let [(session, ReloadResult { result, message })] = &hub.reload().await[..] else { panic!("one session") };
        assert_eq!(*session, id);
        (*result, message.clone().unwrap_or_default())
    };
    let has = |name: &str| hub.hooks_of(&id).unwrap().iter().any(|hook| hook["name"] == name);
    assert_eq!(reload().await, (ReloadStatus::Unchanged, String::new()));
    place.write("home/bundle.yaml", "hooks:\n  - rule: never\n    on: tool:pre\n    deny: never\n");
    assert_eq!(reload().await, (ReloadStatus::Changed, String::new()));
    assert!(has("never"), "what has changed is in force, and listed");
    assert_eq!(reload().await, (ReloadStatus::Unchanged, String::new()));
    place.write("home/bundle.yaml", "hooks:\n  - rule: never\n    on: tool:pre\n    dny: never\n");
    for _ in 0..2 {
        let (result, mistake) = reload().await;
        assert!(
            result == ReloadStatus::Refused && mistake.contains("bundle.yaml") && mistake.contains("dny"),
            "{mistake}"
        );
        assert!(has("never"), "the old version stays in force");
    }
    place.write("home/bundle.yaml", "hooks: []\n");
    assert_eq!(reload().await, (ReloadStatus::Changed, String::new()));
    assert!(!has("never"));
    place.write("workspace/.amplifier/bundle.yaml", "hooks:\n  - rule: mine\n    on: tool:pre\n    deny: never\n");
    let (result, why) = reload().await;
    assert!(result == ReloadStatus::NotTrusted && why.contains("amplifier hooks trust") && !has("mine"), "{why}");
    hub.send(&id, Command::End).unwrap();
    until(|| hub.connected().is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tests_of_a_bundle_run_for_the_server() {
    let place = touch();
    let (_machine, hub, _log) = hosted(&place).await;
    let bundle = "hooks:\n  - rule: never\n    on: tool:pre\n    deny: never\n\
                  tests:\n  - name: it denies\n    event: tool:pre\n    data: { tool_name: Bash, tool_input: {} }\n    expect: { decision: deny }\n";
    let tested = hub.test_bundle(Some(bundle.to_owned())).await.unwrap();
    assert_eq!(
        (&tested["passed"], &tested["failed"], &tested["tests"][0]["test"]),
        (&json!(1), &json!(0), &json!("it denies"))
    );
    assert!(hub.test_bundle(Some("hooks: 7".to_owned())).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_tried_out_for_the_server() {
    let place = touch();
    let (_machine, hub, _log) = hosted(&place).await;
    let dry_run = |bundle: Option<&str>| {
        let data = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } });
        let workspace = place.at("workspace").display().to_string();
        let dry_run = json!({ "event": "tool:pre", "data": data, "workspace": workspace, "bundle": bundle });
        serde_json::from_value::<DryRun>(dry_run).unwrap()
    };
    let called = |tried: &DryRunReport| {
        let hooks = tried.report.hooks.iter().map(|hook| (hook.hook.clone(), hook.answer.as_str()));
        (tried.report.decision.unwrap().as_str(), hooks.collect::<Vec<_>>())
    };
    let says = |decision: &'static str, hooks: &[(&str, &'static str)]| {
        (decision, hooks.iter().map(|(hook, answer)| ((*hook).to_owned(), *answer)).collect::<Vec<_>>())
    };

    // Those that a session would have, and nobody is asked.
    place.write("home/bundle.yaml", "hooks:\n  - rule: notice\n    on: tool:pre\n    message: \"I saw it\"\n");
    let tried = hub.dry_run(dry_run(None)).await.unwrap();
    assert_eq!(called(&tried), says("ask_user", &[("notice", "continue"), ("confirm", "ask_user")]));
    let (approval, message) = (&tried.report.approvals[0], &tried.report.messages[0]);
    assert_eq!((approval.prompt.as_deref(), message.text.as_str()), (Some("Run `ls`?"), "I saw it"));
    assert_eq!(tried.warning, None);
    std::fs::create_dir(place.at("workspace/.amplifier")).unwrap();
    place.write("workspace/.amplifier/bundle.yaml", "hooks:\n  - rule: mine\n    on: tool:pre\n    deny: never\n");
    let tried = hub.dry_run(dry_run(None)).await.unwrap();
    assert_eq!(called(&tried).0, "ask_user", "the project is not trusted");
    assert!(tried.warning.unwrap().contains("amplifier hooks trust"));

    // Those of a bundle alone.
    let bundle = "hooks:\n  - command: [sleep, '0.02']\n    on: tool:pre\n    name: slow\n  - rule: never\n    on: tool:pre\n    deny: never\n";
    let tried = hub.dry_run(dry_run(Some(bundle))).await.unwrap();
    assert_eq!(called(&tried), says("deny", &[("slow", "continue"), ("never", "deny")]));
    assert!(tried.report.hooks[0].duration_ns >= 20_000_000, "{tried:?}");
    assert_eq!((tried.report.denied_by.as_deref(), tried.report.reason.as_deref()), (Some("never"), Some("never")));

    for (wrong, why) in [
        (DryRun { event: "tool".to_owned(), ..dry_run(None) }, "`amplifier events` lists all events"),
        (DryRun { workspace: Some("nowhere".to_owned()), ..dry_run(None) }, "give an absolute path"),
        (dry_run(Some("hooks: 7")), "bundle.yaml"),
    ] {
        let told = hub.dry_run(wrong).await.unwrap_err().message;
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn tools_cannot_reach_the_folder_of_the_server() {
    let place = touch();
    std::fs::create_dir(place.at("home/server")).unwrap();
    place.write("home/server/token", "a secret");
    let token = place.at("home/server/token").display().to_string();
    let read = format!("cat {token}; ls {}", place.at("home/server").display());
    place.answers(json!([
        { "tools": [{ "name": "Bash", "input": { "command": read } }] },
        { "tools": [{ "name": "Read", "input": { "file_path": token } }] },
        { "text": "Done." },
    ]));
    place.rules(json!({ "confirm:*": "allow" }));
    assert_eq!(place.run(&["Read it"]).code, 0);
    let told = place.amplifier(&["sessions", "export", "last", "--format", "jsonl"]).fine();
    assert!(!told.contains("a secret"), "{told}");
}
