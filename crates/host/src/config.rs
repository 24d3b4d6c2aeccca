//! The configuration: flags, environment, file, defaults, in this order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use amplifier_agent::Orchestrator;
use amplifier_audit::Durability;
use amplifier_core::{Approval, UnknownWord};
use amplifier_modules::bundle::{self, BundleStack, McpServer, ProviderEntry, SessionSettings};
pub use amplifier_modules::bundle::{ApprovalChannel, ApprovalMode, Confirm};
use amplifier_process::files::read_regular_text;
use serde::Deserialize;

use crate::anchors::AnchorConfig;
use crate::environment::Environment;
use crate::error::{ErrorContext, Result, usage};
use crate::home::Home;
use crate::mode::check_allowed;
use crate::model::ModelChoice;
use crate::notify::NotifyConfig;
use crate::protection::SandboxSettings;

/// Settings that override the configuration file and bundles: from flags or the environment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The model provider, or the name of a model in a bundle.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The address of the provider, if not its usual one.
    pub base_url: Option<String>,
    /// The file that the provider `scripted` plays.
    pub script: Option<PathBuf>,
    /// The workspace.
    pub workspace: Option<PathBuf>,
    /// A bundle in addition to those of the user and the project.
    pub bundle: Option<PathBuf>,
    /// The place where approval requests are answered: `terminal` or `server`.
    pub approvals: Option<String>,
    /// The approval mode: `ask`, `accept-edits`, `plan` or `deny`.
    pub mode: Option<String>,
    /// The operations that `confirm` requests approval for: `all`, `writes`, `commands` or `off`.
    pub confirm: Option<String>,
    /// The time for an answer to an approval request, in seconds.
    pub approval_timeout: Option<String>,
    /// `loop-streaming` or `loop-basic`.
    pub orchestrator: Option<String>,
    /// The durability of the audit log: `async`, `group` or `record`.
    pub audit: Option<String>,
    /// `on`, or `off` for commands without a sandbox.
    pub confinement: Option<String>,
    /// Another configuration file, which must exist.
    pub config: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    provider: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    script: Option<PathBuf>,
    workspace: Option<PathBuf>,
    bundle: Option<PathBuf>,
    fleet: Option<String>,
    approvals: Option<String>,
    mode: Option<String>,
    forbid_modes: Vec<String>,
    confirm: Option<String>,
    approval_timeout: Option<f64>,
    orchestrator: Option<String>,
    audit: Option<String>,
    anchors: Vec<AnchorConfig>,
    notify: Vec<NotifyConfig>,
    push_services: Vec<String>,
    confinement: Option<String>,
    sandbox: SandboxSettings,
    system: Option<String>,
    mcp: BTreeMap<String, McpServer>,
}

impl ConfigFile {
    /// INVARIANT: paths in the file are relative to its folder. Relative to the current folder, they could lead into the workspace of the
    /// agent, which must not decide about the agent.
    fn resolve_paths(self, folder: &Path) -> Result<Self> {
        // An empty path stays empty.
        let resolve = |named: PathBuf| if named.as_os_str().is_empty() { named } else { folder.join(named) };
        Ok(Self {
            script: self.script.map(resolve),
            workspace: self.workspace.map(resolve),
            bundle: self.bundle.map(resolve),
            anchors: self.anchors.into_iter().map(|anchor| anchor.resolve_paths(folder)).collect::<Result<_>>()?,
            mcp: self.mcp.into_iter().map(|(name, server)| (name, server.resolve_from(folder))).collect(),
            ..self
        })
    }
}

/// A setting and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: &'static str,
    /// The value.
    pub value: String,
    /// The source.
    pub source: Source,
}

/// The source of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag or an environment variable.
    Override,
    /// A bundle.
    Bundle,
    /// A managed bundle, which requires more than the user has set.
    Managed,
    /// The configuration file.
    File,
    /// The default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Override => "flag or environment",
            Self::Bundle => "bundle",
            Self::Managed => "managed bundle",
            Self::File => "configuration file",
            Self::Default => "default",
        })
    }
}

