//! Files of approval rules: those of the user, and those for projects.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_audit::Log;
use amplifier_core::{Actor, ApprovalRule, ApprovalRuleSource, ApprovalRules, PortError, RuleScope, ToolDefinition};
use amplifier_link::{RuleList, UnreadableFile};
use amplifier_process::files::{Durability, create_private_folder, read_regular, read_regular_text, write_atomic};
use amplifier_process::locks::FileLock;
use amplifier_process::os_string;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use crate::error::reasons;
use crate::error::{ErrorContext, Result, bail};
use crate::home::Home;
use crate::mcp_definitions::McpDefinitionStore;

const RULES_FILE: &str = "approvals.json";
const PROJECT_PATH_FILE: &str = "path";

const MAX_FILE_BYTES: u64 = 16 << 20;

/// The approval rules for a workspace: those of the user and those of the project.
#[derive(Clone, Debug)]
pub struct ApprovalRuleFiles {
    home: Home,
    project: PathBuf,
    initial: ApprovalRules,
    log: Option<Log>,
}

impl ApprovalRuleFiles {
    /// Reads the rules for a workspace.
    ///
    /// # Errors
    /// If the rules cannot be read, or the folder does not exist.
    pub fn for_workspace(home: &Home, workspace: &Path) -> Result<Self> {
        let project = workspace.canonicalize().with_context(|| format!("the folder `{}`", workspace.display()))?;
        let mut rules = Self { home: home.clone(), project, initial: ApprovalRules::default(), log: None };
        rules.initial = rules.read()?;
        Ok(rules)
    }

    /// Lets approvers add rules, which are recorded in a log.
    #[must_use]
    pub fn recording(self, log: Log) -> Self {
        Self { log: Some(log), ..self }
    }

    fn read(&self) -> Result<ApprovalRules> {
        let user = read_rules(&self.home.approval_rule_file())?;
        let folder = folder_of(&self.home, &self.project);
        if folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(user);
        }
        check_path(&folder, &self.project)?;
        Ok(user.and(read_rules(&folder.join(RULES_FILE))?))
    }
}

impl ApprovalRuleSource for ApprovalRuleFiles {
    async fn active_rules(&self) -> Result<ApprovalRules, PortError> {
        let rules = self.clone();
        // An unreadable file may contain a denial.
        run_blocking(move || rules.read()).await
    }

    fn last_known_rules(&self) -> ApprovalRules {
        self.initial.clone()
    }

    async fn covers_definition(&self, tool: &ToolDefinition) -> Result<bool, PortError> {
        let (definitions, tool) = (McpDefinitionStore::new(&self.home), tool.clone());
        run_blocking(move || definitions.covers(&tool)).await
    }

    async fn accept_definition(&self, tool: &ToolDefinition) -> Result<(), PortError> {
        let (definitions, tool) = (McpDefinitionStore::new(&self.home), tool.clone());
        run_blocking(move || definitions.accept(&tool)).await
    }

    fn writable_scopes(&self) -> Vec<(RuleScope, Option<String>)> {
        if self.log.is_none() {
            return Vec::new();
        }
        let project = self.project.to_str().map(|project| (RuleScope::Project, Some(project.to_owned())));
        project.into_iter().chain([(RuleScope::User, None)]).collect()
    }

    async fn add_rule(&self, rule: &ApprovalRule) -> Result<(), PortError> {
        let Some(log) = self.log.clone() else { return Err("this session cannot change rule files".into()) };
        let (store, rule) = (ApprovalRuleStore::new(self.home.clone(), log), rule.clone());
        run_blocking(move || store.add(&rule)).await.map(drop)
    }
}

/// Runs blocking file access, on a separate thread if there is a runtime.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T, PortError> {
    let done = match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await?,
        Err(_) => work(),
    };
    Ok(done.map_err(|error| reasons(&error))?)
}

/// The rules in one file.
#[derive(Debug)]
pub struct RuleFile {
    /// The file.
    pub file: PathBuf,
    /// The project; none for the user's own file.
    pub project: Option<PathBuf>,
    /// The rules, in the order of the file.
    pub rules: Vec<ApprovalRule>,
}

