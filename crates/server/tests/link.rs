//! Sessions and the server over a real socket: approval requests, answers, rules and commands.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{
    Actor, Approval as Asking, ApprovalAnswer, ApprovalDecisionEntry, ApprovalError, ApprovalRule, ApprovalRuleSource,
    ApprovalRules, ApprovalSystem, AuditEntry, ChosenRule, Coordinator, DecisionBasis, DefaultDecision, EventData,
    EventName, HookRegistry, HookResult, LateAnswerEntry, MemoryAudit, OpenRequest, OperationPart, OperationSource,
    OperationWidth, PortError, RuleScope, TOOL_PRE, Verdict, data,
};
use amplifier_link::{
    AnswerScope, LinkClient, LinkClientOptions, LinkHandle, MachineReply, MachineRequest, OpenApproval, RecordChange,
    RuleList, SOCKET, serve_machine,
};
use amplifier_server::Hub;
use amplifier_server::hub::{Command, HubError, HubErrorCode, HubEvent, SubmittedAnswer};
use amplifier_server::{LinkListener, LinkListenerError};
use futures::FutureExt;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Test time limit, longer than any operation here.
const LIMIT: Duration = Duration::from_secs(90);

/// Approval rules in memory.
#[derive(Default)]
struct Book {
    rules: Mutex<Vec<ApprovalRule>>,
    recorded: Mutex<Vec<Value>>,
    /// `true` if the files cannot be read.
    is_broken: AtomicBool,
}

impl Book {
    fn list(&self) -> RuleList {
        RuleList { rules: self.rules.lock().unwrap().clone(), ..RuleList::default() }
    }

    /// Replies as a machine does.
    fn handle(&self, request: MachineRequest) -> MachineReply {
        match request {
            MachineRequest::ListRules => MachineReply::Rules(self.list()),
            MachineRequest::AddRule { rule } => {
                self.rules.lock().unwrap().push(rule.clone());
                MachineReply::RuleAdded { rule, list: self.list() }
            }
            MachineRequest::RevokeRule { rule, .. } => {
                let before = self.list().rules.len();
                self.rules.lock().unwrap().retain(|kept| kept.id() != rule);
                MachineReply::RuleRevoked { found: self.list().rules.len() < before, list: self.list() }
            }
            request => MachineReply::Invalid { error: format!("unexpected: {request:?}") },
        }
    }

    /// Connects a machine with these rules, and waits until the server lists it.
    async fn connect(self: &Arc<Self>, hub: &Hub) {
        let (book, pipe) = (self.clone(), hub.machine_pipes().open());
        tokio::spawn(async move {
            let (_news, rules) = watch::channel(RuleList::default());
            let handle = move |request| {
                let book = book.clone();
                async move { book.handle(request) }
            };
            serve_machine(pipe, rules, handle).await
        });
        let until = tokio::time::Instant::now() + LIMIT;
        let rule = || ApprovalRule::new("nobody", "nothing", DefaultDecision::Deny);
        while hub.add_rule(rule()).await.is_err() {
            assert!(tokio::time::Instant::now() < until, "the machine does not connect");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.rules.lock().unwrap().clear();
    }
}

/// The rules of a folder.
struct InForce(Arc<Book>, String);

impl ApprovalRuleSource for InForce {
    async fn active_rules(&self) -> Result<ApprovalRules, PortError> {
        let Self(book, workspace) = self;
        if book.is_broken.load(Ordering::SeqCst) {
            return Err("the file is broken".into());
        }
        let rules = book.rules.lock().unwrap();
        let is_here = |rule: &&ApprovalRule| rule.project.as_ref().is_none_or(|project| project == workspace);
        Ok(rules.iter().filter(is_here).cloned().collect())
    }
}

/// A session whose hook requests approval before every tool, and its link client.
struct Session {
    coordinator: Coordinator,
    participant: LinkClient,
    commands: mpsc::Receiver<Command>,
    audit: MemoryAudit,
    book: Arc<Book>,
    workspace: String,
    _folder: TempDir,
}

/// Names a command by itself and by its first word.
struct FirstWord;

impl OperationSource for FirstWord {
    async fn parts(&self, _: &str, _: &EventName, data: &EventData) -> Result<Vec<OperationPart>, PortError> {
        let command = data.text_at("/tool_input/command").unwrap_or_default();
        let word = command.split(' ').next().unwrap_or_default();
        let names = [(format!("run {command}"), "exactly"), (format!("run {word} *"), "any arguments")];
        Ok(vec![OperationPart { widths: names.map(|(name, label)| OperationWidth::new(name, label)).into() }])
    }
}

impl Session {
    fn new(id: &str, timeout: Duration) -> Self {
        Self::with(id, timeout, |participant| participant)
    }

