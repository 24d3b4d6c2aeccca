use amplifier_agent::TurnEnd;
use amplifier_agent::provider::{Script, ScriptedResponse};
use amplifier_core::{HookRegistry, Level, PROVIDER_REQUEST, PROVIDER_RESPONSE, SESSION_END, Speaker, data};
use amplifier_modules::HookEnvironment;
use amplifier_modules::bundle::load;
use serde_json::json;

use super::{Setup, asked, check_problems, echoes, told};
use crate::common::Run;

/// The tokens of all calls, as the provider reported them: read and written.
fn used(run: &Run) -> (u64, u64) {
    let sum =
        |field: &str| run.events("provider:response").iter().map(|data| data["usage"][field].as_u64().unwrap()).sum();
    (sum("input_tokens"), sum("output_tokens"))
}

fn with(config: &str) -> Setup {
    Setup::new(&format!("hooks:\n  - module: hooks-cost\n    config: {config}\n"))
}

#[tokio::test]
async fn the_end_of_a_session_tells_what_it_used() {
    let run = with("{}").world(echoes(2)).run(&["Echo"]).await;
    let (read, written) = used(&run);
    let expected = format!("{} tokens in 3 calls ({read} read, {written} written)", read + written);
    assert_eq!(told(&run), [expected]);
    assert_eq!(run.messages[0].level, Level::Info);

    let setup =
        with("{ prices: [{ model: 'other*', input: 1, output: 1 }, { model: 'scr*', input: 2000, output: 30000 }] }");
    let run = setup.world(echoes(0)).run(&["Hello"]).await;
    let (read, written) = used(&run);
    let cost = (read as f64 * 2000.0 + written as f64 * 30000.0) / 1e6;
    let expected = format!("{} tokens in 1 call ({read} read, {written} written), {cost:.4} USD", read + written);
    assert_eq!(told(&run), [expected]);

    let setup = with("{ prices: [{ model: 'other*', input: 1, output: 1 }], currency: EUR }");
    let run = setup.world(echoes(0)).run(&["Hello"]).await;
    let unpriced = "0.00 EUR, without `script`, whose price is unknown";
    assert!(told(&run)[0].ends_with(unpriced), "no price is made up: {:?}", told(&run));

    let run = with("{ summary: false }").world(echoes(0)).run(&["Hello"]).await;
    assert_eq!(told(&run), [""; 0]);
}

#[tokio::test]
async fn answers_still_come_piece_by_piece() {
    let world = with("{ budget: { deny: { tokens: 1000000 } } }")
        .world(Script::new([ScriptedResponse::text("One two three.")]));
    let screen = world.screen.clone();
    world.run(&["Count"]).await;
    assert_eq!(screen.pieces(), ["One ", "two ", "three."]);
}

#[tokio::test]
async fn a_budget_warns_once_then_asks_then_denies() {
    let config = "{ budget: { warn: { tokens: 1 }, ask: { tokens: 2 }, deny: { tokens: 150 } } }";
    let run = with(config).world(echoes(50)).person(&["Allow always"]).run(&["Echo"]).await;
    let TurnEnd::Denied(refusal) = &run.ends[0] else { panic!("{:?}", run.ends) };
    let (read, written) = used(&run);
    let calls = run.requests.len();
    assert!((150..300).contains(&(read + written)) && calls > 2, "{read} {written} {calls}");
    let used = format!("{} tokens in {calls} calls ({read} read, {written} written)", read + written);
    assert_eq!(
        (&*refusal.by, &refusal.reason),
        ("hooks-cost", &format!("the session has reached its limit of 150 tokens: {used}"))
    );
    assert_eq!(asked(&run), ["The session has reached 2 tokens of its budget. Go on?"], "the answer lasts");
    let warnings: Vec<&str> =
        told(&run).into_iter().filter(|text| text.starts_with("the session has reached ")).collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("the session has reached 1 tokens: "), "{warnings:?}");
}

#[tokio::test]
async fn a_refusal_ends_the_turn_and_a_budget_in_money_counts_money() {
    let config = "{ prices: [{ model: script, input: 1000, output: 1000 }], budget: { ask: { money: 0.001 } } }";
    let run = with(config).world(echoes(1)).person(&["Deny"]).run(&["Echo"]).await;
    let question = "The session has reached 0.0010 USD of its budget. Go on?";
    assert_eq!(asked(&run), [question]);
    assert!(run.questions[0].reason.as_ref().unwrap().ends_with(" USD"), "{:?}", run.questions[0].reason);
    let TurnEnd::Denied(refusal) = &run.ends[0] else { panic!("{:?}", run.ends) };
    assert_eq!(refusal.reason, format!("User denied: {question}"));
    assert_eq!(run.requests.len(), 1);
}

#[tokio::test]
async fn a_budget_that_cannot_be_kept_is_asked_about() {
    let config = "{ prices: [{ model: other, input: 1, output: 1 }], budget: { deny: { money: 5 } } }";
    let run = with(config).world(echoes(1)).person(&["Deny"]).run(&["Echo"]).await;
    assert_eq!(asked(&run), ["The price of `script` is unknown, so the budget cannot be enforced. Go on?"]);
    assert_eq!(run.requests.len(), 0);
}

