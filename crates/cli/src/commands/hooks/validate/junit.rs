//! The report as JUnit XML.

use std::fmt::Write;

use amplifier_modules::bundle::{Diagnostic, Severity};

use super::CheckedFile;

/// Returns a test suite with one test case per file without findings and per finding. Warnings fail only if they are denied.
pub(super) fn report(checked: &[CheckedFile], deny_warnings: bool) -> String {
    let fails = |found: &Diagnostic| deny_warnings || found.severity == Severity::Error;
    let failures = checked.iter().flat_map(|one| &one.found).filter(|found| fails(found)).count();
    let tests: usize = checked.iter().map(|one| one.found.len().max(1)).sum();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!("name=\"amplifier hooks validate\" tests=\"{tests}\" failures=\"{failures}\"");
    _ = writeln!(text, "<testsuites {counts}>\n  <testsuite {counts}>");
    for one in checked {
        let file = escape(&one.file.display().to_string());
        if one.found.is_empty() {
            _ = writeln!(text, "    <testcase classname=\"{file}\" name=\"{file}\"/>");
        }
        for found in &one.found {
            let error = &found.error;
            let place = escape(&format!("{}:{}:{}", error.file.display(), error.line, error.column));
            let (message, code) = (escape(&error.message), error.code);
            _ = writeln!(text, "    <testcase classname=\"{file}\" name=\"{place}: {code}\">");
            let body = escape(&found.to_string());
            _ = match fails(found) {
                true => writeln!(text, "      <failure type=\"{code}\" message=\"{message}\">{body}</failure>"),
                false => writeln!(text, "      <system-out>{body}</system-out>"),
            };
            _ = writeln!(text, "    </testcase>");
        }
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Escapes a text for XML. Characters that XML cannot contain are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push('\t'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