    /// A session with another approval system around its link client.
    fn with<A: ApprovalSystem>(id: &str, timeout: Duration, around: impl FnOnce(LinkClient) -> A) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let book = Arc::new(Book::default());
        let recorder = book.clone();
        let record: RecordChange = Arc::new(move |change: &Value| {
            recorder.recorded.lock().unwrap().push(change.clone());
            Ok(())
        });
        let (participant, commands) = LinkClient::new(LinkClientOptions {
            workspace: folder.path().to_owned(),
            run: format!("{id}-1"),
            name: None,
            takes_prompts: true,
            record: Some(record),
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
            .operations(FirstWord)
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

    /// The actors of late answers, as recorded.
    fn late(&self) -> Vec<(u64, String, String)> {
        let late = self.audit.records().into_iter().filter_map(|record| match record.entry {
            AuditEntry::LateAnswer(LateAnswerEntry { id, answer, by, .. }) => Some((id, answer, by.unwrap().name)),
            _ => None,
        });
        late.collect()
    }

    /// The actors of decisions, as recorded.
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

/// A server with its hub and socket.
struct Server {
    hub: Hub,
    _door: LinkListener,
}

impl Server {
    fn open(folder: &TempDir) -> Self {
        let hub = Hub::new();
        let door = LinkListener::open(&folder.path().join("server"), hub.clone()).unwrap();
        Self { hub, _door: door }
    }
}

fn connect(session: &Session, folder: &TempDir) -> LinkHandle {
    session.participant.connect(folder.path().join("server").join(SOCKET))
}

/// Waits until the condition holds.
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

/// Waits until the server has received a session's messages. The list of hooks is the last one that a session sends
/// when it connects.
async fn connected(hub: &Hub, session: &str) {
    until(|| hub.hooks_of(session).filter(|hooks| !hooks.is_empty())).await;
}

/// Waits for an open approval request.
async fn asked(hub: &Hub) -> OpenApproval {
    until(|| hub.pending().into_iter().next()).await
}

fn answering(option: &str, nonce: &str, name: &str) -> SubmittedAnswer {
    let answer = ApprovalAnswer::by(option, name, "console");
    SubmittedAnswer { answer, nonce: nonce.to_owned(), scope: AnswerScope::Once }
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
    assert_eq!((question.id.to_string().as_str(), question.prompt.as_str()), ("one.one-1.1", "Run `ls`?"));
    assert_eq!((question.preview.title.as_str(), question.default.as_str()), ("Bash", "deny"));
    assert_eq!(
        question.options.iter().map(|option| option.effect.as_str()).collect::<Vec<_>>(),
        ["allow_once", "allow_always", "deny"]
    );
    let decided = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap();
    assert_eq!((decided.granted, decided.by.clone()), (true, Some(ann())));
    assert!(done(operation).await.is_proceed());
    assert_eq!(session.decided(), [(DecisionBasis::Answer, Some("ann".to_owned()))]);
    assert!(session.late().is_empty());
    until(|| server.hub.pending().is_empty().then_some(())).await;
    // The notification arrives a moment later.
    let mut closed = 0;
    until(|| {
        while let Ok(change) = changes.try_recv() {
            closed += usize::from(matches!(change, HubEvent::ApprovalClosed { .. }));
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
        assert_eq!((loser.code, loser.by.unwrap().name.as_str()), (HubErrorCode::Answered, winner));
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
        assert_eq!((&old.id, old.created_at, old.deadline), (&new.id, new.created_at, new.deadline));
        let refused = server.hub.answer(&new.id, answering("Allow once", &old.nonce, "ann")).await.unwrap_err();
        assert_eq!(refused.code, HubErrorCode::Nonce);
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
    // The flood may be over before the check, but it is announced.
    let question = until(|| match changes.try_recv() {
        Ok(HubEvent::ApprovalRequested(question)) => Some(question),
        _ => None,
    })
    .await;
    assert!(!done(operation).await.is_proceed());
    until(|| server.hub.pending().is_empty().then_some(())).await;
    let refused = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap_err();
    assert_eq!(refused.code, HubErrorCode::Late);
    assert_eq!(session.late(), [(1, "Allow once".to_owned(), "ann".to_owned())]);
    assert_eq!(session.decided(), [(DecisionBasis::Timeout, None)]);
}

/// A terminal that answers on command, next to the link client.
struct Beside {
    participant: LinkClient,
    terminal: tokio::sync::Mutex<mpsc::Receiver<&'static str>>,
}

impl ApprovalSystem for Beside {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
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
    let decided = until(|| server.hub.decision(&question.id)).await;
    assert_eq!((decided.granted, decided.by.as_ref().unwrap().via.as_str()), (false, "terminal"));
    let refused = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap_err();
    assert_eq!((refused.code, refused.by.unwrap().name.as_str()), (HubErrorCode::Answered, "tom"));
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
    let decided = until(|| server.hub.decision(&question.id)).await;
    assert_eq!(decided.basis, DecisionBasis::Cancelled);
    let refused = server.hub.answer(&question.id, answering("Allow once", &question.nonce, "ann")).await.unwrap_err();
    assert_eq!(refused.code, HubErrorCode::Closed);
}

/// A session accepts only answers to its own requests, with options that were offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_takes_no_answer_to_something_else_and_none_that_was_not_offered() {
    use amplifier_link::{AnswerStatus, ApprovalId, ServerMessage, SessionMessage, VERSION};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let session = Session::new("one", LIMIT);
    let _link = session.participant.connect(&socket);
    let (stream, _) = listener.accept().await.unwrap();
    let (from, mut to) = stream.into_split();
    let mut lines = BufReader::new(from).lines();
    let mut say = async |message: ServerMessage| {
        let line = format!("{}\n", serde_json::to_string(&message).unwrap());
        to.write_all(line.as_bytes()).await.unwrap();
    };
    say(ServerMessage::Welcome { version: VERSION }).await;
    let operation = session.run("ls");
    let mut next = async || -> SessionMessage {
        let line = tokio::time::timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let approval = loop {
        if let SessionMessage::ApprovalRequested { approval } = next().await {
            break *approval;
        }
    };
    let other = "0".repeat(64).parse().unwrap();
    let answer = |id: &ApprovalId, digest, label: &str| {
        let answer = ApprovalAnswer { by: Some(ann()), ..label.into() };
        ServerMessage::Answer { reference: 7, id: id.clone(), digest, answer }
    };
    let (id, digest) = (&approval.id, approval.digest);
    let unknown = ApprovalId { number: 2, ..id.clone() };
    let of_other_run = ApprovalId { run: "other".to_owned(), ..id.clone() };
    let all = [
        (answer(id, other, "Allow once"), AnswerStatus::Closed),
        (answer(&unknown, digest, "Allow once"), AnswerStatus::Closed),
        (answer(&of_other_run, digest, "Allow once"), AnswerStatus::Closed),
        // The request has no `Deny always`.
        (answer(id, digest, "Deny always"), AnswerStatus::NotOffered),
        (answer(id, digest, "Deny"), AnswerStatus::Taken),
    ];
    for (answer, expected) in all {
        say(answer.clone()).await;
        let result = loop {
            if let SessionMessage::Answered { status: result, .. } = next().await {
                break result;
            }
        };
        assert_eq!(result, expected, "{answer:?}");
    }
    assert!(!done(operation).await.is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_the_project_is_kept_and_put_in_force() {
    let hub = Hub::new();
    let session = Session::new("one", LIMIT);
    session.book.connect(&hub).await;
    let _link = session.participant.join(&hub.pipes());
    let operation = session.run("ls");
    let question = asked(&hub).await;
    let answer = SubmittedAnswer { scope: AnswerScope::Project, ..answering("Allow once", &question.nonce, "ann") };
    hub.answer(&question.id, answer).await.unwrap();
    assert!(done(operation).await.is_proceed());
    // The same request is not sent again.
    assert!(done(session.run("ls")).await.is_proceed());
    assert_eq!(session.decided().last(), Some(&(DecisionBasis::Rule, None)));
    let rules = hub.rules().await.unwrap().rules;
    let [rule] = &rules[..] else { panic!("{rules:?}") };
    let expected = (RuleScope::Project, Some(session.workspace.as_str()), "Run `ls`?", DefaultDecision::Allow);
    let ApprovalRule { scope, project, pattern, decision, .. } = &rule.rule;
    assert_eq!((*scope, project.as_deref(), pattern.as_str(), *decision), expected);
    let place = &session.workspace;
    assert_eq!(
        rule.explanation,
        format!(
            "Requests of hook `guard` with the prompt \"Run `ls`?\" are allowed without an approver, in every session in `{place}`, \
             unless another rule denies them."
        )
    );
    // After the revocation, the request is sent again.
    hub.revoke(&rule.id, ann()).await.unwrap();
    assert!(hub.rules().await.unwrap().rules.is_empty());
    let operation = session.run("ls");
    let question = asked(&hub).await;
    hub.answer(&question.id, answering("Deny", &question.nonce, "ann")).await.unwrap();
    assert!(!done(operation).await.is_proceed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_creates_an_offered_rule_and_no_other() {
    let hub = Hub::new();
    let session = Session::new("one", LIMIT);
    let _link = session.participant.join(&hub.pipes());
    let operation = session.run("make test");
    let question = asked(&hub).await;
    let offered: Vec<_> = question.offers.iter().map(|offer| (offer.operations.join(" "), offer.scope)).collect();
    assert_eq!(
        offered,
        [("run make test".to_owned(), RuleScope::Session), ("run make *".to_owned(), RuleScope::Session)]
    );
    let with_rule = |option: &str, operation: &str, scope| {
        let answering = answering(option, &question.nonce, "ann");
        let rule = ChosenRule { operations: vec![operation.to_owned()], scope };
        SubmittedAnswer { answer: answering.answer.with_rule(rule), ..answering }
    };
    for (option, operation, scope) in [
        ("Allow always", "run *", RuleScope::Session),
        ("Allow always", "run make *", RuleScope::User),
        ("Allow once", "run make *", RuleScope::Session),
        ("Deny", "run make *", RuleScope::Session),
    ] {
        let refused = hub.answer(&question.id, with_rule(option, operation, scope)).await.unwrap_err();
        assert_eq!(refused.code, HubErrorCode::InvalidOption, "{option} {operation}");
    }
    let decided = hub.answer(&question.id, with_rule("Allow always", "run make *", RuleScope::Session)).await.unwrap();
    assert_eq!(
        (decided.operations.as_slice(), decided.scope),
        (&["run make *".to_owned()][..], Some(RuleScope::Session))
    );
    assert!(done(operation).await.is_proceed());
    assert!(done(session.run("make clean")).await.is_proceed());

    let rule = until(|| hub.rules().now_or_never()?.unwrap().rules.pop()).await;
    assert_eq!((rule.rule.operation.as_deref(), rule.rule.pattern.as_str()), (Some("run make *"), ""));
    hub.revoke(&rule.id, ann()).await.unwrap();
    let operation = session.run("make clean");
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
    let rule = until(|| hub.rules().now_or_never()?.unwrap().rules.pop()).await;
    let ApprovalRule { scope, pattern, by, .. } = &rule.rule;
    assert_eq!((*scope, pattern.as_str(), by), (RuleScope::Session, "Run `ls`?", &Some(ann())));
    hub.revoke(&rule.id, ann()).await.unwrap();
    assert_eq!((hub.rules().await.unwrap().rules, session.coordinator.remembered_approvals().len()), (Vec::new(), 0));
    assert_eq!(hub.revoke(&rule.id, ann()).await.unwrap_err().code, HubErrorCode::NotFound);

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
    assert!(hub.rules().await.unwrap().rules.is_empty());
    let changes: Vec<Value> = session.book.recorded.lock().unwrap().clone();
    let words: Vec<&str> = changes.iter().map(|change| change["approval_rule"]["change"].as_str().unwrap()).collect();
    assert_eq!(words, ["revoked", "added", "revoked"]);
    let without_hook = ApprovalRule { hook: "*".to_owned(), ..deny.clone() };
    assert_eq!(hub.add_rule(without_hook).await.unwrap_err().code, HubErrorCode::InvalidRule);
    let elsewhere = ApprovalRule { session: Some("two".to_owned()), ..deny };
    assert_eq!(hub.add_rule(elsewhere).await.unwrap_err().code, HubErrorCode::Offline);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_reach_the_session_and_its_end_reaches_the_server() {
    let hub = Hub::new();
    let mut session = Session::new("one", LIMIT);
    let link = session.participant.join(&hub.pipes());
    session.participant.set_idle(true);
    until(|| hub.is_idle("one").filter(|idle| *idle)).await;
    hub.send("one", Command::Prompt("Hello".to_owned())).unwrap();
    hub.send("one", Command::Interrupt).unwrap();
    hub.send("one", Command::End).unwrap();
    let busy = hub.send("one", Command::Prompt("Again".to_owned()));
    assert_eq!(busy.map_err(|HubError { code, .. }| code), Err(HubErrorCode::Busy));
    for expected in [Command::Prompt("Hello".to_owned()), Command::Interrupt, Command::End] {
        assert_eq!(tokio::time::timeout(LIMIT, session.commands.recv()).await.unwrap(), Some(expected));
    }
    assert_eq!(until(|| hub.hooks_of("one").filter(|hooks| !hooks.is_empty())).await[0]["name"], "guard");
    link.close("complete").await;
    until(|| hub.connected().is_empty().then_some(())).await;
    assert_eq!(hub.send("one", Command::Interrupt).unwrap_err().code, HubErrorCode::Offline);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_server_has_the_door_and_that_of_a_dead_one_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("server");
    std::fs::create_dir(&place).unwrap();
    // A leftover of a server that is gone.
    drop(std::os::unix::net::UnixListener::bind(place.join(SOCKET)).unwrap());
    let door = LinkListener::open(&place, Hub::new()).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(door.socket())), (0o700, 0o600));
    let second = LinkListener::open(&place, Hub::new());
    assert!(matches!(second, Err(LinkListenerError::Running(_))), "{second:?}");
    assert!(amplifier_link::is_open(&place));
    drop(door);
    assert!(!amplifier_link::is_open(&place));
    LinkListener::open(&place, Hub::new()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_too_large_for_a_line_is_cut_and_says_so() {
    let hub = Hub::new();
    let (participant, _commands) = LinkClient::new(LinkClientOptions {
        workspace: "/".into(),
        run: "big-1".to_owned(),
        name: None,
        takes_prompts: false,
        record: None,
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
    assert!(question.preview.truncated);
    assert!(question.preview.warnings[0].starts_with("this is too large to be shown in full"));
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
    assert!(server.hub.flood().is_some_and(|busy| busy.hook == "guard" && busy.pattern == "Run `step *`?"));
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
    session.book.connect(&hub).await;
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
