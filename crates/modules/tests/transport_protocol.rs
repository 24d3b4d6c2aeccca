//! The JSON Schema of requests says what the code says.
//!
//! After a change, write it anew: `UPDATE_SCHEMAS=1 cargo test -p amplifier-modules --test all transport_protocol`.

use std::path::Path;

use amplifier_modules::transport::{HookRequest, PROTOCOL};

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
    let request = HookRequest { protocol: PROTOCOL, id: None, hook: "lint", event: "tool:pre", data: &data };
    let expected = r#"{"protocol":1,"hook":"lint","event":"tool:pre","data":{"tool_name":"Bash"}}"#;
    assert_eq!(serde_json::to_string(&request).unwrap(), expected);
    let expected = r#"{"protocol":1,"id":7,"hook":"lint","event":"tool:pre","data":{"tool_name":"Bash"}}"#;
    assert_eq!(serde_json::to_string(&HookRequest { id: Some(7), ..request }).unwrap(), expected);
}
