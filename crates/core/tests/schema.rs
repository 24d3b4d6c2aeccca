//! The JSON Schemas under `schema/` say what the code says.
//!
//! After a change of the wire forms, write them anew: `UPDATE_SCHEMAS=1 cargo test -p amplifier-core --test all schema`.

use std::path::Path;

use amplifier_core::{FlatResult, catalog};
use serde_json::{Value, json};

fn check(name: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema").join(name);
    let text = format!("{schema:#}\n");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "{name} is not up to date: UPDATE_SCHEMAS=1 cargo test -p amplifier-core --test all schema"
    );
}

#[test]
fn the_schema_of_hook_results_is_up_to_date() {
    check("hook-result.schema.json", schemars::schema_for!(FlatResult).as_value());
}

#[test]
fn the_schema_of_events_is_up_to_date() {
    let events: serde_json::Map<_, _> = catalog().iter().map(|spec| (spec.name.to_owned(), spec.schema())).collect();
    check(
        "events.schema.json",
        &json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Events", "$defs": events }),
    );
}

#[test]
fn the_schema_knows_every_field_and_default_of_the_flat_form() {
    let schema = schemars::schema_for!(FlatResult);
    let properties = schema.as_value()["properties"].as_object().unwrap().clone();
    let flat = json!(FlatResult::<serde_json::Map<String, Value>>::default());
    assert_eq!(flat.as_object().unwrap().keys().collect::<Vec<_>>(), properties.keys().collect::<Vec<_>>());
    for (field, value) in flat.as_object().unwrap() {
        assert_eq!(properties[field]["default"], *value, "{field}");
    }
}
