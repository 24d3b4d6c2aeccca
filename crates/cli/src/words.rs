//! Words for people that several commands need.

/// What went wrong, and why. Some errors say their reason themselves; it is said once all the same.
pub fn reasons(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, reason| match said.as_str() {
        "" => reason,
        text if text.contains(&reason) => said,
        text => format!("{text}: {reason}"),
    })
}
