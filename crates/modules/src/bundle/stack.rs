//! Bundles of several levels, as one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use amplifier_core::{HookRegistry, OverBudget, Registration, SessionConfig};

use super::load::FileContent;
use super::register::{CompiledHook, register_all};
use super::{BundleError, LoadedBundle, ProviderEntry, SessionSettings, Tools};
use crate::environment::HookEnvironment;

/// Where a bundle comes from, which says what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleScope {
    /// The person's configuration: always used.
    User,
    /// The project: used if the person has trusted it. It can add to what the person has, and weaken nothing.
    Project,
    /// Named by the person for this once.
    Explicit,
}

impl BundleScope {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Explicit => "named",
        }
    }
}

impl fmt::Display for BundleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Bundles of several levels, as one.
///
/// The hooks of all are registered: first those of the user, then those of the project, then those of the bundle that was named, so this is the order in
/// which they run where priorities are equal. No level can switch off or replace a hook of another. A hook whose name is taken by an
/// earlier level has the level behind its name, `guard (project)`, so that its questions are never answered for the other one.
///
/// Settings of the person's own bundles count where they stand, the stricter ones if both have some; a project can only make them stricter.
#[derive(Clone, Debug, Default)]
pub struct BundleStack {
    bundles: BTreeMap<BundleScope, LoadedBundle>,
    scopes: BTreeMap<String, BundleScope>,
    rejected_version: Option<BundleError>,
}

impl BundleStack {
    /// Puts bundles together. The names of hooks that are there anyway are taken.
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

    /// Says that one of them is an older version, because the newer one cannot be used.
    #[must_use]
    pub fn with_rejected_version(mut self, error: Option<BundleError>) -> Self {
        self.rejected_version = error;
        self
    }

    /// Why one of them is an older version, if one is.
    pub fn rejected_version(&self) -> Option<&BundleError> {
        self.rejected_version.as_ref()
    }

    /// The bundles, in the order in which they are registered.
    pub fn bundles(&self) -> impl Iterator<Item = (BundleScope, &LoadedBundle)> {
        self.bundles.iter().map(|(scope, bundle)| (*scope, bundle))
    }

    /// The level that a hook of that name comes from; none if it is not from a bundle.
    pub fn scope_of(&self, hook: &str) -> Option<BundleScope> {
        self.scopes.get(hook).copied()
    }

    /// Registers the hooks of all levels.
    ///
    /// # Errors
    /// If one cannot be compiled; then none stays registered.
    pub fn register(&self, hooks: &HookRegistry, host: &HookEnvironment) -> Result<Vec<Registration>, BundleError> {
        register_all(&self.compile(host, &[])?, hooks)
    }

    /// Compiles the hooks of all levels and registers none; hooks of the version `before` go on where nothing has changed.
    pub(super) fn compile(
        &self,
        host: &HookEnvironment,
        before: &[Arc<CompiledHook>],
    ) -> Result<Vec<Arc<CompiledHook>>, BundleError> {
        let scopes: Result<Vec<_>, _> = self.bundles.values().map(|bundle| bundle.compile(host, before)).collect();
        Ok(scopes?.into_iter().flatten().collect())
    }

    /// The settings of all: where several say something, the stricter; where nothing is stricter, that of the bundle that was named, then
    /// that of the user. What only a person decides does not count in a project.
    pub fn settings(&self) -> SessionSettings {
        let own = self.own().fold(SessionSettings::default(), |all, bundle| all.stricter(bundle.session.clone()));
        let project = self.bundles.get(&BundleScope::Project).map(|bundle| bundle.session.clone());
        own.stricter(SessionSettings { orchestrator: None, system: None, ..project.unwrap_or_default() })
    }

    /// What the agent can do: the tools that no level leaves out, and the servers of the person's own bundles.
    pub fn tools(&self) -> Tools {
        let mut tools = Tools::default();
        self.own().for_each(|bundle| tools.join(bundle.tools.clone()));
        let project = self.bundles.get(&BundleScope::Project);
        let only = project.and_then(|bundle| bundle.tools.only.clone());
        tools.join(Tools { only, ..Tools::default() });
        tools
    }

    /// The models of the person's own bundles, those of the one that was named first: whoever chooses a model gets the key.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderEntry> {
        self.own().flat_map(|bundle| &bundle.providers)
    }

    fn own(&self) -> impl Iterator<Item = &LoadedBundle> {
        [BundleScope::Explicit, BundleScope::User].into_iter().filter_map(|scope| self.bundles.get(&scope))
    }

    /// The files of all bundles, and what was in them.
    pub(super) fn contents(&self) -> Vec<FileContent> {
        self.bundles.values().flat_map(LoadedBundle::contents).collect()
    }

    /// Puts the limits of hooks in the place of what a session would have otherwise.
    pub fn apply(&self, config: &mut SessionConfig) {
        let settings = |scope| self.bundles.get(&scope).map(|bundle| bundle.session.clone()).unwrap_or_default();
        settings(BundleScope::User).stricter(settings(BundleScope::Explicit)).apply(config);
        let SessionSettings { injection_size_limit, injection_budget_per_turn, over_budget, .. } =
            settings(BundleScope::Project);
        config.injection_size_limit = smaller(config.injection_size_limit, injection_size_limit);
        config.injection_budget_per_turn = smaller(config.injection_budget_per_turn, injection_budget_per_turn);
        config.over_budget = stricter_over_budget(config.over_budget, over_budget.unwrap_or(config.over_budget));
    }
}

impl SessionSettings {
    /// The stricter setting of each two; this one where neither is stricter.
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
            approval_timeout: self.approval_timeout.into_iter().chain(other.approval_timeout).reduce(f64::min),
            system: self.system.or(other.system),
        }
    }
}

/// The smaller limit; none is no limit.
fn smaller(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    one.into_iter().chain(other).min()
}

/// What lets less through.
fn stricter_over_budget(one: OverBudget, other: OverBudget) -> OverBudget {
    let strictness = |policy: &OverBudget| match policy {
        OverBudget::Warn => 0,
        OverBudget::Truncate => 1,
        OverBudget::Drop => 2,
    };
    std::cmp::max_by_key(one, other, strictness)
}
