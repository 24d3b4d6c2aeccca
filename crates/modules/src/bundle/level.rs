//! Bundles of several levels, as one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use amplifier_core::{HookRegistry, OverBudget, Registration, SessionConfig};

use super::load::Content;
use super::register::{CompiledHook, register_all};
use super::{BundleError, Loaded, ProviderEntry, SessionSettings, Tools};
use crate::host::Host;

/// Where a bundle comes from, which says what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleLevel {
    /// The person's configuration: always used.
    User,
    /// The project: used if the person has trusted it. It can add to what the person has, and weaken nothing.
    Project,
    /// Named by the person for this once.
    Named,
}

impl BundleLevel {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Named => "named",
        }
    }
}

impl fmt::Display for BundleLevel {
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
pub struct Levels {
    bundles: BTreeMap<BundleLevel, Loaded>,
    levels: BTreeMap<String, BundleLevel>,
    withheld: Option<BundleError>,
}

impl Levels {
    /// Puts bundles together. The names of hooks that are there anyway are taken.
    pub fn new(bundles: impl IntoIterator<Item = (BundleLevel, Loaded)>, taken: &[&str]) -> Self {
        let mut bundles: BTreeMap<_, _> = bundles.into_iter().collect();
        let mut levels = BTreeMap::new();
        let mut taken: BTreeSet<String> = taken.iter().map(|&name| name.to_owned()).collect();
        for (level, bundle) in &mut bundles {
            let mut own = BTreeSet::new();
            for entry in bundle.hooks.iter_mut().map(|placed| &mut placed.entry) {
                let mut name = entry.shown_name();
                while taken.contains(&name) {
                    name = format!("{name} ({level})");
                    entry.name = Some(name.clone());
                }
                own.insert(name.clone());
                levels.insert(name, *level);
            }
            taken.extend(own);
        }
        Self { bundles, levels, withheld: None }
    }

    /// Says that one of them is an older version, because the newer one cannot be used.
    #[must_use]
    pub fn withholding(mut self, why: Option<BundleError>) -> Self {
        self.withheld = why;
        self
    }

    /// Why one of them is an older version, if one is.
    pub fn withheld(&self) -> Option<&BundleError> {
        self.withheld.as_ref()
    }

    /// The bundles, in the order in which they are registered.
    pub fn bundles(&self) -> impl Iterator<Item = (BundleLevel, &Loaded)> {
        self.bundles.iter().map(|(level, bundle)| (*level, bundle))
    }

    /// The level that a hook of that name comes from; none if it is not from a bundle.
    pub fn level_of(&self, hook: &str) -> Option<BundleLevel> {
        self.levels.get(hook).copied()
    }

    /// Registers the hooks of all levels.
    ///
    /// # Errors
    /// If one cannot be compiled; then none stays registered.
    pub fn register(&self, hooks: &HookRegistry, host: &Host) -> Result<Vec<Registration>, BundleError> {
        register_all(&self.compile(host, &[])?, hooks)
    }

    /// Compiles the hooks of all levels and registers none; hooks of the version `before` go on where nothing has changed.
    pub(super) fn compile(
        &self,
        host: &Host,
        before: &[Arc<CompiledHook>],
    ) -> Result<Vec<Arc<CompiledHook>>, BundleError> {
        let levels: Result<Vec<_>, _> = self.bundles.values().map(|bundle| bundle.compile(host, before)).collect();
        Ok(levels?.into_iter().flatten().collect())
    }

    /// The settings of all: where several say something, the stricter; where nothing is stricter, that of the bundle that was named, then
    /// that of the user. What only a person decides does not count in a project.
    pub fn settings(&self) -> SessionSettings {
        let own = self.own().fold(SessionSettings::default(), |all, bundle| all.stricter(bundle.session.clone()));
        let project = self.bundles.get(&BundleLevel::Project).map(|bundle| bundle.session.clone());
        own.stricter(SessionSettings { orchestrator: None, system: None, ..project.unwrap_or_default() })
    }

    /// What the agent can do: the tools that no level leaves out, and the servers of the person's own bundles.
    pub fn tools(&self) -> Tools {
        let mut tools = Tools::default();
        self.own().for_each(|bundle| tools.join(bundle.tools.clone()));
        let project = self.bundles.get(&BundleLevel::Project);
        let only = project.and_then(|bundle| bundle.tools.only.clone());
        tools.join(Tools { only, ..Tools::default() });
        tools
    }

    /// The models of the person's own bundles, those of the one that was named first: whoever chooses a model gets the key.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderEntry> {
        self.own().flat_map(|bundle| &bundle.providers)
    }

    fn own(&self) -> impl Iterator<Item = &Loaded> {
        [BundleLevel::Named, BundleLevel::User].into_iter().filter_map(|level| self.bundles.get(&level))
    }

    /// The files of all bundles, and what was in them.
    pub(super) fn contents(&self) -> Vec<Content> {
        self.bundles.values().flat_map(Loaded::contents).collect()
    }

    /// Puts the limits of hooks in the place of what a session would have otherwise.
    pub fn apply(&self, config: &mut SessionConfig) {
        let settings = |level| self.bundles.get(&level).map(|bundle| bundle.session.clone()).unwrap_or_default();
        settings(BundleLevel::User).stricter(settings(BundleLevel::Named)).apply(config);
        let SessionSettings { injection_size_limit, injection_budget_per_turn, over_budget, .. } =
            settings(BundleLevel::Project);
        config.injection_size_limit = smaller(config.injection_size_limit, injection_size_limit);
        config.injection_budget_per_turn = smaller(config.injection_budget_per_turn, injection_budget_per_turn);
        config.over_budget = harder(config.over_budget, over_budget.unwrap_or(config.over_budget));
    }
}

impl SessionSettings {
    /// The stricter setting of each two; this one where neither is stricter.
    fn stricter(self, other: Self) -> Self {
        Self {
            injection_size_limit: smaller(self.injection_size_limit, other.injection_size_limit),
            injection_budget_per_turn: smaller(self.injection_budget_per_turn, other.injection_budget_per_turn),
            over_budget: match (self.over_budget, other.over_budget) {
                (Some(one), Some(other)) => Some(harder(one, other)),
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
fn harder(one: OverBudget, other: OverBudget) -> OverBudget {
    let hardness = |policy: &OverBudget| match policy {
        OverBudget::Warn => 0,
        OverBudget::Truncate => 1,
        OverBudget::Drop => 2,
    };
    std::cmp::max_by_key(one, other, hardness)
}
