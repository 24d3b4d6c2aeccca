//! Failures of every service.

use super::*;

const KINDS: [Kind; 3] = Kind::ALL;

fn body(message: &str) -> Value {
    json!({ "type": "error", "error": { "type": "some_error", "message": message } })
}

#[tokio::test]
async fn a_status_says_what_went_wrong() {
    let say = |status: u16| format!("HTTP {status}: No.");
    let throttled = ProviderError::Throttled { message: say(429), retry_after: None };
    for kind in KINDS {
        for (status, expected) in [
            (400, ProviderError::Rejected(say(400))),
            (401, ProviderError::Unauthorized(say(401))),
            (403, ProviderError::Unauthorized(say(403))),
            (404, ProviderError::Rejected(say(404))),
            (429, throttled.clone()),
            (500, ProviderError::Unavailable(say(500))),
            (502, ProviderError::Unavailable(say(502))),
            (503, ProviderError::Unavailable(say(503))),
            (504, ProviderError::Unavailable(say(504))),
            (529, ProviderError::Unavailable(say(529))),
        ] {
            assert_eq!(failure(kind, Reply::failure(status, body("No."))).await, expected);
        }
    }
}

#[tokio::test]
async fn messages_are_found_wherever_they_stand() {
    for (body, expected) in [
        ("{\"error\": \"model `x` not found\"}", "HTTP 400: model `x` not found"),
        ("{\"detail\": \"no\"}", "HTTP 400: no"),
        ("<html>\n\u{1b}[2Joops</html>\n", "HTTP 400: <html> ␛[2Joops</html>"),
        ("", "HTTP 400 Bad Request"),
    ] {
        let reply = Reply::failure(400, body);
        assert_eq!(failure(Kind::OpenAi, reply).await, ProviderError::Rejected(expected.to_owned()));
    }
}

