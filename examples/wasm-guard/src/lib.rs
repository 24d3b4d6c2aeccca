//! A hook that runs in a sandbox: it keeps secrets out of files, commands and the model's context.
//!
//! ```sh
//! rustup target add wasm32-wasip2
//! cargo build --release --target wasm32-wasip2
//! amplifier hooks test bundle.yaml
//! ```

use serde_json::{Value, json};

wit_bindgen::generate!({ path: "../../crates/modules/wit", world: "hook" });

struct Guard;

impl Guest for Guard {
    fn handle(request: String) -> Result<String, String> {
        let request: Value =
            serde_json::from_str(&request).map_err(|error| format!("the request is no JSON: {error}"))?;
        Ok(decide(request).to_string())
    }
}

export!(Guard);

/// Denies what is about to happen with a secret, and takes it out of what has happened.
fn decide(mut request: Value) -> Value {
    let mut found = Vec::new();
    let data = &mut request["data"];
    redact(data, &mut found);
    let kinds = found.join(", ");
    match (found.is_empty(), data.get("tool_result").is_some()) {
        (true, _) => json!({}),
        (false, true) => {
            json!({ "action": "modify", "data": data, "user_message": format!("removed from the result: {kinds}") })
        }
        (false, false) => {
            json!({ "action": "deny", "reason": format!("it holds {kinds}; use a variable of the environment instead") })
        }
    }
}

/// Puts a note in the place of every secret, and names what was found.
fn redact(value: &mut Value, found: &mut Vec<&'static str>) {
    match value {
        Value::String(text) => {
            let words: Vec<&str> = text.split_inclusive(is_between).collect();
            let mut clean = String::with_capacity(text.len());
            for word in words {
                let bare = word.trim_end_matches(is_between);
                match kind(bare) {
                    Some(kind) => {
                        if !found.contains(&kind) {
                            found.push(kind);
                        }
                        clean.push_str("[removed]");
                        clean.push_str(&word[bare.len()..]);
                    }
                    None => clean.push_str(word),
                }
            }
            *text = clean;
        }
        Value::Array(values) => values.iter_mut().for_each(|value| redact(value, found)),
        Value::Object(fields) => fields.values_mut().for_each(|value| redact(value, found)),
        _ => {}
    }
}

fn is_between(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// What kind of secret a word is, if it is one.
fn kind(word: &str) -> Option<&'static str> {
    const KINDS: [(&str, usize, &str); 4] = [
        ("AKIA", 20, "an access key of AWS"),
        ("ghp_", 40, "a token of GitHub"),
        ("sk-", 24, "a key of a model provider"),
        ("xoxb-", 24, "a token of Slack"),
    ];
    KINDS.iter().find(|(start, least, _)| word.starts_with(start) && word.len() >= *least).map(|(_, _, kind)| *kind)
}
