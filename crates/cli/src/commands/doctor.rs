//! `amplifier doctor`: checks of the configuration.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use amplifier_agent::provider::Script;
use amplifier_agent::tool::Workspace;
use amplifier_core::HookRegistry;
use amplifier_core::text::counted;
use amplifier_host::{
    ActiveSandbox, ApprovalRuleFiles, Bundles, Config, Environment, Home, HookState, ModelChoice, ProjectBundle,
    ProjectTrust, ProtectionPlan, SandboxLevel, Setting, bundles, open_log,
};
use amplifier_modules::bundle::{BundleScope, BundleStack};
use amplifier_process::bash;
use amplifier_process::files::create_private_folder;
use amplifier_server::client::Address;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::guard;
use super::output::pipe_stdout;
use crate::errors::reasons;
use crate::flags::Flags;
use crate::terminal::{EscapeMode, visible};

/// Check the configuration
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all checks passed, 1 a check failed, 2 wrong usage, 4 not checked: the configuration is unreadable."
)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

struct Check {
    what: &'static str,
    is_well: bool,
    about: String,
    /// Advice, if the check failed.
    fix: Option<String>,
}

impl Doctor {
    /// Runs the command.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn run(self, home: &Home) -> Result<ExitCode> {
        let config = self.flags.load(home)?;
        // An invalid bundle is reported by its own check.
        let found = Bundles::find(&config, home).unwrap_or_default();
        let (levels, hooks) = (found.levels(), found.hook_states());
        let config = config.with_bundles(&levels);
        let sandbox = find_sandbox(&config, home, &levels);
        let checks = run_checks(&config, home, &config.model(&levels, home.environment())?, &sandbox);
        let is_well = checks.iter().all(|check| check.is_well);
        let mut out = pipe_stdout();
        if self.json {
            let settings = config.settings.iter().map(
                |Setting { name, value, source }| json!({ "name": name, "value": value, "source": source.to_string() }),
            );
            let settings: Vec<_> = settings.collect();
            let checks = checks
                .iter()
                .map(|Check { what, is_well, about, fix }| json!({ "what": what, "ok": is_well, "about": about, "fix": fix }));
            let checks: Vec<_> = checks.collect();
            let sandbox = sandbox.as_ref().ok().map(|(ActiveSandbox { level, .. }, protection)| {
                json!({
                    "level": level.as_str(),
                    "reason": level.reason(),
                    "advice": level.advice(),
                    "read_only": protection.read_only(),
                    "hidden": protection.hidden(),
                    "missing": protection.missing(&config.sandbox),
                })
            });
            let file = config.file.to_string_lossy();
            writeln!(
                out,
                "{}",
                json!({
                    "ok": is_well, "file": file, "settings": settings, "findings": checks, "hooks": hooks,
                    "sandbox": sandbox,
                })
            )?;
        } else {
            writeln!(out, "Configuration ({})\n", config.file.display())?;
            for Setting { name, value, source } in &config.settings {
                let value = if value.is_empty() { "-" } else { value };
                writeln!(out, "  {name:<16} {value:<40} {source}")?;
            }
            writeln!(out, "\nChecks\n")?;
            for Check { what, is_well, about, fix } in &checks {
                writeln!(out, "  {} {what:<14} {about}", if *is_well { "✓" } else { "✗" })?;
                if let Some(fix) = fix {
                    writeln!(out, "  {:<16} → {fix}", "")?;
                }
            }
            if !hooks.is_empty() {
                writeln!(out, "\nHooks\n")?;
            }
            for HookState { name, level, file, line, active, reason, .. } in &hooks {
                let mark = if *active { "✓" } else { "✗" };
                let text = format!("{mark} {name} ({level}, {}:{line}): {reason}", file.display());
                writeln!(out, "  {}", visible(&text, EscapeMode::Exact))?;
            }
        }
        out.flush()?;
        Ok(if is_well { ExitCode::SUCCESS } else { Exit::Failed.into() })
    }
}

