//! A policy in a sandbox. Every event gets a fresh one: nothing is remembered, and nothing can be touched but what the bundle grants.

use serde_json::{Value, json};

wit_bindgen::generate!({ path: "wit", world: "hook" });

struct Guard;

impl Guest for Guard {
    fn handle(request: String) -> Result<String, String> {
        let request: Value = serde_json::from_str(&request).map_err(|error| error.to_string())?;
        Ok(decide(&request["event"], &request["data"]).to_string())
    }
}

export!(Guard);

/// What to do about an event; nothing in particular to go on.
fn decide(event: &Value, data: &Value) -> Value {
    let path = data["tool_input"]["file_path"].as_str().unwrap_or_default();
    if event == "tool:pre" && path.split('/').any(|folder| folder == "production") {
        return json!({ "action": "deny", "reason": "production files are deployed, not written" });
    }
    json!({})
}