impl RuleFile {
    /// Reads every file, the user's first. Each result has the rules, or the reason why the file cannot be read.
    pub fn read_all(home: &Home) -> Vec<(PathBuf, Result<Self>)> {
        let user = home.approval_rule_file();
        let mut all = vec![(user.clone(), Self::read(user, None))];
        let folder = home.projects();
        let unreadable = |error: std::io::Error| (folder.clone(), Err(error.into()));
        match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => all.push(unreadable(error)),
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        // Sessions ignore other folders, too.
                        Ok(entry) if is_folder_name(&entry.file_name()) => {
                            let file = entry.path().join(RULES_FILE);
                            all.push((file, Self::read_folder(&entry.path())));
                        }
                        Ok(_) => {}
                        Err(error) => all.push(unreadable(error)),
                    }
                }
            }
        }
        let project = |read: &(PathBuf, Result<Self>)| read.1.as_ref().ok().and_then(|file| file.project.clone());
        all[1..].sort_by_cached_key(|read| (project(read), read.0.clone()));
        all
    }

    fn read_folder(folder: &Path) -> Result<Self> {
        let path = folder.join(PROJECT_PATH_FILE);
        let project = read_regular(&path, MAX_FILE_BYTES).with_context(|| quoted_path(&path))?;
        let project = os_string(&project).map(PathBuf::from);
        let project = project.with_context(|| format!("{} is not the path of a folder here", quoted_path(&path)))?;
        check_path(folder, &project)?;
        Self::read(folder.join(RULES_FILE), Some(project))
    }

    fn read(file: PathBuf, project: Option<PathBuf>) -> Result<Self> {
        let Some(text) = read_if_exists(&file)? else { return Ok(Self { file, project, rules: Vec::new() }) };
        let scope = if project.is_some() { RuleScope::Project } else { RuleScope::User };
        let path = project.as_ref().map(|project| project.to_string_lossy().into_owned());
        let placed = |rule: &ApprovalRule| ApprovalRule { scope, project: path.clone(), ..rule.clone() };
        let rules = ApprovalRules::from_json(&text)?.iter().map(placed).collect();
        Ok(Self { file, project, rules })
    }

    /// Writes the file atomically: while a rule file is unreadable, nothing would run.
    fn write(&self) -> Result<()> {
        // Follows a link, so that the link stays.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let rules: ApprovalRules = self.rules.iter().cloned().collect();
        let text = serde_json::to_vec_pretty(&rules)?;
        Ok(write_atomic(&file, &text, Durability::Synced)?)
    }
}

/// A store that changes the rule files. Every change is recorded before it takes effect.
#[derive(Clone)]
pub struct ApprovalRuleStore {
    home: Home,
    log: Log,
}

impl ApprovalRuleStore {
    /// A store for the files of a user.
    pub fn new(home: Home, log: Log) -> Self {
        Self { home, log }
    }

    /// Returns the rules of all files, and the files that cannot be read.
    pub fn list(&self) -> RuleList {
        let mut all = RuleList::default();
        for (file, read) in RuleFile::read_all(&self.home) {
            match read {
                Ok(file) => all.rules.extend(file.rules),
                Err(error) => all
                    .unreadable
                    .push(UnreadableFile { file: file.to_string_lossy().into_owned(), reason: reasons(&error) }),
            }
        }
        all
    }

    /// Revokes a rule. Returns `false` if the rule is unknown.
    ///
    /// # Errors
    /// If the change cannot be recorded or written.
    pub fn revoke(&self, rule: &ApprovalRule, by: &Actor) -> Result<bool> {
        self.change(rule, Some(by), "revoked", |rules| {
            let before = rules.len();
            // Keeps the order of the other rules.
            rules.retain(|known| !is_same_entry(known, rule));
            rules.len() < before
        })
    }

    /// Adds a rule. Returns `false` if the rule exists.
    ///
    /// # Errors
    /// If the change cannot be recorded or written.
    pub fn add(&self, rule: &ApprovalRule) -> Result<bool> {
        self.change(rule, rule.by.as_ref(), "added", |rules| {
            let is_new = !rules.iter().any(|known| is_same_entry(known, rule));
            if is_new {
                rules.push(rule.clone());
            }
            is_new
        })
    }

