//! OpenAI Chat Completions.

use super::*;

#[tokio::test]
async fn a_request_keeps_system_messages_in_place_and_results_behind_their_calls() {
    let received = sent(Kind::OpenAi).await;
    assert_eq!(received.target, "POST /v1/chat/completions");
    assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
    let tool = |name: &str| {
        let function = json!({ "name": name, "description": format!("Does {name}."), "parameters": schema() });
        json!({ "type": "function", "function": function })
    };
    let call = |id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "type": "function", "id": id, "function": function })
    };
    assert_eq!(
        received.body,
        json!({
            "model": "gpt-4.1",
            "stream": true,
            "stream_options": { "include_usage": true },
            "temperature": 0.5,
            "top_p": 0.9,
            "stop": ["END"],
            "tools": [tool("write"), tool("web_search")],
            "messages": [
                { "role": "system", "content": format!("You are careful.\n\nBe brief.\n\n{ABOUT_TAG}") },
                { "role": "user", "content": "write it" },
                { "role": "system", "content":
                    "<session-context-NONCE>\nmind the style guide\n</session-context-NONCE>" },
                { "role": "assistant", "content": "", "tool_calls": [
                    call("call-1", "write", r#"{"path":"a.py"}"#), call("call-2", "web_search", "{}") ] },
                { "role": "tool", "tool_call_id": "call-1", "content": "written" },
                { "role": "tool", "tool_call_id": "call-2", "content": "" },
                { "role": "system", "content":
                    "<hook-context-NONCE hook=\"linter\">\ntests fail\n</hook-context-NONCE>" },
                { "role": "user", "content": "go on" },
                { "role": "assistant", "content": "Done." },
                { "role": "assistant", "content": "Really." },
                { "role": "user", "content": "thanks" },
            ],
        })
    );
}

#[tokio::test]
async fn a_local_server_needs_no_key_and_gets_the_model_by_its_whole_name() {
    let mut server = Server::start([Reply::events([openai::text("Hi")].into_iter().chain(openai::end("stop")))]).await;
    let mut options = RemoteOptions::new(Kind::OpenAi, "lab::mistral-medium");
    options.base_url = Some(format!("{}/compatible/v1/", server.url()));
    let answer = ask(&RemoteProvider::new(options).unwrap()).await;
    assert_eq!(answer, [text("Hi"), end(StopReason::EndTurn)]);

    let received = server.received().await;
    assert_eq!(received.target, "POST /compatible/v1/chat/completions");
    assert_eq!(received.headers.get("authorization"), None);
    assert_eq!(
        known(&received.body),
        json!({
            "model": "lab::mistral-medium",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [{ "role": "system", "content": ABOUT_TAG }, { "role": "user", "content": "hello" }],
        })
    );
}

#[tokio::test]
async fn parallel_calls_whose_arguments_alternate_come_whole_and_once() {
    let mut events = vec![
        openai::delta(json!({ "role": "assistant", "content": null })),
        openai::delta(json!({ "reasoning_content": "Hm." })),
        openai::text("Let me see."),
        openai::call(0, "call_a", "write"),
        openai::call(1, "call_b", "list"),
        openai::arguments(0, r#"{"path": "#),
        openai::arguments(1, "{"),
        openai::arguments(0, r#""a.py"}"#),
        openai::arguments(1, "}"),
    ];
    // Some servers end with `stop`, whatever was said.
    events.extend(openai::end("stop"));
    assert_eq!(
        answer(Kind::OpenAi, events).await,
        [
            thinking("Hm."),
            text("Let me see."),
            call("call_a", "write", json!({ "path": "a.py" })),
            call("call_b", "list", json!({})),
            end(StopReason::ToolUse),
        ]
    );
}

#[tokio::test]
async fn a_server_that_counts_calls_from_one_makes_one_call() {
    let mut events = vec![openai::call(1, "call_a", "list")];
    events.extend(openai::end("tool_calls"));
    assert_eq!(answer(Kind::OpenAi, events).await, [call("call_a", "list", json!({})), end(StopReason::ToolUse)]);
}

#[tokio::test]
async fn calls_without_an_id_get_one_that_no_other_has() {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut events = vec![openai::call(0, "", "list")];
        events.extend(openai::end("tool_calls"));
        let answer = answer(Kind::OpenAi, events).await;
        let [Ok(Chunk::ToolCall(call)), Ok(Chunk::End { .. })] = answer.as_slice() else { panic!("{answer:?}") };
        ids.push(call.id.clone());
    }
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| id.starts_with("call_") && id.len() <= 40), "{ids:?}");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_malformed() {
    for arguments in ["{\"path\": ", "[1]", "\"text\"", "oops"] {
        let mut events = vec![openai::call(0, "call_a", "write"), openai::arguments(0, arguments)];
        events.extend(openai::end("tool_calls"));
        let error = ProviderError::Malformed("the arguments for tool `write` are not a JSON object".to_owned());
        assert_eq!(answer(Kind::OpenAi, events).await, [Err(error)]);
    }
}

#[tokio::test]
async fn stop_reasons_are_translated() {
    for (word, stop) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("tool_calls", StopReason::EndTurn),
        ("something_new", StopReason::EndTurn),
    ] {
        assert_eq!(answer(Kind::OpenAi, openai::end(word)).await, [end(stop)], "{word}");
    }
}

#[tokio::test]
async fn calls_in_a_filtered_answer_are_not_made() {
    let mut events = vec![openai::call(0, "call_a", "write"), openai::arguments(0, "{}")];
    events.extend(openai::end("content_filter"));
    assert_eq!(answer(Kind::OpenAi, events).await, [end(StopReason::Refusal)]);
}

#[tokio::test]
async fn an_answer_without_its_end_or_its_stop_reason_is_truncated() {
    let expected = [text("Hel"), Err(ProviderError::Truncated)];
    assert_eq!(answer(Kind::OpenAi, [openai::text("Hel")]).await, expected);
    assert_eq!(answer(Kind::OpenAi, [openai::text("Hel"), openai::finish("stop")]).await, expected);
    assert_eq!(answer(Kind::OpenAi, [openai::text("Hel"), openai::DONE.to_owned()]).await, expected);
    // In the middle of an event.
    assert_eq!(answer(Kind::OpenAi, [openai::text("Hel"), "data: {\"choi".to_owned()]).await, expected);
}

#[tokio::test]
async fn letters_and_events_that_are_split_between_packets_come_whole() {
    let events = [vec![openai::text("Grüße")], openai::end("stop")].concat().concat();
    let bytes: Vec<_> = events.into_bytes().into_iter().map(|byte| vec![byte]).collect();
    assert_eq!(answer(Kind::OpenAi, bytes).await, [text("Grüße"), end(StopReason::EndTurn)]);
}