/// The configuration of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The workspace.
    pub workspace: PathBuf,
    /// The additional bundle.
    pub bundle: Option<PathBuf>,
    /// The addresses of the fleet's servers, with commas between.
    pub fleet: Option<String>,
    /// The place where approval requests are answered.
    pub approvals: ApprovalChannel,
    /// The approval mode of new sessions.
    pub mode: ApprovalMode,
    /// The modes that cannot be used.
    pub forbidden_modes: Vec<ApprovalMode>,
    /// The operations that `confirm` requests approval for.
    pub confirm: Confirm,
    /// The time limit of approval requests.
    pub approval_timeout: Duration,
    /// The orchestrator.
    pub orchestrator: Orchestrator,
    /// The durability of the audit log.
    pub audit: Durability,
    /// The anchors of the audit log.
    pub anchors: Vec<AnchorConfig>,
    /// Receivers of notifications about approval requests, for a server.
    pub notify: Vec<NotifyConfig>,
    /// Origins of push services that may have a private address.
    pub push_services: Vec<String>,
    /// `true` if commands run in a sandbox.
    pub is_confined: bool,
    /// Changes to the protected and hidden paths.
    pub sandbox: SandboxSettings,
    /// The system prompt.
    pub system: Option<String>,
    /// The only tools; all unless given.
    pub only: Option<Vec<String>>,
    /// MCP servers, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// The configuration file, which may be missing.
    pub file: PathBuf,
    /// All settings with their sources, for display.
    pub settings: Vec<Setting>,
}

impl Config {
    /// Merges the overrides and the file.
    ///
    /// # Errors
    /// If the file is unreadable or a value is invalid.
    pub fn load(overrides: &Overrides, home: &Home) -> Result<Self> {
        let path = overrides.config.clone().unwrap_or_else(|| home.config_file());
        let file = read(&path, overrides.config.is_some())?;
        let mut settings = SettingList::default();
        settings.choose("provider", &overrides.provider, &file.provider, "");
        settings.choose("model", &overrides.model, &file.model, "");
        settings.choose("base_url", &overrides.base_url, &file.base_url, "");
        settings.choose("script", &overrides.script, &file.script, "");
        let workspace = settings.choose("workspace", &overrides.workspace, &file.workspace, ".");
        let bundle = settings.choose("bundle", &overrides.bundle, &file.bundle, "");
        let approvals = settings.choose("approvals", &overrides.approvals, &file.approvals, "terminal");
        let mode = settings.choose("mode", &overrides.mode, &file.mode, ApprovalMode::Ask.as_str());
        let confirm = settings.choose("confirm", &overrides.confirm, &file.confirm, Confirm::All.as_str());
        let in_file = file.approval_timeout.map(|seconds| seconds.to_string());
        let default = Approval::TIMEOUT.as_secs().to_string();
        let approval_timeout = settings.choose("approval_timeout", &overrides.approval_timeout, &in_file, &default);
        let orchestrator = settings.choose(
            "orchestrator",
            &overrides.orchestrator,
            &file.orchestrator,
            Orchestrator::default().as_str(),
        );
        let audit = settings.choose("audit", &overrides.audit, &file.audit, "group");
        let forbidden_modes = parse_forbidden_modes(&file.forbid_modes)?;
        if !forbidden_modes.is_empty() {
            settings.0.push(Setting { name: FORBID_MODES, value: file.forbid_modes.join(", "), source: Source::File });
        }
        if let Some(fleet) = &file.fleet {
            settings.0.push(Setting { name: "fleet", value: fleet.clone(), source: Source::File });
        }
        let anchors = file.anchors;
        if !anchors.is_empty() {
            let names: Vec<_> = anchors.iter().map(ToString::to_string).collect();
            settings.0.push(Setting { name: "anchors", value: names.join(", "), source: Source::File });
        }
        if !file.notify.is_empty() {
            let names: Vec<_> = file.notify.iter().map(ToString::to_string).collect();
            settings.0.push(Setting { name: "notify", value: names.join(", "), source: Source::File });
        }
        let confinement = settings.choose("confinement", &overrides.confinement, &file.confinement, "on");

        Ok(Self {
            workspace: std::path::absolute(home.environment().current_dir().join(&workspace))
                .with_context(|| format!("the workspace `{}`", workspace.display()))?,
            bundle: Some(bundle).filter(|bundle| !bundle.as_os_str().is_empty()),
            fleet: file.fleet,
            approvals: parse_word("approvals", &approvals)?,
            // There is no mode that allows everything.
            mode: parse_word("mode", &mode)?,
            forbidden_modes,
            confirm: parse_word("confirm", &confirm)?,
            approval_timeout: parse_seconds(&approval_timeout)?,
            orchestrator: parse_word("orchestrator", &orchestrator)?,
            audit: parse_word("audit", &audit)?,
            anchors,
            notify: file.notify,
            push_services: file.push_services,
            is_confined: match confinement.as_str() {
                "on" => true,
                "off" => false,
                other => return Err(usage(format!("invalid confinement `{other}`; expected `on` or `off`"))),
            },
            sandbox: file.sandbox.resolve(home.environment()).map_err(usage)?,
            system: file.system,
            only: None,
            mcp: file.mcp,
            file: path,
            settings: settings.0,
        })
    }
}

