//! The reasons why the hooks of bundles are active or not.

use std::path::PathBuf;

use amplifier_modules::bundle::{BundleScope, HookDefinition, LoadedBundle};
use serde::Serialize;

use crate::bundles::Bundles;
use crate::project_bundle::ProjectTrust;

/// A hook of a bundle, and the reason why it is active or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HookState {
    /// The name in the bundle.
    pub name: String,
    /// The scope of the bundle.
    pub level: &'static str,
    /// The file.
    pub file: PathBuf,
    /// The line in the file, from 1.
    pub line: u64,
    /// `true` if the hook is active.
    pub active: bool,
    /// The reason.
    pub reason: String,
}

impl Bundles {
    /// Returns all hooks of all bundles, with the reason why each is active or not.
    pub fn hook_states(&self) -> Vec<HookState> {
        let stack = self.levels();
        let mut states = Vec::new();
        for (scope, renamed) in stack.bundles() {
            let Some(bundle) = self.bundle(scope) else { continue };
            for (hook, renamed) in bundle.hooks.iter().zip(&renamed.hooks) {
                let (name, renamed) = (hook.entry.shown_name(), renamed.entry.shown_name());
                let owner = stack.scope_of(&name).filter(|_| name != renamed);
                let (active, reason) = match owner {
                    _ if hook.entry.enabled == Some(false) => (false, "`enabled: false`".to_owned()),
                    _ if name == renamed => (true, "active".to_owned()),
                    Some(owner) => {
                        (true, format!("active as `{renamed}`, because the {owner} bundle has a hook `{name}`"))
                    }
                    None => (true, format!("active as `{renamed}`, because a built-in hook has its name")),
                };
                states.push(state(hook, scope, active, reason));
            }
        }
        if let Some(project) = &self.project
            && let ProjectTrust::Untrusted(bundle, ..) = &project.state
        {
            let reason = || format!("the bundle is {}; run `amplifier hooks trust`", project.trust_label());
            states.extend(bundle.hooks.iter().map(|hook| state(hook, BundleScope::Project, false, reason())));
        }
        states
    }

    fn bundle(&self, scope: BundleScope) -> Option<&LoadedBundle> {
        match (scope, self.project.as_ref().map(|project| &project.state)) {
            (BundleScope::Project, Some(ProjectTrust::Trusted(bundle, _))) => Some(bundle),
            _ => self.own().find(|(own, _)| *own == scope).map(|(_, bundle)| bundle),
        }
    }
}

fn state(hook: &HookDefinition, scope: BundleScope, active: bool, reason: String) -> HookState {
    let (name, file) = (hook.entry.shown_name(), hook.file.clone());
    HookState { name, level: scope.as_str(), file, line: hook.line(), active, reason }
}
