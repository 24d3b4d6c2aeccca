//! The events reference: every documented event is there, with every documented field.

use amplifier_core::*;
use serde_json::json;

/// Events with documented data, and its fields beside `session_id` and `timestamp`.
const DOCUMENTED: [(&str, &[&str]); 16] = [
    ("session:start", &["mount_plan", "source"]),
    ("session:end", &["reason", "duration_ms", "stats"]),
    ("prompt:submit", &["prompt", "metadata"]),
    ("tool:pre", &["tool_name", "tool_input"]),
    ("tool:post", &["tool_name", "tool_input", "tool_result", "success", "duration_ms", "tool_call_id"]),
    ("orchestrator:complete", &["orchestrator", "final_message", "turn_count", "duration_ms", "status"]),
    ("agent:spawn", &["parent_session_id", "agent_name", "task", "config_override"]),
    ("agent:complete", &["parent_session_id", "agent_name", "task", "result", "duration_ms", "status"]),
    ("context:pre_compact", &["trigger", "current_tokens", "target_tokens", "messages_count"]),
    ("user:notification", &["notification_type", "message", "metadata"]),
    ("decision:tool_resolution", &["available_tools", "selected_tool", "reason"]),
    ("decision:agent_resolution", &["agent_name", "reason"]),
    ("decision:context_resolution", &["strategy", "reason"]),
    ("error:tool", &["tool_name", "error"]),
    ("error:provider", &["provider", "error"]),
    ("error:orchestration", &["error"]),
];

/// Events that are known by name.
const NAMED: [&str; 25] = [
    "execution:start",
    "execution:complete",
    "provider:request",
    "provider:response",
    "session:resume",
    "session:fork",
    "prompt:complete",
    "provider:retry",
    "provider:throttle",
    "content_block:start",
    "content_block:delta",
    "content_block:end",
    "thinking:delta",
    "thinking:final",
    "context:post_compact",
    "artifact:read",
    "artifact:write",
    "policy:violation",
    "approval:required",
    "approval:granted",
    "approval:denied",
    "cancel:requested",
    "cancel:completed",
    "tool:pre",
    "tool:post",
];

fn spec(name: &str) -> &'static EventSpec {
    catalog().iter().find(|spec| spec.name == name).unwrap_or_else(|| panic!("{name} is missing"))
}

#[test]
fn every_documented_event_has_every_documented_field() {
    for (name, fields) in DOCUMENTED {
        for field in fields {
            assert!(spec(name).fields.iter().any(|spec| spec.name == *field), "{name} lacks {field}");
        }
    }
}

#[test]
fn every_named_event_is_in_the_catalog_once() {
    for name in NAMED {
        assert!(!spec(name).when.is_empty());
    }
    let mut names: Vec<_> = catalog().iter().map(|spec| spec.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), catalog().len());
    assert!(names.iter().all(|name| name.parse::<EventName>().is_ok_and(|parsed| parsed.canonical() == *name)));
}

#[test]
fn payloads_write_what_they_read_and_keep_what_they_do_not_know() {
    let post = ToolPost::new("Write", data! { "file_path": "a" }, json!({ "ok": 1 }), true, 7)
        .with("tool_call_id", "c1")
        .with("my_field", json!([1, 2]));
    let data = EventData::from(post.clone());
    assert_eq!(
        data,
        data! {
            "tool_name": "Write", "tool_input": { "file_path": "a" }, "tool_result": { "ok": 1 }, "success": true,
            "duration_ms": 7, "tool_call_id": "c1", "my_field": [1, 2],
        }
    );
    let read: ToolPost = data.view().unwrap();
    assert_eq!((read.tool_name(), read.success(), read.duration_ms()), ("Write", true, 7));
    assert_eq!((read.tool_call_id(), &read["my_field"]), (Some("c1"), &json!([1, 2])));
    assert_eq!(read, post);
}

#[test]
fn lists_of_texts_are_read_and_checked() {
    let chosen = DecisionToolResolution::new(["a", "b"], "a");
    assert_eq!((chosen.available_tools(), chosen.reason()), (vec!["a", "b"], None));
    let wrong = data! { "available_tools": ["a", 1], "selected_tool": "a" };
    assert_eq!(
        wrong.view::<DecisionToolResolution>().unwrap_err().to_string(),
        "the field `available_tools` of `decision:tool_resolution` is not a list of texts"
    );
}

#[test]
fn a_view_is_checked_again_after_a_change() {
    let mut data = EventData::from(ToolPre::new("Bash", Map::new()));
    assert!(data.view::<ToolPre>().is_ok());
    data.insert("tool_name", 5);
    assert!(data.view::<ToolPre>().is_err());
    data.insert("tool_name", "Bash");
    assert!(data.view::<ToolPre>().is_ok());
    data.remove("tool_input");
    assert!(data.view::<ToolPre>().is_err());
    assert!(data.view::<ErrorTool>().is_err(), "another payload asks for other fields");
}