impl Config {
    /// Adds the settings of bundles. Flags and environment take precedence; settings that affect safety can only become stricter, and those of managed
    /// bundles apply to flags and environment, too.
    #[must_use]
    pub fn with_bundles(&self, levels: &BundleStack) -> Self {
        let mut config = self.clone();
        let (session, tools) = (levels.settings(), levels.tools());
        if let Some(kind) = session.orchestrator.filter(|_| !self.is_overridden("orchestrator")) {
            config.orchestrator = match kind {
                bundle::Orchestrator::Basic => Orchestrator::Basic,
                bundle::Orchestrator::Streaming => Orchestrator::Streaming,
            };
            config.set_from_bundle("orchestrator", config.orchestrator.as_str());
        }
        let stricter = session.approvals.filter(|approvals| *approvals > self.approvals);
        if let Some(approvals) = stricter.filter(|_| !self.is_overridden("approvals")) {
            config.approvals = approvals;
            config.set_from_bundle("approvals", approvals.as_str());
        }
        let own_and_project = (levels.own_settings().confirm, levels.project_settings().confirm);
        config.confirm = config.merge_guard("confirm", self.confirm, own_and_project);
        let own_and_project = (levels.own_settings().mode, levels.project_settings().mode);
        config.mode = config.merge_guard("mode", self.mode, own_and_project);
        let required = levels.managed_settings();
        let mut forbidden = session.forbid_modes;
        // Otherwise a session could change to a mode that is less strict.
        forbidden.extend(
            ApprovalMode::ALL.into_iter().filter(|mode| required.mode.is_some_and(|least| is_less(mode, &least))),
        );
        config.forbid_modes(&forbidden);
        if let Some(audit) = session.audit.filter(|audit| *audit > self.audit && !self.is_overridden("audit")) {
            config.audit = audit;
            config.set_from_bundle("audit", audit.as_str());
        }
        let timeout = session.approval_timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let shorter =
            timeout.filter(|timeout| *timeout < self.approval_timeout && !self.is_overridden("approval_timeout"));
        if let Some(timeout) = shorter {
            config.approval_timeout = timeout;
            config.set_from_bundle("approval_timeout", &timeout.as_secs_f64().to_string());
        }
        config.require(&required);
        config.system = session.system.or(config.system);
        config.only = tools.only;
        for (name, server) in tools.mcp {
            config.mcp.entry(name).or_insert(server);
        }
        config
    }