#[tokio::test]
async fn sub_agents_use_the_budget_of_the_session_that_they_work_for() {
    let mut script = Script::new([
        ScriptedResponse::text("I delegate.").calling("Task", json!({ "task": "help", "agent_name": "helper" })),
        ScriptedResponse::text("Done."),
    ]);
    script.agents.insert("helper".to_owned(), vec![ScriptedResponse::text("I helped.")]);
    let run = with("{}").world(script.clone()).run(&["Work"]).await;
    let (read, written) = used(&run);
    let expected = format!("{} tokens in 3 calls ({read} read, {written} written)", read + written);
    assert_eq!(told(&run), [expected], "one summary, with the sub-agent in it");

    let run = with("{ budget: { deny: { tokens: 1 } } }").world(script).run(&["Work"]).await;
    assert_eq!(run.requests.len(), 1, "the helper is not asked any more");
    let result = run.history.iter().find(|message| message.role == Speaker::Tool).unwrap();
    assert!(result.content.contains("the session has reached its limit of 1 tokens"), "{}", result.content);
}

/// The hooks of a bundle, without a session.
fn hooks(setup: &Setup) -> HookRegistry {
    let hooks = HookRegistry::new();
    load(&setup.folder.path().join("bundle.yaml"))
        .unwrap()
        .register(&hooks, &HookEnvironment::new(setup.scope()))
        .unwrap();
    hooks
}

#[tokio::test]
async fn a_provider_that_tells_nothing_is_asked_about() {
    let hooks = hooks(&with("{ budget: { deny: { tokens: 1000 } } }"));
    let request = || data! { "session_id": "s", "provider": "mine", "model": "m" };
    for usage in [json!(null), json!({ "input_tokens": 0, "output_tokens": 0 }), json!({ "input_tokens": -1 })] {
        hooks.emit(SESSION_END, data! { "session_id": "s", "reason": "", "duration_ms": 0, "stats": {} }).await;
        assert_eq!(hooks.emit(PROVIDER_REQUEST, request()).await.approvals().len(), 0);
        hooks.emit(PROVIDER_RESPONSE, data! { "session_id": "s", "provider": "mine", "usage": usage }).await;
        let outcome = hooks.emit(PROVIDER_REQUEST, request()).await;
        let questions: Vec<&str> = outcome.approvals().iter().map(|one| one.prompt.as_str()).collect();
        let expected = "The provider does not report token usage, so the budget cannot be enforced. Go on?";
        assert_eq!(questions, [expected]);
    }
}

#[tokio::test]
async fn tokens_from_a_cache_have_a_price_of_their_own() {
    let hooks = hooks(&with("{ prices: [{ model: m, input: 10, output: 100, cached: 1 }] }"));
    let usage = json!({ "input_tokens": 1_000_000, "output_tokens": 10_000, "cached_tokens": 900_000 });
    hooks.emit(PROVIDER_RESPONSE, data! { "session_id": "s", "provider": "mine", "model": "m", "usage": usage }).await;
    let end = data! { "session_id": "s", "reason": "complete", "duration_ms": 0, "stats": {} };
    let outcome = hooks.emit(SESSION_END, end).await;
    let told: Vec<&str> = outcome.messages().iter().map(|one| one.value.text.as_str()).collect();
    assert_eq!(told, ["1010000 tokens in 1 call (1000000 read, 10000 written), 2.90 USD"]);
}

#[tokio::test]
async fn the_record_of_a_call_has_its_cost_if_the_price_is_known() {
    let hooks = hooks(&with("{ prices: [{ model: m, input: 10, output: 100 }], currency: EUR }"));
    let usage = json!({ "input_tokens": 1_000, "output_tokens": 10 });
    for (model, expected) in [("m", Some("cost: 0.011000 EUR")), ("other", None)] {
        let response = data! { "session_id": "s", "provider": "mine", "model": model, "usage": usage };
        let outcome = hooks.emit(PROVIDER_RESPONSE, response).await;
        let reasons: Vec<Option<&str>> = outcome.reports().map(|report| report.reason).collect();
        assert_eq!(reasons, [expected], "{model}");
    }
}

#[test]
fn mistakes_in_its_options_are_told() {
    check_problems(
        "hooks-cost",
        &[
            ("{ budget: {} }", "`budget` has no limit: give `warn`, `ask` or `deny`, each with `money` or `tokens`"),
            ("{ budget: { ask: { tokens: 0 } } }", "invalid limit in `budget.ask`; give a number above zero"),
            ("{ budget: { ask: { money: 1 } } }", "a `budget` in `money` needs `prices`"),
            (
                "{ budget: { warn: { tokens: 9 }, deny: { tokens: 5 } } }",
                "`budget.warn` is above `budget.deny`, so it would never be reached",
            ),
            (
                "{ prices: [{ model: a, input: -1, output: 1 }] }",
                "`prices[0]`: invalid price in `input`; give 0 or more, for a million tokens",
            ),
            ("{ prices: [{ model: a, input: 1 }] }", "`prices[0]`: missing field `output`"),
            (
                "{ prices: [{ model: '[', input: 1, output: 1 }] }",
                "`prices[0]`: invalid pattern in `model`: unclosed character class; missing ']'",
            ),
            ("{ timeout: 0 }", "`timeout` is 0: give a number of seconds above zero"),
        ],
    );
}
