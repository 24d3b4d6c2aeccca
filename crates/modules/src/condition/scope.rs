//! Values available to expressions besides the event.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_audit::Redaction;
use amplifier_core::{Clock, HookRegistry, SystemClock};
use amplifier_process::follow_links;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use soft_canonicalize::soft_canonicalize;

use crate::counters::EventCounters;
use crate::shell::{Analysis, analyse};

/// Analyses a shell command: returns an object with `analysable`, `programs`, `commands`, `writes`, `deletes`, `network`, `hosts`, `sends`,
/// `runs_download`, `force_push`, `destructive`, `readonly` and `why`.
pub type ShellAnalysis = fn(&str) -> Value;

/// Values available to expressions besides the event: the workspace, the time, the session, shell commands and secrets. Clones share counts.
#[derive(Clone)]
pub struct Scope {
    workspace: PathBuf,
    clock: Arc<dyn Clock>,
    time_zone: TimeZone,
    pub(super) shell: ShellAnalysis,
    redaction: Redaction,
    redaction_key: [u8; 32],
    pub(super) counts: Arc<EventCounters>,
}

impl Scope {
    /// Creates a scope with a workspace, the machine's time and the standard rules for secrets.
    ///
    /// # Errors
    /// If the workspace cannot be resolved, for example because of a cycle of links.
    pub fn new(workspace: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            workspace: soft_canonicalize(workspace)?,
            clock: Arc::new(SystemClock::new()),
            time_zone: TimeZone::system(),
            shell: analysis,
            redaction: Redaction::standard(),
            redaction_key: random_key(),
            counts: Arc::default(),
        })
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the time zone of hours and weekdays.
    #[must_use]
    pub fn time_zone(mut self, time_zone: TimeZone) -> Self {
        self.time_zone = time_zone;
        self
    }

    /// Replaces the analysis of `shell(command)`, which is [`crate::shell::analyse`] by default.
    #[must_use]
    pub fn shell(mut self, analysis: ShellAnalysis) -> Self {
        self.shell = analysis;
        self
    }

    /// Sets the redaction rules and the key of their markers: with the key of the audit log, a secret has the same marker in both.
    #[must_use]
    pub fn redaction(mut self, redaction: Redaction, key: [u8; 32]) -> Self {
        self.redaction = redaction;
        self.redaction_key = key;
        self
    }

    /// Returns the resolved path of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Registers hooks that count the events used by rules with this scope. Bundles do so when registered; for rules without a bundle, call this once
    /// after creating them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use amplifier_core::{data, HookRegistry, TOOL_PRE};
    /// use amplifier_modules::{Rule, RuleOptions, Scope};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Arc::new(Scope::new(".")?);
    /// let options: RuleOptions = serde_json::from_value(serde_json::json!({
    ///     "when": "session_count('tool:pre') > 1",
    ///     "deny": "one is enough",
    /// }))?;
    /// let hooks = HookRegistry::new();
    /// hooks.hook(TOOL_PRE).named("one").handler(Rule::new(options, scope.clone())?);
    /// scope.count(&hooks);
    ///
    /// let call = || hooks.emit(TOOL_PRE, data! { "session_id": "s", "tool_name": "Bash", "tool_input": {} });
    /// assert_eq!(call().await.flat().reason, None);
    /// assert_eq!(call().await.flat().reason.as_deref(), Some("one is enough"));
    /// # Ok(()) }
    /// ```
    pub fn count(&self, hooks: &HookRegistry) {
        // Every name was checked when its expression was compiled.
        if let Err(error) = self.counts.register(&self.clock, hooks) {
            tracing::error!(%error, "an event cannot be counted");
        }
    }

    pub(crate) fn counts(&self) -> &EventCounters {
        &self.counts
    }

    pub(crate) fn redact(&self, value: &mut Value) {
        self.redaction.apply(&self.redaction_key, value);
    }

    /// Returns the rules for secrets.
    pub(crate) fn secret_rules(&self) -> &Redaction {
        &self.redaction
    }

    pub(crate) fn timer(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Replaces the secrets that other rules find by markers with the same key.
    pub(crate) fn redact_by(&self, redaction: &Redaction, value: &mut Value) {
        redaction.apply(&self.redaction_key, value);
    }

    pub(crate) fn now(&self) -> Option<Zoned> {
        Some(Timestamp::try_from(self.clock.wall()).ok()?.to_zoned(self.time_zone.clone()))
    }

    /// Resolves a path from the workspace, with all `..` and links. Missing parts are used as written.
    pub(crate) fn resolve(&self, path: &str) -> io::Result<PathBuf> {
        resolve_path(&self.workspace, path)
    }
}

/// Resolves a path from a resolved workspace. A link to a missing file is followed as the tools follow it, so that rules judge the file that is
/// written; then names get the case that the files have.
pub(crate) fn resolve_path(workspace: &Path, path: &str) -> io::Result<PathBuf> {
    soft_canonicalize(follow_links(workspace, Path::new(path))?)
}

/// Returns a random key, so that a short secret cannot be guessed from its marker.
fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        part.copy_from_slice(&RandomState::new().hash_one(part.len()).to_le_bytes());
    }
    key
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// Returns the result of [`crate::shell::analyse`] with the field names of expressions.
fn analysis(command: &str) -> Value {
    let analysis = analyse(command);
    let why = analysis.why().unwrap_or_default().to_owned();
    let Analysis { analysable, programs, commands, writes, deletes, network, hosts, .. } = analysis;
    let Analysis { sends, runs_download, force_push, destructive, readonly, .. } = analysis;
    let is_destructive = destructive.is_some();
    let is_sent = sends.is_some();
    json!({
        "analysable": analysable,
        "programs": programs,
        "commands": commands,
        "writes": writes,
        "deletes": deletes,
        "network": network,
        "hosts": hosts,
        "sends": is_sent,
        "runs_download": runs_download,
        "force_push": force_push,
        "destructive": is_destructive,
        "readonly": readonly,
        "why": why,
    })
}
