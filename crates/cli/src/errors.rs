//! Errors of commands.

/// Returns what went wrong, and why, each part once.
pub fn reasons(error: &anyhow::Error) -> String {
    amplifier_host::reasons(error.as_ref())
}

/// Makes an error of wrong usage: the exit code is 2.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    amplifier_host::usage(message).into()
}

/// `true` if the command was used in a wrong way.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<amplifier_host::Error>().is_some_and(amplifier_host::Error::is_usage)
}
