//! Laws for any value.

use std::sync::LazyLock;

use amplifier_audit::Redaction;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{apply, marker};

/// Pieces of text that rules look at, in any order.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "password",
        "Passwd",
        "PASSPHRASE",
        "secret",
        "api",
        "key",
        "token",
        "tokens",
        "access",
        "private",
        "aws",
        "authorization",
        "cookie",
        "set",
        "bearer ",
        "Basic ",
        "_",
        "-",
        "--",
        " ",
        "=",
        ":",
        ": ",
        " = ",
        "\"",
        "'",
        "\\",
        "\\\"",
        "\n",
        "\t",
        "é",
        "終",
        "\u{1f512}",
        "]",
        "[",
        "a",
        "x9",
        "hunter2",
        "://",
        "@",
        "/",
        "me",
        "?",
        "&",
        ";",
        ",",
        ".",
        "$",
        "${A}",
        "(",
        "0",
        "7",
        "4111",
        concat!("41111111", "11111111"),
        concat!("3782-822463", "-10005"),
        concat!("5555 5555", " 5555 4444"),
        "sk-",
        "ant-",
        "AKIA",
        "ghp_",
        "xoxb-",
        "AIza",
        "npm_",
        "hf_",
        "eyJ",
        ".eyJ",
        "Zk3vQ9mT7xLr2WnB8yHc5JpD4sGf6RaE1uKoViNqYt0X",
        "ZK3VQ9MT7XLR2WNB",
        "[redacted kind=token len=5 hmac=0123456789abcdef]",
        "[redacted kind=",
        "hooks.slack.com/services/",
        "-----BEGIN ",
        "PRIVATE KEY",
        "-----",
        "-----END ",
        "n",
        "t",
        "on",
        "mine",
    ]);
    prop::collection::vec(prop_oneof![9 => pieces.prop_map(str::to_owned), 1 => any::<String>()], 0..12)
        .prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        5 => text().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4).prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

fn rules() -> impl Strategy<Value = Redaction> {
    let mine = |pattern: &str| Redaction::standard().with_pattern("mine", pattern).unwrap();
    prop::sample::select(vec![
        Redaction::standard(),
        Redaction::standard().with_field("mine", "me").with_field("mine", "x").with_field("mine", "a-7-on"),
        mine("min[a-z]").with_field("mine", "mine"),
        mine("^a|7$"),
        mine("(?i)ASPHRASE(?<secret>.+)"),
        Redaction::none().with_pattern("mine", "secret").unwrap(),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    // `apply` holds the laws: what the prefilter lets pass stays, and a second run changes nothing.
    #[test]
    fn the_laws_hold_for_any_value(redaction in rules(), value in value()) {
        apply(&redaction, value);
    }

    #[test]
    fn the_prefilter_hides_nothing(value in value()) {
        // A pattern without a literal, which is never found, turns the prefilter off.
        static WITHOUT: LazyLock<Redaction> =
            LazyLock::new(|| Redaction::standard().with_pattern("nothing", r"[^\s\S]").unwrap());
        prop_assert_eq!(apply(&Redaction::standard(), value.clone()), apply(&WITHOUT, value));
    }

    #[test]
    fn the_laws_hold_for_numbers(
        before in "[0-9 a.\u{e9}\u{2028}-]{0,40}", card in 0..3_usize, after in "[0-9 a.-]{0,9}"
    ) {
        let cards = [concat!("41111111", "11111111"), concat!("3782 822463", " 10005"), concat!("422222", "2222222")];
        let card = cards[card];
        apply(&Redaction::standard(), json!([format!("{before}{card}{after}")]));
    }

    #[test]
    fn nothing_of_a_secret_remains(before in text(), secret in "[a-zA-Z0-9!#%+*?^~]{8,40}", after in text()) {
        let assigned = format!("{before} password=\"{secret}\" {after}");
        let value = json!({"text": assigned, "my_token": [secret], "auth": {"secret": secret}});
        let value = apply(&Redaction::standard(), value);
        prop_assert!(!value.to_string().contains(&secret), "{value}");
    }

    #[test]
    fn a_marker_tells_kind_length_and_equality(secret in "(?s).{1,9}", other in "(?s).{1,9}", key: [u8; 32]) {
        let redact = |text: &str| {
            let mut value = json!({"token": text});
            Redaction::standard().apply(&key, &mut value);
            value["token"].as_str().unwrap_or_default().to_owned()
        };
        prop_assert_eq!(redact(&secret), marker(&key, "token", &secret));
        prop_assert_eq!(redact(&secret) == redact(&other), secret == other);
    }

    #[test]
    fn separators_and_case_do_not_hide_a_name(
        parts in prop::collection::vec(("[_-]{0,2}", any::<bool>()), 13), name in 0..4_usize
    ) {
        let name = ["password", "token", "authorization", "apikey"][name];
        let mut key = String::new();
        for (letter, (separators, upper)) in name.chars().zip(&parts) {
            key.push_str(separators);
            key.push(if *upper { letter.to_ascii_uppercase() } else { letter });
        }
        let value = apply(&Redaction::standard(), json!({key.clone(): "hunter2"}));
        prop_assert!(!value.to_string().contains("hunter2"), "{}", value);
    }
}