    /// Checks that the approval mode is not forbidden.
    ///
    /// # Errors
    /// If it is.
    pub fn check_mode(&self) -> Result<()> {
        check_allowed(self.mode, &self.forbidden_modes)
    }

    /// Returns the model: from flags and environment, otherwise from the first model of a bundle, otherwise from the file.
    ///
    /// # Errors
    /// If the provider is unknown.
    pub fn model(&self, levels: &BundleStack, environment: &Environment) -> Result<ModelChoice> {
        let given = |name: &str| self.setting(name).filter(|setting| setting.source == Source::Override);
        let word = |name: &str| self.setting(name).map(|setting| setting.value.clone()).unwrap_or_default();
        let entry = match (given("provider"), given("script")) {
            (Some(requested), _) => levels.providers().find(|entry| entry.shown_name() == requested.value),
            (None, Some(script)) => return Ok(ModelChoice::Script(PathBuf::from(&script.value))),
            (None, None) => levels.providers().next(),
        };
        let Some(entry) = entry else {
            return ModelChoice::find(
                &word("provider"),
                &word("model"),
                &word("base_url"),
                word("script").into(),
                environment,
            );
        };
        let ProviderEntry { provider, model, base_url, script, .. } = entry;
        let chosen = |name: &str, entry: &Option<String>| {
            given(name).map(|setting| setting.value.clone()).or_else(|| entry.clone()).unwrap_or_default()
        };
        ModelChoice::find(
            provider.as_str(),
            &chosen("model", model),
            &chosen("base_url", base_url),
            chosen("script", script).into(),
            environment,
        )
    }

    /// Merges a setting that guards. The user's own values can relax the default; of several, the stricter one counts. A project can only make
    /// the result stricter.
    fn merge_guard<T: PartialOrd + Copy + fmt::Display>(
        &mut self,
        name: &str,
        value: T,
        (own, project): (Option<T>, Option<T>),
    ) -> T {
        if self.is_overridden(name) {
            return value;
        }
        let is_default = self.setting(name).is_some_and(|setting| setting.source == Source::Default);
        let own = own.filter(|own| is_default || *own > value);
        let project = project.filter(|project| *project > own.unwrap_or(value));
        let Some(merged) = project.or(own) else { return value };
        self.set_from_bundle(name, &merged.to_string());
        merged
    }

    /// Makes settings as strict as managed bundles require. A flag for another mode is an error when the policy is loaded.
    fn require(&mut self, required: &SessionSettings) {
        if let Some(approvals) = required.approvals.filter(|least| self.approvals < *least) {
            self.approvals = approvals;
            self.set("approvals", approvals.as_str(), Source::Managed);
        }
        if let Some(confirm) = required.confirm.filter(|least| self.confirm < *least) {
            self.confirm = confirm;
            self.set("confirm", confirm.as_str(), Source::Managed);
        }
        if let Some(audit) = required.audit.filter(|least| self.audit < *least) {
            self.audit = audit;
            self.set("audit", audit.as_str(), Source::Managed);
        }
        let is_flag = self.is_overridden("mode");
        if let Some(mode) = required.mode.filter(|least| !is_flag && is_less(&self.mode, least)) {
            self.mode = mode;
            self.set("mode", mode.as_str(), Source::Managed);
        }
        let longest = required.approval_timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if let Some(timeout) = longest.filter(|longest| self.approval_timeout > *longest) {
            self.approval_timeout = timeout;
            self.set("approval_timeout", &timeout.as_secs_f64().to_string(), Source::Managed);
        }
    }

