//! Results have the fields that their schemas name.

use std::collections::BTreeSet;

use amplifier_agent::tool::{reference, standard};
use serde_json::{Value, json};

use crate::tools::place::Place;

/// Checks that a value has the type, and an object exactly the fields, that a schema describes.
fn check(schema: &Value, value: &Value, at: &str) {
    let is_type = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        other => panic!("{at}: unexpected type {other:?} in {schema}"),
    };
    assert!(is_type, "{at}: {value} is not as in {schema}");
    for item in value.as_array().into_iter().flatten() {
        check(&schema["items"], item, at);
    }
    if let Some(fields) = value.as_object() {
        let described: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields.keys().collect::<BTreeSet<_>>(), described, "{at}");
        for (name, value) in fields {
            let field = &schema["properties"][name];
            check(field, value, &format!("{at}.{name}"));
        }
    }
}

#[tokio::test]
async fn a_result_has_the_fields_of_its_schema() {
    let place = Place::with(&[("a.txt", "one\ntwo\n")]);
    let edit = json!({ "old_string": "one", "new_string": "1" });
    let inputs = [
        ("Read", json!({ "file_path": "a.txt" })),
        ("Write", json!({ "file_path": "b.txt", "content": "x" })),
        ("Edit", json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" })),
        ("MultiEdit", json!({ "file_path": "a.txt", "edits": [edit] })),
        ("Bash", json!({ "command": "echo done" })),
        ("Glob", json!({ "pattern": "*.txt" })),
        ("Grep", json!({ "pattern": "1" })),
        ("Todo", json!({ "todos": [{ "content": "test", "status": "pending" }] })),
    ];
    let tools = standard(&place.workspace);
    assert_eq!(tools.len(), inputs.len());
    for (tool, (name, input)) in tools.iter().zip(inputs) {
        assert_eq!(tool.spec().name, name);
        let result = tool.run(input.as_object().cloned().unwrap()).await.unwrap().result;
        check(&tool.result_schema().unwrap(), &Value::Object(result), name);
    }
}

#[test]
fn every_field_of_the_reference_is_described() {
    let place = Place::with(&[]);
    let tools = reference(&place.workspace);
    assert_eq!(tools.last().unwrap().spec.name, "Task");
    for tool in tools {
        for schema in [tool.spec.input_schema, tool.result_schema.unwrap()] {
            for (field, about) in schema["properties"].as_object().unwrap() {
                assert!(about["description"].is_string(), "{}: {field}", tool.spec.name);
            }
        }
    }
}
