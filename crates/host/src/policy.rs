//! The policy of one workspace: bundles, trust, reload, approval rules, protection and the audit log.

use std::sync::Arc;

use amplifier_agent::tool::Workspace;
use amplifier_audit::Log;
use amplifier_core::{Actor, ApprovalSystem, Coordinator, CoordinatorBuilder, HookRegistry, Level, SessionConfig};
use amplifier_link::ReloadResult;
use amplifier_modules::bundle::BundleStack;
use serde_json::json;

use crate::approval_rule_store::{ApprovalRuleFiles, ApprovalRuleStore};
use crate::approval_systems::{FleetFanOut, ModeApprovals};
use crate::audit::{close_log, open_log};
use crate::bundles::{self, Bundles};
use crate::config::{ApprovalMode, Config};
use crate::error::{ErrorContext, Result};
use crate::fleet::FleetWork;
use crate::git_undo::GitUndo;
use crate::guard_scope::GuardScope;
use crate::guards;
use crate::home::Home;
use crate::mode::ModeSwitch;
use crate::notices::Notices;
use crate::operations::WorkspaceOperations;
use crate::previews::WorkspacePreviews;
use crate::protection::{ActiveSandbox, ProtectionPlan, SandboxLevel};
use crate::reload::BundleReloader;
use crate::server_link::LinkOptions;
use crate::trust_prompt::{self, TrustPrompt};

/// The active policy of one workspace. It works without an agent, and a process can have several.
///
/// ```no_run
/// use amplifier_core::{Map, TOOL_PRE, ToolPre};
/// use amplifier_host::{Config, DenyAllApprovals, Environment, Home, Overrides, Policy};
///
/// # async fn example() -> amplifier_host::Result<()> {
/// let home = Home::find(Environment::from_process())?;
/// let config = Config::load(&Overrides { workspace: Some("/work/project".into()), ..Overrides::default() }, &home)?;
/// let policy = Policy::builder(&config, &home).load().await?;
/// let coordinator = policy.coordinator("session-1", DenyAllApprovals).build();
/// let verdict = coordinator.emit(TOOL_PRE, ToolPre::new("Read", Map::new())).await;
/// assert!(verdict.is_proceed());
/// # Ok(()) }
/// ```
pub struct Policy {
    config: Config,
    home: Home,
    levels: BundleStack,
    hooks: HookRegistry,
    log: Log,
    rules: ApprovalRuleFiles,
    limits: SessionConfig,
    workspace: Workspace,
    sandbox: ActiveSandbox,
    mode: ModeSwitch,
    reloader: BundleReloader,
    notices: Notices,
    /// Kept for as long as the policy is used.
    fleet: Option<FleetWork>,
}

/// Loads a [`Policy`].
#[must_use = "call `load` to load the policy"]
pub struct PolicyBuilder {
    config: Config,
    home: Home,
    bundles: Option<Bundles>,
    hooks: HookRegistry,
    notices: Notices,
    prompt: Option<Arc<dyn TrustPrompt>>,
    prepares_sandbox: bool,
}

impl PolicyBuilder {
    /// Sets the bundles, which must be found for the same configuration.
    pub fn bundles(mut self, bundles: Bundles) -> Self {
        self.bundles = Some(bundles);
        self
    }

    /// Sets the registry for hooks; existing hooks stay.
    pub fn hooks(mut self, hooks: HookRegistry) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the receiver of messages for the user.
    pub fn notices(mut self, notices: Notices) -> Self {
        self.notices = notices;
        self
    }

    /// Sets the prompt for untrusted project bundles. Without one, such a bundle is not used.
    pub fn trust_prompt(mut self, prompt: Arc<dyn TrustPrompt>) -> Self {
        self.prompt = Some(prompt);
        self
    }

    /// Creates the first sandbox with the first program, not in advance: for a policy whose hooks mostly run no programs.
    pub fn sandbox_on_demand(mut self) -> Self {
        self.prepares_sandbox = false;
        self
    }

