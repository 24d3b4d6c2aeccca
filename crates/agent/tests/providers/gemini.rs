//! Gemini `streamGenerateContent`.

use super::*;

#[tokio::test]
async fn a_request_has_one_system_text_and_results_in_a_turn_of_their_own() {
    let received = sent(Kind::Gemini).await;
    assert_eq!(received.target, "POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(received.headers["x-goog-api-key"], KEY);
    let tool =
        |name: &str| json!({ "name": name, "description": format!("Does {name}."), "parametersJsonSchema": schema() });
    let result = |id: &str, name: &str, content: &str| {
        let response = json!({ "name": name, "content": content });
        json!({ "functionResponse": { "id": id, "name": name, "response": response } })
    };
    assert_eq!(
        received.body,
        json!({
            "generationConfig": { "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"] },
            "systemInstruction": { "parts": [{ "text": format!("You are careful.\n\nBe brief.\n\n{ABOUT_TAG}") }] },
            "tools": [{ "functionDeclarations": [tool("write"), tool("web_search")] }],
            "contents": [
                { "role": "user", "parts": [
                    { "text": "write it" },
                    { "text": "<session-context-NONCE>\nmind the style guide\n</session-context-NONCE>" },
                ] },
                { "role": "model", "parts": [
                    { "functionCall": { "id": "call-1", "name": "write", "args": { "path": "a.py" } } },
                    { "functionCall": { "id": "call-2", "name": "web_search", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    result("call-1", "write", "written"), result("call-2", "web_search", "") ] },
                { "role": "user", "parts": [
                    { "text": "<hook-context-NONCE hook=\"linter\">\ntests fail\n</hook-context-NONCE>" },
                    { "text": "go on" },
                ] },
                { "role": "model", "parts": [{ "text": "Done." }, { "text": "Really." }] },
                { "role": "user", "parts": [{ "text": "thanks" }] },
            ],
        })
    );
}

#[tokio::test]
async fn text_thinking_and_parallel_calls_come_in_order() {
    let events = [
        gemini::parts(json!([{ "text": "Hm.", "thought": true }])),
        gemini::text("Let me "),
        gemini::text("see."),
        gemini::parts(json!([
            { "functionCall": { "id": "a", "name": "write", "args": { "path": "a.py" } }, "thoughtSignature": "c2ln" },
            { "functionCall": { "id": "b", "name": "list" } },
        ])),
        gemini::end("STOP"),
    ];
    assert_eq!(
        answer(Kind::Gemini, events).await,
        [
            thinking("Hm."),
            text("Let me "),
            text("see."),
            call("a", "write", json!({ "path": "a.py" })),
            call("b", "list", json!({})),
            end(StopReason::ToolUse),
        ]
    );
}

#[tokio::test]
async fn calls_without_an_id_get_one_that_is_not_sent_back() {
    let one = gemini::parts(json!([{ "functionCall": { "name": "list", "args": {} } }]));
    let replies = [Reply::events([one.clone(), one, gemini::end("STOP")]), Reply::events([gemini::end("STOP")])];
    let mut server = Server::start(replies).await;
    let remote = remote(Kind::Gemini, server.url());
    let answer = ask(&remote).await;
    let [Ok(Chunk::ToolCall(first)), Ok(Chunk::ToolCall(second)), Ok(Chunk::End { .. })] = answer.as_slice() else {
        panic!("{answer:?}")
    };
    assert_ne!(first.id, second.id);

    let mut said = Message::assistant("");
    said.tool_calls = vec![first.clone(), second.clone()];
    let results = [first, second].map(|call| Message::tool_result(&call.id, "nothing"));
    ask_for(&remote, [Message::user("hello"), said].into_iter().chain(results).collect()).await;
    server.received().await;
    let call = json!({ "functionCall": { "name": "list", "args": {} } });
    let response = json!({ "name": "list", "content": "nothing" });
    let result = json!({ "functionResponse": { "name": "list", "response": response } });
    assert_eq!(
        server.received().await.body["contents"],
        json!([
            { "role": "user", "parts": [{ "text": "hello" }] },
            { "role": "model", "parts": [call, call] },
            { "role": "user", "parts": [result, result] },
        ])
    );
}

#[tokio::test]
async fn stop_reasons_are_translated() {
    let malformed = ProviderError::Malformed("the model stopped with `MALFORMED_FUNCTION_CALL`".to_owned());
    for (word, expected) in [
        ("STOP", end(StopReason::EndTurn)),
        ("MAX_TOKENS", end(StopReason::MaxTokens)),
        ("SAFETY", end(StopReason::Refusal)),
        ("MALFORMED_FUNCTION_CALL", Err(malformed)),
    ] {
        assert_eq!(answer(Kind::Gemini, [gemini::end(word)]).await, [expected], "{word}");
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_a_refusal() {
    let blocked = gemini::event(json!({ "promptFeedback": { "blockReason": "SAFETY" } }));
    let expected = Ok(Chunk::End { stop: StopReason::Refusal, usage: TokenUsage::default() });
    assert_eq!(answer(Kind::Gemini, [blocked]).await, [expected]);
}

#[tokio::test]
async fn an_answer_without_a_finish_reason_is_truncated() {
    let expected = [text("Hel"), Err(ProviderError::Truncated)];
    assert_eq!(answer(Kind::Gemini, [gemini::text("Hel")]).await, expected);
}

#[tokio::test]
async fn how_long_to_wait_may_stand_in_the_body() {
    let details = json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s" }]);
    let error = json!({ "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota.", "details": details });
    let expected = |message: &str| ProviderError::Throttled {
        message: message.to_owned(),
        retry_after: Some(Duration::from_secs(34)),
    };
    let reply = Reply::failure(429, json!([{ "error": error }]));
    assert_eq!(failure(Kind::Gemini, reply).await, expected("HTTP 429: Quota."));
    let in_stream = gemini::event(json!({ "error": error }));
    assert_eq!(answer(Kind::Gemini, [in_stream]).await, [Err(expected("Quota."))]);
}

#[tokio::test]
async fn a_wrong_key_is_called_so() {
    let details = json!([{ "reason": "API_KEY_INVALID" }]);
    let error = json!({ "code": 400, "message": "API key not valid.", "details": details });
    let expected = ProviderError::Unauthorized("HTTP 400: API key not valid.".to_owned());
    assert_eq!(failure(Kind::Gemini, Reply::failure(400, json!({ "error": error }))).await, expected);
}