    /// Forbids the modes of bundles, too. A forbidden mode becomes the next stricter one, unless the user has asked for it: that is an error when
    /// the policy is loaded.
    fn forbid_modes(&mut self, modes: &[ApprovalMode]) {
        for mode in modes {
            if !self.forbidden_modes.contains(mode) {
                self.forbidden_modes.push(*mode);
            }
        }
        if !modes.is_empty() {
            let names: Vec<&str> = self.forbidden_modes.iter().map(|mode| mode.as_str()).collect();
            self.settings.retain(|setting| setting.name != FORBID_MODES);
            self.settings.push(Setting { name: FORBID_MODES, value: names.join(", "), source: Source::Bundle });
        }
        if self.is_overridden("mode") || !self.forbidden_modes.contains(&self.mode) {
            return;
        }
        let can_ask = self.mode < ApprovalMode::Ask && !self.forbidden_modes.contains(&ApprovalMode::Ask);
        self.mode = if can_ask { ApprovalMode::Ask } else { ApprovalMode::Plan };
        self.set_from_bundle("mode", self.mode.as_str());
    }

    fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    fn set_from_bundle(&mut self, name: &str, value: &str) {
        self.set(name, value, Source::Bundle);
    }

    fn set(&mut self, name: &str, value: &str, source: Source) {
        if let Some(setting) = self.settings.iter_mut().find(|setting| setting.name == name) {
            *setting = Setting { name: setting.name, value: value.to_owned(), source };
        }
    }

    fn is_overridden(&self, name: &str) -> bool {
        self.setting(name).is_some_and(|setting| setting.source == Source::Override)
    }
}

/// Returns `true` unless the first mode is at least as strict as the second: modes that cannot be compared are not.
fn is_less(mode: &ApprovalMode, least: &ApprovalMode) -> bool {
    !matches!(mode.partial_cmp(least), Some(Ordering::Equal | Ordering::Greater))
}

/// The name of the setting in the list for display.
const FORBID_MODES: &str = "forbid_modes";

#[derive(Default)]
struct SettingList(Vec<Setting>);

impl SettingList {
    /// Chooses the override, otherwise the value in the file, otherwise the default.
    fn choose<T>(&mut self, name: &'static str, given: &Option<T>, file: &Option<T>, default: &str) -> T
    where
        T: AsRef<OsStr> + Clone + From<String>,
    {
        // An empty variable counts as unset.
        let given = given.as_ref().filter(|value| !value.as_ref().is_empty());
        let (value, source) = match (given, file) {
            (Some(given), _) => (given.clone(), Source::Override),
            (None, Some(file)) => (file.clone(), Source::File),
            (None, None) => (T::from(default.to_owned()), Source::Default),
        };
        self.0.push(Setting { name, value: value.as_ref().to_string_lossy().into_owned(), source });
        value
    }
}

const MAX_CONFIG_BYTES: u64 = 1 << 20;

fn read(path: &Path, is_named: bool) -> Result<ConfigFile> {
    let text = match read_regular_text(path, MAX_CONFIG_BYTES) {
        Ok(text) => text,
        // Only the default file may be missing.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => return Ok(ConfigFile::default()),
        Err(error) => return Err(error).with_context(|| format!("the configuration `{}`", path.display())),
    };
    let file: ConfigFile =
        toml::from_str(&text).with_context(|| format!("invalid configuration `{}`", path.display()))?;
    let folder = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned())).unwrap_or_default();
    file.resolve_paths(&folder).with_context(|| format!("the configuration `{}`", path.display()))
}

fn parse_word<T: FromStr<Err = UnknownWord>>(setting: &str, text: &str) -> Result<T> {
    text.parse().map_err(|unknown| usage(format!("`{setting}`: {unknown}")))
}

fn parse_forbidden_modes(names: &[String]) -> Result<Vec<ApprovalMode>> {
    let modes: Vec<ApprovalMode> = names.iter().map(|name| parse_word(FORBID_MODES, name)).collect::<Result<_>>()?;
    ApprovalMode::check_forbidden(&modes).map_err(|reason| usage(format!("`{FORBID_MODES}`: {reason}")))?;
    Ok(modes)
}

fn parse_seconds(text: &str) -> Result<Duration> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0).map(Duration::try_from_secs_f64);
    match seconds {
        Some(Ok(seconds)) => Ok(seconds),
        _ => Err(usage(format!("invalid approval timeout `{text}`; expected seconds above 0"))),
    }
}
