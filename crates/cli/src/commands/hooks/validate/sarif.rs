//! The report as SARIF 2.1.0.

use std::path::Path;

use amplifier_modules::bundle::{BundleError, Diagnostic, MistakeCode};
use serde_json::{Value, json};

use super::CheckedFile;

/// Returns one run with a result per finding.
pub(super) fn report(checked: &[CheckedFile]) -> Value {
    let results: Vec<Value> = checked.iter().flat_map(|one| &one.found).map(result).collect();
    let rules: Vec<Value> = MistakeCode::ALL.iter().map(|code| json!({ "id": code.as_str() })).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "amplifier", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(found: &Diagnostic) -> Value {
    let BundleError { file, line, column, code, message, help, .. } = &found.error;
    let text = match help {
        Some(help) => format!("{message}; {help}"),
        None => message.clone(),
    };
    let mut place = json!({ "artifactLocation": { "uri": uri(file) } });
    if *line > 0 {
        place["region"] = json!({ "startLine": line, "startColumn": column });
    }
    json!({
        "ruleId": code.as_str(),
        "level": found.severity.as_str(),
        "message": { "text": text },
        "locations": [{ "physicalLocation": place }],
    })
}

/// Returns a path as a URI: relative if the path is.
fn uri(file: &Path) -> String {
    let mut uri = String::from(if file.is_absolute() { "file://" } else { "" });
    for byte in file.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
