//! The approval mode of a session, which can change while the session runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_core::{
    ComparedWith, Event, HookRegistry, HookResult, OnError, Registration, TOOL_POST, TOOL_PRE, ToolPost, ToolPre,
};
use amplifier_modules::bundle::ApprovalMode;
use amplifier_modules::shell::analyse;

use crate::error::{Result, usage};
use crate::git_undo::GitUndo;
use crate::guard_scope::GuardScope;
use crate::guards::{READING_TOOLS, WRITING_TOOLS};
use crate::operations::edited_file;

/// The name of the hook that denies changes in the mode `plan`.
pub(crate) const PLAN: &str = "plan";

/// The name of the hook that observes writes in the mode `accept-edits`.
pub(crate) const ACCEPT_EDITS: &str = "accept-edits";

/// The approval mode of a session. Cheap to clone; clones share the mode.
#[derive(Clone)]
pub struct ModeSwitch {
    forbidden: Arc<[ApprovalMode]>,
    hooks: HookRegistry,
    undo: GitUndo,
    scope: GuardScope,
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<ActiveMode>>,
}

struct ActiveMode {
    mode: ApprovalMode,
    /// The hook of the mode.
    hook: Option<Registration>,
}

impl ModeSwitch {
    /// Sets the first mode, and registers its hook for the events in a scope.
    pub(crate) fn new(
        hooks: &HookRegistry,
        mode: ApprovalMode,
        forbidden: impl Into<Arc<[ApprovalMode]>>,
        undo: GitUndo,
        scope: GuardScope,
    ) -> Self {
        let state = Arc::new(Mutex::new(ActiveMode { mode, hook: None }));
        let switch = Self { forbidden: forbidden.into(), hooks: hooks.clone(), undo, scope, state };
        let hook = switch.register(mode);
        switch.lock().hook = hook;
        switch
    }

    /// Unregisters the hook of the mode, and ends its scope.
    pub(crate) fn end(&self) {
        let hook = self.lock().hook.take();
        hook.iter().for_each(Registration::unregister);
        self.scope.end();
    }

    pub(crate) fn scope(&self) -> &GuardScope {
        &self.scope
    }

    /// Returns the mode.
    pub fn current(&self) -> ApprovalMode {
        self.lock().mode
    }

    /// Returns the modes that are not forbidden.
    pub fn allowed(&self) -> impl Iterator<Item = ApprovalMode> {
        ApprovalMode::ALL.into_iter().filter(|mode| !self.forbidden.contains(mode))
    }

    /// Changes the mode, after `record` has recorded the mode before. Returns that mode.
    ///
    /// # Errors
    /// If the mode is forbidden, or the change cannot be recorded. The mode stays.
    pub(crate) fn set(
        &self,
        mode: ApprovalMode,
        record: impl FnOnce(ApprovalMode) -> Result<()>,
    ) -> Result<ApprovalMode> {
        check_allowed(mode, &self.forbidden)?;
        let mut state = self.lock();
        let before = state.mode;
        if before == mode {
            return Ok(before);
        }
        record(before)?;
        // The new hook is registered first: in no moment is neither active.
        let hook = self.register(mode);
        if let Some(hook) = std::mem::replace(&mut *state, ActiveMode { mode, hook }).hook {
            hook.unregister();
        }
        Ok(before)
    }

    /// Returns the version of a file that the mode accepts a write to, without approval.
    pub(crate) async fn accept_write(&self, file_path: &str) -> Option<ComparedWith> {
        if self.current() != ApprovalMode::AcceptEdits {
            return None;
        }
        let (undo, file_path) = (self.undo.clone(), file_path.to_owned());
        // Without a result, approval is requested.
        run_blocking(move || undo.accept(&file_path)).await.flatten()
    }

    /// Registers the hook of a mode.
    fn register(&self, mode: ApprovalMode) -> Option<Registration> {
        let scope = self.scope.clone();
        match mode {
            ApprovalMode::Ask | ApprovalMode::Deny => None,
            // After all other gates, so that it judges what would run.
            ApprovalMode::Plan => {
                let guard = self.hooks.hook(TOOL_PRE).named(PLAN).priority(i64::MAX).on_error(OnError::Deny);
                Some(guard.run(move |event: Event<ToolPre>| {
                    scope.contains(event.session_id()).then(|| deny_changes(event)).flatten()
                }))
            }
            ApprovalMode::AcceptEdits => {
                let undo = self.undo.clone();
                let observer = self.hooks.hook(TOOL_POST).named(ACCEPT_EDITS).observer();
                Some(observer.run(move |event: Event<ToolPost>| {
                    let undo = undo.clone();
                    let is_own = scope.contains(event.session_id());
                    async move {
                        let path = match event.tool_name() {
                            _ if !is_own || !event.success() => None,
                            "Bash" => event.text_at("/tool_input/command").and_then(edited_file),
                            tool if WRITING_TOOLS.contains(&tool) => {
                                event.text_at("/tool_input/file_path").map(str::to_owned)
                            }
                            _ => None,
                        };
                        let Some(path) = path else { return };
                        // Without it, the next write needs approval.
                        let _ = run_blocking(move || undo.record_written(&path)).await;
                    }
                }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ActiveMode> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails if the mode is forbidden.
pub(crate) fn check_allowed(mode: ApprovalMode, forbidden: &[ApprovalMode]) -> Result<()> {
    if !forbidden.contains(&mode) {
        return Ok(());
    }
    let allowed: Vec<&str> =
        ApprovalMode::ALL.into_iter().filter(|mode| !forbidden.contains(mode)).map(ApprovalMode::as_str).collect();
    Err(usage(format!(
        "mode `{mode}` is forbidden by `forbid_modes` in a bundle or the configuration; expected one of: {}",
        allowed.join(", ")
    )))
}

fn deny_changes(event: Event<ToolPre>) -> Option<HookResult> {
    let why = match event.tool_name() {
        tool if READING_TOOLS.contains(&tool) => return None,
        "Bash" => match event.text_at("/tool_input/command").map(analyse) {
            Some(analysis) if analysis.readonly => return None,
            _ => "the command is not proven to only read".to_owned(),
        },
        tool => format!("`{tool}` may change something"),
    };
    Some(HookResult::deny(format!(
        "plan mode: {why}. Read and search as needed, then describe the changes that you would make; the user can leave plan mode."
    )))
}

/// Runs blocking work, on a separate thread if there is a runtime. `None` if it panics.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.ok(),
        Err(_) => Some(work()),
    }
}
