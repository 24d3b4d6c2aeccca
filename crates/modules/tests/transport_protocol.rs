//! The JSON Schema of requests says what the code says.
//!
//! After a change, write it anew: `UPDATE_SCHEMAS=1 cargo test -p amplifier-modules --test all transport_protocol`.

use std::path::Path;

use amplifier_core::{EventData, data};
use amplifier_modules::transport::HookRequest;
use serde_json::{Value, json};

#[test]
fn the_schema_of_requests_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/hook-request.schema.json");
    let text = format!("{:#}\n", schemars::schema_for!(HookRequest<'_>).as_value());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "UPDATE_SCHEMAS=1 cargo test -p amplifier-modules --test all transport_protocol");
}

#[test]
fn a_request_has_the_fields_of_the_protocol_in_their_order() {
    let data = amplifier_core::data! { "tool_name": "Bash" };
    let request = HookRequest::new("lint", "tool:pre", &data, None);
    let expected = r#"{"protocol":1,"hook":"lint","event":"tool:pre","data":{"tool_name":"Bash"}}"#;
    assert_eq!(serde_json::to_string(&request).unwrap(), expected);
    let expected = r#"{"protocol":1,"id":7,"hook":"lint","event":"tool:pre","data":{"tool_name":"Bash"}}"#;
    assert_eq!(serde_json::to_string(&HookRequest { id: Some(7), ..request }).unwrap(), expected);
}

#[test]
fn a_request_says_where_the_agent_works_and_which_file_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    let shown = workspace.to_str().unwrap().to_owned();
    let path = |event: &str, data: EventData| {
        let request = serde_json::to_value(HookRequest::new("lint", event, &data, Some(&workspace))).unwrap();
        assert_eq!((&request["workspace"], &request["cwd"]), (&json!(shown), &json!(shown)));
        request.get("path").map(|path| path.as_str().unwrap().to_owned())
    };
    let tool = |name: &str, input: Value| path("tool:post", data! { "tool_name": name, "tool_input": input });
    assert_eq!(tool("Write", json!({ "file_path": "src/../a.txt" })), Some(format!("{shown}/a.txt")));
    assert_eq!(tool("Edit", json!({ "file_path": "/etc/../tmp/x" })), Some("/tmp/x".to_owned()));
    assert_eq!(tool("Grep", json!({ "pattern": "x", "path": "src" })), Some(format!("{shown}/src")));
    assert_eq!(tool("Grep", json!({ "pattern": "x" })), None);
    assert_eq!(tool("Bash", json!({ "command": "ls", "path": "x" })), None);
    // The path of a foreign tool may be a URL, or in another folder.
    assert_eq!(tool("mcp__web__get", json!({ "path": "x" })), None);
    assert_eq!(path("artifact:write", data! { "path": "src/a.txt" }), Some(format!("{shown}/src/a.txt")));
}

#[test]
fn a_path_in_a_request_has_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("/etc", workspace.join("link")).unwrap();
    let data = data! { "tool_name": "Read", "tool_input": json!({ "file_path": "link/hostname" }) };
    let request = serde_json::to_value(HookRequest::new("lint", "tool:pre", &data, Some(&workspace))).unwrap();
    assert_eq!(request["path"], "/etc/hostname");

    std::fs::create_dir_all(workspace.join("secrets/sub")).unwrap();
    std::os::unix::fs::symlink("secrets/sub", workspace.join("short")).unwrap();
    std::os::unix::fs::symlink("short/../new", workspace.join("innocent")).unwrap();
    let data = data! { "tool_name": "Write", "tool_input": json!({ "file_path": "innocent" }) };
    let request = serde_json::to_value(HookRequest::new("lint", "tool:pre", &data, Some(&workspace))).unwrap();
    assert_eq!(request["path"], workspace.join("secrets/new").to_str().unwrap());
}
