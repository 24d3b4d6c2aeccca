//! Bundles of several scopes, merged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use amplifier_core::{HookRegistry, OverBudget, Registration, SessionConfig};

use super::load::FileContent;
use super::register::{CompiledHook, register_all};
use super::{BundleError, LoadedBundle, ProviderEntry, SessionSettings, Tools};
use crate::environment::HookEnvironment;

/// The origin of a bundle, which decides its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleScope {
    /// The machine's administrator: always used, and no other scope can weaken it.
    Managed,
    /// The organisation, which sends it to its machines. It has the rights of `Managed`.
    Fleet,
    /// The user's configuration: always used.
    User,
    /// The project: used if the user trusts it. It can add to the user's policy, but not weaken it.
    Project,
    /// Named by the user for one run.
    Explicit,
}

impl BundleScope {
    /// Returns the name of the scope.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Fleet => "fleet",
            Self::User => "user",
            Self::Project => "project",
            Self::Explicit => "named",
        }
    }

    /// Returns `true` if users cannot change the bundle.
    pub const fn is_managed(self) -> bool {
        matches!(self, Self::Managed | Self::Fleet)
    }
}

impl fmt::Display for BundleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Bundles of several scopes, merged.
///
/// Hooks are registered in the order managed, fleet, user, project, explicit, in which they run if their priorities are equal. No scope can disable or replace a hook
/// of another. If an earlier scope has a hook of the same name, the scope is appended to the name, as in `guard (project)`, so that approval rules
/// never apply to the other hook.
///
/// Of two settings, the stricter one applies; a project can only make settings stricter. Flags cannot relax those of managed bundles.
#[derive(Clone, Debug, Default)]
pub struct BundleStack {
    bundles: BTreeMap<BundleScope, LoadedBundle>,
    scopes: BTreeMap<String, BundleScope>,
    rejected_version: Option<BundleError>,
}

impl BundleStack {
    /// Merges bundles. Names in `taken` belong to other hooks.
    pub fn new(bundles: impl IntoIterator<Item = (BundleScope, LoadedBundle)>, taken: &[&str]) -> Self {
        let mut bundles: BTreeMap<_, _> = bundles.into_iter().collect();
        let mut scopes = BTreeMap::new();
        let mut taken: BTreeSet<String> = taken.iter().map(|&name| name.to_owned()).collect();
        for (scope, bundle) in &mut bundles {
            let mut own = BTreeSet::new();
            for entry in bundle.hooks.iter_mut().map(|definition| &mut definition.entry) {
                let mut name = entry.shown_name();
                while taken.contains(&name) {
                    name = format!("{name} ({scope})");
                    entry.name = Some(name.clone());
                }
                own.insert(name.clone());
                scopes.insert(name, *scope);
            }
            taken.extend(own);
        }
        Self { bundles, scopes, rejected_version: None }
    }

    /// Notes that one bundle is an older version, because the newer one has this error.
    #[must_use]
    pub fn with_rejected_version(mut self, error: Option<BundleError>) -> Self {
        self.rejected_version = error;
        self
    }

    /// Returns the error in the newer version of a bundle, if an older one is used.
    pub fn rejected_version(&self) -> Option<&BundleError> {
        self.rejected_version.as_ref()
    }

    /// Returns the bundles in the order of registration.
    pub fn bundles(&self) -> impl Iterator<Item = (BundleScope, &LoadedBundle)> {
        self.bundles.iter().map(|(scope, bundle)| (*scope, bundle))
    }

    /// Returns the scope of the bundle with a hook of that name; `None` if no bundle has one.
    pub fn scope_of(&self, hook: &str) -> Option<BundleScope> {
        self.scopes.get(hook).copied()
    }

    /// Registers the hooks of all scopes.
    ///
    /// # Errors
    /// If a hook cannot be compiled; then none stays registered.
    pub fn register(&self, hooks: &HookRegistry, host: &HookEnvironment) -> Result<Vec<Registration>, BundleError> {
        register_all(&self.compile(host, &[])?, hooks)
    }

    /// Compiles the hooks of all scopes without registering them. Unchanged hooks of the version `before` are reused.
    pub(super) fn compile(
        &self,
        host: &HookEnvironment,
        before: &[Arc<CompiledHook>],
    ) -> Result<Vec<Arc<CompiledHook>>, BundleError> {
        let scopes: Result<Vec<_>, _> = self.bundles.values().map(|bundle| bundle.compile(host, before)).collect();
        Ok(scopes?.into_iter().flatten().collect())
    }