    /// Loads the policy: finds the bundles, opens the log, decides about trust, protects files, and registers the hooks.
    ///
    /// # Errors
    /// If the configuration cannot be used. Nothing is registered then.
    pub async fn load(mut self) -> Result<Policy> {
        let mut bundles = match self.bundles.take() {
            Some(bundles) => bundles,
            None => Bundles::find(&self.config, &self.home)?,
        };
        let workspace = Workspace::new(&self.config.workspace)
            .with_context(|| format!("the workspace `{}` cannot be used", self.config.workspace.display()))?;
        let log = self.open_log_and_decide_trust(&mut bundles).await?;
        let levels = bundles.levels();
        let config = self.config.with_bundles(&levels);
        config.check_mode()?;
        let rules = ApprovalRuleFiles::for_workspace(&self.home, &config.workspace)?.recording(log.clone());
        let (protection, sandbox) = self.protection(&config, &workspace, &levels)?;
        let workspace = protection.protect_workspace(workspace).sandboxed(sandbox.sandbox.clone());
        let fleet = FleetWork::start(&config, &self.home, log.writer(), &self.notices)?;
        let mut host = bundles::hook_environment(&config.workspace, protection.clone(), sandbox.clone())?;
        if let Some(fleet) = &fleet {
            host = host.remote_hooks(fleet.hooks());
        }
        let (store, notices) = (self.home.sessions(), self.notices.clone());
        let host = host.name_session(move |id, name| {
            // The session works without its name.
            if let Err(error) = store.name(id, name) {
                notices.note(format!("the name of the session cannot be stored: {error}"));
            }
        });
        let reloader = BundleReloader::start(&bundles, &config, &self.home, &self.hooks, host, &log, &protection)?;
        // Landlock identifies files by folder, so a hard link elsewhere bypasses it.
        if sandbox.level != SandboxLevel::Namespaces {
            guards::protect(&self.hooks, workspace.clone(), self.home.environment().home());
        }
        let undo = GitUndo::new(workspace.clone(), sandbox.sandbox.clone());
        let mode = ModeSwitch::new(&self.hooks, config.mode, &*config.forbidden_modes, undo, GuardScope::default());
        let limits = limits(&levels);
        let Self { home, hooks, notices, .. } = self;
        Ok(Policy {
            config,
            home,
            levels,
            hooks,
            log,
            rules,
            limits,
            workspace,
            sandbox,
            mode,
            reloader,
            notices,
            fleet,
        })
    }

    /// Opens the audit log, and decides about the bundle of the project, which is recorded there.
    async fn open_log_and_decide_trust(&self, bundles: &mut Bundles) -> Result<Log> {
        let before = self.config.with_bundles(&bundles.levels());
        let log = open_log(&before, &self.home)?;
        if let Some(what) = log.status().breach {
            let hint = "`amplifier audit verify` says what can still be believed";
            let text = format!("it was tampered with, or its disk is broken: {what}; {hint}");
            self.notices.message(Level::Error, "audit log", text);
        }
        let Some(project) = &mut bundles.project else { return Ok(log) };
        let prompt = self.prompt.as_deref().filter(|_| before.mode != ApprovalMode::Deny);
        let prompt = prompt.map(|prompt| (prompt, before.approval_timeout));
        trust_prompt::decide_trust(project, &self.home.trust_store(), &log, prompt, &self.notices).await?;
        let after = self.config.with_bundles(&bundles.levels());
        if after.audit == before.audit {
            return Ok(log);
        }
        // A newly trusted project may require more durability.
        log.close().context("the audit log")?;
        open_log(&after, &self.home)
    }

    fn protection(
        &self,
        config: &Config,
        workspace: &Workspace,
        levels: &BundleStack,
    ) -> Result<(ProtectionPlan, ActiveSandbox)> {
        let protection = ProtectionPlan::new(config, &self.home, workspace.root(), levels)?;
        let sandbox = ActiveSandbox::find(config.is_confined, &protection, self.home.environment());
        // Prepared for the first command while the session starts.
        if self.prepares_sandbox {
            sandbox.sandbox.prepare();
        }
        if let Some(warning) = sandbox.level.warning() {
            self.notices.note(warning);
        }
        if sandbox.level.is_sandbox() {
            protection.link_warnings().iter().for_each(|warning| self.notices.note(warning));
        }
        Ok((protection, sandbox))
    }
}

/// Returns strict limits with the settings of bundles.
fn limits(levels: &BundleStack) -> SessionConfig {
    let mut limits = SessionConfig { audit_required: true, forbid_default_allow: true, ..SessionConfig::default() };
    levels.apply(&mut limits);
    limits
}

impl Policy {
    /// Returns a builder for a configuration without the settings of bundles.
    pub fn builder(config: &Config, home: &Home) -> PolicyBuilder {
        PolicyBuilder {
            config: config.clone(),
            home: home.clone(),
            bundles: None,
            hooks: HookRegistry::new(),
            notices: Notices::none(),
            prompt: None,
            prepares_sandbox: true,
        }
    }