    /// Changes a file under a lock. Returns `false` if nothing changes.
    fn change(
        &self,
        rule: &ApprovalRule,
        by: Option<&Actor>,
        word: &str,
        change: impl FnOnce(&mut Vec<ApprovalRule>) -> bool,
    ) -> Result<bool> {
        let _lock = self.lock()?;
        let project = &rule.project;
        let name = match project {
            None => self.home.approval_rule_file(),
            Some(project) => self.project_file(Path::new(project))?,
        };
        let project_path = project.as_ref().map(PathBuf::from);
        let mut file = RuleFile::read(name.clone(), project_path).with_context(|| quoted_path(&name))?;
        if !change(&mut file.rules) {
            return Ok(false);
        }
        self.record(&json!({
            "approval_rule": {
                "rule": rule.file_key(), "decision": rule.decision, "project": project, "change": word, "by": by,
            },
        }))?;
        file.write().with_context(|| quoted_path(&name))?;
        Ok(true)
    }

    /// Returns the rule file of a project, and creates its folder if missing.
    fn project_file(&self, project: &Path) -> Result<PathBuf> {
        let project = project.canonicalize().with_context(|| format!("the folder `{}`", project.display()))?;
        if !project.is_dir() {
            bail!("`{}` is not a folder", project.display());
        }
        let folder = folder_of(&self.home, &project);
        create_private_folder(&folder)?;
        let path = folder.join(PROJECT_PATH_FILE);
        if !path.exists() {
            write_atomic(&path, project.as_os_str().as_encoded_bytes(), Durability::Synced)?;
        }
        check_path(&folder, &project)?;
        Ok(folder.join(RULES_FILE))
    }

    fn lock(&self) -> Result<FileLock> {
        let folder = self.home.approval_rule_file();
        let folder = folder.parent().context("the configuration has no folder")?;
        create_private_folder(folder)?;
        Ok(FileLock::wait(&folder.join(".approvals.lock"))?)
    }

    /// Records a change of policy that is not stored elsewhere.
    ///
    /// # Errors
    /// If the change cannot be recorded.
    pub fn record(&self, change: &Value) -> Result<()> {
        let receipt = self.log.policy_change(change).context("the audit log")?;
        self.log.flush_blocking(receipt).context("the audit log")
    }
}

/// Returns `true` if a file has the same entry for both rules.
fn is_same_entry(one: &ApprovalRule, other: &ApprovalRule) -> bool {
    let entry = |rule: &ApprovalRule| (rule.hook.clone(), rule.pattern.clone(), rule.operation.clone(), rule.decision);
    entry(one) == entry(other)
}

fn folder_of(home: &Home, project: &Path) -> PathBuf {
    let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    home.projects().join(name)
}

fn is_folder_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == 32 && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Fails unless a folder is the one of the project.
fn check_path(folder: &Path, project: &Path) -> Result<()> {
    let path = folder.join(PROJECT_PATH_FILE);
    let content = read_regular(&path, MAX_FILE_BYTES).with_context(|| quoted_path(&path))?;
    let is_own_folder = folder.file_name() == folder_of(&Home::at("/"), project).file_name();
    if content != project.as_os_str().as_encoded_bytes() || !is_own_folder {
        bail!(
            "`{0}` does not hold the approval rules of `{1}`; remove the folder `{0}`",
            folder.display(),
            project.display()
        );
    }
    Ok(())
}

/// Reads the rules in a file. Only a missing file has no rules: an unreadable one may contain a denial.
fn read_rules(file: &Path) -> Result<ApprovalRules> {
    let text = read_if_exists(file).with_context(|| quoted_path(file))?;
    text.map_or_else(
        || Ok(ApprovalRules::default()),
        |text| ApprovalRules::from_json(&text).with_context(|| quoted_path(file)),
    )
}

fn read_if_exists(file: &Path) -> std::io::Result<Option<String>> {
    match read_regular_text(file, MAX_FILE_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the path in backticks.
pub fn quoted_path(file: &Path) -> String {
    format!("`{}`", file.display())
}