    /// Returns the merged settings: the stricter one of each; if none is stricter, that of the explicit bundle, then that of the user. Settings that
    /// only users can decide are ignored in projects.
    pub fn settings(&self) -> SessionSettings {
        self.own_settings().stricter(self.project_settings())
    }

    /// Returns the merged settings of the user's own and of managed bundles, which can also relax a default.
    pub fn own_settings(&self) -> SessionSettings {
        merge(self.own())
    }

    /// Returns the merged settings of managed bundles: no other source can relax them.
    pub fn managed_settings(&self) -> SessionSettings {
        merge(self.bundles.iter().filter(|(scope, _)| scope.is_managed()).map(|(_, bundle)| bundle))
    }

    /// Returns the settings of the project, without those that only users can decide.
    pub fn project_settings(&self) -> SessionSettings {
        let project = self.bundles.get(&BundleScope::Project).map(|bundle| bundle.session.clone());
        SessionSettings { orchestrator: None, system: None, ..project.unwrap_or_default() }
    }

    /// Returns the tools that every scope allows, and the servers of all bundles but the project's.
    pub fn tools(&self) -> Tools {
        let mut tools = Tools::default();
        self.own().for_each(|bundle| tools.join(bundle.tools.clone()));
        let project = self.bundles.get(&BundleScope::Project);
        let only = project.and_then(|bundle| bundle.tools.only.clone());
        tools.join(Tools { only, ..Tools::default() });
        tools
    }

    /// Returns the models of the user's own bundles, those of the explicit one first, then those of managed bundles. Projects cannot add models, because a model's server receives
    /// the API key.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderEntry> {
        self.own().flat_map(|bundle| &bundle.providers)
    }

    fn own(&self) -> impl Iterator<Item = &LoadedBundle> {
        let scopes = [BundleScope::Explicit, BundleScope::User, BundleScope::Fleet, BundleScope::Managed];
        scopes.into_iter().filter_map(|scope| self.bundles.get(&scope))
    }

    pub(super) fn contents(&self) -> Vec<FileContent> {
        self.bundles.values().flat_map(LoadedBundle::contents).collect()
    }

    /// Applies the limits of hooks to the configuration of a session.
    pub fn apply(&self, config: &mut SessionConfig) {
        self.own_settings().apply(config);
        let SessionSettings { injection_size_limit, injection_budget_per_turn, over_budget, .. } =
            self.project_settings();
        config.injection_size_limit = smaller(config.injection_size_limit, injection_size_limit);
        config.injection_budget_per_turn = smaller(config.injection_budget_per_turn, injection_budget_per_turn);
        config.over_budget = stricter_over_budget(config.over_budget, over_budget.unwrap_or(config.over_budget));
    }
}

fn merge<'a>(bundles: impl Iterator<Item = &'a LoadedBundle>) -> SessionSettings {
    bundles.fold(SessionSettings::default(), |all, bundle| all.stricter(bundle.session.clone()))
}

impl SessionSettings {
    /// Returns the stricter setting of each pair, or that of `self` if neither is stricter.
    fn stricter(self, other: Self) -> Self {
        Self {
            injection_size_limit: smaller(self.injection_size_limit, other.injection_size_limit),
            injection_budget_per_turn: smaller(self.injection_budget_per_turn, other.injection_budget_per_turn),
            over_budget: match (self.over_budget, other.over_budget) {
                (Some(one), Some(other)) => Some(stricter_over_budget(one, other)),
                (one, other) => one.or(other),
            },
            orchestrator: self.orchestrator.or(other.orchestrator),
            // None is less than some.
            audit: self.audit.max(other.audit),
            approvals: self.approvals.max(other.approvals),
            confirm: self.confirm.max(other.confirm),
            // None is less than some.
            mode: if other.mode > self.mode { other.mode } else { self.mode },
            forbid_modes: self.forbid_modes.into_iter().chain(other.forbid_modes).collect(),
            approval_timeout: self.approval_timeout.into_iter().chain(other.approval_timeout).reduce(f64::min),
            system: self.system.or(other.system),
        }
    }
}

/// Returns the smaller limit; `None` means unlimited.
fn smaller(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    one.into_iter().chain(other).min()
}

fn stricter_over_budget(one: OverBudget, other: OverBudget) -> OverBudget {
    let strictness = |policy: &OverBudget| match policy {
        OverBudget::Warn => 0,
        OverBudget::Truncate => 1,
        OverBudget::Drop => 2,
    };
    std::cmp::max_by_key(one, other, strictness)
}
