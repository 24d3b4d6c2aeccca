//! The JSON Schema of bundles, for editors.

use serde_json::{Value, json};

use super::Bundle;
use crate::builtin::MODULES;

/// Returns the JSON Schema of a bundle, with the options of every built-in module. Other module names belong to the [host](super::load_hosted).
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Bundle).to_value();
    let names: Vec<&str> = MODULES.iter().map(|module| module.name).collect();
    let options = MODULES.iter().map(|module| {
        let mut config = module.schema();
        // Inlined as a part of this schema.
        let (_, definitions) =
            config.as_object_mut().map_or((None, None), |fields| (fields.remove("$schema"), fields.remove("$defs")));
        let known = schema["$defs"].as_object_mut().zip(definitions);
        if let Some((known, Value::Object(more))) = known {
            known.extend(more);
        }
        json!({
            "if": { "properties": { "module": { "const": module.name } }, "required": ["module"] },
            "then": { "properties": { "config": config } },
        })
    });
    let options: Vec<Value> = options.collect();
    if let Some(entry) = schema.pointer_mut("/$defs/HookEntry").and_then(Value::as_object_mut) {
        let kinds = ["module", "rule", "command", "worker", "http", "nats", "wasm"];
        let one =
            kinds.map(|kind| json!({ "required": [kind], "properties": { kind: { "not": { "type": "null" } } } }));
        entry.insert("oneOf".to_owned(), json!(one));
        entry.insert("allOf".to_owned(), json!(options));
        if let Some(module) = entry["properties"]["module"].as_object_mut() {
            // Editors suggest built-in modules; a host may provide others with unknown options.
            module.insert("anyOf".to_owned(), json!([{ "enum": names }, { "type": "string" }]));
            module.remove("type");
        }
    }
    schema
}
