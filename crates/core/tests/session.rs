//! The routing of hook results by a session, beyond the cases in `conformance/`.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use amplifier_core::testing::{CollectingDisplay, EventRecorder, ScriptedApprovals};
use amplifier_core::{
    Actor, AddedContext, Approval, ApprovalAnswer, ApprovalDecision, ApprovalDecisionEntry, ApprovalError,
    ApprovalOption, ApprovalRuleSource, ApprovalRules, ApprovalSystem, AuditEntry, Contribution,
    ContributorRegistration, Conversation, Coordinator, CoordinatorBuilder, DecisionBasis, DefaultDecision, Display,
    DisplayMessage, Effect, FailedContribution, HookRegistry, HookResult, Injection, InvalidRules, Level, Map,
    MemoryAudit, OpenRequest, OverBudget, Placement, PortError, ReportedDecision, SessionConfig, TOOL_PRE,
    TokenCounter, ToolPre, Verdict, approval_channel, data,
};
use futures::FutureExt;
use serde_json::{Value, json};

fn tool_pre() -> ToolPre {
    ToolPre::new("Bash", Map::new())
}

/// A session with one hook before every tool, that answers so.
fn answering(answer: impl Into<HookResult>) -> CoordinatorBuilder {
    let (hooks, answer) = (HookRegistry::new(), answer.into());
    hooks.hook(TOOL_PRE).named("hook").run(move |_| answer.clone());
    Coordinator::builder(hooks)
}

// ---- reasons for denials -------------------------------------------------------------------------------------------

#[tokio::test]
async fn the_model_reads_the_reason_for_a_denial_and_an_allow_has_none() {
    let long = "x".repeat(3_000);
    let kept = format!("\nReason: {}…", "x".repeat(ApprovalAnswer::MAX_REASON_CHARS));
    for (label, reason, expected) in [
        ("Deny", "Use make.", Some("\nReason: Use make.")),
        ("Deny", " two\nlines\u{1b}[2K ", Some("\nReason: two\nlines[2K")),
        ("Deny", " \n", Some("")),
        ("Deny", long.as_str(), Some(kept.as_str())),
        ("Allow", "Use make.", None),
    ] {
        let (approvals, mut inbox) = approval_channel();
        let session = answering(HookResult::ask("Go?")).approvals(approvals).build();
        let answer = ApprovalAnswer::by(label, "ann", "test").because(reason);
        let answered = async { inbox.next().await.unwrap().answer(answer).unwrap() };
        let (verdict, ()) = tokio::join!(session.emit(TOOL_PRE, tool_pre()), answered);
        match expected {
            None => assert!(verdict.is_proceed(), "{verdict}"),
            Some(text) => assert_eq!(verdict.to_string(), format!("Denied by hook hook: User denied: Go?{text}")),
        }
    }
}

// ---- output and messages -------------------------------------------------------------------------------------------

/// The messages and outputs of a display.
fn shown(answer: HookResult) -> (Vec<String>, Vec<(String, String)>) {
    let display = CollectingDisplay::new();
    let session = answering(answer).display(display.clone()).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    (display.messages().into_iter().map(|message| message.text).collect(), display.outputs())
}

#[test]
fn what_a_hook_printed_is_shown_unless_suppressed() {
    let answer = || HookResult::proceed().with_output("checked 3 files").info("all fine");
    let printed = ("hook:hook".to_owned(), "checked 3 files".to_owned());
    assert_eq!(shown(answer()), (vec!["all fine".to_owned()], vec![printed]));
    assert_eq!(shown(answer().suppress_output()), (vec!["all fine".to_owned()], vec![]), "a message is never hidden");
}

#[test]
fn a_display_without_a_transcript_shows_output_as_a_message() {
    #[derive(Clone)]
    struct Screen(CollectingDisplay);
    impl Display for Screen {
        async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
            self.0.show_message(message).await
        }
    }
    let display = CollectingDisplay::new();
    let session = answering(HookResult::proceed().with_output("hi")).display(Screen(display.clone())).build();
    assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    let message = DisplayMessage { text: "hi".to_owned(), level: Level::Info, source: "hook:hook".to_owned() };
    assert_eq!(display.messages(), [message]);
}

