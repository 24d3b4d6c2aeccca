//! The hub's state, tested without I/O.

use amplifier_core::{
    ActionPreview, Actor, ApprovalAnswer, ApprovalDecision, ApprovalOption, ApprovalRequest, ApprovalRule,
    DecisionBasis, DefaultDecision, Digest, Effect, PreviewRow, PreviewRowKind, RuleScope,
};
use amplifier_link::{
    AnswerScope, AnswerStatus, ApprovalId, OpenApproval, ReloadResult, ReloadStatus, ServerMessage, SessionHello,
    SessionMessage, VERSION,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::HubErrorCode::{Answered, Busy, Closed, InvalidOption, Late, NoPrompts, Nonce, NotFound, Offline};
use super::connected_sessions::{AnswerReply, ConnectedSessions};
use super::{Hub, HubErrorCode, HubEvent, SubmittedAnswer};
use crate::api_types::SessionHost;

const BEGIN: Timestamp = Timestamp::UNIX_EPOCH;

fn after(seconds: i64) -> Timestamp {
    BEGIN + SignedDuration::from_secs(seconds)
}

fn hello(session: &str) -> SessionHello {
    SessionHello {
        version: VERSION,
        session: session.to_owned(),
        run: "r".to_owned(),
        name: None,
        pid: 7,
        workspace: "/work".to_owned(),
        machine: None,
        takes_prompts: true,
        idle: true,
        started_at: BEGIN,
    }
}

fn reply(id: &ApprovalId, status: AnswerStatus, decision: Option<ApprovalDecision>) -> AnswerReply {
    AnswerReply { id: id.clone(), status, decision, by: None }
}

fn digest() -> Digest {
    "0".repeat(64).parse().unwrap()
}

fn asks(number: u64, hook: &str, prompt: &str, at: Timestamp) -> OpenApproval {
    let option = |label: &str, effect| ApprovalOption { label: label.to_owned(), effect };
    OpenApproval {
        id: ApprovalId::new("s", "forged", number),
        session: "forged".to_owned(),
        parent_session: None,
        session_name: None,
        workspace: "/work".to_owned(),
        machine: None,
        request: ApprovalRequest {
            number,
            hook: hook.to_owned(),
            event: "tool:pre".parse().unwrap(),
            prompt: prompt.to_owned(),
            reason: None,
            warning: None,
            options: vec![
                option("Allow", Effect::AllowOnce),
                option("Always", Effect::AllowAlways),
                option("Deny", Effect::Deny),
            ],
            timeout: std::time::Duration::from_secs(300),
            default: DefaultDecision::Deny,
            digest: digest(),
            created_at: at,
            preview: ActionPreview::default(),
            offers: Vec::new(),
        },
        deadline: at + SignedDuration::from_secs(300),
        truncated: false,
        nonce: "forged".to_owned(),
    }
}

/// Returns the id of a request of the session itself.
fn own(number: u64) -> ApprovalId {
    ApprovalId::new("s", "r", number)
}

fn ann() -> Actor {
    Actor { name: "ann".to_owned(), via: "console".to_owned() }
}

fn answering(option: &str, nonce: &str, scope: AnswerScope) -> SubmittedAnswer {
    let answer = ApprovalAnswer { by: Some(ann()), ..option.into() };
    SubmittedAnswer { answer, nonce: nonce.to_owned(), scope }
}

fn outcome(basis: &str, by: Option<Actor>) -> ApprovalDecision {
    let basis: DecisionBasis = basis.parse().unwrap();
    ApprovalDecision { by, ..ApprovalDecision::new(basis == DecisionBasis::Answer, basis, "so it is") }
}

/// Returns a hub with one session, `s`, and its connection.
fn with_session() -> (ConnectedSessions<&'static str>, u64) {
    let mut state = ConnectedSessions::default();
    let (connection, _) = state.join(hello("s"), SessionHost::Process, Some(7), "link", BEGIN).unwrap();
    (state, connection)
}

fn id(text: &str) -> ApprovalId {
    text.parse().unwrap()
}

fn refused(
    state: &mut ConnectedSessions<&'static str>,
    id: &str,
    answer: &SubmittedAnswer,
) -> (HubErrorCode, Option<Actor>) {
    match state.answer(&self::id(id), answer) {
        Ok(_) => panic!("it is delivered"),
        Err(error) => (error.code, error.by),
    }
}

#[test]
fn what_a_session_says_about_itself_in_a_question_does_not_count() {
    let (mut state, connection) = with_session();
    state.add_request(connection, asks(1, "guard", "Go?", BEGIN), "n1".to_owned(), BEGIN);
    let asked = state.approval(&id("s.r.1")).unwrap();
    assert_eq!((asked.session.as_str(), asked.nonce.as_str()), ("s", "n1"));
    assert_eq!(state.session("s").unwrap().pending, 1);
}

#[test]
fn an_answer_needs_the_nonce_and_an_option() {
    let (mut state, connection) = with_session();
    state.add_request(connection, asks(1, "guard", "Delete *?", BEGIN), "n1".to_owned(), BEGIN);
    let mut check = |id: &str, option: &str, nonce: &str, scope, expected: HubErrorCode| {
        assert_eq!(refused(&mut state, id, &answering(option, nonce, scope)).0, expected, "{id} {option} {nonce}");
    };
    check("s.r.2", "Allow", "n1", AnswerScope::Once, NotFound);
    check("t.r.1", "Allow", "n1", AnswerScope::Once, NotFound);
    check("s.r.1", "Allow", "", AnswerScope::Once, Nonce);
    check("s.r.1", "Allow", "n2", AnswerScope::Once, Nonce);
    check("s.r.1", "allow", "n1", AnswerScope::Once, InvalidOption);
    check("s.r.1", "Allow", "n1", AnswerScope::Project, InvalidOption);
    let delivery = state.answer(&id("s.r.1"), &answering("Allow", "n1", AnswerScope::Once)).unwrap();
    assert_eq!((delivery.link, delivery.id, delivery.decided), ("link", own(1), None));
}

#[test]
fn the_first_answer_wins_and_the_second_learns_who_was_faster() {
    let (mut state, connection) = with_session();
    state.add_request(connection, asks(1, "guard", "Go?", BEGIN), "n1".to_owned(), BEGIN);
    let (taken, changes) = state.finish_answer(
        connection,
        reply(&own(1), AnswerStatus::Taken, Some(outcome("answer", Some(ann())))),
        after(1),
    );
    assert_eq!(taken.unwrap().by, Some(ann()));
    assert!(matches!(&changes[0], HubEvent::ApprovalClosed { id, .. } if *id == own(1)), "{changes:?}");
    assert!(state.pending().is_empty());
    // The second answer is sent to the session all the same, which records it.
    let second = state.answer(&id("s.r.1"), &answering("Deny", "n1", AnswerScope::Once)).unwrap();
    assert!(second.decided.is_some());
    let second = reply(&own(1), AnswerStatus::Answered, Some(outcome("answer", Some(ann()))));
    let (second, changes) = state.finish_answer(connection, second, after(2));
    let second = second.unwrap_err();
    assert_eq!((second.code, second.by, changes.len()), (Answered, Some(ann()), 0));
    // A session that is gone receives nothing.
    state.leave(connection, after(3));
    assert_eq!(refused(&mut state, "s.r.1", &answering("Deny", "n1", AnswerScope::Once)), (Answered, Some(ann())));
    assert_eq!(refused(&mut state, "s.r.1", &answering("Deny", "other", AnswerScope::Once)).0, Nonce);
}

#[test]
fn an_answer_after_the_time_limit_is_late() {
    let (mut state, connection) = with_session();
    state.add_request(connection, asks(1, "guard", "Go?", BEGIN), "n1".to_owned(), BEGIN);
    state.close_request(connection, &own(1), outcome("timeout", None), after(300));
    let (late, _) = state.finish_answer(connection, reply(&own(1), AnswerStatus::Late, None), after(301));
    assert_eq!(late.unwrap_err().code, Late);
}

#[test]
fn a_session_that_comes_back_announces_its_questions_again_with_other_nonces() {
    let (mut state, connection) = with_session();
    state.add_request(connection, asks(1, "guard", "Go?", BEGIN), "n1".to_owned(), BEGIN);
    let changes = state.leave(connection, after(1));
    let is_closed = |change: &HubEvent| matches!(change, HubEvent::ApprovalClosed { decided, .. } if decided.basis == DecisionBasis::Disconnected);
    assert!(changes.iter().any(is_closed), "{changes:?}");
    assert_eq!((state.pending().len(), state.connected().len()), (0, 0));
    assert_eq!(refused(&mut state, "s.r.1", &answering("Allow", "n1", AnswerScope::Once)).0, Offline);
    let (again, _) = state.join(hello("s"), SessionHost::Process, Some(7), "link", after(2)).unwrap();
    state.add_request(again, asks(1, "guard", "Go?", BEGIN), "n2".to_owned(), after(2));
    assert_eq!(refused(&mut state, "s.r.1", &answering("Allow", "n1", AnswerScope::Once)).0, Nonce);
    assert!(state.answer(&id("s.r.1"), &answering("Allow", "n2", AnswerScope::Once)).is_ok());
    // Messages of the old connection no longer count.
    assert!(state.close_request(connection, &own(1), outcome("answer", None), after(3)).is_empty());
}

#[test]
fn an_id_never_comes_again_and_an_answer_goes_to_the_process_that_asked() {
    let resumed = || SessionHello { run: "r2".to_owned(), ..hello("s") };
    let (mut state, connection) = with_session();
    state.add_request(connection, asks(1, "guard", "Run `ls`?", BEGIN), "n1".to_owned(), BEGIN);
    state.leave(connection, after(1));
    // The session is resumed in another process, which counts from one again.
    let (again, _) = state.join(resumed(), SessionHost::Process, Some(8), "other", after(2)).unwrap();
    let late = answering("Allow", "n1", AnswerScope::Once);
    assert_eq!(refused(&mut state, "s.r.1", &late).0, Closed);
    state.add_request(again, asks(1, "guard", "Run `rm`?", after(2)), "n2".to_owned(), after(2));
    assert_eq!(refused(&mut state, "s.r.1", &late).0, Closed);
    assert_eq!(refused(&mut state, "s.r2.1", &late).0, Nonce);
    assert_eq!(state.pending().iter().map(|asked| asked.id.to_string()).collect::<Vec<_>>(), ["s.r2.1"]);
    // A connection that claims the same run receives nothing either, and cannot replace the first request.
    state.leave(again, after(3));
    let (forged, _) = state.join(hello("s"), SessionHost::Process, Some(9), "forged", after(3)).unwrap();
    assert_eq!(refused(&mut state, "s.r.1", &late).0, Closed);
    assert!(state.add_request(forged, asks(1, "guard", "Run `ls`?", BEGIN), "n3".to_owned(), after(3)).is_empty());
    state.leave(forged, after(4));
    let (back, _) = state.join(hello("s"), SessionHost::Process, Some(7), "link", after(4)).unwrap();
    assert!(state.add_request(back, asks(1, "guard", "Run `rm`?", BEGIN), "n4".to_owned(), after(4)).is_empty());
    // The process itself reconnects, and its request is open again until it is closed for good.
    assert!(!state.add_request(back, asks(1, "guard", "Run `ls`?", BEGIN), "n5".to_owned(), after(4)).is_empty());
    assert_eq!(state.answer(&id("s.r.1"), &answering("Allow", "n5", AnswerScope::Once)).unwrap().digest, digest());
    state.close_request(back, &own(1), outcome("answer", Some(ann())), after(5));
    assert!(state.add_request(back, asks(1, "guard", "Run `ls`?", BEGIN), "n6".to_owned(), after(5)).is_empty());
}

#[test]
fn a_sub_agent_asks_over_the_connection_of_its_session_and_is_named() {
    let (mut state, connection) = with_session();
    let asks_as = |session: &str, number: u64| OpenApproval {
        id: ApprovalId::new(session, "r", number),
        ..asks(number, "guard", "Go?", after(number.try_into().unwrap()))
    };
    let child = ApprovalId::new("child", "r", 1);
    state.add_request(connection, asks_as("child", 1), "n1".to_owned(), BEGIN);
    state.add_request(connection, asks_as("s", 2), "n2".to_owned(), BEGIN);
    // A session with its own connection is not a sub-agent, and no request replaces another.
    let (other, _) = state.join(hello("other"), SessionHost::Process, Some(8), "other", BEGIN).unwrap();
    state.add_request(other, asks_as("s", 3), "n3".to_owned(), BEGIN);
    assert!(state.add_request(other, asks_as("child", 1), "n4".to_owned(), BEGIN).is_empty());
    assert!(state.close_request(other, &child, outcome("answer", None), BEGIN).is_empty());
    let pending = state.pending();
    let told: Vec<_> =
        pending.iter().map(|asked| (asked.id.to_string(), &*asked.session, asked.parent_session.as_deref())).collect();
    let expected = [("child.r.1", "child", Some("s")), ("s.r.2", "s", None), ("other.r.3", "other", None)];
    assert_eq!(told, expected.map(|(id, session, parent)| (id.to_owned(), session, parent)));
    assert_eq!((state.pending_of("s"), state.pending_of("child"), state.pending_of("other")), (2, 1, 1));

    let delivery = state.answer(&id("child.r.1"), &answering("Allow", "n1", AnswerScope::Once)).unwrap();
    assert_eq!((delivery.link, delivery.session.as_str(), delivery.id), ("link", "s", child.clone()));
    let (taken, changes) = state.finish_answer(
        connection,
        reply(&child, AnswerStatus::Taken, Some(outcome("answer", Some(ann())))),
        after(1),
    );
    assert_eq!(taken.unwrap().session, "child");
    let is_told = |session: &str| changes.iter().any(|change| matches!(change, HubEvent::Session(id) if id == session));
    assert!(is_told("s") && is_told("child"), "{changes:?}");
    assert_eq!((state.pending_of("s"), state.pending_of("child")), (1, 0));

    // The request closes with the connection.
    state.add_request(connection, asks_as("child", 5), "n5".to_owned(), BEGIN);
    let changes = state.leave(connection, after(2));
    assert!(changes.iter().any(|change| matches!(change, HubEvent::Session(id) if id == "child")), "{changes:?}");
    assert_eq!((state.pending_of("s"), state.pending_of("child"), state.pending().len()), (0, 0, 1));
}

#[test]
fn what_was_announced_again_is_remembered_from_its_last_close() {
    let (mut state, mut connection) = with_session();
    for round in 0..2 {
        state.add_request(connection, asks(1, "guard", "Go?", BEGIN), "n".to_owned(), BEGIN);
        if round == 0 {
            state.leave(connection, BEGIN);
            connection = state.join(hello("s"), SessionHost::Process, Some(7), "link", BEGIN).unwrap().0;
        }
    }
    // As many as are stored; the first is closed before the request.
    for number in 2..=10_001 {
        state.add_request(connection, asks(number, "guard", "Go?", BEGIN), "n".to_owned(), BEGIN);
        state.close_request(connection, &own(number), outcome("answer", None), after(1));
        if number == 2 {
            state.close_request(connection, &own(1), outcome("timeout", None), after(1));
        }
    }
    assert_eq!(state.decision(&id("s.r.1")).map(|decided| decided.basis), Some(DecisionBasis::Timeout));
    assert_eq!(state.decision(&id("s.r.2")), None);
}

#[test]
fn an_answer_lasts_only_where_the_question_offers_one_that_does() {
    let (mut state, connection) = with_session();
    let without = |effect: Effect, number| {
        let mut asks = asks(number, "guard", "Run `make`?", BEGIN);
        asks.options.push(ApprovalOption { label: "Never".to_owned(), effect: Effect::DenyAlways });
        asks.options.retain(|option| option.effect != effect);
        asks
    };
    state.add_request(connection, without(Effect::AllowAlways, 1), "n".to_owned(), BEGIN);
    state.add_request(connection, without(Effect::DenyAlways, 2), "n".to_owned(), BEGIN);
    let mut check = |id: &str, option: &str, is_taken: bool| {
        let answer = answering(option, "n", AnswerScope::Project);
        let code = state.answer(&self::id(id), &answer).err().map(|refused| refused.code);
        assert_eq!(code, (!is_taken).then_some(InvalidOption), "{id} {option}");
    };
    check("s.r.1", "Allow", false);
    check("s.r.1", "Deny", true);
    check("s.r.2", "Allow", true);
    check("s.r.2", "Deny", false);
}

#[test]
fn a_question_that_is_cut_is_not_proposed_as_a_rule() {
    let (mut state, connection) = with_session();
    for number in 1..=6 {
        let mut cut = asks(number, "guard", "Run `make aaaa… (cut)`?", BEGIN);
        cut.options.retain(|option| option.effect != Effect::AllowAlways);
        state.add_request(connection, cut, "n".to_owned(), BEGIN);
    }
    let busy = state.flood(BEGIN).unwrap();
    assert_eq!((busy.asked, busy.pattern.as_str()), (6, ""));
}

#[test]
fn questions_beyond_the_room_of_a_session_are_announced_without_their_bodies() {
    let (mut state, connection) = with_session();
    let long = |number| {
        let mut asks = asks(number, "guard", &"x".repeat(16 << 10), BEGIN);
        asks.preview.body = vec![PreviewRow::new(PreviewRowKind::Plain, "y".repeat(15_000)); 66];
        asks
    };
    for number in 1..=2_000 {
        assert!(!state.add_request(connection, long(number), "n".to_owned(), BEGIN).is_empty(), "{number}");
    }
    let pending = state.pending();
    let whole = pending.iter().filter(|asked| !asked.preview.body.is_empty()).count();
    assert_eq!((pending.len(), whole), (2_000, 8));
    let held: usize = pending.iter().map(|asked| asked.weight()).sum();
    assert!(held < 12 << 20, "{held}");
    let listed: usize = pending.iter().map(|asked| serde_json::to_vec(&asked.brief()).unwrap().len()).sum();
    assert!(listed < 4 << 20, "{listed}");
    // A request without a preview can be denied.
    let last = &pending[1_999];
    assert!(last.preview.warnings[0].starts_with("too large for this server"), "{last:?}");
    assert_eq!(refused(&mut state, "s.r.2000", &answering("Allow", "n", AnswerScope::Once)).0, InvalidOption);
    assert!(state.answer(&id("s.r.2000"), &answering("Deny", "n", AnswerScope::Once)).is_ok());
    // The request is the same when the session returns, and there is room again for closed ones.
    state.leave(connection, after(1));
    let (again, _) = state.join(hello("s"), SessionHost::Process, Some(7), "link", after(2)).unwrap();
    assert!(!state.add_request(again, long(2_000), "n".to_owned(), after(2)).is_empty());
    assert_eq!(state.pending()[0].preview.body.len(), 66);
}

#[test]
fn only_its_own_process_can_take_a_session_over() {
    let (mut state, _) = with_session();
    assert!(state.join(hello("s"), SessionHost::Process, Some(8), "other", BEGIN).is_err());
    assert!(state.join(hello("s"), SessionHost::Server, None, "other", BEGIN).is_err());
    assert!(state.join(hello("s"), SessionHost::Process, Some(7), "same", BEGIN).is_ok());
    assert_eq!(state.connected().len(), 1);
}

#[test]
fn questions_are_listed_by_age_whatever_order_they_come_in() {
    let (mut state, connection) = with_session();
    for (number, seconds) in [(1, 30), (2, 10), (3, 20)] {
        state.add_request(connection, asks(number, "guard", "Go?", after(seconds)), "n".to_owned(), after(40));
    }
    let ids: Vec<String> = state.pending().iter().map(|asked| asked.id.to_string()).collect();
    assert_eq!(ids, ["s.r.2", "s.r.3", "s.r.1"]);
}

#[test]
fn more_than_five_questions_of_a_hook_in_a_minute_are_too_many() {
    let (mut state, connection) = with_session();
    let mut ask = |number: u64, at| {
        let prompt = format!("Run `step {number}`?");
        let changes = state.add_request(connection, asks(number, "guard", &prompt, at), "n".to_owned(), at);
        changes.iter().filter(|change| matches!(change, HubEvent::ApprovalFlood(_))).count()
    };
    let told: Vec<usize> = (1..=5).map(|number| ask(number, after(number as i64))).collect();
    assert_eq!(told, [0; 5]);
    assert_eq!(ask(6, after(6)), 1);
    let busy = state.flood(after(6)).unwrap();
    assert_eq!((busy.asked, busy.hook.as_str(), busy.pattern.as_str()), (6, "guard", "Run `step *`?"));
    // Announced again after a lost connection, they count once.
    state.leave(connection, after(7));
    let (again, _) = state.join(hello("s"), SessionHost::Process, Some(7), "link", after(7)).unwrap();
    state.add_request(again, asks(6, "guard", "Run `step 6`?", after(6)), "n".to_owned(), after(7));
    assert_eq!(state.flood(after(7)).map(|busy| busy.asked), Some(6));
    assert_eq!(state.flood(after(61)), None);
    assert!(matches!(state.flood_change(after(61)), Some(HubEvent::ApprovalFlood(None))));
}

#[test]
fn questions_of_several_hooks_are_not_too_many() {
    let (mut state, connection) = with_session();
    for number in 0..10 {
        let hook = if number % 2 == 0 { "one" } else { "two" };
        state.add_request(connection, asks(number, hook, "Go?", BEGIN), "n".to_owned(), BEGIN);
    }
    assert_eq!(state.flood(BEGIN), None);
}

#[test]
fn a_prompt_is_taken_once_and_by_sessions_that_take_prompts() {
    let (mut state, connection) = with_session();
    assert!(state.claim_link("s", true).is_ok());
    assert_eq!(state.claim_link("s", true).unwrap_err().code, Busy);
    assert!(state.claim_link("s", false).is_ok());
    state.set_idle(connection, true);
    assert!(state.claim_link("s", true).is_ok());
    assert_eq!(state.claim_link("t", true).unwrap_err().code, Offline);
    let silent = SessionHello { takes_prompts: false, ..hello("t") };
    state.join(silent, SessionHost::Process, None, "link", BEGIN).unwrap();
    assert_eq!(state.claim_link("t", true).unwrap_err().code, NoPrompts);
}

#[test]
fn rules_of_a_session_are_its_own_and_go_with_it() {
    let (mut state, connection) = with_session();
    let rule =
        ApprovalRule { project: Some("/".to_owned()), ..ApprovalRule::new("guard", "Go?", DefaultDecision::Allow) };
    assert_eq!(state.set_rules(connection, vec![rule]).len(), 1);
    let [rule] = &state.rules()[..] else { panic!("one rule") };
    let ApprovalRule { scope, session, project, .. } = &rule.rule;
    assert_eq!((*scope, session.as_deref(), project.as_deref()), (RuleScope::Session, Some("s"), None));
    let changes = state.leave(connection, BEGIN);
    assert!(changes.iter().any(|change| matches!(change, HubEvent::Rules)));
    assert!(state.rules().is_empty());
}

#[test]
fn ten_thousand_questions_are_no_trouble() {
    const MANY: u64 = 10_000;
    let (mut state, connection) = with_session();
    for number in 0..MANY {
        let prompt = format!("Run `step {number}`?");
        state.add_request(connection, asks(number, "guard", &prompt, after(0)), number.to_string(), after(0));
    }
    assert_eq!(state.pending().len(), MANY as usize);
    for number in 0..MANY {
        assert!(state.answer(&own(number), &answering("Allow", &number.to_string(), AnswerScope::Once)).is_ok());
        state.close_request(connection, &own(number), outcome("answer", None), after(1));
    }
    assert!(state.pending().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_session_says_what_came_of_a_look_at_its_bundles_or_is_named() {
    let hub = Hub::new();
    let mut links = Vec::new();
    for (session, pid) in [("quick", 1), ("silent", 2), ("gone", 3)] {
        let (link, told) = mpsc::channel(4);
        let connection = hub.join(hello(session), SessionHost::Process, Some(pid), link).unwrap();
        links.push((connection, told));
    }
    let (reloaded, ()) = tokio::join!(hub.reload(), async {
        let mut references = Vec::new();
        for (_, told) in &mut links {
            let Some(ServerMessage::Reload { reference }) = told.recv().await else { panic!("it is not told") };
            references.push(reference);
        }
        let refused = ReloadResult { result: ReloadStatus::Refused, message: Some("line 3".to_owned()) };
        // A reply of another session does not count.
        for connection in [links[1].0, links[0].0] {
            let said = SessionMessage::Reloaded { reference: references[0], reload: refused.clone() };
            hub.receive(connection, said).unwrap();
        }
        hub.leave(links[2].0);
    });
    let results: Vec<_> = reloaded.iter().map(|(session, reloaded)| (session.as_str(), reloaded.result)).collect();
    assert_eq!(
        results,
        [("gone", ReloadStatus::NoAnswer), ("quick", ReloadStatus::Refused), ("silent", ReloadStatus::NoAnswer)]
    );
    assert_eq!(reloaded[1].1.message.as_deref(), Some("line 3"));
}

#[test]
fn a_session_of_another_machine_takes_answers_only() {
    let mut state = ConnectedSessions::default();
    let remote = |session: &str, machine: &str| SessionHello { machine: Some(machine.to_owned()), ..hello(session) };
    let (connection, _) = state.join(remote("s", "m1"), SessionHost::Machine, None, "link", BEGIN).unwrap();
    state.add_request(connection, asks(1, "guard", "Go?", BEGIN), "n1".to_owned(), BEGIN);
    assert_eq!(state.approval(&own(1)).unwrap().machine.as_deref(), Some("m1"));
    let refused = state.answer(&own(1), &answering("Allow", "n1", AnswerScope::Project)).err().unwrap();
    assert_eq!(refused.code, InvalidOption);
    assert!(refused.message.contains("does not apply on the machine `m1`"), "{}", refused.message);
    assert_eq!(state.answer(&own(1), &answering("Allow", "n1", AnswerScope::Once)).unwrap().link, "link");
    assert_eq!(state.claim_link("s", false).unwrap_err().code, HubErrorCode::NoPrompts);
    assert!(state.links().is_empty());
    // Its place is taken neither by another machine nor by a session in the server.
    assert!(state.join(remote("s", "m2"), SessionHost::Machine, None, "other", BEGIN).is_err());
    assert!(state.join(hello("s"), SessionHost::Server, None, "other", BEGIN).is_err());
    // A session of this machine cannot name another one.
    let (connection, _) = state.join(remote("t", "m1"), SessionHost::Process, Some(7), "link", BEGIN).unwrap();
    state.add_request(
        connection,
        OpenApproval { session: "t".to_owned(), id: id("t.r.2"), ..asks(2, "guard", "Go?", BEGIN) },
        "n2".to_owned(),
        BEGIN,
    );
    assert_eq!(state.approval(&id("t.r.2")).unwrap().machine, None);
    // A faster approver is named before the machine decides.
    let reply = AnswerReply { by: Some(ann()), ..reply(&own(1), AnswerStatus::Answered, None) };
    let (connection, _) = state.join(remote("s", "m1"), SessionHost::Machine, None, "link", after(1)).unwrap();
    let (answered, _) = state.finish_answer(connection, reply, after(2));
    assert_eq!(answered.unwrap_err().by, Some(ann()));
}
