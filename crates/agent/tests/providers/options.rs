//! The options of a model.

use super::*;

fn error(options: RemoteOptions) -> ProviderError {
    RemoteProvider::new(options).unwrap_err()
}

#[test]
fn kinds_are_written_and_read_as_words() {
    for (kind, word, variable) in [
        (Kind::Anthropic, "anthropic", "ANTHROPIC_API_KEY"),
        (Kind::OpenAi, "openai", "OPENAI_API_KEY"),
        (Kind::Gemini, "gemini", "GEMINI_API_KEY"),
    ] {
        assert_eq!((kind.to_string(), word.parse(), kind.key_variable()), (word.to_owned(), Ok(kind), variable));
    }
    let error = "claude".parse::<Kind>().unwrap_err();
    assert_eq!(error.to_string(), "unknown provider `claude`; expected one of: anthropic, openai, gemini");
}

#[test]
fn the_key_is_not_shown() {
    let mut options = RemoteOptions::new(Kind::OpenAi, "gpt-4.1");
    options.key = Some(KEY.to_owned());
    options.base_url = Some(format!("https://example.com/{KEY}"));
    let shown = format!("{options:?} {:?}", RemoteProvider::new(options.clone()).unwrap());
    assert!(!shown.contains(KEY) && shown.contains("[key]"), "{shown}");
}

#[test]
fn without_a_key_only_another_address_works() {
    let missing = ProviderError::Unauthorized("missing; set `GEMINI_API_KEY`".to_owned());
    assert_eq!(error(RemoteOptions::new(Kind::Gemini, "gemini-2.5-flash")), missing);

    let mut options = RemoteOptions::new(Kind::Gemini, "gemini-2.5-flash");
    options.key = Some(" \n".to_owned());
    assert_eq!(error(options), missing);
}

#[test]
fn a_key_that_cannot_be_sent_is_found_before_it_is() {
    let mut options = RemoteOptions::new(Kind::OpenAi, "gpt-4.1");
    options.key = Some("sk-\nsecret".to_owned());
    let expected = "unprintable characters; check `OPENAI_API_KEY`".to_owned();
    assert_eq!(error(options), ProviderError::Unauthorized(expected));
}

#[test]
fn an_address_that_is_none_is_refused() {
    for address in ["localhost:11434", "file:///tmp", "nowhere"] {
        let mut options = RemoteOptions::new(Kind::OpenAi, "llama3.3");
        options.base_url = Some(address.to_owned());
        let error = error(options);
        assert_eq!(error.kind(), "rejected");
        assert!(error.to_string().ends_with("; give an address such as `http://localhost:11434/v1`"), "{error}");
    }
}

#[test]
fn a_model_is_described() {
    let mut options = RemoteOptions::new(Kind::Anthropic, "claude-sonnet-4-5");
    options.key = Some(KEY.to_owned());
    let remote = RemoteProvider::new(options.clone()).unwrap();
    assert_eq!((remote.name(), remote.model(), remote.context_limit()), ("anthropic", "claude-sonnet-4-5", 200_000));
    options.context_limit = Some(1_000_000);
    assert_eq!(RemoteProvider::new(options).unwrap().context_limit(), 1_000_000);
}
