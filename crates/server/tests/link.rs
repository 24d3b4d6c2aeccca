//! Sessions and the server over a real socket: questions go one way, answers the other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{
    Actor, Approval as Asking, ApprovalAnswer, ApprovalDecisionEntry, ApprovalError, ApprovalRequest, ApprovalRule,
    ApprovalRuleSource, ApprovalRules, ApprovalSystem, AuditEntry, Coordinator, DecisionBasis, DefaultDecision,
    HookRegistry, HookResult, LateAnswerEntry, MemoryAudit, PortError, RuleScope, TOOL_PRE, Verdict, data,
};
use amplifier_link::{Link, Participant, ParticipantOptions, SOCKET};
use amplifier_server::Hub;
use amplifier_server::hub::{Answering, Change, Command, Kept, Refused, RuleBook};
use amplifier_server::wire::Approval;
use amplifier_server::{Door, DoorError};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Longer than anything here takes; a test that waits for it has failed.
const LIMIT: Duration = Duration::from_secs(90);

/// Rules that are kept in memory.
#[derive(Default)]
struct Book {
    rules: Mutex<Vec<ApprovalRule>>,
    recorded: Mutex<Vec<Value>>,
    /// Whether the files cannot be read.
    is_broken: AtomicBool,
}

impl RuleBook for Book {
    fn list(&self) -> Kept {
        Kept { rules: self.rules.lock().unwrap().clone(), ..Kept::default() }
    }

    fn add(&self, rule: &ApprovalRule) -> Result<(), String> {
        self.rules.lock().unwrap().push(rule.clone());
        Ok(())
    }

    fn revoke(&self, rule: &ApprovalRule, _by: &Actor) -> Result<bool, String> {
        let mut rules = self.rules.lock().unwrap();
        let before = rules.len();
        rules.retain(|kept| kept != rule);
        Ok(rules.len() < before)
    }

    fn record(&self, change: &Value) -> Result<(), String> {
        self.recorded.lock().unwrap().push(change.clone());
        Ok(())
    }
}

/// What holds in a folder.
struct InForce(Arc<Book>, String);

impl ApprovalRuleSource for InForce {
    async fn in_force(&self) -> Result<ApprovalRules, PortError> {
        let Self(book, workspace) = self;
        if book.is_broken.load(Ordering::SeqCst) {
            return Err("the file is broken".into());
        }
        let rules = book.rules.lock().unwrap();
        let is_here = |rule: &&ApprovalRule| rule.project.as_ref().is_none_or(|project| project == workspace);
        Ok(rules.iter().filter(is_here).cloned().collect())
    }
}

/// A session whose hook asks before every tool, and its participant.
struct Session {
    coordinator: Coordinator,
    participant: Participant,
    commands: mpsc::Receiver<Command>,
    audit: MemoryAudit,
    book: Arc<Book>,
    workspace: String,
    _folder: TempDir,
}

impl Session {
    fn new(id: &str, timeout: Duration) -> Self {
        Self::with(id, timeout, |participant| participant)
    }