    /// Returns a coordinator builder with the hooks, rules, limits and log of the policy, and with previews of tool calls. In the mode `deny`, every request is denied
    /// instead of sent to `approvals`.
    pub fn coordinator(&self, session: &str, approvals: impl ApprovalSystem) -> CoordinatorBuilder {
        let coordinator = Coordinator::builder(self.hooks.clone())
            .session_id(session)
            .approval_rules(self.rules.clone())
            .operations(self.operations())
            .previews(WorkspacePreviews(self.workspace.clone()))
            .audit(self.log.clone())
            .config(self.limits.clone());
        coordinator.approvals(self.approvals(approvals))
    }

    /// Returns the approval system of a session: also the consoles of the fleet are asked, and nobody in the mode `deny`.
    pub(crate) fn approvals<A: ApprovalSystem>(&self, system: A) -> ModeApprovals<FleetFanOut<A>> {
        let fleet = self.fleet.as_ref().map(FleetWork::asker);
        ModeApprovals { system: FleetFanOut { system, fleet }, mode: self.mode.clone() }
    }

    /// Returns the description of tool calls for approval rules.
    pub fn operations(&self) -> WorkspaceOperations {
        WorkspaceOperations::new(self.workspace.clone(), self.config.confirm).mode(self.mode.clone())
    }

    /// Returns the approval mode, which can change.
    pub fn mode(&self) -> &ModeSwitch {
        &self.mode
    }

    /// Changes the approval mode of a session. The change is recorded before it takes effect. Blocks while it is recorded.
    ///
    /// # Errors
    /// If the mode is forbidden, or the change cannot be recorded. The mode stays.
    pub fn set_mode(&self, session: &str, mode: ApprovalMode, by: &Actor) -> Result<()> {
        self.mode.set(mode, |before| {
            let change = json!({ "mode": { "session_id": session, "from": before, "to": mode, "by": by } });
            ApprovalRuleStore::new(self.home.clone(), self.log.clone()).record(&change)
        })?;
        Ok(())
    }

    /// Registers the hook `confirm`, which requests approval for the operations that the configuration names.
    pub fn confirm_changes(&self) {
        let Config { confirm, approval_timeout, .. } = self.config;
        guards::register(&self.hooks, confirm, approval_timeout, self.workspace.clone(), Some(self.mode.clone()));
    }

    /// Reloads changed bundles. Blocks while reading small files.
    pub fn reload(&self) -> ReloadResult {
        self.reloader.reload().0
    }

    /// Returns the options for a link to a server.
    pub fn link_options(&self) -> LinkOptions {
        let (reloader, notices) = (self.reloader.clone(), self.notices.clone());
        let reload = move || {
            let (result, news) = reloader.reload();
            news.into_iter().for_each(|news| notices.note(news));
            result
        };
        LinkOptions {
            home: self.home.clone(),
            workspace: self.workspace.root().to_owned(),
            log: self.log.clone(),
            notices: self.notices.clone(),
            reload: Some(Arc::new(reload)),
        }
    }

    /// Returns the configuration with the settings of bundles.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the folders of the user.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the bundles at loading time.
    pub fn levels(&self) -> &BundleStack {
        &self.levels
    }

    /// Returns the registered hooks.
    pub fn hooks(&self) -> &HookRegistry {
        &self.hooks
    }

    /// Returns the audit log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the approval rules, which are read at each request.
    pub fn rules(&self) -> &ApprovalRuleFiles {
        &self.rules
    }

    /// Returns the limits of sessions.
    pub fn limits(&self) -> &SessionConfig {
        &self.limits
    }

    /// Returns the workspace, with its protected paths and its sandbox.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns the sandbox of programs.
    pub fn sandbox(&self) -> &ActiveSandbox {
        &self.sandbox
    }

    /// Returns the receiver of messages for the user.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Closes the audit log. On a machine of a fleet, waits up to 10 seconds until the centre has its records.
    ///
    /// # Errors
    /// If a record could not be written.
    pub async fn close(self) -> Result<()> {
        let Self { log, notices, fleet, .. } = self;
        let closing = notices.clone();
        // Closing blocks on the disk.
        tokio::task::spawn_blocking(move || close_log(log, &closing)).await.context("the audit log")??;
        if let Some(fleet) = fleet {
            fleet.close(&notices).await;
        }
        Ok(())
    }
}
