//! Errors of commands.

/// Returns the message of an error and its causes, without repetition.
pub fn reasons(error: &anyhow::Error) -> String {
    amplifier_host::reasons(error.as_ref())
}

/// Creates a usage error, with exit code 2.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    amplifier_host::usage(message).into()
}

/// Returns `true` for a usage error.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<amplifier_host::Error>().is_some_and(amplifier_host::Error::is_usage)
}