    /// One that asks through a system around its participant.
    fn with<A: ApprovalSystem>(id: &str, timeout: Duration, around: impl FnOnce(Participant) -> A) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let book = Arc::new(Book::default());
        let (participant, commands) = Participant::new(ParticipantOptions {
            workspace: folder.path().to_owned(),
            run: format!("{id}-1"),
            name: None,
            takes_prompts: true,
            book: Some(book.clone()),
            reload: None,
        });
        let hooks = HookRegistry::new();
        hooks.hook(TOOL_PRE).named("guard").run(move |event| {
            let prompt = format!("Run `{}`?", event.text_at("/tool_input/command").unwrap_or_default());
            let asking = Asking::new(prompt).options(["Allow once", "Allow always", "Deny"]);
            HookResult::ask(asking.timeout(timeout))
        });
        let audit = MemoryAudit::new();
        let workspace = folder.path().canonicalize().unwrap().display().to_string();
        let coordinator = Coordinator::builder(hooks)
            .session_id(id)
            .approvals(around(participant.clone()))
            .approval_rules(InForce(book.clone(), workspace.clone()))
            .audit(audit.clone())
            .build();
        participant.begin(id, coordinator.clone());
        Self { coordinator, participant, commands, audit, book, workspace, _folder: folder }
    }

    /// A tool that waits for an answer.
    fn run(&self, command: &str) -> JoinHandle<Verdict> {
        let session = self.coordinator.clone();
        let data = data! { "tool_name": "Bash", "tool_input": { "command": command } };
        tokio::spawn(async move { session.emit(TOOL_PRE, data).await })
    }

    /// Who answered too late, as it is recorded.
    fn late(&self) -> Vec<(u64, String, String)> {
        let late = self.audit.records().into_iter().filter_map(|record| match record.entry {
            AuditEntry::LateAnswer(LateAnswerEntry { id, answer, by, .. }) => Some((id, answer, by.unwrap().name)),
            _ => None,
        });
        late.collect()
    }

    /// Who decided, as it is recorded.
    fn decided(&self) -> Vec<(DecisionBasis, Option<String>)> {
        let decided = self.audit.records().into_iter().filter_map(|record| match record.entry {
            AuditEntry::ApprovalDecision(ApprovalDecisionEntry { decision, .. }) => {
                Some((decision.basis, decision.by.map(|by| by.name)))
            }
            _ => None,
        });
        decided.collect()
    }
}

/// A server, as far as sessions see it.
struct Server {
    hub: Hub,
    _door: Door,
}

impl Server {
    fn open(folder: &TempDir) -> Self {
        let hub = Hub::new();
        let door = Door::open(&folder.path().join("server"), hub.clone()).unwrap();
        Self { hub, _door: door }
    }
}

fn connect(session: &Session, folder: &TempDir) -> Link {
    session.participant.connect(folder.path().join("server").join(SOCKET))
}

/// Waits until something is so.
async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, looking).await.expect("it never happens")
}

/// Waits until the server hears what a session says. Its hooks are the last of what it says when it connects.
async fn connected(hub: &Hub, session: &str) {
    until(|| hub.hooks_of(session).filter(|hooks| !hooks.is_empty())).await;
}

/// The question that waits, as soon as there is one.
async fn asked(hub: &Hub) -> Approval {
    until(|| hub.pending().into_iter().next()).await
}

fn answering(option: &str, nonce: &str, name: &str) -> Answering {
    let by = Actor { name: name.to_owned(), via: "console".to_owned() };
    Answering { option: option.to_owned(), nonce: nonce.to_owned(), by, scope: None }
}

fn ann() -> Actor {
    Actor { name: "ann".to_owned(), via: "console".to_owned() }
}

