//! Anthropic Messages.

use super::*;

#[tokio::test]
async fn a_request_has_one_system_text_and_turns_that_alternate() {
    let received = sent(Kind::Anthropic).await;
    assert_eq!(received.target, "POST /v1/messages");
    assert_eq!(received.headers["x-api-key"], KEY);
    assert_eq!(received.headers["anthropic-version"], "2023-06-01");
    assert_eq!(
        received.body,
        json!({
            "model": "claude-sonnet-4-5",
            "stream": true,
            "max_tokens": 8192,
            "temperature": 0.5,
            "top_p": 0.9,
            "stop_sequences": ["END"],
            "system": format!("You are careful.\n\nBe brief.\n\n{ABOUT_TAG}"),
            "tools": [
                { "name": "write", "description": "Does write.", "input_schema": schema() },
                { "name": "web_search", "description": "Does web_search.", "input_schema": schema() },
            ],
            "messages": [
                { "role": "user", "content":
                    "write it\n\n<session-context-NONCE>\nmind the style guide\n</session-context-NONCE>" },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "call-1", "name": "write", "input": { "path": "a.py" } },
                    { "type": "tool_use", "id": "call-2", "name": "web_search", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call-1", "content": "written" },
                    { "type": "tool_result", "tool_use_id": "call-2", "content": "" },
                    { "type": "text", "text": "<hook-context-NONCE hook=\"linter\">\ntests fail\n</hook-context-NONCE>" },
                    { "type": "text", "text": "go on" },
                ] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Done." },
                    { "type": "text", "text": "Really." },
                ] },
                { "role": "user", "content": "thanks" },
            ],
        })
    );
}

#[tokio::test]
async fn ids_of_other_services_are_spelt_so_that_it_takes_them() {
    let mut server = Server::start([Reply::events([""; 0])]).await;
    let messages = vec![
        Message::user("hello"),
        Message::assistant("").calling("call#read#7", "read", Map::new()),
        Message::tool_result("call#read#7", "text"),
    ];
    ask_for(&remote(Kind::Anthropic, server.url()), messages).await;
    let body = server.received().await.body;
    assert_eq!(body["messages"][1]["content"][0]["id"], "call_read_7");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "call_read_7");
}

#[tokio::test]
async fn text_comes_in_pieces_and_then_the_end() {
    let mut events = vec![anthropic::start(), anthropic::ping()];
    events.extend(anthropic::text(0, &["Hel", "", "lo"]));
    events.extend(anthropic::end("end_turn"));
    assert_eq!(answer(Kind::Anthropic, events).await, [text("Hel"), text("lo"), end(StopReason::EndTurn)]);
}

#[tokio::test]
async fn thinking_and_parallel_calls_are_told_apart_and_each_call_comes_once() {
    let mut events = vec![anthropic::start()];
    let deltas = [
        json!({ "type": "thinking_delta", "thinking": "Hm." }),
        json!({ "type": "signature_delta", "signature": "c2ln" }),
    ];
    events.extend(anthropic::block(0, json!({ "type": "thinking", "thinking": "", "signature": "" }), &deltas));
    events.extend(anthropic::text(1, &["Let me see."]));
    events.extend(anthropic::tool(2, "toolu_1", "write", &["", r#"{"path": "#, r#""a.py"}"#]));
    events.extend(anthropic::tool(3, "toolu_2", "list", &[]));
    events.extend(anthropic::end("tool_use"));
    assert_eq!(
        answer(Kind::Anthropic, events).await,
        [
            thinking("Hm."),
            text("Let me see."),
            call("toolu_1", "write", json!({ "path": "a.py" })),
            call("toolu_2", "list", json!({})),
            end(StopReason::ToolUse),
        ]
    );
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_left_out_and_the_end_says_why() {
    for pieces in [&[r#"{"path": "a"#] as &[&str], &[]] {
        let mut events = vec![anthropic::start()];
        events.extend(anthropic::tool(0, "toolu_1", "write", pieces));
        // A block that is cut off has no stop event.
        events.pop();
        events.extend(anthropic::end("max_tokens"));
        assert_eq!(answer(Kind::Anthropic, events).await, [end(StopReason::MaxTokens)]);
    }
}

#[tokio::test]
async fn a_refusal_is_one() {
    let events = [vec![anthropic::start()], anthropic::end("refusal")].concat();
    assert_eq!(answer(Kind::Anthropic, events).await, [end(StopReason::Refusal)]);
}

#[tokio::test]
async fn an_error_in_the_stream_means_what_its_type_says() {
    for (kind, expected) in [
        ("overloaded_error", ProviderError::Unavailable("Busy".to_owned())),
        ("rate_limit_error", ProviderError::Throttled { message: "Busy".to_owned(), retry_after: None }),
        ("invalid_request_error", ProviderError::Rejected("Busy".to_owned())),
        ("something_new", ProviderError::Unavailable("Busy".to_owned())),
    ] {
        let mut events = vec![anthropic::start()];
        events.extend(anthropic::text(0, &["Hel"]));
        events.push(anthropic::event(json!({ "type": "error", "error": { "type": kind, "message": "Busy" } })));
        events.extend(anthropic::end("end_turn"));
        assert_eq!(answer(Kind::Anthropic, events).await, [text("Hel"), Err(expected)]);
    }
}

#[tokio::test]
async fn an_answer_without_its_end_is_truncated() {
    let events = [vec![anthropic::start()], anthropic::text(0, &["Hel"])].concat();
    assert_eq!(answer(Kind::Anthropic, events).await, [text("Hel"), Err(ProviderError::Truncated)]);

    let stop = anthropic::event(json!({ "type": "message_stop" }));
    assert_eq!(answer(Kind::Anthropic, [anthropic::start(), stop]).await, [Err(ProviderError::Truncated)]);
}
