//! Checks of a bundle's tests.

use amplifier_core::EventName;

use super::{BundleTest, Expectation};
use crate::condition::did_you_mean;

const DECISIONS: [&str; 5] = ["continue", "modify", "inject_context", "ask_user", "deny"];

impl BundleTest {
    /// Returns the events of the test, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = &str> {
        self.before.iter().map(|before| before.event.as_str()).chain([self.event.as_str()])
    }

    /// Returns the mistakes of the test, each with what to do, if the message does not say that.
    pub(super) fn mistakes(&self) -> Vec<(String, Option<String>)> {
        let mut mistakes = Vec::new();
        if let Some(before) = self.before.iter().find(|before| !(1..=1000).contains(&before.times)) {
            mistakes.push((format!("invalid `times` `{}`: expected 1 to 1,000", before.times), None));
        }
        let invalid = self.events().filter_map(|event| event.parse::<EventName>().err());
        mistakes.extend(invalid.map(|error| (error.to_string(), None)));
        if self.expect == Expectation::default() {
            mistakes.push(("`expect` is empty: add `decision`, `by`, `says` or `data`".to_owned(), None));
        }
        let pointers = self.expect.data.keys().filter(|pointer| !pointer.starts_with('/'));
        let invalid =
            |pointer: &String| (format!("invalid JSON Pointer `{pointer}` in `expect`: begin with `/`"), None);
        mistakes.extend(pointers.map(invalid));
        if let Some(unknown) = self.expect.decision.as_deref().filter(|decision| !DECISIONS.contains(decision)) {
            let hint = did_you_mean(unknown, DECISIONS);
            let hint = hint.unwrap_or_else(|| format!("expected one of `{}`", DECISIONS.join("`, `")));
            mistakes.push((format!("unknown decision `{unknown}`"), Some(hint)));
        }
        mistakes
    }
}