async fn done(operation: JoinHandle<Verdict>) -> Verdict {
    tokio::time::timeout(LIMIT, operation).await.expect("it does not end").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_over_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let session = Session::new("one", LIMIT);
    let _link = connect(&session, &folder);
    let mut changes = server.hub.subscribe();
    let operation = session.run("ls");
    let question = asked(&server.hub).await;
    assert_eq!((question.id.as_str(), question.prompt.as_str()), ("one.one-1.1", "Run `ls`?"));
    assert_eq!((question.action.title.as_str(), question.default.as_str()), ("Bash", "deny"));
    assert_eq!(
        question.options.iter().map(|option| option.effect.as_str()).collect::<Vec<_>>(),
        ["allow_once", "allow_always", "deny"]
    );
    let decided = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap();
    assert_eq!((decided.granted, decided.by), (true, Some(ann())));
    assert!(done(operation).await.is_proceed());
    assert_eq!(session.decided(), [(DecisionBasis::Answer, Some("ann".to_owned()))]);
    assert!(session.late().is_empty());
    until(|| server.hub.pending().is_empty().then_some(())).await;
    // It is told a moment after it is so.
    let mut closed = 0;
    until(|| {
        while let Ok(change) = changes.try_recv() {
            closed += usize::from(matches!(change, Change::Closed { .. }));
        }
        (closed > 0).then_some(())
    })
    .await;
    assert_eq!(closed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_the_first_counts_and_the_other_is_refused_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let session = Session::new("one", LIMIT);
    let _link = connect(&session, &folder);
    for round in 1..=20 {
        let operation = session.run("ls");
        let question = asked(&server.hub).await;
        let (ann, bob) = tokio::join!(
            server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")),
            server.hub.answer(&question.id, answering("Deny", &question.nonce, "bob")),
        );
        let (winner, loser) = match (ann, bob) {
            (Ok(_), Err(refused)) => ("ann", refused),
            (Err(refused), Ok(_)) => ("bob", refused),
            both => panic!("{both:?}"),
        };
        assert_eq!((loser.code, loser.by.unwrap().name.as_str()), ("answered", winner));
        assert_eq!(done(operation).await.is_proceed(), winner == "ann");
        until(|| (session.late().len() == round).then_some(())).await;
        until(|| server.hub.pending().is_empty().then_some(())).await;
        let (_, answer, name) = session.late().pop().unwrap();
        assert_eq!((answer == "Deny", name == "bob"), (winner == "ann", winner == "ann"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_is_away_the_time_limit_holds() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new("one", Duration::from_millis(200));
    let _link = connect(&session, &folder);
    let begun = std::time::Instant::now();
    let Verdict::Denied { reason, .. } = done(session.run("ls")).await else { panic!("it was allowed") };
    assert_eq!(reason, "Approval timed out, denied by default: Run `ls`?");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(session.decided(), [(DecisionBasis::Timeout, None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_no_question() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let session = Session::new("one", LIMIT);
    let _link = connect(&session, &folder);
    let operations = [session.run("a"), session.run("b")];
    until(|| (server.hub.pending().len() == 2).then_some(())).await;
    let before = server.hub.pending();
    drop(server);
    let server = Server::open(&folder);
    until(|| (server.hub.pending().len() == 2).then_some(())).await;
    for (old, new) in before.iter().zip(server.hub.pending()) {
        assert_eq!((&old.id, old.asked_at, old.deadline), (&new.id, new.asked_at, new.deadline));
        let refused = server.hub.answer(&new.id, answering("Allow once", &old.nonce, "ann")).await.unwrap_err();
        assert_eq!(refused.code, "nonce");
        server.hub.answer(&new.id, answering("Allow once", &new.nonce, "ann")).await.unwrap();
    }
    for operation in operations {
        assert!(done(operation).await.is_proceed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_refused_and_recorded_with_who_gave_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let session = Session::new("one", Duration::from_millis(50));
    let _link = connect(&session, &folder);
    connected(&server.hub, "one").await;
    let mut changes = server.hub.subscribe();
    let operation = session.run("ls");
    // It may be over by the time that somebody looks, but it is told.
    let question = until(|| match changes.try_recv() {
        Ok(Change::Asked(question)) => Some(question),
        _ => None,
    })
    .await;
    assert!(!done(operation).await.is_proceed());
    until(|| server.hub.pending().is_empty().then_some(())).await;
    let refused = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap_err();
    assert_eq!(refused.code, "late");
    assert_eq!(session.late(), [(1, "Allow once".to_owned(), "ann".to_owned())]);
    assert_eq!(session.decided(), [(DecisionBasis::Timeout, None)]);
}

/// A terminal whose person answers when told to; the participant is asked as well.
struct Beside {
    participant: Participant,
    terminal: tokio::sync::Mutex<mpsc::Receiver<&'static str>>,
}

impl ApprovalSystem for Beside {
    async fn request_approval(&self, request: Arc<ApprovalRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let mut terminal = self.terminal.lock().await;
        tokio::select! {
            Some(label) = terminal.recv() => Ok(ApprovalAnswer::by(label, "tom", "terminal")),
            answer = self.participant.request_approval(request) => answer,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_another_surface_answers_the_server_is_told_who_was_faster() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let (keys, terminal) = mpsc::channel(1);
    let session = Session::with("one", LIMIT, |participant| Beside { participant, terminal: terminal.into() });
    let _link = connect(&session, &folder);
    let operation = session.run("ls");
    let question = asked(&server.hub).await;
    keys.send("Deny").await.unwrap();
    assert!(!done(operation).await.is_proceed());
    let decided = until(|| server.hub.decided(&question.id)).await;
    assert_eq!((decided.granted, decided.by.unwrap().via.as_str()), (false, "terminal"));
    let refused = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap_err();
    assert_eq!((refused.code, refused.by.unwrap().name.as_str()), ("answered", "tom"));
    assert_eq!(session.late(), [(1, "Allow once".to_owned(), "ann".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_operation_takes_its_question_away() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let session = Session::new("one", LIMIT);
    let _link = connect(&session, &folder);
    let operation = session.run("ls");
    let question = asked(&server.hub).await;
    operation.abort();
    let decided = until(|| server.hub.decided(&question.id)).await;
    assert_eq!(decided.basis, DecisionBasis::Cancelled);
    let refused = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap_err();
    assert_eq!(refused.code, "closed");
}

/// Whatever a server says, a session takes an answer to what it has asked, for as long as was offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_takes_no_answer_to_something_else_and_none_that_lasts_longer_than_was_offered() {
    use amplifier_link::{Reception, ToServer, ToSession, VERSION};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let session = Session::new("one", LIMIT);
    let _link = session.participant.connect(&socket);
    let (stream, _) = listener.accept().await.unwrap();
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from).lines();
    let mut say = async |message: ToSession| {
        let line = format!("{}\n", serde_json::to_string(&message).unwrap());
        to.write_all(line.as_bytes()).await.unwrap();
    };
    say(ToSession::Welcome { version: VERSION }).await;
    let operation = session.run("ls");
    let mut next = async || -> ToServer {
        let line = tokio::time::timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let approval = loop {
        if let ToServer::Asked { approval } = next().await {
            break *approval;
        }
    };
    let answer = |digest: &str, option: &str, scope| {
        let (digest, option) = (digest.to_owned(), option.to_owned());
        ToSession::Answer { id: 1, digest, reference: 7, option, by: ann(), scope }
    };
    // It has no `Deny always`.
    let all = [
        (answer("sha256:other", "Allow once", None), Reception::Closed),
        (answer(&approval.digest, "Deny", Some(RuleScope::Project)), Reception::NotOffered),
        (answer(&approval.digest, "Allow once", Some(RuleScope::User)), Reception::NotOffered),
        (answer(&approval.digest, "Deny", None), Reception::Taken),
    ];
    for (answer, expected) in all {
        say(answer.clone()).await;
        let result = loop {
            if let ToServer::Answered { result, .. } = next().await {
                break result;
            }
        };
        assert_eq!(result, expected, "{answer:?}");
    }
    assert!(!done(operation).await.is_proceed());
    assert!(session.book.rules.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_the_project_is_kept_and_put_in_force() {
    let hub = Hub::new();
    let session = Session::new("one", LIMIT);
    hub.keep_rules(session.book.clone());
    let _link = session.participant.join(&hub.pipes());
    let operation = session.run("ls");
    let question = asked(&hub).await;
    let answer = Answering { scope: Some(RuleScope::Project), ..answering("Allow once", &question.nonce, "ann") };
    hub.answer(&question.id, answer).await.unwrap();
    assert!(done(operation).await.is_proceed());
    // The same question is not asked again.
    assert!(done(session.run("ls")).await.is_proceed());
    assert_eq!(session.decided().last(), Some(&(DecisionBasis::Rule, None)));
    let [rule] = &hub.rules().rules[..] else { panic!("{:?}", hub.rules().rules) };
    let expected = (RuleScope::Project, Some(session.workspace.as_str()), "Run `ls`?", DefaultDecision::Allow);
    let ApprovalRule { scope, project, pattern, decision, .. } = &rule.rule;
    assert_eq!((*scope, project.as_deref(), pattern.as_str(), *decision), expected);
    let place = &session.workspace;
    assert_eq!(
        rule.explanation,
        format!(
            "When hook `guard` asks \"Run `ls`?\", it is allowed without asking, in every session in `{place}`, unless another rule \
             denies it."
        )
    );
    // Taken back, it is asked again.
    hub.revoke(&rule.id, ann()).await.unwrap();
    assert!(hub.rules().rules.is_empty());
    let operation = session.run("ls");
    let question = asked(&hub).await;
    hub.answer(&question.id, answering("Deny", &question.nonce, "ann")).await.unwrap();
    assert!(!done(operation).await.is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn standing_answers_of_a_session_are_listed_added_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let Server { hub, _door } = Server::open(&folder);
    let session = Session::new("one", LIMIT);
    let _link = connect(&session, &folder);
    let operation = session.run("ls");
    let question = asked(&hub).await;
    hub.answer(&question.id, answering("Allow always", &question.nonce, "ann")).await.unwrap();
    assert!(done(operation).await.is_proceed());
    let rule = until(|| hub.rules().rules.pop()).await;
    let ApprovalRule { scope, pattern, by, .. } = &rule.rule;
    assert_eq!((*scope, pattern.as_str(), by), (RuleScope::Session, "Run `ls`?", &Some(ann())));
    hub.revoke(&rule.id, ann()).await.unwrap();
    assert_eq!((hub.rules().rules, session.coordinator.remembered_approvals().len()), (Vec::new(), 0));
    assert_eq!(hub.revoke(&rule.id, ann()).await.unwrap_err().code, "unknown");

    let deny = ApprovalRule {
        scope: RuleScope::Session,
        session: Some("one".to_owned()),
        by: Some(ann()),
        ..ApprovalRule::new("guard", "Run `rm *`?", DefaultDecision::Deny)
    };
    let added = hub.add_rule(deny.clone()).await.unwrap();
    let Verdict::Denied { reason, .. } = done(session.run("rm x")).await else { panic!("it was allowed") };
    assert_eq!(reason, "Denied by rule: Run `rm x`?");
    hub.revoke(&added.id, ann()).await.unwrap();
    assert!(hub.rules().rules.is_empty());
    let changes: Vec<Value> = session.book.recorded.lock().unwrap().clone();
    let words: Vec<&str> = changes.iter().map(|change| change["approval_rule"]["change"].as_str().unwrap()).collect();
    assert_eq!(words, ["revoked", "added", "revoked"]);
    let without_hook = ApprovalRule { hook: "*".to_owned(), ..deny.clone() };
    assert_eq!(hub.add_rule(without_hook).await.unwrap_err().code, "not_offered");
    let elsewhere = ApprovalRule { session: Some("two".to_owned()), ..deny };
    assert_eq!(hub.add_rule(elsewhere).await.unwrap_err().code, "unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_reach_the_session_and_its_end_reaches_the_server() {
    let hub = Hub::new();
    let mut session = Session::new("one", LIMIT);
    let link = session.participant.join(&hub.pipes());
    session.participant.set_idle(true);
    until(|| hub.is_idle("one").filter(|idle| *idle)).await;
    hub.tell("one", Command::Prompt("Hello".to_owned())).unwrap();
    hub.tell("one", Command::Interrupt).unwrap();
    hub.tell("one", Command::End).unwrap();
    let busy = hub.tell("one", Command::Prompt("Again".to_owned()));
    assert_eq!(busy.map_err(|Refused { code, .. }| code), Err("busy"));
    for expected in [Command::Prompt("Hello".to_owned()), Command::Interrupt, Command::End] {
        assert_eq!(tokio::time::timeout(LIMIT, session.commands.recv()).await.unwrap(), Some(expected));
    }
    assert_eq!(until(|| hub.hooks_of("one").filter(|hooks| !hooks.is_empty())).await[0]["name"], "guard");
    link.bye("complete").await;
    until(|| hub.connected().is_empty().then_some(())).await;
    assert_eq!(hub.tell("one", Command::Interrupt).unwrap_err().code, "unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_server_has_the_door_and_that_of_a_dead_one_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("server");
    std::fs::create_dir(&place).unwrap();
    // Left behind by a server that is gone.
    drop(std::os::unix::net::UnixListener::bind(place.join(SOCKET)).unwrap());
    let door = Door::open(&place, Hub::new()).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(door.socket())), (0o700, 0o600));
    let second = Door::open(&place, Hub::new());
    assert!(matches!(second, Err(DoorError::Running(_))), "{second:?}");
    assert!(amplifier_link::is_open(&place));
    drop(door);
    assert!(!amplifier_link::is_open(&place));
    Door::open(&place, Hub::new()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_too_large_for_a_line_is_cut_and_says_so() {
    let hub = Hub::new();
    let (participant, _commands) = Participant::new(ParticipantOptions {
        workspace: "/".into(),
        run: "big-1".to_owned(),
        name: None,
        takes_prompts: false,
        book: None,
        reload: None,
    });
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::ask("x".repeat(100_000)));
    let session = Coordinator::builder(hooks).session_id("big").approvals(participant.clone()).build();
    let _link = participant.join(&hub.pipes());
    let data = data! { "tool_name": "Write", "tool_input": { "content": "\u{1}".repeat(2_000_000) } };
    let operation = tokio::spawn(async move { session.emit(TOOL_PRE, data).await });
    let question = asked(&hub).await;
    assert!(question.prompt.len() < 20_000);
    assert!(question.action.truncated);
    assert!(question.action.warnings[0].starts_with("this is too large to be shown in full"));
    hub.answer(&question.id, answering("Allow", &question.nonce, "ann")).await.unwrap();
    assert!(done(operation).await.is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_questions_wait_and_each_is_answered() {
    const MANY: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&folder);
    let session = Session::new("one", Duration::from_secs(300));
    let _link = connect(&session, &folder);
    let operations: Vec<_> = (0..MANY).map(|step| session.run(&format!("step {step}"))).collect();
    until(|| (server.hub.session("one")?.pending == MANY as u64).then_some(())).await;
    assert!(server.hub.busy().is_some_and(|busy| busy.hook == "guard" && busy.pattern == "Run `step *`?"));
    let pending = server.hub.pending_shared();
    assert_eq!(pending.len(), MANY);
    for batch in pending.chunks(100) {
        let answers = batch.iter().map(|asked| server.hub.answer(&asked.id, answering("Deny", &asked.nonce, "ann")));
        for answer in futures::future::join_all(answers).await {
            assert!(!answer.unwrap().granted);
        }
    }
    for operation in operations {
        assert!(!done(operation).await.is_proceed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_rules_cannot_be_read_what_they_allowed_is_asked_and_what_they_denied_is_denied() {
    let hub = Hub::new();
    let session = Session::new("one", LIMIT);
    hub.keep_rules(session.book.clone());
    let _link = session.participant.join(&hub.pipes());
    until(|| hub.session("one")).await;
    hub.add_rule(ApprovalRule::new("guard", "Run `ls`?", DefaultDecision::Allow)).await.unwrap();
    hub.add_rule(ApprovalRule::new("guard", "Run `rm *`?", DefaultDecision::Deny)).await.unwrap();
    assert!(!done(session.run("rm x")).await.is_proceed());
    assert!(done(session.run("ls")).await.is_proceed());

    session.book.is_broken.store(true, Ordering::SeqCst);
    let operation = session.run("ls");
    let question = asked(&hub).await;
    hub.answer(&question.id, answering("Deny", &question.nonce, "ann")).await.unwrap();
    assert!(!done(operation).await.is_proceed());
    let Verdict::Denied { reason, .. } = done(session.run("rm x")).await else { panic!("it was allowed") };
    assert_eq!(reason, "Denied by rule: Run `rm x`?");
}