fn check_bundles(config: &Config, home: &Home, sandbox: &Result<(ActiveSandbox, ProtectionPlan)>) -> Result<String> {
    let bundles = Bundles::find(config, home)?;
    let levels = bundles.levels();
    // A sandbox error is reported by its own check.
    if let Ok((sandbox, protection)) = sandbox {
        let host = bundles::hook_environment(&config.workspace, protection.clone(), sandbox.clone())?;
        levels.register(&HookRegistry::new(), &host)?;
    }
    let project = bundles.project.as_ref();
    if let Some(ProjectBundle { state: ProjectTrust::Unusable(_), .. }) = project {
        bail!(project.and_then(ProjectBundle::warning).unwrap_or_default());
    }
    let used = levels.bundles().map(|(level, bundle)| {
        let file = bundle.files.last().map(|file| file.display().to_string()).unwrap_or_default();
        let trusted = if level == BundleScope::Project { ", trusted" } else { "" };
        format!("{file}: {} ({level}{trusted})", counted(bundle.hooks.len(), "hook"))
    });
    let unused = project.filter(|project| !matches!(project.state, ProjectTrust::Trusted(..)));
    let unused = unused.map(|project| {
        format!(
            "{}: not used: {} (project); run `amplifier hooks trust`",
            project.file.display(),
            project.trust_label()
        )
    });
    let all: Vec<String> = used.chain(unused).collect();
    let all = if all.is_empty() { "none".to_owned() } else { all.join("; ") };
    Ok(visible(&all, EscapeMode::Exact))
}

/// Writes a file with content, because a full disk still allows an empty one.
fn check_data_folder(folder: &Path) -> Result<String, String> {
    let written = create_private_folder(folder).and_then(|()| {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&[0; 4096])?;
        file.as_file().sync_all()
    });
    match written {
        Ok(()) => Ok(format!("writable: {}", folder.display())),
        Err(error) => Err(format!("`{}` is not writable: {error}", folder.display())),
    }
}

/// Opens the audit log in the same way as sessions. A missing log is not created.
fn check_audit_log(config: &Config, home: &Home) -> Result<String> {
    let (folder, key) = (home.audit_folder(), home.audit_key());
    if [&folder, &key].into_iter().all(|place| place.symlink_metadata().is_err()) {
        return Ok("none yet; created by the first session".to_owned());
    }
    let log = open_log(config, home)?;
    let breach = log.status().breach;
    log.close()?;
    match breach {
        Some(what) => bail!("tampered with, or the disk is broken: {what}; see `amplifier audit verify`"),
        None => Ok(folder.display().to_string()),
    }
}

fn check_anchors(config: &Config, environment: &Environment) -> Result<String> {
    for anchor in &config.anchors {
        anchor.check(environment).with_context(|| format!("anchor `{anchor}` cannot store checkpoints"))?;
    }
    Ok(match config.anchors.len() {
        0 => "none".to_owned(),
        anchors => counted(anchors, "anchor"),
    })
}

fn check_model(choice: &ModelChoice) -> Result<String, String> {
    match choice {
        ModelChoice::Unconfigured => Err(choice.describe()),
        ModelChoice::Script(file) => match Script::load(file) {
            Ok(_) => Ok(choice.describe()),
            Err(error) => Err(error.to_string()),
        },
        ModelChoice::Remote { kind, base_url, key, .. } => match (key, base_url) {
            (None, None) => Err(format!("missing key for `{kind}`")),
            (_, Some(_)) => Ok(choice.describe()),
            (Some(_), None) => Ok(format!("{}; {} is set", choice.describe(), kind.key_variable())),
        },
    }
}

/// Returns the sandbox that a session would have, and its protected paths.
fn find_sandbox(config: &Config, home: &Home, levels: &BundleStack) -> Result<(ActiveSandbox, ProtectionPlan)> {
    let workspace = config.workspace.canonicalize().unwrap_or_else(|_| config.workspace.clone());
    let bundles = levels.bundles().map(|(_, bundle)| bundle);
    let protection = ProtectionPlan::current(config, home, &workspace, bundles)?;
    Ok((ActiveSandbox::find(config.is_confined, &protection, home.environment()), protection))
}

fn describe_sandbox(config: &Config, level: &SandboxLevel, protection: &ProtectionPlan) -> Result<String, String> {
    let (read_only, hidden) = (protection.read_only().len(), protection.hidden().iter().filter(|path| path.exists()));
    let places = format!("{} read-only, {} hidden", counted(read_only, "path"), hidden.count());
    let missing: Vec<String> =
        protection.missing(&config.sandbox).iter().map(|path| format!("`{}`", path.display())).collect();
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!("; missing, so not protected: {}", missing.join(", ")),
    };
    let advice = level.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
    match level.reason() {
        None => Ok(format!("{}: {places}{missing}", level.as_str())),
        Some(reason) if level.is_sandbox() => {
            Err(format!("{}, which is weaker than namespaces: {places}{missing}; {reason}{advice}", level.as_str()))
        }
        Some(reason) => Err(format!("{} of commands only, which is weaker: {reason}{advice}", level.as_str())),
    }
}

