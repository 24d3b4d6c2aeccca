//! Mistakes in bundles, and what is said about each.

mod first;
mod more;
mod policy;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::Place;

/// A name, a bundle, and each finding: severity, line and column, message and help.
type Mistake = (&'static str, &'static str, &'static [&'static str]);

#[test]
fn every_mistake_is_told_with_its_place_and_what_to_write() {
    let place = Place::with(json!([]));
    let mistakes: Vec<&Mistake> = first::FIRST.iter().chain(more::MORE).chain(policy::POLICY).collect();
    assert!(first::FIRST.len() == 37 && more::MORE.len() >= 30);
    let files: Vec<String> = (0..mistakes.len()).map(|number| format!("{number}.yaml")).collect();
    for (file, (_, text, _)) in files.iter().zip(&mistakes) {
        place.write(&format!("workspace/{file}"), text);
    }
    let arguments =
        [&["hooks", "validate", "--json"][..], &files.iter().map(String::as_str).collect::<Vec<_>>()].concat();
    let ran = place.amplifier(&arguments);
    let mut told = BTreeMap::<String, Vec<String>>::new();
    for line in ran.out.lines() {
        let found: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        let place = if found["line"] == 0 { String::new() } else { format!(":{}:{}", found["line"], found["column"]) };
        let help = found["help"].as_str().map(|help| format!("; {help}")).unwrap_or_default();
        told.entry(text("file")).or_default().push(format!("{}{place}: {}{help}", text("severity"), text("message")));
    }
    for (file, (name, _, expected)) in files.iter().zip(&mistakes) {
        assert!(!expected.is_empty());
        assert_eq!(told.remove(file).unwrap_or_default(), *expected, "{name}");
    }
}