#[tokio::test]
async fn how_long_to_wait_is_read_in_every_form() {
    for (name, value, expected) in [
        ("retry-after", "7", Some(Duration::from_secs(7))),
        ("retry-after", "0.5", Some(Duration::from_millis(500))),
        ("retry-after-ms", "1500", Some(Duration::from_millis(1500))),
        ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(Duration::ZERO)),
        ("retry-after", "soon", None),
        ("retry-after", "-3", None),
        ("retry-after", "1e300", None),
    ] {
        let reply = Reply::failure(429, body("Slow down.")).header(name, value);
        let message = "HTTP 429: Slow down.".to_owned();
        let expected = ProviderError::Throttled { message, retry_after: expected };
        assert_eq!(failure(Kind::Anthropic, reply).await, expected, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_date_to_wait_for_is_counted_from_now() {
    let date = jiff::Timestamp::now() + Duration::from_secs(3600);
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&date).unwrap();
    let reply = Reply::failure(429, body("Slow down.")).header("retry-after", date);
    let ProviderError::Throttled { retry_after: Some(wait), .. } = failure(Kind::OpenAi, reply).await else {
        panic!("not throttled");
    };
    assert!((Duration::from_secs(3500)..=Duration::from_secs(3600)).contains(&wait), "{wait:?}");
}

#[tokio::test]
async fn what_a_provider_says_is_bounded() {
    let reply = Reply::failure(400, body(&"é".repeat(10_000)));
    let expected = format!("HTTP 400: {}…", "é".repeat(499));
    assert_eq!(failure(Kind::Anthropic, reply).await, ProviderError::Rejected(expected));
}

#[tokio::test]
async fn a_redirection_is_not_followed() {
    let reply = Reply::failure(307, "").header("location", "http://127.0.0.1:1/elsewhere");
    let expected = ProviderError::Rejected("HTTP 307 Temporary Redirect".to_owned());
    assert_eq!(failure(Kind::Anthropic, reply).await, expected);
}

fn first_piece(kind: Kind) -> Vec<String> {
    match kind {
        Kind::Anthropic => {
            let mut events = vec![anthropic::start()];
            events.extend(anthropic::text(0, &["Hel"]));
            events
        }
        Kind::OpenAi => vec![openai::text("Hel")],
        Kind::Gemini => vec![gemini::text("Hel")],
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_is_no_end() {
    for kind in KINDS {
        let server = Server::start([Reply::events(first_piece(kind)).then_cut()]).await;
        let mut answer = ask(&remote(kind, server.url())).await;
        assert_eq!(answer.pop().unwrap().unwrap_err().kind(), "connection");
        assert_eq!(answer, [text("Hel")]);
    }
}

#[tokio::test]
async fn silence_within_an_answer_ends_it() {
    for kind in KINDS {
        let mut limit = SHORT;
        loop {
            let mut server = Server::start([Reply::events(first_piece(kind)).then_silence()]).await;
            let answer = ask(&remote_with(kind, server.url(), limit)).await;
            if answer == [Err(ProviderError::TimedOut(limit))] && limit < LONG {
                // Too short for the first piece to come in, on a busy machine.
                limit *= 2;
                continue;
            }
            assert_eq!(answer, [text("Hel"), Err(ProviderError::TimedOut(limit))]);
            server.hung_up().await;
            break;
        }
    }
}

#[tokio::test]
async fn silence_before_an_answer_ends_it() {
    for kind in KINDS {
        let server = Server::start([Reply::silence()]).await;
        let answer = ask(&remote_with(kind, server.url(), SHORT)).await;
        assert_eq!(answer, [Err(ProviderError::TimedOut(SHORT))]);
    }
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    for kind in KINDS {
        let mut server = Server::start([Reply::events(first_piece(kind)).then_silence()]).await;
        let remote = remote(kind, server.url());
        let mut answer =
            remote.answer(ModelRequest { messages: vec![Message::user("hello")], ..ModelRequest::default() });
        assert_eq!(answer.next().await, Some(text("Hel")));
        drop(answer);
        server.hung_up().await;
    }
}

#[tokio::test]
async fn a_piece_that_cannot_be_read_is_malformed_and_the_last() {
    for (kind, bad) in [
        (Kind::Anthropic, "event: content_block_delta\ndata: {oops}\n\n"),
        (Kind::Anthropic, "event: content_block_delta\ndata: {\"delta\": 1}\n\n"),
        (Kind::OpenAi, "data: {oops}\n\n"),
        (Kind::Gemini, "data: {oops}\n\n"),
        (Kind::Gemini, "data: {\"usageMetadata\": {}}\n\n"),
    ] {
        let mut events = first_piece(kind);
        events.push(bad.to_owned());
        events.extend(first_piece(kind));
        let mut answer = answer(kind, events).await;
        assert_eq!(answer.pop().unwrap().unwrap_err().kind(), "malformed", "{bad}");
        assert_eq!(answer, [text("Hel")], "{bad}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_malformed() {
    let answer = answer(Kind::OpenAi, [b"data: \xff\xff\n\n".to_vec()]).await;
    assert_eq!(answer.len(), 1);
    assert_eq!(answer[0].as_ref().unwrap_err().kind(), "malformed");
}

#[tokio::test]
async fn nobody_there_is_a_failed_connection() {
    for kind in KINDS {
        let answer = ask(&remote(kind, crate::wire::nobody().await)).await;
        let [Err(ProviderError::Connection(text))] = answer.as_slice() else { panic!("{answer:?}") };
        assert!(text.contains("refused") && !text.contains("http://"), "{text}");
    }
}

#[tokio::test]
async fn the_key_is_in_no_error() {
    let echo = body(&format!("{}key {KEY} is wrong", "x".repeat(490)));
    // It is taken out before the text is cut, which would leave a half of it.
    let expected = format!("HTTP 401: {}key [key]…", "x".repeat(490));
    for kind in KINDS {
        let ProviderError::Unauthorized(text) = failure(kind, Reply::failure(401, &echo)).await else {
            panic!("not unauthorized");
        };
        assert_eq!(text, expected);
        let in_stream = match kind {
            Kind::Anthropic => anthropic::event(json!({ "type": "error", "error": { "message": KEY } })),
            Kind::OpenAi | Kind::Gemini => openai::event(json!({ "error": { "message": KEY } })),
        };
        let error = ProviderError::Unavailable("[key]".to_owned());
        assert_eq!(answer(kind, [in_stream]).await, [Err(error)]);
    }
}

#[tokio::test]
async fn a_parameter_of_the_wrong_kind_is_not_sent() {
    let remote = remote(Kind::Anthropic, crate::wire::nobody().await);
    let parameters = data! { "max_tokens": "many" }.into();
    let answer: Answer = remote.answer(ModelRequest { parameters, ..ModelRequest::default() }).collect().await;
    let error = ProviderError::Rejected("parameter `max_tokens` must be a positive integer".to_owned());
    assert_eq!(answer, [Err(error)]);
}