fn run_checks(
    config: &Config,
    home: &Home,
    choice: &ModelChoice,
    sandbox: &Result<(ActiveSandbox, ProtectionPlan)>,
) -> Vec<Check> {
    let check = |what, result: Result<String, String>, fix: &str| match result {
        Ok(about) => Check { what, is_well: true, about, fix: None },
        Err(about) => Check { what, is_well: false, about, fix: Some(fix.to_owned()) },
    };
    let fix_model = match choice {
        ModelChoice::Remote { kind, .. } => format!("set {}, or choose another provider", kind.key_variable()),
        ModelChoice::Script(_) => "correct the script, or name another one with `--script FILE`".to_owned(),
        ModelChoice::Unconfigured => {
            "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or use `--base-url URL --model NAME` for a local model".to_owned()
        }
    };
    let folder = home.data().display();
    let fix_data = format!("make `{folder}` writable and free disk space, or set AMPLIFIER_HOME to another folder");
    let fix_log = format!("run `amplifier audit verify`; check the permissions of `{}`", home.audit_folder().display());
    let fix_anchors = format!("correct `anchors` in `{}`", config.file.display());
    let model = check_model(choice);
    let workspace = Workspace::new(&config.workspace)
        .map(|_| config.workspace.display().to_string())
        .map_err(|error| format!("`{}`: {error}", config.workspace.display()));
    let rule_file = home.approval_rule_file();
    let fix_rules = format!("correct or remove `{}`", rule_file.display());
    let rules = match ApprovalRuleFiles::for_workspace(home, &config.workspace) {
        Ok(_) if rule_file.exists() => Ok(rule_file.display().to_string()),
        Ok(_) => Ok("no approval rules".to_owned()),
        Err(error) => Err(amplifier_host::reasons(&error)),
    };
    let bash = bash().and_then(|bash| std::process::Command::new(bash).args(["-c", "exit 0"]).status());
    let bash = match bash {
        Ok(status) if status.success() => Ok("found".to_owned()),
        _ => Err("not found; required by the tool `Bash`".to_owned()),
    };
    let bundles = check_bundles(config, home, sandbox);
    let fix_sandbox = match sandbox {
        Ok((active, _)) => active.level.advice().unwrap_or_else(|| "allow user namespaces on this system".to_owned()),
        Err(_) => format!("correct `[sandbox]` in `{}`", config.file.display()),
    };
    let sandbox = match sandbox {
        _ if !config.is_confined => Ok("analysis of commands only: `confinement` is `off`".to_owned()),
        Ok((active, protection)) => describe_sandbox(config, &active.level, protection),
        Err(error) => Err(reasons(error)),
    };
    let fix_guard = "run `amplifier guard status`";
    let fix_server = format!("check the permissions of `{}`", home.server_folder().display());
    let server = match Address::find(&home.server_folder()) {
        Ok(Some(address)) => Ok(format!("running at {} (process {})", address.url, address.pid)),
        Ok(None) => Ok("not running; start one with `amplifier serve`".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let checks = vec![
        check("model", model, &fix_model),
        check("workspace", workspace, "name an existing folder with `--workspace FOLDER`"),
        check("data", check_data_folder(home.data()), &fix_data),
        check("audit log", check_audit_log(config, home).map_err(|error| reasons(&error)), &fix_log),
        check("anchors", check_anchors(config, home.environment()).map_err(|error| reasons(&error)), &fix_anchors),
        check(
            "bundles",
            bundles.map_err(|error| reasons(&error)),
            "correct the bundle; `amplifier hooks validate FILE` checks it",
        ),
        check("approvals", rules, &fix_rules),
        check("bash", bash, "install bash, and add its folder to PATH"),
        check("sandbox", sandbox, &fix_sandbox),
        check("server", server, &fix_server),
        check("guard", guard::check(home), fix_guard),
    ];
    #[cfg(feature = "fleet")]
    let checks = {
        let fleet = super::fleet::check(config, home);
        checks
            .into_iter()
            .chain([check("fleet", fleet, "check the network and the servers; sessions work meanwhile")])
            .collect()
    };
    checks
}
