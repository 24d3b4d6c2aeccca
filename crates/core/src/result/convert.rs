//! Return types of hook functions.

use super::{Action, HookError, HookResult};

/// The return type of a hook function: a [`HookResult`], an [`Action`], nothing, an `Option` or a `Result` of these.
///
/// ```
/// use amplifier_core::{HookError, HookRegistry, HookResult, TOOL_PRE};
///
/// let hooks = HookRegistry::new();
/// hooks.on(TOOL_PRE, |event| println!("{} runs", event.tool_name()));
/// hooks.on(TOOL_PRE, |event| (event.tool_name() == "rm").then(|| HookResult::deny("no rm")));
/// hooks.on(TOOL_PRE, |event| async move {
///     let size: u64 = event.tool_name().parse()?;
///     Ok::<_, HookError>(HookResult::set("size", size))
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook result",
    note = "a hook returns `HookResult`, `()`, or an `Option` or `Result` of these; an async hook a future of these"
)]
pub trait IntoHookResult {
    /// Converts the value to a hook result.
    ///
    /// # Errors
    /// If the hook failed.
    fn into_hook_result(self) -> Result<HookResult, HookError>;
}

impl IntoHookResult for HookResult {
    fn into_hook_result(self) -> Result<HookResult, HookError> {
        Ok(self)
    }
}

impl IntoHookResult for Action {
    fn into_hook_result(self) -> Result<HookResult, HookError> {
        Ok(self.into())
    }
}

impl IntoHookResult for () {
    fn into_hook_result(self) -> Result<HookResult, HookError> {
        Ok(HookResult::proceed())
    }
}

impl<T: IntoHookResult> IntoHookResult for Option<T> {
    fn into_hook_result(self) -> Result<HookResult, HookError> {
        self.map_or_else(|| ().into_hook_result(), T::into_hook_result)
    }
}

impl<T: IntoHookResult, E: Into<HookError>> IntoHookResult for Result<T, E> {
    fn into_hook_result(self) -> Result<HookResult, HookError> {
        self.map_err(Into::into)?.into_hook_result()
    }
}
