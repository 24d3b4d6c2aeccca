//! `amplifier hooks trust`: trust in the bundles of projects.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_core::text::counted;
use amplifier_host::{
    Home, PROJECT_BUNDLE, ProjectBundle, ProjectTrust, find_project_bundle_file, open_log, record_trust,
};
use amplifier_modules::trust::{BundlePins, TrustStatus};
use anyhow::{Result, bail};
use serde_json::json;

use super::exit::Exit;
use super::output::{pipe_stdout, print_json};
use crate::errors::usage;
use crate::flags::Flags;
use crate::terminal::{DialogAnswer, EscapeMode, Screen, trust_dialog, visible};

/// Shows the content of a project's bundle and trusts it if the user agrees.
///
/// # Errors
/// If the bundle is not found or cannot be trusted, or there is no terminal to ask on.
pub(super) async fn trust(
    given: Option<PathBuf>,
    is_agreed: bool,
    as_json: bool,
    flags: &Flags,
    home: &Home,
) -> Result<ExitCode> {
    let config = &flags.load(home)?;
    let file = find_bundle(given.as_deref(), &config.workspace)?;
    let store = home.trust_store();
    let (bundle, pinned, status) = match ProjectBundle::find(file, &store).state {
        ProjectTrust::Trusted(bundle, pinned) => (bundle, pinned, TrustStatus::Trusted),
        ProjectTrust::Untrusted(bundle, pinned, status) => (bundle, pinned, status),
        ProjectTrust::Unusable(why) => bail!("the bundle cannot be trusted: {why}"),
    };
    let shown = trust_dialog(&bundle, &pinned, &status);
    let mut out = pipe_stdout();
    let path = visible(&pinned.bundle.to_string_lossy(), EscapeMode::Exact);
    let result = |status: &str| {
        let bundle = pinned.bundle.to_string_lossy();
        json!({ "bundle": bundle, "digest": pinned.digest(), "files": pinned.files.len(), "status": status })
    };
    if as_json && status == TrustStatus::Trusted {
        return print_json(&result("already_trusted"));
    }
    if status == TrustStatus::Trusted {
        writeln!(out, "{}\n\n{path} is already trusted.", shown.text())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    if is_agreed && as_json {
        // The caller has reviewed the content.
    } else if is_agreed {
        writeln!(out, "{}\n", shown.text())?;
    } else {
        let screen = Screen::new();
        if !screen.can_ask() {
            if !as_json {
                writeln!(out, "{}\n", shown.text())?;
                out.flush()?;
            }
            return Err(usage(
                "not trusted: no terminal to ask on; review the content above, then run this in a terminal or with --yes",
            ));
        }
        drop(out);
        if shown.ask(&screen, config.approval_timeout).await? != DialogAnswer::Yes {
            if as_json {
                print_json(&result("declined"))?;
            }
            return Ok(Exit::Denied.into());
        }
        out = pipe_stdout();
    }
    // The record is written first: trust without a record is not allowed.
    let log = open_log(config, home)?;
    record_trust(&log, &pinned, "trusted")?;
    store.trust(&pinned)?;
    log.close()?;
    if as_json {
        return print_json(&result("trusted"));
    }
    writeln!(out, "{path} is trusted: {}", pinned.digest())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Revokes trust.
///
/// # Errors
/// If the bundle is not trusted or the store cannot be changed.
pub(super) fn untrust(given: Option<PathBuf>, as_json: bool, flags: &Flags, home: &Home) -> Result<ExitCode> {
    let config = &flags.load(home)?;
    let file = resolve_bundle(given.as_deref(), &config.workspace)?;
    let path = visible(&file.to_string_lossy(), EscapeMode::Exact);
    // Before the record: revoking must not fail because the log cannot be written.
    let Some(trusted) = home.trust_store().untrust(&file)? else {
        bail!("`{path}` is not trusted; see `amplifier hooks trusted`");
    };
    let log = open_log(config, home)?;
    record_trust(&log, &BundlePins { bundle: file.clone(), files: trusted.files }, "taken back")?;
    log.close()?;
    if as_json {
        return print_json(&json!({ "bundle": file.to_string_lossy(), "status": "revoked" }));
    }
    writeln!(std::io::stdout(), "{path} is no longer trusted.")?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the trusted bundles.
///
/// # Errors
/// If the store cannot be read.
pub(super) fn list_trusted(json: bool, home: &Home) -> Result<ExitCode> {
    let bundles = home.trust_store().list()?;
    let mut out = std::io::stdout().lock();
    if bundles.is_empty() && !json {
        writeln!(out, "No trusted bundles.")?;
    }
    for (bundle, trusted) in &bundles {
        let now = ProjectBundle::find(bundle.clone(), &home.trust_store());
        if json {
            let line = json!({
                "bundle": bundle.to_string_lossy(),
                "trusted_at": trusted.trusted_at,
                "digest": trusted.digest,
                "files": trusted.files.len(),
                "is_trusted_now": matches!(now.state, ProjectTrust::Trusted(..)),
            });
            writeln!(out, "{line}")?;
        } else {
            let path = visible(&bundle.to_string_lossy(), EscapeMode::Exact);
            let digest = trusted.digest.to_string();
            writeln!(
                out,
                "{path}\n    {}, {}, {}: {}",
                trusted.trusted_at,
                counted(trusted.files.len(), "file"),
                now.trust_label(),
                &digest[..16]
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find_bundle(given: Option<&Path>, workspace: &Path) -> Result<PathBuf> {
    let file = resolve_bundle(given, workspace)?;
    if file.symlink_metadata().is_err() {
        bail!("`{}` not found; create one with `amplifier init`", file.display());
    }
    Ok(file)
}

/// Resolves the path of a bundle: the bundle of the project in a folder, or the file itself. The project may be deleted.
fn resolve_bundle(given: Option<&Path>, workspace: &Path) -> Result<PathBuf> {
    let given = given.unwrap_or(workspace);
    if given.is_dir() {
        return Ok(find_project_bundle_file(given)
            .unwrap_or_else(|| given.canonicalize().unwrap_or_default().join(PROJECT_BUNDLE)));
    }
    let absolute = std::path::absolute(given)?;
    if !absolute.ends_with(PROJECT_BUNDLE) {
        let given = given.display();
        return Err(usage(format!(
            "only `{PROJECT_BUNDLE}` of a project needs trust; use `{given}` with --bundle {given}"
        )));
    }
    let folder = absolute.parent().and_then(Path::parent).unwrap_or(&absolute);
    Ok(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(PROJECT_BUNDLE))
}
