//! The JSON Schema of bundles, for editors.

use serde_json::{Value, json};

use super::Bundle;
use crate::builtin::MODULES;

/// The JSON Schema of a bundle, with the options of every module that comes with the program. Modules of other names are those that a
/// [host](super::load_hosted) brings.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Bundle).to_value();
    let names: Vec<&str> = MODULES.iter().map(|module| module.name).collect();
    let options = MODULES.iter().map(|module| {
        let mut config = module.schema();
        // They are part of this schema, and not schemas of their own.
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
        let kinds = ["module", "rule", "command", "worker", "http", "wasm"];
        let one =
            kinds.map(|kind| json!({ "required": [kind], "properties": { kind: { "not": { "type": "null" } } } }));
        entry.insert("oneOf".to_owned(), json!(one));
        entry.insert("allOf".to_owned(), json!(options));
        if let Some(module) = entry["properties"]["module"].as_object_mut() {
            // Editors offer ours; a host may bring others, whose options only they know.
            module.insert("anyOf".to_owned(), json!([{ "enum": names }, { "type": "string" }]));
            module.remove("type");
        }
    }
    schema
}