#[test]
fn a_display_is_told_each_decision_with_the_rule_that_made_it() {
    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<ReportedDecision>>>);
    impl Display for Screen {
        async fn show_message(&self, _: &DisplayMessage) -> Result<(), PortError> {
            Ok(())
        }

        async fn show_decision(&self, decided: &ReportedDecision) -> Result<(), PortError> {
            self.0.lock().unwrap().push(decided.clone());
            Ok(())
        }
    }
    let told = |rules: &str| {
        let screen = Screen::default();
        let rules = ApprovalRules::from_json(rules).unwrap();
        let builder = answering(HookResult::ask("Really?")).display(screen.clone()).approval_rules(rules);
        let verdict = builder.build().emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
        let told = screen.0.lock().unwrap().clone();
        let [ReportedDecision { hook, prompt, decision, .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!((&**hook, prompt.as_str(), decision.granted), ("hook", "Really?", verdict.is_proceed()));
        (decision.granted, decision.basis, decision.rule.clone())
    };
    let rule = |rule: &str| Some(rule.to_owned());
    assert_eq!(told(r#"{ "hook:Real*": "allow" }"#), (true, DecisionBasis::Rule, rule("hook:Real*")));
    // Of several rules, the one that denies has decided.
    let both = r#"{ "hook:*": "allow", "hook:Really?": "deny" }"#;
    assert_eq!(told(both), (false, DecisionBasis::Rule, rule("hook:Really?")));
    assert_eq!(told("{}"), (false, DecisionBasis::NoApprovalSystem, None));
}

#[test]
fn a_display_is_told_what_was_added_to_the_conversation_and_nothing_else() {
    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<(String, usize, Placement)>>>);
    impl Display for Screen {
        async fn show_message(&self, _: &DisplayMessage) -> Result<(), PortError> {
            Ok(())
        }

        async fn show_context(&self, added: &AddedContext) -> Result<(), PortError> {
            self.0.lock().unwrap().push((added.hook.to_string(), added.tokens, added.placement));
            Ok(())
        }
    }
    let told = |answer: HookResult, limit: Option<usize>, has_context: bool| {
        let screen = Screen::default();
        let config = SessionConfig { injection_size_limit: limit, ..SessionConfig::default() };
        let builder = answering(answer).display(screen.clone()).config(config).tokens(Words);
        let builder = if has_context { builder.context(Conversation::new()) } else { builder };
        assert!(builder.build().emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
        screen.0.lock().unwrap().clone()
    };
    let note = || HookResult::inject("mind the gap");
    assert_eq!(told(note(), None, true), [("hook".to_owned(), 3, Placement::History)]);
    assert_eq!(
        told(HookResult::inject(Injection::new("mind the gap").ephemeral()), None, true),
        [("hook".to_owned(), 3, Placement::NextCall)]
    );
    for (answer, limit, has_context) in [
        (note(), Some(3), true),
        (note(), None, false),
        (HookResult::inject(""), None, true),
        (HookResult::proceed(), None, true),
    ] {
        assert_eq!(told(answer, limit, has_context), []);
    }
}

// ---- tokens --------------------------------------------------------------------------------------------------------

/// Every word is a token.
struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

fn truncating(budget: usize) -> SessionConfig {
    let injection_budget_per_turn = Some(budget);
    SessionConfig { injection_budget_per_turn, over_budget: OverBudget::Truncate, ..SessionConfig::default() }
}

#[test]
fn the_sessions_own_tokenizer_decides_where_an_injection_is_cut() {
    let text = "one two three four five";
    for (budget, kept) in [(1, 1), (3, 3), (5, 5), (9, 5)] {
        let conversation = Conversation::new();
        let builder = answering(HookResult::inject(text)).tokens(Words).config(truncating(budget));
        let session = builder.context(conversation.clone()).build();
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
        let said = &conversation.history()[0].content;
        assert!(text.starts_with(said.as_str()), "{said}");
        assert_eq!(Words.count(said), kept);
    }
}

#[test]
fn a_tokenizer_that_panics_does_not_take_the_agent_down() {
    struct Broken;
    impl TokenCounter for Broken {
        fn count(&self, _: &str) -> usize {
            panic!("boom");
        }
    }
    let session = answering(HookResult::inject("note")).tokens(Broken).build();
    for _ in 0..2 {
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    }
}

// ---- contributions -------------------------------------------------------------------------------------------------

fn contribution(name: &str, value: impl Into<Value>) -> Contribution {
    Contribution { name: name.to_owned(), value: value.into() }
}

#[tokio::test(start_paused = true)]
async fn contributions_come_in_order_and_failures_are_skipped() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    session.register_contributor("tools", "later", async || {
        tokio::time::sleep(Duration::from_secs(5)).await;
        json!("first")
    });
    session.register_contributor("tools", "nothing", async || None::<Value>);
    session.register_contributor("tools", "failing", async || Err::<Value, _>("no disk"));
    session.register_contributor("tools", "panicking", async || -> Value { panic!("boom") });
    session.register_contributor("tools", "early", || -> std::future::Ready<Value> { panic!("boom") });
    session.register_contributor("tools", "hanging", pending::<Value>);
    session.register_contributor("tools", "sound", async || Ok::<_, PortError>(Some(json!({ "n": 1 }))));
    session.register_contributor("other", "elsewhere", async || json!("not asked for"));

    let given = session.collect_contributions("tools").await;
    assert_eq!(given.values, [contribution("later", "first"), contribution("sound", json!({ "n": 1 }))]);
    let failure = |name: &str, error: &str| FailedContribution { name: name.to_owned(), error: error.to_owned() };
    assert_eq!(
        given.failures,
        [
            failure("failing", "no disk"),
            failure("panicking", "panicked: boom"),
            failure("early", "panicked: boom"),
            failure("hanging", "gave nothing within 30s"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn every_contributor_is_called_before_one_is_waited_for() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    let called = Arc::new(OnceLock::new());
    let seen = called.clone();
    session.register_contributor("tools", "first", move || {
        let seen = seen.clone();
        async move { json!(seen.get().is_some()) }
    });
    session.register_contributor("tools", "second", move || {
        called.set(()).unwrap();
        json!(2)
    });
    let given = session.collect_contributions("tools").await;
    assert_eq!(given.values, [contribution("first", true), contribution("second", 2)]);
}

#[tokio::test]
async fn a_contributor_can_be_taken_away() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    let first = session.register_contributor("tools", "first", async || json!(1));
    session.clone().register_contributor("tools", "second", async || json!(2));
    first.unregister();
    first.unregister();
    assert_eq!(session.collect_contributions("tools").await.values, [contribution("second", 2)]);
    assert_eq!(session.collect_contributions("no-such-channel").await.values, []);
    drop(session);
    first.unregister();
}

#[tokio::test]
async fn contributors_may_answer_at_once_or_later() {
    let session = Coordinator::builder(HookRegistry::new()).build();
    session.register_contributor("tools", "now", || json!(1));
    session.register_contributor("tools", "later", async || json!(2));
    session.register_contributor("tools", "much later", || async {
        tokio::task::yield_now().await;
        Some(json!(3))
    });
    session.register_contributor("tools", "nothing", || None::<Value>);
    session.register_contributor("tools", "failing", || Err::<Value, _>("no disk"));
    session.register_contributor("tools", "panicking", || -> Value { panic!("boom") });
    let given = session.collect_contributions("tools").await;
    let values = [contribution("now", 1), contribution("later", 2), contribution("much later", 3)];
    assert_eq!(given.values, values);
    let failure = |name: &str, error: &str| FailedContribution { name: name.to_owned(), error: error.to_owned() };
    assert_eq!(given.failures, [failure("failing", "no disk"), failure("panicking", "panicked: boom")]);
}

#[test]
fn a_contributor_may_take_another_one_away_while_it_is_dropped() {
    struct Takes(ContributorRegistration);
    impl Drop for Takes {
        fn drop(&mut self) {
            self.0.unregister();
        }
    }
    let session = Coordinator::builder(HookRegistry::new()).build();
    let other = Takes(session.register_contributor("tools", "other", || json!(1)));
    let first = session.register_contributor("tools", "first", move || json!(size_of_val(&other)));
    session.register_contributor("tools", "last", || json!(3));
    // On a thread of its own, so that a deadlock is a failure and not a test that never ends.
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        first.unregister();
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(30)).expect("no deadlock");
    let given = session.collect_contributions("tools").now_or_never().unwrap();
    assert_eq!(given.values, [contribution("last", 3)]);
}

#[test]
fn a_contributor_that_leaves_and_panics_while_it_is_dropped_does_not_reach_the_agent() {
    struct Bomb(OnceLock<ContributorRegistration>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("bomb");
        }
    }
    let session = Coordinator::builder(HookRegistry::new()).build();
    let bomb = Arc::new(Bomb(OnceLock::new()));
    let own = Arc::downgrade(&bomb);
    let leaving = session.register_contributor("tools", "leaving", move || {
        bomb.0.get().unwrap().unregister();
        json!(1)
    });
    own.upgrade().unwrap().0.set(leaving).unwrap();
    let collected = catch_unwind(AssertUnwindSafe(|| session.collect_contributions("tools").now_or_never().unwrap()));
    assert_eq!(collected.expect("no panic").values, [contribution("leaving", 1)]);
    assert_eq!(own.strong_count(), 0);
}

// ---- approvals -----------------------------------------------------------------------------------------------------

#[test]
fn the_person_sees_what_will_run() {
    let person = ScriptedApprovals::new(["Allow"]);
    let session = answering(HookResult::ask("Go?")).approvals(person.clone()).build();
    session.hooks().on(TOOL_PRE, |_| HookResult::set("tool_input", json!({ "command": "ls" })));
    let verdict = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap();
    let Verdict::Proceed(data) = verdict else { panic!("{verdict}") };
    let request = &person.requests()[0];
    assert_eq!((&request.data, request.digest), (&data, data.digest().unwrap()));
    assert_eq!(data["tool_input"]["command"], "ls");
}

#[test]
fn a_session_can_forget_lasting_answers() {
    let person = ScriptedApprovals::new(["Allow always", "Deny"]);
    let approval = Approval::new("Go?").options(["Allow always", "Deny"]);
    let session = answering(HookResult::ask(approval)).approvals(person.clone()).build();
    let emit = || session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
    assert_eq!((emit(), emit()), (true, true));
    session.forget_answers();
    assert_eq!((emit(), person.requests().len()), (false, 2));
}

/// Returns the number of requests in two emissions with the answer "Allow always".
fn questions(register: impl Fn(&HookRegistry, HookResult)) -> usize {
    let person = ScriptedApprovals::new(["Allow always"]);
    let hooks = HookRegistry::new();
    register(&hooks, HookResult::ask(Approval::new("Go?").options(["Allow always", "Deny"])));
    let session = Coordinator::builder(hooks).approvals(person.clone()).build();
    for _ in 0..2 {
        assert!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed());
    }
    person.requests().len()
}

#[test]
fn hooks_that_nobody_named_share_no_lasting_answer() {
    let unnamed = |hooks: &HookRegistry, ask: HookResult| {
        let again = ask.clone();
        let first = hooks.on(TOOL_PRE, move |_| ask.clone());
        hooks.on(TOOL_PRE, move |_| again.clone());
        let names: Vec<_> = hooks.list_handlers().iter().map(|info| info.name.to_string()).collect();
        let name = "hooks_that_nobody_named_share_no_lasting_answer::closure";
        assert_eq!(names, [name.to_owned(), format!("{name}#2")]);
        first
    };
    assert_eq!(questions(|hooks, ask| drop(unnamed(hooks, ask))), 2);

    // Nor does one that comes later inherit the answers of one that has gone.
    let hooks = HookRegistry::new();
    unnamed(&hooks, HookResult::proceed()).unregister();
    for _ in 0..2 {
        hooks.hook(TOOL_PRE).handler(EventRecorder::new()).unregister();
    }
    hooks.hook(TOOL_PRE).handler(EventRecorder::new());
    assert_eq!(&*hooks.list_handlers().last().unwrap().name, "EventRecorder#3");
}

#[test]
fn hooks_of_the_same_given_name_share_lasting_answers() {
    let named = |hooks: &HookRegistry, ask: HookResult| {
        let again = ask.clone();
        hooks.hook(TOOL_PRE).named("guard").run(move |_| ask.clone());
        hooks.hook(TOOL_PRE).named("guard").run(move |_| again.clone());
    };
    assert_eq!(questions(named), 1);
}

#[test]
fn what_a_person_typed_is_found_among_the_options() {
    let (approvals, mut inbox) = approval_channel();
    let approval = Approval::new("Go?").options(["Allow once", "Deny", "Größer", "go", "GO", "7"]);
    let session = answering(HookResult::ask(approval)).approvals(approvals).build();
    let mut operation = std::pin::pin!(session.emit(TOOL_PRE, tool_pre()));
    assert!(operation.as_mut().now_or_never().is_none());
    let question = inbox.next().now_or_never().unwrap().unwrap();
    for (typed, meant) in [
        ("1", Some("Allow once")),
        (" 2\n", Some("Deny")),
        ("6", Some("7")),
        ("7", Some("7")),
        ("Allow once", Some("Allow once")),
        ("allow ONCE ", Some("Allow once")),
        ("GRÖSSER", None),
        ("GRÖßER", Some("Größer")),
        ("deny", Some("Deny")),
        ("go", Some("go")),
        ("GO", Some("GO")),
        ("Go", None),
        ("0", None),
        ("8", None),
        ("-1", None),
        ("1.0", None),
        ("99999999999999999999999999", None),
        ("", None),
        (" ", None),
        ("allow", None),
        ("Allow once, please", None),
    ] {
        assert_eq!(question.request.option(typed).map(|option| option.label.as_str()), meant, "{typed:?}");
    }
    let label = question.request.option("1").unwrap().label.clone();
    question.answer(label).unwrap();
    assert!(operation.now_or_never().unwrap().is_proceed());
}

fn process(session: &Coordinator, event: &str, answer: HookResult) -> Verdict {
    let event = event.parse().unwrap();
    let routed = session.process_hook_result(&event, "hook", answer, data! { "n": 1 });
    routed.now_or_never().unwrap().unwrap()
}

#[test]
fn a_question_with_two_meanings_is_not_granted_when_processed_alone() {
    let options = [ApprovalOption::new("Go", Effect::AllowOnce), ApprovalOption::new("Go", Effect::Deny)];
    let person = ScriptedApprovals::new(["Go"]);
    let session = Coordinator::builder(HookRegistry::new()).approvals(person).build();
    let verdict = process(&session, "tool:pre", HookResult::ask(Approval::new("Go?").options(options)));
    assert!(!verdict.is_proceed());
}

#[test]
fn answers_processed_alone_have_no_effect_at_events_that_are_only_observed() {
    let person = ScriptedApprovals::new(["Deny"]);
    let session = Coordinator::builder(HookRegistry::new()).approvals(person.clone()).build();
    for answer in [HookResult::deny("no"), HookResult::set("n", 2), HookResult::ask("Go?")] {
        assert_eq!(process(&session, "session:end", answer), Verdict::Proceed(data! { "n": 1 }));
    }
    assert_eq!(person.requests().len(), 0);
}

fn rules_file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rules-{name}.json"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn rules_that_cannot_be_used_say_why() {
    let load = |name: &str, text: &str| ApprovalRules::load(rules_file(name, text));
    let missing = ApprovalRules::load(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-such-file.json"));
    assert!(matches!(missing, Err(InvalidRules::Io { .. })));
    for (name, text) in [
        ("empty", ""),
        ("list", "[]"),
        ("cut", r#"{ "guard:*": "allow""#),
        ("word", r#"{ "guard:*": "maybe" }"#),
        ("type", r#"{ "guard:*": true }"#),
    ] {
        let error = load(name, text).unwrap_err();
        assert!(matches!(error, InvalidRules::Form(_)), "{text}: {error}");
    }
    for rule in ["everything", ":*", "*:*"] {
        let error = load("hook", &format!(r#"{{ "guard:*": "allow", "{rule}": "allow" }}"#)).unwrap_err();
        assert!(error.to_string().contains(&format!("invalid rule `{rule}`: missing hook name")), "{error}");
    }
    assert_eq!(load("none", "{}").unwrap(), ApprovalRules::default());
}

#[test]
fn rules_from_a_file_answer_for_the_person() {
    let rules = ApprovalRules::load(rules_file("used", r#"{ "hook:Write *?": "allow" }"#)).unwrap();
    for (prompt, proceeds) in [("Write a.txt?", true), ("Delete a.txt?", false)] {
        let session = answering(HookResult::ask(prompt)).approval_rules(rules.clone()).build();
        assert_eq!(session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed(), proceeds, "{prompt}");
    }
}

#[test]
fn a_decision_without_a_request_is_recorded_with_its_prompt() {
    let rules = ApprovalRules::load(rules_file("recorded", r#"{ "hook:Write *?": "allow" }"#)).unwrap();
    let prompts = |prompt: &str| {
        let audit = MemoryAudit::new();
        let session =
            answering(HookResult::ask(prompt)).approval_rules(rules.clone()).approvals(Nobody).audit(audit.clone());
        let is_allowed = session.build().emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
        let decided = audit.records().into_iter().find_map(|record| match record.entry {
            AuditEntry::ApprovalDecision(decided) => Some(decided),
            _ => None,
        });
        let ApprovalDecisionEntry { id, prompt, decision, .. } = decided.unwrap();
        assert_eq!(decision.granted, is_allowed);
        (id, prompt, decision.basis)
    };
    assert_eq!(prompts("Write a.txt?"), (None, Some("Write a.txt?".to_owned()), DecisionBasis::Rule));
    // A request has a record of its own.
    assert_eq!(prompts("Delete a.txt?"), (Some(1), None, DecisionBasis::NoApprovalSystem));
}

/// Nobody can be asked.
struct Nobody;

impl ApprovalSystem for Nobody {
    async fn request_approval(&self, _: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        Err(ApprovalError::Unavailable("no terminal".to_owned()))
    }
}

// ---- who answered --------------------------------------------------------------------------------------------------

#[tokio::test]
async fn who_answered_is_told_recorded_and_remembered_until_it_is_taken_back() {
    let audit = MemoryAudit::new();
    let (approvals, mut inbox) = approval_channel();
    let session = answering(HookResult::ask(Approval::new("Really?").options(["Allow always", "Deny"])))
        .approvals(approvals)
        .audit(audit.clone())
        .build();
    let person = tokio::spawn(async move {
        let question = inbox.next().await.unwrap();
        let request = question.request.clone();
        question.answer(ApprovalAnswer::by("Allow always", "ann", "console")).unwrap();
        (request.closed().await, inbox)
    });
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    let ann = Actor { name: "ann".to_owned(), via: "console".to_owned() };
    let (settled, mut inbox) = person.await.unwrap();
    let expected = ApprovalDecision {
        granted: true,
        basis: DecisionBasis::Answer,
        reason: "User allowed: Really?".to_owned(),
        by: Some(ann.clone()),
        rule: None,
        operations: Vec::new(),
        scope: None,
        effect: Some(Effect::AllowAlways),
    };
    assert_eq!(settled, expected);

    // The same question again is not asked, and the record says whose answer counts.
    assert!(session.emit(TOOL_PRE, tool_pre()).await.is_proceed());
    let decisions: Vec<_> = audit
        .records()
        .into_iter()
        .filter_map(|record| match record.entry {
            AuditEntry::ApprovalDecision(ApprovalDecisionEntry { decision, .. }) => Some((decision.basis, decision.by)),
            _ => None,
        })
        .collect();
    assert_eq!(decisions, [(DecisionBasis::Answer, Some(ann.clone())), (DecisionBasis::Remembered, Some(ann.clone()))]);

    let remembered = session.remembered_approvals();
    assert_eq!(
        remembered.iter().map(|rule| (rule.pattern.as_str(), rule.decision)).collect::<Vec<_>>(),
        [("Really?", DefaultDecision::Allow)]
    );
    assert!(session.forget_approval(&remembered[0]));
    assert!(!session.forget_approval(&remembered[0]), "it is taken back already");
    let again = tokio::spawn(async move { inbox.next().await.unwrap().answer("Deny").unwrap() });
    assert!(!session.emit(TOOL_PRE, tool_pre()).await.is_proceed(), "the person is asked again");
    again.await.unwrap();
}

#[tokio::test]
async fn a_question_that_is_withdrawn_is_closed_as_cancelled() {
    let (approvals, mut inbox) = approval_channel();
    let session = answering(HookResult::ask("Really?")).approvals(approvals).build();
    let asking = tokio::spawn(async move { session.emit(TOOL_PRE, tool_pre()).await });
    let question = inbox.next().await.unwrap();
    asking.abort();
    let settled = question.request.closed().await;
    assert_eq!((settled.granted, settled.basis), (false, DecisionBasis::Cancelled));
}

#[test]
fn rules_can_be_put_in_force_while_a_session_runs() {
    let session = answering(HookResult::ask("Really?")).build();
    let allowed = |session: &Coordinator| session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
    assert!(!allowed(&session), "nobody can be asked");
    let child = session.child().build();
    session.set_session_rules(ApprovalRules::from_json(r#"{ "hook:Really?": "allow" }"#).unwrap());
    assert!(allowed(&session) && allowed(&child));
}

/// Rules that somebody changes while a session runs.
#[derive(Clone, Default)]
struct Changing(Arc<Mutex<Option<ApprovalRules>>>);

impl Changing {
    fn set(&self, rules: Value) {
        *self.0.lock().unwrap() = Some(ApprovalRules::from_json(&rules.to_string()).unwrap());
    }

    fn spoil(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl ApprovalRuleSource for Changing {
    async fn active_rules(&self) -> Result<ApprovalRules, PortError> {
        self.0.lock().unwrap().clone().ok_or_else(|| "it is cut off".into())
    }
}

#[test]
fn a_rule_counts_from_when_it_is_given_until_it_is_taken_back() {
    let rules = Changing::default();
    let person = ScriptedApprovals::new(["Allow"]);
    let session = answering(HookResult::ask("Really?")).approval_rules(rules.clone()).approvals(person.clone()).build();
    let child = session.child().build();
    // Whether it runs, and how many questions the person has had by then.
    let check = |expected: (bool, usize)| {
        for session in [&session, &child] {
            let proceeds = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
            assert_eq!(proceeds, expected.0);
        }
        assert_eq!(person.requests().len(), expected.1);
    };
    rules.set(json!({ "hook:Really?": "allow" }));
    check((true, 0));
    rules.set(json!({}));
    check((true, 2));
    rules.set(json!({ "hook:*": "deny", "hook:Really?": "allow" }));
    check((false, 2));
    // What was denied stays denied while nobody can say whether it still is.
    rules.spoil();
    check((false, 2));
    rules.set(json!({ "hook:Really?": "allow" }));
    check((true, 2));
    rules.spoil();
    check((true, 4));
    // A no for the session counts all the same; a yes does not.
    session.set_session_rules(ApprovalRules::from_json(r#"{ "hook:*": "deny" }"#).unwrap());
    check((false, 4));
    session.set_session_rules(ApprovalRules::from_json(r#"{ "hook:*": "allow" }"#).unwrap());
    check((true, 6));
    rules.set(json!({}));
    check((true, 6));
}

#[test]
fn what_was_read_before_the_session_stays_denied_if_it_can_never_be_read_again() {
    struct Spoilt;

    impl ApprovalRuleSource for Spoilt {
        async fn active_rules(&self) -> Result<ApprovalRules, PortError> {
            Err("it is cut off".into())
        }

        fn last_known_rules(&self) -> ApprovalRules {
            ApprovalRules::from_json(r#"{ "hook:Really?": "deny", "hook:Now?": "allow" }"#).unwrap()
        }
    }

    for (prompt, expected) in [("Really?", (false, 0)), ("Now?", (true, 1))] {
        let person = ScriptedApprovals::new(["Allow"]);
        let session = answering(HookResult::ask(prompt)).approval_rules(Spoilt).approvals(person.clone()).build();
        let proceeds = session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
        assert_eq!((proceeds, person.requests().len()), expected, "{prompt}");
    }
}

#[test]
fn while_rules_cannot_be_read_an_answer_that_lasts_is_asked_again_and_no_answer_is_a_no() {
    let rules = Changing::default();
    rules.set(json!({}));
    let asks = HookResult::ask(Approval::new("Really?").options(["Allow always", "Deny always"]).allow_by_default());
    let person = ScriptedApprovals::new(["Allow always"]);
    let session = answering(asks).approval_rules(rules.clone()).approvals(person.clone()).build();
    let proceeds = || session.emit(TOOL_PRE, tool_pre()).now_or_never().unwrap().is_proceed();
    assert!(proceeds() && proceeds());
    assert_eq!(person.requests().len(), 1);
    rules.spoil();
    assert!(proceeds());
    assert_eq!(person.requests().len(), 2, "it is asked again");
    let asked = person.requests();
    let told: Vec<_> = asked.iter().map(|request| (request.default, request.warning.as_deref())).collect();
    let warning = "approval rules cannot be read, and one may deny this";
    assert_eq!(told, [(DefaultDecision::Allow, None), (DefaultDecision::Deny, Some(warning))]);
}
